//! The interface of an adapter.

use mcptest_agent::{AssistantTurn, Request};
use serde_json::{Map, Value};

use super::api_error::{self, ApiError};

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
    fn error(&self, status: u16, body: &[u8]) -> ApiError {
        api_error::from_status(status, body)
    }
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
