//! Streamable HTTP: each message of ours is one POST, answered with JSON or a stream of events.
//!
//! Below this sits the same [`State`](crate::state::State) as for stdio: whatever arrives, in a
//! body or in an event, is one frame for it. What is particular to HTTP is when a call can be given
//! up early: a response that ended holds no more replies.

pub(crate) mod headers;
mod stream;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use mcptest_http::body::{
    BodyError, content_type, describe_status, error_chain, read_all, read_excerpt,
};
use mcptest_http::secrets::{self, mask};
use mcptest_http::sse::Parser;
use mcptest_http::text::quote;
use mcptest_http::{Address, Pool, SendError, Sender, header_map, without_query};
use mcptest_protocol::{AnnotationError, Revision, ToolHeaders};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::headers::{Header, Outline, PROTOCOL_VERSION, SESSION_ID};
use crate::error::{WireError, WireErrorKind};
use crate::limits::Limits;
use crate::state::{Closed, Outgoing};
use crate::tasks::Shared;
use crate::violation::ViolationKind;

/// Redirects followed on the same host.
const MOST_REDIRECTS: usize = 3;

/// Free connections kept.
const MOST_FREE: usize = 16;

/// Characters that an error shows of a response that is no answer.
const EXCERPT_CHARS: usize = 300;

/// Time for a message that nobody waits for.
const NOTICE_WAIT: Duration = Duration::from_secs(10);

/// After the reply: time for its stream to end, so that the connection can be used again.
const AFTER_REPLY: Duration = Duration::from_millis(250);

/// Time for a session to be ended.
const DELETE_WAIT: Duration = Duration::from_secs(2);

/// A server that speaks streamable HTTP.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct HttpServer {
    /// Its address, as in `http://127.0.0.1:3000/mcp`.
    pub url: String,
    /// Headers sent with every request. The values of those that look like credentials appear in no
    /// error.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpServer")
            .field("url", &without_query(&self.url))
            .field("headers", &names)
            .finish()
    }
}

/// Why an exchange gave no answer.
struct Trouble {
    kind: WireErrorKind,
    detail: String,
    /// No later exchange can do better.
    ends_connection: bool,
}

impl Trouble {
    fn new(kind: WireErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            ends_connection: false,
        }
    }
}

/// What the conversation has settled.
#[derive(Debug, Default)]
struct Settled {
    session: Option<String>,
    revision: Option<Revision>,
    tool_headers: ToolHeaders,
}

/// The far end of a connection over HTTP.
pub(crate) struct Endpoint {
    pool: Pool,
    authority: HeaderValue,
    path: String,
    headers: HeaderMap,
    secrets: Vec<String>,
    settled: Mutex<Settled>,
    max_bytes: usize,
    max_text_chars: usize,
    /// The address as errors show it.
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
    pub(crate) fn new(name: &str, server: &HttpServer, limits: &Limits) -> Result<Self, WireError> {
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
            pool: Pool::new(&address, MOST_FREE),
            authority: address.authority,
            path: address.path,
            headers: header_map(headers).map_err(|error| refuse(error.to_string()))?,
            settled: Mutex::default(),
            max_bytes: limits.max_line_bytes,
            max_text_chars: limits.max_text_chars,
            shown: mask(&shown, &secrets),
            secrets,
        })
    }

    fn settled(&self) -> MutexGuard<'_, Settled> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on every message names this revision.
    pub(crate) fn settle(&self, revision: Revision) {
        self.settled().revision = Some(revision);
    }

    /// Learns the header annotations of a listing. Returns the tools with invalid ones.
    pub(crate) fn learn_headers(
        &self,
        tools: &[serde_json::Value],
    ) -> Vec<(String, AnnotationError)> {
        self.settled().tool_headers.learn(tools)
    }

    pub(crate) fn knows_headers_of(&self, tool: &str) -> bool {
        self.settled().tool_headers.has(tool)
    }

    /// The reason why a tool must not be called over HTTP, if there is one.
    pub(crate) fn annotation_error(&self, tool: &str) -> Option<AnnotationError> {
        self.settled().tool_headers.error_of(tool).cloned()
    }

    /// Text without the credentials that we send.
    pub(crate) fn mask(&self, text: &str) -> String {
        mask(text, &self.secrets)
    }

    /// Waits until somebody listens, or for `limit`.
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
                let limit = crate::connection::show_duration(limit);
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

    /// Ends the session, if the server gave us one. That it cannot be ended is allowed.
    pub(crate) async fn end_session(&self) {
        let session = self.settled().session.take();
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
        let revision = self.settled().revision;
        revision
            .map(|revision| (PROTOCOL_VERSION.into(), revision.as_str().to_owned()))
            .into_iter()
            .collect()
    }

    /// The session and the revision, as far as they are settled.
    fn session_headers(&self) -> Vec<Header> {
        let mut extra = self.version_header();
        extra.extend(
            self.settled()
                .session
                .clone()
                .map(|session| (SESSION_ID.into(), session)),
        );
        extra
    }

    /// Sends one request and waits for the head of the response.
    async fn send(
        &self,
        method: &Method,
        body: Bytes,
        extra: &[Header],
    ) -> Result<(Response<Incoming>, Sender), Trouble> {
        let mut path = self.path.clone();
        for _ in 0..=MOST_REDIRECTS {
            let (response, sender) = self.send_once(method, &path, body.clone(), extra).await?;
            if !response.status().is_redirection() {
                return Ok((response, sender));
            }
            path = self.redirected(&response)?;
        }
        Err(Trouble::new(
            WireErrorKind::Protocol,
            format!("more than {MOST_REDIRECTS} redirects"),
        ))
    }

    async fn send_once(
        &self,
        method: &Method,
        path: &str,
        body: Bytes,
        extra: &[Header],
    ) -> Result<(Response<Incoming>, Sender), Trouble> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(ACCEPT, accepted(method))
            .body(Full::new(body))
            .map_err(|error| {
                Trouble::new(
                    WireErrorKind::Protocol,
                    format!("cannot ask for this path: {error}"),
                )
            })?;
        let map = request.headers_mut();
        if method == Method::POST {
            map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in extra {
            let value = HeaderValue::from_str(value).map_err(|_| {
                Trouble::new(
                    WireErrorKind::Protocol,
                    format!("{name} has characters that no header can carry"),
                )
            })?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                Trouble::new(
                    WireErrorKind::Protocol,
                    format!("`{name}` cannot be the name of a header"),
                )
            })?;
            map.insert(name, value);
        }
        // The caller's own come last and so replace ours: a test may send wrong ones on purpose.
        for name in self.headers.keys() {
            map.remove(name);
        }
        for (name, value) in &self.headers {
            map.append(name, value.clone());
        }
        self.pool.send(request).await.map_err(|error| match error {
            SendError::Connect(error) => Trouble {
                kind: WireErrorKind::Transport,
                detail: format!("cannot connect to {}: {error}", self.shown),
                ends_connection: true,
            },
            SendError::Lost(error) => Trouble::new(
                WireErrorKind::Transport,
                format!(
                    "the connection to {} broke before a response came: {}",
                    self.shown,
                    error_chain(&error)
                ),
            ),
        })
    }

    /// The path that a redirect leads to; only on the same host, because the headers carry
    /// credentials.
    fn redirected(&self, response: &Response<Incoming>) -> Result<String, Trouble> {
        let status = response.status();
        let refuse = |why: String| {
            Trouble::new(
                WireErrorKind::Protocol,
                format!("{}: {why}", describe_status(status)),
            )
        };
        let target = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok())
            .ok_or_else(|| refuse("a redirect without an address".to_owned()))?;
        let shown = quote(&self.mask(&without_query(target)), 200);
        if !matches!(
            status,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        ) {
            return Err(refuse(format!(
                "a redirect to `{shown}` that would lose the message; write that address"
            )));
        }
        let uri: Uri = target
            .parse()
            .map_err(|_| refuse(format!("a redirect to `{shown}`, which is no address")))?;
        if uri.authority().is_none() && target.starts_with('/') && !target.starts_with("//") {
            return Ok(target.to_owned());
        }
        let same = uri
            .authority()
            .map(|authority| authority.as_str().as_bytes())
            == Some(self.authority.as_bytes())
            && (uri.scheme_str() == Some("https")) == self.pool.is_tls();
        if !same {
            return Err(refuse(format!(
                "a redirect to another host, `{shown}`, is not followed: our headers are not for it. Write that address if it is meant"
            )));
        }
        Ok(uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned())
    }

    /// Sends one message and takes in what comes back.
    async fn exchange(
        &self,
        shared: &Shared,
        outgoing: &Outgoing,
        outline: &Outline,
    ) -> Result<(), Trouble> {
        let opens = outline.method.as_deref() == Some("initialize");
        let mut extra = Vec::new();
        if let Some(revision) = outline.revision() {
            extra.push((PROTOCOL_VERSION.into(), headers::encode(revision)));
            extra.extend(outline.headers(&self.settled().tool_headers));
        } else if !opens {
            extra = self.session_headers();
            if self.settled().revision.is_some_and(Revision::is_stateless) {
                extra.extend(outline.headers(&self.settled().tool_headers));
            }
        }
        let had_session = extra.iter().any(|(name, _)| name == SESSION_ID);
        if let Some(id) = outgoing.id {
            shared.state().mark_written(id);
        }
        let body = Bytes::copy_from_slice(outgoing.line.trim_ascii_end());
        let (mut response, sender) = self.send(&Method::POST, body, &extra).await?;
        let status = response.status();
        if !status.is_success() {
            return self
                .refused(shared, response, outgoing.id, had_session)
                .await;
        }
        if opens {
            self.take_session(shared, &response);
        }
        let Some(id) = outgoing.id else {
            let body = read_excerpt(response.body_mut()).await;
            if status != StatusCode::ACCEPTED && status != StatusCode::NO_CONTENT {
                let detail = format!(
                    "a message without a reply was answered with {}, not 202",
                    describe_status(status)
                );
                self.violate(shared, &detail, &String::from_utf8_lossy(&body));
            }
            self.pool.give_back(sender);
            return Ok(());
        };
        match content_type(&response) {
            Some(kind) if kind == "application/json" => {
                let body = self.whole_body(response.body_mut()).await?;
                self.pool.give_back(sender);
                if !self.take_in(shared, &body) || shared.state().is_waiting(id) {
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
                    "{} with {what}, where JSON or an event stream must be",
                    describe_status(status)
                );
                self.violate(shared, &detail, &String::from_utf8_lossy(&body));
                Err(self.no_reply(status, &format!("it has {what}; the body begins"), &body))
            }
        }
    }

    /// A status that is no success. A JSON-RPC error about this very request is an answer all the
    /// same.
    async fn refused(
        &self,
        shared: &Shared,
        mut response: Response<Incoming>,
        id: Option<u64>,
        had_session: bool,
    ) -> Result<(), Trouble> {
        let status = response.status();
        let challenge = response
            .headers()
            .get(WWW_AUTHENTICATE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = read_excerpt(response.body_mut()).await;
        if let Some(id) = id
            && replies_to(&body, id)
        {
            self.take_in(shared, &body);
            return Ok(());
        }
        let mut detail = describe_status(status);
        if !body.trim_ascii().is_empty() {
            detail = format!("{detail}: {}", self.quoted(&body));
        }
        if let Some(challenge) = challenge {
            detail = format!("{detail}; it asks for: {}", quote(&challenge, 200));
        }
        let kind = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => WireErrorKind::Auth,
            StatusCode::TOO_MANY_REQUESTS => WireErrorKind::RateLimit,
            _ => WireErrorKind::Protocol,
        };
        if kind == WireErrorKind::Auth {
            detail.push_str(if self.headers.is_empty() {
                "; no header with a credential was sent"
            } else {
                "; check the headers that are sent"
            });
        }
        let session_ended = had_session && status == StatusCode::NOT_FOUND;
        if session_ended {
            detail = format!("the server does not know the session any more ({detail})");
        }
        Err(Trouble {
            kind,
            detail,
            ends_connection: session_ended,
        })
    }

    fn take_session(&self, shared: &Shared, response: &Response<Incoming>) {
        let Some(value) = response.headers().get(SESSION_ID) else {
            return;
        };
        match value.to_str() {
            Ok(session)
                if !session.is_empty() && session.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                self.settled().session = Some(session.to_owned());
            }
            _ => {
                let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
                self.violate(
                    shared,
                    "the session id is not made of visible ASCII characters",
                    &text,
                );
            }
        }
    }

    /// Gives a frame to the state. Says whether it was JSON at all.
    fn take_in(&self, shared: &Shared, frame: &[u8]) -> bool {
        let frame = frame.trim_ascii();
        if let Err(error) = serde_json::from_slice::<serde_json::Value>(frame) {
            let text = String::from_utf8_lossy(frame);
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
        shared.state().line(frame.to_vec(), true);
        true
    }

    async fn whole_body(&self, body: &mut Incoming) -> Result<Vec<u8>, Trouble> {
        read_all(body, self.max_bytes)
            .await
            .map_err(|unread| match unread {
                BodyError::Interrupted { read, error } => Trouble::new(
                    WireErrorKind::Transport,
                    format!(
                        "the response broke off after {} bytes ({}): {}",
                        read.len(),
                        error_chain(&error),
                        self.quoted(&read)
                    ),
                ),
                BodyError::TooLong { read } => Trouble::new(
                    WireErrorKind::Protocol,
                    format!(
                        "a response of more than {} bytes, which is the limit; it begins: {}",
                        self.max_bytes,
                        self.quoted(&read)
                    ),
                ),
            })
    }

    fn no_reply(&self, status: StatusCode, what: &str, body: &[u8]) -> Trouble {
        let detail = if body.trim_ascii().is_empty() {
            format!(
                "{} without a reply: the body is empty",
                describe_status(status)
            )
        } else {
            format!(
                "{} without a reply to the request: {what}: {}",
                describe_status(status),
                self.quoted(body)
            )
        };
        Trouble::new(WireErrorKind::Protocol, detail)
    }

    fn quoted(&self, body: &[u8]) -> String {
        quote(
            &self.mask(&String::from_utf8_lossy(body)),
            EXCERPT_CHARS.min(self.max_text_chars),
        )
    }

    fn violate(&self, shared: &Shared, detail: &str, text: &str) {
        shared
            .state()
            .violations
            .record(ViolationKind::Http, detail, &self.mask(text));
    }

    /// One message from first to last.
    async fn deliver(self: Arc<Self>, shared: Arc<Shared>, outgoing: Outgoing, outline: Outline) {
        let exchange = self.exchange(&shared, &outgoing, &outline);
        let Some(id) = outgoing.id else {
            let outcome = timeout(NOTICE_WAIT, exchange).await;
            let what = outline.method.as_deref().unwrap_or("answer to a request");
            let detail = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(trouble)) => trouble.detail,
                Err(_) => format!("no response within {}s", NOTICE_WAIT.as_secs()),
            };
            self.violate(
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
            // Giving up a call closes its stream, which tells the server; a reply lets it end by
            // itself.
            if !shared.state().is_forgotten(id) {
                sleep(AFTER_REPLY).await;
            }
        };
        tokio::select! {
            biased;
            outcome = exchange => if let Err(trouble) = outcome {
                let mut state = shared.state();
                state.fail(id, trouble.kind, trouble.detail.clone());
                if trouble.ends_connection {
                    state.close(Closed { kind: trouble.kind, detail: trouble.detail });
                }
            },
            () = unneeded => {}
        }
    }
}

/// Carries the queue to the server until it is given up. All that it started ends with it.
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
                let outline = Outline::of(&outgoing.line);
                if outline.method.as_deref() == Some("notifications/initialized") {
                    // Nothing may overtake it.
                    endpoint.clone().deliver(shared.clone(), outgoing, outline).await;
                    running.spawn(endpoint.clone().listen(shared.clone()));
                } else {
                    running.spawn(endpoint.clone().deliver(shared.clone(), outgoing, outline));
                }
            }
            Some(_) = running.join_next() => {}
        }
    }
}

fn accepted(method: &Method) -> &'static str {
    match *method {
        Method::GET => "text/event-stream",
        _ => "application/json, text/event-stream",
    }
}

/// Whether a body is a JSON-RPC error about this request.
fn replies_to(body: &[u8], id: u64) -> bool {
    serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|value| {
        value.get("error").is_some()
            && value.get("id").and_then(serde_json::Value::as_u64) == Some(id)
    })
}
