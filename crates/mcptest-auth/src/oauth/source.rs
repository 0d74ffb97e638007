//! The state of a source of credentials, and its reactions to refusals.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hyper::StatusCode;
use mcptest_http::body::describe_status;
use mcptest_http::credentials::{Credential, CredentialError, Refusal};
use mcptest_http::secrets::mask;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use super::OAuthOptions;
use crate::challenge::Challenge;
use crate::client::Client;
use crate::config::{AuthConfig, Grant};
use crate::discovery::{Target, canonical};
use crate::error::AuthError;
use crate::steps::{AuthStep, Steps};
use crate::tokens::Tokens;
use crate::transport::Transport;
use crate::url_policy::UrlPolicy;

/// After a failure that may not last: the time before the next attempt.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// The number of secrets that are masked in messages here; the redactor of the program knows all.
const MAX_SECRETS: usize = 32;

/// The number of times that a server may ask for further scopes.
const MAX_STEP_UPS: usize = 3;

/// The shared part of a source of credentials.
pub(super) struct Source {
    pub(super) config: AuthConfig,
    pub(super) options: OAuthOptions,
    pub(super) transport: Transport,
    pub(super) steps: Steps,
    pub(super) state: AsyncMutex<State>,
    /// The number of the last token that the server accepted.
    pub(super) accepted: AtomicU64,
    pub(super) secrets: Mutex<Vec<String>>,
    pub(super) advice: Mutex<Vec<String>>,
}

/// The current token and its origin.
#[derive(Default)]
pub(super) struct State {
    pub(super) current: Option<Current>,
    /// The place and the client of the current token.
    pub(super) session: Option<Session>,
    last_serial: u64,
    pub(super) is_loaded: bool,
    step_ups: usize,
    /// The status of the last refusal.
    pub(super) refused_with: Option<StatusCode>,
    /// The target that was discovered before the server asked for a token.
    pub(super) found: Option<Target>,
    failure: Option<Failure>,
}

/// The reason why no token could be obtained. It is not tried again for every request: a lasting
/// one never, and others not immediately, so that many requests do not wait one after another.
#[derive(Clone)]
struct Failure {
    error: AuthError,
    until: Option<Instant>,
}

#[derive(Clone)]
pub(super) struct Current {
    pub(super) tokens: Tokens,
    serial: u64,
    /// True if it was issued to this process.
    is_fresh: bool,
}

/// The place at which tokens are issued, and the client that they are issued to.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) target: Target,
    pub(super) client: Client,
}

impl Current {
    fn credential(&self) -> Result<Credential, AuthError> {
        Credential::bearer(&self.tokens.access, self.serial)
            .ok_or_else(|| AuthError::new("the token has characters that a header cannot carry"))
    }
}

impl State {
    /// Fails while the last failure holds.
    fn check(&self) -> Result<(), AuthError> {
        match &self.failure {
            Some(failure) if failure.until.is_none_or(|until| Instant::now() < until) => {
                Err(failure.error.clone())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn set(&mut self, tokens: Tokens, is_fresh: bool) {
        self.failure = None;
        self.last_serial += 1;
        self.current = Some(Current {
            tokens,
            serial: self.last_serial,
            is_fresh,
        });
    }
}

impl Source {
    pub(super) fn new(mut config: AuthConfig, options: OAuthOptions) -> Self {
        config.server = canonical(&config.server);
        let written = std::iter::once(config.server.as_str()).chain(config.issuer.as_deref());
        Self {
            transport: Transport::new(UrlPolicy::of(written), options.timeouts.exchange),
            config,
            options,
            steps: Steps::default(),
            state: AsyncMutex::default(),
            accepted: AtomicU64::new(0),
            secrets: Mutex::default(),
            advice: Mutex::default(),
        }
    }

    pub(super) fn steps(&self) -> Vec<AuthStep> {
        let mut steps = self.steps.all();
        let secrets = self.known_secrets();
        for step in &mut steps {
            step.action = mask(&step.action, &secrets);
            step.detail = mask(&step.detail, &secrets);
        }
        steps
    }

    /// An error without secrets that a server repeats.
    pub(super) fn masked(&self, error: AuthError) -> CredentialError {
        CredentialError(mask(&error.message, &self.known_secrets()))
    }

    pub(super) fn advice(&self) -> Vec<String> {
        let advice = self.advice.lock().unwrap_or_else(PoisonError::into_inner);
        advice.clone()
    }

    /// Masks a secret from now on.
    pub(super) fn hide(&self, secret: &str) {
        if secret.is_empty() {
            return;
        }
        (self.options.on_secret)(secret);
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !secrets.iter().any(|known| known == secret) {
            if secrets.len() >= MAX_SECRETS {
                secrets.remove(0);
            }
            secrets.push(secret.to_owned());
        }
    }

    pub(super) async fn authorize(&self) -> Result<(), AuthError> {
        let mut state = self.state.lock().await;
        self.obtain(&mut state, None).await
    }

    pub(super) async fn current_credential(&self) -> Result<Option<Credential>, AuthError> {
        let mut state = self.state.lock().await;
        if !self.options.waits_for_refusal {
            self.load(&mut state).await?;
        }
        let now = SystemTime::now();
        let is_due = match &state.current {
            Some(current) => current.tokens.is_due(now),
            None => {
                state.check()?;
                // The settings name the issuer, so the server need not be asked first.
                if self.config.issuer.is_none() || !self.is_automatic() {
                    return Ok(None);
                }
                self.obtain_early(&mut state).await?;
                false
            }
        };
        if is_due && let Err(error) = self.renew_in_time(&mut state).await {
            let is_over = state
                .current
                .as_ref()
                .is_none_or(|current| current.tokens.is_over(SystemTime::now()));
            if is_over {
                return Err(error);
            }
        }
        state.current.as_ref().map(Current::credential).transpose()
    }

    /// Returns true if a token can be obtained without a person.
    fn is_automatic(&self) -> bool {
        matches!(
            self.config.grant,
            Grant::ClientCredentials | Grant::RefreshToken(_)
        )
    }

    pub(super) async fn replacement(
        &self,
        refusal: Refusal,
    ) -> Result<Option<Credential>, AuthError> {
        let challenge = Challenge::bearer(&refusal.challenges);
        let lacks_scope = refusal.status == StatusCode::FORBIDDEN
            && challenge
                .as_ref()
                .and_then(|challenge| challenge.error.as_deref())
                == Some("insufficient_scope");
        // A refusal for another reason: no token would help.
        if refusal.status == StatusCode::FORBIDDEN && !lacks_scope && refusal.serial.is_some() {
            return Ok(None);
        }
        let mut state = self.state.lock().await;
        self.note_refusal(&refusal, challenge.as_ref());
        state.refused_with = Some(refusal.status);
        if refusal.serial.is_none() {
            self.load(&mut state).await?;
        }
        if let Some(current) = &state.current
            && refusal.serial != Some(current.serial)
        {
            // Another request has replaced it meanwhile.
            return current.credential().map(Some);
        }
        state.check()?;
        if lacks_scope {
            self.step_up(&mut state, challenge.as_ref()).await?;
        } else {
            self.replace_refused(&mut state, challenge.as_ref()).await?;
        }
        state.current.as_ref().map(Current::credential).transpose()
    }

    /// Obtains another token after the current one was refused.
    async fn replace_refused(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        if let Some(current) = &state.current
            && current.is_fresh
            && self.accepted.load(Ordering::Relaxed) != current.serial
        {
            let why = challenge.map_or_else(String::new, |challenge| {
                let error = challenge.error.as_deref().unwrap_or("no error code");
                match &challenge.error_description {
                    Some(description) => format!(" (`{error}`: {description})"),
                    None => format!(" (`{error}`)"),
                }
            });
            let issuer = state.session.as_ref().map_or("its issuer", |session| {
                session.target.server.issuer.as_str()
            });
            let resource = state
                .session
                .as_ref()
                .and_then(|session| session.target.resource.as_deref())
                .unwrap_or("none");
            let message = format!(
                "the server refuses a token that {issuer} has just issued{why}: the token is for \
                 the resource {resource}, with the scopes {}; check `resource`, `scopes`, and \
                 which issuer the server trusts",
                shown_scopes(&current.tokens)
            );
            self.steps.failed("request with the token", &message);
            return Err(self.fail(state, AuthError::new(message)));
        }
        self.obtain(state, challenge).await
    }

    /// Obtains a token with further scopes.
    async fn step_up(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        let needed = challenge.map_or(&[][..], |challenge| challenge.scopes.as_slice());
        let Some(current) = &state.current else {
            return self.obtain(state, challenge).await;
        };
        let missing: Vec<&String> = needed
            .iter()
            .filter(|scope| !current.tokens.requested.contains(scope))
            .collect();
        let message = if needed.is_empty() {
            Some(
                "the scopes of the token are not enough, and the server does not state which \
                 ones are: set `scopes`"
                    .to_owned(),
            )
        } else if missing.is_empty() {
            Some(format!(
                "the server needs the scopes {}, with which the token was requested; it has {}",
                needed.join(" "),
                shown_scopes(&current.tokens)
            ))
        } else if state.step_ups >= MAX_STEP_UPS {
            Some(format!(
                "the server asked for further scopes more than {MAX_STEP_UPS} times, now for {}",
                needed.join(" ")
            ))
        } else {
            None
        };
        if let Some(message) = message {
            self.steps.failed("scopes", &message);
            return Err(AuthError::new(message));
        }
        state.step_ups += 1;
        self.obtain(state, challenge).await
    }

    /// Obtains a token within the time limit.
    pub(super) async fn obtain(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        let obtained = self.in_time(self.try_obtain(state, challenge)).await;
        obtained.map_err(|error| self.fail(state, error))
    }

    /// Replaces a token that ends soon, within the time limit.
    async fn renew_in_time(&self, state: &mut State) -> Result<(), AuthError> {
        state.check()?;
        let renewed = self.in_time(self.renew(state)).await;
        renewed.map_err(|error| self.fail(state, error))
    }

    /// Limits the time, unless a person takes part.
    async fn in_time(
        &self,
        work: impl Future<Output = Result<(), AuthError>>,
    ) -> Result<(), AuthError> {
        if self.options.interaction.is_some() {
            return work.await;
        }
        let limit = self.options.timeouts.obtain;
        timeout(limit, work).await.unwrap_or_else(|_| {
            let message = format!("no token within {} s", limit.as_secs_f32());
            self.steps.failed("authorization", &message);
            Err(AuthError::lasting(message, true))
        })
    }

    /// Remembers an error, for the requests that come at the same time, or for all.
    pub(super) fn fail(&self, state: &mut State, error: AuthError) -> AuthError {
        let is_lasting = !error.is_temporary && self.accepted.load(Ordering::Relaxed) == 0;
        state.failure = Some(Failure {
            error: error.clone(),
            until: (!is_lasting).then(|| Instant::now() + RETRY_PAUSE),
        });
        error
    }

    fn note_refusal(&self, refusal: &Refusal, challenge: Option<&Challenge>) {
        let with = match refusal.serial {
            Some(_) => "with the token",
            None => "without a token",
        };
        let status = describe_status(refusal.status);
        let detail = match challenge {
            None if refusal.challenges.is_empty() => format!("{status}, no WWW-Authenticate"),
            None => format!(
                "{status}, WWW-Authenticate without `Bearer`: {}",
                refusal.challenges.join(", ")
            ),
            Some(_) => format!(
                "{status}, WWW-Authenticate: {}",
                refusal.challenges.join(", ")
            ),
        };
        let action = format!("request to {} {with}", self.config.server);
        self.steps.ok(action, detail);
    }
}

/// The scopes of a token, as messages show them.
fn shown_scopes(tokens: &Tokens) -> String {
    match tokens.granted.as_ref().unwrap_or(&tokens.requested) {
        scopes if scopes.is_empty() => "(none)".to_owned(),
        scopes => scopes.join(" "),
    }
}

impl Source {
    /// The current credential, if it can be used as it is and nobody obtains another one.
    pub(super) fn ready(&self) -> Option<Credential> {
        let state = self.state.try_lock().ok()?;
        let current = state.current.as_ref()?;
        let is_due = current.tokens.is_due(SystemTime::now());
        (!is_due).then(|| current.credential().ok())?
    }

    pub(super) fn accept(&self, credential: &Credential) {
        self.accepted.store(credential.serial(), Ordering::Relaxed);
    }

    pub(super) fn known_secrets(&self) -> Vec<String> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut secrets = secrets.clone();
        // The longest first, so that no part of a longer one remains.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
    }
}
