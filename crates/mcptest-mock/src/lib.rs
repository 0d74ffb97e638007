//! The mock MCP server of mcptest.
//!
//! [`load`] turns a file into a checked [`Manifest`], [`MockServer`] answers messages,
//! [`serve_stdio`] connects it to a pair of streams. The server is a pure function from messages to
//! replies: the same manifest and the same messages always give the same bytes, so a suite that
//! runs against it is repeatable.
//!
//! | file | concern |
//! |---|---|
//! | `manifest.rs` | what people write |
//! | `load.rs` | from a file to a checked manifest |
//! | `compile.rs` | checks with places, and answers prepared |
//! | `content.rs` | what MCP demands of content |
//! | `template.rs`, `expression.rs` | `${args.name}` in answers, and its syntax |
//! | `validate.rs` | arguments against input schemas |
//! | `fault.rs` | what goes wrong with calls on purpose |
//! | `later.rs` | answers that come late, in parts, or never |
//! | `resources.rs` | resources by pattern, completions |
//! | `jsonrpc.rs` | messages in, replies out |
//! | `session.rs` | a connection, and which revision rules a request on it |
//! | `server.rs`, `calls.rs`, `listed.rs` | the protocol: dispatch, calls, lists |
//! | `record.rs` | what clients sent, as JSON Lines |
//! | `preset.rs` | the bundled catalogs |
//! | `ask.rs` | what is asked of the client before an answer |
//! | `http.rs`, `headers.rs` | the streamable HTTP transport, and what its headers must say |
//! | `stdio.rs`, `timer.rs` | the stdio transport, and its late answers |

mod ask;
mod calls;
mod compile;
mod content;
mod expression;
mod fault;
mod headers;
mod http;
mod jsonrpc;
mod later;
mod listed;
mod load;
mod manifest;
mod preset;
mod record;
mod resources;
mod server;
mod session;
mod stdio;
mod template;
mod timer;
mod validate;

pub use compile::{Manifest, Problem};
pub use fault::Fault;
pub use http::{HTTP_PATH, serve_http};
pub use jsonrpc::{Replies, Reply, RpcError};
pub use later::{Deferred, Event, Step};
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
