//! Streamable HTTP: each of our messages is one POST, answered with JSON or a stream of events.
//!
//! The [`State`](crate::state::State) is the same as for stdio: a body or an event is one message.
//! In contrast to stdio, a call can fail early: a response that has ended contains no more replies.

pub(crate) mod headers;
pub(crate) mod legacy;
mod request;
mod response;
mod stream;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use mcptest_http::body::{content_type, describe_status, read_excerpt};
use mcptest_http::credentials::{CredentialError, Credentials};
use mcptest_http::secrets::{self, mask};
use mcptest_http::sse::Parser;
use mcptest_http::text::quote;
use mcptest_http::{Address, Pool, header_map, without_query};
use mcptest_json::surrogates::mended;
use mcptest_protocol::{AnnotationError, Revision, ToolHeaders};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::headers::{Header, Outline, PROTOCOL_VERSION, SESSION_ID};
use self::legacy::LegacyStream;
use self::request::Request;
use crate::error::{WireError, WireErrorKind};
use crate::limits::WireLimits;
use crate::state::{Closed, Outgoing};
use crate::tasks::Shared;
use crate::time::show_duration;
use crate::violation::ViolationKind;

/// The number of free connections kept.
const MAX_FREE: usize = 16;

/// Time for a message that nobody waits for.
const NOTIFICATION_WAIT: Duration = Duration::from_secs(10);

/// After the reply: time for its stream to end, so that the connection can be reused.
const AFTER_REPLY_WAIT: Duration = Duration::from_millis(250);

/// Time for ending the session.
const DELETE_WAIT: Duration = Duration::from_secs(2);

/// The transport of a server over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpTransport {
    /// Streamable HTTP; if the server refuses its first message, HTTP+SSE.
    #[default]
    Auto,
    /// Streamable HTTP only.
    Streamable,
    /// HTTP+SSE only, the transport of revision 2024-11-05.
    Sse,
}

/// A server over HTTP.
#[derive(Clone, Default)]
pub struct HttpServer {
    /// The URL, such as `http://127.0.0.1:3000/mcp`.
    pub url: String,
    /// Headers sent with every request. Values that look like credentials do not appear in errors.
    pub headers: Vec<(String, String)>,
    /// The transport.
    pub transport: HttpTransport,
    /// The source of credentials, for a server that requires authorization.
    pub credentials: Option<Arc<dyn Credentials>>,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpServer")
            .field("url", &without_query(&self.url))
            .field("headers", &names)
            .field("transport", &self.transport)
            .field("credentials", &self.credentials)
            .finish()
    }
}

/// An exchange without a usable answer.
struct ExchangeError {
    kind: WireErrorKind,
    detail: String,
    /// Later exchanges would fail, too.
    closes_connection: bool,
    /// The server does not know the session, so it has not processed the message.
    session_ended: bool,
}

impl ExchangeError {
    fn new(kind: WireErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            closes_connection: false,
            session_ended: false,
        }
    }
}

impl From<CredentialError> for ExchangeError {
    fn from(error: CredentialError) -> Self {
        Self::new(WireErrorKind::Auth, error.0)
    }
}

/// The facts that the exchanges have established.
#[derive(Debug, Default)]
struct Negotiated {
    session: Option<String>,
    revision: Option<Revision>,
    tool_headers: ToolHeaders,
    /// The `initialize` request that opened the session, to open another one.
    initialize: Option<Bytes>,
    /// The status with which the last `initialize` was refused.
    refused: Option<StatusCode>,
}

/// The server's end of a connection over HTTP.
pub(crate) struct Endpoint {
    pool: Pool,
    authority: HeaderValue,
    path: String,
    headers: HeaderMap,
    secrets: Vec<String>,
    credentials: Option<Arc<dyn Credentials>>,
    transport: HttpTransport,
    /// Set once the server has opened an event stream of HTTP+SSE.
    legacy: Mutex<Option<LegacyStream>>,
    negotiated: Mutex<Negotiated>,
    /// Held while a session is opened again: calls that lost the same one wait for the new one.
    renewal: tokio::sync::Mutex<()>,
    /// Cancelled once the stream for the server's own messages is open or was refused.
    listening: CancellationToken,
    max_bytes: usize,
    max_text_chars: usize,
    /// The URL as errors show it.
    pub(crate) shown: String,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.shown)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(crate) fn new(
        name: &str,
        server: &HttpServer,
        limits: &WireLimits,
    ) -> Result<Self, WireError> {
        let shown = quote(&without_query(&server.url), 200);
        let refuse =
            |detail: String| WireError::new(WireErrorKind::Spawn, name, "parsing its URL", detail);
        let address = Address::parse(&server.url).map_err(|error| refuse(error.to_string()))?;
        let headers = server
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let secrets = secrets::of_headers(headers.clone());
        Ok(Self {
            pool: Pool::new(&address, MAX_FREE),
            authority: address.authority,
            path: address.path,
            headers: header_map(headers).map_err(|error| refuse(error.to_string()))?,
            credentials: server.credentials.clone(),
            transport: server.transport,
            legacy: Mutex::default(),
            negotiated: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            listening: CancellationToken::new(),
            max_bytes: limits.max_line_bytes,
            max_text_chars: limits.max_text_chars,
            shown: mask(&shown, &secrets),
            secrets,
        })
    }

    /// Cancelled once the server's own messages can arrive.
    pub(crate) fn listening(&self) -> &CancellationToken {
        &self.listening
    }

    /// The credentials that we send.
    pub(crate) fn secrets(&self) -> &[String] {
        &self.secrets
    }

    fn negotiated(&self) -> MutexGuard<'_, Negotiated> {
        self.negotiated
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the revision that every further message names.
    pub(crate) fn set_revision(&self, revision: Revision) {
        self.negotiated().revision = Some(revision);
    }

    /// Learns the header annotations of a listing. Returns the tools with invalid ones.
    pub(crate) fn learn_headers(
        &self,
        tools: &[serde_json::Value],
    ) -> Vec<(String, AnnotationError)> {
        self.negotiated().tool_headers.learn(tools)
    }

    pub(crate) fn knows_headers_of(&self, tool: &str) -> bool {
        self.negotiated().tool_headers.has(tool)
    }

    /// The reason why a tool must not be called over HTTP, if there is one.
    pub(crate) fn annotation_error(&self, tool: &str) -> Option<AnnotationError> {
        self.negotiated().tool_headers.error_of(tool).cloned()
    }

    /// Masks the credentials that we send.
    pub(crate) fn mask(&self, text: &str) -> String {
        let text = mask(text, &self.secrets);
        match &self.credentials {
            Some(credentials) => mask(&text, &credentials.secrets()),
            None => text,
        }
    }

    /// Waits until the server accepts connections, at most for `limit`.
    pub(crate) async fn wait_until_ready(
        &self,
        limit: Duration,
    ) -> Result<(), (WireErrorKind, String)> {
        match timeout(limit, self.pool.wait_until_ready()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err((
                WireErrorKind::Transport,
                format!("cannot connect to {}: {error}", self.shown),
            )),
            Err(_) => {
                let limit = show_duration(limit);
                Err((
                    WireErrorKind::Transport,
                    format!(
                        "nothing accepted a connection at {} within {limit}",
                        self.shown
                    ),
                ))
            }
        }
    }

    /// Ends the session, if there is one. Servers may refuse to end it.
    pub(crate) async fn end_session(&self) {
        let session = self.negotiated().session.take();
        let Some(session) = session else {
            return;
        };
        let mut extra = self.version_header();
        extra.push((SESSION_ID.into(), session));
        let _ = timeout(
            DELETE_WAIT,
            self.send(&Method::DELETE, Bytes::new(), &extra),
        )
        .await;
    }

    fn version_header(&self) -> Vec<Header> {
        let revision = self.negotiated().revision;
        revision
            .map(|revision| (PROTOCOL_VERSION.into(), revision.as_str().to_owned()))
            .into_iter()
            .collect()
    }

    /// The headers for session and revision, as far as they are known.
    fn session_headers(&self) -> Vec<Header> {
        let mut extra = self.version_header();
        extra.extend(
            self.negotiated()
                .session
                .clone()
                .map(|session| (SESSION_ID.into(), session)),
        );
        extra
    }

    /// Sends one message and handles the response. If the server no longer knows the session, the
    /// message is sent again in a new one: the server has not processed it.
    async fn exchange(
        &self,
        shared: &Shared,
        outgoing: &Outgoing,
        outline: &Outline,
    ) -> Result<(), ExchangeError> {
        let session = self.negotiated().session.clone();
        let ended = match self.exchange_once(shared, outgoing, outline).await {
            Err(error) if error.session_ended => error,
            outcome => return outcome,
        };
        if let Err(error) = self.renew_session(shared, session.as_deref()).await {
            let detail = format!("{}, and no other could be opened: {error}", ended.detail);
            return Err(ExchangeError { detail, ..ended });
        }
        let again = self.exchange_once(shared, outgoing, outline).await;
        again.map_err(|error| match error.session_ended {
            true => ExchangeError {
                detail: format!("{}, nor the one opened in its place", error.detail),
                ..error
            },
            false => error,
        })
    }

    async fn exchange_once(
        &self,
        shared: &Shared,
        outgoing: &Outgoing,
        outline: &Outline,
    ) -> Result<(), ExchangeError> {
        let is_initialize = outline.method.as_deref() == Some("initialize");
        let mut extra = Vec::new();
        if let Some(revision) = outline.revision() {
            extra.push((PROTOCOL_VERSION.into(), headers::encode(revision)));
            extra.extend(outline.headers(&self.negotiated().tool_headers));
        } else if !is_initialize {
            extra = self.session_headers();
            if self
                .negotiated()
                .revision
                .is_some_and(Revision::is_stateless)
            {
                extra.extend(outline.headers(&self.negotiated().tool_headers));
            }
        }
        let had_session = extra.iter().any(|(name, _)| name == SESSION_ID);
        if let Some(id) = outgoing.id {
            shared.state().mark_written(id);
        }
        let body = Bytes::copy_from_slice(outgoing.line.trim_ascii_end());
        if is_initialize {
            self.negotiated().initialize = Some(body.clone());
        }
        let legacy = self.legacy_path();
        let request = Request {
            method: &Method::POST,
            path: legacy.as_deref().unwrap_or(&self.path),
            body,
            extra: &extra,
        };
        let waiting = |waits| shared.state().wait_for_credential(outgoing.id, waits);
        let (mut response, sender) = self.send_waiting(waiting, request).await?;
        let status = response.status();
        if !status.is_success() {
            let refused = self
                .handle_refusal(shared, response, outgoing.id, had_session)
                .await;
            if is_initialize && refused.is_err() {
                self.negotiated().refused = Some(status);
            }
            return refused;
        }
        if is_initialize {
            self.take_session(shared, &response);
        }
        if legacy.is_some() {
            // The reply arrives on the event stream.
            read_excerpt(response.body_mut()).await;
            self.pool.give_back(sender);
            return Ok(());
        }
        let Some(id) = outgoing.id else {
            let body = read_excerpt(response.body_mut()).await;
            if status != StatusCode::ACCEPTED && status != StatusCode::NO_CONTENT {
                let detail = format!(
                    "a notification or reply was answered with {}, not 202",
                    describe_status(status)
                );
                self.record_violation(shared, &detail, &String::from_utf8_lossy(&body));
            }
            self.pool.give_back(sender);
            return Ok(());
        };
        match content_type(&response) {
            Some(kind) if kind == "application/json" => {
                let body = self.read_body(response.body_mut()).await?;
                self.pool.give_back(sender);
                if !self.handle_message(shared, &body) || shared.state().is_waiting(id) {
                    return Err(self.no_reply(status, "the body of the response is", &body));
                }
                Ok(())
            }
            Some(kind) if kind == "text/event-stream" => {
                let mut parser = Parser::new(self.max_bytes);
                self.read_events(shared, response.body_mut(), &mut parser)
                    .await?;
                self.pool.give_back(sender);
                self.resume(shared, id, parser).await
            }
            other => {
                let body = read_excerpt(response.body_mut()).await;
                let what = match other {
                    Some(kind) => format!("content type `{}`", quote(&kind, 80)),
                    None => "no content type".to_owned(),
                };
                let detail = format!(
                    "{} with {what} instead of JSON or an event stream",
                    describe_status(status)
                );
                self.record_violation(shared, &detail, &String::from_utf8_lossy(&body));
                Err(self.no_reply(status, &format!("it has {what}; the body begins"), &body))
            }
        }
    }

    /// Passes a message to the state. Returns false if it is not valid JSON.
    fn handle_message(&self, shared: &Shared, frame: &[u8]) -> bool {
        let frame = mended(frame.trim_ascii());
        if let Err(error) = serde_json::from_slice::<serde_json::Value>(&frame) {
            let text = String::from_utf8_lossy(&frame);
            let kind = if error.to_string().contains("recursion limit") {
                ViolationKind::TooDeep
            } else {
                ViolationKind::UnparsableJson
            };
            shared
                .state()
                .violations
                .record(kind, &error.to_string(), &text);
            return false;
        }
        shared.state().line(frame.into_owned(), true);
        true
    }

    fn record_violation(&self, shared: &Shared, detail: &str, text: &str) {
        shared
            .state()
            .violations
            .record(ViolationKind::Http, detail, &self.mask(text));
    }

    /// Sends one message and reports the outcome to its caller.
    async fn deliver(self: Arc<Self>, shared: Arc<Shared>, outgoing: Outgoing, outline: Outline) {
        let exchange = self.exchange(&shared, &outgoing, &outline);
        let Some(id) = outgoing.id else {
            tokio::pin!(exchange);
            let outcome = loop {
                match timeout(NOTIFICATION_WAIT, &mut exchange).await {
                    // Credentials have their own timeout.
                    Err(_) if shared.state().is_blocked() => {}
                    outcome => break outcome,
                }
            };
            let what = outline.method.as_deref().unwrap_or("answer to a request");
            let detail = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.detail,
                Err(_) => format!("no response within {}s", NOTIFICATION_WAIT.as_secs()),
            };
            self.record_violation(
                &shared,
                &format!("our {what} was not accepted: {detail}"),
                "",
            );
            return;
        };
        let Some(unneeded) = shared.state().unneeded(id) else {
            return;
        };
        let unneeded = async {
            unneeded.cancelled().await;
            // Abandoning a call closes its stream, which notifies the server; after a reply, the
            // stream may end by itself.
            if !shared.state().is_abandoned(id) {
                sleep(AFTER_REPLY_WAIT).await;
            }
        };
        tokio::select! {
            biased;
            outcome = exchange => if let Err(error) = outcome {
                let mut state = shared.state();
                state.fail(id, error.kind, error.detail.clone());
                if error.closes_connection {
                    state.close(Closed { kind: error.kind, detail: error.detail });
                }
            },
            () = unneeded => {}
        }
    }
}

/// Sends the queued messages until the queue is closed. All exchanges end with it.
pub(crate) async fn serve(
    endpoint: Arc<Endpoint>,
    shared: Arc<Shared>,
    mut queue: mpsc::Receiver<Outgoing>,
) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            outgoing = queue.recv() => {
                let Some(outgoing) = outgoing else {
                    break;
                };
                if let Some(stream) = endpoint.unread_stream() {
                    running.spawn(endpoint.clone().read_legacy(shared.clone(), stream));
                }
                let outline = Outline::of(&outgoing.line);
                if outline.method.as_deref() == Some("notifications/initialized") {
                    // Later messages must not overtake it.
                    endpoint.clone().deliver(shared.clone(), outgoing, outline).await;
                    if endpoint.legacy_path().is_none() {
                        running.spawn(endpoint.clone().listen(shared.clone()));
                    }
                } else {
                    running.spawn(endpoint.clone().deliver(shared.clone(), outgoing, outline));
                }
            }
            Some(_) = running.join_next() => {}
        }
    }
}
