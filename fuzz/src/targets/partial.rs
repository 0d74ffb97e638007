//! Partial results of `score`: what is written reads back, and merging one gives a report.

use mcptest_gates::GATES;
use mcptest_redact::redact::Redactor;
use mcptest_score::{Environment, Partial, merge};
use serde_json::Value;

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    check(input);
    // A partial result is read by the version that wrote it, so older inputs become new ones.
    if let Ok(Value::Object(mut partial)) = serde_json::from_slice(input)
        && partial.contains_key("mcptest")
    {
        partial.insert("mcptest".to_owned(), env!("CARGO_PKG_VERSION").into());
        check(Value::Object(partial).to_string().as_bytes());
    }
}

fn check(input: &[u8]) {
    let Ok(partial) = Partial::read("partial.json", input) else {
        return;
    };
    let redactor = Redactor::new([]);
    let text = partial.to_json(&redactor);
    let again = match Partial::read("partial.json", &text) {
        Ok(again) => again,
        Err(error) => panic!("cannot be read back: {error}"),
    };
    assert_eq!(
        again.to_json(&redactor),
        text,
        "differs after it was written"
    );
    assert!(Partial::is_partial(&text));
    let parts = vec![("partial.json".to_owned(), input.to_vec())];
    if let Ok(report) = merge(parts, &Environment::new(GATES)) {
        super::report::check(&report);
    }
}
