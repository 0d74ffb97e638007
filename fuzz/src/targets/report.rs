//! Reports: what is written reads back to the same bytes, and every reporter shows it.

use mcptest_report::compare::compare;
use mcptest_report::{REPORTERS, ReadError, Report, Style, read, render};

use crate::property::assert_printable;

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match read(text) {
        Ok(report) => check(&report),
        Err(ReadError::NotAReport { line, message, .. }) => {
            assert!(line > 0 || text.is_empty(), "without a place: {message}");
        }
        Err(_) => {}
    }
}

/// Panics unless a report can be written, read and shown.
pub(super) fn check(report: &Report) {
    let json = rendered("json", report);
    let again = match read(&json) {
        Ok(again) => again,
        Err(error) => panic!("the JSON report cannot be read back: {error}"),
    };
    assert_eq!(rendered("json", &again), json, "differs after it was read");
    for (name, ..) in REPORTERS {
        let shown = rendered(name, report);
        if matches!(name, "pretty" | "markdown" | "tap" | "agent") {
            assert_printable(&shown);
        }
    }
    let comparison = compare(report, &again);
    assert_eq!(
        comparison.counts.regressed, 0,
        "worse than itself: {comparison:?}"
    );
}

fn rendered(name: &str, report: &Report) -> String {
    let mut out = Vec::new();
    if let Err(error) = render(name, report, Style::default(), &mut out) {
        panic!("{name}: {error}");
    }
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => panic!("{name}: {error}"),
    }
}
