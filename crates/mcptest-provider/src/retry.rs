//! When a request is sent again, and when that is given up.
//!
//! The pause before try n + 1 is drawn evenly from 0 to 250 ms × 2ⁿ⁻¹, at most 10 s ("full jitter":
//! many runs that were refused together do not come back together). A pause that the provider asks
//! for is kept, with up to a tenth (at most a second) on top. All pauses of one request together,
//! and the time lost in answers that never came, stay below a bound. What is drawn follows from a
//! seed, so that the same run waits the same.

use std::time::Duration;

use mcptest_numbers::random::SplitMix64;

/// How often a request is sent again, unless the suite says otherwise: with one request in five
/// refused at random, one run in some hundred thousand is lost.
pub const DEFAULT_RETRIES: u32 = 8;

/// The longest that all pauses of one request may be together.
pub const MOST_WAIT: Duration = Duration::from_secs(60);

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);

/// The most that is added to a pause that the provider asks for.
const MOST_ON_TOP: Duration = Duration::from_secs(1);

/// What to do after a failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait, then try again.
    Wait(Duration),
    /// It was tried often enough.
    TriedEnough,
    /// The provider asks for more patience than there is.
    AskedTooMuch(Duration),
    /// The time for waiting is used up.
    WaitedEnough,
}

/// The pauses of one request.
#[derive(Debug)]
pub struct Schedule {
    retries: u32,
    most_wait: Duration,
    failed: u32,
    waited: Duration,
    random: SplitMix64,
}

impl Schedule {
    /// For one request.
    #[must_use]
    pub fn new(retries: u32, most_wait: Duration, seed: u64) -> Self {
        Self {
            retries,
            most_wait,
            failed: 0,
            waited: Duration::ZERO,
            random: SplitMix64::new(seed),
        }
    }

    /// A try failed. `asked` is the pause that the provider asks for, `lost` the time that it took
    /// not to answer.
    pub fn after(&mut self, asked: Option<Duration>, lost: Duration) -> Next {
        self.failed = self.failed.saturating_add(1);
        self.waited = self.waited.saturating_add(lost);
        if self.failed > self.retries {
            return Next::TriedEnough;
        }
        let left = self.most_wait.saturating_sub(self.waited);
        let pause = match asked {
            Some(asked) if asked > left => return Next::AskedTooMuch(asked),
            Some(asked) => asked + self.up_to((asked / 10).min(MOST_ON_TOP)).min(left - asked),
            None => {
                let doubled = FIRST.saturating_mul(2_u32.saturating_pow(self.failed - 1));
                self.up_to(doubled.min(LONGEST))
            }
        };
        if left.is_zero() || pause > left {
            return Next::WaitedEnough;
        }
        self.waited += pause;
        Next::Wait(pause)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros(self.random.below(most + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pauses(schedule: &mut Schedule, asked: Option<Duration>) -> (Vec<Duration>, Next) {
        let mut pauses = Vec::new();
        loop {
            match schedule.after(asked, Duration::ZERO) {
                Next::Wait(pause) => pauses.push(pause),
                end => return (pauses, end),
            }
        }
    }

    #[test]
    fn the_same_seed_waits_the_same_and_another_one_does_not() {
        let of = |seed| pauses(&mut Schedule::new(8, MOST_WAIT, seed), None).0;
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn the_bound_of_a_pause_doubles_up_to_ten_seconds() {
        let mut longest = [Duration::ZERO; 8];
        for seed in 0..2000 {
            let (pauses, end) = pauses(&mut Schedule::new(8, MOST_WAIT, seed), None);
            assert_eq!(
                (pauses.len(), end),
                (8, Next::TriedEnough),
                "default retries fit into the default wait"
            );
            for (longest, pause) in longest.iter_mut().zip(pauses) {
                *longest = pause.max(*longest);
            }
        }
        for (step, longest) in longest.iter().enumerate() {
            let bound = (FIRST * 2_u32.pow(step as u32)).min(LONGEST);
            assert!(
                *longest <= bound && *longest > bound * 9 / 10,
                "{step}: {longest:?}"
            );
        }
    }

    #[test]
    fn an_asked_pause_is_kept_or_refused() {
        let mut schedule = Schedule::new(8, MOST_WAIT, 7);
        let Next::Wait(pause) = schedule.after(Some(SECOND * 20), Duration::ZERO) else {
            panic!()
        };
        assert!(pause >= SECOND * 20 && pause <= SECOND * 21);
        assert_eq!(
            schedule.after(Some(SECOND * 41), Duration::ZERO),
            Next::AskedTooMuch(SECOND * 41)
        );
        // None at all is asked for, and granted.
        assert_eq!(
            Schedule::new(1, MOST_WAIT, 7).after(Some(Duration::ZERO), Duration::ZERO),
            Next::Wait(Duration::ZERO)
        );
    }

    #[test]
    fn time_lost_without_an_answer_counts() {
        let mut schedule = Schedule::new(8, MOST_WAIT, 7);
        assert!(matches!(schedule.after(None, SECOND * 25), Next::Wait(_)));
        assert!(matches!(schedule.after(None, SECOND * 25), Next::Wait(_)));
        assert_eq!(schedule.after(None, SECOND * 25), Next::WaitedEnough);
    }

    #[test]
    fn no_retries_is_one_try() {
        assert_eq!(
            Schedule::new(0, MOST_WAIT, 7).after(None, Duration::ZERO),
            Next::TriedEnough
        );
    }

    proptest! {
        #[test]
        fn neither_bound_is_ever_passed(
            retries in 0_u32..40,
            most in 0_u64..100_000,
            seed: u64,
            failures in prop::collection::vec((prop::option::of(0_u64..90_000), 0_u64..20_000), 0..60),
        ) {
            let most = Duration::from_millis(most);
            let mut schedule = Schedule::new(retries, most, seed);
            let (mut waited, mut lost_in_all, mut granted) = (Duration::ZERO, Duration::ZERO, 0);
            for (asked, lost) in failures {
                let (asked, lost) = (asked.map(Duration::from_millis), Duration::from_millis(lost));
                lost_in_all += lost;
                match schedule.after(asked, lost) {
                    Next::Wait(pause) => {
                        granted += 1;
                        waited += pause;
                        prop_assert!(asked.is_none_or(|asked| pause >= asked));
                        prop_assert!(waited + lost_in_all <= most);
                    }
                    _ => break,
                }
            }
            prop_assert!(granted <= retries);
        }
    }
}
