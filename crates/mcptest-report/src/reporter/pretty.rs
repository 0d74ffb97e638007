//! `pretty`: for people. Readable without colour; a failure shows target, expected and actual.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Paint};
use mcptest_events::{Kind, RunRecord, Spend};
use mcptest_json::text::{lines, one_line, shorten};
use mcptest_numbers::usd::Usd;
use mcptest_trace::expect::Assertion;
use mcptest_trace::judged;
use mcptest_trace::matcher::Difference;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::{ErrorKind, RunError, Verdict};
use serde_json::Value;

use super::{RenderError, Style, table};
use crate::complexity;
use crate::line_diff;
use crate::matrix::matrices;
use crate::report::{EarlyEnd, Report, RunRow, TestReport};

/// The longest value shown in full, in characters.
const MAX_VALUE: usize = 240;
/// The largest number of lines of two strings that are compared line by line.
const MAX_DIFF_LINES: usize = 400;
/// The number of findings shown per gate; the JSON report has all of them.
const MAX_FINDINGS: usize = 20;
/// The number of tests listed as not run; the JSON report lists all.
const MAX_NOT_RUN: usize = 20;

pub(crate) fn render(
    report: &Report,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let mut suite = None;
    for test in &report.tests {
        if suite != Some(&test.id.suite) {
            if suite.is_some() {
                writeln!(out)?;
            }
            let name = paint(style, Paint::new().bold(), &one_line(&test.id.suite));
            line(out, &name)?;
            suite = Some(&test.id.suite);
        }
        write_test(out, test, style)?;
    }
    for matrix in matrices(report) {
        writeln!(out)?;
        let head = format!("{} by model", one_line(matrix.suite));
        line(out, &paint(style, Paint::new().bold(), &head))?;
        table::write(out, &matrix, style)?;
    }
    write_by_complexity(out, report, style)?;
    write_not_run(out, report, style)?;
    writeln!(out)?;
    line(out, &totals(report, style))?;
    if let Some(spend) = &report.spend {
        line(out, &spent(spend))?;
    }
    Ok(())
}

/// The money spent on models.
pub(crate) fn spent_usd(spend: &Spend) -> String {
    match spend.usd.and_then(Usd::from_f64) {
        Some(usd) => format!("spent {usd}"),
        None => "spent an unknown amount".to_owned(),
    }
}

/// The cost of the models, in a line.
pub(super) fn spent(spend: &Spend) -> String {
    let known =
        |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
    let money = spent_usd(spend);
    let plural = if spend.requests == 1 { "" } else { "s" };
    format!(
        "{money}: {} request{plural}, {} tokens read, {} written",
        spend.requests,
        known(spend.input_tokens),
        known(spend.output_tokens)
    )
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

fn write_not_run(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if report.not_run.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    line(out, &paint(style, Paint::new().bold(), "not run"))?;
    for id in report.not_run.iter().take(MAX_NOT_RUN) {
        line(out, &format!("  {}", one_line(&id.to_string())))?;
    }
    if report.not_run.len() > MAX_NOT_RUN {
        let more = report.not_run.len() - MAX_NOT_RUN;
        line(out, &format!("  and {more} more"))?;
    }
    Ok(())
}

/// Writes the rows of a test and their details.
pub(super) fn write_test(
    out: &mut dyn Write,
    test: &TestReport,
    style: Style,
) -> Result<(), RenderError> {
    let mut skipped = Skipped::default();
    let mut runs = test.runs.iter().peekable();
    while let Some(run) = runs.next() {
        // A passing run of a test without expectations proves nothing.
        let verdict = match run.verdict() {
            Verdict::Pass if test.no_evidence.is_some() => test.verdict,
            verdict => verdict,
        };
        let mut name = test.row_name(run);
        let mut facts = facts(test.kind, run, style);
        let record = match run.has_details() {
            true => Some(test.record(run)?),
            false => None,
        };
        let error = record.as_ref().and_then(|record| record.error.as_ref());
        if let Some(error) = error.filter(|error| was_never_started(error)) {
            // Runs that a cap kept from starting share one row.
            facts.clear();
            let mut last = None;
            while let Some(next) = runs.peek().filter(|next| next.error() == run.error()) {
                if test.record(next)?.error.as_ref() != Some(error) {
                    break;
                }
                last = runs.next();
            }
            if let Some(last) = last {
                name = format!("{name} to #{}", last.index()).into();
            }
        }
        line(out, &format!("{}{facts}", row(verdict, &name, style)))?;
        if let Some(record) = &record {
            write_run_details(out, record, style)?;
            skipped.add(record);
        }
    }
    for line in skipped.lines() {
        block(out, &line)?;
    }
    if let Some(saved) = test.saved_runs.filter(|saved| *saved > 0) {
        let made = test.runs.len() as u64;
        let text = format!(
            "decided after {made} of {} runs: {saved} saved",
            made.saturating_add(saved)
        );
        block(out, &paint(style, Paint::new().dimmed(), &text))?;
    }
    // The only row of a quality bar is that of its gate.
    if test.runs.is_empty() && test.kind != Kind::ToolQuality {
        line(out, &row(test.verdict, &test.label, style))?;
    }
    for gate in &test.gates {
        // If no run was completed, the errors above show why there is nothing to judge.
        if test.verdict == Verdict::Error && gate.verdict == Verdict::NoEvidence {
            continue;
        }
        write_gate(out, test, gate, style)?;
    }
    if let Some(why) = &test.no_evidence {
        block(out, &format!("no evidence: {}", one_line(why)))?;
    }
    Ok(())
}

/// Writes the error and the failed assertions of a run.
pub(super) fn write_run_details(
    out: &mut dyn Write,
    run: &RunRecord,
    style: Style,
) -> io::Result<()> {
    if let Some(error) = &run.error {
        let text = format!("{}: {}", error.kind.as_str(), lines(&error.message));
        block(out, &text)?;
    }
    for assertion in run.assertions.iter().filter(|assertion| assertion.failed()) {
        write_assertion(out, assertion, style)?;
    }
    Ok(())
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

/// The figures after a run's name.
fn facts(kind: Kind, run: &RunRow, style: Style) -> String {
    if kind != Kind::Agent {
        return String::new();
    }
    let calls = run.calls();
    let plural = if calls == 1 { "" } else { "s" };
    let mut facts = format!("{calls} call{plural}");
    if let Some(tokens) = run.tokens() {
        facts.push_str(&format!(", {tokens} tokens"));
    }
    if let Some(end) = run.early_end() {
        facts.push_str(", ");
        facts.push_str(early_end(end));
    }
    let facts = paint(style, Paint::new().dimmed(), &format!("({facts})"));
    format!("  {facts}")
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
        Kind::Agent | Kind::Tool => format!("{}: {}", test.label, gate.block),
    };
    let row = row(gate.verdict, &name, style);
    line(out, &format!("{row}  {}", one_line(&gate.summary)))?;
    if let Some(why) = &gate.no_evidence {
        block(out, &format!("no evidence: {}", one_line(why)))?;
    }
    if gate.verdict == Verdict::Fail {
        for finding in gate.findings.iter().take(MAX_FINDINGS) {
            block(out, &shorten(&one_line(finding), 2 * MAX_VALUE))?;
        }
        if gate.findings.len() > MAX_FINDINGS {
            let more = gate.findings.len() - MAX_FINDINGS;
            block(out, &format!("and {more} more"))?;
        }
        let failed = gate.assertions.iter().filter(|one| one.failed());
        for assertion in failed {
            write_assertion(out, assertion, style)?;
        }
    }
    Ok(())
}

fn write_assertion(out: &mut dyn Write, assertion: &Assertion, style: Style) -> io::Result<()> {
    let default = if assertion.default {
        "  (the default)"
    } else {
        ""
    };
    let judged = if assertion.judged { "  (judged)" } else { "" };
    let target = paint(style, Paint::new().bold(), &one_line(&assertion.target));
    block(out, &format!("{target}{default}{judged}"))?;
    block(out, &format!("  expected  {}", matcher(&assertion.matcher)))?;
    block(out, &format!("  actual    {}", value(&assertion.actual)))?;
    // Expected and actual already show that values differ.
    let reason = assertion.reason.as_ref();
    if let Some(reason) = reason.filter(|reason| *reason != "the values differ") {
        block(out, &format!("  because   {}", one_line(reason)))?;
    }
    for difference in &assertion.diff {
        if let Some(lines) = line_diff(difference) {
            block(out, &format!("  at {}", one_line(&difference.pointer)))?;
            for line in lines {
                block(out, &format!("    {line}"))?;
            }
            continue;
        }
        let side = |side: &Option<Value>| side.as_ref().map_or_else(|| "nothing".to_owned(), value);
        let text = format!(
            "  at {}  expected {}, actual {}",
            one_line(&difference.pointer),
            side(&difference.expected),
            side(&difference.actual)
        );
        block(out, &text)?;
    }
    Ok(())
}

/// The line diff of two strings with several lines. Very long strings are shown by their beginnings
/// instead.
fn line_diff(difference: &Difference) -> Option<Vec<String>> {
    let (Some(Value::String(expected)), Some(Value::String(actual))) =
        (&difference.expected, &difference.actual)
    else {
        return None;
    };
    let count = |text: &str| text.lines().count();
    let several = count(expected) > 1 || count(actual) > 1;
    if !several || count(expected) + count(actual) > MAX_DIFF_LINES {
        return None;
    }
    let hunks = line_diff::hunks(expected, actual);
    let lines = hunks.lines();
    let lines: Vec<String> = lines
        .map(|line| shorten(&one_line(line), MAX_VALUE))
        .collect();
    (!lines.is_empty()).then_some(lines)
}

fn matcher(written: &Value) -> String {
    match written {
        Value::Object(map) => {
            let rules: Vec<String> = map
                .iter()
                .map(|(key, rule)| {
                    let shown = if judged::KEYS.contains(&key.as_str()) {
                        value(&without_scripts(rule))
                    } else {
                        value(rule)
                    };
                    format!("{} {shown}", one_line(key))
                })
                .collect();
            rules.join(" and ")
        }
        other => value(other),
    }
}

/// A judged matcher without the scripted answers of its built-in judges.
fn without_scripts(rule: &Value) -> Value {
    let mut rule = rule.clone();
    let short = |judge: &mut Value| {
        if let Some(script) = judge.get_mut("script") {
            *script = "…".into();
        }
    };
    short(&mut rule);
    if let Some(Value::Array(models)) = rule.get_mut("models") {
        models.iter_mut().for_each(short);
    }
    rule
}

fn value(value: &Value) -> String {
    shorten(&one_line(&value.to_string()), MAX_VALUE)
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
        (report.not_run.len(), "not run"),
    ]);
    let total = report.tests.len();
    let plural = if total == 1 { "test" } else { "tests" };
    let interrupted = if report.interrupted {
        " (interrupted)"
    } else {
        ""
    };
    format!("{total} {plural}: {parts}{interrupted}")
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

pub(super) fn badge_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS ",
        Verdict::Fail => "FAIL ",
        Verdict::NoEvidence => "NONE ",
        Verdict::Error => "ERROR",
    }
}

pub(crate) fn colour(verdict: Verdict) -> Paint {
    let colour = match verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::Fail => AnsiColor::Red,
        Verdict::NoEvidence => AnsiColor::Yellow,
        Verdict::Error => AnsiColor::Magenta,
    };
    Paint::new().fg_color(Some(colour.into()))
}

pub(crate) fn paint(style: Style, paint: Paint, text: &str) -> String {
    if style.colour {
        format!("{paint}{text}{paint:#}")
    } else {
        text.to_owned()
    }
}

/// Writes the details below a row.
fn block(out: &mut dyn Write, text: &str) -> io::Result<()> {
    for part in text.lines() {
        line(out, &format!("         {part}"))?;
    }
    Ok(())
}

pub(crate) fn line(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "{}", text.trim_end())
}
