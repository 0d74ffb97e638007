//! How many requests a provider gets at once.
//!
//! Nobody tells what a provider bears, so it is found out, as TCP does: the width grows by one
//! after as many answers as it is wide, and is halved when the provider refuses for now. Requests
//! that were under way when it was halved do not halve it again: they are the same news. A refusal
//! that names a time holds all requests until then.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The width at the start, and the widest, unless the suite says otherwise.
pub const START: u32 = 32;
/// See [`START`].
pub const WIDEST: u32 = 64;

/// Whether a request may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Enter,
    /// As many as allowed are under way.
    Full,
    /// The provider asked for a pause until then.
    PausedUntil(Instant),
}

/// The width and what is under way.
#[derive(Debug)]
struct Width {
    now: u32,
    widest: u32,
    under_way: u32,
    /// Answers since the width last changed.
    answers: u32,
    /// How often it was halved.
    halvings: u64,
    paused_until: Option<Instant>,
}

impl Width {
    fn new(widest: u32) -> Self {
        let widest = widest.max(1);
        Self {
            now: START.min(widest),
            widest,
            under_way: 0,
            answers: 0,
            halvings: 0,
            paused_until: None,
        }
    }

    fn enter(&mut self, now: Instant) -> Entry {
        if let Some(until) = self.paused_until {
            if now < until {
                return Entry::PausedUntil(until);
            }
            self.paused_until = None;
        }
        if self.under_way >= self.now {
            return Entry::Full;
        }
        self.under_way += 1;
        Entry::Enter
    }

    fn leave(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// An answer came. Only a width that is used can be known to be too small.
    fn answered(&mut self) {
        if self.under_way * 2 >= self.now {
            self.answers += 1;
        }
        self.leave();
        if self.answers >= self.now && self.now < self.widest {
            self.now += 1;
            self.answers = 0;
        }
    }

    /// The provider refused for now. `entered` is the count of halvings when the request went out.
    /// Says whether a pause begins.
    fn refused(&mut self, entered: u64, now: Instant, pause: Option<Duration>) -> bool {
        self.leave();
        if entered == self.halvings {
            self.halvings += 1;
            self.now = (self.now / 2).max(1);
            self.answers = 0;
        }
        let is_paused = self.paused_until.is_some_and(|until| now < until);
        self.paused_until = self.paused_until.max(pause.map(|pause| now + pause));
        pause.is_some() && !is_paused
    }
}

/// Where the requests of one provider go through.
#[derive(Debug)]
pub(crate) struct Limits {
    width: Mutex<Width>,
    changed: Notify,
}

/// The provider asked for a longer pause than anybody here waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PausedFor(pub Duration);

impl Limits {
    pub(crate) fn new(widest: u32) -> Self {
        Self {
            width: Mutex::new(Width::new(widest)),
            changed: Notify::new(),
        }
    }

    fn width(&self) -> MutexGuard<'_, Width> {
        // A panic elsewhere does not make the counts wrong.
        self.width.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may go out. A pause that is longer than `patience` is not waited for.
    pub(crate) async fn enter(&self, patience: Duration) -> Result<Place<'_>, PausedFor> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let now = Instant::now();
            let entry = {
                let mut width = self.width();
                match width.enter(now) {
                    Entry::Enter => {
                        return Ok(Place {
                            limits: self,
                            entered: width.halvings,
                            left: false,
                        });
                    }
                    other => other,
                }
            };
            match entry {
                Entry::PausedUntil(until) if until - now > patience => {
                    return Err(PausedFor(until - now));
                }
                Entry::PausedUntil(until) => tokio::time::sleep_until(until).await,
                Entry::Full | Entry::Enter => changed.await,
            }
        }
    }
}

/// A request under way. Dropped without news, it only leaves.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    limits: &'a Limits,
    entered: u64,
    left: bool,
}

impl Place<'_> {
    pub(crate) fn answered(mut self) {
        self.left = true;
        self.limits.width().answered();
        self.limits.changed.notify_waiters();
    }

    /// Says whether a pause begins that was not there before.
    pub(crate) fn refused(mut self, pause: Option<Duration>) -> bool {
        self.left = true;
        let begins = self
            .limits
            .width()
            .refused(self.entered, Instant::now(), pause);
        self.limits.changed.notify_waiters();
        begins
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.left {
            self.limits.width().leave();
            self.limits.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;

    use super::*;

    fn filled(width: &mut Width, now: Instant) -> u32 {
        let mut entered = 0;
        while width.enter(now) == Entry::Enter {
            entered += 1;
        }
        entered
    }

    #[test]
    fn it_starts_at_32_or_at_its_bound() {
        let now = Instant::now();
        assert_eq!(filled(&mut Width::new(64), now), 32);
        assert_eq!(filled(&mut Width::new(4), now), 4);
        assert_eq!(filled(&mut Width::new(0), now), 1);
    }

    #[test]
    fn refusals_of_one_round_halve_once() {
        let now = Instant::now();
        let mut width = Width::new(64);
        filled(&mut width, now);
        for _ in 0..32 {
            width.refused(0, now, None);
        }
        assert_eq!((width.now, width.under_way), (16, 0));
        // Of the next round: again, once.
        filled(&mut width, now);
        width.refused(1, now, None);
        width.refused(1, now, None);
        assert_eq!(width.now, 8);
        for round in 2..20 {
            width.refused(round, now, None);
        }
        assert_eq!(width.now, 1, "never nothing");
    }

    #[test]
    fn it_grows_by_one_for_a_full_round_and_never_above_its_bound() {
        let now = Instant::now();
        let mut width = Width::new(34);
        for expected in [33, 34, 34] {
            // A full round: each answer makes place for the next request.
            filled(&mut width, now);
            let round = width.now;
            for _ in 0..round {
                width.answered();
                width.enter(now);
            }
            assert_eq!(width.now, expected);
        }
        // Answers to a few requests say nothing about many.
        let mut idle = Width::new(64);
        for _ in 0..1000 {
            idle.enter(now);
            idle.answered();
        }
        assert_eq!(idle.now, START);
    }

    #[test]
    fn a_pause_holds_everything_until_its_time() {
        let now = Instant::now();
        let mut width = Width::new(64);
        width.enter(now);
        width.enter(now);
        assert!(width.refused(0, now, Some(Duration::from_secs(5))));
        assert!(
            !width.refused(0, now, Some(Duration::from_secs(2))),
            "the same pause"
        );
        let until = now + Duration::from_secs(5);
        assert_eq!(width.enter(now), Entry::PausedUntil(until));
        assert_eq!(width.enter(until), Entry::Enter);
    }

    proptest! {
        #[test]
        fn the_width_stays_within_its_bounds(widest in 1_u32..200, news in prop::collection::vec(0_u8..4, 0..400)) {
            let now = Instant::now();
            let mut width = Width::new(widest);
            let mut under_way: Vec<u64> = Vec::new();
            for event in news {
                match event {
                    0 | 1 => {
                        if width.enter(now) == Entry::Enter {
                            under_way.push(width.halvings);
                        }
                    }
                    2 => if under_way.pop().is_some() { width.answered() },
                    _ => if let Some(entered) = under_way.pop() { width.refused(entered, now, None); },
                }
                prop_assert!((1..=widest).contains(&width.now));
                prop_assert_eq!(width.under_way as usize, under_way.len());
                prop_assert!(width.under_way <= widest);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_pass_through_and_none_is_forgotten() {
        let limits = Arc::new(Limits::new(4));
        let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200 {
            let (limits, inside, most) = (limits.clone(), inside.clone(), most.clone());
            tasks.spawn(async move {
                let place = limits.enter(Duration::from_secs(60)).await.unwrap();
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                match number % 3 {
                    0 => place.answered(),
                    1 => drop(place.refused(Some(Duration::from_millis(50)))),
                    _ => drop(place),
                }
            });
        }
        while let Some(joined) = tasks.join_next().await {
            joined.unwrap();
        }
        assert!((1..=4).contains(&most.load(Ordering::SeqCst)));
        assert_eq!(limits.width().under_way, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_beyond_all_patience_is_told_at_once() {
        let limits = Limits::new(4);
        limits
            .enter(Duration::ZERO)
            .await
            .unwrap()
            .refused(Some(Duration::from_secs(90)));
        let began = Instant::now();
        let refused = limits.enter(Duration::from_secs(60)).await.unwrap_err();
        assert_eq!(
            (refused, began.elapsed()),
            (PausedFor(Duration::from_secs(90)), Duration::ZERO)
        );
        tokio::time::advance(Duration::from_secs(31)).await;
        limits.enter(Duration::from_secs(60)).await.unwrap();
    }
}
