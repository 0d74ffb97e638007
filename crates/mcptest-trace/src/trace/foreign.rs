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
        None
    }
}

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
            r#"{"name": 7}"#,
            "{}",
        ] {
            let text = format!("{{\"tool_calls\": [{call}]}}");
            assert_eq!(read(&text).unwrap().len(), 1, "{call}");
            assert!(views(&text).next().unwrap().is_ok(), "{call}");
        }
    }
}
