//! Metadata of the protected resource (RFC 9728): who issues tokens for a server.

use serde_json::{Map, Value};
use url::Url;

use crate::challenge::Challenge;
use crate::config::AuthConfig;
use crate::error::AuthError;
use crate::metadata::{string, strings};
use crate::steps::Steps;
use crate::transport::Transport;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The statements of a server about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceMetadata {
    /// The resource, exactly as published.
    pub(crate) resource: String,
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
}

/// Looks for the metadata: where the challenge says, at the address for the server's path, at the
/// address for its host. `None` if there is none, as before revision 2025-06-18.
pub(crate) async fn discover(
    transport: &Transport,
    config: &AuthConfig,
    challenge: Option<&Challenge>,
    steps: &Steps,
) -> Result<Option<ResourceMetadata>, AuthError> {
    let server = Url::parse(&config.server)
        .map_err(|error| AuthError::new(format!("the server's URL is not valid: {error}")))?;
    let named = challenge.and_then(|challenge| challenge.resource_metadata.clone());
    for url in candidates(&server, named.as_deref()) {
        let action = format!("GET {url}");
        let object = match transport.get_object(&url).await {
            Ok(object) => object,
            Err(error) if error.is_absent => {
                steps.skipped(action, error.reason);
                continue;
            }
            Err(error) => {
                steps.failed(&action, &error.reason);
                let message = format!(
                    "the metadata of the protected resource cannot be read: {action}: {}",
                    error.reason
                );
                return Err(AuthError::lasting(message, error.is_temporary));
            }
        };
        return match read(&object, &server, config) {
            Ok(metadata) => {
                steps.ok(
                    action,
                    format!(
                        "resource {}, authorization servers: {}",
                        metadata.resource,
                        shown(&metadata.authorization_servers)
                    ),
                );
                Ok(Some(metadata))
            }
            Err(reason) => {
                steps.failed(&action, &reason);
                Err(AuthError::new(format!(
                    "the metadata of the protected resource cannot be used: {action}: {reason}"
                )))
            }
        };
    }
    Ok(None)
}

fn candidates(server: &Url, named: Option<&str>) -> Vec<String> {
    let mut found: Vec<String> = named.map(str::to_owned).into_iter().collect();
    let origin = server.origin().ascii_serialization();
    let path = server.path().trim_end_matches('/');
    if !path.is_empty() {
        let query = server.query().map(|query| format!("?{query}"));
        let query = query.unwrap_or_default();
        found.push(format!("{origin}{WELL_KNOWN}{path}{query}"));
    }
    found.push(format!("{origin}{WELL_KNOWN}"));
    let mut unique: Vec<String> = Vec::new();
    for url in found {
        if !unique.contains(&url) {
            unique.push(url);
        }
    }
    unique
}

/// Reads a document.
///
/// # Errors
/// The reason why it cannot be used.
pub(crate) fn read(
    object: &Map<String, Value>,
    server: &Url,
    config: &AuthConfig,
) -> Result<ResourceMetadata, String> {
    let resource = string(object, "resource")?.ok_or("it has no `resource`")?;
    if config.resource.as_deref() != Some(&resource) && !covers(&resource, server) {
        return Err(format!(
            "it is for another resource, {resource}, not for {}",
            server.as_str()
        ));
    }
    Ok(ResourceMetadata {
        resource,
        authorization_servers: strings(object, "authorization_servers")?.unwrap_or_default(),
        scopes_supported: strings(object, "scopes_supported")?,
    })
}

/// Returns true if a resource is the server, or a folder above it on the same host.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let folder = resource.path().trim_end_matches('/');
    let below = server.path().strip_prefix(folder);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && (resource.query().is_none() || resource.query() == server.query())
        && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn shown(list: &[String]) -> String {
    match list {
        [] => "none".to_owned(),
        list => list.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Grant;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn the_well_known_part_is_inserted_before_the_path() {
        assert_eq!(
            candidates(&url("https://x.example/public/mcp"), None),
            [
                "https://x.example/.well-known/oauth-protected-resource/public/mcp",
                "https://x.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            candidates(&url("https://x.example:8443/"), Some("https://x.example/m")),
            [
                "https://x.example/m",
                "https://x.example:8443/.well-known/oauth-protected-resource",
            ]
        );
        let root = "https://x.example/.well-known/oauth-protected-resource";
        assert_eq!(candidates(&url("https://x.example"), Some(root)), [root]);
    }

    #[test]
    fn metadata_is_for_the_server_or_a_folder_above_it() {
        let server = url("https://x.example/public/mcp");
        for resource in [
            "https://x.example/public/mcp",
            "https://x.example/public/mcp/",
            "https://x.example/public",
            "https://x.example",
            "https://X.example:443/",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://evil.example/public/mcp",
            "http://x.example/public/mcp",
            "https://x.example:444/public/mcp",
            "https://x.example/pub",
            "https://x.example/public/mcp/more",
            "https://x.example/other",
            "https://x.example/#x",
            "x.example",
            "",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
    }

    #[test]
    fn a_resource_that_the_user_names_is_accepted() {
        let server = url("http://127.0.0.1:3000/mcp");
        let mut config = AuthConfig::new(server.as_str(), Grant::ClientCredentials);
        let object = json!({"resource": "https://api.example/mcp", "authorization_servers": []});
        let object = object.as_object().unwrap();
        let reason = read(object, &server, &config).unwrap_err();
        assert!(reason.contains("for another resource, https://api.example/mcp"));
        config.resource = Some("https://api.example/mcp".to_owned());
        assert!(read(object, &server, &config).is_ok());
    }
}
