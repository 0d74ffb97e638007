//! The mock MCP server of mcptest.
//!
//! [`load`] turns a file into a checked [`Manifest`], [`MockServer`] answers messages, and
//! [`serve_stdio`] connects it to a pair of streams. The server is a pure function from messages to
//! replies: the same manifest and the same messages always give the same bytes, so a suite that
//! runs against it is reproducible.
//!
//! | file | concern |
//! |---|---|
//! | `manifest.rs` | the written form |
//! | `load.rs` | from a file to a checked manifest |
//! | `compile.rs` | checks, and prepared answers |
//! | `content.rs` | the rules of MCP for content |
//! | `template.rs`, `expression.rs` | `${args.name}` in answers, and its syntax |
//! | `database.rs` | state: tables, and tools that are SQL statements |
//! | `validate.rs` | validation of arguments against input schemas |
//! | `fault.rs` | intentional failures of calls |
//! | `deferred.rs` | answers that are sent late, in parts, or never |
//! | `resources.rs` | resources by pattern, completions |
//! | `jsonrpc.rs` | parsing of messages, writing of replies |
//! | `session.rs`, `caller.rs` | a connection, the revision and sender of a request |
//! | `server.rs`, `calls.rs`, `listed.rs` | the protocol: dispatch, calls, lists |
//! | `record.rs` | the messages of clients as JSON Lines |
//! | `preset.rs` | the bundled catalogs |
//! | `ask.rs` | requests to the client before an answer |
//! | `http.rs`, `headers.rs` | the streamable HTTP transport, and the checks of its headers |
//! | `stdio.rs`, `timer.rs` | the stdio transport, and its late answers |
//! | `log.rs` | log events with the target `mcptest::mock` |

mod ask;
mod caller;
mod calls;
mod compile;
mod content;
mod database;
mod deferred;
mod expression;
mod fault;
mod headers;
mod http;
mod jsonrpc;
mod listed;
mod load;
mod log;
mod manifest;
mod preset;
mod record;
mod resources;
mod server;
mod session;
mod sessions;
mod stdio;
mod template;
mod timer;
mod validate;

pub use compile::{Manifest, ManifestProblem};
pub use database::{DatabaseSpec, ExpectRowsSpec, RowsBound, SqlSpec};
pub use deferred::{Deferred, DeferredMessage, TransportEvent};
pub use fault::{FaultError, MockFault};
pub use http::{HTTP_PATH, serve_http};
pub use jsonrpc::{Replies, Reply, RpcError};
pub use load::load;
pub use manifest::{
    AskMethod, AskSpec, BeforeSpec, BlockSpec, LogLevel, ManifestFile, PromptArgumentSpec,
    PromptMessageSpec, PromptSpec, ResourceSpec, ResourceTemplateSpec, ResponseSpec, Role,
    RpcErrorSpec, ServerSpec, ToolSpec, manifest_schema,
};
pub use preset::Preset;
pub use server::MockServer;
pub use session::Session;
pub use stdio::{MAX_LINE_BYTES, serve_stdio};
pub use template::{Template, TemplateError};
