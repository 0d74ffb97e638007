//! `ctrf`: the Common Test Report Format, JSON that many dashboards read.

use std::io::Write;

use mcptest_trace::verdict::Verdict;
use serde::Serialize;
use serde_json::{Value, json};

use super::entries::{Entry, OneByOne, entries, name, write_pretty_json};
use super::{RenderError, Style};
use crate::report::Report;
use crate::verdict_word::verdict_word;

/// The version of the format.
const VERSION: &str = "0.0.0";
/// The number of reasons of a test.
const MAX_REASONS: usize = 20;

/// Writes one test per test and model. A report has no time of its start, so times count from 0.
pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let is_timed = report.is_timed();
    let count = |wanted: &str| {
        let statuses = entries(report).filter(|entry| status(entry) == wanted);
        statuses.count()
    };
    let stop = report
        .timing
        .as_ref()
        .map_or(0, |timing| timing.duration_ms);
    let mut extra = json!({
        "verdict": verdict_word(report.verdict),
        "exitCode": u8::from(report.exit_code),
        "interrupted": report.interrupted,
    });
    if let Some(broken) = &report.broken_lines {
        extra["brokenLines"] = broken.count.into();
    }
    let summary = json!({
        "tests": entries(report).count(),
        "passed": count("passed"),
        "failed": count("failed"),
        "skipped": count("skipped"),
        "pending": count("pending"),
        "other": count("other"),
        "start": 0,
        "stop": stop,
        "extra": extra,
    });
    write(
        &summary,
        entries(report).map(|entry| test(&entry, is_timed)),
        out,
    )
}

/// Writes a document, one test at a time.
pub(crate) fn write(
    summary: &Value,
    tests: impl Iterator<Item = Result<Value, RenderError>>,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Document<'a, T> {
        report_format: &'a str,
        spec_version: &'a str,
        generated_by: &'a str,
        results: Results<'a, T>,
    }
    #[derive(Serialize)]
    struct Results<'a, T> {
        tool: Value,
        summary: &'a Value,
        tests: T,
    }
    let mut failure = None;
    let tests = tests.map_while(|test| test.map_err(|error| failure = Some(error)).ok());
    let document = Document {
        report_format: "CTRF",
        spec_version: VERSION,
        generated_by: "mcptest",
        results: Results {
            tool: json!({"name": "mcptest", "version": env!("CARGO_PKG_VERSION")}),
            summary,
            tests: OneByOne::new(tests),
        },
    };
    write_pretty_json(&document, out)?;
    drop(document);
    failure.map_or(Ok(()), Err)
}

fn status(entry: &Entry<'_>) -> &'static str {
    match (entry.verdict(), entry.test) {
        (Verdict::Pass, _) => "passed",
        (Verdict::Fail | Verdict::Error, _) => "failed",
        (Verdict::NoEvidence, Some(_)) => "other",
        (Verdict::NoEvidence, None) => "skipped",
    }
}

fn test(entry: &Entry<'_>, is_timed: bool) -> Result<Value, RenderError> {
    let label = entry.label();
    let mut test = json!({
        // A name may not be empty.
        "name": if label.is_empty() { "unnamed" } else { &label },
        "testId": entry.fingerprint(),
        "status": status(entry),
        "rawStatus": entry.word(),
        "duration": entry.test.filter(|_| is_timed).map_or(0, |test| test.duration_ms()),
        "suite": [name(&entry.id.suite)],
        "flaky": entry.verdict() == Verdict::Pass && entry.is_flaky(),
    });
    let reasons = entry.reasons()?;
    if !reasons.is_empty() {
        let shown = &reasons[..reasons.len().min(MAX_REASONS)];
        test["message"] = entry.reason()?.into();
        test["trace"] = shown.join("\n").into();
    }
    if let Some(file) = entry.file() {
        test["filePath"] = file.into();
        test["line"] = entry.line().into();
    }
    let Some(run) = entry.test else {
        return Ok(test);
    };
    if !run.tags.is_empty() {
        test["tags"] = run.tags.iter().map(|tag| name(tag)).collect();
    }
    test["extra"] = json!({
        "model": entry.id.model.as_deref().map(name),
        "runs": run.run_count(),
        "passedRuns": run.passed_runs(),
        "again": entry.command(),
    });
    Ok(test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, rendered};

    #[test]
    fn the_tests_and_their_counts() {
        let text = rendered(render, &samples::every_verdict());
        let ctrf: Value = serde_json::from_str(&text).unwrap();
        let results = &ctrf["results"];
        assert_eq!(
            results["summary"],
            json!({
                "tests": 5, "passed": 1, "failed": 2, "skipped": 1, "pending": 0, "other": 1,
                "start": 0, "stop": 0,
                "extra": {"verdict": "error", "exitCode": 2, "interrupted": false}
            })
        );
        let failed = &results["tests"][1];
        assert_eq!(
            failed["message"],
            "tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\""
        );
        assert_eq!(
            failed["extra"]["again"],
            "mcptest run sample.yml --filter fails --model m"
        );
        let raw: Vec<&Value> = results["tests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| &test["rawStatus"])
            .collect();
        assert_eq!(raw, ["pass", "fail", "error", "no_evidence", "not_run"]);
    }

    #[test]
    fn a_test_that_passed_with_a_failed_run_is_flaky() {
        let mut flaky = samples::test("a", None, Verdict::Pass);
        flaky
            .runs
            .push(samples::run(2, "a #2", Verdict::Fail, None));
        let text = rendered(render, &samples::concluded(vec![flaky]));
        let ctrf: Value = serde_json::from_str(&text).unwrap();
        let test = &ctrf["results"]["tests"][0];
        assert_eq!(
            (&test["status"], &test["flaky"]),
            (&json!("passed"), &json!(true))
        );
    }
}
