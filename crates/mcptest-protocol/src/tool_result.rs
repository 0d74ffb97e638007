//! The form of a tool result.

use serde_json::Value;

/// The reason why a value is not a tool result, if it is not: the result, an item of `content` or
/// `isError` has the wrong type. A result without `content` is accepted, because servers that only
/// have structured content leave it out.
#[must_use]
pub fn malformed_tool_result(result: &Value) -> Option<String> {
    let Value::Object(result) = result else {
        return Some("it is not an object".to_owned());
    };
    match result.get("content") {
        None => {}
        Some(Value::Array(items)) => {
            let is_item = |item: &Value| item.get("type").is_some_and(Value::is_string);
            if let Some(index) = items.iter().position(|item| !is_item(item)) {
                return Some(format!("`content[{index}]` is not an object with a `type`"));
            }
        }
        Some(_) => return Some("`content` is not an array".to_owned()),
    }
    match result.get("isError") {
        None | Some(Value::Bool(_)) => None,
        Some(_) => Some("`isError` is neither true nor false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn issue_14_a_result_of_another_form_is_malformed() {
        for result in [
            json!("x"),
            json!(5),
            json!(null),
            json!([]),
            json!({"content": "boom"}),
            json!({"content": null}),
            json!({"content": [5]}),
            json!({"content": [{"text": "x"}]}),
            json!({"content": [], "isError": "yes"}),
            json!({"content": [], "isError": null}),
        ] {
            assert!(malformed_tool_result(&result).is_some(), "{result}");
        }
    }

    #[test]
    fn real_results_are_accepted() {
        for result in [
            json!({}),
            json!({"content": []}),
            json!({"structuredContent": {"a": 1}}),
            json!({"content": [{"type": "text", "text": "x"}], "isError": true, "_meta": {}}),
            json!({"content": [{"type": "a type of the future"}], "isError": false}),
        ] {
            assert_eq!(malformed_tool_result(&result), None, "{result}");
        }
    }
}
