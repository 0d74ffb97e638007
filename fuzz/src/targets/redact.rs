//! Redaction: a planted secret leaves in no form, wherever it is, and nothing else is changed.

use mcptest_events::log::redact_json;
use mcptest_redact::redact::Redactor;
use serde_json::{Value, json};

/// The planted secret. It has no characters that a text of the corpus would complete to it.
const SECRET: &str = "pl4nted/S3cret+Value=42";

/// Runs one input: the text around the secret.
pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let redactor = Redactor::new([SECRET.to_owned()]);
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|at| text.is_char_boundary(*at));
    let (before, after) = text.split_at(middle.unwrap_or(0));
    let planted = format!("{before}{SECRET}{after}");
    let masked = redactor.text(&planted);
    assert_gone(&masked);
    assert_eq!(redactor.text(&masked), masked, "masked again");
    assert!(redactor.is_clean(&masked), "not clean after it was masked");

    let mut value = json!({before: [planted, {"nested": {SECRET: after}}]});
    assert!(!redactor.is_clean_in(&value), "the secret is not found");
    let written = value.to_string();
    redactor.value(&mut value);
    assert_gone(&value.to_string());
    assert!(redactor.is_clean_in(&value));
    match redact_json(&written, &redactor) {
        Some(redacted) => {
            assert_gone(&redacted);
            let again: Value = match serde_json::from_str(&redacted) {
                Ok(again) => again,
                Err(error) => panic!("not JSON after it was masked: {error}: {redacted}"),
            };
            assert!(redactor.is_clean_in(&again));
        }
        None => panic!("the secret is not found in {written}"),
    }
    // Encoded once, as servers do.
    let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let escaped: String = SECRET
        .chars()
        .map(|c| format!("\\u{:04x}", c as u32))
        .collect();
    for form in [percent, escaped] {
        let masked = redactor.text(&format!("{before}{form}{after}"));
        assert!(!masked.contains(&form), "{form} leaves in {masked}");
    }
}

fn assert_gone(text: &str) {
    assert!(!text.contains(SECRET), "the secret leaves: {text}");
}
