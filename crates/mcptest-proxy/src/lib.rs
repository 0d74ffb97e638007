//! The recording proxy between any MCP client and a real server. The client communicates over
//! stdio, the server over stdio or streamable HTTP.
//!
//! Lines are passed on byte by byte, whatever they contain. The proxy parses a copy of them: calls,
//! results and the catalog become a trace in the native form, which `mcptest score` reads. A fault,
//! if requested, affects `tools/call` only, so that a client connects and lists as usual.
//! Distractors, if requested, are added to the lists of tools, and their calls are refused here.
//!
//! | file | concern |
//! |---|---|
//! | `distract.rs` | tools that no server has: added to lists, refused when called |
//! | `error.rs` | the error type |
//! | `fault.rs` | the kinds of faults and their effects on calls |
//! | `http.rs` | a server over HTTP, with the interface of one on stdio |
//! | `lines.rs` | bounded splitting of bytes into lines |
//! | `log.rs` | log events with the target `mcptest::proxy` |
//! | `observe.rs` | the trace of the lines, and the action on each line |
//! | `record.rs` | the trace file, complete at every moment |
//! | `relay.rs` | the streams, the server's process and the end of the session |

mod distract;
mod error;
mod fault;
mod http;
mod lines;
mod log;
mod observe;
mod record;
mod relay;

pub use distract::DistractorPlan;
pub use error::ProxyError;
pub use fault::{ProxyFault, ProxyFaultError};
pub use relay::{ProxiedServer, ProxyOptions, SessionEnd, relay};
