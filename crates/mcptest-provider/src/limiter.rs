//! The number of requests in flight to a provider.
//!
//! Providers do not announce how many concurrent requests they accept, so the limiter adapts, as
//! TCP does: the window grows by one after as many answers as it is wide, and is halved when the
//! provider refuses a request for now. Requests that were in flight when it was halved do not halve
//! it again: they report the same congestion. A refusal with a wait pauses all requests until then.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{TARGET, millis};

/// The default window at the start.
pub const INITIAL_WINDOW: u32 = 32;

/// The default limit of the window.
pub const MAX_WINDOW: u32 = 64;

/// The answer to an attempt to send a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admission {
    Admitted,
    /// The window is full.
    Full,
    /// The provider requested a pause until this time.
    PausedUntil(Instant),
}

/// The window and the number of requests in it.
#[derive(Debug)]
struct Window {
    size: u32,
    max: u32,
    in_flight: u32,
    /// Answers since the size last changed.
    answers: u32,
    /// The number of halvings so far.
    halvings: u64,
    paused_until: Option<Instant>,
}

impl Window {
    fn new(max: u32) -> Self {
        let max = max.max(1);
        Self {
            size: INITIAL_WINDOW.min(max),
            max,
            in_flight: 0,
            answers: 0,
            halvings: 0,
            paused_until: None,
        }
    }

    fn admit(&mut self, now: Instant) -> Admission {
        if let Some(until) = self.paused_until {
            if now < until {
                return Admission::PausedUntil(until);
            }
            self.paused_until = None;
        }
        if self.in_flight >= self.size {
            return Admission::Full;
        }
        self.in_flight += 1;
        Admission::Admitted
    }

    fn leave(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Counts an answer. Answers count only if at least half of the window is used: otherwise they
    /// say nothing about a larger one.
    fn answered(&mut self) {
        if self.in_flight * 2 >= self.size {
            self.answers += 1;
        }
        self.leave();
        if self.answers >= self.size && self.size < self.max {
            self.size += 1;
            self.answers = 0;
        }
    }

    /// Counts a refusal. `halvings_at_start` is the number of halvings when the request was sent.
    /// Returns true if a pause starts.
    fn refused(&mut self, halvings_at_start: u64, now: Instant, pause: Option<Duration>) -> bool {
        self.leave();
        if halvings_at_start == self.halvings {
            self.halvings += 1;
            self.size = (self.size / 2).max(1);
            self.answers = 0;
        }
        let is_paused = self.paused_until.is_some_and(|until| now < until);
        self.paused_until = self.paused_until.max(pause.map(|pause| now + pause));
        pause.is_some() && !is_paused
    }
}

/// The limiter of one provider: every request needs a [`Permit`].
#[derive(Debug)]
pub(crate) struct Limiter {
    /// The provider's name, for events.
    provider: String,
    window: Mutex<Window>,
    changed: Notify,
}

/// The provider requested a longer pause than a request waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PausedFor(pub Duration);

impl Limiter {
    pub(crate) fn new(provider: &str, max: u32) -> Self {
        Self {
            provider: provider.to_owned(),
            window: Mutex::new(Window::new(max)),
            changed: Notify::new(),
        }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        // A panic in another task does not invalidate the counts.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may be sent. A pause longer than `max_wait` is an error.
    pub(crate) async fn acquire(&self, max_wait: Duration) -> Result<Permit<'_>, PausedFor> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Enabled before the check, so that no change between check and wait is missed.
            changed.as_mut().enable();
            let now = Instant::now();
            let (admission, size) = {
                let mut window = self.window();
                match window.admit(now) {
                    Admission::Admitted => {
                        return Ok(Permit {
                            limiter: self,
                            halvings_at_start: window.halvings,
                            released: false,
                        });
                    }
                    other => (other, window.size),
                }
            };
            match admission {
                Admission::PausedUntil(until) if until - now > max_wait => {
                    return Err(PausedFor(until - now));
                }
                Admission::PausedUntil(until) => {
                    tracing::info!(
                        target: TARGET,
                        provider = self.provider,
                        wait_ms = millis(until - now),
                        "rate limit: waiting for the pause to end"
                    );
                    tokio::time::sleep_until(until).await;
                }
                Admission::Full | Admission::Admitted => {
                    tracing::debug!(
                        target: TARGET,
                        provider = self.provider,
                        window = size,
                        "waiting for another request to end"
                    );
                    changed.await;
                }
            }
        }
    }
}

/// The permission to have one request in flight. Dropping it only ends the request; it is neither
/// an answer nor a refusal.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    limiter: &'a Limiter,
    halvings_at_start: u64,
    released: bool,
}

impl Permit<'_> {
    /// Ends the request with an answer.
    pub(crate) fn answered(mut self) {
        self.released = true;
        self.limiter.window().answered();
        self.limiter.changed.notify_waiters();
    }

    /// Ends the request with a refusal. Returns true if a new pause starts.
    pub(crate) fn refused(mut self, pause: Option<Duration>) -> bool {
        self.released = true;
        let starts = self
            .limiter
            .window()
            .refused(self.halvings_at_start, Instant::now(), pause);
        self.limiter.changed.notify_waiters();
        starts
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if !self.released {
            self.limiter.window().leave();
            self.limiter.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;

    use super::*;

    fn filled(window: &mut Window, now: Instant) -> u32 {
        let mut entered = 0;
        while window.admit(now) == Admission::Admitted {
            entered += 1;
        }
        entered
    }

    #[test]
    fn the_window_starts_at_32_or_at_its_limit() {
        let now = Instant::now();
        assert_eq!(filled(&mut Window::new(64), now), 32);
        assert_eq!(filled(&mut Window::new(4), now), 4);
        assert_eq!(filled(&mut Window::new(0), now), 1);
    }

    #[test]
    fn refusals_of_one_round_halve_the_window_once() {
        let now = Instant::now();
        let mut window = Window::new(64);
        filled(&mut window, now);
        for _ in 0..32 {
            window.refused(0, now, None);
        }
        assert_eq!((window.size, window.in_flight), (16, 0));
        // Refusals of the next round halve it once more.
        filled(&mut window, now);
        window.refused(1, now, None);
        window.refused(1, now, None);
        assert_eq!(window.size, 8);
        for round in 2..20 {
            window.refused(round, now, None);
        }
        assert_eq!(window.size, 1, "never zero");
    }

    #[test]
    fn the_window_grows_by_one_per_full_round_up_to_its_limit() {
        let now = Instant::now();
        let mut window = Window::new(34);
        for expected in [33, 34, 34] {
            // A full round: each answer admits the next request.
            filled(&mut window, now);
            let round = window.size;
            for _ in 0..round {
                window.answered();
                window.admit(now);
            }
            assert_eq!(window.size, expected);
        }
        // Answers in a mostly empty window do not enlarge it.
        let mut idle = Window::new(64);
        for _ in 0..1000 {
            idle.admit(now);
            idle.answered();
        }
        assert_eq!(idle.size, INITIAL_WINDOW);
    }

    #[test]
    fn a_pause_holds_all_requests_until_it_ends() {
        let now = Instant::now();
        let mut window = Window::new(64);
        window.admit(now);
        window.admit(now);
        assert!(window.refused(0, now, Some(Duration::from_secs(5))));
        assert!(
            !window.refused(0, now, Some(Duration::from_secs(2))),
            "the same pause"
        );
        let until = now + Duration::from_secs(5);
        assert_eq!(window.admit(now), Admission::PausedUntil(until));
        assert_eq!(window.admit(until), Admission::Admitted);
    }

    proptest! {
        #[test]
        fn the_width_stays_within_its_bounds(
            max in 1_u32..200,
            events in prop::collection::vec(0_u8..4, 0..400),
        ) {
            let now = Instant::now();
            let mut window = Window::new(max);
            let mut in_flight: Vec<u64> = Vec::new();
            for event in events {
                match event {
                    0 | 1 => {
                        if window.admit(now) == Admission::Admitted {
                            in_flight.push(window.halvings);
                        }
                    }
                    2 => if in_flight.pop().is_some() { window.answered() },
                    _ => if let Some(entered) = in_flight.pop() { window.refused(
                        entered,
                        now,
                        None,
                    ); },
                }
                prop_assert!((1..=max).contains(&window.size));
                prop_assert_eq!(window.in_flight as usize, in_flight.len());
                prop_assert!(window.in_flight <= max);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_waiting_request_is_admitted_in_the_end() {
        let limiter = Arc::new(Limiter::new("acme", 4));
        let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200 {
            let (limiter, inside, most) = (limiter.clone(), inside.clone(), most.clone());
            tasks.spawn(async move {
                let permit = limiter.acquire(Duration::from_secs(60)).await.unwrap();
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                match number % 3 {
                    0 => permit.answered(),
                    1 => drop(permit.refused(Some(Duration::from_millis(50)))),
                    _ => drop(permit),
                }
            });
        }
        while let Some(joined) = tasks.join_next().await {
            joined.unwrap();
        }
        assert!((1..=4).contains(&most.load(Ordering::SeqCst)));
        assert_eq!(limiter.window().in_flight, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_longer_than_max_wait_is_an_error_at_once() {
        let limiter = Limiter::new("acme", 4);
        limiter
            .acquire(Duration::ZERO)
            .await
            .unwrap()
            .refused(Some(Duration::from_secs(90)));
        let began = Instant::now();
        let refused = limiter.acquire(Duration::from_secs(60)).await.unwrap_err();
        assert_eq!(
            (refused, began.elapsed()),
            (PausedFor(Duration::from_secs(90)), Duration::ZERO)
        );
        tokio::time::advance(Duration::from_secs(31)).await;
        limiter.acquire(Duration::from_secs(60)).await.unwrap();
    }
}
