//! A provider: its connections, and the retry loop of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use mcptest_agent::{AssistantTurn, Future, Model, Request};
use mcptest_http::text::quote;
use mcptest_http::{Address, Pool, header_map, secrets, without_query};
use mcptest_numbers::random::combine;
use mcptest_redact::redact::Redactor;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::adapter::{Adapter, ApiErrorKind, ProviderRequest};
use crate::attempt::OutgoingRequest;
use crate::limiter::{Limiter, PausedFor};
use crate::retry::{MAX_WAIT, RetryDecision, RetrySchedule};
use crate::send_failure::{FailedRequest, SendFailure, run_error};
use crate::settings::ProviderSettings;
use crate::{TARGET, millis};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The shortest pause that is reported to the user.
const MIN_REPORTED_PAUSE: Duration = Duration::from_secs(5);

/// Keys shorter than this are not masked in messages: they would match by chance.
const MIN_KEY_LENGTH: usize = 4;

/// A callback for status messages.
type StatusCallback = Arc<dyn Fn(String) + Send + Sync>;

/// A provider with its connections and limits, shared by all runs.
pub struct Provider {
    settings: ProviderSettings,
    adapter: Box<dyn Adapter>,
    pool: Pool,
    /// The path of the base URL, without a trailing slash.
    base_path: String,
    base_query: Option<String>,
    headers: HeaderMap,
    redactor: Redactor,
    /// The base URL for messages, without secrets.
    shown_url: String,
    limiter: Limiter,
    on_status: Option<StatusCallback>,
}

impl std::fmt::Debug for Provider {
    /// Omits the base URL, whose query may hold a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("settings", &self.settings)
            .field("limiter", &self.limiter)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// Creates a provider. It connects with the first request.
    ///
    /// # Errors
    /// The base URL or a header is invalid.
    pub fn new(settings: ProviderSettings, adapter: Box<dyn Adapter>) -> Result<Self, RunError> {
        let invalid = |error: &dyn std::fmt::Display| RunError {
            kind: ErrorKind::Provider,
            message: format!("provider `{}`: {error}", settings.name),
        };
        let address = Address::parse(&settings.base_url).map_err(|error| invalid(&error))?;
        let own = settings
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let mut secrets = secrets::of_headers(own.clone());
        secrets.extend(
            settings
                .key
                .clone()
                .filter(|key| key.len() >= MIN_KEY_LENGTH),
        );
        let redactor = Redactor::new(secrets);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, address.authority.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static(if settings.stream {
                "text/event-stream, application/json"
            } else {
                "application/json"
            }),
        );
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("mcptest/", env!("CARGO_PKG_VERSION"))),
        );
        let own = header_map(own).map_err(|error| invalid(&error))?;
        let of_adapter = header_map(adapter.headers(settings.key.as_deref()))
            .map_err(|error| invalid(&error))?;
        // The suite's headers come last, so that they override the others.
        for group in [of_adapter, own] {
            for name in group.keys() {
                headers.remove(name);
            }
            for (name, value) in &group {
                headers.append(name, value.clone());
            }
        }
        let (base_path, base_query) = match address.path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (address.path.as_str(), None),
        };
        Ok(Self {
            pool: Pool::new(&address, settings.max_concurrency as usize)
                .with_connect_timeout(CONNECT_TIMEOUT),
            base_path: base_path.trim_end_matches('/').to_owned(),
            base_query,
            headers,
            shown_url: redactor.text(&quote(&without_query(&settings.base_url), 200)),
            redactor,
            limiter: Limiter::new(&settings.name, settings.max_concurrency),
            on_status: None,
            adapter,
            settings,
        })
    }

    /// Sets a callback for status messages, such as a long pause that the provider requests.
    #[must_use]
    pub fn with_status(mut self, on_status: Arc<dyn Fn(String) + Send + Sync>) -> Self {
        self.on_status = Some(on_status);
        self
    }

    /// Returns a model of this provider for one run. The same seed gives the same retry waits.
    #[must_use]
    pub fn model(self: &Arc<Self>, model: &str, seed: u64) -> LiveModel {
        LiveModel {
            provider: Arc::clone(self),
            model: model.to_owned(),
            seed,
            requests: AtomicU64::new(0),
        }
    }

    /// Requests a turn, with retries.
    async fn request_turn(
        &self,
        model: &str,
        turn: Request<'_>,
        seed: u64,
    ) -> Result<AssistantTurn, RunError> {
        let settings = &self.settings;
        if settings.needs_key && settings.key.is_none() {
            return Err(self.missing_key(model));
        }
        let request = ProviderRequest {
            model,
            turn,
            stream: settings.stream,
            body: &settings.body,
        };
        let path = join(
            &self.base_path,
            self.base_query.as_deref(),
            &self.adapter.path(model, settings.stream),
        );
        let outgoing = OutgoingRequest {
            settings,
            adapter: self.adapter.as_ref(),
            pool: &self.pool,
            headers: &self.headers,
            redactor: &self.redactor,
            request: &request,
            path: &path,
            body: Bytes::from(self.adapter.body(&request).to_string()),
        };
        let mut schedule = RetrySchedule::new(settings.retries, MAX_WAIT, seed);
        let mut attempts = 0;
        loop {
            let permit = match self.limiter.acquire(MAX_WAIT).await {
                Ok(permit) => permit,
                Err(PausedFor(wait)) => return Err(self.paused(model, attempts, wait)),
            };
            attempts += 1;
            let failure = match outgoing.attempt(attempts).await {
                Ok(turn) => {
                    permit.answered();
                    return Ok(turn);
                }
                Err(failure) => failure,
            };
            if failure.is_congestion() {
                let starts_pause = permit.refused(failure.retry_after);
                self.report_pause(failure.retry_after.filter(|_| starts_pause));
            } else {
                drop(permit);
            }
            if !failure.is_retryable() {
                return Err(self.error(model, attempts, &failure, None));
            }
            match schedule.after(failure.retry_after, failure.time_lost()) {
                RetryDecision::Wait(wait) => {
                    tracing::info!(
                        target: TARGET,
                        provider = settings.name,
                        model,
                        attempt = attempts,
                        wait_ms = millis(wait),
                        "retrying: {}",
                        self.redactor.text(&failure.message)
                    );
                    tokio::time::sleep(wait).await;
                }
                decision => return Err(self.error(model, attempts, &failure, Some(decision))),
            }
        }
    }

    fn missing_key(&self, model: &str) -> RunError {
        let name = &self.settings.name;
        RunError {
            kind: ErrorKind::Auth,
            message: format!(
                "no key for {name}: set {} to use {model}, or name another variable in \
                 `providers.{name}.api_key_env`.",
                self.settings.key_variables.join(" or "),
            ),
        }
    }

    /// Reports a pause that is long enough to be noticed.
    fn report_pause(&self, pause: Option<Duration>) {
        if let (Some(on_status), Some(pause)) = (&self.on_status, pause)
            && (MIN_REPORTED_PAUSE..=MAX_WAIT).contains(&pause)
        {
            let seconds = pause.as_secs_f64().ceil();
            on_status(format!(
                "{} asks to wait {seconds}s; requests to it are held until then",
                self.settings.name
            ));
        }
    }

    fn error(
        &self,
        model: &str,
        attempts: u32,
        failure: &SendFailure,
        decision: Option<RetryDecision>,
    ) -> RunError {
        let request = FailedRequest {
            provider: &self.settings.name,
            model,
            url: &self.shown_url,
            attempts,
            key_variables: &self.settings.key_variables,
        };
        let error = run_error(request, failure, decision, &self.redactor);
        tracing::info!(
            target: TARGET,
            provider = self.settings.name,
            model,
            attempts,
            "request failed: {}",
            error.message
        );
        error
    }

    fn paused(&self, model: &str, attempts: u32, wait: Duration) -> RunError {
        let message = "it asked earlier requests to wait";
        let failure = SendFailure::answered(ApiErrorKind::RateLimit, None, message);
        let decision = RetryDecision::RetryAfterTooLong(wait);
        self.error(model, attempts, &failure, Some(decision))
    }
}

/// Joins base path and request path. A first segment that both have (`/v1`) is used once, so that
/// both ways to write a base URL work.
fn join(base: &str, base_query: Option<&str>, path: &str) -> String {
    let last = base.rsplit_once('/').map_or("", |(_, last)| last);
    let rest = path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(last))
        .filter(|rest| !last.is_empty() && rest.starts_with('/'))
        .unwrap_or(path);
    let mut joined = format!("{base}{rest}");
    if let Some(query) = base_query {
        joined.push(if joined.contains('?') { '&' } else { '?' });
        joined.push_str(query);
    }
    joined
}

/// A model of a provider, for one run.
#[derive(Debug)]
pub struct LiveModel {
    provider: Arc<Provider>,
    model: String,
    seed: u64,
    /// The number of requests so far: each has its own retry waits.
    requests: AtomicU64,
}

impl Model for LiveModel {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        let seed = combine(self.seed, self.requests.fetch_add(1, Ordering::Relaxed));
        Box::pin(self.provider.request_turn(&self.model, request, seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_both_paths_have_is_used_once() {
        for (base, query, path, joined) in [
            ("/v1", None, "/chat/completions", "/v1/chat/completions"),
            ("/v1", None, "/v1/messages", "/v1/messages"),
            ("", None, "/v1/messages", "/v1/messages"),
            ("/openai/v1", None, "/v1/responses", "/openai/v1/responses"),
            (
                "/v1",
                None,
                "/v1beta/models/x:generateContent",
                "/v1/v1beta/models/x:generateContent",
            ),
            (
                "/v1beta",
                None,
                "/models/x:stream?alt=sse",
                "/v1beta/models/x:stream?alt=sse",
            ),
            (
                "/v1",
                Some("api-version=2"),
                "/chat",
                "/v1/chat?api-version=2",
            ),
            ("/v1", Some("a=1"), "/chat?alt=sse", "/v1/chat?alt=sse&a=1"),
        ] {
            assert_eq!(join(base, query, path), joined);
        }
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let mut settings = ProviderSettings::new("x", "http://h/v1?key=s3cret-1");
        settings.key = Some("s3cret-2".to_owned());
        settings
            .headers
            .push(("Authorization".to_owned(), "s3cret-3".to_owned()));
        assert!(!format!("{settings:?}").contains("s3cret"));
        let provider =
            Provider::new(settings, Box::new(crate::adapter::OpenAiChat::compatible())).unwrap();
        assert!(!format!("{provider:?}").contains("s3cret"));
    }
}
