//! An MCP client for servers that may be wrong.
//!
//! The official SDKs hide what a test tool has to show: they drop unknown fields, skip invalid
//! lines until a timeout, and accept ids of the wrong type. This client works on plain
//! [`serde_json::Value`]s:
//!
//! - results and errors arrive as sent, with the raw line;
//! - protocol violations are recorded as [`Violation`]s; they are not failures by themselves;
//! - a failure is a [`WireError`] with exit status, stderr and the last message;
//! - everything that a server can make us store is bounded by [`WireLimits`], and every wait by a
//!   timeout;
//! - no process that a server started outlives it, see [`kill_all`].
//!
//! The crate knows neither models nor gates, and prints nothing. It supports Unix; finding
//! processes that left the process group needs Linux.
//!
//! From the bottom up: `jsonrpc` parses lines, `state` decides what they mean for waiting calls,
//! `tasks` moves bytes, `process` and `reaper` start and stop servers, `http` carries the same
//! messages over streamable HTTP or HTTP+SSE, `connection` combines these, and `handshake`,
//! `client`, `calls`, `requests`, `subscription`, `task_calls` and `answers` implement MCP. A
//! `ClientHandler` receives what the server sends by itself.
//!
//! Log events have the target `mcptest::wire`: connections, processes and failures at info, one
//! line per message and per stderr line at debug, message bodies at trace.

mod answers;
mod calls;
mod client;
mod connection;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod handshake;
mod http;
mod inbox;
mod isolated_process;
mod jsonrpc;
mod limits;
mod log;
mod options;
mod process;
mod process_table;
mod reaper;
mod requests;
mod server_process;
mod state;
mod stderr_tail;
mod subscription;
mod task_calls;
mod tasks;
mod time;
mod violation;
mod violation_list;

pub use answers::{Answers, Elicitation, not_offered};
pub use client::{Client, Listing};
pub use error::{WireError, WireErrorKind, WireFailure};
pub use handler::{AnswerFuture, Answering, ClientHandler};
pub use http::legacy::{EndpointError, StreamAddress, read_endpoint};
pub use http::{HttpServer, HttpTransport};
pub use isolated_process::{IsolatedCommand, IsolatedProcess, IsolatedStreams};
pub use jsonrpc::{CallOutcome, Response, RpcError};
pub use limits::WireLimits;
pub use mcptest_http::text::sanitize;
pub use mcptest_protocol::Revision;
pub use options::{CallOptions, ConnectOptions, Lifecycle, ServerInfo};
pub use process::ServerCommand;
pub use reaper::kill_all;
pub use requests::CompletionRef;
pub use server_process::{ServerProcess, StderrLines};
pub use state::ServerMessage;
pub use stderr_tail::StderrTail;
pub use subscription::{
    Subscription, WantedChanges, changed_list, is_about_stream, updated_resource, without_stream,
};
pub use task_calls::{TaskCall, TaskOptions, TaskRecord};
pub use violation::{Violation, ViolationKind};
