//! What a caller chooses before connecting, and what is known afterwards.

use std::time::Duration;

use mcptest_protocol::Revision;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::answers::Answers;
use crate::limits::Limits;

/// How to open the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifecycle {
    /// Ask `server/discover` first; use `initialize` if the server does not
    /// know it, stays silent, or dies of it (then it is started again).
    #[default]
    Auto,
    /// The handshake of the revisions up to 2025-11-25.
    Initialize,
    /// The stateless revision 2026-07-28 and nothing else.
    Discover,
}

/// How to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// How to open the conversation.
    pub lifecycle: Lifecycle,
    /// Time for the server to start and answer, restarts included. Real servers
    /// were seen to need 17 s.
    pub connect_timeout: Duration,
    /// Time for each request after that, unless the call says otherwise.
    pub call_timeout: Duration,
    /// Ceilings on what the server can make us hold.
    pub limits: Limits,
    /// What a server gets that asks back.
    pub answers: Answers,
    /// The name we give to the server.
    pub client_name: String,
    /// The version we give to the server.
    pub client_version: String,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            lifecycle: Lifecycle::Auto,
            connect_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(30),
            limits: Limits::default(),
            answers: Answers::default(),
            client_name: "mcptest".to_owned(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// How to make one call.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// Time for the reply; [`ConnectOptions::call_timeout`] when absent.
    pub timeout: Option<Duration>,
    /// Stops the wait and tells the server so.
    pub cancel: Option<CancellationToken>,
}

/// What the server said about itself when the conversation was opened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The revision spoken on this connection.
    pub revision: Revision,
    /// Its capabilities as sent; an empty object if it sent none.
    pub capabilities: Value,
    /// Its name and version as sent.
    pub server_info: Option<Value>,
    /// Its advice to the model.
    pub instructions: Option<String>,
    /// The first start ended during the `server/discover` probe, so this is the
    /// second one.
    pub restarted_after_probe: bool,
    /// The probe got no answer in time. The server might speak a newer revision
    /// when it starts faster, so this belongs into a report.
    pub probe_unanswered: bool,
}
