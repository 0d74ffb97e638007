//! The record of a scored run, as a reporter needs it.

use mcptest_events::log::redact_json;
use mcptest_redact::redact::Redactor;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::{Trace, TraceView};
use mcptest_trace::verdict::{RunError, Verdict};
use serde::Deserialize;

use crate::verdicts::RunOutcome;

/// Appends the JSON of a run's record, without secrets. The index and the name are not known yet:
/// the text begins after them.
pub(super) fn encode_record(
    outcome: &RunOutcome,
    trace: &TraceView<'_>,
    redactor: &Redactor,
    out: &mut String,
) {
    let mut whole = whole_record(outcome, &trace.to_json());
    if let Some(redacted) = redact_json(&whole, redactor) {
        whole = if is_readable(&redacted) {
            redacted
        } else {
            // A secret is a word of the format: an empty record is better than a leak.
            let empty = RunOutcome {
                assertions: Vec::new(),
                error: None,
                facts: outcome.facts,
            };
            whole_record(&empty, &Trace::default().to_json())
        };
    }
    out.push_str(whole.strip_prefix('{').unwrap_or(&whole));
}

fn whole_record(outcome: &RunOutcome, trace: &str) -> String {
    // Verdicts, assertions and errors consist of strings, numbers and JSON values.
    let json = |part: serde_json::Result<String>| part.unwrap_or_default();
    let verdict = json(serde_json::to_string(&outcome.facts.verdict));
    let assertions = json(serde_json::to_string(&outcome.assertions));
    let mut text = String::with_capacity(trace.len() + assertions.len() + 64);
    for part in [
        "{\"verdict\":",
        &verdict,
        ",\"trace\":",
        trace,
        ",\"assertions\":",
        &assertions,
    ] {
        text.push_str(part);
    }
    if let Some(error) = &outcome.error {
        text.push_str(",\"error\":");
        text.push_str(&json(serde_json::to_string(error)));
    }
    text.push('}');
    text
}

/// Returns true if a redacted record has kept its form.
fn is_readable(json: &str) -> bool {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "read to check the form")]
    struct Record {
        verdict: Verdict,
        trace: Trace,
        assertions: Vec<Assertion>,
        error: Option<RunError>,
    }
    serde_json::from_str::<Record>(json).is_ok()
}
