//! Tests of the client against real processes.
//!
//! - [`oracle`]: the official SDK's server, in both lifecycles
//! - [`opening`]: servers that fail to start or to answer the probe or the handshake
//! - [`replies`]: replies that are damaged, late, missing or too long
//! - [`lists`]: paging that does not end properly
//! - [`http`]: streamable HTTP, valid and invalid
//! - [`input_required`]: calls that require input, arguments repeated in headers
//! - [`ending`]: shutdown, crashes and leftover processes
//! - [`logging`]: the log events of a session

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails here fails its test"
)]

mod ending;
mod http;
mod http_support;
mod input_required;
mod lists;
mod logging;
mod opening;
mod oracle;
mod replies;
mod support;
