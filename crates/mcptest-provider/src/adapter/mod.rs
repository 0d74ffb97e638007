//! The APIs of the providers, apart from sending.

mod anthropic;
mod api_error;
mod conversation;
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

/// A request to a provider.
#[derive(Debug, Clone, Copy)]
pub struct ProviderRequest<'a> {
    /// The provider's own id of the model (without the prefix `provider/`).
    pub model: &'a str,
    /// The requested turn: everything that the model sees.
    pub turn: Request<'a>,
    /// True if the answer is requested as a stream.
    pub stream: bool,
    /// Additional fields of the body, from `providers.<name>.body`. They override the adapter's
    /// fields, objects key by key; `tools` are inserted before the offered ones, and `model` and
    /// `stream` are ignored.
    pub body: &'a Map<String, Value>,
}

/// The API of a provider, as pure functions.
pub trait Adapter: Send + Sync + std::fmt::Debug {
    /// Returns the path (and query) after the base URL, with a leading `/`.
    fn path(&self, model: &str, stream: bool) -> String;

    /// Returns the headers with the key, and others that every request needs.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Returns the body of a request.
    fn body(&self, request: &ProviderRequest<'_>) -> Value;

    /// Returns the turn of a complete (not streamed) answer with a success status. `request` is the
    /// request that was sent: it maps the names of tools.
    ///
    /// # Errors
    /// The answer has no turn. Arguments that are not valid JSON are not an error: they stay a
    /// string.
    fn turn(
        &self,
        request: &ProviderRequest<'_>,
        answer: &Value,
    ) -> Result<AssistantTurn, ApiError>;

    /// Returns an assembler for a streamed answer.
    fn assembler(&self) -> Box<dyn Assembler>;

    /// Returns the error of an answer with an error status. The sender sets `retry_after` from the
    /// headers, which take precedence over the body.
    fn error(&self, status: u16, body: &[u8]) -> ApiError;
}

/// Combines the events of a stream into the answer that the provider would have sent without
/// streaming, so that [`Adapter::turn`] reads both.
pub trait Assembler: Send {
    /// Adds a server-sent event.
    ///
    /// # Errors
    /// The provider sent an error, or an event that is not part of its API.
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<(), ApiError>;

    /// Returns the complete answer, after the stream has ended.
    ///
    /// # Errors
    /// The stream ended before the answer was complete.
    fn finish(self: Box<Self>) -> Result<Value, ApiError>;
}

/// An error of a provider: the reason why there is no turn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The kind of error.
    pub kind: ApiErrorKind,
    /// The provider's message, truncated.
    pub message: String,
    /// The wait that the provider requests, if any.
    pub retry_after: Option<std::time::Duration>,
}

/// The kinds of errors. The first three are retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiErrorKind {
    /// Too many requests, or an exhausted quota that is reset.
    RateLimit,
    /// The provider is overloaded (529, 503, `overloaded_error`, `UNAVAILABLE`).
    Overloaded,
    /// The provider or the network failed: a 5xx, a lost connection, a truncated stream.
    Transient,
    /// The key is missing, wrong or not permitted, or the account has no credit.
    Auth,
    /// The request was rejected: unknown model, invalid schema, too long.
    Refused,
    /// The answer does not follow the provider's API.
    Malformed,
}
