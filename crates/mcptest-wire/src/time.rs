//! Deadlines, grace periods, and durations as messages show them.

use std::time::Duration;

use tokio::time::Instant;

/// The time that a server gets to exit by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grace {
    /// After its stdin was closed.
    pub(crate) eof: Duration,
    /// After SIGTERM.
    pub(crate) term: Duration,
}

impl Grace {
    /// For a server that worked. The slowest of 64 real ones needed 2.4 s on a busy machine, and
    /// exited immediately on SIGTERM.
    pub(crate) const NORMAL: Self = Self {
        eof: Duration::from_secs(2),
        term: Duration::from_secs(2),
    };
    /// For a server that failed already.
    pub(crate) const SHORT: Self = Self {
        eof: Duration::from_millis(100),
        term: Duration::from_millis(500),
    };
}

/// The instant after a duration from now, capped at ten years so that it cannot overflow.
pub(crate) fn after(duration: Duration) -> Instant {
    const MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
    Instant::now() + duration.min(MAX)
}

/// A duration for messages: "30s", "2.5s", "250ms".
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = (duration.as_secs_f64() * 1000.0).round();
    if millis < 1000.0 {
        return format!("{millis:.0}ms");
    }
    let seconds = format!("{:.1}", millis / 1000.0);
    format!("{}s", seconds.strip_suffix(".0").unwrap_or(&seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (ms, shown) in [(250, "250ms"), (999, "999ms"), (1000, "1s"), (2500, "2.5s")] {
            assert_eq!(show_duration(Duration::from_millis(ms)), shown);
        }
    }
}
