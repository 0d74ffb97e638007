//! Requests to a model and its answers, the same for every provider.

use std::pin::Pin;

use mcptest_trace::trace::Tokens;
use mcptest_trace::verdict::RunError;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::offer::{Offer, OfferedTool};

/// A future that can move between threads.
pub type Future<'a, T> = Pin<Box<dyn std::future::Future<Output = T> + Send + 'a>>;

/// A request for the next turn: everything that the model sees.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools that it may call.
    pub tools: &'a [OfferedTool],
    /// The limit of output tokens.
    pub max_tokens: Option<u32>,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The prompt.
    User(String),
    /// A turn of the model.
    Assistant(AssistantTurn),
    /// The results of the last turn's calls, in the order of the calls.
    Results(Vec<(ModelCall, ToolReply)>),
}

/// A turn of the model: text, calls, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantTurn {
    /// The text; may be empty.
    pub text: String,
    /// The calls, in order. A turn without calls ends the run, unless it is paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ModelCall>,
    /// The token usage, if the provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The provider's own name for the reason why the model stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The reason why the model stopped, the same for all providers.
    #[serde(default, skip_serializing_if = "TurnEnd::is_finished")]
    pub end: TurnEnd,
    /// The turn as the provider sent it, block by block. The next request sends it back unchanged:
    /// otherwise signatures of hidden reasoning and unknown blocks would be lost. Built-in models
    /// have none.
    #[serde(
        default,
        deserialize_with = "keep_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub native: Option<Value>,
}

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model finished.
    #[default]
    Finished,
    /// The provider paused a long turn. It continues when the turn is sent back unchanged.
    Paused,
    /// The model reached its limit of output tokens.
    OutOfTokens,
    /// A filter of the provider, or the model itself, refused to answer.
    Withheld,
    /// The model made a call that the provider could not parse.
    MalformedCall,
}

impl TurnEnd {
    fn is_finished(&self) -> bool {
        *self == Self::Finished
    }

    /// Returns the trace's `stop_reason` for a run that ends with such a turn.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            // A paused turn never ends a run by itself.
            Self::Finished | Self::Paused => "end",
            Self::OutOfTokens => "max_tokens",
            Self::Withheld => "withheld",
            Self::MalformedCall => "malformed_call",
        }
    }
}

/// A tool call as the model made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The id that connects call and result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name as the model wrote it.
    pub wire_name: String,
    /// The arguments; a string if they were not valid JSON.
    #[serde(
        default,
        deserialize_with = "keep_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub args: Option<Value>,
    /// The provider's tag for a call made from generated code.
    #[serde(
        default,
        deserialize_with = "keep_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub caller: Option<Value>,
}

/// Reads a value that is there. `null` is a value, unlike a missing key: a replay must give what
/// was recorded.
fn keep_null<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(Some)
}

/// Token usage of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, including those from a cache.
    pub input: u64,
    /// Output tokens, including those of hidden reasoning.
    pub output: u64,
    /// The part of `input` that was read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
    /// The part of `output` that was hidden reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Adds two usages. A part that only one of them has is kept.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        let part = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cached_input: part(self.cached_input, more.cached_input),
            reasoning: part(self.reasoning, more.reasoning),
        }
    }

    /// Converts the usage to the form of traces and price tables.
    #[must_use]
    pub fn into_tokens(self) -> Tokens {
        let parts = [
            ("cached_input", self.cached_input),
            ("reasoning", self.reasoning),
        ];
        Tokens {
            input: Some(self.input),
            output: Some(self.output),
            total: Some(self.input.saturating_add(self.output)),
            extra: parts
                .into_iter()
                .filter_map(|(name, count)| Some((name.to_owned(), count?.into())))
                .collect(),
        }
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolReply {
    /// True if it is an error result.
    pub is_error: bool,
    /// The content blocks.
    pub content: Value,
    /// The structured content, if any.
    #[serde(
        default,
        deserialize_with = "keep_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured: Option<Value>,
    /// The protocol's error object, for a call that the server rejected.
    #[serde(
        default,
        deserialize_with = "keep_null",
        skip_serializing_if = "Option::is_none"
    )]
    pub error: Option<Value>,
    /// Further keys of the recorded result, such as the injected fault. The model does not see
    /// them.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub marks: serde_json::Map<String, Value>,
}

impl ToolReply {
    /// Returns an error result with one text block, for a call that cannot be dispatched.
    #[must_use]
    pub fn refusal(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            content: serde_json::json!([{"type": "text", "text": text.into()}]),
            ..Self::default()
        }
    }

    /// Returns the text of all text blocks.
    #[must_use]
    pub fn text(&self) -> String {
        text_of_blocks(&self.content)
    }
}

/// Returns the text of all text blocks of a result's content.
#[must_use]
pub fn text_of_blocks(content: &Value) -> String {
    let blocks = content.as_array().into_iter().flatten();
    let mut texts = blocks.filter_map(|block| block.get("text")?.as_str());
    let mut text = texts.next().unwrap_or_default().to_owned();
    for next in texts {
        text.push('\n');
        text.push_str(next);
    }
    text
}

/// A language model, or a stand-in for one.
pub trait Model: Send + Sync {
    /// Requests the next turn.
    ///
    /// # Errors
    /// The reason why the provider did not answer. A bad answer is not an error.
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>>;
}

/// The tools of all servers.
pub trait Tools: Send + Sync {
    /// Calls a tool of a server.
    ///
    /// # Errors
    /// The reason why the call was not answered. A rejection by the server is an answer.
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<ToolReply, RunError>>;

    /// Lists the tools again before a further request, after this number of calls. `None` if they
    /// are those of the request before.
    fn relist(&self, _calls: u64) -> Option<Offer> {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_recorded_and_a_missing_key_is_not() {
        let call = |args| ModelCall {
            id: None,
            wire_name: "get".into(),
            args,
            caller: None,
        };
        for args in [None, Some(Value::Null), Some(json!({}))] {
            let recorded = serde_json::to_value(call(args.clone())).unwrap();
            let read: ModelCall = serde_json::from_value(recorded).unwrap();
            assert_eq!(read.args, args);
        }
        let turn = AssistantTurn {
            native: Some(Value::Null),
            ..AssistantTurn::default()
        };
        let recorded = serde_json::to_value(&turn).unwrap();
        assert_eq!(
            serde_json::from_value::<AssistantTurn>(recorded).unwrap(),
            turn
        );
    }
}
