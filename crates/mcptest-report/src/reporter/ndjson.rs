//! `ndjson`: one JSON object per line, for programs that read a report as a stream: `begin`, the
//! `run`s of each test before its `test`, `not_run`, `end`.

use std::io::Write;

use mcptest_trace::verdict::Verdict;
use serde_json::{Value, json};

use super::entries::{Entry, entries, name, text, write_json};
use super::{RenderError, Style};
use crate::model::SCHEMA_VERSION;
use crate::report::{Report, TestReport};
use crate::row::RunRow;
use crate::verdict_word::verdict_word;

/// The longest summary of a gate, in characters.
const MAX_SUMMARY: usize = 400;

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let begin = json!({
        "event": "begin",
        "schema_version": SCHEMA_VERSION,
        "mcptest": env!("CARGO_PKG_VERSION"),
        "tests": report.tests.len(),
        "not_run": report.not_run.len(),
    });
    write_json(&begin, out)?;
    let is_timed = report.is_timed();
    for entry in entries(report) {
        if let Some(test) = entry.test {
            for run in &test.runs {
                write_json(&run_event(test, &run, is_timed), out)?;
            }
        }
        write_json(&test_event(&entry, is_timed)?, out)?;
    }
    let mut end = json!({
        "event": "end",
        "verdict": verdict_word(report.verdict),
        "exit_code": u8::from(report.exit_code),
        "interrupted": report.interrupted,
        "passed": report.count(Verdict::Pass),
        "failed": report.count(Verdict::Fail),
        "no_evidence": report.count(Verdict::NoEvidence),
        "errors": report.count(Verdict::Error),
        "not_run": report.not_run.len(),
        "broken_lines": report.broken_lines.as_ref().map_or(0, |broken| broken.count),
        "spend": report.spend,
    });
    if let Some(timing) = &report.timing {
        end["duration_ms"] = timing.duration_ms.into();
    }
    Ok(write_json(&end, out)?)
}

fn run_event(test: &TestReport, run: &RunRow, is_timed: bool) -> Value {
    let mut event = json!({
        "event": "run",
        "suite": name(&test.id.suite),
        "test": name(&test.id.name),
        "model": test.id.model.as_deref().map(name),
        "run": run.index(),
        "verdict": verdict_word(run.verdict()),
        "calls": run.calls(),
        "errors": run.errors(),
        "tokens": run.tokens(),
        "error": run.error().map(|kind| kind.as_str()),
    });
    if is_timed {
        event["duration_ms"] = run.duration_ms().into();
    }
    event
}

fn test_event(entry: &Entry<'_>, is_timed: bool) -> Result<Value, RenderError> {
    let mut event = json!({
        "event": if entry.test.is_some() { "test" } else { "not_run" },
        "suite": name(&entry.id.suite),
        "test": name(&entry.id.name),
        "model": entry.id.model.as_deref().map(name),
    });
    let Some(test) = entry.test else {
        return Ok(event);
    };
    event["verdict"] = entry.word().into();
    event["kind"] = json!(test.kind);
    event["file"] = entry.file().into();
    event["line"] = entry.line().into();
    event["runs"] = test.run_count().into();
    event["passed_runs"] = test.passed_runs().into();
    event["reasons"] = entry.reasons()?.into();
    event["again"] = entry
        .command()
        .filter(|_| test.verdict != Verdict::Pass)
        .into();
    let gates = test.gates.iter().map(|gate| {
        json!({
            "block": name(&gate.block),
            "verdict": verdict_word(gate.verdict),
            "summary": text(&gate.summary, MAX_SUMMARY),
            "values": numbers(&gate.values),
        })
    });
    event["gates"] = gates.collect();
    event["spend"] = json!(test.spend);
    if is_timed {
        event["duration_ms"] = test.duration_ms().into();
    }
    Ok(event)
}

/// The figures of a gate that are numbers or undefined.
fn numbers(values: &serde_json::Map<String, Value>) -> Value {
    let figures = values.iter();
    let figures = figures.filter(|(_, value)| value.is_number() || value.is_null());
    figures
        .map(|(figure, value)| (name(figure), value.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, rendered};

    fn events(report: &Report) -> Vec<Value> {
        let text = rendered(render, report);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn runs_come_before_their_test_and_the_end_has_the_verdict() {
        let events = events(&samples::every_verdict());
        let kinds: Vec<&str> = events
            .iter()
            .map(|event| event["event"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "begin", "run", "test", "run", "test", "run", "test", "run", "test", "not_run",
                "end"
            ]
        );
        assert_eq!(events[3]["verdict"], "fail");
        assert_eq!(
            events[4]["reasons"],
            json!(["tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\""])
        );
        assert_eq!(events[5]["error"], "timeout");
        assert_eq!(
            (&events[10]["verdict"], &events[10]["exit_code"]),
            (&json!("error"), &json!(2))
        );
    }

    #[test]
    fn a_line_has_no_line_end_and_no_markup() {
        let hostile = "</script>\n\u{202e}\u{1b}[31m";
        let report = samples::concluded(vec![samples::test(hostile, None, Verdict::Fail)]);
        let text = rendered(render, &report);
        assert_eq!(text.lines().count(), 4);
        assert!(!text.contains('<') && !text.contains('\u{202e}'), "{text}");
    }
}
