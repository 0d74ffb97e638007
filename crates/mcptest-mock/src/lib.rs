//! The mock MCP server of mcptest.
//!
//! [`load`] turns a file into a checked [`Manifest`], [`MockServer`] answers messages, and
//! [`serve_stdio`] connects it to a pair of streams. The server is a pure function from messages to
//! replies: the same manifest and the same messages always give the same bytes, so a suite that
//! runs against it is reproducible.
//!
//! | file | concern |
//! |---|---|
//! | `manifest/` | the written form |
//! | `load.rs` | from a file to a checked manifest |
//! | `compile.rs` | checks, and prepared answers |
//! | `content.rs` | the rules of MCP for content |
//! | `template.rs`, `expression.rs` | `${args.name}`, `${answers.name}` in answers, their syntax |
//! | `database.rs` | state: tables, and tools that are SQL statements |
//! | `validate.rs` | validation of arguments against input schemas |
//! | `fault.rs` | intentional failures of calls |
//! | `attacks.rs` | hostile texts in answers |
//! | `deferred.rs` | answers that are sent late, in parts, or never |
//! | `resources.rs` | resources by pattern, completions |
//! | `jsonrpc.rs` | parsing of messages, writing of replies |
//! | `session.rs`, `caller.rs` | a connection, the revision and sender of a request |
//! | `server.rs`, `calls.rs`, `listed.rs` | the protocol: dispatch, calls, lists |
//! | `record.rs` | the messages of clients as JSON Lines |
//! | `preset.rs` | the bundled catalogs |
//! | `ask.rs` | requests to the client before an answer |
//! | `server_changes.rs`, `changes.rs` | changes of resources and lists, and notifications of them |
//! | `tasks.rs` | calls whose result is fetched later |
//! | `http/`, `headers.rs` | the streamable HTTP transport, and the checks of its headers |
//! | `stdio.rs`, `timer.rs` | the stdio transport, and its late answers |
//! | `log.rs` | log events with the target `mcptest::mock` |

mod ask;
mod attacks;
mod callable_tool;
mod caller;
mod calls;
mod changes;
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
mod server_changes;
mod session;
mod sessions;
mod stdio;
mod tasks;
mod template;
mod timer;
mod validate;

pub use compile::{Manifest, ManifestProblem};
pub use database::{DatabaseSpec, ExpectRowsSpec, RowsBound, SqlSpec};
pub use deferred::{Deferred, DeferredMessage, Route, TransportEvent};
pub use fault::{FaultError, MockFault};
pub use http::{HTTP_PATH, serve_http};
pub use jsonrpc::{Replies, Reply, RpcError};
pub use load::load;
pub use manifest::{
    AskMethod, AskSpec, AskTime, BeforeSpec, BlockSpec, ChangedList, LogLevel, ManifestFile,
    PromptArgumentSpec, PromptMessageSpec, PromptSpec, ResourceSpec, ResourceTemplateSpec,
    ResponseSpec, Role, RpcErrorSpec, ServerSpec, TaskSpec, TaskSupport, ToolSpec, manifest_schema,
};
pub use preset::Preset;
pub use server::MockServer;
pub use session::Session;
pub use stdio::{MAX_LINE_BYTES, serve_stdio};
pub use template::{Template, TemplateError};
