//! The number of runs that a case starts next, and the point at which no further run is needed.
//!
//! A test that stops when it is decided makes its runs in batches. After each batch its gates are
//! asked if the verdict can still change; if so, how many further runs are needed at least. The
//! next batch has this size, so no run is wasted and the report does not depend on how many runs
//! are made in parallel.

use mcptest_suite::suite::AgentTest;

use crate::verdicts::CaseJudge;

/// The batches of one case.
pub(crate) struct RunBatches {
    /// True if the case may stop before its last run.
    stops: bool,
    max: u32,
}

impl RunBatches {
    /// The batches of a test that makes at most `max` runs.
    pub fn of(test: &AgentTest, max: u32) -> Self {
        let decides = test.gates.iter().all(|gate| gate.decides_early());
        Self {
            stops: test.stops_when_decided && decides,
            max,
        }
    }

    /// The number of runs to start next, after `made` runs; 0 when the case is decided.
    pub fn next(&self, made: u32, judge: &mut CaseJudge<'_>) -> u32 {
        let remaining = self.max.saturating_sub(made);
        if !self.stops {
            return remaining;
        }
        let remaining = u64::from(remaining);
        // A run that fails decides. After runs that pass, or that end with an error, a later one
        // may still fail.
        let mut needed = u64::from(made == 0 || (!judge.has_failed() && judge.run_can_fail()));
        for gate in judge.gates() {
            if remaining > 0 && gate.decided(remaining).is_none() {
                needed = needed.max(gate.least_further_runs(remaining));
            }
        }
        u32::try_from(needed.min(remaining)).unwrap_or(u32::MAX)
    }
}
