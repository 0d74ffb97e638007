//! What a provider's dialect is, apart from sending it.

mod anthropic;
mod conversation;
mod failure;
mod gemini;
mod names;
mod openai_chat;
mod openai_responses;
mod results;
mod stream;
#[cfg(test)]
mod tests;

pub use anthropic::Anthropic;
pub use gemini::Gemini;
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;

use mcptest_agent::{AssistantTurn, Request};
use serde_json::{Map, Value};

/// Everything that goes into one request.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The model, as the provider calls it (without `provider/` in front).
    pub model: &'a str,
    /// What the model sees.
    pub request: Request<'a>,
    /// Whether the answer is wanted as a stream.
    pub stream: bool,
    /// More fields of the body, from `providers.<name>.body`: they are laid over ours, objects key
    /// by key. `tools` are put before ours; `model` and `stream` stay ours.
    pub body: &'a Map<String, Value>,
}

/// A provider's dialect.
pub trait Adapter: Send + Sync + std::fmt::Debug {
    /// The path (and query) after the base URL, beginning with `/`.
    fn path(&self, model: &str, stream: bool) -> String;

    /// Headers that carry the key, and those that every request needs beside `content-type`.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// The request's body.
    fn body(&self, ask: &Ask<'_>) -> Value;

    /// The turn in a whole (not streamed) answer with a status of success. The question is needed
    /// to read it: tools may have gone out under another name than their own.
    ///
    /// # Errors
    /// What is wrong with an answer that holds no turn. Arguments that are not JSON are no error:
    /// they stay as text in the turn.
    fn turn(&self, ask: &Ask<'_>, answer: &Value) -> Result<AssistantTurn, Failure>;

    /// Takes in a streamed answer.
    fn assembler(&self) -> Box<dyn Assembler>;

    /// What an answer with a status of failure says. `retry_after` is set by the sender from
    /// headers where the body does not tell.
    fn failure(&self, status: u16, body: &[u8]) -> Failure;
}

/// Puts the events of a stream together to the answer that the provider would have given in one
/// piece, so that both ways end in [`Adapter::turn`].
pub trait Assembler: Send {
    /// One server-sent event.
    ///
    /// # Errors
    /// An error that the provider sends in the stream, or an event that is not in its dialect.
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<(), Failure>;

    /// The whole answer, after the stream has ended.
    ///
    /// # Errors
    /// The stream ended before the answer was whole.
    fn finish(self: Box<Self>) -> Result<Value, Failure>;
}

/// Why there is no turn. Never what the model answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// In the provider's words, cut to a bearable length.
    pub message: String,
    /// How long the provider asks to wait, if its body says so.
    pub retry_after: Option<std::time::Duration>,
}

/// The kinds of failure. The first three are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Too many requests, or a quota that refills.
    RateLimit,
    /// The provider has too much to do (529, 503, `overloaded_error`, `UNAVAILABLE`).
    Overloaded,
    /// The provider or something on the way broke: a 5xx, a connection that ended early, a stream
    /// cut short.
    Transient,
    /// The key is missing, wrong, or not allowed to do this; or the account has no credit.
    Auth,
    /// The request was refused as it is: unknown model, bad schema, too long.
    Refused,
    /// The answer is not in the provider's dialect.
    Malformed,
}
