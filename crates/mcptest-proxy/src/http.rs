//! A server over HTTP with the interface of a server on stdio: lines of the client become POSTs,
//! responses become lines. Both transports are known: streamable HTTP, and HTTP+SSE.
//!
//! Messages keep their bytes; only newlines within a message become spaces, because a line is a
//! message here. What only HTTP needs (the session, the revision, headers that repeat the
//! body) is taken from the messages.

mod legacy;
mod message;
mod send;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use mcptest_http::body::{content_type, describe_status, read_all, read_excerpt};
use mcptest_http::credentials::{Credentials, WaitClock};
use mcptest_http::sse::Parser;
use mcptest_http::text::quote;
use mcptest_http::{Address, Pool, header_map, without_query};
use mcptest_json::surrogates::mended;
use mcptest_protocol::headers::{encode, name_of};
use mcptest_protocol::{Revision, ToolHeaders, meta};
use mcptest_wire::{HttpServer, HttpTransport};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use self::legacy::{OpenStream, may_be_legacy};
use self::message::{Message, is_initialized, needs_order};
use crate::error::ProxyError;
use crate::lines::{LinePart, LineSplitter, MAX_LINE_BYTES};
use crate::log;

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// The buffer in each direction.
const BUFFER_BYTES: usize = 256 * 1024;

/// The number of free connections kept.
const MAX_FREE: usize = 16;

/// Time for the server to accept connections.
const READY_WAIT: Duration = Duration::from_secs(30);

/// Time for ending the session.
const DELETE_WAIT: Duration = Duration::from_secs(2);

/// The default pause before a stream is resumed.
const RESUME_PAUSE: Duration = Duration::from_millis(1000);

/// The longest pause that a server can set.
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(30);

/// The number of empty streams in a row that are resumed.
const MAX_EMPTY_STREAMS: u32 = 3;

/// The code of the proxy's own errors, from the range that JSON-RPC leaves to implementations.
const NO_ANSWER: i64 = -32000;

/// A running bridge from lines to HTTP.
pub(crate) struct Bridge {
    task: JoinHandle<()>,
    endpoint: Arc<Endpoint>,
}

impl Bridge {
    /// Waits until the server accepts connections. Returns streams like the stdin and stdout of a
    /// server on stdio.
    pub(crate) async fn start(
        server: &HttpServer,
    ) -> Result<(Self, DuplexStream, DuplexStream), ProxyError> {
        let address = Address::parse(&server.url)?;
        let endpoint = Arc::new(Endpoint {
            pool: Pool::new(&address, MAX_FREE),
            authority: address.authority,
            path: address.path,
            headers: header_map(server.headers.iter().map(|(name, value)| (name, value)))?,
            credentials: server.credentials.clone(),
            transport: server.transport,
            legacy_path: Mutex::default(),
            auth_failure: Mutex::default(),
            clock: Arc::default(),
            is_settled: watch::Sender::new(true),
            negotiated: Mutex::default(),
        });
        let shown = quote(&without_query(&server.url), 200);
        match timeout(READY_WAIT, endpoint.pool.wait_until_ready()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let reason = format!("cannot connect to {shown}: {error}");
                return Err(ProxyError::Unreachable(reason));
            }
            Err(_) => {
                let limit = READY_WAIT.as_secs();
                return Err(ProxyError::Unreachable(format!(
                    "nothing accepted a connection at {shown} within {limit} s"
                )));
            }
        }
        let stream = match server.transport {
            HttpTransport::Sse => {
                let opened = endpoint.open_legacy().await;
                let failed = |reason: String| match endpoint.auth_failure() {
                    Some(reason) => ProxyError::Auth(reason),
                    None => ProxyError::Unreachable(format!("{shown}: {reason}")),
                };
                Some(opened.map_err(failed)?)
            }
            HttpTransport::Auto | HttpTransport::Streamable => None,
        };
        // Two pairs, each used in one direction, so that each side sees the end of the other.
        let (input, from_client) = duplex(BUFFER_BYTES);
        let (output, to_client) = duplex(BUFFER_BYTES);
        let task = tokio::spawn(forward(endpoint.clone(), from_client, to_client, stream));
        Ok((Self { task, endpoint }, input, output))
    }

    /// The reason why the server refused a message without authorization, if it did.
    pub(crate) fn auth_failure(&self) -> Option<String> {
        self.endpoint.auth_failure()
    }

    /// The time in which credentials were obtained: it is not the time of calls.
    pub(crate) fn clock(&self) -> Arc<WaitClock> {
        Arc::clone(&self.endpoint.clock)
    }

    /// Waits for the end of the session after the client's side was closed.
    pub(crate) async fn stop(&mut self) {
        if timeout(2 * DELETE_WAIT, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The facts that the messages have established.
#[derive(Default)]
struct Negotiated {
    session: Option<String>,
    revision: Option<String>,
    tool_headers: ToolHeaders,
}

struct Endpoint {
    pool: Pool,
    authority: HeaderValue,
    path: String,
    headers: HeaderMap,
    credentials: Option<Arc<dyn Credentials>>,
    transport: HttpTransport,
    /// The path for messages over HTTP+SSE, once its stream is open.
    legacy_path: Mutex<Option<String>>,
    /// The reason why the server refused a message without authorization.
    auth_failure: Mutex<Option<String>>,
    /// The time in which credentials were obtained.
    clock: Arc<WaitClock>,
    /// False while the first message is sent: its answer decides about the transport.
    is_settled: watch::Sender<bool>,
    negotiated: Mutex<Negotiated>,
}

/// The stream for messages of the server, shared by several exchanges.
type ToClient = Arc<tokio::sync::Mutex<DuplexStream>>;

/// Forwards messages until the client closes its side, or the server its event stream; open
/// exchanges are cancelled then.
async fn forward(
    endpoint: Arc<Endpoint>,
    mut from_client: DuplexStream,
    to_client: DuplexStream,
    stream: Option<OpenStream>,
) {
    let to_client: ToClient = Arc::new(tokio::sync::Mutex::new(to_client));
    let (opened, mut streams) = mpsc::channel(1);
    if let Some(stream) = stream {
        // The channel is empty.
        let _ = opened.send(stream).await;
    }
    let mut lines = LineSplitter::new(MAX_LINE_BYTES);
    let mut running = JoinSet::new();
    let mut reading = JoinSet::new();
    let mut chunk = vec![0; 64 * 1024];
    let mut parts = Vec::new();
    loop {
        let read = tokio::select! {
            biased;
            Some(stream) = streams.recv() => {
                reading.spawn(endpoint.clone().read_legacy(stream, to_client.clone()));
                continue;
            }
            Some(_) = reading.join_next() => break,
            read = from_client.read(&mut chunk) => read.unwrap_or(0),
        };
        lines.push(&chunk[..read], &mut parts);
        if read == 0 {
            break;
        }
        for part in parts.drain(..) {
            // An oversized line cannot be sent as one message.
            let LinePart::Line(line) = part else { continue };
            let message = Message::of(&line);
            let exchange = endpoint
                .clone()
                .exchange(message, to_client.clone(), opened.clone());
            if needs_order(&line) {
                // Later messages must not overtake one without an answer.
                exchange.await;
                if is_initialized(&line) && endpoint.legacy_path().is_none() {
                    running.spawn(endpoint.clone().listen(to_client.clone()));
                }
            } else {
                running.spawn(exchange);
            }
        }
        while running.try_join_next().is_some() {}
    }
    running.abort_all();
    endpoint.end_session().await;
}

impl Endpoint {
    fn negotiated(&self) -> MutexGuard<'_, Negotiated> {
        self.negotiated
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The HTTP headers of a message.
    fn headers_of(&self, message: &Message) -> Vec<(String, String)> {
        let params = message.value.get("params").unwrap_or(&Value::Null);
        let own_revision = params
            .get("_meta")
            .and_then(|own| own.get(meta::PROTOCOL_VERSION)?.as_str())
            .map(str::to_owned);
        let negotiated = self.negotiated();
        let is_initialize = message.method() == "initialize";
        let revision = own_revision
            .clone()
            .or_else(|| negotiated.revision.clone())
            .filter(|_| !is_initialize);
        let mut headers = Vec::new();
        if let (Some(session), None, false) = (&negotiated.session, &own_revision, is_initialize) {
            headers.push((SESSION_ID.to_owned(), session.clone()));
        }
        if let Some(revision) = &revision {
            headers.push((PROTOCOL_VERSION.to_owned(), encode(revision)));
        }
        let stateless = revision.as_deref().and_then(Revision::from_wire);
        if stateless.is_some_and(Revision::is_stateless) && !message.method().is_empty() {
            headers.push(("mcp-method".to_owned(), encode(message.method())));
            let name = name_of(message.method(), params);
            headers.extend(name.map(|name| ("mcp-name".to_owned(), encode(name))));
            if message.method() == "tools/call" {
                headers.extend(negotiated.tool_headers.of_call(params));
            }
        }
        headers
    }

    /// Sends one message and forwards the response. A request without a reply from the server gets
    /// an error from the proxy, so that the client does not wait forever.
    async fn exchange(
        self: Arc<Self>,
        message: Message,
        to_client: ToClient,
        opened: mpsc::Sender<OpenStream>,
    ) {
        let is_first = message.method() == "initialize";
        if is_first {
            self.is_settled.send_replace(false);
        } else {
            // The transport is known once the first message was answered. The sender is ours.
            let _ = self
                .is_settled
                .subscribe()
                .wait_for(|settled| *settled)
                .await;
        }
        let mut exchanged = self.try_exchange(&message, &to_client).await;
        if let Err(Unanswered {
            status: Some(status),
            reason,
        }) = &exchanged
            && self.transport == HttpTransport::Auto
            && is_first
            && may_be_legacy(*status)
        {
            exchanged = match self.open_legacy().await {
                Ok(stream) => {
                    // The receiver lives as long as this exchange.
                    let _ = opened.send(stream).await;
                    self.try_exchange(&message, &to_client).await
                }
                Err(other) => Err(Unanswered::from(format!(
                    "{reason}; it has no HTTP+SSE transport either: {other}"
                ))),
            };
        }
        if is_first {
            self.is_settled.send_replace(true);
        }
        if let Err(Unanswered { reason, .. }) = exchanged
            && let Some(id) = message.id()
        {
            log::unanswered(message.method(), &reason);
            let text = format!("mcptest proxy: {reason}");
            let error = json!({"code": NO_ANSWER, "message": text});
            let reply = json!({"jsonrpc": "2.0", "id": id, "error": error});
            send_line(&to_client, reply.to_string().as_bytes()).await;
        }
    }

    async fn try_exchange(
        &self,
        message: &Message,
        to_client: &ToClient,
    ) -> Result<(), Unanswered> {
        let headers = self.headers_of(message);
        let legacy = self.legacy_path();
        let path = legacy.as_deref().unwrap_or(&self.path);
        let (mut response, sender) = self
            .send_to(path, Method::POST, message.bytes.clone(), &headers)
            .await?;
        let status = response.status();
        if status.is_success() {
            self.is_settled.send_replace(true);
        }
        if legacy.is_some() && status.is_success() {
            // The reply arrives on the event stream.
            let _ = read_excerpt(response.body_mut()).await;
            self.pool.give_back(sender);
            return Ok(());
        }
        if status.is_success() && message.method() == "initialize" {
            let session = response
                .headers()
                .get(SESSION_ID)
                .and_then(|value| value.to_str().ok());
            self.negotiated().session = session.map(str::to_owned);
        }
        if message.id().is_none() {
            let body = read_excerpt(response.body_mut()).await;
            self.note_refusal(status, &body);
            self.pool.give_back(sender);
            return Ok(());
        }
        match content_type(&response).as_deref() {
            Some("text/event-stream") if status.is_success() => {
                let mut parser = Parser::new(MAX_LINE_BYTES);
                let replied = self
                    .forward_events(response.body_mut(), &mut parser, Some(message), to_client)
                    .await?;
                self.pool.give_back(sender);
                Ok(self.resume(parser, message, replied, to_client).await?)
            }
            Some("application/json") => {
                let body = read_all(response.body_mut(), MAX_LINE_BYTES)
                    .await
                    .map_err(|_| {
                        format!(
                            "{}: the body was interrupted or is too long",
                            describe_status(status)
                        )
                    })?;
                self.pool.give_back(sender);
                let frame: Value = serde_json::from_slice(&mended(&body)).unwrap_or_default();
                if !status.is_success() && !message.is_reply(&frame) {
                    return Err(self.refused(status, &body));
                }
                self.learn(message, &frame);
                send_line(to_client, &body).await;
                Ok(())
            }
            _ => {
                let body = read_excerpt(response.body_mut()).await;
                Err(self.refused(status, &body))
            }
        }
    }

    /// Forwards events until the stream ends. Returns true if the reply was among them.
    async fn forward_events(
        &self,
        body: &mut Incoming,
        parser: &mut Parser,
        message: Option<&Message>,
        to_client: &ToClient,
    ) -> Result<bool, String> {
        let mut events = Vec::new();
        let mut replied = false;
        while let Some(Ok(frame)) = body.frame().await {
            let Some(data) = frame.data_ref() else {
                continue;
            };
            parser
                .push(data, &mut events)
                .map_err(|_| format!("an event of more than {MAX_LINE_BYTES} bytes"))?;
            for event in events.drain(..) {
                let is_message = event.kind.is_empty() || event.kind == "message";
                // An empty event only carries the id to resume from.
                if !is_message || event.data.trim_ascii().is_empty() {
                    continue;
                }
                if let Some(message) = message {
                    let frame: Value =
                        serde_json::from_slice(&mended(&event.data)).unwrap_or_default();
                    replied |= message.is_reply(&frame);
                    self.learn(message, &frame);
                }
                send_line(to_client, &event.data).await;
            }
        }
        Ok(replied)
    }

    /// Requests the rest of a stream that ended without the reply.
    async fn resume(
        &self,
        mut parser: Parser,
        message: &Message,
        mut replied: bool,
        to_client: &ToClient,
    ) -> Result<(), String> {
        let ended = || "the event stream ended without the reply".to_owned();
        let mut empty = 0;
        while !replied {
            let last_id = parser.last_id.clone().ok_or_else(ended)?;
            if empty >= MAX_EMPTY_STREAMS {
                return Err(ended());
            }
            log::resuming(Some(&last_id));
            let pause = parser.retry_ms.map_or(RESUME_PAUSE, Duration::from_millis);
            sleep(pause.min(MAX_RESUME_PAUSE)).await;
            let retry_ms = parser.retry_ms;
            parser = Parser::new(MAX_LINE_BYTES);
            parser.last_id = Some(last_id.clone());
            parser.retry_ms = retry_ms;
            replied = self
                .get(&mut parser, Some(message), to_client)
                .await?
                .ok_or_else(ended)?;
            let has_progress = parser.last_id.as_ref() != Some(&last_id);
            empty = if has_progress { 0 } else { empty + 1 };
        }
        Ok(())
    }

    /// Sends one GET for a stream; `None` if the server offers none.
    async fn get(
        &self,
        parser: &mut Parser,
        message: Option<&Message>,
        to_client: &ToClient,
    ) -> Result<Option<bool>, String> {
        let mut headers = Vec::new();
        {
            let negotiated = self.negotiated();
            headers.extend(
                negotiated
                    .session
                    .clone()
                    .map(|session| (SESSION_ID.to_owned(), session)),
            );
            let revision = negotiated.revision.clone();
            headers.extend(revision.map(|revision| (PROTOCOL_VERSION.to_owned(), revision)));
        }
        headers.extend(
            parser
                .last_id
                .clone()
                .map(|id| ("last-event-id".to_owned(), id)),
        );
        let (mut response, sender) = self.send(Method::GET, Bytes::new(), &headers).await?;
        if !response.status().is_success()
            || content_type(&response).as_deref() != Some("text/event-stream")
        {
            return Ok(None);
        }
        let replied = self
            .forward_events(response.body_mut(), parser, message, to_client)
            .await?;
        self.pool.give_back(sender);
        Ok(Some(replied))
    }

    /// Forwards messages that the server sends by itself, as long as it offers that.
    async fn listen(self: Arc<Self>, to_client: ToClient) {
        let mut parser = Parser::new(MAX_LINE_BYTES);
        let mut empty = 0;
        while empty < MAX_EMPTY_STREAMS {
            let before = parser.last_id.clone();
            let retry_ms = parser.retry_ms;
            parser = Parser::new(MAX_LINE_BYTES);
            parser.last_id.clone_from(&before);
            parser.retry_ms = retry_ms;
            // A server without such a stream answers 405, which is fine.
            if !matches!(self.get(&mut parser, None, &to_client).await, Ok(Some(_))) {
                return;
            }
            empty = if parser.last_id == before {
                empty + 1
            } else {
                0
            };
            let pause = parser.retry_ms.map_or(RESUME_PAUSE, Duration::from_millis);
            sleep(pause.min(MAX_RESUME_PAUSE)).await;
        }
    }

    /// Records the facts that later requests need.
    fn learn(&self, message: &Message, frame: &Value) {
        let Some(result) = frame.get("result").filter(|_| message.is_reply(frame)) else {
            return;
        };
        match message.method() {
            "initialize" => {
                let revision = result.get("protocolVersion").and_then(Value::as_str);
                self.negotiated().revision = revision.map(str::to_owned);
            }
            "tools/list" => {
                let tools = result.get("tools").and_then(Value::as_array);
                let tools = tools.map_or(&[][..], Vec::as_slice);
                let is_further_page = message
                    .value
                    .pointer("/params/cursor")
                    .is_some_and(|cursor| !cursor.is_null());
                let mut negotiated = self.negotiated();
                if is_further_page {
                    negotiated.tool_headers.learn_more(tools);
                } else {
                    negotiated.tool_headers.learn(tools);
                }
            }
            _ => {}
        }
    }

    /// Ends the session. Servers may refuse to end it.
    async fn end_session(&self) {
        let Some(session) = self.negotiated().session.take() else {
            return;
        };
        let headers = [(SESSION_ID.to_owned(), session)];
        let _ = timeout(
            DELETE_WAIT,
            self.send(Method::DELETE, Bytes::new(), &headers),
        )
        .await;
    }
}

/// The reason why a request has no reply.
struct Unanswered {
    reason: String,
    /// The status of a response that is not a reply.
    status: Option<StatusCode>,
}

impl From<String> for Unanswered {
    fn from(reason: String) -> Self {
        Self {
            reason,
            status: None,
        }
    }
}

/// The reason why a response is not a reply, with the beginning of its body.
fn describe_refusal(status: &str, body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    match body.trim() {
        "" => format!("the server answered {status}"),
        body => format!("the server answered {status}: {}", quote(body, 300)),
    }
}

/// Sends one message of the server as a line. The client may be gone.
async fn send_line(to_client: &ToClient, frame: &[u8]) {
    let mut line: Vec<u8> = frame.trim_ascii().to_vec();
    if line.is_empty() {
        return;
    }
    for byte in &mut line {
        // JSON has newlines only between tokens.
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    let _ = to_client.lock().await.write_all(&line).await;
}
