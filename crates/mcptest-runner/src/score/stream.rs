//! Scoring traces as a stream.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcptest_events::{CaseId, Kind, RunTotals};
use mcptest_redact::redact::Redactor;
use mcptest_suite::Suite;
use mcptest_suite::suite::AgentTest;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::{Trace, TraceView};
use mcptest_trace::verdict::Verdict;

use super::matching::{Match, Tests, model_order};
use super::numbering::{RunKey, RunTable, ScoredRun, ScoredRuns, provisional};
use super::record::encode_record;
use super::rows::{PartRows, TraceRow, figures};
use super::sinks::{ScoreProgress, ScoreSinks};
use super::tool_names::NameTally;
use super::{ScoreError, ScoreSettings, Scored, ScoredCase, TraceInput};
use crate::plan;
use crate::trace_file::{
    BrokenLines, Fold, ReadSettings, Step, TraceFileError, fold_input, fold_rows, fold_traces,
};
use crate::verdicts::{CaseTally, JudgeContext, RunOutcome};

pub(super) fn score(
    suite: &Suite,
    inputs: Vec<TraceInput<'_>>,
    settings: &ScoreSettings,
    redactor: &Redactor,
    sinks: ScoreSinks<'_>,
) -> Result<Scored, ScoreError> {
    score_parts(suite, settings, redactor, sinks, |scorer, merger| {
        read(inputs, settings, scorer, merger)
    })
}

/// Reads all inputs and adds their parts.
pub(super) fn read<'a>(
    inputs: Vec<TraceInput<'_>>,
    settings: &ScoreSettings,
    scorer: &Scorer<'a>,
    merger: &mut Merger<'a, '_>,
) -> Result<(), TraceFileError> {
    let mut number = 0;
    let bytes = AtomicU64::new(0);
    let reading = ReadSettings {
        bytes: Some(&bytes),
        ..settings.reading()
    };
    for input in inputs {
        merger.begin(&input, scorer.redactor);
        let take = |step| {
            merger.step(step);
            merger.report_progress(bytes.load(Ordering::Relaxed));
        };
        match input {
            TraceInput::File(file) => fold_traces(&file, reading, scorer, &mut number, take)?,
            TraceInput::Stream { name, input, .. } => {
                fold_input(&name, input, reading, scorer, &mut number, take)?;
            }
            TraceInput::Rows { name, input } => {
                fold_rows(&name, input, reading, scorer, &mut number, take)?;
            }
        }
    }
    Ok(())
}

/// Scores the parts that `read` folds and adds, in order.
fn score_parts(
    suite: &Suite,
    settings: &ScoreSettings,
    redactor: &Redactor,
    sinks: ScoreSinks<'_>,
    read: impl for<'a> FnOnce(&Scorer<'a>, &mut Merger<'a, '_>) -> Result<(), TraceFileError>,
) -> Result<Scored, ScoreError> {
    let servers = suite.known_servers();
    let scorer = Scorer {
        rows: sinks.rows.is_some(),
        ..Scorer::new(suite, settings, &servers, redactor)?
    };
    let mut merger = Merger::new(sinks, settings.summary);
    read(&scorer, &mut merger)?;
    merger.check(&scorer)?;
    let broken = std::mem::take(&mut merger.broken);
    let cases = scorer.cases(suite, merger.groups())?;
    Ok(Scored { cases, broken })
}

/// The suite as scoring needs it.
pub(super) struct Scorer<'a> {
    pub tests: Tests<'a>,
    context: JudgeContext<'a>,
    servers: &'a KnownServers,
    /// True if the records of good runs are kept too.
    all_records: bool,
    /// True if there is no row for each run.
    summary: bool,
    /// True if the rows of traces are written on the way.
    rows: bool,
    redactor: &'a Redactor,
}

/// The result of a part of the traces.
pub(super) struct Part<'a> {
    number: u64,
    /// The number of traces.
    traces: u64,
    groups: Groups<'a>,
    /// The first trace without a test: its place and the test that it names.
    unmatched: Option<(u64, Option<String>)>,
    /// The records of the runs.
    records: Vec<u8>,
    rows: PartRows,
    stop_reasons: Vec<Arc<str>>,
}

/// The runs of one test and one model.
pub(super) struct Group<'a> {
    pub test: usize,
    pub model: Option<Arc<str>>,
    pub tally: CaseTally<'a>,
    pub totals: RunTotals,
    names: NameTally,
    /// The runs of a part.
    runs: Vec<ScoredRun>,
    /// The runs of all parts; only their keys, if there is only a summary.
    pub table: RunTable,
}

impl<'a> Group<'a> {
    pub fn new(test: usize, model: Option<Arc<str>>, tally: CaseTally<'a>) -> Self {
        Self {
            test,
            model,
            tally,
            totals: RunTotals::default(),
            names: NameTally::default(),
            runs: Vec::new(),
            table: RunTable::default(),
        }
    }

    /// Adds the runs of another group of the same test and model.
    pub fn merge(&mut self, other: Self) {
        self.tally.merge(other.tally);
        self.totals.merge(other.totals);
        self.names.merge(other.names);
        self.table.merge(other.table);
    }
}

/// Groups in the order of their first runs.
#[derive(Default)]
pub(super) struct Groups<'a> {
    list: Vec<Group<'a>>,
    places: HashMap<(usize, Option<Arc<str>>), usize>,
}

impl<'a> Fold for Scorer<'a> {
    type Part = Part<'a>;

    fn start(&self, number: u64) -> Part<'a> {
        Part {
            number,
            traces: 0,
            groups: Groups::default(),
            unmatched: None,
            records: Vec::new(),
            rows: PartRows::default(),
            stop_reasons: Vec::new(),
        }
    }

    fn needs_lines(&self) -> bool {
        self.rows
    }

    fn trace(&self, part: &mut Part<'a>, line: Option<usize>, trace: &mut TraceView<'_>) {
        let place = part.traces;
        part.traces += 1;
        let at = match self.tests.find(trace.test.as_deref()) {
            Match::Test(at) => at,
            Match::Direct => return,
            Match::None => {
                let named = || trace.test.as_deref().map(Into::into);
                part.unmatched.get_or_insert_with(|| (place, named()));
                return;
            }
        };
        if !self.tests.selected[at] {
            return;
        }
        trace.split_wire_names(self.servers);
        let trace = &*trace;
        let test = self.tests.all[at];
        let outcome = if self.all_records || self.rows {
            RunOutcome::of_agent(&self.context, test, trace)
        } else {
            RunOutcome::of_agent_unless_good(&self.context, test, trace)
        };
        let has_details = outcome.has_details();
        let is_good = outcome.facts.verdict == Verdict::Pass;
        let is_shown = !self.summary && (has_details || !is_good);
        let record = (self.all_records || is_shown).then(|| {
            let start = part.records.len() as u64;
            let nothing = Trace::default();
            let shown = match self.all_records || has_server_words(trace) {
                true => trace,
                false => &nothing,
            };
            encode_record(&outcome, shown, self.redactor, &mut part.records);
            start..part.records.len() as u64
        });
        let run = ScoredRun {
            index: 0,
            verdict: outcome.facts.verdict,
            error: outcome.facts.error,
            calls: u32::try_from(trace.tool_calls.len()).unwrap_or(u32::MAX),
            errors: u32::try_from(trace.failed_results()).unwrap_or(u32::MAX),
            tokens: trace.total_tokens(),
            stop_reason: part.stop_reason(trace),
            has_details,
            record,
            key: RunKey {
                key: provisional(trace.run, part.number, place),
                run: trace.run,
            },
        };
        if self.rows {
            let row = self.row(test, trace, &outcome, &run);
            part.rows.push(line, &row, self.redactor);
        }
        let model = trace.model.as_deref();
        let group = part
            .groups
            .get(at, model, || CaseTally::new(test, self.all_records));
        let gate_context = self.context.gate_context(&test.name, model);
        let tally = &mut group.tally;
        tally.observe(&gate_context, run.key.key, trace, &outcome.facts);
        let calls = (run.calls, run.errors);
        let totals = &mut group.totals;
        totals.add(run.verdict, run.error, calls, run.tokens);
        if !test.tool_names.is_empty() {
            group.names.observe(test, trace, self.servers);
        }
        group.runs.push(run);
    }
}

/// Returns true if a reporter may show words of servers beside the assertions of a run: the results
/// of failed calls and of an only call, and stderr. Other traces are shown only as a whole.
fn has_server_words(trace: &TraceView<'_>) -> bool {
    trace.tool_calls.len() == 1 || trace.failed_results() > 0 || trace.extra.raw("stderr").is_some()
}

impl Scorer<'_> {
    /// The row of a trace.
    fn row<'r>(
        &self,
        test: &'r AgentTest,
        trace: &'r TraceView<'_>,
        outcome: &'r RunOutcome,
        run: &ScoredRun,
    ) -> TraceRow<'r> {
        let model = trace.model.as_deref();
        let gate_context = self.context.gate_context(&test.name, model);
        let mut alone = CaseTally::new(test, false);
        alone.observe(&gate_context, 1, trace, &outcome.facts);
        TraceRow {
            test: &test.name,
            model,
            run: trace.run,
            verdict: run.verdict,
            error: outcome.error.as_ref(),
            calls: run.calls,
            errors: run.errors,
            tokens: run.tokens,
            assertions: &outcome.assertions,
            gates: figures(alone.finish(&self.context, test, &gate_context).gates),
        }
    }
}

impl Part<'_> {
    fn stop_reason(&mut self, trace: &TraceView<'_>) -> Option<Arc<str>> {
        let raw = trace.extra.raw("stop_reason")?;
        let reason = raw.plain_str().or_else(|| raw.value().as_str())?;
        if let Some(known) = self
            .stop_reasons
            .iter()
            .find(|known| known.as_ref() == reason)
        {
            return Some(Arc::clone(known));
        }
        let new: Arc<str> = reason.into();
        self.stop_reasons.push(Arc::clone(&new));
        Some(new)
    }
}

impl<'a> Groups<'a> {
    /// The group of a test and a model, which is added if it is new.
    fn get(
        &mut self,
        test: usize,
        model: Option<&str>,
        tally: impl FnOnce() -> CaseTally<'a>,
    ) -> &mut Group<'a> {
        // The traces of a file mostly follow each other in groups.
        let is_it = |group: &Group<'_>| group.test == test && group.model.as_deref() == model;
        let place = match self.list.last().is_some_and(is_it) {
            true => self.list.len() - 1,
            false => {
                let model: Option<Arc<str>> = model.map(Into::into);
                let new = self.list.len();
                let place = *self.places.entry((test, model.clone())).or_insert(new);
                if place == new {
                    self.list.push(Group::new(test, model, tally()));
                }
                place
            }
        };
        &mut self.list[place]
    }

    /// Adds the groups of later traces.
    fn merge(&mut self, later: Self) {
        for group in later.list {
            let key = (group.test, group.model.clone());
            match self.places.get(&key) {
                Some(place) => self.list[*place].merge(group),
                None => self.push(group),
            }
        }
    }

    /// Adds a group that is new.
    pub fn push(&mut self, group: Group<'a>) {
        let key = (group.test, group.model.clone());
        self.places.insert(key, self.list.len());
        self.list.push(group);
    }

    /// The groups, in their order.
    pub fn into_list(self) -> impl Iterator<Item = Group<'a>> {
        self.list.into_iter()
    }
}

/// Merges the parts of the traces, in their order.
pub(super) struct Merger<'a, 's> {
    sinks: ScoreSinks<'s>,
    /// Groups of neighbouring parts, with the number of parts in each. Merging equals, as a binary
    /// counter does, keeps the sum of all merges small.
    pending: Vec<(u64, Groups<'a>)>,
    /// The runs of each test and model.
    tables: HashMap<(usize, Option<Arc<str>>), RunTable>,
    /// True if only the keys of runs are kept.
    summary: bool,
    /// The number of traces.
    traces: u64,
    /// The first trace without a test: its position and the test that it names.
    unmatched: Option<(u64, Option<String>)>,
    /// The first error of a destination.
    sink_error: Option<ScoreError>,
    /// The name of the input, as JSON; empty if no rows are written.
    file: String,
    pub broken: BrokenLines,
    /// The names of the inputs.
    pub sources: Vec<String>,
    /// The parts: number, input, and the number of traces of the input before it.
    pub parts: Vec<(u64, u32, u64)>,
    /// The number of traces of the input so far.
    in_source: u64,
}

impl<'a, 's> Merger<'a, 's> {
    pub fn new(sinks: ScoreSinks<'s>, summary: bool) -> Self {
        Self {
            sinks,
            pending: Vec::new(),
            tables: HashMap::new(),
            summary,
            traces: 0,
            unmatched: None,
            sink_error: None,
            file: String::new(),
            broken: BrokenLines::default(),
            sources: Vec::new(),
            parts: Vec::new(),
            in_source: 0,
        }
    }

    /// Begins an input.
    fn begin(&mut self, input: &TraceInput<'_>, redactor: &Redactor) {
        let (name, first) = match input {
            TraceInput::File(file) => (file.display().to_string(), 0),
            TraceInput::Stream { name, first, .. } => (name.clone(), *first),
            TraceInput::Rows { name, .. } => (name.clone(), 0),
        };
        if self.sinks.rows.is_some() {
            self.file = serde_json::Value::from(redactor.text(&name)).to_string();
        }
        self.sources.push(name);
        self.in_source = first;
    }

    fn report_progress(&mut self, bytes: u64) {
        let traces = self.traces;
        if let Some(progress) = &mut self.sinks.progress {
            progress(ScoreProgress { traces, bytes });
        }
    }

    /// Returns the error that was found while parts were added.
    pub fn check(&mut self, scorer: &Scorer<'_>) -> Result<(), ScoreError> {
        if let Some((position, named)) = self.unmatched.take() {
            return Err(scorer.tests.unmatched(position, named.as_deref()));
        }
        self.sink_error.take().map_or(Ok(()), Err)
    }

    fn step(&mut self, step: Step<Part<'a>>) {
        match step {
            Step::Part(part, line) => self.add(part, line),
            Step::Broken(line) => self.broken.add(line),
        }
    }

    /// Adds a part. `line` is the number of lines of the input before it.
    fn add(&mut self, mut part: Part<'a>, line: usize) {
        if let (None, Some((place, named))) = (&self.unmatched, part.unmatched) {
            self.unmatched = Some((self.traces + place, named));
        }
        self.traces += part.traces;
        let source = self.sources.len().saturating_sub(1);
        let source = u32::try_from(source).unwrap_or(u32::MAX);
        self.parts.push((part.number, source, self.in_source));
        self.in_source += part.traces;
        // Reading continues after an error, because a damaged file is reported before it.
        if self.unmatched.is_some() || self.sink_error.is_some() {
            return;
        }
        if let Some(rows) = &mut self.sinks.rows
            && let Err(error) = rows(&part.rows.lines(&self.file, line))
        {
            self.sink_error = Some(ScoreError::Rows(error));
            return;
        }
        let offset = match self.place_records(&part.records) {
            Ok(offset) => offset,
            Err(error) => {
                self.sink_error = Some(ScoreError::Store(error));
                return;
            }
        };
        for group in &mut part.groups.list {
            let key = (group.test, group.model.clone());
            let table = self.tables.entry(key).or_default();
            for mut run in group.runs.drain(..) {
                if self.summary {
                    table.push_key(run.key);
                    continue;
                }
                if let Some(record) = &mut run.record {
                    *record = record.start + offset..record.end + offset;
                }
                table.push(&run);
            }
        }
        let (mut parts, mut groups) = (1, part.groups);
        while let Some((_, mut earlier)) = self.pending.pop_if(|(before, _)| *before <= parts) {
            parts *= 2;
            earlier.merge(groups);
            groups = earlier;
        }
        self.pending.push((parts, groups));
    }

    fn place_records(&mut self, records: &[u8]) -> io::Result<u64> {
        if records.is_empty() {
            return Ok(0);
        }
        (self.sinks.store)(records)
    }

    pub fn groups(mut self) -> Groups<'a> {
        let mut pending = self.pending.into_iter().map(|(_, groups)| groups);
        let mut all = pending.next().unwrap_or_default();
        pending.for_each(|groups| all.merge(groups));
        for group in &mut all.list {
            let key = (group.test, group.model.clone());
            group.table = self.tables.remove(&key).unwrap_or_default();
        }
        all
    }
}

impl<'a> Scorer<'a> {
    pub fn new(
        suite: &'a Suite,
        settings: &ScoreSettings,
        servers: &'a KnownServers,
        redactor: &'a Redactor,
    ) -> Result<Self, ScoreError> {
        Ok(Self {
            tests: Tests::new(suite, settings)?,
            context: JudgeContext {
                servers,
                prices: &suite.prices,
                no_evidence: suite.options.no_evidence,
                judges: !settings.no_judges,
            },
            servers,
            all_records: settings.all_records,
            summary: settings.summary,
            rows: false,
            redactor,
        })
    }

    /// Judges the groups, in the order of the suite.
    pub fn cases(&self, suite: &Suite, groups: Groups<'a>) -> Result<Vec<ScoredCase>, ScoreError> {
        let mut by_test: Vec<Vec<Group<'a>>> = self.tests.all.iter().map(|_| Vec::new()).collect();
        for group in groups.list {
            by_test[group.test].push(group);
        }
        let mut cases = Vec::new();
        for (at, mut groups) in by_test.into_iter().enumerate() {
            if !self.tests.selected[at] {
                continue;
            }
            if groups.is_empty() {
                let tally = CaseTally::new(self.tests.all[at], self.all_records);
                groups.push(Group::new(at, None, tally));
            }
            let test = self.tests.all[at];
            groups.sort_by(|one, other| {
                let (one, other) = (one.model.as_deref(), other.model.as_deref());
                model_order(test, one).cmp(&model_order(test, other))
            });
            let several_models = groups.len() > 1;
            let mut names = NameTally::default();
            let first = cases.len();
            for mut group in groups {
                names.merge(std::mem::take(&mut group.names));
                cases.push(self.case(suite, group, several_models));
            }
            cases[first].warnings = names.warnings(self.tests.all[at]);
        }
        if cases.is_empty() {
            let filtered = !self.tests.all.is_empty();
            return Err(ScoreError::NothingToScore { filtered });
        }
        Ok(cases)
    }

    fn case(&self, suite: &Suite, group: Group<'a>, several_models: bool) -> ScoredCase {
        let test = self.tests.all[group.test];
        let model = group.model.as_deref();
        let label = plan::label(&test.name, model, several_models);
        let Group {
            mut tally,
            table,
            totals,
            ..
        } = group;
        let (runs, numbers) = table.number();
        tally.renumber(&|key| numbers.of(key));
        drop(numbers);
        let runs = match self.summary {
            true => ScoredRuns::default(),
            false => runs,
        };
        let gate_context = self.context.gate_context(&label, model);
        let mut judged = tally.finish(&self.context, test, &gate_context);
        if self.summary {
            for gate in &mut judged.gates {
                gate.detail = gate.detail.without_key("per_run");
            }
        }
        ScoredCase {
            totals,
            id: CaseId {
                suite: suite.name.clone(),
                name: test.name.clone(),
                model: model.map(Into::into),
            },
            kind: Kind::Agent,
            tags: test.tags.clone(),
            verdict: judged.verdict,
            gates: judged.gates,
            no_evidence: judged.no_evidence,
            label,
            runs,
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
