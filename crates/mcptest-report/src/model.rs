//! The JSON form of a report, from which its JSON Schema is generated.
//!
//! Section 6 of the decisions lists the parts that other programs may rely on.

pub use mcptest_events::{CaseId, Kind, Replayed, RunRecord as RunReport, RunTotals, Spend};
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::broken_lines::BrokenLines;
use crate::complexity::ComplexityGroup;
use crate::exit_code::ExitCode;

/// The version of the format. It grows when a reader of the old form would misread the new one.
pub const SCHEMA_VERSION: u32 = 1;

/// The report of an invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The version of the format.
    pub schema_version: u32,
    /// The gravest of all verdicts.
    pub verdict: Verdict,
    /// The exit code of the process.
    pub exit_code: ExitCode,
    /// Set if the invocation was interrupted: only finished runs are here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The tests, in the order of the suites, one entry per test and model.
    pub tests: Vec<TestReport>,
    /// The `tool_selection:` floors.
    pub tool_selection: Vec<FloorReport>,
    /// The `distractors:` results by the complexity of their tests, if a test states one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distractors: Vec<ComplexityGroup>,
    /// Tests that were planned and did not run, because the invocation was interrupted or because
    /// of `--fail-fast`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<CaseId>,
    /// The lines of trace files that were skipped, because they are not traces. The exit code is
    /// then never 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_lines: Option<BrokenLines>,
    /// The part of the whole, for a run with `--shard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The cost of the models, over all tests that report one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// All times. Omit it (`--no-timing`) to compare reports byte by byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// The positions of a shard's tests in the whole. They count from 0, in the order of the suites,
/// after filters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// The number of the shard, from 1.
    pub number: u32,
    /// The number of shards.
    pub of: u32,
    /// The number of tests in all shards together, one per test and model.
    pub total: u64,
    /// The position of each entry of `tests`.
    pub tests: Vec<u64>,
    /// The position of each entry of `not_run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<u64>,
}

/// One test with one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    /// The test's name.
    pub name: String,
    /// The kind of test.
    pub kind: Kind,
    /// The model, for an agent test.
    pub model: Option<String>,
    /// The name in rows: that of the test, with the model when several models run.
    pub label: String,
    /// The suite it is from.
    pub suite: String,
    /// The suite file, as it was opened. Absent for recorded traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the test in that file, from 1. Absent for tests of imported files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The tags of the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Each run. Empty in a summary.
    pub runs: Vec<RunReport>,
    /// Sums over the runs, in a summary (`score --summary`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_totals: Option<RunTotals>,
    /// Each gate.
    pub gates: Vec<GateOutcome>,
    /// The reason why there was nothing to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_evidence: Option<String>,
    /// Set if the test has fewer runs than requested because the invocation was interrupted. Its
    /// verdict is then never `pass`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// For a test that stops when it is decided: the number of runs that were not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_runs: Option<u64>,
    /// The cost of its models, judges included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
}

/// A `tool_selection:` floor with the test it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FloorReport {
    /// The test's name.
    pub test: String,
    /// The model.
    pub model: Option<String>,
    /// `passed`, `runs`, `selected`, `selection_rate`, `pass_hat_k`, `tokens_median`, `tokens_max`,
    /// `breaches`, `per_run`.
    #[serde(flatten)]
    pub figures: Map<String, Value>,
}

/// The times of an invocation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// The duration of the whole invocation. For a killed one, the sum of its finished runs.
    pub duration_ms: u64,
    /// Each run, in the order of the report.
    pub runs: Vec<RunTiming>,
    /// Each test, in the order of the report: the time from the start of its first run to the end
    /// of its last one, without the start-up of servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<RunTiming>,
    /// The part of `spend` that was not spent now, because cassettes answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
}

/// The time of a run or a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTiming {
    /// The row's name.
    pub name: String,
    /// Its duration.
    pub duration_ms: u64,
}
