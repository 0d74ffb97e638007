//! The mock MCP server of mcptest.
//!
//! [`load`] turns a file into a checked [`Manifest`], [`MockServer`] answers messages, [`serve_stdio`] connects it to a pair of
//! streams. The server is a pure function from messages to replies: the same manifest and the same messages always give the same
//! bytes, so a suite that runs against it is repeatable.
//!
//! | file | concern |
//! |---|---|
//! | `manifest.rs` | what people write |
//! | `load.rs` | from a file to a checked manifest |
//! | `compile.rs` | checks with places, and answers prepared |
//! | `content.rs` | what MCP demands of content |
//! | `template.rs`, `expression.rs` | `${args.name}` in answers, and its syntax |
//! | `validate.rs` | arguments against input schemas |
//! | `revision.rs` | the revisions of MCP and how they differ |
//! | `jsonrpc.rs` | messages in, replies out |
//! | `session.rs` | a connection, and which revision rules a request on it |
//! | `server.rs`, `calls.rs`, `listed.rs` | the protocol: dispatch, calls, lists |
//! | `stdio.rs` | the stdio transport |

mod calls;
mod compile;
mod content;
mod expression;
mod jsonrpc;
mod listed;
mod load;
mod manifest;
mod revision;
mod server;
mod session;
mod stdio;
mod template;
mod validate;

pub use compile::{Manifest, Problem};
pub use jsonrpc::{Replies, Reply, RpcError};
pub use load::load;
pub use manifest::{
    BlockSpec, ManifestFile, PromptArgumentSpec, PromptMessageSpec, PromptSpec, ResourceSpec, ResponseSpec, Role,
    ServerSpec, ToolSpec, manifest_schema,
};
pub use revision::Revision;
pub use server::MockServer;
pub use session::Session;
pub use stdio::{MAX_LINE_BYTES, serve_stdio};
pub use template::{Template, TemplateError};
