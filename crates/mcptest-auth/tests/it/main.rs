//! Tests of the source of credentials against authorization servers on sockets.
//!
//! - [`grants`]: client credentials, refresh tokens, scopes, tokens that end
//! - [`logins`]: the interactive login, its checks, the store
//! - [`hostile`]: authorization servers that are wrong, slow, endless or malicious
//! - [`fake`]: the authorization server of these tests

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails here fails its test"
)]

mod fake;
mod grants;
mod hostile;
mod logins;
