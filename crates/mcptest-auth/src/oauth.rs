//! The source of credentials for one server: obtains tokens when the server asks for them, replaces
//! them before they expire, and once more when the server refuses them.
//!
//! All requests to a server share one source. Its state is locked while a token is obtained, so
//! that many requests that are refused at the same time cause one request for a token. A token is
//! obtained in its own task: a request that nobody waits for any more must not interrupt it,
//! because a refresh token may be used only once.

mod explain;
mod obtain;
mod source;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcptest_http::credentials::{
    Credential, CredentialError, CredentialFuture, Credentials, Refusal,
};

pub use self::explain::TokenSummary;
use self::source::Source;
use crate::config::AuthConfig;
use crate::error::AuthError;
use crate::interaction::Interaction;
use crate::steps::AuthStep;
use crate::store::Store;

/// The limits on the time of an authorization.
#[derive(Debug, Clone, Copy)]
pub struct AuthTimeouts {
    /// For one exchange with an authorization server.
    pub exchange: Duration,
    /// For obtaining a token without a person, with all exchanges and repetitions.
    pub obtain: Duration,
    /// For a person to log in.
    pub login: Duration,
}

impl Default for AuthTimeouts {
    fn default() -> Self {
        Self {
            exchange: Duration::from_secs(10),
            obtain: Duration::from_secs(45),
            login: Duration::from_secs(300),
        }
    }
}

/// The surroundings of a source of credentials.
#[derive(Clone)]
pub struct OAuthOptions {
    /// The store of logins.
    pub store: Option<Store>,
    /// The user, for an interactive login.
    pub interaction: Option<Arc<dyn Interaction>>,
    /// Receives every secret as soon as it is known, so that it is masked everywhere.
    pub on_secret: Arc<dyn Fn(&str) + Send + Sync>,
    /// True if the requirements of the server are examined although there is no token: `doctor`.
    pub explains: bool,
    /// True if tokens of earlier logins are ignored: `auth login`.
    pub ignores_logins: bool,
    /// True if nothing is read before the server asks for a token: it may need none.
    pub waits_for_refusal: bool,
    /// The limits on time.
    pub timeouts: AuthTimeouts,
}

impl Default for OAuthOptions {
    fn default() -> Self {
        Self {
            store: None,
            interaction: None,
            on_secret: Arc::new(|_| {}),
            explains: false,
            ignores_logins: false,
            waits_for_refusal: false,
            timeouts: AuthTimeouts::default(),
        }
    }
}

impl fmt::Debug for OAuthOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthOptions")
            .field("store", &self.store)
            .field("interaction", &self.interaction)
            .field("explains", &self.explains)
            .finish_non_exhaustive()
    }
}

/// The source of credentials for one server. Clones share it.
#[derive(Clone)]
pub struct OAuth(Arc<Source>);

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("config", &self.0.config)
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

impl OAuth {
    /// A source of credentials. Nothing is read or sent before the first request.
    #[must_use]
    pub fn new(config: AuthConfig, options: OAuthOptions) -> Self {
        Self(Arc::new(Source::new(config, options)))
    }

    /// The steps so far.
    #[must_use]
    pub fn steps(&self) -> Vec<AuthStep> {
        self.0.steps()
    }

    /// Lines to write into a suite, as far as discovery shows it.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        self.0.advice()
    }

    /// The token in use, without the token.
    pub async fn summary(&self) -> Option<TokenSummary> {
        self.0.summary().await
    }

    /// Obtains a token although the server did not ask for one.
    ///
    /// # Errors
    /// The reason why there is none.
    pub async fn authorize(&self) -> Result<(), AuthError> {
        self.0.authorize().await
    }

    /// Uses the source in a task that nothing interrupts.
    async fn uninterrupted<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, AuthError>> + Send + 'static,
    ) -> Result<T, CredentialError> {
        let done = tokio::spawn(work).await;
        let done = done.unwrap_or_else(|error| Err(AuthError::new(error.to_string())));
        done.map_err(|error| self.0.masked(error))
    }
}

impl Credentials for OAuth {
    fn current(&self) -> CredentialFuture<'_, Option<Credential>> {
        Box::pin(async {
            if let Some(ready) = self.0.ready() {
                return Ok(Some(ready));
            }
            let source = Arc::clone(&self.0);
            self.uninterrupted(async move { source.current_credential().await })
                .await
        })
    }

    fn replace(&self, refusal: Refusal) -> CredentialFuture<'_, Option<Credential>> {
        Box::pin(async {
            let source = Arc::clone(&self.0);
            self.uninterrupted(async move { source.replacement(refusal).await })
                .await
        })
    }

    fn accepted(&self, credential: &Credential) {
        self.0.accept(credential);
    }

    fn secrets(&self) -> Vec<String> {
        self.0.known_secrets()
    }
}
