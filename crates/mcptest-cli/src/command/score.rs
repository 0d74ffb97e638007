//! `mcptest score`.

use std::path::PathBuf;
use std::sync::Arc;

use mcptest_events::CaseId;
use mcptest_events::log::redact_json;
use mcptest_report::{ExitCode, Redactor, Report, RunRow, RunStore, ScoredRow, Spool, TestReport};
use mcptest_runner::{
    BrokenLine, BrokenLines, Filter, ScoreSettings, Scored, ScoredCase, ScoredRun,
};
use mcptest_suite::Purpose;
use mcptest_trace::detail::Detail;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::trace::Trace;
use mcptest_yaml::Diagnostics;
use serde_json::Map;

use crate::cli::ScoreArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{secrets, suites};

pub fn score(args: &ScoreArgs, output: &Output) -> Result<ExitCode, Failure> {
    let reporters = output::reporters(&args.report)?;
    let loaded = suites::load_one(&args.traces.suite, Purpose::Score)?;
    suites::warn(&loaded.warnings, args.deny_warnings, output)?;
    let settings = ScoreSettings {
        test: args.traces.test.clone(),
        filter: Filter::from(&args.filter),
        no_judges: args.no_judges,
        // Other reporters show only what is wrong with a run.
        all_records: reporters.iter().any(|reporter| reporter.name == "json"),
        strict: args.strict,
        threads: args.threads,
    };
    let files = trace_files(&args.traces.trace)?;
    let redactor = secrets::redactor(loaded.suite.secrets.iter().cloned());
    let mut spool = Spool::new();
    let scored = mcptest_runner::score(&loaded.suite, &files, &settings, &redactor, &mut |text| {
        spool.append(text)
    })
    .map_err(|error| redactor.text(&error.to_string()))?;
    let Scored { cases, broken, .. } = scored;
    let broken = broken_lines(broken, &redactor);
    let warnings = cases.iter().flat_map(|case| case.warnings.iter().cloned());
    let warnings = warnings.map(|warning| warning.map_text(|text| redactor.text(text)));
    suites::warn(&Diagnostics(warnings.collect()), args.deny_warnings, output)?;
    let store = spool
        .into_store()
        .map_err(|error| format!("cannot store the records of runs: {error}"))?;
    let store = Arc::new(store);
    let tests = cases
        .into_iter()
        .map(|case| report_of(case, &store, &redactor));
    let report = Report::conclude(tests.collect(), false).with_broken_lines(broken);
    for line in report.tests.iter().flat_map(|test| &test.status_lines) {
        output.status(line);
    }
    output.report(&reporters, &report)?;
    Ok(report.exit_code)
}

/// The files that arguments name.
///
/// # Errors
/// A name without files.
pub fn trace_files(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    mcptest_runner::trace_files(arguments).map_err(|error| error.to_string())
}

/// The lines that were skipped, without secrets; `None` if there are none.
fn broken_lines(broken: BrokenLines, redactor: &Redactor) -> Option<mcptest_report::BrokenLines> {
    let place = |line: &BrokenLine| mcptest_report::BrokenLine {
        file: redactor.text(&line.file),
        line: line.line as u64,
        column: line.column.map(|column| column as u64),
        message: redactor.text(&line.message),
    };
    (broken.count > 0).then(|| mcptest_report::BrokenLines {
        count: broken.count,
        first: broken.first.iter().map(place).collect(),
    })
}

/// The report of a case, without secrets.
fn report_of(case: ScoredCase, store: &Arc<RunStore>, redactor: &Redactor) -> TestReport {
    let label = redactor.text(&case.label);
    let id = CaseId {
        suite: redactor.text(&case.id.suite),
        name: redactor.text(&case.id.name),
        model: case.id.model.as_deref().map(|model| redactor.text(model)),
    };
    let mut test = TestReport::new(id, case.kind, label, Arc::clone(store));
    test.verdict = case.verdict;
    for mut gate in case.gates {
        let lines = gate.status_lines.drain(..);
        test.status_lines
            .extend(lines.map(|line| redactor.text(&line)));
        test.gates.push(redacted(gate, redactor));
    }
    test.no_evidence = case.no_evidence;
    let numbered = case.runs.len() > 1;
    // By value: the rows take the place of the runs, which lowers the peak memory.
    test.runs = case
        .runs
        .into_iter()
        .map(|run| row(&run, numbered))
        .collect();
    test
}

fn row(run: &ScoredRun, numbered: bool) -> RunRow {
    let row = ScoredRow {
        index: run.index,
        numbered,
        verdict: run.verdict,
        error: run.error,
        calls: run.calls,
        errors: run.errors,
        tokens: run.tokens,
        stop_reason: run.stop_reason.as_deref(),
        has_details: run.has_details,
        record: run.record.clone(),
    };
    row.into()
}

/// A gate's outcome without secrets.
fn redacted(gate: GateOutcome, redactor: &Redactor) -> GateOutcome {
    if redactor.is_clean_in(&gate) {
        return gate;
    }
    let json = serde_json::to_string(&gate).unwrap_or_default();
    let clean = redact_json(&json, redactor).unwrap_or(json);
    serde_json::from_str(&clean).unwrap_or_else(|_| GateOutcome {
        // A secret is a word of the format: a gap in the report is better than a leak.
        values: Map::default(),
        detail: Detail::default(),
        assertions: Vec::new(),
        summary: redactor.text(&gate.summary),
        findings: gate.findings.iter().map(|it| redactor.text(it)).collect(),
        advisories: gate.advisories.iter().map(|it| redactor.text(it)).collect(),
        no_evidence: gate.no_evidence.as_deref().map(|it| redactor.text(it)),
        status_lines: Vec::new(),
        ..gate
    })
}

/// Reads the traces of all files, in their order.
///
/// # Errors
/// The first file that cannot be read or is not a trace file, with the place.
pub fn read_all(files: &[PathBuf]) -> Result<Vec<Trace>, String> {
    let mut traces = Vec::new();
    for file in &trace_files(files)? {
        traces.extend(mcptest_runner::read_traces(file).map_err(|error| error.to_string())?);
    }
    Ok(traces)
}
