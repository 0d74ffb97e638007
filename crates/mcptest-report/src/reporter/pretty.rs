//! `pretty`: for people. Readable without colour; a failure says what, where, expected and actual.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style as Paint};
use mcptest_json::text::{lines, one_line, shorten};
use mcptest_numbers::usd::Usd;
use mcptest_trace::expect::Assertion;
use mcptest_trace::judged;
use mcptest_trace::matcher::Difference;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, Verdict};
use serde_json::Value;

use super::{Style, table};
use crate::doctor::unified_diff;
use crate::matrix::matrices;
use crate::model::{Kind, Report, RunReport, Spend, TestReport};

/// Longest value shown in full.
const WIDEST: usize = 240;
/// Most lines of two texts that are held against each other line by line.
const MOST_LINES: usize = 400;
/// Findings of one gate that are shown; the JSON report has all of them.
const MOST_FINDINGS: usize = 20;
/// Tests that were not run and are named; the JSON report names all.
const MOST_NOT_RUN: usize = 20;

pub(crate) fn render(report: &Report, style: Style) -> String {
    let mut out = String::new();
    let mut suite = None;
    for test in &report.tests {
        if suite != Some(&test.suite) {
            if suite.is_some() {
                out.push('\n');
            }
            line(
                &mut out,
                &paint(style, Paint::new().bold(), &one_line(&test.suite)),
            );
            suite = Some(&test.suite);
        }
        write_test(&mut out, test, style);
    }
    for matrix in matrices(report) {
        out.push('\n');
        let head = format!("{} by model", one_line(matrix.suite));
        line(&mut out, &paint(style, Paint::new().bold(), &head));
        table::write(&mut out, &matrix, style);
    }
    write_not_run(&mut out, report, style);
    out.push('\n');
    line(&mut out, &totals(report, style));
    if let Some(spend) = &report.spend {
        line(&mut out, &spent(spend));
    }
    out
}

/// What the models cost, in a line.
pub(super) fn spent(spend: &Spend) -> String {
    let known =
        |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
    let money = match spend.usd.and_then(Usd::from_f64) {
        Some(usd) => format!("spent {usd}"),
        None => "spent an unknown amount".to_owned(),
    };
    let plural = if spend.requests == 1 { "" } else { "s" };
    format!(
        "{money}: {} request{plural}, {} tokens read, {} written",
        spend.requests,
        known(spend.input_tokens),
        known(spend.output_tokens)
    )
}

/// A run's row, as it is also shown while the work goes on.
#[must_use]
pub fn row(verdict: Verdict, name: &str, style: Style) -> String {
    format!("  {}  {}", badge(verdict, style), one_line(name))
}

fn write_not_run(out: &mut String, report: &Report, style: Style) {
    if report.not_run.is_empty() {
        return;
    }
    out.push('\n');
    line(out, &paint(style, Paint::new().bold(), "not run"));
    for id in report.not_run.iter().take(MOST_NOT_RUN) {
        line(out, &format!("  {}", one_line(&id.to_string())));
    }
    if report.not_run.len() > MOST_NOT_RUN {
        line(
            out,
            &format!("  and {} more", report.not_run.len() - MOST_NOT_RUN),
        );
    }
}

/// The rows of a test and what they have to say.
pub(super) fn write_test(out: &mut String, test: &TestReport, style: Style) {
    for runs in rows(&test.runs) {
        let [run, ..] = runs else { continue };
        // A run of a test that expects nothing has kept nothing.
        let verdict = match run.verdict {
            Verdict::Pass if test.no_evidence.is_some() => test.verdict,
            verdict => verdict,
        };
        let name = match runs {
            [_, .., last] => format!("{} to #{}", run.name, last.index),
            _ => run.name.clone(),
        };
        let facts = if is_never_started(run) {
            String::new()
        } else {
            facts(test.kind, run, style)
        };
        line(out, &format!("{}{facts}", row(verdict, &name, style)));
        write_run_details(out, run, style);
    }
    for skipped in skipped(&test.runs) {
        block(out, &skipped);
    }
    if let Some(saved) = test.saved_runs.filter(|saved| *saved > 0) {
        let made = test.runs.len() as u64;
        let text = format!(
            "decided after {made} of {} runs: {saved} saved",
            made + saved
        );
        block(out, &paint(style, Paint::new().dimmed(), &text));
    }
    // A quality bar is one row: its gate's.
    if test.runs.is_empty() && test.kind != Kind::ToolQuality {
        line(out, &row(test.verdict, &test.label, style));
    }
    for gate in &test.gates {
        // Where no run was carried through, the errors above say why there is nothing to judge.
        if test.verdict == Verdict::Error && gate.verdict == Verdict::NoEvidence {
            continue;
        }
        write_gate(out, test, gate, style);
    }
    if let Some(why) = &test.no_evidence {
        block(out, &format!("no evidence: {}", one_line(why)));
    }
}

/// What stands below a run's row.
pub(super) fn write_run_details(out: &mut String, run: &RunReport, style: Style) {
    if let Some(error) = &run.error {
        block(
            out,
            &format!("{}: {}", error.kind.as_str(), lines(&error.message)),
        );
    }
    for assertion in run.assertions.iter().filter(|assertion| assertion.failed()) {
        write_assertion(out, assertion, style);
    }
}

/// Runs that a cap kept from being started share a row; every other run has its own.
fn rows(runs: &[RunReport]) -> impl Iterator<Item = &[RunReport]> {
    runs.chunk_by(|one, next| is_never_started(one) && one.error == next.error)
}

fn is_never_started(run: &RunReport) -> bool {
    run.error.as_ref().is_some_and(|error| {
        error.kind == ErrorKind::Budget && error.message.starts_with("never started: ")
    })
}

/// Assertions that were not applied, each told once, with how many runs it concerns. Where a judge
/// broke, the run's error says so.
fn skipped(runs: &[RunReport]) -> Vec<String> {
    let mut told: Vec<(String, usize)> = Vec::new();
    for run in runs.iter().filter(|run| run.error.is_none()) {
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
            match told.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => told.push((text, 1)),
            }
        }
    }
    told.into_iter()
        .map(|(text, count)| {
            if count == 1 {
                text
            } else {
                format!("{text} ({count} runs)")
            }
        })
        .collect()
}

/// What a row tells besides its name.
fn facts(kind: Kind, run: &RunReport, style: Style) -> String {
    let text = match kind {
        Kind::Tool | Kind::ToolQuality => return String::new(),
        Kind::Agent => {
            let calls = run.trace.tool_calls.len();
            let plural = if calls == 1 { "" } else { "s" };
            let mut facts = vec![format!("{calls} call{plural}")];
            facts.extend(
                run.trace
                    .total_tokens()
                    .map(|tokens| format!("{tokens} tokens")),
            );
            facts.extend(early_end(&run.trace).map(str::to_owned));
            facts.join(", ")
        }
    };
    format!(
        "  {}",
        paint(style, Paint::new().dimmed(), &format!("({text})"))
    )
}

/// Why a run ended without an answer, where the agent did not end it by itself. An error is told
/// below its row.
fn early_end(trace: &Trace) -> Option<&'static str> {
    match trace.extra.get("stop_reason")?.as_str()? {
        "max_turns" => Some("out of turns"),
        "max_tokens" => Some("cut off: out of tokens"),
        "withheld" => Some("the answer was withheld"),
        "malformed_call" => Some("ended with a call that cannot be read"),
        _ => None,
    }
}

fn write_gate(out: &mut String, test: &TestReport, gate: &GateOutcome, style: Style) {
    let name = match test.kind {
        Kind::ToolQuality => test.label.clone(),
        Kind::Agent | Kind::Tool => format!("{}: {}", test.label, gate.block),
    };
    let row = row(gate.verdict, &name, style);
    line(out, &format!("{row}  {}", one_line(&gate.summary)));
    if let Some(why) = &gate.no_evidence {
        block(out, &format!("no evidence: {}", one_line(why)));
    }
    if gate.verdict == Verdict::Fail {
        for finding in gate.findings.iter().take(MOST_FINDINGS) {
            block(out, &shorten(&one_line(finding), 2 * WIDEST));
        }
        if gate.findings.len() > MOST_FINDINGS {
            block(
                out,
                &format!("and {} more", gate.findings.len() - MOST_FINDINGS),
            );
        }
        for assertion in gate
            .assertions
            .iter()
            .filter(|assertion| assertion.failed())
        {
            write_assertion(out, assertion, style);
        }
    }
}

fn write_assertion(out: &mut String, assertion: &Assertion, style: Style) {
    let default = if assertion.default {
        "  (the default)"
    } else {
        ""
    };
    let judged = if assertion.judged { "  (judged)" } else { "" };
    block(
        out,
        &format!(
            "{}{default}{judged}",
            paint(style, Paint::new().bold(), &one_line(&assertion.target))
        ),
    );
    block(out, &format!("  expected  {}", matcher(&assertion.matcher)));
    block(out, &format!("  actual    {}", value(&assertion.actual)));
    // Expected and actual say it already.
    if let Some(reason) = assertion
        .reason
        .as_ref()
        .filter(|reason| *reason != "the values differ")
    {
        block(out, &format!("  because   {}", one_line(reason)));
    }
    for difference in &assertion.diff {
        if let Some(lines) = line_diff(difference) {
            block(out, &format!("  at {}", one_line(&difference.pointer)));
            for line in lines {
                block(out, &format!("    {line}"));
            }
            continue;
        }
        let side = |side: &Option<Value>| side.as_ref().map_or_else(|| "nothing".to_owned(), value);
        block(
            out,
            &format!(
                "  at {}  expected {}, actual {}",
                one_line(&difference.pointer),
                side(&difference.expected),
                side(&difference.actual)
            ),
        );
    }
}

/// Two texts of several lines, held against each other line by line. Very long ones are not: their
/// beginnings have to do.
fn line_diff(difference: &Difference) -> Option<Vec<String>> {
    let (Some(Value::String(expected)), Some(Value::String(actual))) =
        (&difference.expected, &difference.actual)
    else {
        return None;
    };
    let lines = |text: &str| text.lines().count();
    let several = lines(expected) > 1 || lines(actual) > 1;
    if !several || lines(expected) + lines(actual) > MOST_LINES {
        return None;
    }
    let diff = unified_diff("", "", expected, actual);
    // The first two lines would name files.
    Some(
        diff.lines()
            .skip(2)
            .map(|line| shorten(&one_line(line), WIDEST))
            .collect(),
    )
    .filter(|lines: &Vec<String>| !lines.is_empty())
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

/// A judged matcher without what its built-in judges answer: a person wants the rubric and the bar.
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
    shorten(&one_line(&value.to_string()), WIDEST)
}

fn totals(report: &Report, style: Style) -> String {
    paint(style, colour(report.verdict).bold(), &count_words(report))
}

/// `3 tests: 2 passed, 1 failed`.
pub(super) fn count_words(report: &Report) -> String {
    let mut parts = Vec::new();
    for (verdict, word) in [
        (Verdict::Pass, "passed"),
        (Verdict::Fail, "failed"),
        (Verdict::NoEvidence, "without evidence"),
        (Verdict::Error, "with errors"),
    ] {
        let count = report.count(verdict);
        if count > 0 || verdict == Verdict::Pass {
            parts.push(format!("{count} {word}"));
        }
    }
    if !report.not_run.is_empty() {
        parts.push(format!("{} not run", report.not_run.len()));
    }
    let total = report.tests.len();
    let plural = if total == 1 { "test" } else { "tests" };
    let broken_off = if report.interrupted {
        " (interrupted)"
    } else {
        ""
    };
    format!("{total} {plural}: {}{broken_off}", parts.join(", "))
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

pub(super) fn colour(verdict: Verdict) -> Paint {
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

/// Details stand under their row.
fn block(out: &mut String, text: &str) {
    for part in text.lines() {
        line(out, &format!("         {part}"));
    }
}

pub(crate) fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}", text.trim_end());
}
