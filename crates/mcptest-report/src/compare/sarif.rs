//! A comparison as SARIF 2.1.0: a result for each test that regressed or can no longer be judged.

use std::io::Write;

use serde_json::{Value, json};

use super::changed::{Changed, Outcome, changed};
use super::pretty::{notes, totals};
use super::{Comparison, Style};
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::entries::{name, text};
use crate::reporter::sarif::{MAX_RESULTS, escaped_message, physical_location, write};

/// The longest message, in characters.
const MAX_MESSAGE: usize = 2000;

/// The rules: the word of a change, the level of its results and what it means.
const RULES: [(&str, &str, &str); 2] = [
    ("regressed", "error", "A test passed before and fails now"),
    (
        "lost",
        "warning",
        "A test passed before and can no longer be judged",
    ),
];

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let tests = changed(comparison, current);
    let worse = tests
        .iter()
        .filter(|test| test.outcome() != Outcome::Passed);
    let results: Vec<Value> = worse.take(MAX_RESULTS).map(result).collect();
    let words = std::iter::once(totals(comparison)).chain(notes(comparison));
    let notifications: Vec<Value> = words
        .map(|words| json!({"level": "note", "message": {"text": escaped_message(&words)}}))
        .collect();
    let invocation = json!({
        "executionSuccessful": true,
        "exitCode": u8::from(comparison.exit_code),
        "toolExecutionNotifications": notifications,
    });
    write(&RULES, &invocation, &results, out)
}

fn result(test: &Changed<'_>) -> Value {
    let index = usize::from(test.outcome() == Outcome::NotJudged);
    let message = text(&format!("{}: {}", test.name(), test.facts()), MAX_MESSAGE);
    let mut result = json!({
        "ruleId": RULES[index].0,
        "ruleIndex": index,
        "level": RULES[index].1,
        "message": {"text": escaped_message(&message)},
        "partialFingerprints": {"mcptestCase/v1": test.fingerprint()},
        "properties": {"suite": test.suite()},
    });
    if let Some(command) = test.command() {
        result["properties"]["again"] = command.into();
    }
    let mut location = json!({"logicalLocations": [{
        "name": name(&test.case.id.name),
        "fullyQualifiedName": format!("{}: {}", test.suite(), name(&test.name())),
        "kind": "test",
    }]});
    if let Some(file) = test.file() {
        location["physicalLocation"] = physical_location(&file, test.line());
    }
    result["locations"] = json!([location]);
    result
}
