//! `allure`: the results of Allure, a file per test in a folder.
//!
//! [`results`] gives each file. As a stream, the reporter writes one result per line, which is the
//! form that tests over all reporters compare; the command line always asks for a folder.

use std::io::{self, Write};

use mcptest_trace::verdict::Verdict;
use serde_json::{Value, json};

use super::entries::{Entry, entries, name, write_json};
use super::{RenderError, Style};
use crate::report::{Report, TestReport};
use crate::row::RunRow;

/// The number of reasons of a test.
const MAX_REASONS: usize = 20;
/// The number of runs of a test that are steps.
const MAX_STEPS: usize = 1000;

/// Writes one result per line.
pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    results(report, |_, text| out.write_all(text))
}

/// Gives the name and the content of each file to `write`, one after the other. The names follow
/// from the tests, so a folder that is written again has no result twice.
///
/// # Errors
/// A record that cannot be read, or an error of `write`.
pub fn results(
    report: &Report,
    mut write: impl FnMut(&str, &[u8]) -> io::Result<()>,
) -> Result<(), RenderError> {
    let is_timed = report.is_timed();
    for entry in entries(report) {
        let uuid = uuid(&entry.fingerprint());
        let mut text = Vec::new();
        write_json(&result(&entry, &uuid, is_timed)?, &mut text)?;
        write(&format!("{uuid}-result.json"), &text)?;
    }
    Ok(())
}

/// 32 hexadecimal digits in the groups of a UUID.
fn uuid(digits: &str) -> String {
    let group = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    let groups = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    groups.map(|(from, to)| group(from, to)).join("-")
}

fn status(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::Error => "broken",
        Verdict::NoEvidence => "skipped",
    }
}

fn result(entry: &Entry<'_>, uuid: &str, is_timed: bool) -> Result<Value, RenderError> {
    let label = entry.label();
    let suite = name(&entry.id.suite);
    let model = entry.id.model.as_deref().map(name);
    let mut labels = vec![
        json!({"name": "suite", "value": suite}),
        json!({"name": "framework", "value": "mcptest"}),
    ];
    let mut parameters = Vec::new();
    if let Some(model) = &model {
        parameters.push(json!({"name": "model", "value": model}));
    }
    let mut result = json!({
        "uuid": uuid,
        "historyId": entry.fingerprint(),
        "testCaseId": entry.fingerprint(),
        "fullName": format!("{suite}: {label}"),
        // A name may not be empty.
        "name": if label.is_empty() { "unnamed" } else { &label },
        "status": status(entry.verdict()),
        "stage": "finished",
    });
    let reasons = entry.reasons()?;
    if !reasons.is_empty() || entry.is_flaky() {
        let shown = &reasons[..reasons.len().min(MAX_REASONS)];
        result["statusDetails"] = json!({
            "message": entry.reason()?,
            "trace": shown.join("\n"),
            "flaky": entry.verdict() == Verdict::Pass && entry.is_flaky(),
        });
    }
    if let Some(test) = entry.test {
        let tags = test.tags.iter();
        labels.extend(tags.map(|tag| json!({"name": "tag", "value": name(tag)})));
        if let Some(file) = entry.file() {
            labels.push(json!({"name": "package", "value": file}));
        }
        if let Some(command) = entry.command() {
            // The history of a test does not depend on it.
            let again = json!({"name": "run again", "value": command, "excluded": true});
            parameters.push(again);
        }
        add_runs(&mut result, test, is_timed);
    }
    result["labels"] = labels.into();
    result["parameters"] = parameters.into();
    Ok(result)
}

/// Adds a step per run. A report has no time of its start, so times count from 0.
fn add_runs(result: &mut Value, test: &TestReport, is_timed: bool) {
    let step = |run: &RunRow, start: u64| {
        let mut step = json!({
            "name": name(&test.row_name(run)),
            "status": status(run.verdict()),
            "stage": "finished",
        });
        if is_timed {
            step["start"] = start.into();
            step["stop"] = start.saturating_add(run.duration_ms()).into();
        }
        step
    };
    let mut start = 0_u64;
    let mut steps = Vec::new();
    for run in test.runs.iter().take(MAX_STEPS) {
        steps.push(step(&run, start));
        start = start.saturating_add(run.duration_ms());
    }
    if is_timed {
        result["start"] = 0.into();
        result["stop"] = test.duration_ms().into();
    }
    result["steps"] = steps.into();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn files(report: &Report) -> Vec<(String, Value)> {
        let mut files = Vec::new();
        results(report, |name, text| {
            files.push((name.to_owned(), serde_json::from_slice(text)?));
            Ok(())
        })
        .unwrap();
        files
    }

    #[test]
    fn every_verdict_has_a_status() {
        let files = files(&samples::every_verdict());
        let statuses: Vec<&Value> = files.iter().map(|(_, it)| &it["status"]).collect();
        assert_eq!(
            statuses,
            ["passed", "failed", "broken", "skipped", "skipped"]
        );
        let (name, failed) = &files[1];
        let uuid = failed["uuid"].as_str().unwrap();
        assert_eq!(*name, format!("{uuid}-result.json"));
        assert_eq!(uuid.len(), 36);
        assert_eq!(
            failed["statusDetails"]["message"],
            "tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\""
        );
        assert_eq!(failed["steps"][0]["status"], "failed");
        assert_eq!(
            failed["parameters"][0],
            json!({"name": "model", "value": "m"})
        );
        assert!(failed.get("start").is_none(), "the report has no times");
        let mut names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), files.len());
    }

    #[test]
    fn times_count_from_zero() {
        let report = Report::from(&samples::report(1));
        let (_, result) = &files(&report)[0];
        assert_eq!((&result["start"], &result["stop"]), (&json!(0), &json!(10)));
        assert_eq!(result["steps"][0]["stop"], 10);
    }
}
