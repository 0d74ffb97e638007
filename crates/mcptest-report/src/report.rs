//! The report of an invocation: its tests, a compact row per run, and access to their records.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use mcptest_events::{CaseId, Kind, Replayed, RunRecord, RunTotals, Spend};
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, Verdict};

use crate::broken_lines::BrokenLines;
use crate::exit_code::ExitCode;
use crate::model::{RunTiming, Shard};
use crate::store::{RecordRange, RunStore, StoreError, parse_record, parse_without_trace};

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
    pub runs: Vec<RunRow>,
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
    /// Lines for standard error, whatever the reporter.
    pub status_lines: Vec<String>,
    /// For a `tool_quality` test: the time of reading the catalog, which is not a run.
    pub(crate) catalog_ms: Option<u64>,
    /// The time from the start of the first run to the end of the last one, if it is known.
    pub(crate) wall_ms: Option<u64>,
    /// The records of the runs.
    pub(crate) store: Arc<RunStore>,
}

/// The facts about a run that reporters need of every run.
///
/// A test may have 100,000 runs: a row has no trace, and no name where it follows from the label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    record: RecordRange,
    /// The reported total of tokens, valid if `has_tokens`.
    token_count: u64,
    duration: u64,
    index: u64,
    name: RowName,
    calls: u32,
    /// The number of calls whose result is an error.
    errors: u32,
    verdict: Verdict,
    error: Option<ErrorKind>,
    early_end: Option<EarlyEnd>,
    has_tokens: bool,
    has_details: bool,
    /// True if the record is stored without its index and name.
    headless: bool,
}

/// A run of a scored trace. Its record is stored without its beginning (`{"index":…,"name":…,`),
/// because the number of a recorded run is known only after all of them were read.
#[derive(Debug, Clone)]
pub struct ScoredRow<'a> {
    /// The number of the run, from 1.
    pub index: u64,
    /// True if the name of the row has the number.
    pub numbered: bool,
    /// The verdict on the run's own assertions.
    pub verdict: Verdict,
    /// The kind of error of a run that could not be completed.
    pub error: Option<ErrorKind>,
    /// The number of tool calls.
    pub calls: u32,
    /// The number of tool results that are errors.
    pub errors: u32,
    /// The reported total of tokens.
    pub tokens: Option<u64>,
    /// The recorded reason why the agent stopped.
    pub stop_reason: Option<&'a str>,
    /// True if there is an error, or an assertion that failed or was skipped.
    pub has_details: bool,
    /// The place of the record in the store. Without one, only its row can be shown.
    pub record: Option<Range<u64>>,
}

impl From<ScoredRow<'_>> for RunRow {
    fn from(run: ScoredRow<'_>) -> Self {
        let record = run.record.unwrap_or_default();
        Self {
            record: RecordRange {
                offset: record.start,
                // A record of 4 GiB cannot be shown.
                len: u32::try_from(record.end.saturating_sub(record.start)).unwrap_or(0),
            },
            token_count: run.tokens.unwrap_or(0),
            duration: 0,
            index: run.index,
            name: if run.numbered {
                RowName::Numbered
            } else {
                RowName::Label
            },
            calls: run.calls,
            errors: run.errors,
            verdict: run.verdict,
            error: run.error,
            early_end: run.stop_reason.and_then(EarlyEnd::of_stop_reason),
            has_tokens: run.tokens.is_some(),
            has_details: run.has_details,
            headless: true,
        }
    }
}

/// The name of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RowName {
    /// The label of the test.
    Label,
    /// The label and the number of the run.
    Numbered,
    /// Any other name.
    Own(Box<str>),
}

/// The reason why a run ended without an answer, if the agent did not end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlyEnd {
    MaxTurns,
    MaxTokens,
    Withheld,
    MalformedCall,
}

impl EarlyEnd {
    /// The early end with this `stop_reason` in a trace.
    pub(crate) fn of_stop_reason(reason: &str) -> Option<Self> {
        match reason {
            "max_turns" => Some(Self::MaxTurns),
            "max_tokens" => Some(Self::MaxTokens),
            "withheld" => Some(Self::Withheld),
            "malformed_call" => Some(Self::MalformedCall),
            _ => None,
        }
    }

    fn of_trace(trace: &Trace) -> Option<Self> {
        Self::of_stop_reason(trace.extra("stop_reason")?.as_str()?)
    }
}

/// The facts about a run that do not need its record.
pub(crate) struct RowFacts {
    pub index: u64,
    pub verdict: Verdict,
    pub error: Option<ErrorKind>,
    pub calls: u64,
    pub errors: u64,
    pub tokens: Option<u64>,
    pub duration_ms: u64,
    pub early_end: Option<EarlyEnd>,
    /// Set if the record may have an error, or assertions that failed or were skipped.
    pub has_details: bool,
}

impl RunRow {
    /// A row for a record at `range` of a store.
    pub(crate) fn new(label: &str, name: &str, facts: &RowFacts, range: RecordRange) -> Self {
        let name = if name == label {
            RowName::Label
        } else if is_numbered(name, label, facts.index) {
            RowName::Numbered
        } else {
            RowName::Own(name.into())
        };
        Self {
            record: range,
            token_count: facts.tokens.unwrap_or(0),
            duration: facts.duration_ms,
            index: facts.index,
            name,
            calls: u32::try_from(facts.calls).unwrap_or(u32::MAX),
            errors: u32::try_from(facts.errors).unwrap_or(u32::MAX),
            verdict: facts.verdict,
            error: facts.error,
            early_end: facts.early_end,
            has_tokens: facts.tokens.is_some(),
            has_details: facts.has_details,
            headless: false,
        }
    }

    /// The row of a parsed record.
    pub(crate) fn of_record(
        label: &str,
        record: &RunRecord,
        duration_ms: u64,
        range: RecordRange,
    ) -> Self {
        let noteworthy = |assertion: &mcptest_trace::expect::Assertion| {
            assertion.failed() || assertion.skipped.is_some()
        };
        let facts = RowFacts {
            index: record.index,
            verdict: record.verdict,
            error: record.error.as_ref().map(|error| error.kind),
            calls: record.trace.tool_calls.len() as u64,
            errors: record.trace.failed_results() as u64,
            tokens: record.trace.total_tokens(),
            duration_ms,
            early_end: EarlyEnd::of_trace(&record.trace),
            has_details: record.error.is_some() || record.assertions.iter().any(noteworthy),
        };
        Self::new(label, &record.name, &facts, range)
    }

    /// The number of the run, from 1.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The verdict on the run's own assertions.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The kind of error of a run that could not be completed.
    #[must_use]
    pub fn error(&self) -> Option<ErrorKind> {
        self.error
    }

    /// The number of tool calls.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// The number of tool results that are errors.
    #[must_use]
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// The reported total of tokens.
    #[must_use]
    pub fn tokens(&self) -> Option<u64> {
        self.has_tokens.then_some(self.token_count)
    }

    /// The duration in milliseconds.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        self.duration
    }

    /// The size of the record in the store, in bytes; 0 if there is no record.
    pub(crate) fn record_len(&self) -> u64 {
        self.record.len.into()
    }

    pub(crate) fn early_end(&self) -> Option<EarlyEnd> {
        self.early_end
    }

    /// False if the record has neither an error nor assertions that failed or were skipped.
    pub(crate) fn has_details(&self) -> bool {
        self.has_details
    }

    pub(crate) fn set_duration(&mut self, duration_ms: u64) {
        self.duration = duration_ms;
    }

    /// The bytes that the row takes, on the heap too.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let own = match &self.name {
            RowName::Own(name) => name.len(),
            RowName::Label | RowName::Numbered => 0,
        };
        size_of::<Self>() + own
    }
}

/// Returns true if a name is the label and the number of the run: `weather #3`.
fn is_numbered(name: &str, label: &str, index: u64) -> bool {
    name.strip_prefix(label)
        .and_then(|rest| rest.strip_prefix(" #"))
        .is_some_and(|number| number == index.to_string())
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
                Kind::Agent | Kind::Tool => test.runs.len() as u64,
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
            runs: Vec::new(),
            run_totals: None,
            gates: Vec::new(),
            no_evidence: None,
            interrupted: false,
            saved_runs: None,
            spend: None,
            tags: Vec::new(),
            file: None,
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
        let passed = |run: &&RunRow| run.verdict == Verdict::Pass;
        let counted = || self.runs.iter().filter(passed).count() as u64;
        self.run_totals.map_or_else(counted, |totals| totals.passed)
    }

    /// The number of runs.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        let counted = || self.runs.len() as u64;
        self.run_totals.map_or_else(counted, |totals| totals.runs)
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
            Kind::Agent | Kind::Tool => self
                .runs
                .iter()
                .fold(0, |sum, run| sum.saturating_add(run.duration)),
        }
    }
}

fn exit_code_of(test: &TestReport) -> ExitCode {
    let is_capped = |run: &RunRow| run.error == Some(ErrorKind::Budget);
    let capped = match test.run_totals {
        Some(totals) => totals.capped > 0,
        None => test.runs.iter().any(is_capped),
    };
    match test.verdict {
        _ if capped => ExitCode::Capped,
        Verdict::Pass => ExitCode::Passed,
        Verdict::Fail => ExitCode::Failed,
        Verdict::NoEvidence => ExitCode::NoEvidence,
        Verdict::Error => ExitCode::CouldNotRun,
    }
}
