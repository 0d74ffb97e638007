use proptest::prelude::*;

use super::super::Trace;
use super::*;

const TRACE: &str = r#" {"test": "t", "model": null, "run": 3, "tool_calls": [
    {"id": 7, "name": "get \"x\"", "server": "s", "args": {"a": [1.5, -0, {"b": "\n"}]}, "turn": 1, "k": []},
    {"id": null, "name": "", "args": null, "caller": {"t": "code"}}, {}],
    "tool_results": [{"call_id": "7", "is_error": true, "content": [{"text": "\u00e9 1e5"}], "fault": 1e3},
    {"is_error": null}], "conversation": {"turns": [{"role": "assistant", "content": "Hi"}, {}],
    "tokens": {"input": 1, "output": 0, "total": 18446744073709551, "cached": 2}, "x": {"y": {}}},
    "final_response": "caf\u00e9", "catalog": [{"name": "get", "description": "Gets"}],
    "distractors": ["s.get"], "judgements": [], "error": null, "extra": false, "other": [true, null]}"#;

/// The trace at the beginning of a string and its end, read quickly.
fn read(text: &str) -> Option<(TraceView<'_>, usize)> {
    let mut trace = TraceView::default();
    let end = read_into(text, &mut trace)?;
    Some((trace, end))
}

/// The trace at the beginning of a string and its end, read with serde.
fn thorough(text: &str) -> Option<(Trace, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Trace>();
    let trace = values.next()?.ok()?;
    Some((trace, values.byte_offset()))
}

#[test]
fn a_trace_with_every_key_is_read_quickly() {
    let text = format!("{TRACE}\n{{}}");
    let (trace, end) = read(&text).unwrap();
    let (expected, expected_end) = thorough(&text).unwrap();
    assert_eq!(trace, expected);
    assert_eq!(end, expected_end);
    assert_eq!(trace.to_json(), serde_json::to_string(&expected).unwrap());
    assert_eq!(
        serde_json::to_string(&trace).unwrap(),
        serde_json::to_string(&expected).unwrap()
    );
}

#[test]
fn doubtful_traces_are_left_to_the_thorough_reader() {
    for text in [
        "",
        "{}",
        "[]",
        r#"{"tool_calls": [}"#,
        r#"{"tool_calls": null}"#,
        r#"{"tool_calls": [],}"#,
        r#"{"tool_calls": [], "tool_calls": []}"#,
        r#"{"tool_calls": [{"id": null, "id": 1}]}"#,
        r#"{"tool_calls": [{"name": 7}]}"#,
        r#"{"tool_calls": [], "run": -1}"#,
        r#"{"tool_calls": [], "run": 1.0}"#,
        r#"{"tool_calls": [], "run": 01}"#,
        r#"{"tool_calls": [], "x": 1e999}"#,
        r#"{"tool_calls": [], "x": "\ud800"}"#,
        r#"{"tool_calls": [], "x": tru}"#,
        r#"{"tool_calls": [], "x": [1,]}"#,
        r#"{"tool_calls": [], "x": {"a" 1}}"#,
        "{\"tool_calls\": [], \"x\n\": 1}",
        "{\"tool_calls\": [], \"x\": \"a\nb\"}",
        r#"{"tool_calls": [], "catalog": [1]}"#,
    ] {
        assert!(read(text).is_none(), "{text}");
    }
    let deep = format!(
        r#"{{"tool_calls": [], "x": {}{}}}"#,
        "[".repeat(102),
        "]".repeat(102)
    );
    assert!(read(&deep).is_none());
}

proptest! {
    /// Each change of a few bytes gives a trace that both readers agree about, or none.
    #[test]
    fn the_quick_reader_agrees_with_the_thorough_one(
        changes in proptest::collection::vec(
            (0..TRACE.len(), prop_oneof![
                Just(""), Just("\""), Just("{"), Just("}"), Just("["), Just("]"), Just(","),
                Just(":"), Just("\\"), Just("\\u"), Just("0"), Just("1e9"), Just("."), Just("-"),
                Just("null"), Just("true"), Just("\n"), Just("é"), Just("\"id\":1,"),
                Just("\"tool_calls\":[],"), Just("\"\\ud83d\\ude00\""), Just(" "), Just("99999999999999999999"),
            ], 0_usize..8),
            0..4,
        ),
    ) {
        let mut text = TRACE.to_owned();
        for (at, new, removed) in changes {
            let at = at.min(text.len());
            let end = (at + removed).min(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, new);
            }
        }
        if let Some((trace, end)) = read(&text) {
            let expected = thorough(&text);
            prop_assert!(expected.is_some(), "accepted only by the quick reader: {}", text);
            let (expected, expected_end) = expected.unwrap();
            prop_assert_eq!(end, expected_end);
            prop_assert_eq!(trace.to_json(), serde_json::to_string(&expected).unwrap());
            prop_assert_eq!(trace, expected);
        }
    }
}
