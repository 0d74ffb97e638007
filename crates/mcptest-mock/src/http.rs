//! The streamable HTTP transport, on loopback only: `POST`, `GET` and `DELETE` of `/mcp`.
//!
//! Revisions with a handshake have sessions (`Mcp-Session-Id`); an unknown or ended session is a
//! 404. Revision 2026-07-28 has none: each request names its revision, method and target in
//! headers, which must match the body. An answer of one message is JSON, one with notifications
//! before it is a stream of server-sent events. Requests for another host than this machine are
//! refused: a web page that has rebound its name to 127.0.0.1 must not reach the server.

mod body;
mod connection;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mcptest_protocol::{Revision, meta as meta_keys};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use self::body::{Answer, error_reply, event, event_stream, not_allowed, plain, refuse};
use self::connection::Connection;
use crate::database::SessionState;
use crate::deferred::{Deferred, DeferredMessage, Route, TransportEvent};
use crate::headers::{header_mismatch, is_local_authority, is_local_origin};
use crate::jsonrpc::{
    HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR, Replies, RpcError,
    UNSUPPORTED_PROTOCOL_VERSION,
};
use crate::log;
use crate::server::MockServer;
use crate::server_changes::ServerChanges;
use crate::sessions::Sessions;

/// The path that is served.
pub const HTTP_PATH: &str = "/mcp";

/// The largest body that is read.
const MAX_BODY_BYTES: usize = 16 << 20;

/// The time that a client has to send the head of a request, and then its body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after a connection could not be accepted, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The messages that wait on a stream of notifications.
const STREAM_QUEUE: usize = 64;

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// Serves the mock on a listener. Every connection is a task of the current runtime.
///
/// A connection that cannot be accepted does not end the server: the process may have no free file
/// descriptor at the moment, and others are served meanwhile.
///
/// # Errors
/// Ends only if the record of messages cannot be written, with that error.
pub async fn serve_http(server: Arc<MockServer>, listener: TcpListener) -> io::Result<()> {
    let state = Arc::new(State {
        server,
        sessions: Mutex::default(),
        stateless: SessionState::default(),
        changes: ServerChanges::default(),
        streams: Mutex::default(),
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            error = state.server.record_failed() => return Err(error),
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                log::not_accepted(&error);
                if !is_of_the_client(&error) {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        // Otherwise an answer in two packets waits 40 ms for the first to be acknowledged. Fails
        // only for a client that has left.
        let _ = stream.set_nodelay(true);
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let state = Arc::clone(&state);
                async move {
                    let method = request.method().clone();
                    let answer = state.answer(request).await;
                    log::http_response(method.as_str(), answer.status().as_u16());
                    Ok::<_, Infallible>(answer)
                }
            });
            // A failed connection affects its client only.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(READ_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// Returns true for errors of one connection, after which the next one can be accepted immediately.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

struct State {
    server: Arc<MockServer>,
    sessions: Mutex<Sessions<Connection>>,
    /// The database and the changes of all requests without a session.
    stateless: SessionState,
    changes: ServerChanges,
    /// The open streams of notifications.
    streams: Mutex<HashMap<u64, mpsc::Sender<Bytes>>>,
}

/// Reads a body, unless its length (also the announced one) or its time is over the bound.
async fn read_body(body: Incoming) -> Result<Bytes, (StatusCode, &'static str)> {
    let too_long = (
        StatusCode::PAYLOAD_TOO_LARGE,
        "the body is longer than 16 MiB",
    );
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(too_long);
    }
    let collected = Limited::new(body, MAX_BODY_BYTES).collect();
    match tokio::time::timeout(READ_TIMEOUT, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body was interrupted")),
        Err(_) => {
            let why = "the body did not arrive within 30 seconds";
            Err((StatusCode::REQUEST_TIMEOUT, why))
        }
    }
}

impl State {
    async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Answer {
        let headers = request.headers();
        let mut hosts = headers.get_all(HOST).iter();
        let (host, second) = (hosts.next().map(HeaderValue::to_str), hosts.next());
        if second.is_some() {
            return refuse(StatusCode::BAD_REQUEST, "the request has two Host headers");
        }
        // The authority of an absolute target takes precedence over the header.
        let named = request.uri().authority();
        let named = named.is_none_or(|authority| is_local_authority(authority.as_str()));
        if !matches!(host, Some(Ok(host)) if named && is_local_authority(host)) {
            return refuse(
                StatusCode::FORBIDDEN,
                "this server answers to local names only",
            );
        }
        let origins = headers.get_all(ORIGIN);
        if !origins
            .iter()
            .all(|origin| origin.to_str().is_ok_and(is_local_origin))
        {
            return refuse(
                StatusCode::FORBIDDEN,
                "this server answers to local pages only",
            );
        }
        if request.uri().path() != HTTP_PATH {
            return refuse(StatusCode::NOT_FOUND, "there is only /mcp here");
        }
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.get(request.headers()),
            Method::DELETE => self.delete(request.headers()),
            _ => not_allowed(),
        }
    }

    async fn post(self: &Arc<Self>, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let headers = parts.headers;
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let kind = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim());
        if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
            return refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be application/json",
            );
        }
        let Some(accepts) = Accepts::of(&headers) else {
            return refuse(
                StatusCode::NOT_ACCEPTABLE,
                "accept application/json, text/event-stream, or both",
            );
        };
        let body = match read_body(body).await {
            Ok(body) => body,
            Err((status, why)) => return refuse(status, why),
        };
        let message: Value = match serde_json::from_slice(&body) {
            Ok(message) => message,
            Err(error) => {
                self.server.record_unreadable(&body);
                let error = RpcError::new(PARSE_ERROR, format!("Parse error: {error}"));
                return error_reply(StatusCode::BAD_REQUEST, None, error);
            }
        };
        let id = || {
            message
                .get("id")
                .filter(|id| id.is_string() || id.is_number())
                .cloned()
        };
        let method = message
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let meta = message.get("params").and_then(|params| params.get("_meta"));
        let in_body = meta.and_then(|meta| meta.get(meta_keys::PROTOCOL_VERSION));
        let in_header = headers
            .get(PROTOCOL_VERSION)
            .map(|version| version.to_str().unwrap_or_default());
        let header_stateless = in_header
            .and_then(Revision::from_wire)
            .is_some_and(Revision::is_stateless);
        if header_stateless || in_body.is_some() || method == "server/discover" {
            if message.get("id").is_some()
                && let Some(why) = header_mismatch(&headers, in_header, in_body, &message, |tool| {
                    self.server.parameter_headers(tool)
                })
            {
                let error = RpcError::new(HEADER_MISMATCH, why);
                return error_reply(StatusCode::BAD_REQUEST, id(), error);
            }
            if message.get("id").is_some() && in_body.is_none() && method != "server/discover" {
                let key = meta_keys::PROTOCOL_VERSION;
                let why = format!("Invalid params: _meta has no valid {key}");
                return error_reply(StatusCode::BAD_REQUEST, id(), RpcError::invalid_params(why));
            }
            let connection = self.stateless_connection();
            return self.handle(&connection, &message, accepts, true).await;
        }
        if in_header.is_some_and(|version| Revision::from_wire(version).is_none()) {
            let error = RpcError::invalid_request("Invalid request: unknown MCP-Protocol-Version");
            return error_reply(StatusCode::BAD_REQUEST, id(), error);
        }
        if method == "initialize" {
            return self.initialize(&message, accepts).await;
        }
        match self.connection(&headers) {
            Ok(connection) => self.handle(&connection, &message, accepts, false).await,
            Err((status, why)) => error_reply(status, id(), RpcError::invalid_request(why)),
        }
    }

    /// The connection of one request without a session.
    fn stateless_connection(&self) -> Arc<Connection> {
        let connection = Arc::<Connection>::default();
        {
            let mut session = lock(&connection.session);
            session.changes = self.changes.clone();
            if self.server.has_database() {
                session.database = Some(self.stateless.clone());
            }
        }
        connection
    }

    async fn initialize(self: &Arc<Self>, message: &Value, accepts: Accepts) -> Answer {
        let connection = Arc::<Connection>::default();
        let mut answer = self.handle(&connection, message, accepts, false).await;
        if lock(&connection.session).revision().is_none() {
            // Refused, so there is no session.
            return answer;
        }
        let inserted = lock(&self.sessions).insert(connection, Instant::now());
        let Ok((id, left)) = inserted else {
            let why = "too many sessions, and all of them are in use";
            return refuse(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        for connection in left {
            connection.ended.notify_waiters();
            log::session_ended();
        }
        if let Ok(value) = HeaderValue::from_str(&id) {
            answer.headers_mut().insert(SESSION_ID, value);
        }
        answer
    }

    fn connection(
        &self,
        headers: &HeaderMap,
    ) -> Result<Arc<Connection>, (StatusCode, &'static str)> {
        let Some(id) = headers.get(SESSION_ID).and_then(|id| id.to_str().ok()) else {
            return Err((
                StatusCode::BAD_REQUEST,
                "Invalid request: no Mcp-Session-Id; begin with initialize",
            ));
        };
        let found = lock(&self.sessions).get(id, Instant::now());
        found.ok_or((
            StatusCode::NOT_FOUND,
            "Invalid request: there is no such session",
        ))
    }

    /// Opens a stream for messages outside of requests, until the session ends.
    fn get(&self, headers: &HeaderMap) -> Answer {
        if !Accepts::of(headers).is_some_and(|accepts| accepts.events) {
            return refuse(StatusCode::NOT_ACCEPTABLE, "accept text/event-stream");
        }
        if is_stateless(headers) {
            return not_allowed();
        }
        match self.connection(headers) {
            Ok(connection) => {
                let (sender, receiver) = mpsc::channel(STREAM_QUEUE);
                *lock(&connection.stream) = Some(sender.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = connection.ended.notified() => {}
                        () = sender.closed() => {}
                    }
                    let mut stream = lock(&connection.stream);
                    // A later stream has taken its place.
                    if stream.as_ref().is_some_and(|own| own.same_channel(&sender)) {
                        *stream = None;
                    }
                });
                event_stream(receiver)
            }
            Err((status, why)) => error_reply(status, None, RpcError::invalid_request(why)),
        }
    }

    fn delete(&self, headers: &HeaderMap) -> Answer {
        if is_stateless(headers) {
            return not_allowed();
        }
        match self.connection(headers) {
            Ok(connection) => {
                let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
                lock(&self.sessions).remove(id.unwrap_or_default());
                connection.ended.notify_waiters();
                log::session_ended();
                plain(StatusCode::OK, None, Bytes::new())
            }
            Err((status, why)) => error_reply(status, None, RpcError::invalid_request(why)),
        }
    }

    async fn handle(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        message: &Value,
        accepts: Accepts,
        stateless: bool,
    ) -> Answer {
        let mut text = Vec::new();
        let (status, events) = {
            let mut session = lock(&connection.session);
            let replies = self.server.handle(&mut session, message);
            replies.write_to(&mut text);
            log::sent(&text);
            (status_of(&replies, stateless), session.take_events())
        };
        let mut deferred = None;
        for event in events {
            match event {
                // If a batch has several, the last one streams; no revision has both batches and
                // deferred answers.
                TransportEvent::Deferred(answer) => deferred = Some(answer),
                TransportEvent::Cancelled(id) => connection.cancelled(&id),
                TransportEvent::Answered(id, answer) => connection.answered(&id, answer),
            }
        }
        match deferred {
            Some(deferred) => self.answer_deferred(connection, deferred, accepts).await,
            None if text.is_empty() => plain(StatusCode::ACCEPTED, None, Bytes::new()),
            None if !accepts.json && status == StatusCode::OK => {
                let (sender, receiver) = mpsc::channel(1);
                let _ = sender.try_send(event(&text));
                event_stream(receiver)
            }
            None => plain(status, Some("application/json"), text.into()),
        }
    }

    async fn answer_deferred(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        deferred: Deferred,
        accepts: Accepts,
    ) -> Answer {
        if deferred.is_done() {
            // Never answered. Ends when the client disconnects.
            return std::future::pending().await;
        }
        if let Some(number) = deferred.listener {
            return self.open_stream(number, deferred);
        }
        let of_reply = |message: &&DeferredMessage| message.route == Route::Reply;
        let single =
            deferred.rest.is_none() && deferred.messages.iter().filter(of_reply).count() == 1;
        let (sender, mut receiver) = mpsc::channel(16);
        let (connection, state) = (Arc::clone(connection), Arc::clone(self));
        let streams = accepts.events && !(single && accepts.json);
        tokio::spawn(async move {
            connection
                .send_messages(&state, deferred, &sender, streams)
                .await;
        });
        if streams {
            return event_stream(receiver);
        }
        // Without a stream only the answer can be sent.
        let mut last = None;
        while let Some(frame) = receiver.recv().await {
            last = Some(frame);
        }
        match last {
            Some(frame) => plain(StatusCode::OK, Some("application/json"), frame),
            None => plain(StatusCode::ACCEPTED, None, Bytes::new()),
        }
    }

    /// Opens a stream of notifications, which stays open until the client closes it.
    fn open_stream(self: &Arc<Self>, number: u64, deferred: Deferred) -> Answer {
        let (sender, receiver) = mpsc::channel(STREAM_QUEUE);
        for message in deferred.messages {
            log::sent(&message.frame);
            let _ = sender.try_send(event(&message.frame));
        }
        lock(&self.streams).insert(number, sender.clone());
        let state = Arc::clone(self);
        tokio::spawn(async move {
            sender.closed().await;
            lock(&state.streams).remove(&number);
            state.server.close_listener(number);
        });
        event_stream(receiver)
    }

    /// Sends a message on an open stream of notifications.
    async fn send_to_stream(&self, number: u64, frame: Bytes) {
        let sender = lock(&self.streams).get(&number).cloned();
        if let Some(sender) = sender {
            let _ = sender.send(frame).await;
        }
    }
}

/// The forms of answers that the client accepts.
#[derive(Debug, Clone, Copy)]
struct Accepts {
    json: bool,
    events: bool,
}

impl Accepts {
    /// `None` if it accepts neither.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let mut accepts = Self {
            json: false,
            events: false,
        };
        if !headers.contains_key(ACCEPT) {
            return Some(Self {
                json: true,
                events: true,
            });
        }
        let values = headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')) {
            let range = range.split(';').next().unwrap_or(range).trim();
            let is_one_of =
                |names: [&str; 3]| names.iter().any(|name| range.eq_ignore_ascii_case(name));
            accepts.json |= is_one_of(["*/*", "application/*", "application/json"]);
            accepts.events |= is_one_of(["*/*", "text/*", "text/event-stream"]);
        }
        (accepts.json || accepts.events).then_some(accepts)
    }
}

fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers
        .get(PROTOCOL_VERSION)
        .and_then(|version| version.to_str().ok());
    version
        .and_then(Revision::from_wire)
        .is_some_and(Revision::is_stateless)
}

/// The status of an answer: the stateless revision maps some errors to a status.
fn status_of(replies: &Replies<'_>, stateless: bool) -> StatusCode {
    let Replies::One(reply) = replies else {
        return StatusCode::OK;
    };
    match reply.as_error() {
        // Not even a request.
        Some(_) if reply.id().is_none() => StatusCode::BAD_REQUEST,
        Some(error) if stateless => match error.code {
            METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION => {
                StatusCode::BAD_REQUEST
            }
            _ if error.in_envelope => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        },
        _ => StatusCode::OK,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
