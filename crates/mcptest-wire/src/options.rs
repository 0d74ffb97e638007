//! Settings for a connection, and the server's description of itself.

use std::sync::Arc;
use std::time::Duration;

use mcptest_protocol::Revision;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::answers::Answers;
use crate::handler::ClientHandler;
use crate::limits::WireLimits;

/// The way to open a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifecycle {
    /// Sends `server/discover` first, and `initialize` if the server does not know it, stays
    /// silent, or crashes (then it is started again).
    #[default]
    Auto,
    /// The handshake of the revisions up to 2025-11-25.
    Initialize,
    /// Only the stateless revision 2026-07-28.
    Discover,
}

/// Settings for a connection.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The way to open the connection.
    pub lifecycle: Lifecycle,
    /// Time for the server to start and answer, including restarts. Some real servers need 17 s.
    pub connect_timeout: Duration,
    /// Time for each later request, unless its [`CallOptions`] set another.
    pub call_timeout: Duration,
    /// Bounds on what the server can make us store.
    pub limits: WireLimits,
    /// The client's side: its capabilities, and its answers to the server. By default nothing is
    /// offered.
    pub handler: Arc<dyn ClientHandler>,
    /// The client's name, as sent to the server.
    pub client_name: String,
    /// The client's version, as sent to the server.
    pub client_version: String,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            lifecycle: Lifecycle::Auto,
            connect_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(30),
            limits: WireLimits::default(),
            handler: Arc::new(Answers::default()),
            client_name: "mcptest".to_owned(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Settings for one call.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// Time for the reply; [`ConnectOptions::call_timeout`] when absent.
    pub timeout: Option<Duration>,
    /// Cancels the call and notifies the server.
    pub cancel: Option<CancellationToken>,
    /// True if the server is asked to report progress.
    pub progress: bool,
    /// The lowest level of log messages, for the stateless revision: there, every request has
    /// its own. In other revisions it is set for the connection
    /// ([`Client::set_log_level`](crate::Client::set_log_level)).
    pub log_level: Option<String>,
}

/// The server's description of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The revision of this connection.
    pub revision: Revision,
    /// Its capabilities as sent; an empty object if it sent none.
    pub capabilities: Value,
    /// Its name and version as sent.
    pub server_info: Option<Value>,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// The server exited during the `server/discover` probe and was started a second time.
    pub restarted_after_probe: bool,
    /// The probe got no answer in time. The server might use a newer revision when it starts
    /// faster, so reports should mention it.
    pub probe_unanswered: bool,
    /// The connection uses HTTP+SSE, the transport that streamable HTTP replaced in 2025.
    pub legacy_sse: bool,
}
