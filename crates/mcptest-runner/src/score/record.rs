//! The record of a scored run, as a reporter needs it.

use mcptest_events::log::{is_clean_json, redact_json};
use mcptest_redact::redact::Redactor;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::{Trace, TraceView};
use mcptest_trace::verdict::{RunError, Verdict};
use serde::{Deserialize, Serialize};

use crate::verdicts::RunOutcome;

/// Appends the JSON of a run's record, without secrets. The index and the name are not known yet:
/// the text begins after them.
pub(super) fn encode_record(
    outcome: &RunOutcome,
    trace: &TraceView<'_>,
    redactor: &Redactor,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    write_record(outcome, trace, out);
    // Nothing but JSON text, which is UTF-8, was appended.
    let whole = std::str::from_utf8(&out[start..]).unwrap_or_default();
    if is_clean_json(whole, redactor) {
        return;
    }
    let Some(redacted) = redact_json(&format!("{{{whole}"), redactor) else {
        return;
    };
    out.truncate(start);
    if is_readable(&redacted) {
        let text = redacted.strip_prefix('{').unwrap_or(&redacted);
        out.extend_from_slice(text.as_bytes());
    } else {
        // A secret is a word of the format: an empty record is better than a leak.
        let empty = RunOutcome {
            assertions: Vec::new(),
            error: None,
            facts: outcome.facts,
        };
        write_record(&empty, &Trace::default(), out);
    }
}

/// Appends the JSON object of a record, without its opening brace.
fn write_record(outcome: &RunOutcome, trace: &TraceView<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"verdict\":");
    write_value(&outcome.facts.verdict, out);
    out.extend_from_slice(b",\"trace\":");
    trace.write_json(out);
    out.extend_from_slice(b",\"assertions\":");
    write_value(&outcome.assertions, out);
    if let Some(error) = &outcome.error {
        out.extend_from_slice(b",\"error\":");
        write_value(error, out);
    }
    out.push(b'}');
}

/// Verdicts, assertions and errors consist of strings, numbers and JSON values, which can always be
/// written to memory.
fn write_value(value: &impl Serialize, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, value);
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
