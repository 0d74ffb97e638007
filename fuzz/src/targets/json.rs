//! JSON text: layouts and canonical forms keep the value, and strings for people are safe.

use std::io::Write as _;

use mcptest_json::layout::compact;
use mcptest_json::visible::{VisibleJson, visible};
use mcptest_json::{canonical, equal, text};
use serde_json::Value;

use crate::property::{assert_printable, chunks};

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(source) = std::str::from_utf8(input) else {
        return;
    };
    strings(source);
    let parsed = serde_json::from_str::<Value>(source);
    let mut layout = Vec::new();
    let is_compact = compact(source, &mut layout);
    let Ok(value) = parsed else {
        return;
    };
    if is_compact {
        let again: Value = match serde_json::from_slice(&layout) {
            Ok(again) => again,
            Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&layout)),
        };
        assert_eq!(again, value, "the compact form differs");
    }
    let written = canonical(&value);
    let again: Value = match serde_json::from_str(&written) {
        Ok(again) => again,
        Err(error) => panic!("{error}: {written}"),
    };
    assert!(
        equal(&again, &value),
        "the canonical form differs: {written}"
    );
    assert_eq!(canonical(&again), written, "not canonical");
    let shown = visible(source);
    assert_eq!(
        serde_json::from_str::<Value>(&shown).ok().as_ref(),
        Some(&value)
    );
    let mut out = Vec::new();
    {
        let mut writer = VisibleJson::new(&mut out);
        for chunk in chunks(input) {
            writer.write_all(chunk).expect("memory");
        }
        writer.flush().expect("memory");
    }
    assert_eq!(String::from_utf8_lossy(&out), shown, "in chunks");
}

fn strings(source: &str) {
    let line = text::one_line(source);
    assert_printable(&line);
    assert!(!line.contains(['\n', '\t', '\u{202e}', '\u{2028}']));
    assert_printable(&text::lines(source));
    for max in [1, 5, 80] {
        let short = text::shorten(source, max);
        assert!(short.chars().count() <= max, "{short:?} at most {max}");
    }
}
