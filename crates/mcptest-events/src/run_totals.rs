//! Sums over the runs of a test and a model.

use mcptest_trace::verdict::{ErrorKind, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sums over the runs of a test and a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RunTotals {
    /// The number of runs.
    pub runs: u64,
    /// Runs that passed.
    pub passed: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs without evidence.
    pub no_evidence: u64,
    /// Runs that could not be completed.
    pub errors: u64,
    /// Those of them that a limit on cost or time ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub capped: u64,
    /// Tool calls.
    pub calls: u64,
    /// Tool results that are errors.
    pub failed_calls: u64,
    /// Tokens, over the runs that report them.
    pub tokens: u64,
    /// The number of runs that report tokens.
    pub runs_with_tokens: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RunTotals {
    /// The worst verdict of a run; `None` without runs.
    #[must_use]
    pub fn worst(&self) -> Option<Verdict> {
        let counts = [
            (self.errors, Verdict::Error),
            (self.failed, Verdict::Fail),
            (self.no_evidence, Verdict::NoEvidence),
            (self.passed, Verdict::Pass),
        ];
        let found = counts.into_iter().find(|(count, _)| *count > 0);
        found.map(|(_, verdict)| verdict)
    }

    /// Adds a run. `calls` are all tool calls, and those whose result is an error.
    pub fn add(
        &mut self,
        verdict: Verdict,
        error: Option<ErrorKind>,
        calls: (u32, u32),
        tokens: Option<u64>,
    ) {
        self.runs += 1;
        *match verdict {
            Verdict::Pass => &mut self.passed,
            Verdict::Fail => &mut self.failed,
            Verdict::NoEvidence => &mut self.no_evidence,
            Verdict::Error => &mut self.errors,
        } += 1;
        self.capped += u64::from(error == Some(ErrorKind::Budget));
        self.calls = self.calls.saturating_add(calls.0.into());
        self.failed_calls = self.failed_calls.saturating_add(calls.1.into());
        self.tokens = self.tokens.saturating_add(tokens.unwrap_or(0));
        self.runs_with_tokens += u64::from(tokens.is_some());
    }

    /// Adds the runs of other totals.
    pub fn merge(&mut self, other: Self) {
        let sum = |one: &mut u64, other: u64| *one = one.saturating_add(other);
        sum(&mut self.runs, other.runs);
        sum(&mut self.passed, other.passed);
        sum(&mut self.failed, other.failed);
        sum(&mut self.no_evidence, other.no_evidence);
        sum(&mut self.errors, other.errors);
        sum(&mut self.capped, other.capped);
        sum(&mut self.calls, other.calls);
        sum(&mut self.failed_calls, other.failed_calls);
        sum(&mut self.tokens, other.tokens);
        sum(&mut self.runs_with_tokens, other.runs_with_tokens);
    }
}
