//! The written form of a trace, which the published schema describes.
//!
//! The reader and the writer are written by hand, for speed. The tests hold them against these
//! types and what serde derives from them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
#[cfg(test)]
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConversationView, TokensView, ToolCallView, ToolResultView, TraceView, TurnView};
use crate::catalog::Tool;
use crate::judgement::Judgement;
use crate::verdict::RunError;

/// The observable behaviour of an agent in one run.
#[derive(Default, JsonSchema)]
#[cfg_attr(test, derive(Debug, PartialEq, Serialize, Deserialize))]
#[schemars(rename = "Trace")]
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
#[schemars(rename = "ToolResult")]
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
