//! Calls in the form of another format.
//!
//! Unknown keys of a call are kept, so a call of another format would be read as one without a name
//! or without arguments, and a test would fail because its tool was "never called". Such a file is
//! rejected with a hint.

use super::{ToolCallView, ToolName};

impl ToolCallView<'_> {
    /// The hint for a call that has the form of another format.
    pub(super) fn foreign_form(&self) -> Option<&'static str> {
        if self.extra.is_empty() {
            return None;
        }
        let has = |key: &str| self.extra.raw(key).is_some();
        let value = |key: &str| self.extra.get(key);
        let is_text = |key: &str| value(key).is_some_and(|value| value.is_string());
        let is_mapping = |key: &str| value(key).is_some_and(|value| value.is_object());
        let is_nameless = !matches!(self.raw_name, ToolName::Text(_));
        if is_nameless && has("function") {
            return Some(
                "this call has the form of OpenAI's chat completions: write `function.name` as \
                 `name`, and the parsed `function.arguments` as `args`",
            );
        }
        if is_nameless && has("functionCall") {
            return Some(
                "this call has the form of Gemini: write `functionCall.name` as `name`, and \
                 `functionCall.args` as `args`",
            );
        }
        if is_nameless && let Some(hint) = NAME_KEYS.iter().find(|(key, _)| is_text(key)) {
            return Some(hint.1);
        }
        if self.args.is_some() {
            return None;
        }
        if has("arguments") {
            return Some("this call has `arguments`: write the parsed arguments as `args`");
        }
        let kind = self.extra.get("type").and_then(|kind| kind.as_str());
        if kind == Some("tool_use") && has("input") {
            return Some("this call has the form of Anthropic's messages: write `input` as `args`");
        }
        let hint = ARGUMENT_KEYS.iter().find(|(key, _)| is_mapping(key));
        hint.map(|(_, hint)| *hint)
    }
}

/// Keys under which other formats have the name of a call's tool.
const NAME_KEYS: [(&str, &str); 5] = [
    ("tool", "this call has no `name`: write `tool` as `name`"),
    (
        "tool_name",
        "this call has no `name`: write `tool_name` as `name`",
    ),
    (
        "toolName",
        "this call has no `name`: write `toolName` as `name`",
    ),
    (
        "function_name",
        "this call has no `name`: write `function_name` as `name`",
    ),
    (
        "functionName",
        "this call has no `name`: write `functionName` as `name`",
    ),
];

/// Keys under which other formats have the arguments of a call.
const ARGUMENT_KEYS: [(&str, &str); 6] = [
    ("input", "this call has no `args`: write `input` as `args`"),
    (
        "tool_input",
        "this call has no `args`: write `tool_input` as `args`",
    ),
    (
        "tool_args",
        "this call has no `args`: write `tool_args` as `args`",
    ),
    (
        "toolArgs",
        "this call has no `args`: write `toolArgs` as `args`",
    ),
    (
        "parameters",
        "this call has no `args`: write `parameters` as `args`",
    ),
    (
        "params",
        "this call has no `args`: write `params` as `args`",
    ),
];

#[cfg(test)]
mod tests {
    use crate::trace::{read, views};

    #[test]
    fn issue_10_calls_of_other_formats_are_rejected_with_a_hint() {
        for (call, hint) in [
            (
                r#"{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}"#,
                "`function.name` as `name`",
            ),
            (
                r#"{"functionCall": {"name": "f", "args": {}}}"#,
                "`functionCall.name` as `name`",
            ),
            (
                r#"{"name": "f", "arguments": {"q": 1}}"#,
                "write the parsed arguments as `args`",
            ),
            (
                r#"{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}"#,
                "as `args`",
            ),
            (
                r#"{"type": "tool_use", "name": "f", "input": {}}"#,
                "write `input` as `args`",
            ),
            (
                r#"{"name": "f", "input": {"q": 1}}"#,
                "no `args`: write `input` as `args`",
            ),
            (
                r#"{"tool": "f", "args": {"q": 1}}"#,
                "no `name`: write `tool` as `name`",
            ),
            (
                r#"{"toolName": "f", "parameters": {"q": 1}}"#,
                "no `name`: write `toolName` as `name`",
            ),
            (
                r#"{"name": "f", "parameters": {"q": 1}}"#,
                "write `parameters` as `args`",
            ),
        ] {
            let text = format!("{{\"tool_calls\": [{{\"name\": \"ok\"}},\n{call}]}}");
            let error = read(&text).unwrap_err();
            assert!(error.message.contains(hint), "{call}: {error}");
            assert_eq!(error.line, 2, "{call}");
            assert_eq!(views(&text).next().unwrap().unwrap_err(), error);
        }
        // Further keys next to the known ones are kept, and so are malformed calls.
        for call in [
            r#"{"name": "f", "args": {}, "arguments": "{}"}"#,
            r#"{"name": "f", "input": 1}"#,
            r#"{"name": "f", "function": {}}"#,
            r#"{"name": "f", "tool": "g", "args": {}, "input": {}}"#,
            r#"{"args": {}, "tool": 1}"#,
            r#"{"name": 7}"#,
            "{}",
        ] {
            let text = format!("{{\"tool_calls\": [{call}]}}");
            assert_eq!(read(&text).unwrap().len(), 1, "{call}");
            assert!(views(&text).next().unwrap().is_ok(), "{call}");
        }
    }
}
