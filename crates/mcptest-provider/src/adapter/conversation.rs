//! What all dialects need to write a conversation and to read an answer.

use std::borrow::Cow;

use mcptest_agent::{ModelCall, OfferedTool, Usage};
use serde_json::{Map, Value, json};

use super::Ask;

/// Under this key, arguments that are no JSON object go back to a provider that takes nothing else.
const NOT_AN_OBJECT: &str = "INVALID_JSON";

/// Lays `ask.body` over our fields: objects key by key, anything else in place of ours. Tools of
/// theirs (those that the provider runs itself) stand before ours. Which model is asked and whether
/// it streams is not theirs to say: the answer could not be read.
pub(super) fn body(ask: &Ask<'_>, ours: Value) -> Value {
    let (Some(model), Some(stream)) = (ours.get("model").cloned(), ours.get("stream").cloned())
    else {
        // A dialect that has them in its path.
        return with_tools_of_both(ask.body, ours);
    };
    let mut body = with_tools_of_both(ask.body, ours);
    body["model"] = model;
    body["stream"] = stream;
    body
}

fn with_tools_of_both(theirs: &Map<String, Value>, mut ours: Value) -> Value {
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

/// The input schema as providers take it: an object schema, with `properties` even where there are
/// none. What else is wrong with it is for the provider to refuse: rewriting a server's schema
/// would test another server.
pub(super) fn schema(tool: &OfferedTool) -> Value {
    let mut schema = match tool.tool.input_schema() {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.into()
}

/// The arguments in a text that a model wrote: as JSON, or as the text where it is none. No text at
/// all means no arguments.
pub(super) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// The arguments as an object, which is all that some providers take back.
pub(super) fn object(args: Option<&Value>) -> Value {
    match args {
        None | Some(Value::Null) => json!({}),
        Some(args @ Value::Object(_)) => args.clone(),
        Some(other) => json!({ NOT_AN_OBJECT: other }),
    }
}

/// The text of arguments that goes back: the model's own where it holds an object, else one that
/// does. Many servers parse it before they show it to the model, and refuse the whole conversation
/// if they cannot.
pub(super) fn arguments_text(written: Option<&str>, args: Option<&Value>) -> String {
    let is_object =
        |text: &&str| matches!(arguments(text), Value::Object(_)) && !text.trim().is_empty();
    written
        .filter(is_object)
        .map_or_else(|| object(args).to_string(), str::to_owned)
}

/// The id that joins a call and its result. A model that gave none gets one from the places of the
/// turn and of the call in it.
pub(super) fn call_id(call: &ModelCall, turn: usize, place: usize) -> Cow<'_, str> {
    match call.id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned(format!("call_{turn}_{place}")),
    }
}

/// The id in an answer, if it says anything.
pub(super) fn own_id(block: &Value, key: &str) -> Option<String> {
    block
        .get(key)?
        .as_str()
        .filter(|id| !id.is_empty())
        .map(str::to_owned)
}

/// The tag of a call made from generated code. A call that the model made itself has none, whether
/// or not the provider says so.
pub(super) fn caller(block: &Value) -> Option<Value> {
    let caller = block.get("caller").filter(|caller| !caller.is_null())?;
    (caller.get("type").and_then(Value::as_str) != Some("direct")).then(|| caller.clone())
}

/// The text of a turn that comes in blocks. Blocks side by side are one text that was cut; with
/// something in between they are two.
#[derive(Debug, Default)]
pub(super) struct Said {
    text: String,
    interrupted: bool,
}

impl Said {
    pub(super) fn say(&mut self, more: &str) {
        if more.is_empty() {
            return;
        }
        if self.interrupted && !self.text.is_empty() {
            self.text.push('\n');
        }
        self.interrupted = false;
        self.text.push_str(more);
    }

    pub(super) fn interrupt(&mut self) {
        self.interrupted = true;
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// A count at a path of keys.
pub(super) fn count(usage: &Value, path: &[&str]) -> Option<u64> {
    path.iter()
        .try_fold(usage, |value, key| value.get(key))?
        .as_u64()
}

/// Usage that says something. No request reads nothing and writes nothing: a server that reports
/// zero for both does not count.
pub(super) fn counted(usage: Usage) -> Option<Usage> {
    (usage.input > 0 || usage.output > 0).then_some(usage)
}

#[cfg(test)]
mod tests {
    use mcptest_agent::Request;
    use mcptest_trace::catalog::Tool;

    use super::*;

    fn laid_over(theirs: Value, ours: Value) -> Value {
        let theirs = theirs.as_object().unwrap();
        let request = Request {
            system: None,
            messages: &[],
            tools: &[],
            max_tokens: None,
        };
        let ask = Ask {
            model: "m",
            request,
            stream: false,
            body: theirs,
        };
        body(&ask, ours)
    }

    #[test]
    fn fields_of_the_suite_are_laid_over_ours() {
        let ours = json!({"model": "m", "stream": false, "config": {"a": 1, "b": 2}, "tools": [1]});
        let theirs = json!({"model": "other", "stream": true, "config": {"b": 3, "c": [4]}, "temperature": 0, "tools": [0]});
        assert_eq!(
            laid_over(theirs, ours.clone()),
            json!({"model": "m", "stream": false, "config": {"a": 1, "b": 3, "c": [4]}, "tools": [0, 1], "temperature": 0})
        );
        assert_eq!(laid_over(json!({}), ours.clone()), ours);
        assert_eq!(
            laid_over(json!({"a": {"b": 1}}), json!({"a": 2})),
            json!({"a": {"b": 1}})
        );
        assert_eq!(
            laid_over(json!({"tools": "x"}), json!({"tools": [1]})),
            json!({"tools": [1]})
        );
    }

    #[test]
    fn a_schema_is_an_object_schema_whatever_the_server_lists() {
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
    fn arguments_are_json_or_stay_text() {
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
    fn arguments_go_back_as_written_where_they_are_an_object() {
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
    fn text_blocks_side_by_side_are_one_text() {
        let mut said = Said::default();
        said.interrupt();
        said.say("a");
        said.say("b");
        said.interrupt();
        said.say("");
        said.say("c");
        assert_eq!(said.into_text(), "ab\nc");
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
