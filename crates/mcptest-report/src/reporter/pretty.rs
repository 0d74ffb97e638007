//! `pretty`: for people. Readable without colour; a failure shows target, expected and actual.

mod assertion;
mod charts;
mod wrap;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use anstyle::Style as Paint;
use mcptest_events::{CaseId, Kind, Replayed, RunRecord, RunTotals, Spend};
use mcptest_json::text::{lines, one_line, shorten};
use mcptest_numbers::usd::Usd;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::{ErrorKind, RunError, Verdict};

use assertion::write_assertion;
use wrap::Wrap;

use super::terminal::{badge_word, colour, line, paint};
use super::{RenderError, Style, table};
use crate::complexity;
use crate::matrix::matrices;
use crate::report::{Report, TestReport};
use crate::row::{EarlyEnd, RunRow};
use crate::server_output::server_output;

/// The longest value shown in full, in characters.
const MAX_VALUE: usize = 240;
/// The mark of an opinion of a model, which decides nothing.
pub(super) const ADVISORY: &str = "judged, advisory: ";

/// The number of findings shown per gate; the JSON report has all of them.
const MAX_FINDINGS: usize = 20;
/// The number of tests listed as not run; the JSON report lists all.
const MAX_NOT_RUN: usize = 20;

pub(crate) fn render(
    report: &Report,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let Some(width) = style.width else {
        return write_report(report, style, out);
    };
    let mut wrap = Wrap::new(out, width);
    write_report(report, style, &mut wrap)?;
    Ok(wrap.finish()?)
}

fn write_report(report: &Report, style: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut suite = None;
    let mut shown = ShownErrors::default();
    for test in &report.tests {
        if suite != Some(&test.id.suite) {
            if suite.is_some() {
                writeln!(out)?;
            }
            let name = paint(style, Paint::new().bold(), &one_line(&test.id.suite));
            line(out, &name)?;
            suite = Some(&test.id.suite);
        }
        write_test(out, test, style, &mut shown)?;
    }
    for matrix in matrices(report) {
        writeln!(out)?;
        let head = format!("{} by model", one_line(matrix.suite));
        line(out, &paint(style, Paint::new().bold(), &head))?;
        table::write(out, &matrix, style)?;
    }
    write_by_complexity(out, report, style)?;
    write_list(out, "interrupted", interrupted_ids(report), style)?;
    write_list(out, "not run", report.not_run.iter(), style)?;
    write_broken_lines(out, report, style)?;
    writeln!(out)?;
    line(out, &totals(report, style))?;
    if let Some(spent) = spent(report) {
        line(out, &spent)?;
    }
    Ok(())
}

/// The tests that were started and interrupted.
pub(super) fn interrupted_ids(report: &Report) -> impl ExactSizeIterator<Item = &CaseId> + Clone {
    let interrupted = report.tests.iter().filter(|test| test.interrupted);
    let ids: Vec<&CaseId> = interrupted.map(|test| &test.id).collect();
    ids.into_iter()
}

/// The money spent on models. A replay spends nothing: its cost is that of the recording. A report
/// without the facts of its invocation (`--no-timing`) does not show if it was one.
pub(crate) fn spent_usd(spend: &Spend, replayed: Option<Replayed>, is_live: bool) -> String {
    let amount = |usd: Option<f64>| match usd.and_then(Usd::from_f64) {
        Some(usd) => usd.to_string(),
        None => "an unknown amount".to_owned(),
    };
    match replayed {
        Some(part) if part.requests >= spend.requests => {
            format!("the recording cost {}", amount(spend.usd))
        }
        Some(part) => {
            let live = spend.usd.zip(part.usd).and_then(|(all, part)| {
                let (all, part) = (Usd::from_f64(all)?, Usd::from_f64(part)?);
                let live = all.units().checked_sub(part.units())?;
                Some(Usd::from_units(live).to_f64())
            });
            format!(
                "spent {}, and the replayed part cost {} when it was recorded",
                amount(live),
                amount(part.usd)
            )
        }
        None if is_live => format!("spent {}", amount(spend.usd)),
        None => format!("cost {}", amount(spend.usd)),
    }
}

/// The cost of the models of a report, in a line.
pub(super) fn spent(report: &Report) -> Option<String> {
    let spend = report.spend.as_ref()?;
    let known =
        |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
    let money = spent_usd(spend, report.replayed, report.timing.is_some());
    let plural = if spend.requests == 1 { "" } else { "s" };
    Some(format!(
        "{money}: {} request{plural}, {} tokens read, {} written",
        spend.requests,
        known(spend.input_tokens),
        known(spend.output_tokens)
    ))
}

/// The row of a run, in the form that progress output also uses.
#[must_use]
pub fn row(verdict: Verdict, name: &str, style: Style) -> String {
    format!("  {}  {}", badge(verdict, style), one_line(name))
}

/// Writes the results of `distractors:` by complexity, if a test states one.
fn write_by_complexity(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let groups = complexity::groups(report);
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let head = paint(style, Paint::new().bold(), "distractors by complexity");
    line(out, &head)?;
    for group in groups {
        line(out, &format!("  {}", one_line(group.name())))?;
        for test in &group.tests {
            let label = one_line(&test.label());
            line(out, &format!("    {label}  {}", test.line()))?;
        }
    }
    Ok(())
}

/// Writes a list of tests that have no verdict.
fn write_list<'a>(
    out: &mut dyn Write,
    title: &str,
    ids: impl ExactSizeIterator<Item = &'a CaseId>,
    style: Style,
) -> io::Result<()> {
    let count = ids.len();
    if count == 0 {
        return Ok(());
    }
    writeln!(out)?;
    line(out, &paint(style, Paint::new().bold(), title))?;
    for id in ids.take(MAX_NOT_RUN) {
        line(out, &format!("  {}", one_line(&id.to_string())))?;
    }
    if count > MAX_NOT_RUN {
        line(out, &format!("  and {} more", count - MAX_NOT_RUN))?;
    }
    Ok(())
}

/// Writes the lines of trace files that were skipped.
fn write_broken_lines(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(broken) = &report.broken_lines else {
        return Ok(());
    };
    writeln!(out)?;
    line(out, &paint(style, Paint::new().bold(), &broken.words()))?;
    for place in &broken.first {
        line(out, &format!("  {}", one_line(&place.to_string())))?;
    }
    match broken.unlisted() {
        0 => Ok(()),
        more => line(out, &format!("  and {more} more")),
    }
}

/// Returns true if all runs of a test fit in one row: there are several, and all of them passed
/// without anything to add.
fn is_folded(test: &TestReport, style: Style) -> bool {
    !style.verbose && test.runs.len() > 1 && test.no_evidence.is_none() && test.runs.are_plain()
}

/// Writes the rows of a test and their details.
pub(super) fn write_test(
    out: &mut dyn Write,
    test: &TestReport,
    style: Style,
    shown: &mut ShownErrors,
) -> Result<(), RenderError> {
    let mut skipped = Skipped::default();
    let folded = is_folded(test, style);
    if folded {
        let name = format!("{} ×{}", test.label, test.runs.len());
        let facts = facts(test.kind, test.runs.totals(), None, style);
        line(out, &format!("{}{facts}", row(Verdict::Pass, &name, style)))?;
    }
    let mut runs = test.runs.iter().filter(|_| !folded).peekable();
    while let Some(run) = runs.next() {
        // A passing run of a test without expectations proves nothing.
        let verdict = match run.verdict() {
            Verdict::Pass if test.no_evidence.is_some() && !test.interrupted => test.verdict,
            verdict => verdict,
        };
        let mut name = test.row_name(&run);
        let mut totals = RunTotals::default();
        let mut count = |run: &RunRow| {
            let calls = (run.calls(), run.errors());
            totals.add(run.verdict(), run.error(), calls, run.tokens());
        };
        count(&run);
        let record = match run.has_details() {
            true => Some(test.details(&run)?),
            false => None,
        };
        // Runs that a cap kept from starting share a row, and those whose server did not start.
        let mut last = None;
        if let Some(record) = record.as_ref().filter(|record| is_shared(record, style)) {
            while let Some(next) = runs.peek().filter(|next| next.error() == run.error()) {
                let details = test.details(next)?;
                if details.error != record.error || !is_shared(&details, style) {
                    break;
                }
                count(next);
                last = runs.next();
            }
        }
        if let Some(last) = last {
            name = format!("{name} to #{}", last.index()).into();
        }
        let error = record.as_ref().and_then(|record| record.error.as_ref());
        let facts = match error.is_some_and(was_never_started) {
            true => String::new(),
            false => facts(test.kind, &totals, run.early_end(), style),
        };
        line(out, &format!("{}{facts}", row(verdict, &name, style)))?;
        if let Some(record) = &record {
            match shown.earlier(record, &name) {
                Some(earlier) => block(out, &earlier)?,
                None => write_details(out, record, style, &mut |title, said| {
                    shown.earlier_stderr(title, said, &name)
                })?,
            }
            skipped.add(record);
        }
    }
    for line in skipped.lines() {
        block(out, &line)?;
    }
    if let Some(saved) = test.saved_runs.filter(|saved| *saved > 0) {
        let made = test.runs.len();
        let text = format!(
            "decided after {made} of {} runs: {saved} saved",
            made.saturating_add(saved)
        );
        block(out, &paint(style, Paint::new().dimmed(), &text))?;
    }
    if let Some(chart) = charts::of_tokens(test, style) {
        block(out, &chart)?;
    }
    if test.is_undecided() {
        let why = test.no_evidence.as_deref().unwrap_or_default();
        let why = why.strip_prefix("interrupted: ").unwrap_or(why);
        let badge = paint(style, colour(test.verdict).bold(), "INTERRUPTED");
        let facts = paint(
            style,
            Paint::new().dimmed(),
            &format!("({})", one_line(why)),
        );
        line(
            out,
            &format!("  {badge}  {}  {facts}", one_line(&test.label)),
        )?;
    } else if let Some(totals) = test.run_totals.filter(|totals| totals.runs > 0) {
        write_totals(out, test, &totals, style)?;
    } else if test.runs.is_empty() && test.kind != Kind::ToolQuality {
        // The only row of a quality bar is that of its gate.
        line(out, &row(test.verdict, &test.label, style))?;
    }
    for gate in &test.gates {
        // If no run was completed, the errors above show why there is nothing to judge.
        if test.verdict == Verdict::Error && gate.verdict == Verdict::NoEvidence {
            continue;
        }
        // Figures of some of the runs look like those of all of them.
        if test.interrupted && gate.verdict == Verdict::NoEvidence {
            continue;
        }
        write_gate(out, test, gate, style)?;
    }
    match &test.no_evidence {
        Some(_) if test.is_undecided() => {}
        Some(why) if test.interrupted => block(out, &one_line(why))?,
        Some(why) => block(out, &format!("no evidence: {}", one_line(why)))?,
        None => {}
    }
    Ok(())
}

/// Writes the row of all runs of a test, in a summary.
fn write_totals(
    out: &mut dyn Write,
    test: &TestReport,
    totals: &RunTotals,
    style: Style,
) -> io::Result<()> {
    let verdict = match totals.worst() {
        Some(Verdict::Pass) if test.no_evidence.is_some() => test.verdict,
        worst => worst.unwrap_or(test.verdict),
    };
    let mut facts = Vec::new();
    if totals.passed < totals.runs {
        facts.push(format!("{} of {} runs passed", totals.passed, totals.runs));
        let others = [
            (totals.failed, "failed"),
            (totals.no_evidence, "without evidence"),
            (totals.errors, "with errors"),
        ];
        let others = others.iter().filter(|(count, _)| *count > 0);
        facts.extend(others.map(|(count, words)| format!("{count} {words}")));
    }
    facts.push(counted(totals.calls, "call"));
    if totals.failed_calls > 0 {
        facts.push(counted(totals.failed_calls, "error"));
    }
    if totals.runs_with_tokens == totals.runs {
        facts.push(format!("{} tokens", totals.tokens));
    }
    let name = match totals.runs {
        1 => test.label.clone(),
        runs => format!("{} ×{runs}", test.label),
    };
    let facts = format!("({})", facts.join(", "));
    let facts = paint(style, Paint::new().dimmed(), &facts);
    line(out, &format!("{}  {facts}", row(verdict, &name, style)))
}

/// Writes the error and the failed assertions of a run, and what its servers said.
pub(super) fn write_run_details(
    out: &mut dyn Write,
    run: &RunRecord,
    style: Style,
) -> io::Result<()> {
    write_details(out, run, style, &mut |_, _| None)
}

/// The same; `earlier` returns the line that replaces the output of a server that was shown.
fn write_details(
    out: &mut dyn Write,
    run: &RunRecord,
    style: Style,
    earlier: &mut dyn FnMut(&str, &[String]) -> Option<String>,
) -> io::Result<()> {
    if let Some(error) = &run.error {
        // The first line is the error, the second the title of the lines of stderr.
        let mut parts = error.message.splitn(3, '\n');
        let (what, title) = (parts.next().unwrap_or_default(), parts.next());
        let said: Vec<String> = parts.flat_map(str::lines).map(one_line).collect();
        let text = match title.and_then(|title| earlier(&one_line(title), &said)) {
            Some(earlier) => format!("{}\n{earlier}", lines(what)),
            None => lines(&error.message),
        };
        block(out, &format!("{}: {text}", error.kind.as_str()))?;
    }
    for assertion in run.assertions.iter().filter(|assertion| assertion.failed()) {
        write_assertion(out, assertion, style)?;
    }
    for (title, said) in server_output(run) {
        if let Some(earlier) = earlier(&title, &said) {
            block(out, &earlier)?;
            continue;
        }
        block(out, &title)?;
        for one in said {
            block(out, &format!("  {one}"))?;
        }
    }
    Ok(())
}

/// More errors than this are not remembered: a million traces may have one each.
const MAX_SHOWN_ERRORS: usize = 100;

/// The errors that were shown in full. A server that does not start is the error of all its tests,
/// with the same lines of its stderr; tests that share a server share the end of its stderr.
#[derive(Default)]
pub(super) struct ShownErrors {
    errors: HashMap<(ErrorKind, String), String>,
    stderr: HashMap<(String, Vec<String>), String>,
}

impl ShownErrors {
    /// A line that refers to the row that shows the same error of several lines, if there is one.
    fn earlier(&mut self, run: &RunRecord, row: &str) -> Option<String> {
        let error = run.error.as_ref()?;
        if !is_only_error(run) || !error.message.contains('\n') {
            return None;
        }
        let is_full = self.errors.len() >= MAX_SHOWN_ERRORS;
        match self.errors.entry((error.kind, error.message.clone())) {
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(place) => {
                place.insert(one_line(row));
                None
            }
            Entry::Occupied(first) => Some(format!(
                "{}: the same error as `{}` above",
                error.kind.as_str(),
                first.get()
            )),
        }
    }

    /// A line that refers to the row that shows the same lines of stderr, if there is one.
    fn earlier_stderr(&mut self, title: &str, said: &[String], row: &str) -> Option<String> {
        if !title.contains("stderr") || said.len() < 2 {
            return None;
        }
        let is_full = self.stderr.len() >= MAX_SHOWN_ERRORS;
        match self.stderr.entry((title.to_owned(), said.to_vec())) {
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(place) => {
                place.insert(one_line(row));
                None
            }
            Entry::Occupied(first) => {
                Some(format!("{title} the same as in `{}` above", first.get()))
            }
        }
    }
}

/// Returns true if a run and its neighbours with the same error share one row: nothing happened in
/// them that a separate row could show.
fn is_shared(run: &RunRecord, style: Style) -> bool {
    run.error.as_ref().is_some_and(|error| {
        was_never_started(error)
            || (!style.verbose && run.trace.tool_calls.is_empty() && is_only_error(run))
    })
}

/// Returns true if a run has nothing to show but its error.
fn is_only_error(run: &RunRecord) -> bool {
    run.assertions.is_empty() && server_output(run).is_empty()
}

fn was_never_started(error: &RunError) -> bool {
    error.kind == ErrorKind::Budget && error.message.starts_with("never started: ")
}

/// Assertions that were not applied, each with the number of runs.
#[derive(Default)]
struct Skipped(Vec<(String, usize)>);

impl Skipped {
    /// Counts the skipped assertions of a run. If a judge failed, the error of the run shows it.
    fn add(&mut self, run: &RunRecord) {
        if run.error.is_some() {
            return;
        }
        for assertion in &run.assertions {
            let Some(why) = &assertion.skipped else {
                continue;
            };
            let judged = if assertion.judged { " (judged)" } else { "" };
            let text = format!(
                "skipped: {}{judged}, {}",
                one_line(&assertion.target),
                one_line(why)
            );
            match self.0.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => self.0.push((text, 1)),
            }
        }
    }

    fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(text, count)| match count {
            1 => text,
            _ => format!("{text} ({count} runs)"),
        })
    }
}

/// The figures after the name of a run, or of several runs together.
fn facts(kind: Kind, totals: &RunTotals, end: Option<EarlyEnd>, style: Style) -> String {
    if kind != Kind::Agent {
        // A direct test makes one call. A passing one may expect an error.
        return String::new();
    }
    let mut facts = counted(totals.calls, "call");
    if totals.failed_calls > 0 {
        facts.push_str(&format!(", {}", counted(totals.failed_calls, "error")));
    }
    if totals.runs_with_tokens == totals.runs {
        facts.push_str(&format!(", {} tokens", totals.tokens));
    }
    if let Some(end) = end {
        facts.push_str(", ");
        facts.push_str(early_end(end));
    }
    let facts = paint(style, Paint::new().dimmed(), &format!("({facts})"));
    format!("  {facts}")
}

/// `1 call`, `2 calls`.
fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The reason why a run ended without an answer. Errors are shown below the row.
fn early_end(end: EarlyEnd) -> &'static str {
    match end {
        EarlyEnd::MaxTurns => "out of turns",
        EarlyEnd::MaxTokens => "cut off: out of tokens",
        EarlyEnd::Withheld => "the answer was withheld",
        EarlyEnd::MalformedCall => "ended with a call that cannot be read",
    }
}

fn write_gate(
    out: &mut dyn Write,
    test: &TestReport,
    gate: &GateOutcome,
    style: Style,
) -> io::Result<()> {
    let name = match test.kind {
        Kind::ToolQuality => test.label.clone(),
        Kind::Agent | Kind::Tool | Kind::Resource | Kind::Prompt => {
            format!("{}: {}", test.label, gate.block)
        }
    };
    let row = row(gate.verdict, &name, style);
    line(out, &format!("{row}  {}", one_line(summary(gate))))?;
    if let Some(chart) = charts::of_gate(gate) {
        block(out, &chart)?;
    }
    if let Some(why) = &gate.no_evidence {
        block(out, &format!("no evidence: {}", one_line(why)))?;
    }
    if gate.verdict == Verdict::Fail {
        for finding in gate.findings.iter().take(MAX_FINDINGS) {
            block(out, &shorten(&one_line(finding), 2 * MAX_VALUE))?;
        }
        let more = gate.findings.len().saturating_sub(MAX_FINDINGS) as u64 + gate.more_findings;
        if more > 0 {
            block(out, &format!("and {more} more"))?;
        }
        let failed = gate.assertions.iter().filter(|one| one.failed());
        for assertion in failed {
            write_assertion(out, assertion, style)?;
        }
    }
    for note in gate.notes.iter().filter(|_| style.verbose) {
        let note = shorten(&one_line(note), 2 * MAX_VALUE);
        block(out, &paint(style, Paint::new().dimmed(), &note))?;
    }
    for advisory in gate.advisories.iter().take(MAX_FINDINGS) {
        let advisory = shorten(&one_line(advisory), 2 * MAX_VALUE);
        block(out, &format!("{ADVISORY}{advisory}"))?;
    }
    if gate.advisories.len() > MAX_FINDINGS {
        let more = gate.advisories.len() - MAX_FINDINGS;
        block(out, &format!("{ADVISORY}and {more} more"))?;
    }
    Ok(())
}

/// The summary of a gate, without a finding that is listed below it.
fn summary(gate: &GateOutcome) -> &str {
    let listed = gate.findings.iter().take(MAX_FINDINGS);
    let mut listed = listed.filter(|_| gate.verdict == Verdict::Fail);
    let Some((rest, last)) = gate.summary.rsplit_once(" · ") else {
        return &gate.summary;
    };
    // The same finding, or one about the same sentence of the agent.
    let quoted = last.find('“').map(|start| &last[start..]);
    let is_listed = listed
        .any(|finding| last == finding || quoted.is_some_and(|quoted| finding.contains(quoted)));
    if is_listed { rest } else { &gate.summary }
}

fn totals(report: &Report, style: Style) -> String {
    paint(style, colour(report.verdict).bold(), &count_words(report))
}

/// `3 tests: 2 passed, 1 failed`.
pub(super) fn count_words(report: &Report) -> String {
    let parts = count_parts(&[
        (report.count(Verdict::Pass), "passed"),
        (report.count(Verdict::Fail), "failed"),
        (report.count(Verdict::NoEvidence), "without evidence"),
        (report.count(Verdict::Error), "with errors"),
        (report.count_interrupted(), "interrupted"),
        (report.not_run.len(), "not run"),
    ]);
    let total = report.tests.len();
    let plural = if total == 1 { "test" } else { "tests" };
    let time = report.timing.as_ref().filter(|_| report.is_timed());
    let time = time.map(|timing| format!(" in {}", duration(timing.duration_ms)));
    let interrupted = if report.interrupted {
        " (interrupted)"
    } else {
        ""
    };
    format!(
        "{total} {plural}: {parts}{}{interrupted}",
        time.unwrap_or_default()
    )
}

/// A duration in the unit that people would choose: `7 ms`, `1.2 s`, `3 min 5 s`.
pub(crate) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        _ => format!(
            "{} min {} s",
            milliseconds / 60_000,
            milliseconds % 60_000 / 1000
        ),
    }
}

/// The first count and all others that are not zero: `2 passed, 1 failed`.
pub(crate) fn count_parts(counts: &[(usize, &str)]) -> String {
    let shown = counts
        .iter()
        .enumerate()
        .filter(|(at, (count, _))| *at == 0 || *count > 0);
    let parts: Vec<String> = shown
        .map(|(_, (count, word))| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

fn badge(verdict: Verdict, style: Style) -> String {
    paint(style, colour(verdict).bold(), badge_word(verdict))
}

/// Writes the details below a row.
fn block(out: &mut dyn Write, text: &str) -> io::Result<()> {
    for part in text.lines() {
        line(out, &format!("         {part}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
