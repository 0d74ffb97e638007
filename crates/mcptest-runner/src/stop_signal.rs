//! The reasons to end a run before it is complete: the user, or a time limit.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::budget::{Deadline, SuiteBudget};

/// The time that a call in flight gets when its test is stopped: it may be creating something that
/// teardown removes.
pub(crate) const CALL_GRACE: Duration = Duration::from_secs(2);

/// The time that teardown gets when its test is stopped.
pub(crate) const TEARDOWN_GRACE: Duration = Duration::from_secs(5);

/// The reason why a run ends early.
#[derive(Debug, Clone)]
pub(crate) enum StopReason<'a> {
    /// The user interrupted the invocation, or `--fail-fast` keeps the run from starting: the run
    /// leaves no result.
    Interrupted,
    /// The time limit of the suite or the invocation is reached.
    Deadline(&'a Deadline),
}

/// The signals that end a run early.
#[derive(Clone, Copy)]
pub(crate) struct StopSignal<'a> {
    pub budget: &'a SuiteBudget,
    pub cancel: &'a CancellationToken,
}

impl<'a> StopSignal<'a> {
    /// Returns when the run must end; immediately from then on.
    pub async fn received(self) -> StopReason<'a> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => StopReason::Interrupted,
            deadline = self.deadline_passed() => StopReason::Deadline(deadline),
        }
    }

    /// Returns when the time limit is reached, if there is one.
    async fn deadline_passed(self) -> &'a Deadline {
        match &self.budget.deadline {
            Some(deadline) => {
                tokio::time::sleep_until(deadline.at).await;
                self.budget.stop_at(deadline);
                deadline
            }
            None => std::future::pending().await,
        }
    }
}
