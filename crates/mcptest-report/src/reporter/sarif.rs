//! `sarif`: tests that did not pass in SARIF 2.1.0, for code scanning.

use std::io::Write;

use mcptest_trace::verdict::Verdict;
use serde_json::{Value, json};

use super::entries::{Entry, entries, name, write_pretty_json};
use super::{RenderError, Style};
use crate::exit_code::ExitCode;
use crate::report::Report;
use crate::uri_path::escaped_path;

/// The number of results: code scanning takes the first 5,000 of a run.
pub(crate) const MAX_RESULTS: usize = 5000;
/// The number of reasons in the message of a result.
const MAX_REASONS: usize = 10;

/// The rules: the word of an entry, the level of its results and what it means.
const RULES: [(&str, &str, &str); 5] = [
    ("fail", "error", "The agent or the server failed the test"),
    ("error", "error", "The test could not be judged"),
    ("no_evidence", "warning", "There was nothing to judge"),
    ("interrupted", "warning", "The test was interrupted"),
    ("not_run", "note", "The test was planned and did not run"),
];

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let open = || entries(report).filter(|entry| entry.verdict() != Verdict::Pass);
    let results = open().take(MAX_RESULTS).map(|entry| result(&entry));
    let results = results.collect::<Result<Vec<Value>, _>>()?;
    let mut notifications = Vec::new();
    let mut notify = |text: String| {
        notifications.push(json!({"level": "warning", "message": {"text": text}}));
    };
    let omitted = open().count() - results.len();
    if omitted > 0 {
        notify(format!("{omitted} more tests did not pass"));
    }
    if let Some(broken) = &report.broken_lines {
        notify(name(&broken.words()));
    }
    if report.interrupted {
        notify("interrupted: only finished runs are reported".to_owned());
    }
    let completed = matches!(
        report.exit_code,
        ExitCode::Passed | ExitCode::Failed | ExitCode::NoEvidence
    );
    let mut invocation = json!({
        "executionSuccessful": completed,
        "exitCode": u8::from(report.exit_code),
    });
    if !notifications.is_empty() {
        invocation["toolExecutionNotifications"] = notifications.into();
    }
    write(&RULES, &invocation, &results, out)
}

/// Writes a log with one run: its rules, the word of each, its level and what it means, and its
/// results.
pub(crate) fn write(
    rules: &[(&str, &str, &str)],
    invocation: &Value,
    results: &[Value],
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let rules: Vec<Value> = rules
        .iter()
        .map(|(id, level, what)| {
            json!({
                "id": id,
                "shortDescription": {"text": what},
                "defaultConfiguration": {"level": level},
            })
        })
        .collect();
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "mcptest",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [invocation],
            "results": results,
        }]
    });
    Ok(write_pretty_json(&sarif, out)?)
}

fn result(entry: &Entry<'_>) -> Result<Value, RenderError> {
    let word = entry.word();
    let index = RULES.iter().position(|(id, ..)| *id == word).unwrap_or(0);
    let reasons = entry.reasons()?;
    let shown: Vec<&str> = reasons
        .iter()
        .take(MAX_REASONS)
        .map(String::as_str)
        .collect();
    let message = format!("{}: {}", entry.label(), shown.join("; "));
    let mut result = json!({
        "ruleId": word,
        "ruleIndex": index,
        "level": RULES[index].1,
        "message": {"text": escaped_message(&message)},
        "partialFingerprints": {"mcptestCase/v1": entry.fingerprint()},
        "properties": {"suite": name(&entry.id.suite)},
    });
    if let Some(command) = entry.command() {
        result["properties"]["again"] = command.into();
    }
    let logical = json!([{
        "name": name(&entry.id.name),
        "fullyQualifiedName": format!("{}: {}", name(&entry.id.suite), entry.label()),
        "kind": "test",
    }]);
    let mut location = json!({"logicalLocations": logical});
    if let Some(file) = entry.file() {
        location["physicalLocation"] = physical_location(&file, entry.line());
    }
    result["locations"] = json!([location]);
    Ok(result)
}

/// The place of a test in its suite file.
pub(crate) fn physical_location(file: &str, line: Option<u32>) -> Value {
    let mut location = json!({"artifactLocation": {"uri": uri(file)}});
    if let Some(line) = line {
        location["region"] = json!({"startLine": line});
    }
    location
}

/// Escapes a message: `[text](1)` in it would be a link.
pub(crate) fn escaped_message(message: &str) -> String {
    let message = message.replace('\\', r"\\").replace('[', r"\[");
    message.replace(']', r"\]")
}

/// Encodes a path as a reference: a relative one, or with `file://` if it is absolute.
pub(crate) fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", escaped_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, rendered};

    fn read(report: &Report) -> Value {
        serde_json::from_str(&rendered(render, report)).unwrap()
    }

    #[test]
    fn the_result_of_a_failed_test() {
        let sarif = read(&samples::every_verdict());
        let run = &sarif["runs"][0];
        assert_eq!(
            run["invocations"],
            json!([{"executionSuccessful": false, "exitCode": 2}])
        );
        let words: Vec<&Value> = run["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| &result["ruleId"])
            .collect();
        assert_eq!(words, ["fail", "error", "no_evidence", "not_run"]);
        assert_eq!(
            run["results"][0],
            json!({
                "ruleId": "fail",
                "ruleIndex": 0,
                "level": "error",
                "message": {"text": "fails \\[m\\]: tool_calls\\[0\\].name: expected {\"exact\":\"search\"}, actual \"fetch\""},
                "partialFingerprints": {"mcptestCase/v1": run["results"][0]["partialFingerprints"]["mcptestCase/v1"]},
                "properties": {"suite": "sample", "again": "mcptest run sample.yml --filter fails --model m"},
                "locations": [{
                    "logicalLocations": [{"name": "fails", "fullyQualifiedName": "sample: fails [m]", "kind": "test"}],
                    "physicalLocation": {
                        "artifactLocation": {"uri": "sample.yml"},
                        "region": {"startLine": 3},
                    }
                }]
            })
        );
    }

    #[test]
    fn results_are_bounded_and_the_rest_is_counted() {
        let tests = vec![samples::test("a", None, Verdict::Fail); MAX_RESULTS + 3];
        let sarif = read(&samples::concluded(tests));
        let run = &sarif["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), MAX_RESULTS);
        assert_eq!(
            run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"],
            "3 more tests did not pass"
        );
    }

    #[test]
    fn paths_are_references() {
        assert_eq!(uri("a/c d-ä~.yml"), "a/c%20d-%C3%A4~.yml");
        assert_eq!(uri("/a:b"), "file:///a%3Ab");
    }
}
