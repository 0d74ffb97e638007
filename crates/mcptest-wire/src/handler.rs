//! The client's side of a connection: what it declares, and its reaction to the server's own
//! messages.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use mcptest_protocol::Revision;
use serde_json::Value;

use crate::jsonrpc::RpcError;

/// The work on an answer to the server.
pub type AnswerFuture = Pin<Box<dyn Future<Output = Result<Value, RpcError>> + Send>>;

/// The reaction to a request of the server.
pub enum Answering {
    /// Answers immediately.
    Now(Result<Value, RpcError>),
    /// Answers when the future is done. Other messages are handled meanwhile.
    Later(AnswerFuture),
    /// Refuses on purpose. In revision 2026-07-28, which has no way to send an error, the call that
    /// asks is not repeated, and ends with this error.
    Refuse(RpcError),
    /// Ends the connection: the server asks for too much. Waiting calls fail with this reason.
    End(String),
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => f.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => f.write_str("Later(..)"),
            Self::Refuse(error) => f.debug_tuple("Refuse").field(error).finish(),
            Self::End(reason) => f.debug_tuple("End").field(reason).finish(),
        }
    }
}

/// Receives everything that the server sends by itself.
///
/// The methods are called in the order of arrival while the connection is locked: they must return
/// quickly and must not use the [`Client`](crate::Client). [`Answers`](crate::Answers) is the
/// handler for fixed answers.
pub trait ClientHandler: fmt::Debug + Send + Sync {
    /// The capabilities that are declared to a server that is offered this revision.
    fn capabilities(&self, revision: Revision) -> Value;

    /// Receives a request, other than `ping`.
    fn asked(&self, method: &str, params: Option<&Value>) -> Answering;

    /// Receives a notification.
    fn notified(&self, method: &str, params: Option<&Value>);
}
