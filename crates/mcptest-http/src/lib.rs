//! HTTP as a test tool needs it: every status, header and byte is visible, and nothing is followed,
//! retried or decompressed behind the caller's back.
//!
//! The MCP client and the model providers share this crate: reusable connections ([`Pool`]), TLS
//! with the system's certificates, bounded bodies ([`body`]), server-sent events ([`sse`]), safe
//! display of what the other side sent ([`text`], [`secrets`]), and credentials that are replaced
//! when a server refuses them ([`credentials`]). It knows no protocol above HTTP. Connections use
//! the proxies that the program installs ([`use_proxies`]).
//!
//! Log events have the target `mcptest::http`: connections and failures at info, one line per
//! request at debug, headers at trace.

mod address;
pub mod body;
pub mod credentials;
mod log;
mod pool;
mod proxy;
pub mod secrets;
pub mod sse;
pub mod text;

pub use address::{Address, AddressError, HeaderError, header_map, without_query};
pub use pool::{Pool, SendError, Sender};
pub use proxy::{Proxies, use_proxies};
