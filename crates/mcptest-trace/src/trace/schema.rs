//! The written form of a trace, which the published schema describes.
//!
//! The reader and the writer are written by hand, for speed. The tests hold them against these
//! types and what serde derives from them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
#[cfg(test)]
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{ConversationView, TokensView, ToolCallView, ToolResultView, TraceView, TurnView};
use crate::catalog::Tool;
use crate::judgement::Judgement;
use crate::verdict::RunError;

/// The observable behaviour of an agent in one run.
#[derive(Default, JsonSchema)]
#[cfg_attr(test, derive(Debug, PartialEq, Serialize, Deserialize))]
#[schemars(rename = "Trace", transform = add_attacks, transform = add_messages)]
#[cfg_attr(not(test), expect(dead_code, reason = "describes the written form"))]
pub(super) struct WrittenTrace {
    /// The test it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) test: Option<String>,
    /// The model that acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The number of the run in its test, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<u64>,
    /// Every call, in order: the ones typed into a turn, several in one turn, and those made from
    /// generated code.
    pub(super) tool_calls: Vec<WrittenToolCall>,
    /// The results, by `call_id` or in the order of the calls.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(super) tool_results: Vec<WrittenToolResult>,
    /// The conversation and its token usage.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "WrittenConversation::is_empty"
    )]
    pub(super) conversation: WrittenConversation,
    /// The closing answer. Without it, the last assistant turn with text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) final_response: Option<String>,
    /// The tools that were offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) catalog: Option<Vec<Tool>>,
    /// Ids of offered tools that were inserted as distractors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) distractors: Option<Vec<String>>,
    /// Opinions of models on the run's texts, for judged assertions. Gates do not read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) judgements: Vec<Judgement>,
    /// Set when the run could not be completed: it is then no evidence about the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<RunError>,
    /// All other recorded keys.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// Adds the key of attacks, which the reader keeps among the others.
fn add_attacks(schema: &mut Schema) {
    add_properties(
        schema,
        json!({"attacks": {
            "description": "The attacks of the run. An empty list is a run without any; a trace without the key knows nothing of attacks.",
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "description": "The attack's name."},
                    "place": {
                        "type": "string",
                        "description": "The place of its text.",
                        "enum": ["result", "error", "description", "parameter", "tool", "resource", "prompt", "instructions"],
                    },
                    "payload": {"type": "string", "description": "The name of the bundled wording."},
                    "carrier": {
                        "type": "string",
                        "description": "The way in which the text was written.",
                        "enum": ["plain", "comment", "tags", "gap", "base64", "markdown"],
                    },
                    "canary": {"type": "string", "description": "The string that marks the attacker in this run."},
                    "target": {"type": "object", "description": "The texts or calls that it applies to."},
                    "text": {"type": "string", "description": "The text, as it was written."},
                    "offered_after_calls": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "For texts that no result carries: the number of calls before the model was first offered the text. Absent if it never was.",
                    },
                },
            },
        }}),
    );
}

/// Adds the keys that attacks leave on results.
fn add_attack_marks(schema: &mut Schema) {
    add_properties(
        schema,
        json!({
            "attack": {
                "description": "The attack whose text the result carried, or several.",
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            },
            "contained": {
                "description": "True for an answer of mcptest to a call that met a step of an attacker's goal: it was not sent to the server.",
                "type": "boolean",
            },
        }),
    );
}

fn add_properties(schema: &mut Schema, more: Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let (Some(properties), Value::Object(more)) = (properties, more) {
        properties.extend(more);
    }
}

/// One tool call.
#[derive(Default, JsonSchema)]
#[cfg_attr(test, derive(Debug, PartialEq, Serialize, Deserialize))]
#[schemars(rename = "ToolCall")]
#[cfg_attr(not(test), expect(dead_code, reason = "describes the written form"))]
pub(super) struct WrittenToolCall {
    /// Joins the call with its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Value>,
    /// The name as recorded. Usually a string; anything else is a malformed call and stays visible
    /// as such.
    #[serde(default, rename = "name")]
    pub(super) raw_name: Value,
    /// The server, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    /// The arguments: usually an object. Text that did not parse as JSON is kept as a string.
    #[serde(
        default,
        deserialize_with = "keep_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) args: Option<Value>,
    /// Set for a call made from inside generated code: the provider's tag for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) caller: Option<Value>,
    /// The assistant turn that made the call, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<u64>,
    /// All other recorded keys.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// The result of a call.
#[derive(Default, JsonSchema)]
#[cfg_attr(test, derive(Debug, PartialEq, Serialize, Deserialize))]
#[schemars(rename = "ToolResult", transform = add_attack_marks)]
#[cfg_attr(not(test), expect(dead_code, reason = "describes the written form"))]
pub(super) struct WrittenToolResult {
    /// The call it answers; without it, the call at the same position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) call_id: Option<Value>,
    /// True for an error; absent is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) is_error: Option<bool>,
    /// The content blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Value>,
    /// All other recorded keys: `structured_content`, `error`, `error_kind`, `fault`, …
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// The conversation of a run.
#[derive(Default, JsonSchema)]
#[cfg_attr(test, derive(Debug, PartialEq, Serialize, Deserialize))]
#[schemars(rename = "Conversation")]
pub(super) struct WrittenConversation {
    /// The turns, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<Vec<WrittenTurn>>,
    /// Token usage over the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<WrittenTokens>,
    /// All other recorded keys.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// One turn of the conversation.
#[derive(Default, JsonSchema)]
#[cfg_attr(test, derive(Debug, PartialEq, Serialize, Deserialize))]
#[schemars(rename = "Turn")]
#[cfg_attr(not(test), expect(dead_code, reason = "describes the written form"))]
pub(super) struct WrittenTurn {
    /// `user`, `assistant`, `tool`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<String>,
    /// A string, or content blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Value>,
    /// All other recorded keys.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// Token usage. Only reported figures are set.
#[derive(Default, JsonSchema)]
#[cfg_attr(test, derive(Debug, PartialEq, Serialize, Deserialize))]
#[schemars(rename = "Tokens")]
#[cfg_attr(not(test), expect(dead_code, reason = "describes the written form"))]
pub(super) struct WrittenTokens {
    /// Read by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<u64>,
    /// Written by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<u64>,
    /// All of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<u64>,
    /// Cached, reasoning, …
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

impl WrittenConversation {
    fn is_empty(&self) -> bool {
        self.turns.is_none() && self.tokens.is_none() && self.extra.is_empty()
    }
}

#[cfg(test)]
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// `"args": null` is recorded evidence, unlike a missing key.
#[cfg(test)]
fn keep_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Describes the keys about messages of servers, which are kept like unknown ones.
fn add_messages(schema: &mut Schema) {
    let text = |description: &str| json!({"type": "string", "description": description});
    let message = json!({
        "type": "object",
        "properties": {
            "server": text("The server."),
            "method": text("The method."),
            "params": {"description": "The parameters, as sent."},
            "answer": {"description": "For a request: the client's answer."},
            "error": {"description": "For a request: the client's error."},
        },
        "required": ["server", "method"],
    });
    let request = json!({
        "type": "object",
        "properties": {
            "server": text("The server."),
            "method": text("The method."),
            "params": {"description": "The parameters."},
            "result": {"description": "The result, as assertions see it."},
            "error": {"description": "The protocol error."},
        },
        "required": ["server", "method"],
    });
    let keys = [
        (
            "server_messages",
            json!({
                "type": "array", "items": message,
                "description": "What servers sent by themselves, in order: requests to the client \
                                with its answers, log messages, progress, changes. Without it, \
                                messages were not recorded.",
            }),
        ),
        (
            "server_messages_omitted",
            json!({
                "type": "object", "additionalProperties": {"type": "integer"},
                "description": "The number of such messages by kind that are not kept.",
            }),
        ),
        (
            "requests",
            json!({
                "type": "array", "items": request,
                "description": "Requests of a direct test that are not tool calls: of resources, \
                                prompts and lists.",
            }),
        ),
        (
            "task",
            json!({
                "type": ["object", "null"],
                "description": "The task of a direct call, as the server described it last, with \
                                its `statuses`.",
            }),
        ),
        (
            "cancellation",
            json!({
                "type": "object",
                "description": "The cancellation of a direct call: `sent`, `responsive`, and \
                                `answered` or, for a task, `error`.",
            }),
        ),
    ];
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (key, described) in keys {
            properties.insert(key.to_owned(), described);
        }
    }
}

macro_rules! schema_of {
    ($($view:ident: $written:ident,)*) => {$(
        impl JsonSchema for $view<'_> {
            fn schema_name() -> Cow<'static, str> {
                $written::schema_name()
            }

            fn schema_id() -> Cow<'static, str> {
                $written::schema_id()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                $written::json_schema(generator)
            }
        }
    )*};
}

schema_of! {
    TraceView: WrittenTrace,
    ToolCallView: WrittenToolCall,
    ToolResultView: WrittenToolResult,
    ConversationView: WrittenConversation,
    TurnView: WrittenTurn,
    TokensView: WrittenTokens,
}
