//! The waits between the attempts of a request.
//!
//! The wait before attempt n + 1 is drawn uniformly from 0 to 250 ms × 2ⁿ⁻¹, at most 10 s ("full
//! jitter": runs that were refused together do not return together). A wait that the provider
//! requests is kept, plus up to a tenth (at most a second). The sum of all waits of one request,
//! and of the time lost in timeouts, is limited. The waits follow from a seed, so that the same run
//! waits the same.

use std::time::Duration;

use mcptest_numbers::random::SplitMix64;

/// The default number of retries. If one request in five is refused at random, about one run in
/// some hundred thousand fails.
pub const DEFAULT_RETRIES: u32 = 8;

/// The limit of the sum of all waits of one request.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// The upper end of the first wait.
const FIRST_BOUND: Duration = Duration::from_millis(250);
/// The upper end of all later waits.
const MAX_BOUND: Duration = Duration::from_secs(10);

/// The most that is added to a wait that the provider requests.
const MAX_ADDITION: Duration = Duration::from_secs(1);

/// The decision after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryDecision {
    /// Wait, then retry.
    Wait(Duration),
    /// No retries are left.
    RetriesExhausted,
    /// The provider requests a longer wait than is left.
    RetryAfterTooLong(Duration),
    /// No wait is left.
    WaitExhausted,
}

/// The waits of one request.
#[derive(Debug)]
pub struct RetrySchedule {
    retries: u32,
    max_wait: Duration,
    failed: u32,
    waited: Duration,
    random: SplitMix64,
}

impl RetrySchedule {
    /// Creates the schedule of one request.
    #[must_use]
    pub fn new(retries: u32, max_wait: Duration, seed: u64) -> Self {
        Self {
            retries,
            max_wait,
            failed: 0,
            waited: Duration::ZERO,
            random: SplitMix64::new(seed),
        }
    }

    /// Decides after a failed attempt. `requested` is the wait that the provider requests, `lost`
    /// the time lost in a timeout.
    pub fn after(&mut self, requested: Option<Duration>, lost: Duration) -> RetryDecision {
        self.failed = self.failed.saturating_add(1);
        self.waited = self.waited.saturating_add(lost);
        if self.failed > self.retries {
            return RetryDecision::RetriesExhausted;
        }
        let left = self.max_wait.saturating_sub(self.waited);
        let wait = match requested {
            Some(requested) if requested > left => {
                return RetryDecision::RetryAfterTooLong(requested);
            }
            Some(requested) => {
                requested
                    + self
                        .random_up_to((requested / 10).min(MAX_ADDITION))
                        .min(left - requested)
            }
            None => {
                let doubled = FIRST_BOUND.saturating_mul(2_u32.saturating_pow(self.failed - 1));
                self.random_up_to(doubled.min(MAX_BOUND))
            }
        };
        if left.is_zero() || wait > left {
            return RetryDecision::WaitExhausted;
        }
        self.waited += wait;
        RetryDecision::Wait(wait)
    }

    fn random_up_to(&mut self, max: Duration) -> Duration {
        let max = u64::try_from(max.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros(self.random.below(max + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn waits(
        schedule: &mut RetrySchedule,
        requested: Option<Duration>,
    ) -> (Vec<Duration>, RetryDecision) {
        let mut waits = Vec::new();
        loop {
            match schedule.after(requested, Duration::ZERO) {
                RetryDecision::Wait(wait) => waits.push(wait),
                end => return (waits, end),
            }
        }
    }

    #[test]
    fn the_waits_follow_from_the_seed() {
        let of = |seed| waits(&mut RetrySchedule::new(8, MAX_WAIT, seed), None).0;
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn the_bound_of_a_wait_doubles_up_to_ten_seconds() {
        let mut longest = [Duration::ZERO; 8];
        for seed in 0..2000 {
            let (waits, end) = waits(&mut RetrySchedule::new(8, MAX_WAIT, seed), None);
            assert_eq!(
                (waits.len(), end),
                (8, RetryDecision::RetriesExhausted),
                "default retries fit into the default wait"
            );
            for (longest, wait) in longest.iter_mut().zip(waits) {
                *longest = wait.max(*longest);
            }
        }
        for (step, longest) in longest.iter().enumerate() {
            let bound = (FIRST_BOUND * 2_u32.pow(step as u32)).min(MAX_BOUND);
            assert!(
                *longest <= bound && *longest > bound * 9 / 10,
                "{step}: {longest:?}"
            );
        }
    }

    #[test]
    fn a_requested_wait_is_kept_or_too_long() {
        let mut schedule = RetrySchedule::new(8, MAX_WAIT, 7);
        let RetryDecision::Wait(wait) = schedule.after(Some(SECOND * 20), Duration::ZERO) else {
            panic!()
        };
        assert!(wait >= SECOND * 20 && wait <= SECOND * 21);
        assert_eq!(
            schedule.after(Some(SECOND * 41), Duration::ZERO),
            RetryDecision::RetryAfterTooLong(SECOND * 41)
        );
        // A requested wait of zero is kept.
        assert_eq!(
            RetrySchedule::new(1, MAX_WAIT, 7).after(Some(Duration::ZERO), Duration::ZERO),
            RetryDecision::Wait(Duration::ZERO)
        );
    }

    #[test]
    fn time_lost_in_timeouts_counts() {
        let mut schedule = RetrySchedule::new(8, MAX_WAIT, 7);
        assert!(matches!(
            schedule.after(None, SECOND * 25),
            RetryDecision::Wait(_)
        ));
        assert!(matches!(
            schedule.after(None, SECOND * 25),
            RetryDecision::Wait(_)
        ));
        assert_eq!(
            schedule.after(None, SECOND * 25),
            RetryDecision::WaitExhausted
        );
    }

    #[test]
    fn zero_retries_are_one_attempt() {
        assert_eq!(
            RetrySchedule::new(0, MAX_WAIT, 7).after(None, Duration::ZERO),
            RetryDecision::RetriesExhausted
        );
    }

    proptest! {
        #[test]
        fn neither_limit_is_ever_exceeded(
            retries in 0_u32..40,
            most in 0_u64..100_000,
            seed: u64,
            failures in prop::collection::vec(
                (prop::option::of(0_u64..90_000), 0_u64..20_000),
                0..60,
            ),
        ) {
            let most = Duration::from_millis(most);
            let mut schedule = RetrySchedule::new(retries, most, seed);
            let (mut waited, mut lost_in_all, mut granted) = (Duration::ZERO, Duration::ZERO, 0);
            for (requested, lost) in failures {
                let (requested, lost) = (
                    requested.map(Duration::from_millis),
                    Duration::from_millis(lost),
                );
                lost_in_all += lost;
                match schedule.after(requested, lost) {
                    RetryDecision::Wait(wait) => {
                        granted += 1;
                        waited += wait;
                        prop_assert!(requested.is_none_or(|requested| wait >= requested));
                        prop_assert!(waited + lost_in_all <= most);
                    }
                    _ => break,
                }
            }
            prop_assert!(granted <= retries);
        }
    }
}
