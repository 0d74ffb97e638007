//! A provider: where requests go, with what, and what comes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Method, Response, StatusCode};
use mcptest_agent::{AssistantTurn, Future, Model, Request};
use mcptest_http::body::{BodyError, content_type, error_chain, read_all, read_excerpt};
use mcptest_http::sse::Parser;
use mcptest_http::text::quote;
use mcptest_http::{Address, Pool, SendError, Sender, header_map, secrets, without_query};
use mcptest_numbers::random::combine;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use crate::adapter::{Adapter, Ask, FailureKind};
use crate::asked_wait::asked_wait;
use crate::limits::{Limits, PausedFor, WIDEST};
use crate::retry::{DEFAULT_RETRIES, MOST_WAIT, Next, Schedule};
use crate::trouble::{Asked, Hidden, Trouble, What, run_error};

/// The time allowed for a whole answer, unless the suite says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A pause that somebody who watches is told of.
const LONG_PAUSE: Duration = Duration::from_secs(5);

/// The longest silence in a stream.
const MOST_SILENCE: Duration = Duration::from_secs(60);

/// The largest answer. A long one has some hundred kilobytes.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// What a provider is made of.
#[derive(Clone)]
pub struct Settings {
    /// What the suite calls it.
    pub name: String,
    /// The beginning of all its addresses.
    pub base_url: String,
    /// The variables that may hold its key, for messages.
    pub key_variables: Vec<String>,
    /// The key.
    pub key: Option<String>,
    /// Whether nothing can come of a request without it.
    pub needs_key: bool,
    /// More headers; they come before ours.
    pub headers: Vec<(String, String)>,
    /// The time allowed for a whole answer.
    pub timeout: Duration,
    /// Whether answers are asked for as streams.
    pub stream: bool,
    /// More fields of every body, laid over ours.
    pub body: Map<String, Value>,
    /// The most requests at once.
    pub max_concurrency: u32,
    /// How often a request is sent again.
    pub retries: u32,
}

impl Settings {
    /// Everything but name and address by default.
    #[must_use]
    pub fn new(name: &str, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            base_url: base_url.to_owned(),
            key_variables: Vec::new(),
            key: None,
            needs_key: false,
            headers: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            stream: false,
            body: Map::new(),
            max_concurrency: WIDEST,
            retries: DEFAULT_RETRIES,
        }
    }
}

impl std::fmt::Debug for Settings {
    /// Without keys and headers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("base_url", &without_query(&self.base_url))
            .finish_non_exhaustive()
    }
}

/// A provider with its connections and limits, shared by all runs.
pub struct Provider {
    settings: Settings,
    adapter: Box<dyn Adapter>,
    pool: Pool,
    /// The path of the base URL, without a slash at its end, and its query.
    base_path: String,
    base_query: Option<String>,
    headers: HeaderMap,
    hidden: Hidden,
    shown_url: String,
    limits: Limits,
    tell: Option<Arc<dyn Fn(String) + Send + Sync>>,
}

impl std::fmt::Debug for Provider {
    /// Its address may have a key in its query.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("settings", &self.settings)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// Makes it ready; nothing is connected yet.
    ///
    /// # Errors
    /// The address or a header cannot be used.
    pub fn new(settings: Settings, adapter: Box<dyn Adapter>) -> Result<Self, RunError> {
        let refuse = |error: &dyn std::fmt::Display| RunError {
            kind: ErrorKind::Provider,
            message: format!("provider `{}`: {error}", settings.name),
        };
        let address = Address::parse(&settings.base_url).map_err(|error| refuse(&error))?;
        let own = settings
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let mut secrets = secrets::of_headers(own.clone());
        secrets.extend(settings.key.clone().filter(|key| key.len() >= 4));
        let hidden = Hidden::new(secrets);
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
        let own = header_map(own).map_err(|error| refuse(&error))?;
        let of_adapter =
            header_map(adapter.headers(settings.key.as_deref())).map_err(|error| refuse(&error))?;
        // The suite's come last and so replace ours.
        for more in [of_adapter, own] {
            for name in more.keys() {
                headers.remove(name);
            }
            for (name, value) in &more {
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
            shown_url: hidden.clean(&quote(&without_query(&settings.base_url), 200)),
            hidden,
            limits: Limits::new(settings.max_concurrency),
            tell: None,
            adapter,
            settings,
        })
    }

    /// The same, telling somebody when it is made to wait for long.
    #[must_use]
    pub fn telling(mut self, tell: Arc<dyn Fn(String) + Send + Sync>) -> Self {
        self.tell = Some(tell);
        self
    }

    /// A model of this provider for one run. Where the seed is the same, pauses between tries are.
    #[must_use]
    pub fn model(self: &Arc<Self>, model: &str, seed: u64) -> LiveModel {
        LiveModel {
            provider: Arc::clone(self),
            model: model.to_owned(),
            seed,
            asked: AtomicU64::new(0),
        }
    }

    /// Asks for a turn, again and again where that may help.
    async fn ask(
        &self,
        model: &str,
        request: Request<'_>,
        seed: u64,
    ) -> Result<AssistantTurn, RunError> {
        let settings = &self.settings;
        if settings.needs_key && settings.key.is_none() {
            return Err(RunError {
                kind: ErrorKind::Auth,
                message: format!(
                    "no key for {}: set {} to ask for {model}, or name another variable in `providers.{}.api_key_env`.",
                    settings.name,
                    settings.key_variables.join(" or "),
                    settings.name
                ),
            });
        }
        let ask = Ask {
            model,
            request,
            stream: settings.stream,
            body: &settings.body,
        };
        let body = Bytes::from(self.adapter.body(&ask).to_string());
        let path = join(
            &self.base_path,
            self.base_query.as_deref(),
            &self.adapter.path(model, settings.stream),
        );
        let mut schedule = Schedule::new(settings.retries, MOST_WAIT, seed);
        let mut attempts = 0;
        loop {
            let place = match self.limits.enter(MOST_WAIT).await {
                Ok(place) => place,
                Err(PausedFor(wait)) => return Err(self.paused(model, attempts, wait)),
            };
            attempts += 1;
            let trouble = match self.attempt(&ask, &path, body.clone()).await {
                Ok(turn) => {
                    place.answered();
                    return Ok(turn);
                }
                Err(trouble) => trouble,
            };
            if trouble.is_congestion() {
                let begins = place.refused(trouble.asked);
                self.tell_of_pause(trouble.asked.filter(|_| begins));
            } else {
                drop(place);
            }
            if !trouble.may_pass() {
                return Err(self.error(model, attempts, &trouble, None));
            }
            match schedule.after(trouble.asked, trouble.lost()) {
                Next::Wait(pause) => tokio::time::sleep(pause).await,
                end => return Err(self.error(model, attempts, &trouble, Some(end))),
            }
        }
    }

    /// Whoever watches should know why nothing moves.
    fn tell_of_pause(&self, pause: Option<Duration>) {
        if let (Some(tell), Some(pause)) = (&self.tell, pause)
            && (LONG_PAUSE..=MOST_WAIT).contains(&pause)
        {
            let seconds = pause.as_secs_f64().ceil();
            tell(format!(
                "{} asks to wait {seconds}s; requests to it are held until then",
                self.settings.name
            ));
        }
    }

    fn error(&self, model: &str, attempts: u32, trouble: &Trouble, end: Option<Next>) -> RunError {
        let asked = Asked {
            provider: &self.settings.name,
            model,
            url: &self.shown_url,
            attempts,
            key_variables: &self.settings.key_variables,
        };
        run_error(asked, trouble, end, &self.hidden)
    }

    fn paused(&self, model: &str, attempts: u32, wait: Duration) -> RunError {
        let trouble = Trouble::answered(
            FailureKind::RateLimit,
            None,
            "it told other requests to wait",
        );
        self.error(model, attempts, &trouble, Some(Next::AskedTooMuch(wait)))
    }

    /// One try, in the time allowed.
    async fn attempt(
        &self,
        ask: &Ask<'_>,
        path: &str,
        body: Bytes,
    ) -> Result<AssistantTurn, Trouble> {
        let began = Instant::now();
        match timeout(self.settings.timeout, self.exchange(ask, path, body)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Trouble {
                what: What::Timeout(began.elapsed()),
                words: format!("nothing whole within {:?}", self.settings.timeout),
                asked: None,
            }),
        }
    }

    async fn exchange(
        &self,
        ask: &Ask<'_>,
        path: &str,
        body: Bytes,
    ) -> Result<AssistantTurn, Trouble> {
        let mut request = hyper::Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.parse().map_err(|_| {
            let words = format!("`{}` is no path", quote(path, 200));
            Trouble::answered(FailureKind::Refused, None, words)
        })?;
        request.headers_mut().clone_from(&self.headers);
        let (mut response, sender) =
            self.pool.send(request).await.map_err(|error| match error {
                SendError::Connect(error) => Trouble::unconnected(&error),
                SendError::Lost(error) => {
                    let words = format!(
                        "the connection broke before a response came: {}",
                        error_chain(&error)
                    );
                    Trouble::connection(words)
                }
            })?;
        let status = response.status();
        if status.is_redirection() {
            return Err(redirected(&response));
        }
        if !status.is_success() {
            let asked = asked_wait(response.headers(), SystemTime::now());
            let body = read_excerpt(response.body_mut()).await;
            self.pool.give_back(sender);
            let mut trouble = Trouble::of(self.adapter.failure(status.as_u16(), &body), status);
            trouble.asked = asked.or(trouble.asked);
            return Err(trouble);
        }
        let kind = content_type(&response);
        match kind.as_deref() {
            Some("text/event-stream") => self.streamed(ask, response, sender).await,
            Some(kind) if kind == "application/json" || kind.ends_with("+json") => {
                self.at_once(ask, response, sender).await
            }
            // Some servers name no type; a missing one is what was asked for.
            None if self.settings.stream => self.streamed(ask, response, sender).await,
            None => self.at_once(ask, response, sender).await,
            Some(other) => {
                let body = read_excerpt(response.body_mut()).await;
                let words = format!(
                    "it answered with {}, where JSON must be; it begins: {}",
                    quote(other, 80),
                    quote(&String::from_utf8_lossy(&body), 200)
                );
                Err(Trouble::answered(FailureKind::Malformed, None, words))
            }
        }
    }

    async fn at_once(
        &self,
        ask: &Ask<'_>,
        mut response: Response<Incoming>,
        sender: Sender,
    ) -> Result<AssistantTurn, Trouble> {
        let body =
            read_all(response.body_mut(), MOST_BYTES)
                .await
                .map_err(|unread| match unread {
                    BodyError::Interrupted { read, error } => Trouble::connection(format!(
                        "the answer broke off after {} bytes: {}",
                        read.len(),
                        error_chain(&error)
                    )),
                    BodyError::TooLong { .. } => too_long(),
                })?;
        self.pool.give_back(sender);
        // What nests too deep to be read is refused here, by the reader's own bound.
        let answer: Value = serde_json::from_slice(&body).map_err(|error| {
            if error.is_eof() {
                return Trouble::connection(format!(
                    "the answer broke off after {} bytes",
                    body.len()
                ));
            }
            let words = format!(
                "it is no JSON ({error}): {}",
                quote(&String::from_utf8_lossy(&body), 200)
            );
            Trouble::answered(FailureKind::Malformed, None, words)
        })?;
        self.turn(ask, &answer, response.status())
    }

    async fn streamed(
        &self,
        ask: &Ask<'_>,
        mut response: Response<Incoming>,
        sender: Sender,
    ) -> Result<AssistantTurn, Trouble> {
        let status = response.status();
        let silence = MOST_SILENCE.min(self.settings.timeout);
        let mut assembler = self.adapter.assembler();
        let mut parser = Parser::new(MOST_BYTES);
        let mut events = Vec::new();
        let mut read = 0;
        loop {
            let frame = match timeout(silence, response.body_mut().frame()).await {
                Err(_) => {
                    return Err(Trouble {
                        what: What::Timeout(silence),
                        words: format!("the stream was silent for {silence:?}"),
                        asked: None,
                    });
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    return Err(Trouble::connection(format!(
                        "the stream broke off: {}",
                        error_chain(&error)
                    )));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            read += data.len();
            if read > MOST_BYTES {
                return Err(too_long());
            }
            parser.push(data, &mut events).map_err(|_| too_long())?;
            for event in events.drain(..) {
                let name = Some(event.kind.as_str()).filter(|kind| !kind.is_empty());
                let data = std::str::from_utf8(&event.data).map_err(|_| {
                    Trouble::answered(FailureKind::Malformed, None, "an event that is not UTF-8")
                })?;
                assembler
                    .event(name, data)
                    .map_err(|failure| Trouble::of(failure, status))?;
            }
        }
        if parser.is_mid_event() {
            return Err(Trouble::connection(
                "the stream broke off in the middle of an event",
            ));
        }
        let answer = assembler
            .finish()
            .map_err(|failure| Trouble::of(failure, status))?;
        self.pool.give_back(sender);
        self.turn(ask, &answer, status)
    }

    fn turn(
        &self,
        ask: &Ask<'_>,
        answer: &Value,
        status: StatusCode,
    ) -> Result<AssistantTurn, Trouble> {
        self.adapter
            .turn(ask, answer)
            .map_err(|failure| Trouble::of(failure, status))
    }
}

fn too_long() -> Trouble {
    let words = format!(
        "an answer of more than {} MiB, which is the limit",
        MOST_BYTES >> 20
    );
    Trouble::answered(FailureKind::Malformed, None, words)
}

/// A request with a key is not sent to where nobody wrote it should go.
fn redirected(response: &Response<Incoming>) -> Trouble {
    let target = response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok());
    let words = match target {
        Some(target) => format!(
            "a redirect to `{}`, which is not followed; write that address as `base_url` if it is meant",
            quote(&without_query(target), 200)
        ),
        None => "a redirect without an address".to_owned(),
    };
    Trouble::answered(FailureKind::Refused, Some(response.status()), words)
}

/// The path of a request. A first part that the base URL has too (`/v1`) is written once, so that
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

/// A provider's model, as one run has it.
#[derive(Debug)]
pub struct LiveModel {
    provider: Arc<Provider>,
    model: String,
    seed: u64,
    /// Requests so far: each has pauses of its own.
    asked: AtomicU64,
}

impl Model for LiveModel {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        let seed = combine(self.seed, self.asked.fetch_add(1, Ordering::Relaxed));
        Box::pin(self.provider.ask(&self.model, request, seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_both_have_is_written_once() {
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
    fn nothing_secret_is_in_debug_output() {
        let mut settings = Settings::new("x", "http://h/v1?key=s3cret-1");
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
