//! The report of an invocation: its tests, a compact row per run, and access to their records.

use std::borrow::Cow;
use std::sync::Arc;

use mcptest_events::{CaseId, Kind, Replayed, RunRecord, RunTotals, Spend};
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;

use crate::broken_lines::BrokenLines;
use crate::exit_code::ExitCode;
use crate::model::{RunTiming, Shard};
use crate::packed_rows::PackedRows;
use crate::row::{RowName, RunRow};
use crate::store::{RunStore, StoreError, parse_record, parse_without_trace};

/// The report of an invocation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The gravest of all verdicts.
    pub verdict: Verdict,
    /// The exit code of the process.
    pub exit_code: ExitCode,
    /// True if the invocation was interrupted or killed: only finished runs are here.
    pub interrupted: bool,
    /// The tests, in the order of the suites, one entry per test and model.
    pub tests: Vec<TestReport>,
    /// Tests that were planned and did not run.
    pub not_run: Vec<CaseId>,
    /// The lines of trace files that were skipped.
    pub broken_lines: Option<BrokenLines>,
    /// The part of the whole, for a run with `--shard`.
    pub shard: Option<Shard>,
    /// The cost of the models, over all tests that report one.
    pub spend: Option<Spend>,
    /// All times. Set it to `None` to compare reports byte by byte.
    pub timing: Option<Timing>,
    /// The part of the spend that cassettes answered. Like a time, it is about this invocation and
    /// not about the evidence.
    pub replayed: Option<Replayed>,
}

/// The times of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// The duration of the whole invocation. For a killed one, the sum of its finished runs.
    pub duration_ms: u64,
    /// The times of runs in a report file that do not match its tests. `None` if the rows of the
    /// tests have the times, as they do in every report of mcptest.
    pub(crate) unmatched: Option<Vec<RunTiming>>,
}

impl Timing {
    /// The duration of an invocation, with the times of the runs in their rows.
    #[must_use]
    pub fn new(duration_ms: u64) -> Self {
        Self {
            duration_ms,
            unmatched: None,
        }
    }
}

/// One test with one model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TestReport {
    /// The suite, the test and the model.
    pub id: CaseId,
    /// The kind of test.
    pub kind: Kind,
    /// The name in rows: that of the test, with the model when several models run.
    pub label: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Each run. Empty in a summary.
    pub runs: PackedRows,
    /// Sums over the runs, in a summary.
    pub run_totals: Option<RunTotals>,
    /// Each gate.
    pub gates: Vec<GateOutcome>,
    /// The reason why there was nothing to judge.
    pub no_evidence: Option<String>,
    /// True if the test has fewer runs than requested because the invocation was interrupted.
    pub interrupted: bool,
    /// For a test that stops when it is decided: the number of runs that were not needed.
    pub saved_runs: Option<u64>,
    /// The cost of its models, judges included.
    pub spend: Option<Spend>,
    /// The tags of the test.
    pub tags: Vec<String>,
    /// The suite file, as it was opened; `None` if it is not known.
    pub file: Option<String>,
    /// The line of the test in that file.
    pub line: Option<u32>,
    /// Lines for standard error, whatever the reporter.
    pub status_lines: Vec<String>,
    /// For a `tool_quality` test: the time of reading the catalog, which is not a run.
    pub(crate) catalog_ms: Option<u64>,
    /// The time from the start of the first run to the end of the last one, if it is known.
    pub(crate) wall_ms: Option<u64>,
    /// The records of the runs.
    pub(crate) store: Arc<RunStore>,
}

impl Report {
    /// Computes the verdict, the exit code and the spend from the tests.
    #[must_use]
    pub fn conclude(tests: Vec<TestReport>, interrupted: bool) -> Self {
        let mut codes: Vec<ExitCode> = tests.iter().map(exit_code_of).collect();
        if interrupted {
            codes.push(ExitCode::Interrupted);
        }
        // What did not run is not passed.
        let floor = match interrupted {
            true => Verdict::NoEvidence,
            false => Verdict::Pass,
        };
        Self {
            verdict: Verdict::worst(tests.iter().map(|test| test.verdict)).max(floor),
            exit_code: ExitCode::first_of(codes),
            interrupted,
            spend: Spend::total(tests.iter().filter_map(|test| test.spend)),
            tests,
            not_run: Vec::new(),
            broken_lines: None,
            shard: None,
            timing: None,
            replayed: None,
        }
    }

    /// Adds the lines that were skipped. They may have been evidence, so the report does not pass.
    #[must_use]
    pub fn with_broken_lines(mut self, broken: Option<BrokenLines>) -> Self {
        if broken.as_ref().is_some_and(|broken| broken.count > 0) {
            self.verdict = self.verdict.max(Verdict::NoEvidence);
            self.exit_code = ExitCode::first_of([self.exit_code, ExitCode::NoEvidence]);
            self.broken_lines = broken;
        }
        self
    }

    /// The number of tests with this verdict. A test that was interrupted before it was decided is
    /// not among them.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.tests
            .iter()
            .filter(|test| test.verdict == verdict && !test.is_undecided())
            .count()
    }

    /// The number of tests that were interrupted before they were decided.
    #[must_use]
    pub fn count_interrupted(&self) -> usize {
        self.tests.iter().filter(|test| test.is_undecided()).count()
    }

    /// True if the report has the duration of every run.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        let timing = self.timing.as_ref();
        timing.is_some_and(|timing| timing.unmatched.is_none())
    }

    /// The duration of each test in milliseconds and its number of timed runs; `None` if the report
    /// does not have the duration of every run.
    #[must_use]
    pub fn case_times(&self) -> Option<Vec<(CaseId, u64, u64)>> {
        let time = |test: &TestReport| {
            let runs = match test.kind {
                Kind::ToolQuality => 1,
                Kind::Agent | Kind::Tool | Kind::Resource | Kind::Prompt => test.runs.len(),
            };
            (test.id.clone(), test.work_ms(), runs)
        };
        self.is_timed()
            .then(|| self.tests.iter().map(time).collect())
    }
}

impl TestReport {
    /// A test without runs.
    #[must_use]
    pub fn new(id: CaseId, kind: Kind, label: String, store: Arc<RunStore>) -> Self {
        Self {
            id,
            kind,
            label,
            verdict: Verdict::Pass,
            runs: PackedRows::default(),
            run_totals: None,
            gates: Vec::new(),
            no_evidence: None,
            interrupted: false,
            saved_runs: None,
            spend: None,
            tags: Vec::new(),
            file: None,
            line: None,
            status_lines: Vec::new(),
            catalog_ms: None,
            wall_ms: None,
            store,
        }
    }

    /// The name of a run's row, such as `weather #3`.
    #[must_use]
    pub fn row_name<'a>(&'a self, run: &'a RunRow) -> Cow<'a, str> {
        match &run.name {
            RowName::Label => Cow::Borrowed(&self.label),
            RowName::Numbered => Cow::Owned(format!("{} #{}", self.label, run.index)),
            RowName::Own(name) => Cow::Borrowed(name),
        }
    }

    /// Fetches the record of a run.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn record(&self, run: &RunRow) -> Result<RunRecord, StoreError> {
        let mut buffer = Vec::new();
        let text = self.record_text(run, &mut buffer)?;
        parse_record(text).map_err(|error| StoreError::Damaged(error.to_string()))
    }

    /// Fetches the record of a run for a reporter that shows its assertions, its error, and the
    /// words of servers. The trace is left out if servers said nothing.
    pub(crate) fn details(&self, run: &RunRow) -> Result<RunRecord, StoreError> {
        let mut buffer = Vec::new();
        let text = self.record_text(run, &mut buffer)?;
        // The words are those of failed calls, of the only call of a direct test, and of stderr.
        let is_silent = self.kind == Kind::Agent && run.calls != 1 && run.errors == 0;
        let record = match is_silent && !text.contains("\"stderr\"") {
            true => parse_without_trace(text),
            false => parse_record(text),
        };
        record.map_err(|error| StoreError::Damaged(error.to_string()))
    }

    /// Fetches the JSON text of a run's record.
    pub(crate) fn record_text<'a>(
        &'a self,
        run: &RunRow,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a str, StoreError> {
        if !run.headless {
            return self.store.fetch(run.record, buffer);
        }
        let name = serde_json::to_string(&self.row_name(run)).unwrap_or_default();
        let head = format!("{{\"index\":{},\"name\":{name},", run.index);
        self.store.fetch_after(head.as_bytes(), run.record, buffer)
    }

    /// The number of runs that passed.
    #[must_use]
    pub fn passed_runs(&self) -> u64 {
        self.totals().passed
    }

    /// The number of runs.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.totals().runs
    }

    /// Sums over the runs.
    #[must_use]
    pub fn totals(&self) -> &RunTotals {
        self.run_totals.as_ref().unwrap_or(self.runs.totals())
    }

    /// True if the test was interrupted before it was decided.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.interrupted && self.verdict == Verdict::NoEvidence
    }

    /// The time from the start of its first run to the end of its last one, in milliseconds. The
    /// sum of all runs where that is not known, as in a report of an older version.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        self.wall_ms.unwrap_or_else(|| self.work_ms())
    }

    /// The sum of the durations of its runs, in milliseconds.
    #[must_use]
    pub fn work_ms(&self) -> u64 {
        match self.kind {
            Kind::ToolQuality => self.catalog_ms.unwrap_or(0),
            Kind::Agent | Kind::Tool | Kind::Resource | Kind::Prompt => self
                .runs
                .iter()
                .fold(0, |sum, run| sum.saturating_add(run.duration)),
        }
    }
}

fn exit_code_of(test: &TestReport) -> ExitCode {
    match test.verdict {
        _ if test.totals().capped > 0 => ExitCode::Capped,
        Verdict::Pass => ExitCode::Passed,
        Verdict::Fail => ExitCode::Failed,
        Verdict::NoEvidence => ExitCode::NoEvidence,
        Verdict::Error => ExitCode::CouldNotRun,
    }
}
