//! The logins of the store, listed and ended.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::client::SigningClient;
use crate::config::{AuthConfig, Grant};
use crate::error::AuthError;
use crate::oauth::AuthTimeouts;
use crate::steps::Steps;
use crate::store::{Login, Store, StoreError};
use crate::token_request::TokenRequest;
use crate::transport::Transport;
use crate::url_policy::UrlPolicy;

/// A login, without its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoginSummary {
    /// The address of the server.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// The client.
    pub client_id: String,
    /// The scopes: those that were granted, if that is known, else those requested.
    pub scopes: Vec<String>,
    /// The seconds until the end of the access token; negative if it is over.
    pub expires_in: Option<i64>,
    /// True if it can be refreshed without a person.
    pub can_refresh: bool,
    /// True if it replaces a refresh token of the environment.
    pub is_replacement: bool,
}

impl LoginSummary {
    fn of(login: &Login) -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
        Self {
            server: login.server.clone(),
            issuer: login.authorization_server.issuer.clone(),
            client_id: login.client.id.clone(),
            scopes: login.granted.as_ref().unwrap_or(&login.requested).clone(),
            expires_in: login.expires_at.map(|end| signed(end) - signed(now)),
            can_refresh: login.refresh_token.is_some(),
            is_replacement: login.replaces.is_some(),
        }
    }
}

/// A login that was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EndedLogin {
    /// The address of the server.
    pub server: String,
    /// True if the authorization server revoked the tokens.
    pub revoked: bool,
    /// The reason why they were not revoked.
    pub reason: Option<String>,
}

impl Store {
    /// All logins, without their tokens.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self) -> Result<Vec<LoginSummary>, StoreError> {
        Ok(self.logins()?.values().map(LoginSummary::of).collect())
    }

    /// Ends the logins of these servers, or all of them: their tokens are revoked, as far as their
    /// authorization servers offer that, and removed.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn log_out(
        &self,
        servers: Option<&[String]>,
        on_secret: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Vec<EndedLogin>, StoreError> {
        let is_meant =
            |login: &Login| servers.is_none_or(|servers| servers.contains(&login.server));
        let _lock = self.lock()?;
        let meant: Vec<Login> = self.logins()?.into_values().filter(is_meant).collect();
        let mut ended = Vec::new();
        for login in &meant {
            let (revoked, reason) = match revoke(login, on_secret).await {
                Ok(true) => (true, None),
                Ok(false) => (
                    false,
                    Some("the authorization server has no revocation endpoint".to_owned()),
                ),
                Err(error) => (false, Some(error.message)),
            };
            ended.push(EndedLogin {
                server: login.server.clone(),
                revoked,
                reason,
            });
        }
        self.change(|logins| {
            for login in &meant {
                logins.remove(&login.key());
            }
        })?;
        Ok(ended)
    }
}

/// Revokes the refresh token and the access token. Returns false if there is no revocation.
async fn revoke(
    login: &Login,
    on_secret: &(dyn Fn(&str) + Send + Sync),
) -> Result<bool, AuthError> {
    on_secret(&login.access_token);
    let policy = UrlPolicy::of([
        login.server.as_str(),
        login.authorization_server.issuer.as_str(),
    ]);
    let transport = Transport::new(policy, AuthTimeouts::default().exchange);
    let config = AuthConfig::new(&login.server, Grant::AuthorizationCode);
    let client = SigningClient::new(login.client.clone(), &config)?;
    let steps = Steps::default();
    let request = TokenRequest {
        transport: &transport,
        server: &login.authorization_server,
        client: &client,
        resource: None,
        scopes: &[],
        steps: &steps,
        hide: on_secret,
    };
    let Some(refresh) = &login.refresh_token else {
        return request.revoke(&login.access_token, "access_token").await;
    };
    on_secret(refresh);
    let revoked = request.revoke(refresh, "refresh_token").await?;
    // It ends soon by itself, and some servers cannot revoke tokens that are JWTs.
    let _ = request.revoke(&login.access_token, "access_token").await;
    Ok(revoked)
}
