//! Metadata of authorization servers (RFC 8414, OpenID Connect Discovery).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use crate::error::AuthError;
use crate::metadata::{boolean, string, strings};
use crate::steps::Steps;
use crate::transport::{ExchangeError, Transport};

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// An authorization server, and what it supports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuthorizationServer {
    /// Its identifier, exactly as published. Compared without any normalization.
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: String,
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
    pub(crate) grant_types_supported: Option<Vec<String>>,
    pub(crate) auth_methods_supported: Option<Vec<String>>,
    pub(crate) challenge_methods_supported: Option<Vec<String>>,
    /// The redirect names the issuer (RFC 9207).
    pub(crate) sends_issuer: bool,
    /// The id of a client may be the address of its metadata document.
    pub(crate) takes_client_documents: bool,
    /// False for the default endpoints of revision 2025-03-26.
    pub(crate) has_metadata: bool,
}

impl AuthorizationServer {
    /// Returns true if the server lists a grant, or lists none.
    pub(crate) fn may_grant(&self, grant: &str) -> bool {
        let grants = self.grant_types_supported.as_ref();
        grants.is_none_or(|grants| grants.iter().any(|one| one == grant))
    }
}

/// The place that named an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// The suite, or the metadata of the protected resource.
    Metadata,
    /// Nothing: before revision 2025-06-18, the server itself is its authorization server.
    Fallback,
}

/// Reads the metadata of an authorization server.
pub(crate) async fn discover(
    transport: &Transport,
    issuer: &str,
    named_by: NamedBy,
    steps: &Steps,
) -> Result<AuthorizationServer, AuthError> {
    let parsed = transport.check(issuer).map_err(|reason| {
        steps.failed(format!("authorization server {issuer}"), &reason);
        AuthError::new(format!(
            "the authorization server {issuer} cannot be used: {reason}"
        ))
    })?;
    let mut failure: Option<(String, ExchangeError)> = None;
    let mut mismatch = None;
    for url in candidates(&parsed) {
        let action = format!("GET {url}");
        match transport.get_object(&url).await {
            Ok(object) => match read(transport, &object, issuer, named_by) {
                Ok(server) => {
                    steps.ok(action, described(&server));
                    return Ok(server);
                }
                Err(reason) => {
                    steps.skipped(&action, &reason);
                    mismatch.get_or_insert((action, reason));
                }
            },
            Err(error) => {
                steps.skipped(&action, &error.reason);
                if !error.is_absent {
                    failure.get_or_insert((action, error));
                }
            }
        }
    }
    if let Some((action, reason)) = mismatch {
        return Err(failed(steps, issuer, &action, &reason, false));
    }
    if let Some((action, error)) = failure {
        let is_temporary = error.is_temporary;
        return Err(failed(steps, issuer, &action, &error.reason, is_temporary));
    }
    if named_by == NamedBy::Fallback {
        let server = default_endpoints(&parsed);
        steps.ok(
            "default endpoints",
            format!(
                "no metadata: the endpoints of revision 2025-03-26 are used, such as {}",
                server.token_endpoint
            ),
        );
        return Ok(server);
    }
    let message = "it publishes no metadata: neither oauth-authorization-server nor \
                   openid-configuration";
    steps.failed(format!("authorization server {issuer}"), message);
    Err(AuthError::new(format!(
        "the authorization server {issuer} cannot be used: {message}"
    )))
}

fn failed(
    steps: &Steps,
    issuer: &str,
    action: &str,
    reason: &str,
    is_temporary: bool,
) -> AuthError {
    steps.failed(format!("authorization server {issuer}"), reason);
    let message = format!("the metadata of {issuer} cannot be used: {action}: {reason}");
    AuthError::lasting(message, is_temporary)
}

/// The addresses of the metadata, in the order of the specification.
fn candidates(issuer: &Url) -> Vec<String> {
    let origin = issuer.origin().ascii_serialization();
    let path = issuer.path().trim_end_matches('/');
    if path.is_empty() {
        return vec![format!("{origin}{OAUTH}"), format!("{origin}{OPENID}")];
    }
    vec![
        format!("{origin}{OAUTH}{path}"),
        format!("{origin}{OPENID}{path}"),
        format!("{origin}{path}{OPENID}"),
    ]
}

/// Reads a document.
///
/// # Errors
/// The reason why it cannot be used.
pub(crate) fn read(
    transport: &Transport,
    object: &Map<String, Value>,
    issuer: &str,
    named_by: NamedBy,
) -> Result<AuthorizationServer, String> {
    let stated = string(object, "issuer")?.ok_or("it has no `issuer`")?;
    let is_root = named_by == NamedBy::Fallback && stated.strip_suffix('/') == Some(issuer);
    if stated != issuer && !is_root {
        let hint = match stated.trim_end_matches('/') == issuer.trim_end_matches('/') {
            true => "; they must be equal, the last slash included",
            false => "",
        };
        return Err(format!(
            "it is the metadata of another issuer, {stated}, not of {issuer}{hint}"
        ));
    }
    let endpoint = |key: &str| -> Result<Option<String>, String> {
        let Some(url) = string(object, key)? else {
            return Ok(None);
        };
        match transport.check(&url) {
            Ok(_) => Ok(Some(url)),
            Err(reason) => Err(format!("its `{key}`, {url}, cannot be used: {reason}")),
        }
    };
    Ok(AuthorizationServer {
        authorization_endpoint: endpoint("authorization_endpoint")?,
        token_endpoint: endpoint("token_endpoint")?.ok_or("it has no `token_endpoint`")?,
        registration_endpoint: endpoint("registration_endpoint")?,
        revocation_endpoint: endpoint("revocation_endpoint")?,
        scopes_supported: strings(object, "scopes_supported")?,
        grant_types_supported: strings(object, "grant_types_supported")?,
        auth_methods_supported: strings(object, "token_endpoint_auth_methods_supported")?,
        challenge_methods_supported: strings(object, "code_challenge_methods_supported")?,
        sends_issuer: boolean(object, "authorization_response_iss_parameter_supported")?,
        takes_client_documents: boolean(object, "client_id_metadata_document_supported")?,
        has_metadata: true,
        issuer: stated,
    })
}

/// The endpoints of revision 2025-03-26 for a server without metadata.
fn default_endpoints(base: &Url) -> AuthorizationServer {
    let origin = base.origin().ascii_serialization();
    AuthorizationServer {
        authorization_endpoint: Some(format!("{origin}/authorize")),
        token_endpoint: format!("{origin}/token"),
        registration_endpoint: Some(format!("{origin}/register")),
        revocation_endpoint: None,
        scopes_supported: None,
        grant_types_supported: None,
        auth_methods_supported: None,
        challenge_methods_supported: None,
        sends_issuer: false,
        takes_client_documents: false,
        has_metadata: false,
        issuer: origin,
    }
}

fn described(server: &AuthorizationServer) -> String {
    let list = |list: &Option<Vec<String>>| match list {
        Some(list) => list.join(", "),
        None => "not stated".to_owned(),
    };
    let registration = match (
        server.registration_endpoint.is_some(),
        server.takes_client_documents,
    ) {
        (true, true) => "dynamic or by metadata document",
        (true, false) => "dynamic",
        (false, true) => "by metadata document",
        (false, false) => "none",
    };
    format!(
        "grants: {}; client authentication: {}; registration: {registration}",
        list(&server.grant_types_supported),
        list(&server.auth_methods_supported),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::url_policy::UrlPolicy;

    fn read_from(object: &Value, issuer: &str) -> Result<AuthorizationServer, String> {
        let policy = UrlPolicy::of(["https://mcp.example/"]);
        let transport = Transport::new(policy, std::time::Duration::from_secs(1));
        let object = object.as_object().unwrap();
        read(&transport, object, issuer, NamedBy::Metadata)
    }

    #[test]
    fn addresses_follow_the_path_of_the_issuer() {
        let of = |issuer: &str| candidates(&Url::parse(issuer).unwrap());
        assert_eq!(
            of("https://as.example"),
            [
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            of("https://as.example/tenant1/"),
            [
                "https://as.example/.well-known/oauth-authorization-server/tenant1",
                "https://as.example/.well-known/openid-configuration/tenant1",
                "https://as.example/tenant1/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn metadata_of_another_issuer_is_rejected() {
        let object =
            json!({"issuer": "https://as.example/", "token_endpoint": "https://as.example/t"});
        assert!(read_from(&object, "https://as.example/").is_ok());
        let reason = read_from(&object, "https://as.example").unwrap_err();
        assert!(reason.contains("the last slash included"), "{reason}");
        let reason = read_from(&object, "https://evil.example").unwrap_err();
        assert!(reason.contains("another issuer, https://as.example/"));
    }

    #[test]
    fn wrong_types_and_endpoints_are_named() {
        let issuer = "https://as.example";
        for (object, part) in [
            (json!({}), "no `issuer`"),
            (json!({"issuer": 5}), "its `issuer` is not a string: 5"),
            (json!({"issuer": issuer}), "no `token_endpoint`"),
            (
                json!({"issuer": issuer, "token_endpoint": "http://as.example/t"}),
                "its `token_endpoint`, http://as.example/t, cannot be used: it must use https",
            ),
            (
                json!({"issuer": issuer, "token_endpoint": "https://127.0.0.1/t"}),
                "on this machine",
            ),
            (
                json!({"issuer": issuer, "token_endpoint": "https://as.example/t",
                       "grant_types_supported": "all"}),
                "its `grant_types_supported` is not a list of strings: \"all\"",
            ),
            (
                json!({"issuer": issuer, "token_endpoint": "https://as.example/t",
                       "client_id_metadata_document_supported": "yes"}),
                "is not true or false",
            ),
        ] {
            let reason = read_from(&object, issuer).unwrap_err();
            assert!(reason.contains(part), "{object}: {reason}");
        }
    }
}
