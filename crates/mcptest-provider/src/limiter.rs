//! The number of requests in flight to a provider.
//!
//! Providers do not announce how many concurrent requests they accept, so the limiter adapts, as
//! TCP does. Until the first refusal the window doubles with each round of answers, and also grows
//! by a tenth whenever it has been full for [`GROWTH_TIME`], which doubles it in 100 ms. A refusal
//! comes immediately, but an answer may take long, so a provider that has refused nothing by then
//! is taken to accept more. Small steps keep new connections from arriving all at the same time. A
//! refusal halves the window; up to half of the size that was refused it doubles again with each
//! round of answers, and beyond that it grows by one per round. Requests that were in flight when
//! it was halved do not halve it again: they report the same congestion. A refusal with a wait
//! pauses all requests until then.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{TARGET, millis};

/// The default window at the start.
pub const INITIAL_WINDOW: u32 = 32;

/// The default limit of the window.
pub const MAX_WINDOW: u32 = 64;

/// The time after which a full window grows by a tenth, if nothing has been refused yet.
pub const GROWTH_TIME: Duration = Duration::from_millis(13);

/// The longest time that a process which was held up makes up for in one go.
const MAX_LATE: Duration = Duration::from_millis(100);

/// The answer to an attempt to send a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admission {
    Admitted(RequestStart),
    /// The window is full. It may grow at this time.
    Full(Option<Instant>),
    /// The provider requested a pause until this time.
    PausedUntil(Instant),
}

/// The state of the window when a request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RequestStart {
    /// The number of halvings until then.
    halvings: u64,
    /// The number of requests in flight, with this one.
    in_flight: u32,
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
    /// Below this size the window doubles with each round of answers.
    threshold: u32,
    /// The largest number of requests in flight of which one was answered.
    confirmed: u32,
    /// The time since which the window is full, or last grew because it was.
    full_since: Option<Instant>,
    paused_until: Option<Instant>,
}

impl Window {
    fn new(max: u32) -> Self {
        let max = max.max(1);
        let size = INITIAL_WINDOW.min(max);
        Self {
            size,
            max,
            in_flight: 0,
            answers: 0,
            halvings: 0,
            threshold: max,
            confirmed: size,
            full_since: None,
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
        if let Some(time) = self.grows_at().filter(|time| *time <= now)
            && self.in_flight >= self.size
        {
            self.size += (self.size / 10).clamp(1, self.max - self.size);
            self.answers = 0;
            self.full_since = Some(now.checked_sub(MAX_LATE).map_or(time, |old| time.max(old)));
        }
        if self.in_flight >= self.size {
            self.full_since.get_or_insert(now);
            return Admission::Full(self.grows_at());
        }
        self.in_flight += 1;
        if self.in_flight >= self.size {
            self.full_since.get_or_insert(now);
        }
        Admission::Admitted(RequestStart {
            halvings: self.halvings,
            in_flight: self.in_flight,
        })
    }

    /// The time at which a window that stays full grows.
    fn grows_at(&self) -> Option<Instant> {
        let may_grow = self.halvings == 0 && self.size < self.max;
        let since = self.full_since.filter(|_| may_grow)?;
        Some(since + GROWTH_TIME)
    }

    /// The number of requests that can be sent now.
    fn free(&self) -> u32 {
        self.size.saturating_sub(self.in_flight)
    }

    fn leave(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight.saturating_mul(2) < self.size {
            self.full_since = None;
        }
    }

    /// Counts an answer. Answers count only if at least half of the window is used: otherwise they
    /// say nothing about a larger one.
    fn answered(&mut self, start: RequestStart) {
        if self.in_flight.saturating_mul(2) >= self.size {
            self.answers += 1;
        }
        self.confirmed = self.confirmed.max(start.in_flight);
        self.leave();
        let needed = if self.size < self.threshold {
            1
        } else {
            self.size
        };
        if self.answers >= needed && self.size < self.max {
            self.size += 1;
            self.answers = 0;
        }
    }

    /// Counts a refusal. Returns true if a pause starts.
    fn refused(&mut self, start: RequestStart, now: Instant, pause: Option<Duration>) -> bool {
        self.leave();
        if start.halvings == self.halvings {
            self.threshold = (self.size / 2).max(1);
            // No answer may have come yet for what was added by time alone.
            self.size = (self.size.min(self.confirmed) / 2).max(1);
            self.confirmed = self.size;
            self.halvings += 1;
            self.answers = 0;
            self.full_since = None;
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

    /// Changes the window, and wakes a waiting request for each one that can now be sent.
    fn change<T>(&self, change: impl FnOnce(&mut Window) -> T) -> T {
        let (result, freed) = {
            let mut window = self.window();
            let before = window.free();
            let result = change(&mut window);
            (result, window.free().saturating_sub(before))
        };
        for _ in 0..freed {
            self.changed.notify_one();
        }
        result
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
                (window.admit(now), window.size)
            };
            match admission {
                Admission::Admitted(start) => {
                    return Ok(Permit {
                        limiter: self,
                        start,
                        released: false,
                    });
                }
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
                Admission::Full(grows_at) => {
                    tracing::debug!(
                        target: TARGET,
                        provider = self.provider,
                        window = size,
                        "waiting for another request to end"
                    );
                    match grows_at {
                        Some(time) => {
                            // Every waiting request wakes at this time: the first one enlarges the
                            // window, and then as many as fit are admitted.
                            let _ = tokio::time::timeout_at(time, changed).await;
                        }
                        None => changed.await,
                    }
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
    start: RequestStart,
    released: bool,
}

impl Permit<'_> {
    /// Ends the request with an answer.
    pub(crate) fn answered(mut self) {
        self.released = true;
        self.limiter.change(|window| window.answered(self.start));
    }

    /// Ends the request with a refusal. Returns true if a new pause starts.
    pub(crate) fn refused(mut self, pause: Option<Duration>) -> bool {
        self.released = true;
        let now = Instant::now();
        let starts = self
            .limiter
            .change(|window| window.refused(self.start, now, pause));
        // Every waiting request must learn of a pause: no other request may be left to wake it.
        self.limiter.changed.notify_waiters();
        starts
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if !self.released {
            self.limiter.change(Window::leave);
        }
    }
}

#[cfg(test)]
mod tests;
