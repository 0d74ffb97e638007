//! Tests of the client against real processes.
//!
//! - [`oracle`]: the official SDK's server, in both lifecycles
//! - [`opening`]: servers that start, answer the probe or the handshake badly
//! - [`replies`]: replies that are broken, late, missing or too long
//! - [`lists`]: paging that does not end as it should
//! - [`http`]: streamable HTTP, right and wrong
//! - [`asking_back`]: calls that want input first, arguments that go into headers
//! - [`ending`]: shutdown, crashes, and nobody left behind

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails here fails its test, with the place named"
)]

mod asking_back;
mod ending;
mod http;
mod http_support;
mod lists;
mod opening;
mod oracle;
mod replies;
mod support;
