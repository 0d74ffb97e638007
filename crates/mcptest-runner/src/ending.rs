//! What ends a run before it is through: the user, or the clock.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::limits::{Deadline, SuiteLimits};

/// How long a call under way is waited for when its test is broken off: it may be making what
/// teardown removes.
pub(crate) const CALL_GRACE: Duration = Duration::from_secs(2);

/// How long teardown may take when its test is broken off.
pub(crate) const TEARDOWN_GRACE: Duration = Duration::from_secs(5);

/// Why a run ends early.
#[derive(Debug, Clone)]
pub(crate) enum End<'a> {
    /// The user wants an end: nothing is left of the run.
    Asked,
    /// The suite's time is over.
    TimeIsOver(&'a Deadline),
}

/// Whatever may end a run early.
#[derive(Clone, Copy)]
pub(crate) struct Ending<'a> {
    pub limits: &'a SuiteLimits,
    pub cancel: &'a CancellationToken,
}

impl<'a> Ending<'a> {
    /// Comes back when the run is to end. Once it has, it does so at once.
    pub async fn come(self) -> End<'a> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => End::Asked,
            deadline = self.time_is_over() => End::TimeIsOver(deadline),
        }
    }

    /// Comes back when the suite's time is over, if it has a limit.
    async fn time_is_over(self) -> &'a Deadline {
        match &self.limits.deadline {
            Some(deadline) => {
                tokio::time::sleep_until(deadline.at).await;
                self.limits.time_is_over(deadline);
                deadline
            }
            None => std::future::pending().await,
        }
    }
}
