//! The recording proxy: it stands between any MCP client and a real server. The client speaks over
//! stdio, the server over stdio or streamable HTTP.
//!
//! Lines pass through byte by byte, whatever is in them. On the way they are read along: calls,
//! results and the catalog become a trace in the native form, which `mcptest score` takes. A fault,
//! if one is asked for, strikes `tools/call` and nothing else, so that a client connects and lists
//! as ever. Distractors, if they are asked for, come into the lists of tools, and their calls are
//! refused here.
//!
//! | file | concern |
//! |---|---|
//! | `distract.rs` | tools that no server has: into the lists, refused when called |
//! | `fault.rs` | the kinds of faults and which calls they strike |
//! | `http.rs` | a server over HTTP, made to look like one on stdio |
//! | `lines.rs` | bytes to lines, bounded |
//! | `observe.rs` | what a line says, and what becomes of it |
//! | `record.rs` | the trace file, whole at every moment |
//! | `relay.rs` | the streams, the server's process and the end of both |

mod distract;
mod fault;
mod http;
mod lines;
mod observe;
mod record;
mod relay;

pub use distract::Distraction;
pub use fault::ProxyFault;
pub use relay::{Behind, End, ProxyError, ProxyOptions, relay};
