//! The settings of authorization for one server.

use std::fmt;
use std::path::PathBuf;

/// A value of the environment that is a secret.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct SecretVariable {
    /// The name of the variable.
    pub name: String,
    /// Its value; absent if it is not set.
    pub value: Option<String>,
}

impl fmt::Debug for SecretVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretVariable")
            .field("name", &self.name)
            .field("is_set", &self.value.is_some())
            .finish()
    }
}

/// The way to a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Grant {
    /// The client itself is authorized, without a user.
    ClientCredentials,
    /// A user has logged in; the tokens are in the store.
    AuthorizationCode,
    /// A refresh token from the environment.
    RefreshToken(SecretVariable),
    /// None is declared: the server's requirements are only explained.
    Undeclared,
}

impl Grant {
    /// The name of the grant in suites.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken(_) => "refresh_token",
            Self::Undeclared => "none",
        }
    }
}

/// The settings of authorization for one server. Everything that is absent is discovered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuthConfig {
    /// The address of the server.
    pub server: String,
    /// The way to a token.
    pub grant: Grant,
    /// The client's id, or the address of its metadata document.
    pub client_id: Option<String>,
    /// The client's secret.
    pub client_secret: Option<SecretVariable>,
    /// The file with the client's private key, in PEM form.
    pub private_key_file: Option<PathBuf>,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The authorization server.
    pub issuer: Option<String>,
    /// The resource that tokens are for.
    pub resource: Option<String>,
    /// The port of the redirect address on this machine.
    pub redirect_port: Option<u16>,
    /// The command that logs in, for messages.
    pub login_command: String,
}

impl AuthConfig {
    /// Settings in which only the server and the grant are set.
    #[must_use]
    pub fn new(server: &str, grant: Grant) -> Self {
        Self {
            server: server.to_owned(),
            grant,
            client_id: None,
            client_secret: None,
            private_key_file: None,
            scopes: Vec::new(),
            issuer: None,
            resource: None,
            redirect_port: None,
            login_command: format!("mcptest auth login --url {server}"),
        }
    }

    /// The client's id, if it is not the address of a metadata document.
    pub(crate) fn registered_id(&self) -> Option<&str> {
        self.client_id
            .as_deref()
            .filter(|id| !id.starts_with("https://"))
    }

    /// The address of the client's metadata document.
    pub(crate) fn metadata_document(&self) -> Option<&str> {
        self.client_id
            .as_deref()
            .filter(|id| id.starts_with("https://"))
    }
}
