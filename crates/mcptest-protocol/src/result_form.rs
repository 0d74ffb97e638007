//! The forms of results: of a tool call, a resource, a prompt, a completion, a task.

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

/// The reason why a value is not the result of `resources/read`, if it is not: every item of
/// `contents` has a `uri`, and either `text` or `blob`.
#[must_use]
pub fn malformed_resource_result(result: &Value) -> Option<String> {
    let items = match list(result, "contents") {
        Ok(items) => items,
        Err(problem) => return Some(problem),
    };
    let is_string = |item: &Value, key: &str| item.get(key).is_some_and(Value::is_string);
    let is_item = |item: &Value| {
        is_string(item, "uri") && (is_string(item, "text") ^ is_string(item, "blob"))
    };
    items.iter().position(|item| !is_item(item)).map(|index| {
        format!("`contents[{index}]` is not an object with a `uri`, and `text` or `blob`")
    })
}

/// The reason why a value is not the result of `prompts/get`, if it is not: every item of
/// `messages` has a `role` and a `content` with a `type`.
#[must_use]
pub fn malformed_prompt_result(result: &Value) -> Option<String> {
    let messages = match list(result, "messages") {
        Ok(messages) => messages,
        Err(problem) => return Some(problem),
    };
    let is_message = |message: &Value| {
        let content = message
            .get("content")
            .and_then(|content| content.get("type"));
        message.get("role").is_some_and(Value::is_string) && content.is_some_and(Value::is_string)
    };
    messages
        .iter()
        .position(|message| !is_message(message))
        .map(|index| format!("`messages[{index}]` is not an object with a `role` and a `content`"))
}

/// The reason why a value is not the result of `completion/complete`, if it is not: it has a list
/// of strings.
#[must_use]
pub fn malformed_completion_result(result: &Value) -> Option<String> {
    let Some(completion) = result.get("completion").filter(|one| one.is_object()) else {
        return Some("`completion` is not an object".to_owned());
    };
    match list(completion, "values") {
        Ok(values) if values.iter().all(Value::is_string) => None,
        Ok(_) => Some("`completion.values` has an item that is not a string".to_owned()),
        Err(_) => Some("`completion.values` is not an array".to_owned()),
    }
}

/// The statuses of a task.
pub const TASK_STATUSES: [&str; 5] = [
    "working",
    "input_required",
    "completed",
    "failed",
    "cancelled",
];

/// Returns true for a status that a task never leaves.
#[must_use]
pub fn is_terminal(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// A value that is not a task, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedTask(&'static str);

/// The id and the status of a task, or the reason why a value is not a task.
///
/// # Errors
/// The id is missing, or the status is unknown.
pub fn task_of(task: &Value) -> Result<(&str, &str), MalformedTask> {
    let id = task.get("taskId").and_then(Value::as_str);
    let id = id.ok_or(MalformedTask("`taskId` is not a string"))?;
    let status = task.get("status").and_then(Value::as_str);
    let status = status.ok_or(MalformedTask("`status` is not a string"))?;
    match TASK_STATUSES.contains(&status) {
        true => Ok((id, status)),
        false => Err(MalformedTask("`status` is unknown")),
    }
}

fn list<'a>(result: &'a Value, key: &str) -> Result<&'a [Value], String> {
    match result.get(key) {
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("`{key}` is not an array")),
        None if result.is_object() => Err(format!("it has no `{key}`")),
        None => Err("it is not an object".to_owned()),
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

    #[test]
    fn resources_prompts_and_completions_have_their_form() {
        let good =
            json!({"contents": [{"uri": "a:b", "text": ""}, {"uri": "a:c", "blob": "AA=="}]});
        assert_eq!(malformed_resource_result(&good), None);
        for bad in [
            json!(7),
            json!({}),
            json!({"contents": {}}),
            json!({"contents": [{"text": "x"}]}),
            json!({"contents": [{"uri": "a:b"}]}),
            json!({"contents": [{"uri": "a:b", "text": "x", "blob": "y"}]}),
        ] {
            assert!(malformed_resource_result(&bad).is_some(), "{bad}");
        }
        let text = json!({"type": "text", "text": "Hi"});
        let good = json!({"messages": [{"role": "user", "content": text}]});
        assert_eq!(malformed_prompt_result(&good), None);
        for bad in [
            json!({"messages": [{"role": "user", "content": "Hi"}]}),
            json!({"messages": [{"content": text}]}),
            json!({"messages": "Hi"}),
        ] {
            assert!(malformed_prompt_result(&bad).is_some(), "{bad}");
        }
        let good = json!({"completion": {"values": ["a"]}});
        assert_eq!(malformed_completion_result(&good), None);
        for bad in [
            json!({"completion": ["a"]}),
            json!({"completion": {}}),
            json!({"completion": {"values": [1]}}),
        ] {
            assert!(malformed_completion_result(&bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_task_has_an_id_and_a_known_status() {
        let task = json!({"taskId": "t", "status": "working"});
        assert_eq!(task_of(&task), Ok(("t", "working")));
        for bad in [
            json!(null),
            json!({"taskId": 1, "status": "working"}),
            json!({"taskId": "t"}),
            json!({"taskId": "t", "status": "done"}),
        ] {
            assert!(task_of(&bad).is_err(), "{bad}");
        }
        let terminal: Vec<&str> = TASK_STATUSES
            .into_iter()
            .filter(|one| is_terminal(one))
            .collect();
        assert_eq!(terminal, ["completed", "failed", "cancelled"]);
    }
}
