//! OAuth for MCP clients, as the authorization chapters of the MCP specification define it.
//!
//! [`OAuth`] is a source of credentials for one server: it finds the authorization server
//! (protected-resource metadata, RFC 9728; authorization-server metadata, RFC 8414 and OpenID
//! Connect Discovery; the fallbacks of revision 2025-03-26), obtains a token (client credentials
//! with a secret or a private key, refresh tokens, or a login with PKCE), and replaces it before it
//! ends or when the server refuses it. Requests to token endpoints are those of the `oauth2` crate,
//! sent over `mcptest-http`.
//!
//! Authorization servers are untrusted, like the servers that name them: addresses are checked
//! (`url_policy`), bodies and times are bounded, redirects with credentials are not followed, and
//! the issuer of metadata and of answers is compared. Every secret is reported to the program
//! before it is used, so that it is masked everywhere ([`OAuthOptions::on_secret`]).
//!
//! The crate knows neither MCP messages nor suites, and prints nothing. Log events have the target
//! `mcptest::auth`: one line per step at info.

mod assertion;
mod challenge;
mod client;
mod config;
mod discovery;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod interaction;
mod login;
mod logins;
mod metadata;
mod oauth;
mod redirect;
mod registration;
mod resource_metadata;
mod server_metadata;
mod steps;
mod store;
mod token_request;
mod tokens;
mod transport;
mod url_policy;

pub use config::{AuthConfig, Grant, SecretVariable};
pub use discovery::canonical as canonical_server;
pub use error::AuthError;
pub use interaction::{Interaction, InteractionFuture};
pub use logins::{EndedLogin, LoginSummary};
pub use oauth::{AuthTimeouts, OAuth, OAuthOptions, TokenSummary};
pub use steps::{AuthStep, StepOutcome};
pub use store::{KeySource, Store, StoreError, StoreOptions};
