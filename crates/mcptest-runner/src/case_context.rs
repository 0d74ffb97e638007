//! The state that all runs of one case share.

use std::sync::Arc;

use mcptest_suite::suite::Test;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::fail_fast::FailFast;
use crate::plan::Case;
use crate::run_context::RunContext;

/// A case that is being run.
pub(crate) struct CaseContext {
    pub run: Arc<RunContext>,
    /// Index of the case in the suite.
    pub index: usize,
    /// The cases of the suite.
    pub cases: Arc<[Case]>,
    pub permits: Arc<Semaphore>,
    pub fail_fast: Arc<FailFast>,
    pub cancel: CancellationToken,
    /// True if no case of the suite has several runs.
    pub single: bool,
}

impl CaseContext {
    /// The case.
    pub fn case(&self) -> &Case {
        &self.cases[self.index]
    }

    /// The test of the case.
    pub fn test(&self) -> &Test {
        &self.run.suite.tests[self.case().test]
    }

    /// The index of the case in the plan of the invocation.
    pub fn planned(&self) -> usize {
        self.run.planned(self.index)
    }
}

/// Stops the suite when the task that holds it panics. It does so immediately, before any other
/// task uses a server again: the caller's panic hook has killed them all, and no other test must be
/// blamed for that.
pub(crate) struct StopOnPanic(pub CancellationToken);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}
