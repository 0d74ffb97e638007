//! The report as a fold over the lines of a log.
//!
//! The lines are already redacted. A live run and one read from the history fold the same lines, so
//! their reports are equal. A line in which nothing was masked has all that its event has; a live
//! run folds that event, instead of decoding the line again.

use std::borrow::Cow;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use mcptest_events::log::{DecodeError, LogError, LogReader, decode, record_range};
use mcptest_events::{
    CaseJudged, Ended, Event, Kind, PlannedCase, RawRecord, Replayed, RunFinished, RunSpend,
    ShardPlan,
};
use mcptest_trace::verdict::Verdict;
use memchr::memmem::Finder;

use crate::exit_code::ExitCode;
use crate::model::Shard;
use crate::report::{Report, TestReport, Timing};
use crate::row::{EarlyEnd, RowFacts, RunRow};
use crate::store::{RecordRange, RunStore, parse_record};

/// Folds the events of a log into a [`Report`].
///
/// ```
/// # use mcptest_report::{ReportFold, RunStore};
/// let mut fold = ReportFold::new();
/// let log = "{\"note\":{\"text\":\"hello\"}}\n";
/// fold.line(log, 0).unwrap();
/// let report = fold.finish(RunStore::Memory(log.as_bytes().to_vec()));
/// assert!(report.interrupted, "there is no `ended` event");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReportFold {
    cases: Vec<Case>,
    shard: Option<ShardPlan>,
    ended: Option<Ended>,
}

/// The state of a planned case.
#[derive(Debug, Clone)]
struct Case {
    plan: PlannedCase,
    /// True if a run has started.
    started: bool,
    /// The finished runs, in the order of their ends. A run that was repeated is here twice.
    runs: Vec<Run>,
    judged: Option<Box<CaseJudged>>,
    /// The cost of the finished runs, for a case that was not judged.
    spend: RunSpend,
    /// The duration of the last finished run, for a case whose runs have no records.
    catalog_ms: Option<u64>,
}

#[derive(Debug, Clone)]
struct Run {
    number: u32,
    /// The verdict that it adds to the case.
    counted: Verdict,
    /// `None` if the run has no record.
    row: Option<RunRow>,
}

impl ReportFold {
    /// The fold of no events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds an encoded event. `offset` is the position of the line in the store that
    /// [`finish`](Self::finish) gets, in bytes.
    ///
    /// # Errors
    /// A line that is not an event.
    pub fn line(&mut self, line: &str, offset: u64) -> Result<(), DecodeError> {
        if let Some(event) = decode(line)? {
            self.event(event, line, offset);
        }
        Ok(())
    }

    /// Folds an event that was decoded from the line at `offset` of the store.
    pub fn event(&mut self, event: Event<RawRecord<'_>>, line: &str, offset: u64) {
        match event {
            Event::RunFinished(finished) => {
                let record = finished.record.and_then(|record| record.range_in(line));
                self.run_finished(&finished, record, line, offset);
            }
            other => self.without_record(other),
        }
    }

    /// Folds an event that was encoded, with nothing masked, as the line at `offset` of the store.
    /// The same as [`line`](Self::line), without decoding it.
    pub fn encoded(&mut self, event: &Event, line: &str, offset: u64) {
        match event {
            Event::RunFinished(finished) => {
                let record = finished.record.as_ref().and_then(|_| record_range(line));
                self.run_finished(finished, record, line, offset);
            }
            // Nothing to copy.
            Event::RunStarted { case, .. } => self.run_started(*case),
            other => self.without_record(other.clone()),
        }
    }

    fn run_started(&mut self, case: usize) {
        if let Some(case) = self.cases.get_mut(case) {
            case.started = true;
        }
    }

    fn run_finished<R>(
        &mut self,
        finished: &RunFinished<R>,
        record: Option<Range<usize>>,
        line: &str,
        offset: u64,
    ) {
        if let Some(case) = self.cases.get_mut(finished.case) {
            case.run_finished(finished, record, line, offset);
        }
    }

    /// Folds an event that has no record.
    fn without_record<R>(&mut self, event: Event<R>) {
        match event {
            Event::Planned { cases, shard } => {
                // A resumed invocation may repeat its plan; the finished runs stay.
                if !self.cases.iter().map(|case| &case.plan).eq(&cases) {
                    self.cases = cases.into_iter().map(Case::new).collect();
                }
                self.shard = shard;
            }
            Event::Resumed { .. } => {
                self.ended = None;
                // Runs that were interrupted start again.
                for case in &mut self.cases {
                    case.started = false;
                    case.judged = case.judged.take().filter(|judged| judged.complete);
                }
            }
            Event::RunStarted { case, .. } => self.run_started(case),
            Event::CaseJudged(judged) => {
                if let Some(case) = self.cases.get_mut(judged.case) {
                    case.judged = Some(Box::new(judged));
                }
            }
            Event::Ended(ended) => self.ended = Some(ended),
            // For progress.
            _ => {}
        }
    }

    /// Returns true if the invocation has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The number of planned runs. Of a case that was decided early, only those that were made.
    #[must_use]
    pub fn planned_runs(&self) -> u64 {
        let of_case = |case: &Case| match &case.judged {
            Some(judged) if judged.complete => case.runs.len() as u64,
            _ => case.plan.runs.into(),
        };
        self.cases.iter().map(of_case).sum()
    }

    /// The number of finished runs, each counted once.
    #[must_use]
    pub fn finished_runs(&self) -> u64 {
        let of_case = |case: &Case| {
            let mut numbers: Vec<u32> = case.runs.iter().map(|run| run.number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers.len() as u64
        };
        self.cases.iter().map(of_case).sum()
    }

    /// The report. `store` has the lines at the offsets that were folded.
    #[must_use]
    pub fn finish(self, store: RunStore) -> Report {
        let store = Arc::new(store);
        let (mut tests, mut not_run) = (Vec::new(), Vec::new());
        let parts = self.cases.iter().map(Case::replayed);
        let replayed = Replayed::total(parts.flatten());
        let mut shard = self.shard.map(|shard| Shard {
            number: shard.number,
            of: shard.of,
            total: shard.total,
            tests: Vec::new(),
            not_run: Vec::new(),
        });
        for case in self.cases {
            let position = case.plan.position;
            if case.runs.is_empty() && case.judged.is_none() && !case.started {
                not_run.push(case.plan.id);
                shard.iter_mut().for_each(|it| it.not_run.push(position));
            } else {
                tests.push(case.report(&store));
                shard.iter_mut().for_each(|it| it.tests.push(position));
            }
        }
        let ended = self.ended;
        let panicked = ended.is_some_and(|ended| ended.panicked);
        let interrupted = ended.is_none_or(|ended| ended.interrupted || ended.panicked);
        let finished_ms = || {
            let durations = tests.iter().map(TestReport::duration_ms);
            durations.fold(0_u64, u64::saturating_add)
        };
        let duration_ms = ended.map_or_else(finished_ms, |ended| ended.duration_ms);
        let mut report = Report::conclude(tests, interrupted);
        if panicked {
            // A defect of mcptest is not an interruption by the user.
            report.exit_code = ExitCode::CouldNotRun;
        }
        report.not_run = not_run;
        report.shard = shard;
        report.replayed = replayed;
        report.timing = Some(Timing::new(duration_ms));
        report
    }
}

impl Case {
    fn new(plan: PlannedCase) -> Self {
        Self {
            plan,
            started: false,
            runs: Vec::new(),
            judged: None,
            spend: RunSpend::default(),
            catalog_ms: None,
        }
    }

    fn run_finished<R>(
        &mut self,
        finished: &RunFinished<R>,
        record: Option<Range<usize>>,
        line: &str,
        offset: u64,
    ) {
        // A run after the judgement belongs to a resumed invocation, which judges again.
        self.judged = None;
        self.spend = self.spend.plus(finished.spend.unwrap_or_default());
        self.catalog_ms = Some(finished.duration_ms);
        if self.runs.is_empty() {
            // Most cases have one run.
            self.runs.reserve_exact(1);
        }
        let row = record.and_then(|record| {
            let range = RecordRange {
                offset: offset + record.start as u64,
                len: u32::try_from(record.len()).ok()?,
            };
            Some(row(&self.plan, finished, line.get(record)?, range))
        });
        self.runs.push(Run {
            number: finished.run,
            counted: finished.facts.counted,
            row,
        });
    }

    /// The part of the spend that a cassette answered.
    fn replayed(&self) -> Option<Replayed> {
        match &self.judged {
            Some(judged) => judged.replayed,
            None => self.spend.replayed_part(),
        }
    }

    /// The report of a case that has started.
    fn report(self, store: &Arc<RunStore>) -> TestReport {
        let mut runs = self.runs;
        if !runs.is_sorted_by(|one, next| one.number < next.number) {
            // In reverse, so that the last event of a repeated run comes first and is kept.
            runs.reverse();
            runs.sort_by_key(|run| run.number);
            runs.dedup_by_key(|run| run.number);
        }
        let plan = self.plan;
        let finished = runs.len();
        let counted = Verdict::worst(runs.iter().map(|run| run.counted));
        let mut test = TestReport::new(plan.id, plan.kind, plan.label, Arc::clone(store));
        test.tags = plan.tags;
        test.file = plan.file;
        test.line = plan.line;
        test.runs = runs.into_iter().filter_map(|run| run.row).collect();
        if plan.kind == Kind::ToolQuality {
            test.catalog_ms = self.catalog_ms;
        }
        match self.judged {
            Some(judged) => {
                test.interrupted = !judged.complete;
                test.wall_ms = judged.duration_ms;
                test.verdict = judged.verdict;
                test.gates = judged.gates;
                test.no_evidence = judged.no_evidence;
                test.saved_runs = judged.saved_runs;
                test.spend = judged.spend;
                test.status_lines = judged.status_lines;
            }
            None => {
                test.interrupted = true;
                test.verdict = counted.max(Verdict::NoEvidence);
                test.no_evidence = Some(format!(
                    "interrupted: {finished} of {} runs finished",
                    plan.runs
                ));
                test.spend = self.spend.reported();
            }
        }
        test
    }
}

/// The row of a run. The facts are in the event, so the record is parsed only if the text has
/// something that the facts do not cover.
fn row<R>(plan: &PlannedCase, finished: &RunFinished<R>, text: &str, range: RecordRange) -> RunRow {
    let facts = &finished.facts;
    let name: Cow<'_, str> = if plan.runs > 1 {
        format!("{} #{}", plan.label, finished.run).into()
    } else {
        plan.label.as_str().into()
    };
    let is_covered = has_name(text, finished.run, &name) && !may_end_early(text);
    if !is_covered && let Ok(record) = parse_record(text) {
        return RunRow::of_record(&plan.label, &record, finished.duration_ms, range);
    }
    let facts = RowFacts {
        index: finished.run.into(),
        verdict: facts.verdict,
        error: facts.error,
        calls: finished.calls,
        errors: finished.errors,
        tokens: finished.tokens,
        duration_ms: finished.duration_ms,
        early_end: None,
        has_details: facts.verdict != Verdict::Pass
            || facts.error.is_some()
            || SKIPPED.find(text.as_bytes()).is_some(),
    };
    RunRow::new(&plan.label, &name, &facts, range)
}

/// The keys that are searched for in every record.
static SKIPPED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"skipped\":"));
static STOP_REASON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(STOP_REASON_KEY));
const STOP_REASON_KEY: &str = "\"stop_reason\":\"";

/// Returns true if a record begins with this index and name.
fn has_name(text: &str, run: u32, name: &str) -> bool {
    let Some((index, rest)) = text
        .strip_prefix("{\"index\":")
        .and_then(|rest| rest.split_once(",\"name\":\""))
    else {
        return false;
    };
    // A name without escapes is in the record as it is.
    let is_same = rest
        .strip_prefix(name)
        .is_some_and(|rest| rest.starts_with('"') && !name.contains(['\\', '"']));
    index.parse::<u32>() == Ok(run) && (is_same || has_escaped(rest, name))
}

/// Returns true if a text begins with the rest of this name as a JSON string, after its quote.
fn has_escaped(text: &str, name: &str) -> bool {
    serde_json::to_string(name).is_ok_and(|name| text.starts_with(&name[1..]))
}

/// Returns false if no `stop_reason` in the text is that of an early end.
fn may_end_early(text: &str) -> bool {
    STOP_REASON.find_iter(text.as_bytes()).any(|at| {
        let value = &text[at + STOP_REASON_KEY.len()..];
        let end = value.find('"').unwrap_or(value.len());
        EarlyEnd::of_stop_reason(&value[..end]).is_some()
    })
}

/// Folds a log file.
///
/// # Errors
/// A log that cannot be read, or in which the record of a run is damaged: a report would have it as
/// it is, and could not be read.
pub fn read_log(file: File) -> Result<Report, LogError> {
    let mut fold = ReportFold::new();
    let mut reader = LogReader::new(BufReader::new(file.try_clone()?));
    while let Some(line) = reader.next_event()? {
        if let Event::RunFinished(finished) = &line.event
            && let Some(Err(error)) = finished.record.map(RawRecord::parse)
        {
            return Err(LogError::Line {
                number: line.number,
                problem: format!("the record of a run is damaged: {error}"),
            });
        }
        fold.event(line.event, line.text, line.offset);
    }
    Ok(fold.finish(RunStore::File(file)))
}

#[cfg(test)]
mod tests;
