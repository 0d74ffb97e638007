//! Discovery: from a server's refusal to the authorization server that issues its tokens.

use crate::challenge::Challenge;
use crate::config::{AuthConfig, Grant};
use crate::error::AuthError;
use crate::resource_metadata::{self, ResourceMetadata};
use crate::server_metadata::{self, AuthorizationServer, NamedBy};
use crate::steps::Steps;
use crate::transport::Transport;

/// The place at which tokens for a server are issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) server: AuthorizationServer,
    /// The resource that tokens are for.
    pub(crate) resource: Option<String>,
    /// The scopes that the server's metadata lists.
    pub(crate) scopes_supported: Option<Vec<String>>,
    /// True if the server itself stated its resource and its authorization server.
    pub(crate) is_stated: bool,
}

/// Finds the authorization server: that of the settings, that of the server's metadata, or the
/// server itself, as before revision 2025-06-18.
pub(crate) async fn discover(
    transport: &Transport,
    config: &AuthConfig,
    challenge: Option<&Challenge>,
    steps: &Steps,
) -> Result<Target, AuthError> {
    let metadata = resource_metadata::discover(transport, config, challenge, steps).await?;
    let (issuer, named_by) = issuer_of(config, metadata.as_ref(), steps)?;
    let server = server_metadata::discover(transport, &issuer, named_by, steps).await?;
    let stated = metadata.as_ref().map(|metadata| metadata.resource.clone());
    Ok(Target {
        server,
        is_stated: stated.is_some(),
        resource: config
            .resource
            .clone()
            .or(stated)
            .or_else(|| Some(canonical(&config.server))),
        scopes_supported: metadata.and_then(|metadata| metadata.scopes_supported),
    })
}

/// The authorization server, and the place that named it.
fn issuer_of(
    config: &AuthConfig,
    metadata: Option<&ResourceMetadata>,
    steps: &Steps,
) -> Result<(String, NamedBy), AuthError> {
    let Some(metadata) = metadata else {
        if let Some(issuer) = &config.issuer {
            return Ok((issuer.clone(), NamedBy::Metadata));
        }
        let origin = url::Url::parse(&config.server)
            .map(|url| url.origin().ascii_serialization())
            .unwrap_or_default();
        steps.skipped(
            "protected-resource metadata",
            "there is none: the server itself is asked, as in revision 2025-03-26",
        );
        return Ok((origin, NamedBy::Fallback));
    };
    let listed = &metadata.authorization_servers;
    match &config.issuer {
        Some(issuer) if listed.is_empty() || listed.contains(issuer) => {
            Ok((issuer.clone(), NamedBy::Metadata))
        }
        Some(issuer) => {
            let message = format!(
                "the server's tokens are issued by {}, not by {issuer}, which `issuer` names",
                listed.join(", ")
            );
            steps.failed("issuer", &message);
            Err(AuthError::new(message))
        }
        None => match listed.first() {
            Some(first) => Ok((first.clone(), NamedBy::Metadata)),
            None => {
                let message =
                    "the server's metadata lists no `authorization_servers`: set `issuer`";
                steps.failed("issuer", message);
                Err(AuthError::new(message))
            }
        },
    }
}

/// The address of a server as a resource: without a fragment, without a slash at the end of an
/// address that has no path.
#[must_use]
pub fn canonical(server: &str) -> String {
    let Ok(mut url) = url::Url::parse(server) else {
        return server.to_owned();
    };
    url.set_fragment(None);
    match (url.path(), url.query()) {
        ("/", None) => url.as_str().trim_end_matches('/').to_owned(),
        _ => url.into(),
    }
}

/// The scopes to request: those of the settings, else those that the server asked for, else those
/// that its metadata lists.
pub(crate) fn scopes(
    config: &AuthConfig,
    challenge: Option<&Challenge>,
    supported: Option<&[String]>,
) -> Vec<String> {
    if !config.scopes.is_empty() {
        return config.scopes.clone();
    }
    match challenge {
        Some(challenge) if !challenge.scopes.is_empty() => challenge.scopes.clone(),
        _ => supported.map(<[String]>::to_vec).unwrap_or_default(),
    }
}

/// Lines to write into a suite for this server, as far as discovery shows it.
pub(crate) fn advice(config: &AuthConfig, target: &Target) -> Vec<String> {
    let server = &target.server;
    let mut lines = Vec::new();
    let issuer = format!("issuer: {}", server.issuer);
    if server.may_grant("client_credentials") {
        lines.push(format!(
            "in CI: `auth: {{type: client_credentials, client_id: …, client_secret_env: …, \
             {issuer}}}`"
        ));
    }
    let can_register = server.registration_endpoint.is_some() || server.takes_client_documents;
    if server.authorization_endpoint.is_some() && server.may_grant("authorization_code") {
        let client = match can_register {
            true => "",
            false => ", client_id: …",
        };
        lines.push(format!(
            "with a login: `auth: {{type: authorization_code{client}, {issuer}}}`, then `{}`",
            config.login_command
        ));
    }
    if matches!(config.grant, Grant::Undeclared) {
        lines.push(
            "with a token of your own: `bearer: ${TOKEN}` (or `--header 'Authorization: Bearer …'`)"
                .to_owned(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> AuthConfig {
        AuthConfig::new("https://x.example/mcp", Grant::ClientCredentials)
    }

    #[test]
    fn scopes_come_from_the_settings_then_the_challenge_then_the_metadata() {
        let challenge = Challenge {
            scopes: vec!["b".to_owned()],
            ..Challenge::default()
        };
        let supported = ["c".to_owned()];
        let mut config = config();
        assert_eq!(scopes(&config, None, None), Vec::<String>::new());
        assert_eq!(scopes(&config, None, Some(&supported)), ["c"]);
        assert_eq!(scopes(&config, Some(&challenge), Some(&supported)), ["b"]);
        config.scopes = vec!["a".to_owned()];
        assert_eq!(scopes(&config, Some(&challenge), Some(&supported)), ["a"]);
    }

    #[test]
    fn an_issuer_of_the_settings_must_be_listed() {
        let metadata = |servers: &[&str]| ResourceMetadata {
            resource: "https://x.example/mcp".to_owned(),
            authorization_servers: servers.iter().map(|one| (*one).to_owned()).collect(),
            scopes_supported: None,
        };
        let steps = Steps::default();
        let mut config = config();
        let issuer = |config: &AuthConfig, servers: &[&str]| {
            issuer_of(config, Some(&metadata(servers)), &steps).map(|(issuer, _)| issuer)
        };
        assert_eq!(
            issuer(&config, &["https://a", "https://b"]).unwrap(),
            "https://a"
        );
        assert!(issuer(&config, &[]).is_err());
        config.issuer = Some("https://b".to_owned());
        assert_eq!(
            issuer(&config, &["https://a", "https://b"]).unwrap(),
            "https://b"
        );
        assert_eq!(issuer(&config, &[]).unwrap(), "https://b");
        let error = issuer(&config, &["https://evil"]).unwrap_err();
        assert!(
            error
                .message
                .contains("issued by https://evil, not by https://b")
        );
    }

    #[test]
    fn a_resource_has_no_fragment_and_no_empty_path() {
        assert_eq!(canonical("https://X.example"), "https://x.example");
        assert_eq!(canonical("https://x.example/#a"), "https://x.example");
        assert_eq!(canonical("https://x.example/mcp"), "https://x.example/mcp");
        assert_eq!(
            canonical("https://x.example/mcp/"),
            "https://x.example/mcp/"
        );
    }
}
