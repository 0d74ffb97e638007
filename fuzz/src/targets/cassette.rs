//! Cassettes: what is written reads back, and every command gives an answer.

use mcptest_cassette::{LoadError, diff, merge, parse, show, traces, verify};
use mcptest_redact::redact::Redactor;

use super::trace_native::reads_back;
use crate::property::assert_printable;

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let cassette = match parse("cassette.json", input) {
        Ok(cassette) => cassette,
        Err(LoadError::Malformed { line, message, .. }) => {
            // An empty file ends before its first line.
            assert!(line > 0 || input.is_empty(), "without a place: {message}");
            return assert_printable(&message);
        }
        Err(other) => panic!("not about the content: {other}"),
    };
    let text = cassette.to_text();
    let again = parse("cassette.json", text.as_bytes());
    let again = again.unwrap_or_else(|error| panic!("cannot be read back: {error}"));
    assert_eq!(again.to_text(), text, "differs after it was written");
    assert_printable(&show(&cassette, None));
    for run in &cassette.runs {
        assert_printable(&show(&cassette, Some(run.run)));
    }
    let _ = verify(&cassette, &Redactor::new([]));
    let _ = diff(&cassette, &again);
    let _ = merge(&cassette, &again);
    if let Ok(traces) = traces(cassette) {
        traces.iter().for_each(reads_back);
    }
}
