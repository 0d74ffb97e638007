//! The language of targets. The input is a path, and optionally a document on the lines after it.

use mcptest_trace::target::Target;
use mcptest_trace::trace::TraceView;
use serde_json::{Value, json};

/// A trace with every observable part.
const TRACE: &str = r#"{"test":"t","tool_calls":[{"id":1,"name":"search","server":"s","args":{"q":[1,{"a b":null}]}},{"name":"fetch"}],"tool_results":[{"call_id":1,"is_error":false,"content":[{"type":"text","text":"x"}]}],"conversation":{"turns":[{"role":"user","content":"hi"}],"tokens":{"input":1,"total":2}},"final_response":"done","mine":{"k":[true]}}"#;

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (path, document) = text.split_once('\n').unwrap_or((text, ""));
    let target = match Target::parse(path) {
        Ok(target) => target,
        Err(error) => {
            let characters = path.chars().count();
            assert!(
                (1..=characters + 1).contains(&error.at),
                "no such place: {error}"
            );
            return;
        }
    };
    assert_eq!(target.as_str(), path);
    assert_eq!(Target::parse(target.as_str()).as_ref(), Ok(&target));
    let _ = (target.root(), target.keys(), target.is_of("tool_calls"));

    let trace = TraceView::parse(TRACE).expect("the trace of the target");
    let observable = trace.observable();
    let value = observable.to_value();
    let of_view = target.select(observable);
    assert_eq!(
        of_view,
        target.select(&value),
        "a view and its value differ"
    );
    check(&target, value);
    if let Ok(value) = serde_json::from_str::<Value>(document) {
        check(&target, value);
    }
}

/// Replacing what is selected changes what is selected, and nothing else.
fn check(target: &Target, mut value: Value) {
    let mark = json!("\u{1f4cc} replaced");
    let before = target.select(&value);
    let original = value.clone();
    target.replace(&mut value, &mark);
    match before {
        None => assert_eq!(
            value, original,
            "something is replaced, and nothing selected"
        ),
        Some(Value::Array(_)) => {
            let after = target.select(&value);
            assert!(after.is_some(), "nothing is selected any more");
        }
        Some(_) => assert_eq!(target.select(&value), Some(mark)),
    }
}
