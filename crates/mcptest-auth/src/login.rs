//! The interactive login: authorization code with PKCE and a redirect to this machine.

use std::sync::Arc;
use std::time::Duration;

use oauth2::{
    AuthUrl, ClientId, CsrfToken, PkceCodeChallenge, RedirectUrl, Scope, basic::BasicClient,
};
use tokio::time::timeout;

use crate::client::{Client, SigningClient};
use crate::config::AuthConfig;
use crate::discovery::Target;
use crate::error::AuthError;
use crate::interaction::Interaction;
use crate::redirect::{RedirectAnswer, RedirectListener, parse_pasted};
use crate::registration::register;
use crate::server_metadata::AuthorizationServer;
use crate::steps::Steps;
use crate::token_request::{TokenGrant, TokenRequest};
use crate::tokens::Tokens;
use crate::transport::Transport;

/// The scope of OpenID Connect for refresh tokens.
const OFFLINE_ACCESS: &str = "offline_access";

/// One login.
pub(crate) struct LoginRequest<'a> {
    pub(crate) config: &'a AuthConfig,
    pub(crate) transport: &'a Transport,
    pub(crate) target: &'a Target,
    pub(crate) interaction: &'a Arc<dyn Interaction>,
    pub(crate) steps: &'a Steps,
    pub(crate) hide: &'a (dyn Fn(&str) + Send + Sync),
    /// The client that was registered at this authorization server before.
    pub(crate) known: Option<&'a Client>,
    pub(crate) scopes: &'a [String],
    /// Time for a person to log in.
    pub(crate) limit: Duration,
}

impl LoginRequest<'_> {
    /// Lets the user log in. Returns the tokens and the client that they belong to.
    pub(crate) async fn run(&self) -> Result<(Tokens, Client), AuthError> {
        let server = &self.target.server;
        let endpoint = self.check()?;
        let (listener, client) = self.client().await?;
        let client = SigningClient::new(client, self.config)?;
        let redirect = listener.address();
        let scopes = self.requested_scopes();
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        (self.hide)(verifier.secret());
        let invalid = |error: oauth2::url::ParseError| AuthError::new(error.to_string());
        let oauth = BasicClient::new(ClientId::new(client.client.id.clone()))
            .set_auth_uri(AuthUrl::new(endpoint).map_err(invalid)?)
            .set_redirect_uri(RedirectUrl::new(redirect.clone()).map_err(invalid)?);
        let mut request = oauth
            .authorize_url(CsrfToken::new_random)
            .set_pkce_challenge(challenge)
            .add_scopes(scopes.iter().cloned().map(Scope::new));
        if let Some(resource) = &self.target.resource {
            request = request.add_extra_param("resource", resource.clone());
        }
        if scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
            // OpenID Connect grants it only with the user's consent.
            request = request.add_extra_param("prompt", "consent");
        }
        let (url, state) = request.url();
        let answer = self.wait(url.as_str(), &listener, state.secret()).await?;
        let code = answer.code_of(&server.issuer, server.sends_issuer);
        let code = code.inspect_err(|error| {
            self.steps.failed("answer of the login", &error.message);
        })?;
        (self.hide)(&code);
        self.steps
            .ok("answer of the login", "a code with the right state");
        let grant = TokenGrant::Code {
            code,
            verifier: verifier.into_secret(),
            redirect,
        };
        let tokens = TokenRequest {
            transport: self.transport,
            server,
            client: &client,
            resource: self.target.resource.as_deref(),
            scopes: &scopes,
            steps: self.steps,
            hide: self.hide,
        };
        let tokens = tokens.send(&grant).await.map_err(|error| error.error)?;
        Ok((tokens, client.client))
    }

    /// The authorization endpoint, if the login can be safe.
    fn check(&self) -> Result<String, AuthError> {
        let server = &self.target.server;
        let fail = |reason: &str| {
            self.steps
                .failed(format!("authorization server {}", server.issuer), reason);
            AuthError::new(format!("no login at {}: {reason}", server.issuer))
        };
        if !has_pkce(server) {
            return Err(fail(
                "its metadata does not list S256 in `code_challenge_methods_supported`, and \
                 without PKCE clients must not log in",
            ));
        }
        if !server.may_grant("authorization_code") {
            return Err(fail("it does not list the grant authorization_code"));
        }
        server
            .authorization_endpoint
            .clone()
            .ok_or_else(|| fail("it has no `authorization_endpoint`"))
    }

    /// The client, and the listener at its redirect address: the one of the settings, else the one
    /// that was registered before, else a new one.
    async fn client(&self) -> Result<(RedirectListener, Client), AuthError> {
        let server = &self.target.server;
        if let Some(declared) = Client::declared(self.config, server)? {
            let listener = RedirectListener::bind(self.config.redirect_port).await?;
            self.steps.ok(
                "client",
                format!("client `{}` of the settings", declared.id),
            );
            return Ok((listener, declared));
        }
        if let Some(known) = self.known
            && let Some(port) = known.registered_redirect.as_deref().and_then(port_of)
            && self.config.redirect_port.is_none_or(|set| set == port)
            && known.may_request(&self.requested_scopes())
            && let Ok(listener) = RedirectListener::bind(Some(port)).await
            && known.registered_redirect.as_deref() == Some(&listener.address())
        {
            self.steps.ok(
                "client",
                format!("client `{}`, registered before", known.id),
            );
            return Ok((listener, known.clone()));
        }
        let listener = RedirectListener::bind(self.config.redirect_port).await?;
        // All that may be asked for later, so that the client need not be registered again then.
        let mut scopes = self.requested_scopes();
        for scope in self.target.scopes_supported.iter().flatten() {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        let redirect = listener.address();
        let registered = register(self.transport, server, &redirect, &scopes, self.steps).await?;
        if let Some(secret) = &registered.secret {
            (self.hide)(secret);
        }
        Ok((listener, registered))
    }

    /// The scopes of the request: those that are needed, and that for refresh tokens where the
    /// authorization server has it.
    fn requested_scopes(&self) -> Vec<String> {
        let mut scopes = self.scopes.to_vec();
        let supported = self.target.server.scopes_supported.as_ref();
        let has_offline = supported.is_some_and(|all| all.iter().any(|one| one == OFFLINE_ACCESS));
        if has_offline
            && self.target.server.may_grant("refresh_token")
            && !scopes.iter().any(|scope| scope == OFFLINE_ACCESS)
        {
            scopes.push(OFFLINE_ACCESS.to_owned());
        }
        scopes
    }

    /// Shows the address and waits for the answer.
    async fn wait(
        &self,
        url: &str,
        listener: &RedirectListener,
        state: &str,
    ) -> Result<RedirectAnswer, AuthError> {
        let answer = async {
            let arrived = listener.answer(state);
            tokio::pin!(arrived);
            let shown = self.interaction.show(url);
            tokio::pin!(shown);
            let mut is_shown = false;
            loop {
                tokio::select! {
                    biased;
                    answer = &mut arrived => return answer,
                    () = &mut shown, if !is_shown => is_shown = true,
                    text = self.interaction.pasted() => {
                        match parse_pasted(&text, state) {
                            Ok(answer) => return answer,
                            Err(reason) => self.steps.skipped("pasted address", reason),
                        }
                    }
                }
            }
        };
        timeout(self.limit, answer).await.map_err(|_| {
            let message = format!("nobody logged in within {} s", self.limit.as_secs_f32());
            self.steps.failed("answer of the login", &message);
            AuthError::new(message)
        })
    }
}

/// Returns true if a login can be protected. The default endpoints of revision 2025-03-26 state
/// nothing, and must support it.
fn has_pkce(server: &AuthorizationServer) -> bool {
    let methods = server.challenge_methods_supported.as_ref();
    !server.has_metadata
        || methods.is_some_and(|methods| methods.iter().any(|method| method == "S256"))
}

fn port_of(redirect: &str) -> Option<u16> {
    url::Url::parse(redirect).ok()?.port()
}
