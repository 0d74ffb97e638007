//! mcptest as an MCP server: coding agents validate, run and repair suites with it.
//!
//! Each tool runs this very program as a child process and makes a bounded, structured result of
//! its output. So a tool gives what the command line gives, a crash or a hang of a child is an
//! answer and not the end of the server, and a cancelled call ends everything that it started.
//!
//! Without [`Options::allow_run`], no tool starts a program other than mcptest, writes a file of
//! the project or uses the network.
//!
//! | file | concern |
//! |---|---|
//! | `server.rs` | the protocol, on the official SDK: lists and calls |
//! | `stdio.rs`, `http.rs` | the transports |
//! | `error.rs` | errors of serving |
//! | `tool/<name>.rs` | a tool: its arguments, its description, its result |
//! | `tool.rs` | the list of tools, and their schemas |
//! | `call.rs` | one call: what a tool may use |
//! | `child.rs` | the child process: bounded output, cancellation |
//! | `progress.rs` | events of a run as progress notifications |
//! | `judged.rs` | the result of `run`, `score` and `report` |
//! | `result_size.rs` | the bounds of results |
//! | `root.rs` | the folder that paths are confined to |

mod call;
mod child;
mod error;
mod http;
mod judged;
mod progress;
mod result_size;
mod root;
mod server;
mod stdio;
mod tool;

use std::path::PathBuf;

use mcptest_redact::redact::Redactor;

pub use error::ServeError;
pub use http::{HTTP_PATH, serve_http};
pub use stdio::{SessionEnd, serve_stdio};

/// The permissions of the server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that tools run: mcptest itself.
    pub program: PathBuf,
    /// The folder that paths are confined to, and in which children run.
    pub root: PathBuf,
    /// True if tools may start what suites and arguments name, keep a history, and use the network.
    pub allow_run: bool,
    /// The redactor for everything that leaves the server.
    pub redactor: Redactor,
}
