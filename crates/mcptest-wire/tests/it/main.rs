//! Tests of the client against real processes.
//!
//! - [`oracle`]: the official SDK's server, in both lifecycles
//! - [`opening`]: servers that fail to start or to answer the probe or the handshake
//! - [`replies`]: replies that are damaged, late, missing or too long
//! - [`lists`]: paging that does not end properly
//! - [`http`]: streamable HTTP, valid and invalid
//! - [`credentials`]: requests that are refused and sent again with another credential
//! - [`legacy_sse`]: HTTP+SSE, found or asked for
//! - [`input_required`]: calls that require input, arguments repeated in headers
//! - [`handler`]: requests and notifications of servers
//! - [`subscriptions`], [`tasks`]: changes that are announced, calls that take long
//! - [`ending`]: shutdown, crashes and leftover processes
//! - [`logging`]: the log events of a session

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails here fails its test"
)]

mod credentials;
mod ending;
mod handler;
mod http;
mod http_support;
mod input_required;
mod legacy_sse;
mod lists;
mod logging;
mod opening;
mod oracle;
mod replies;
mod subscriptions;
mod support;
mod tasks;
