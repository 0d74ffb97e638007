//! What a model is asked and what it answers, for every provider alike.

use std::pin::Pin;

use mcptest_core::verdict::RunError;
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
#[derive(Debug, Clone)]
pub enum Message {
    /// The task.
    User(String),
    /// What the model said and called.
    Assistant(AssistantTurn),
    /// What the calls of the last turn came back with, in their order.
    Results(Vec<(ModelCall, ToolReply)>),
}

/// What a model answers.
#[derive(Debug, Clone, Default)]
pub struct AssistantTurn {
    /// The text; may be empty.
    pub text: String,
    /// The calls, in order. None ends the run.
    pub calls: Vec<ModelCall>,
    /// What it cost, if the provider says so.
    pub usage: Option<Usage>,
}

/// A call as the model made it.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// Joins call and result.
    pub id: Option<String>,
    /// The name as the model wrote it.
    pub wire_name: String,
    /// The arguments; a text if they were not valid JSON.
    pub args: Option<Value>,
    /// The provider's tag of a call made from generated code.
    pub caller: Option<Value>,
}

/// Token usage of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
}

/// What a call came back with.
#[derive(Debug, Clone, Default)]
pub struct ToolReply {
    /// Whether it is an error.
    pub is_error: bool,
    /// The content blocks.
    pub content: Value,
    /// The structured content, if any.
    pub structured: Option<Value>,
    /// The protocol's error object, for a call that the server refused.
    pub error: Option<Value>,
    /// What else the recorded result carries, such as the fault that struck. The model does not see it.
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
        let texts: Vec<&str> = blocks.filter_map(|block| block.get("text")?.as_str()).collect();
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
    fn call<'a>(&'a self, server: &'a str, tool: &'a str, args: &'a Value) -> Future<'a, Result<ToolReply, RunError>>;
}
