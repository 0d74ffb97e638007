//! The client's identity at an authorization server.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::assertion::AssertionKey;
use crate::config::AuthConfig;
use crate::error::AuthError;
use crate::server_metadata::AuthorizationServer;

/// The way in which a client proves its identity at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

impl AuthMethod {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [
            Self::None,
            Self::ClientSecretBasic,
            Self::ClientSecretPost,
            Self::PrivateKeyJwt,
        ]
        .into_iter()
        .find(|method| method.name() == name)
    }

    /// The method for a client with a secret: the first that the server lists.
    pub(crate) fn for_secret(supported: Option<&[String]>) -> Self {
        let lists = |method: Self| {
            supported.is_some_and(|list| list.iter().any(|one| one == method.name()))
        };
        // Without a list, RFC 8414 means client_secret_basic.
        if !lists(Self::ClientSecretBasic) && lists(Self::ClientSecretPost) {
            Self::ClientSecretPost
        } else {
            Self::ClientSecretBasic
        }
    }

    /// The method to register with: a program on a user's machine can keep no secret.
    pub(crate) fn to_register(supported: Option<&[String]>) -> Self {
        match supported {
            Some(list) if !list.iter().any(|one| one == "none") => Self::for_secret(supported),
            _ => Self::None,
        }
    }
}

/// A client of an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
    pub(crate) method: AuthMethod,
    /// The redirect address of a client that was registered dynamically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registered_redirect: Option<String>,
    /// The scopes that a client may request, if its registration limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registered_scopes: Option<Vec<String>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// The client of the settings, if they name one that the server knows or accepts.
    ///
    /// # Errors
    /// The variable of its secret is not set.
    pub(crate) fn declared(
        config: &AuthConfig,
        server: &AuthorizationServer,
    ) -> Result<Option<Self>, AuthError> {
        let document = config
            .metadata_document()
            .filter(|_| server.takes_client_documents);
        let Some(id) = config.registered_id().or(document) else {
            return Ok(None);
        };
        let secret = match &config.client_secret {
            None => None,
            Some(variable) => Some(variable.value.clone().ok_or_else(|| {
                AuthError::new(format!(
                    "the environment variable {} is not set: it has the secret of client `{id}`",
                    variable.name
                ))
            })?),
        };
        let method = match (&config.private_key_file, &secret) {
            (Some(_), _) => AuthMethod::PrivateKeyJwt,
            (None, Some(_)) => AuthMethod::for_secret(server.auth_methods_supported.as_deref()),
            (None, None) => AuthMethod::None,
        };
        Ok(Some(Self {
            id: id.to_owned(),
            secret,
            method,
            registered_redirect: None,
            registered_scopes: None,
        }))
    }

    /// Returns true if the client may request these scopes.
    pub(crate) fn may_request(&self, scopes: &[String]) -> bool {
        let allowed = self.registered_scopes.as_ref();
        allowed.is_none_or(|allowed| scopes.iter().all(|scope| allowed.contains(scope)))
    }
}

/// A client with the key that signs its assertions.
#[derive(Clone)]
pub(crate) struct SigningClient {
    pub(crate) client: Client,
    pub(crate) key: Option<Arc<AssertionKey>>,
}

impl SigningClient {
    /// Reads the key of a client that needs one.
    pub(crate) fn new(client: Client, config: &AuthConfig) -> Result<Self, AuthError> {
        let key = match (&config.private_key_file, client.method) {
            (Some(path), AuthMethod::PrivateKeyJwt) => Some(Arc::new(AssertionKey::read(path)?)),
            _ => None,
        };
        Ok(Self { client, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_is_one_that_the_server_lists() {
        let method = |supported: Option<&[&str]>| {
            let list: Option<Vec<String>> =
                supported.map(|list| list.iter().map(|one| (*one).to_owned()).collect());
            let list = list.as_deref();
            (
                AuthMethod::for_secret(list).name(),
                AuthMethod::to_register(list).name(),
            )
        };
        let (basic, post) = ("client_secret_basic", "client_secret_post");
        assert_eq!(method(None), (basic, "none"));
        assert_eq!(method(Some(&["none"])), (basic, "none"));
        assert_eq!(method(Some(&[post])), (post, post));
        assert_eq!(method(Some(&[post, basic])), (basic, basic));
        assert_eq!(method(Some(&[basic, "none"])), (basic, "none"));
        assert_eq!(method(Some(&["private_key_jwt"])), (basic, basic));
    }
}
