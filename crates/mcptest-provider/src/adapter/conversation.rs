//! Shared parts of writing a conversation and reading an answer.

use std::borrow::Cow;

use mcptest_agent::{ModelCall, OfferedTool, Usage};
use serde_json::{Map, Value, json};

use super::traits::ProviderRequest;

/// The key for arguments that are not a JSON object, for providers that accept only objects.
const NOT_AN_OBJECT: &str = "INVALID_JSON";

/// Merges the suite's `request.body` into the adapter's body. It overrides fields, objects key by
/// key. Its tools (those that the provider runs itself) come first. `model` and `stream` cannot be
/// overridden: the answer could not be read.
pub(super) fn body(request: &ProviderRequest<'_>, ours: Value) -> Value {
    let (Some(model), Some(stream)) = (ours.get("model").cloned(), ours.get("stream").cloned())
    else {
        // An API with the model in its path.
        return merge(request.body, ours);
    };
    let mut body = merge(request.body, ours);
    body["model"] = model;
    body["stream"] = stream;
    body
}

fn merge(theirs: &Map<String, Value>, mut ours: Value) -> Value {
    let own_tools = ours.get_mut("tools").map(Value::take);
    overlay(&mut ours, theirs);
    if let Some(Value::Array(own)) = own_tools {
        match ours.get_mut("tools") {
            Some(Value::Array(all)) => all.extend(own),
            _ => ours["tools"] = own.into(),
        }
    }
    ours
}

fn overlay(ours: &mut Value, theirs: &Map<String, Value>) {
    for (key, value) in theirs {
        match (ours.get_mut(key), value) {
            (Some(below @ Value::Object(_)), Value::Object(above)) => overlay(below, above),
            _ => ours[key] = value.clone(),
        }
    }
}

/// Returns the input schema as providers accept it: an object schema, with `properties` even if
/// there are none. Other defects are not repaired: the test is about the server's own schema.
pub(super) fn schema(tool: &OfferedTool) -> Value {
    let mut schema = match tool.tool.input_schema() {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.into()
}

/// Parses the arguments that a model wrote. Invalid JSON stays a string; an empty string means no
/// arguments.
pub(super) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Returns the arguments as an object, for providers that accept only objects.
pub(super) fn object(args: Option<&Value>) -> Value {
    match args {
        None | Some(Value::Null) => json!({}),
        Some(args @ Value::Object(_)) => args.clone(),
        Some(other) => json!({ NOT_AN_OBJECT: other }),
    }
}

/// Returns the arguments as text: the model's own text if it is an object, else an object made from
/// it. Many servers parse the text and reject the whole conversation if they cannot.
pub(super) fn arguments_text(written: Option<&str>, args: Option<&Value>) -> String {
    let is_object =
        |text: &&str| matches!(arguments(text), Value::Object(_)) && !text.trim().is_empty();
    written
        .filter(is_object)
        .map_or_else(|| object(args).to_string(), str::to_owned)
}

/// Returns the id that connects a call and its result. Without one, it is made from the index of
/// the turn and of the call in it.
pub(super) fn call_id(call: &ModelCall, turn: usize, index: usize) -> Cow<'_, str> {
    match call.id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned(format!("call_{turn}_{index}")),
    }
}

/// Returns the string at a key, unless it is empty.
pub(super) fn non_empty(block: &Value, key: &str) -> Option<String> {
    block
        .get(key)?
        .as_str()
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
}

/// Returns the tag of a call made from generated code. Direct calls of the model have none.
pub(super) fn caller(block: &Value) -> Option<Value> {
    let caller = block.get("caller").filter(|caller| !caller.is_null())?;
    (caller.get("type").and_then(Value::as_str) != Some("direct")).then(|| caller.clone())
}

/// The text of a turn, joined from its text blocks. Adjacent blocks are concatenated; blocks with
/// something else between them are separated by a line break.
#[derive(Debug, Default)]
pub(super) struct TextBlocks {
    text: String,
    separated: bool,
}

impl TextBlocks {
    pub(super) fn push(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        if self.separated && !self.text.is_empty() {
            self.text.push('\n');
        }
        self.separated = false;
        self.text.push_str(more);
    }

    pub(super) fn separate(&mut self) {
        self.separated = true;
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Returns the number at a path of keys.
pub(super) fn count(usage: &Value, path: &[&str]) -> Option<u64> {
    path.iter()
        .try_fold(usage, |value, key| value.get(key))?
        .as_u64()
}

/// Returns the usage unless both counts are zero: a server that reports zero does not count.
pub(super) fn known_usage(usage: Usage) -> Option<Usage> {
    (usage.input > 0 || usage.output > 0).then_some(usage)
}

#[cfg(test)]
mod tests {
    use mcptest_agent::Request;
    use mcptest_trace::catalog::Tool;

    use super::*;

    fn merged(theirs: Value, ours: Value) -> Value {
        let theirs = theirs.as_object().unwrap();
        let turn = Request {
            system: None,
            messages: &[],
            tools: &[],
            max_tokens: None,
        };
        let request = ProviderRequest {
            model: "m",
            turn,
            stream: false,
            body: theirs,
        };
        body(&request, ours)
    }

    #[test]
    fn fields_of_the_suite_override_the_adapters() {
        let ours = json!({"model": "m", "stream": false, "config": {"a": 1, "b": 2}, "tools": [1]});
        let theirs = json!({
            "model": "other",
            "stream": true,
            "config": {"b": 3, "c": [4]},
            "temperature": 0,
            "tools": [0],
        });
        assert_eq!(
            merged(theirs, ours.clone()),
            json!({
                "model": "m",
                "stream": false,
                "config": {"a": 1, "b": 3, "c": [4]},
                "tools": [0, 1],
                "temperature": 0,
            })
        );
        assert_eq!(merged(json!({}), ours.clone()), ours);
        assert_eq!(
            merged(json!({"a": {"b": 1}}), json!({"a": 2})),
            json!({"a": {"b": 1}})
        );
        assert_eq!(
            merged(json!({"tools": "x"}), json!({"tools": [1]})),
            json!({"tools": [1]})
        );
    }

    #[test]
    fn a_schema_is_always_an_object_schema() {
        let schema_of = |listed: Value| {
            let tool = Tool::from_listing(None, &listed).unwrap();
            schema(&OfferedTool {
                wire_name: "t".into(),
                server: "s".into(),
                tool,
                refusal: None,
            })
        };
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(schema_of(json!({"name": "t"})), empty);
        assert_eq!(schema_of(json!({"name": "t", "inputSchema": "x"})), empty);
        assert_eq!(
            schema_of(json!({"inputSchema": {"$schema": "s"}})),
            json!({"$schema": "s", "type": "object", "properties": {}})
        );
        let good =
            json!({"properties": {"a": {"type": "string"}}, "type": "object", "required": ["a"]});
        assert_eq!(
            schema_of(json!({"inputSchema": good.clone()})).to_string(),
            good.to_string()
        );
    }

    #[test]
    fn arguments_that_are_not_json_stay_a_string() {
        assert_eq!(
            arguments(r#"{"a": 12345678901234567890}"#),
            json!({"a": 12_345_678_901_234_567_890_u64})
        );
        assert_eq!(arguments(" "), json!({}));
        assert_eq!(arguments(r#"{"a": "#), json!(r#"{"a": "#));
        assert_eq!(arguments("[1]"), json!([1]));
        let deep = "[".repeat(100_000);
        assert_eq!(arguments(&deep), json!(deep));
    }

    #[test]
    fn arguments_are_sent_back_unchanged_if_they_are_an_object() {
        let text = |written: Option<&str>, args: Value| arguments_text(written, Some(&args));
        assert_eq!(
            text(Some(r#"{ "a":1.0 }"#), json!({"a": 1.0})),
            r#"{ "a":1.0 }"#
        );
        assert_eq!(
            text(Some("{broken"), json!("{broken")),
            r#"{"INVALID_JSON":"{broken"}"#
        );
        assert_eq!(text(Some("[1]"), json!([1])), r#"{"INVALID_JSON":[1]}"#);
        assert_eq!(text(Some(""), json!({})), "{}");
        assert_eq!(text(None, json!({"a": 1})), r#"{"a":1}"#);
        assert_eq!(object(None), json!({}));
        assert_eq!(object(Some(&Value::Null)), json!({}));
    }

    #[test]
    fn adjacent_text_blocks_are_concatenated() {
        let mut text = TextBlocks::default();
        text.separate();
        text.push("a");
        text.push("b");
        text.separate();
        text.push("");
        text.push("c");
        assert_eq!(text.into_text(), "ab\nc");
    }

    #[test]
    fn a_direct_caller_is_none() {
        assert_eq!(caller(&json!({"caller": {"type": "direct"}})), None);
        assert_eq!(caller(&json!({"caller": null})), None);
        assert_eq!(caller(&json!({})), None);
        let program = json!({"type": "program", "caller_id": "p1"});
        assert_eq!(caller(&json!({"caller": program.clone()})), Some(program));
    }
}
