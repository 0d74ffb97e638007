//! The recording proxy between any MCP client and a real server. The client communicates over
//! stdio, or as an agent under test also over HTTP; the server over stdio or streamable HTTP.
//!
//! Lines are passed on byte by byte, whatever they contain. The proxy parses a copy of them: calls,
//! results and the catalog become a trace in the native form, which `mcptest score` reads. A fault,
//! if requested, affects `tools/call` only, so that a client connects and lists as usual.
//! Distractors, if requested, are added to the lists of tools, and their calls are refused here.
//!
//! | file | concern |
//! |---|---|
//! | `attack.rs` | attacks: rewritten replies, contained calls |
//! | `backend.rs` | the server behind a connection: a process, or a bridge to HTTP |
//! | `distract.rs` | tools that no server has: added to lists, refused when called |
//! | `error.rs` | the error type |
//! | `fault.rs` | the kinds of faults and their effects on calls |
//! | `http.rs` | a server over HTTP, with the interface of one on stdio |
//! | `lines.rs` | bounded splitting of bytes into lines |
//! | `log.rs` | log events with the target `mcptest::proxy` |
//! | `merge.rs` | the connections of a run as one trace |
//! | `observe.rs` | the trace of the lines, and the action on each line |
//! | `pump.rs` | passing lines both ways, with the action on each |
//! | `record.rs` | the trace file, complete at every moment |
//! | `relay.rs` | one session between our own streams and a server |
//! | `run_connection.rs` | the connections of an agent with the servers of its run |
//! | `run_http.rs` | the servers of one run of an agent, by address |
//! | `run_proxy.rs` | the sessions of one run of an agent, behind a socket |
//! | `run_state.rs` | the order of a run's calls, its turns and its faults |

mod attack;
mod backend;
mod client_sessions;
mod distract;
mod error;
mod fault;
mod http;
mod lines;
mod log;
mod merge;
mod observe;
mod pump;
mod record;
mod relay;
mod run_connection;
mod run_http;
mod run_proxy;
mod run_state;
mod server_messages;

pub use backend::ProxiedServer;
pub use distract::DistractorPlan;
pub use error::ProxyError;
pub use fault::{ProxyFault, ProxyFaultError};
pub use relay::{ProxyOptions, SessionEnd, relay};
pub use run_connection::{RunServer, ServerRecord};
pub use run_proxy::{RunProxy, RunProxyOptions, RunRecord, connect};
