//! The observed runs of the gate.

use mcptest_gate_api::Accumulator;
use mcptest_gate_api::first_runs::{FirstRuns, earliest};
use mcptest_gate_api::run_list::RunList;
use mcptest_gate_api::run_rows::RunRows;
use serde::{Deserialize, Serialize};

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NarrativeAccumulator {
    pub(crate) claimed_but_absent: u64,
    pub(crate) present_but_unclaimed: u64,
    /// Unmentioned calls of tools that write.
    pub(crate) silent_writes: u64,
    pub(crate) arg_mismatch: u64,
    pub(crate) claimed_after_error: u64,
    #[serde(default)]
    pub(crate) uncalled_tools: u64,
    /// The reasons why messages were not read, sorted.
    #[serde(default)]
    pub(crate) unread: std::collections::BTreeSet<String>,
    /// Recorded calls and claimed actions.
    pub(crate) base: u64,
    /// Runs that did not pass.
    pub(crate) failed: RunList,
    /// True if a run has a closing message or a call.
    pub(crate) has_evidence: bool,
    /// The first claim without a call, in words.
    pub(crate) first_absent: Option<(u64, String)>,
    /// The first value that disagrees, in words.
    pub(crate) first_mismatch: Option<(u64, String)>,
    pub(crate) findings: FirstRuns<String>,
    pub(crate) advisories: FirstRuns<String>,
    pub(crate) rows: RunRows,
}

impl Accumulator for NarrativeAccumulator {
    fn merge(&mut self, other: Self) {
        self.claimed_but_absent += other.claimed_but_absent;
        self.present_but_unclaimed += other.present_but_unclaimed;
        self.silent_writes += other.silent_writes;
        self.arg_mismatch += other.arg_mismatch;
        self.claimed_after_error += other.claimed_after_error;
        self.uncalled_tools += other.uncalled_tools;
        self.unread.extend(other.unread);
        self.base += other.base;
        self.failed.merge(other.failed);
        self.has_evidence |= other.has_evidence;
        self.first_absent = earliest(self.first_absent.take(), other.first_absent);
        self.first_mismatch = earliest(self.first_mismatch.take(), other.first_mismatch);
        self.findings.merge(other.findings);
        self.advisories.merge(other.advisories);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.failed.renumber(number);
        for (index, _) in self.first_absent.iter_mut().chain(&mut self.first_mismatch) {
            *index = number(*index);
        }
        self.findings.renumber(number);
        self.advisories.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.rows.leave_out();
    }
}
