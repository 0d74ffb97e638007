//! Obtaining tokens: by each grant, from the store, and again before they expire.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};

use super::source::{Session, Source, State};
use crate::challenge::Challenge;
use crate::client::{Client, SigningClient};
use crate::config::{Grant, SecretVariable};
use crate::discovery::{self, Target};
use crate::error::AuthError;
use crate::login::LoginRequest;
use crate::store::{Login, Store, StoreError, StoreLock};
use crate::token_request::{TokenError, TokenGrant, TokenRequest};
use crate::tokens::{Tokens, margin};

impl Source {
    /// Obtains a token by the grant of the settings.
    pub(super) async fn try_obtain(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        match &self.config.grant {
            Grant::Undeclared => Err(self.explain(challenge).await),
            Grant::ClientCredentials => self.by_client_credentials(state, challenge).await,
            Grant::RefreshToken(variable) => {
                self.by_refresh_token(state, variable, challenge).await
            }
            Grant::AuthorizationCode => self.by_login(state, challenge).await,
        }
    }

    /// Obtains a token before the server asks for one, unless the server has not stated what the
    /// token must be for.
    pub(super) async fn obtain_early(&self, state: &mut State) -> Result<(), AuthError> {
        if state.session.is_none() && self.config.resource.is_none() {
            let found = self.discover(state, None).await;
            let target = found.map_err(|error| self.fail(state, error))?;
            if !target.is_stated {
                return Ok(());
            }
            state.found = Some(target);
        }
        self.obtain(state, None).await
    }

    async fn discover(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<Target, AuthError> {
        if let Some(target) = state.found.take().filter(|_| challenge.is_none()) {
            return Ok(target);
        }
        discovery::discover(&self.transport, &self.config, challenge, &self.steps).await
    }

    /// The scopes of the next token: those of the last one, and those that the server asks for.
    fn scopes(&self, state: &State, target: &Target, challenge: Option<&Challenge>) -> Vec<String> {
        let Some(current) = &state.current else {
            let supported = target.scopes_supported.as_deref();
            return discovery::scopes(&self.config, challenge, supported);
        };
        let mut scopes = current.tokens.requested.clone();
        for scope in challenge.map_or(&[][..], |challenge| challenge.scopes.as_slice()) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        scopes
    }

    async fn by_client_credentials(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        let target = self.discover(state, challenge).await?;
        let client = self.declared_client(&target)?;
        let scopes = self.scopes(state, &target, challenge);
        let session = Session { target, client };
        let tokens = self
            .request(&session, &TokenGrant::ClientCredentials, &scopes)
            .await
            .map_err(|error| error.error)?;
        state.session = Some(session);
        state.set(tokens, true);
        Ok(())
    }

    fn declared_client(&self, target: &Target) -> Result<Client, AuthError> {
        Client::declared(&self.config, &target.server)?.ok_or_else(|| {
            let message = match &self.config.client_id {
                None => "the settings have no `client_id`".to_owned(),
                Some(id) => format!(
                    "{} does not accept client metadata documents, such as {id}",
                    target.server.issuer
                ),
            };
            self.steps.failed("client", &message);
            AuthError::new(message)
        })
    }

    async fn request(
        &self,
        session: &Session,
        grant: &TokenGrant,
        scopes: &[String],
    ) -> Result<Tokens, TokenError> {
        let client = SigningClient::new(session.client.clone(), &self.config);
        let client = client.map_err(|error| {
            self.steps.failed("client", &error.message);
            TokenError { code: None, error }
        })?;
        let hide = |secret: &str| self.hide(secret);
        let request = TokenRequest {
            transport: &self.transport,
            server: &session.target.server,
            client: &client,
            resource: session.target.resource.as_deref(),
            scopes,
            steps: &self.steps,
            hide: &hide,
        };
        request.send(grant).await
    }

    async fn by_refresh_token(
        &self,
        state: &mut State,
        variable: &SecretVariable,
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        let Some(seed) = &variable.value else {
            let message = format!(
                "the environment variable {} is not set: it has the refresh token",
                variable.name
            );
            self.steps.failed("refresh token", &message);
            return Err(AuthError::new(message));
        };
        self.hide(seed);
        let target = self.discover(state, challenge).await?;
        let client = self.declared_client(&target)?;
        let requested = self.scopes(state, &target, challenge);
        // A refresh token has its scopes; fewer can be asked for, and others only by the settings.
        let asked = match &state.current {
            None => self.config.scopes.clone(),
            Some(_) => requested,
        };
        let session = Session { target, client };
        let lock = self.lock_store().await;
        let stored = self.rotated(seed).await;
        let own = state
            .current
            .as_ref()
            .and_then(|current| current.tokens.refresh.clone());
        let refresh = stored.or(own).unwrap_or_else(|| seed.clone());
        let grant = TokenGrant::Refresh(refresh.clone());
        let sent = self.request(&session, &grant, &asked).await;
        let mut tokens = sent.map_err(|error| {
            let is_invalid = error.code.as_deref() == Some("invalid_grant");
            match is_invalid {
                true => error.error.note(&format!(
                    "if the authorization server replaces refresh tokens, the one in {} can be \
                     used once: use `client_credentials` in CI",
                    variable.name
                )),
                false => error.error,
            }
        })?;
        if let Some(new) = tokens.refresh.clone().filter(|new| *new != *seed) {
            let login = login_of(
                &self.config.server,
                &session,
                &tokens,
                Some(digest_of(seed)),
            );
            self.keep(login, lock.as_ref())
                .await
                .unwrap_or_else(|error| {
                    self.steps.skipped("store", error.0);
                });
            tokens.refresh = Some(new);
        } else {
            tokens.refresh = Some(refresh);
        }
        state.session = Some(session);
        state.set(tokens, true);
        Ok(())
    }

    /// The refresh token that replaced the one of the environment.
    async fn rotated(&self, seed: &str) -> Option<String> {
        let digest = digest_of(seed);
        let logins = self.stored().await.ok()?;
        let found = logins
            .into_values()
            .find(|login| login.replaces.as_deref() == Some(&digest));
        let refresh = found?.refresh_token?;
        self.hide(&refresh);
        Some(refresh)
    }

    /// Reads the tokens of an earlier login, once.
    pub(super) async fn load(&self, state: &mut State) -> Result<(), AuthError> {
        if state.is_loaded || self.config.grant != Grant::AuthorizationCode {
            return Ok(());
        }
        state.is_loaded = true;
        if self.options.store.is_none() {
            return Ok(());
        }
        let logins = match self.stored().await {
            Ok(logins) => logins,
            // A new login replaces what cannot be read.
            Err(_) if self.options.ignores_logins => return Ok(()),
            Err(error) => {
                self.steps.failed("store", &error.0);
                return Err(self.fail(state, AuthError::new(error.0)));
            }
        };
        if let Some(login) = logins.into_values().find(|login| self.is_ours(login)) {
            self.adopt(state, login);
        }
        Ok(())
    }

    /// Returns true if a login is that of the settings.
    fn is_ours(&self, login: &Login) -> bool {
        let config = &self.config;
        let issuer = &login.authorization_server.issuer;
        login.replaces.is_none()
            && login.server == config.server
            && config.issuer.as_ref().is_none_or(|set| set == issuer)
            && config
                .registered_id()
                .is_none_or(|set| set == login.client.id)
            && config
                .resource
                .as_ref()
                .is_none_or(|set| Some(set) == login.resource.as_ref())
    }

    /// Uses the tokens of a login.
    fn adopt(&self, state: &mut State, login: Login) {
        for secret in [
            Some(&login.access_token),
            login.refresh_token.as_ref(),
            login.client.secret.as_ref(),
        ]
        .into_iter()
        .flatten()
        {
            self.hide(secret);
        }
        let tokens = Tokens {
            access: login.access_token,
            refresh: login.refresh_token,
            expires_at: login
                .expires_at
                .map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)),
            margin: margin(login.lifetime.map(Duration::from_secs)),
            requested: login.requested,
            granted: login.granted,
        };
        state.session = Some(Session {
            target: Target {
                server: login.authorization_server,
                resource: login.resource,
                scopes_supported: None,
                is_stated: true,
            },
            client: login.client,
        });
        if self.options.ignores_logins {
            return;
        }
        self.steps
            .ok("store", format!("a token for {}", self.config.server));
        state.set(tokens, false);
    }

    async fn by_login(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<(), AuthError> {
        self.load(state).await?;
        let is_step_up = challenge
            .and_then(|challenge| challenge.error.as_deref())
            .is_some_and(|error| error == "insufficient_scope");
        let interaction = match &self.options.interaction {
            Some(interaction) => interaction,
            None => return self.without_user(state, challenge, is_step_up).await,
        };
        let target = self.discover(state, challenge).await?;
        let same_issuer = |session: &&Session| session.target.server.issuer == target.server.issuer;
        let known = state.session.as_ref().filter(same_issuer);
        let can_refresh = state
            .current
            .as_ref()
            .is_some_and(|current| current.tokens.refresh.is_some());
        if known.is_some() && can_refresh && !is_step_up && self.refresh(state).await.is_ok() {
            return Ok(());
        }
        let scopes = self.scopes(state, &target, challenge);
        let hide = |secret: &str| self.hide(secret);
        let known = state.session.as_ref().filter(same_issuer);
        let login = LoginRequest {
            config: &self.config,
            transport: &self.transport,
            target: &target,
            interaction,
            steps: &self.steps,
            hide: &hide,
            known: known.map(|session| &session.client),
            scopes: &scopes,
            limit: self.options.timeouts.login,
        };
        let (tokens, client) = login.run().await?;
        let session = Session { target, client };
        let lock = self.lock_store().await;
        let login = login_of(&self.config.server, &session, &tokens, None);
        let kept = self.keep(login, lock.as_ref()).await;
        kept.map_err(|error| {
            self.steps.failed("store", &error.0);
            AuthError::new(format!("the login cannot be stored: {error}"))
        })?;
        state.session = Some(session);
        state.set(tokens, true);
        Ok(())
    }

    /// A token of an earlier login, without a user.
    async fn without_user(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
        is_step_up: bool,
    ) -> Result<(), AuthError> {
        let command = &self.config.login_command;
        if is_step_up {
            let scopes = challenge.map_or(&[][..], |challenge| challenge.scopes.as_slice());
            let flags: Vec<String> = scopes.iter().map(|one| format!("--scope {one}")).collect();
            let message = format!(
                "the server needs the scopes {}, which the login does not have: run `{command} {}`",
                scopes.join(" "),
                flags.join(" ")
            );
            self.steps.failed("scopes", &message);
            return Err(AuthError::new(message));
        }
        let can_refresh = state
            .current
            .as_ref()
            .map(|current| current.tokens.refresh.is_some());
        let message = match can_refresh {
            Some(true) => match self.refresh(state).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_temporary => return Err(error),
                Err(error) => error.note(&format!("log in again: `{command}`")).message,
            },
            Some(false) => format!(
                "the token of the login is no longer valid, and the authorization server gave no \
                 refresh token: log in again: `{command}`"
            ),
            None if self.options.explains => {
                let found = self.explain(challenge).await;
                format!("{found}; nobody is logged in: `{command}`")
            }
            None => match state.refused_with {
                Some(status) => format!(
                    "the server answers {}, and nobody is logged in: run `{command}`",
                    status.as_u16()
                ),
                None => format!("nobody is logged in: run `{command}`"),
            },
        };
        self.steps.failed("login", &message);
        Err(AuthError::new(message))
    }

    /// Replaces a token that expires soon, at the server that issued it.
    pub(super) async fn renew(&self, state: &mut State) -> Result<(), AuthError> {
        let result = match (&self.config.grant, &state.session) {
            (Grant::ClientCredentials, Some(session)) => {
                let scopes = state
                    .current
                    .as_ref()
                    .map(|current| current.tokens.requested.clone());
                let grant = TokenGrant::ClientCredentials;
                let scopes = scopes.unwrap_or_default();
                let tokens = self.request(session, &grant, &scopes).await;
                tokens
                    .map(|tokens| state.set(tokens, true))
                    .map_err(|error| error.error)
            }
            (Grant::RefreshToken(variable), Some(_)) => {
                self.by_refresh_token(state, variable, None).await
            }
            (Grant::AuthorizationCode, Some(_)) => self.refresh(state).await,
            _ => return Ok(()),
        };
        result.map_err(|error| match &self.config.grant {
            Grant::AuthorizationCode if !error.is_temporary => {
                error.note(&format!("log in again: `{}`", self.config.login_command))
            }
            _ => error,
        })
    }

    /// Uses the refresh token of a login. Another process may have done it already: the newer one
    /// is in the store then.
    async fn refresh(&self, state: &mut State) -> Result<(), AuthError> {
        let lock = self.lock_store().await;
        let newer = self.stored().await.ok().and_then(|logins| {
            let stored = logins.into_values().find(|login| self.is_ours(login))?;
            let current = state.current.as_ref()?;
            (stored.access_token != current.tokens.access).then_some(stored)
        });
        if let Some(login) = newer.filter(|_| !self.options.ignores_logins) {
            self.adopt(state, login);
            let current = state.current.as_ref();
            if current.is_some_and(|current| !current.tokens.is_due(SystemTime::now())) {
                return Ok(());
            }
        }
        let (Some(current), Some(session)) = (&state.current, &state.session) else {
            return Err(AuthError::new("there is no login"));
        };
        let Some(refresh) = current.tokens.refresh.clone() else {
            return Err(AuthError::new("the login has no refresh token"));
        };
        let requested = current.tokens.requested.clone();
        let session = session.clone();
        let grant = TokenGrant::Refresh(refresh.clone());
        let sent = self.request(&session, &grant, &[]).await;
        let mut tokens = sent.map_err(|error| error.error)?;
        // A server that does not replace the refresh token does not repeat it.
        tokens.refresh.get_or_insert(refresh);
        tokens.requested = requested;
        let login = login_of(&self.config.server, &session, &tokens, None);
        if let Err(error) = self.keep(login, lock.as_ref()).await {
            self.steps.skipped("store", error.0);
        }
        state.set(tokens, true);
        Ok(())
    }

    /// Holds the store, so that no other process refreshes the same token. A store that cannot be
    /// locked is used nevertheless.
    async fn lock_store(&self) -> Option<StoreLock> {
        self.with_store(|store| store.lock()).await?.ok()
    }

    async fn stored(&self) -> Result<BTreeMap<String, Login>, StoreError> {
        let logins = self.with_store(|store| store.logins()).await;
        logins.unwrap_or_else(|| Ok(BTreeMap::new()))
    }

    /// Keeps a login, under the lock of the store.
    async fn keep(&self, login: Login, _lock: Option<&StoreLock>) -> Result<(), StoreError> {
        let replaces = self.options.ignores_logins;
        let kept = self
            .with_store(move |store| {
                let key = login.key();
                let added = store.change(|logins| {
                    logins.insert(key.clone(), login.clone());
                });
                match added {
                    // Nobody can use what cannot be decrypted.
                    Err(_) if replaces => {
                        store.clear()?;
                        store.change(|logins| {
                            logins.insert(key, login);
                        })
                    }
                    added => added,
                }
            })
            .await;
        kept.unwrap_or(Ok(()))
    }

    /// Uses the store on a blocking thread, because its keychain may ask the user.
    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Option<Result<T, StoreError>> {
        let store = self.options.store.clone()?;
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        Some(done.unwrap_or_else(|error| Err(StoreError(error.to_string()))))
    }
}

fn login_of(server: &str, session: &Session, tokens: &Tokens, replaces: Option<String>) -> Login {
    let seconds = |time: SystemTime| {
        time.duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    };
    Login {
        server: server.to_owned(),
        authorization_server: session.target.server.clone(),
        client: session.client.clone(),
        resource: session.target.resource.clone(),
        access_token: tokens.access.clone(),
        refresh_token: tokens.refresh.clone(),
        expires_at: tokens.expires_at.map(seconds),
        lifetime: tokens
            .expires_at
            .and_then(|end| end.duration_since(SystemTime::now()).ok())
            .map(|left| left.as_secs()),
        requested: tokens.requested.clone(),
        granted: tokens.granted.clone(),
        replaces,
    }
}

fn digest_of(token: &str) -> String {
    let digest = digest(&SHA256, token.as_bytes());
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
