//! The readers of what authorization servers and browsers send, for the fuzz targets.
//!
//! Results are JSON: the types behind them stay private.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use url::Url;

use crate::challenge::Challenge;
use crate::config::AuthConfig;
use crate::redirect;
use crate::resource_metadata;
use crate::server_metadata::{self, NamedBy};
use crate::tokens::{TokenResponse, Tokens};
use crate::transport::Transport;
use crate::url_policy::UrlPolicy;

/// The `Bearer` challenge of these headers.
#[must_use]
pub fn challenge(headers: &[String]) -> Option<Value> {
    let found = Challenge::bearer(headers)?;
    Some(json!({
        "error": found.error,
        "error_description": found.error_description,
        "scope": found.scopes,
        "resource_metadata": found.resource_metadata,
    }))
}

/// The metadata of an authorization server: its issuer and endpoints.
///
/// # Errors
/// The reason why the document cannot be used.
pub fn server_metadata(
    document: &Map<String, Value>,
    issuer: &str,
    server: &str,
) -> Result<Value, String> {
    let transport = Transport::new(UrlPolicy::of([server]), Duration::from_secs(1));
    let found = server_metadata::read(&transport, document, issuer, NamedBy::Metadata)?;
    Ok(json!({
        "issuer": found.issuer,
        "endpoints": [
            found.authorization_endpoint,
            found.token_endpoint,
            found.registration_endpoint,
            found.revocation_endpoint,
        ],
    }))
}

/// The metadata of a protected resource: the resource and its authorization servers.
///
/// # Errors
/// The reason why the document cannot be used.
pub fn resource_metadata(
    document: &Map<String, Value>,
    server: &Url,
    config: &AuthConfig,
) -> Result<Value, String> {
    let found = resource_metadata::read(document, server, config)?;
    Ok(json!({
        "resource": found.resource,
        "authorization_servers": found.authorization_servers,
    }))
}

/// Checks an address that metadata of this server names.
///
/// # Errors
/// The reason why no request may be sent to it.
pub fn check_address(server: &str, address: &str) -> Result<Url, String> {
    UrlPolicy::of([server]).check(address)
}

/// The code or the error of a redirect address.
///
/// # Errors
/// The reason why it is not the answer to the login with this state.
pub fn redirect(address: &str, state: &str) -> Result<Value, &'static str> {
    let answer = redirect::parse_pasted(address, state)?;
    Ok(json!({"code": answer.code, "error": answer.error}))
}

/// The printed form of the tokens in a response, and the access token.
///
/// # Errors
/// The reason why the response cannot be used.
pub fn tokens(response: &[u8]) -> Result<(String, String), String> {
    let response: TokenResponse =
        serde_json::from_slice(response).map_err(|error| error.to_string())?;
    if let Some(problem) = response.problem() {
        return Err(problem);
    }
    let now = SystemTime::UNIX_EPOCH;
    let tokens = Tokens::of(response, Vec::new(), now);
    let _ = (tokens.is_due(now), tokens.is_over(now));
    Ok((format!("{tokens:?}"), tokens.access))
}
