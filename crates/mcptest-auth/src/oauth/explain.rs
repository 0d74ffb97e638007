//! Explanations: what a server requires, and what a token is.

use std::sync::PoisonError;
use std::time::SystemTime;

use serde::Serialize;

use super::source::Source;
use crate::challenge::Challenge;
use crate::discovery;
use crate::error::AuthError;

/// A token in use, without the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TokenSummary {
    /// The grant of the settings.
    pub grant: String,
    /// The authorization server.
    pub issuer: String,
    /// The client.
    pub client_id: String,
    /// The resource that the token is for.
    pub resource: Option<String>,
    /// Its scopes: those that were granted, if the answer stated them, else those requested.
    pub scopes: Vec<String>,
    /// The seconds until its end, if that is known.
    pub expires_in: Option<u64>,
    /// True if it can be refreshed without a person.
    pub can_refresh: bool,
}

impl Source {
    /// Examines what the server requires. Returns it as the error of a request without a token.
    pub(super) async fn explain(&self, challenge: Option<&Challenge>) -> AuthError {
        let found =
            discovery::discover(&self.transport, &self.config, challenge, &self.steps).await;
        let target = match found {
            Ok(target) => target,
            Err(error) => return error,
        };
        let lines = discovery::advice(&self.config, &target);
        *self.advice.lock().unwrap_or_else(PoisonError::into_inner) = lines;
        let supported = target.scopes_supported.as_deref();
        let scopes = discovery::scopes(&self.config, challenge, supported);
        let scopes = match scopes.as_slice() {
            [] => String::new(),
            scopes => format!(", with the scopes {}", scopes.join(" ")),
        };
        AuthError::new(format!(
            "the server requires a token of {}{scopes}",
            target.server.issuer
        ))
    }

    /// The token in use, without the token.
    pub(super) async fn summary(&self) -> Option<TokenSummary> {
        let state = self.state.lock().await;
        let (current, session) = (state.current.as_ref()?, state.session.as_ref()?);
        let tokens = &current.tokens;
        Some(TokenSummary {
            grant: self.config.grant.name().to_owned(),
            issuer: session.target.server.issuer.clone(),
            client_id: session.client.id.clone(),
            resource: session.target.resource.clone(),
            scopes: tokens.granted.as_ref().unwrap_or(&tokens.requested).clone(),
            expires_in: tokens.expires_at.map(|end| {
                let left = end.duration_since(SystemTime::now());
                left.map_or(0, |left| left.as_secs())
            }),
            can_refresh: tokens.refresh.is_some(),
        })
    }
}
