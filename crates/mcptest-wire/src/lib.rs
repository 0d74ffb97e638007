//! MCP client of mcptest, made for servers that may be wrong.
//!
//! The official SDKs hide what a test tool has to show: they drop unknown fields, skip broken lines
//! until a timeout strikes, and accept ids of the wrong type. So this is JSON-RPC on plain
//! [`serde_json::Value`]s:
//!
//! - results and errors arrive as sent, with the raw line at hand;
//! - breaches of the protocol are recorded as [`Violation`]s, never swallowed, and are no failure
//!   by themselves;
//! - a failure is a [`WireError`] that carries exit status, stderr and the last message;
//! - everything a server can make us hold is bounded by [`Limits`], and every wait by a timeout;
//! - nothing a server started outlives it, see [`kill_all`].
//!
//! This crate knows neither models nor gates, and prints nothing. It is for Unix; finding
//! stragglers outside the process group needs Linux.
//!
//! From the bottom up: `jsonrpc` reads lines, `state` decides what they mean for waiting calls,
//! `tasks` moves bytes, `process` and `reaper` start and end servers, `http` carries the same
//! frames over streamable HTTP, `connection` ties these together, `handshake`, `client`, `calls`
//! and `answers` are MCP.

mod answers;
mod calls;
mod client;
mod connection;
mod error;
mod handshake;
mod http;
mod jsonrpc;
mod limits;
mod options;
mod process;
mod reaper;
mod server_process;
mod state;
mod stderr_tail;
mod tasks;
mod violation;

pub use answers::{Answers, Elicitation};
pub use client::Client;
pub use error::{WireError, WireErrorKind, WireFailure};
pub use http::HttpServer;
pub use jsonrpc::{CallOutcome, Response, RpcError};
pub use limits::Limits;
pub use mcptest_http::text::sanitize;
pub use mcptest_protocol::Revision;
pub use options::{CallOptions, ConnectOptions, Lifecycle, ServerInfo};
pub use process::ServerCommand;
pub use reaper::kill_all;
pub use server_process::ServerProcess;
pub use state::ServerMessage;
pub use violation::{Violation, ViolationKind};
