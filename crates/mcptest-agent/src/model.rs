//! What a model is asked and what it answers, for every provider alike.

use std::pin::Pin;

use mcptest_trace::trace::Tokens;
use mcptest_trace::verdict::RunError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::offer::OfferedTool;

/// A future that can move between threads.
pub type Future<'a, T> = Pin<Box<dyn std::future::Future<Output = T> + Send + 'a>>;

/// Everything a model sees when it is asked for its next turn.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools it may call.
    pub tools: &'a [OfferedTool],
    /// The most tokens it may write.
    pub max_tokens: Option<u32>,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The task.
    User(String),
    /// What the model said and called.
    Assistant(AssistantTurn),
    /// What the calls of the last turn came back with, in their order.
    Results(Vec<(ModelCall, ToolReply)>),
}

/// What a model answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantTurn {
    /// The text; may be empty.
    pub text: String,
    /// The calls, in order. None ends the run, unless the turn is only paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ModelCall>,
    /// What it cost, if the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model stopped, in the provider's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The same in a word that all providers share.
    #[serde(default, skip_serializing_if = "TurnEnd::is_finished")]
    pub end: TurnEnd,
    /// The turn as the provider sent it, block by block. Sent back unchanged in the next request:
    /// signatures of hidden reasoning and blocks that we do not know would be lost otherwise. A
    /// built-in model has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Value>,
}

/// How a turn came to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model had nothing more to say.
    #[default]
    Finished,
    /// The provider took a break in a long turn: it wants the turn back as it is, and goes on with
    /// it.
    Paused,
    /// The model was cut off: it had written as many tokens as it may.
    OutOfTokens,
    /// A filter of the provider, or the model's own refusal, kept the rest back.
    Withheld,
    /// The model tried a call that the provider could not read.
    MalformedCall,
}

impl TurnEnd {
    fn is_finished(&self) -> bool {
        *self == Self::Finished
    }

    /// Why a run that ends with such a turn ended, as its trace says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            // A run in which a paused turn is the last has no turn left.
            Self::Finished | Self::Paused => "end",
            Self::OutOfTokens => "max_tokens",
            Self::Withheld => "withheld",
            Self::MalformedCall => "malformed_call",
        }
    }
}

/// A call as the model made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Joins call and result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name as the model wrote it.
    pub wire_name: String,
    /// The arguments; a text if they were not valid JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// The provider's tag of a call made from generated code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Value>,
}

/// Token usage of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub input: u64,
    /// Tokens written, those of hidden reasoning included.
    pub output: u64,
    /// The part of `input` that was read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
    /// The part of `output` that was hidden reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Both together. A part that only one of them tells stays.
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

    /// As a trace and the price table know it.
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

/// What a call came back with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolReply {
    /// Whether it is an error.
    pub is_error: bool,
    /// The content blocks.
    pub content: Value,
    /// The structured content, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The protocol's error object, for a call that the server refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// What else the recorded result carries, such as the fault that struck. The model does not see
    /// it.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub marks: serde_json::Map<String, Value>,
}

impl ToolReply {
    /// An error result of one text, as it is fed back for a call that could not be dispatched.
    #[must_use]
    pub fn refusal(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            content: serde_json::json!([{"type": "text", "text": text.into()}]),
            ..Self::default()
        }
    }

    /// The text of all text blocks.
    #[must_use]
    pub fn text(&self) -> String {
        let blocks = self.content.as_array().into_iter().flatten();
        let texts: Vec<&str> = blocks
            .filter_map(|block| block.get("text")?.as_str())
            .collect();
        texts.join("\n")
    }
}

/// Something that takes turns.
pub trait Model: Send + Sync {
    /// The next turn.
    ///
    /// # Errors
    /// What kept the provider from answering; never what the model answered.
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>>;
}

/// Something that carries out calls.
pub trait Tools: Send + Sync {
    /// Calls a tool of a server.
    ///
    /// # Errors
    /// What kept the call from being answered. A refusal by the server is an answer.
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<ToolReply, RunError>>;
}
