//! The JSON form of a report, from which its JSON Schema is generated.
//!
//! Section 6 of the decisions lists the parts that other programs may rely on.

pub use mcptest_events::{CaseId, Kind, RunRecord as RunReport, Spend};
use mcptest_redact::redact::Redactor;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::{ErrorKind, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// Tests that were planned and did not run, because the invocation was interrupted or because
    /// of `--fail-fast`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<CaseId>,
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
    /// The verdict.
    pub verdict: Verdict,
    /// Each run.
    pub runs: Vec<RunReport>,
    /// Each gate.
    pub gates: Vec<GateOutcome>,
    /// The reason why there was nothing to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_evidence: Option<String>,
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
}

/// The time of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTiming {
    /// The row's name.
    pub name: String,
    /// Its duration.
    pub duration_ms: u64,
}

impl Report {
    /// Computes the verdict, the exit code, the floors and the spend from the tests.
    #[must_use]
    pub fn conclude(tests: Vec<TestReport>, interrupted: bool) -> Self {
        let verdict = Verdict::worst(tests.iter().map(|test| test.verdict));
        let mut codes: Vec<ExitCode> = tests.iter().map(exit_code_of).collect();
        if interrupted {
            codes.push(ExitCode::Interrupted);
        }
        Self {
            schema_version: SCHEMA_VERSION,
            verdict,
            exit_code: ExitCode::first_of(codes),
            interrupted,
            tool_selection: floors(&tests),
            spend: Spend::total(tests.iter().filter_map(|test| test.spend)),
            tests,
            not_run: Vec::new(),
            shard: None,
            timing: None,
        }
    }

    /// The times of each test's runs, if all of them are known.
    #[must_use]
    pub fn timing_by_test(&self) -> Option<Vec<&[RunTiming]>> {
        let mut left = self.timing.as_ref()?.runs.as_slice();
        let mut by_test = Vec::new();
        for test in &self.tests {
            // Reading a catalog has a time, but is not a run.
            let rows: Vec<&str> = match (test.kind, test.runs.as_slice()) {
                (Kind::ToolQuality, _) => vec![&test.label],
                (_, runs) => runs.iter().map(|run| run.name.as_str()).collect(),
            };
            let (times, rest) = left.split_at_checked(rows.len())?;
            if !times.iter().map(|time| time.name.as_str()).eq(rows) {
                return None;
            }
            by_test.push(times);
            left = rest;
        }
        left.is_empty().then_some(by_test)
    }

    /// The report without secrets, with its records in a store. For code that does not fold events
    /// yet.
    #[must_use]
    pub fn redacted(&self, redactor: &Redactor) -> crate::report::Report {
        // Most reports contain no secret, and checking is cheaper than rebuilding them.
        if redactor.is_clean_in(self) {
            return self.into();
        }
        let mut value = serde_json::to_value(self).unwrap_or_default();
        redactor.value(&mut value);
        // Only strings have changed, so the shape still fits. If it did not, an empty report is
        // better than a leak.
        let report = serde_json::from_value(value)
            .unwrap_or_else(|_| Self::conclude(Vec::new(), self.interrupted));
        (&report).into()
    }

    /// The number of tests with this verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.tests
            .iter()
            .filter(|test| test.verdict == verdict)
            .count()
    }
}

impl TestReport {
    /// Its identity.
    #[must_use]
    pub fn id(&self) -> CaseId {
        CaseId {
            suite: self.suite.clone(),
            name: self.name.clone(),
            model: self.model.clone(),
        }
    }
}

impl From<&Report> for crate::report::Report {
    /// The same report with its records in a store. For code that does not fold events yet.
    fn from(report: &Report) -> Self {
        let mut records = crate::read::Records::default();
        let mut tests = Vec::new();
        for written in &report.tests {
            let store = std::sync::Arc::new(crate::store::RunStore::Memory(Vec::new()));
            let (kind, label) = (written.kind, written.label.clone());
            let mut test = crate::report::TestReport::new(written.id(), kind, label, store);
            test.verdict = written.verdict;
            test.gates.clone_from(&written.gates);
            test.no_evidence.clone_from(&written.no_evidence);
            test.saved_runs = written.saved_runs;
            test.spend = written.spend;
            for run in &written.runs {
                records.push(&mut test, run);
            }
            tests.push(test);
        }
        let timing = report.timing.clone();
        let timing = timing.map(|timing| crate::read::timed(&mut tests, timing));
        records.finish(&mut tests);
        Self {
            verdict: report.verdict,
            exit_code: report.exit_code,
            interrupted: report.interrupted,
            tests,
            not_run: report.not_run.clone(),
            shard: report.shard.clone(),
            spend: report.spend,
            timing,
        }
    }
}

fn exit_code_of(test: &TestReport) -> ExitCode {
    let capped = test.runs.iter().any(|run| {
        run.error
            .as_ref()
            .is_some_and(|error| error.kind == ErrorKind::Budget)
    });
    match test.verdict {
        _ if capped => ExitCode::Capped,
        Verdict::Pass => ExitCode::Passed,
        Verdict::Fail => ExitCode::Failed,
        Verdict::NoEvidence => ExitCode::NoEvidence,
        Verdict::Error => ExitCode::CouldNotRun,
    }
}

fn floors(tests: &[TestReport]) -> Vec<FloorReport> {
    let mut floors = Vec::new();
    for test in tests {
        for gate in test
            .gates
            .iter()
            .filter(|gate| gate.block == "tool_selection")
        {
            floors.push(FloorReport {
                test: test.name.clone(),
                model: test.model.clone(),
                figures: gate.detail.to_map(),
            });
        }
    }
    floors
}
