//! HTTP as a test tool needs it: every status, header and byte in sight, nothing followed, retried
//! or unpacked behind one's back.
//!
//! The MCP client and the model providers both stand on this. It holds what is the same for them:
//! connections that are used again ([`Pool`]), TLS with the system's certificates, bodies read up
//! to a bound ([`body`]), server-sent events ([`sse`]), and text of the other side made fit to be
//! shown ([`text`], [`secrets`]). It knows no protocol above HTTP. Connections go through the
//! proxies that whoever starts the program names ([`use_proxies`]).

mod address;
pub mod body;
mod pool;
mod proxy;
pub mod secrets;
pub mod sse;
pub mod text;

pub use address::{Address, header_map, without_query};
pub use pool::{Pool, SendError, Sender};
pub use proxy::{Proxies, use_proxies};
