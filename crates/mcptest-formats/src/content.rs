//! Parts that several formats write in the same way.

use mcptest_json::surrogates::mended_text;
use serde_json::{Map, Value, json};

/// The content blocks of a result: a string becomes one text block, blocks stay as they are, and
/// any other value becomes the text of its JSON.
pub(crate) fn blocks(content: &Value) -> Option<Value> {
    match content {
        Value::Null => None,
        Value::String(text) => Some(json!([{"type": "text", "text": text}])),
        Value::Array(items) if items.iter().all(is_block) => Some(content.clone()),
        other => Some(json!([{"type": "text", "text": other.to_string()}])),
    }
}

fn is_block(item: &Value) -> bool {
    item.get("type").is_some_and(Value::is_string)
}

/// The arguments of a call that are recorded as JSON text. Text that is not valid JSON stays a
/// string; so does JSON text that is a string itself. Empty text means no arguments.
pub(crate) fn arguments(recorded: &Value) -> Value {
    match recorded {
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => match serde_json::from_str(&mended_text(text)) {
            Ok(Value::String(_)) | Err(_) => recorded.clone(),
            Ok(parsed) => parsed,
        },
        other => other.clone(),
    }
}

/// The text of a message: a string, or the text of all its blocks. `None` if there is none.
pub(crate) fn text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block.as_str().or_else(|| block.get("text")?.as_str()))
                .collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

/// A count of tokens: a whole number that is not negative.
pub(crate) fn count(usage: &Value, path: &[&str]) -> Option<u64> {
    let mut value = usage;
    for key in path {
        value = value.get(key)?;
    }
    // Some writers count in doubles.
    value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        (float.fract() == 0.0 && (0.0..9e15).contains(&float)).then_some(float as u64)
    })
}

/// The string of a key.
pub(crate) fn string<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// The string of a key as an optional value; an empty one is none.
pub(crate) fn id<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|id| match id {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    })
}

/// An offered tool in the form of a catalog.
pub(crate) fn tool(
    server: Option<&str>,
    name: &Value,
    description: Option<&Value>,
    schema: Option<&Value>,
) -> Value {
    let mut tool = Map::new();
    let mut add = |key: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            tool.insert(key.to_owned(), value.clone());
        }
    };
    add("server", server.map(Value::from).as_ref());
    add("name", Some(name));
    add("description", description);
    add("inputSchema", schema);
    Value::Object(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_not_json_stay_as_they_are() {
        assert_eq!(arguments(&json!("{\"a\": 1}")), json!({"a": 1}));
        let half = r#"{"a": "cut \ud83d"}"#;
        assert_eq!(arguments(&json!(half)), json!({"a": "cut \u{fffd}"}));
        for raw in ["{\"a\": ", "\"a\"", "None"] {
            assert_eq!(arguments(&json!(raw)), json!(raw));
        }
        assert_eq!(arguments(&json!("")), json!({}));
        assert_eq!(arguments(&json!({"a": 1})), json!({"a": 1}));
    }

    #[test]
    fn results_become_blocks() {
        assert_eq!(blocks(&json!(null)), None);
        assert_eq!(
            blocks(&json!("x")),
            Some(json!([{"type": "text", "text": "x"}]))
        );
        let image = json!([{"type": "image", "data": ""}]);
        assert_eq!(blocks(&image), Some(image));
        for other in [json!({"a": 1}), json!([1, 2]), json!(7)] {
            let text = other.to_string();
            assert_eq!(
                blocks(&other),
                Some(json!([{"type": "text", "text": text}]))
            );
        }
    }

    #[test]
    fn counts_are_whole_and_not_negative() {
        for (value, wanted) in [
            (json!(7), Some(7)),
            (json!(7.0), Some(7)),
            (json!(7.5), None),
            (json!(-1), None),
            (json!("7"), None),
            (json!(null), None),
            (json!(1e300), None),
        ] {
            assert_eq!(count(&json!({"a": {"b": value}}), &["a", "b"]), wanted);
        }
    }
}
