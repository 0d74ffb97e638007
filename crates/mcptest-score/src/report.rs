//! The report of scored traces.

use std::sync::Arc;

use mcptest_events::CaseId;
use mcptest_events::log::{CleanCheck, redact_json};
use mcptest_redact::redact::Redactor;
use mcptest_report::{Report, RunRow, RunStore, ScoredRow, TestReport};
use mcptest_runner::{BrokenLine, BrokenLines, Scored, ScoredCase, ScoredRun};
use mcptest_trace::detail::Detail;
use mcptest_trace::outcome::GateOutcome;
use mcptest_yaml::Diagnostic;
use serde_json::Map;

/// The report of scored traces and the warnings about them, without secrets. `store` has the
/// records of the runs.
#[must_use]
pub fn report_of(
    scored: Scored,
    store: RunStore,
    summary: bool,
    redactor: &Redactor,
) -> (Report, Vec<Diagnostic>) {
    let Scored { cases, broken, .. } = scored;
    let warnings = cases.iter().flat_map(|case| case.warnings.iter().cloned());
    let warnings = warnings.map(|warning| warning.map_text(|text| redactor.text(text)));
    let warnings = warnings.collect();
    let store = Arc::new(store);
    let tests = cases
        .into_iter()
        .map(|case| test_report(case, &store, summary, redactor));
    let report = Report::conclude(tests.collect(), false);
    (
        report.with_broken_lines(broken_lines(broken, redactor)),
        warnings,
    )
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
fn test_report(
    case: ScoredCase,
    store: &Arc<RunStore>,
    summary: bool,
    redactor: &Redactor,
) -> TestReport {
    let label = redactor.text(&case.label);
    let id = CaseId {
        suite: redactor.text(&case.id.suite),
        name: redactor.text(&case.id.name),
        model: case.id.model.as_deref().map(|model| redactor.text(model)),
    };
    let mut test = TestReport::new(id, case.kind, label, Arc::clone(store));
    test.tags = case.tags.iter().map(|tag| redactor.text(tag)).collect();
    test.verdict = case.verdict;
    for mut gate in case.gates {
        let lines = gate.status_lines.drain(..);
        test.status_lines
            .extend(lines.map(|line| redactor.text(&line)));
        test.gates.push(redacted(gate, redactor));
    }
    test.no_evidence = case.no_evidence;
    test.run_totals = summary.then_some(case.totals);
    let numbered = case.runs.len() > 1;
    test.runs = case.runs.iter().map(|run| row(&run, numbered)).collect();
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

/// Returns true if a gate's outcome has no secrets. Its detail may be large, so it is checked piece
/// by piece.
fn is_clean(gate: &GateOutcome, redactor: &Redactor) -> bool {
    let GateOutcome {
        values,
        detail,
        assertions,
        summary,
        findings,
        notes,
        advisories,
        no_evidence,
        ..
    } = gate;
    let mut check = CleanCheck::new(redactor);
    redactor.is_clean_in(&(
        values,
        assertions,
        summary,
        findings,
        notes,
        advisories,
        no_evidence,
    )) && detail.write_to(&mut check).is_ok()
        && check.finish()
}

/// A gate's outcome without secrets.
fn redacted(gate: GateOutcome, redactor: &Redactor) -> GateOutcome {
    if is_clean(&gate, redactor) {
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
        notes: gate.notes.iter().map(|it| redactor.text(it)).collect(),
        advisories: gate.advisories.iter().map(|it| redactor.text(it)).collect(),
        no_evidence: gate.no_evidence.as_deref().map(|it| redactor.text(it)),
        status_lines: Vec::new(),
        ..gate
    })
}
