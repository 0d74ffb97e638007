//! Requests to token and revocation endpoints.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oauth2::basic::{
    BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
};
use oauth2::{
    AuthType, AuthorizationCode, ClientId, ClientSecret, EndpointNotSet, EndpointSet,
    PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope, StandardRevocableToken,
    TokenUrl,
};
use serde_json::Value;
use tokio::time::sleep;
use url::form_urlencoded;

use crate::assertion::ASSERTION_TYPE;
use crate::client::{AuthMethod, SigningClient};
use crate::error::AuthError;
use crate::server_metadata::AuthorizationServer;
use crate::steps::Steps;
use crate::tokens::{TokenResponse, Tokens};
use crate::transport::{ExchangeError, Transport, refused};

/// The pauses before a request is repeated that had no effect: nothing was sent, or the server was
/// busy.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1200)];

type OAuthClient = oauth2::Client<
    BasicErrorResponse,
    TokenResponse,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

/// The grant of a request for tokens.
#[derive(Debug, Clone)]
pub(crate) enum TokenGrant {
    ClientCredentials,
    Refresh(String),
    Code {
        code: String,
        verifier: String,
        redirect: String,
    },
}

impl TokenGrant {
    fn name(&self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::Refresh(_) => "refresh_token",
            Self::Code { .. } => "authorization_code",
        }
    }
}

/// A request for tokens.
pub(crate) struct TokenRequest<'a> {
    pub(crate) transport: &'a Transport,
    pub(crate) server: &'a AuthorizationServer,
    pub(crate) client: &'a SigningClient,
    pub(crate) resource: Option<&'a str>,
    pub(crate) scopes: &'a [String],
    pub(crate) steps: &'a Steps,
    /// Receives every secret before it is sent or used.
    pub(crate) hide: &'a (dyn Fn(&str) + Send + Sync),
}

/// A refused request for tokens.
#[derive(Debug)]
pub(crate) struct TokenError {
    /// The code of the server, such as `invalid_grant`.
    pub(crate) code: Option<String>,
    pub(crate) error: AuthError,
}

impl TokenRequest<'_> {
    /// Requests tokens, again if that had no effect.
    pub(crate) async fn send(&self, grant: &TokenGrant) -> Result<Tokens, TokenError> {
        let action = format!("POST {} ({})", self.server.token_endpoint, grant.name());
        let mut pauses = PAUSES.into_iter();
        loop {
            let error = match self.try_send(grant).await {
                Ok(response) => match response.problem() {
                    None => return Ok(self.accept(&action, response)),
                    Some(problem) => TokenError {
                        code: None,
                        error: AuthError::new(problem),
                    },
                },
                Err(error) => error,
            };
            if error.error.is_temporary
                && let Some(pause) = pauses.next()
            {
                self.steps.skipped(&action, &error.error.message);
                sleep(pause).await;
                continue;
            }
            self.steps.failed(&action, &error.error.message);
            let reason = error.error.message;
            let message = match error.code.as_deref().and_then(advice) {
                Some(advice) => format!("no token: {action}: {reason}; {advice}"),
                None => format!("no token: {action}: {reason}"),
            };
            return Err(TokenError {
                code: error.code,
                error: AuthError::lasting(message, error.error.is_temporary),
            });
        }
    }

    fn accept(&self, action: &str, response: TokenResponse) -> Tokens {
        let tokens = Tokens::of(response, self.scopes.to_vec(), SystemTime::now());
        (self.hide)(&tokens.access);
        if let Some(refresh) = &tokens.refresh {
            (self.hide)(refresh);
        }
        let lifetime = tokens.expires_at.map_or_else(
            || "for an unknown time".to_owned(),
            |end| {
                let left = end.duration_since(SystemTime::now()).unwrap_or_default();
                // The time of the exchange itself.
                format!("for {} s", (left + Duration::from_millis(500)).as_secs())
            },
        );
        let scopes = tokens.granted.as_ref().unwrap_or(&tokens.requested);
        let scopes = match scopes.as_slice() {
            [] => "no scope stated".to_owned(),
            scopes => format!("scopes {}", scopes.join(" ")),
        };
        let refresh = match tokens.refresh {
            Some(_) => ", with a refresh token",
            None => "",
        };
        self.steps
            .ok(action, format!("a token {lifetime}, {scopes}{refresh}"));
        tokens
    }

    async fn try_send(&self, grant: &TokenGrant) -> Result<TokenResponse, TokenError> {
        let client = self.client().map_err(plain)?;
        let mut extra: Vec<(&str, Cow<'_, str>)> = Vec::new();
        if let Some(resource) = self.resource {
            extra.push(("resource", resource.into()));
        }
        if let Some(assertion) = self.assertion().map_err(plain)? {
            extra.push(("client_assertion_type", ASSERTION_TYPE.into()));
            extra.push(("client_assertion", assertion.into()));
        }
        let scopes = self.scopes.iter().cloned().map(Scope::new);
        let sent = match grant {
            TokenGrant::ClientCredentials => {
                let mut request = client.exchange_client_credentials().add_scopes(scopes);
                for (name, value) in extra {
                    request = request.add_extra_param(name, value);
                }
                request.request_async(self.transport).await
            }
            TokenGrant::Refresh(token) => {
                let token = RefreshToken::new(token.clone());
                let mut request = client.exchange_refresh_token(&token).add_scopes(scopes);
                for (name, value) in extra {
                    request = request.add_extra_param(name, value);
                }
                request.request_async(self.transport).await
            }
            TokenGrant::Code {
                code,
                verifier,
                redirect,
            } => {
                let redirect = RedirectUrl::new(redirect.clone())
                    .map_err(|error| plain(AuthError::new(error.to_string())))?;
                let mut request = client
                    .exchange_code(AuthorizationCode::new(code.clone()))
                    .set_pkce_verifier(PkceCodeVerifier::new(verifier.clone()))
                    .set_redirect_uri(Cow::Owned(redirect));
                for (name, value) in extra {
                    request = request.add_extra_param(name, value);
                }
                request.request_async(self.transport).await
            }
        };
        sent.map_err(token_error)
    }

    fn client(&self) -> Result<OAuthClient, AuthError> {
        let declared = &self.client.client;
        let url = TokenUrl::new(self.server.token_endpoint.clone())
            .map_err(|error| AuthError::new(format!("the token endpoint is not a URL: {error}")))?;
        let mut client = oauth2::Client::new(ClientId::new(declared.id.clone()))
            .set_token_uri(url)
            .set_auth_type(match declared.method {
                AuthMethod::ClientSecretBasic => AuthType::BasicAuth,
                _ => AuthType::RequestBody,
            });
        if let (Some(secret), AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost) =
            (&declared.secret, declared.method)
        {
            (self.hide)(secret);
            client = client.set_client_secret(ClientSecret::new(secret.clone()));
        }
        Ok(client)
    }

    fn assertion(&self) -> Result<Option<String>, AuthError> {
        let Some(key) = &self.client.key else {
            return Ok(None);
        };
        let assertion = key.sign(&self.client.client.id, &self.server.issuer)?;
        (self.hide)(&assertion);
        Ok(Some(assertion))
    }

    /// Revokes a token (RFC 7009). Returns false if the server offers no revocation.
    pub(crate) async fn revoke(&self, token: &str, kind: &str) -> Result<bool, AuthError> {
        let Some(endpoint) = &self.server.revocation_endpoint else {
            return Ok(false);
        };
        let client = &self.client.client;
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token)
            .append_pair("token_type_hint", kind);
        let mut request = hyper::Request::post(endpoint)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json");
        let encoded =
            |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
        match (client.method, &client.secret) {
            (AuthMethod::ClientSecretBasic, Some(secret)) => {
                let both = format!("{}:{}", encoded(&client.id), encoded(secret));
                let value = format!("Basic {}", STANDARD.encode(both));
                request = request.header("authorization", value);
            }
            (method, secret) => {
                form.append_pair("client_id", &client.id);
                if let (AuthMethod::ClientSecretPost, Some(secret)) = (method, secret) {
                    form.append_pair("client_secret", secret);
                }
            }
        }
        if let Some(assertion) = self.assertion()? {
            form.append_pair("client_assertion_type", ASSERTION_TYPE)
                .append_pair("client_assertion", &assertion);
        }
        let request = request
            .body(form.finish().into_bytes())
            .map_err(|error| AuthError::new(error.to_string()))?;
        let response = self.transport.send(request).await;
        let response =
            response.map_err(|error| AuthError::new(format!("POST {endpoint}: {error}")))?;
        if response.status().is_success() {
            return Ok(true);
        }
        let reason = refused(response.status(), response.body());
        Err(AuthError::new(format!("POST {endpoint}: {reason}")))
    }
}

fn plain(error: AuthError) -> TokenError {
    TokenError { code: None, error }
}

fn token_error(error: RequestTokenError<ExchangeError, BasicErrorResponse>) -> TokenError {
    match error {
        RequestTokenError::Request(error) => TokenError {
            code: None,
            error: AuthError::lasting(error.reason, error.is_temporary),
        },
        RequestTokenError::ServerResponse(response) => {
            let code = response.error().as_ref().to_owned();
            let reason = match response.error_description() {
                Some(description) => format!("`{code}`: {description}"),
                None => format!("`{code}`"),
            };
            TokenError {
                code: Some(code),
                error: AuthError::new(reason),
            }
        }
        RequestTokenError::Parse(_, body) => {
            let value: Value = serde_json::from_slice(&body).unwrap_or_default();
            // Some servers answer 200 with an error.
            if let Some(code) = value.get("error").and_then(Value::as_str) {
                let description = value.get("error_description").and_then(Value::as_str);
                return TokenError {
                    code: Some(code.to_owned()),
                    error: AuthError::new(format!(
                        "`{code}`: {}",
                        description.unwrap_or("no description")
                    )),
                };
            }
            // The body may have a token, so neither it nor the parser's message is shown.
            let has = |key: &str| value.get(key).is_some_and(|value| !value.is_null());
            let reason = match &value {
                Value::Object(_) if !has("access_token") => "it has no `access_token`",
                Value::Object(_) if !has("token_type") => "it has no `token_type`",
                Value::Object(_) => "a field has the wrong type",
                _ => "it is not a JSON object",
            };
            plain(AuthError::new(format!(
                "the response is not a token response: {reason}"
            )))
        }
        RequestTokenError::Other(reason) => plain(AuthError::new(reason)),
    }
}

/// The remedy for an error of a token endpoint.
fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "invalid_client" => {
            "the authorization server does not know the client, or rejects its secret or key: \
             check `client_id` and `client_secret_env` or `private_key_file`"
        }
        "unauthorized_client" | "unsupported_grant_type" => {
            "the client may not use this grant: check `type` and the registration of the client"
        }
        "invalid_scope" => "check `scopes`",
        "invalid_target" => "check `resource`",
        "invalid_grant" => "the code or refresh token is no longer valid",
        _ => return None,
    })
}
