//! The observed runs of the gate, and a row of its detail.

use mcptest_gate_api::Accumulator;
use mcptest_gate_api::first_runs::{FirstRuns, earliest};
use mcptest_gate_api::run_list::RunList;
use mcptest_gate_api::run_rows::RunRows;
use serde::{Deserialize, Serialize};

use crate::advisory::Judged;
use crate::divergence::{ArgMismatch, Claimed, Divergence, Unclaimed};

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

/// A row of the report's detail.
#[derive(Serialize)]
pub(crate) struct DivergenceRow<'a> {
    passed: bool,
    divergence_score: f64,
    recorded_calls: u64,
    claimed: &'a [Claimed],
    claimed_but_absent: &'a [Claimed],
    present_but_unclaimed: &'a [Unclaimed],
    arg_mismatch: &'a [ArgMismatch],
    claimed_after_error: &'a [Claimed],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    uncalled_tools: &'a [Claimed],
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judged: Option<&'a Judged>,
}

impl<'a> DivergenceRow<'a> {
    pub(crate) fn new(run: &'a Divergence, passed: bool) -> Self {
        Self {
            passed,
            divergence_score: run.score(),
            recorded_calls: run.recorded_calls,
            claimed: &run.claimed,
            claimed_but_absent: &run.claimed_but_absent,
            present_but_unclaimed: &run.present_but_unclaimed,
            arg_mismatch: &run.arg_mismatch,
            claimed_after_error: &run.claimed_after_error,
            uncalled_tools: &run.uncalled_tools,
            unread: run.unread.as_deref(),
            judged: run.judged.as_ref(),
        }
    }
}

/// Sets the words of a run, unless those of an earlier one are there.
pub(crate) fn keep_first(
    first: &mut Option<(u64, String)>,
    index: u64,
    words: impl FnOnce() -> Option<String>,
) {
    if first.as_ref().is_none_or(|(earlier, _)| index < *earlier)
        && let Some(words) = words()
    {
        *first = Some((index, words));
    }
}
