//! The servers of a run by address: streamable HTTP on loopback, for agents that cannot start a
//! command, such as a service.
//!
//! A session of HTTP is a connection like one of the socket: a separate server, and lines in both
//! directions. So everything that is observed and injected there is here, too. Requests of revision
//! 2026-07-28 have no session; they share connections.

mod session;

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::channel::Channel;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mcptest_json::surrogates::mended;
use mcptest_protocol::{Revision, meta};
use serde_json::{Value, json};
use tokio::io::duplex;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::session::{FromServer, Request as Expected, Session};
use crate::lines::MAX_LINE_BYTES;
use crate::run_connection::{RunServers, serve};

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// The time that a client has to send the head of a request, and then its body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after a connection could not be accepted, such as because no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The buffer between a session and its server, in each direction.
const BUFFER_BYTES: usize = 256 * 1024;

/// The messages that wait on a stream. A client that does not read blocks its server, like a pipe.
const STREAM_QUEUE: usize = 64;

type Answer = Response<Either<Full<Bytes>, Channel<Bytes>>>;

/// The addresses of a run's servers.
pub(crate) struct HttpAddresses {
    port: u16,
    /// A part of every path that others cannot guess.
    token: String,
}

impl HttpAddresses {
    /// The address of a server, by its position.
    pub(crate) fn of(&self, server: usize) -> String {
        format!(
            "http://{}:{}/{}/{server}/mcp",
            Ipv4Addr::LOCALHOST,
            self.port,
            self.token
        )
    }
}

/// Starts to listen on a free port.
pub(crate) fn listen() -> io::Result<(TcpListener, HttpAddresses)> {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let part = || RandomState::new().build_hasher().finish();
    let addresses = HttpAddresses {
        port: listener.local_addr()?.port(),
        token: format!("{:016x}{:016x}", part(), part()),
    };
    Ok((TcpListener::from_std(listener)?, addresses))
}

/// Serves all requests until the run ends, then waits until all servers have ended.
pub(crate) fn accept(
    listener: TcpListener,
    addresses: &HttpAddresses,
    proxy: Arc<RunServers>,
    stop: watch::Receiver<bool>,
) -> impl Future<Output = ()> + Send + use<> {
    let front = Arc::new(Front {
        proxy,
        token: addresses.token.clone(),
        stop: stop.clone(),
        sessions: Mutex::default(),
        stateless: Mutex::default(),
        serving: Mutex::default(),
    });
    accept_until(listener, front, stop)
}

async fn accept_until(listener: TcpListener, front: Arc<Front>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files: others may close soon.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Otherwise an answer in two packets waits 40 ms for the first to be acknowledged.
        let _ = stream.set_nodelay(true);
        let front = Arc::clone(&front);
        connections.spawn(async move {
            let service = service_fn(|request| {
                let front = Arc::clone(&front);
                async move { Ok::<_, Infallible>(front.answer(request).await) }
            });
            // A failed connection affects its client only.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(READ_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
    let mut serving = std::mem::take(&mut *lock(&front.serving));
    while serving.join_next().await.is_some() {}
}

struct Front {
    proxy: Arc<RunServers>,
    token: String,
    stop: watch::Receiver<bool>,
    /// The sessions, by their ids.
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// The connections that requests without a session share.
    stateless: Mutex<Vec<Arc<Session>>>,
    /// The connections with servers. Dropping them ends the servers.
    serving: Mutex<JoinSet<()>>,
}

impl Front {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let Some(server) = self.server(request.uri().path()) else {
            return refuse(
                StatusCode::NOT_FOUND,
                "no server of the run has this address",
            );
        };
        match *request.method() {
            Method::POST => self.post(server, request).await,
            Method::GET => self.open_stream(server, request.headers()),
            Method::DELETE => match self.session(server, request.headers()) {
                Ok((id, session)) => {
                    lock(&self.sessions).remove(&id);
                    session.end().await;
                    whole(StatusCode::OK, Bytes::new())
                }
                Err(refusal) => *refusal,
            },
            _ => refuse(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE"),
        }
    }

    /// The position of the server that an address names.
    fn server(&self, path: &str) -> Option<usize> {
        let rest = path.strip_prefix('/')?.strip_prefix(&self.token)?;
        let server = rest.strip_prefix('/')?.strip_suffix("/mcp")?.parse().ok()?;
        (server < self.proxy.server_count()).then_some(server)
    }

    async fn post(&self, server: usize, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_LINE_BYTES).collect();
        let body = match tokio::time::timeout(READ_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"),
            Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "the body did not arrive"),
        };
        let Ok(message) = serde_json::from_slice::<Value>(&mended(&body)) else {
            return refuse(StatusCode::BAD_REQUEST, "the body is not JSON");
        };
        let messages = match &message {
            Value::Array(batch) => batch.as_slice(),
            single => std::slice::from_ref(single),
        };
        let expected: Vec<Expected> = messages.iter().filter_map(Expected::of).collect();
        let is_stateless = is_stateless(&parts.headers, messages);
        let mut new_id = None;
        let session = if is_stateless {
            self.stateless(server, &expected)
        } else if messages.iter().any(|one| one["method"] == "initialize") {
            let session = self.open(server);
            if let Some(session) = &session {
                let mut sessions = lock(&self.sessions);
                let id = format!("session-{}", sessions.len() + 1);
                sessions.insert(id.clone(), Arc::clone(session));
                new_id = Some(id);
            }
            session
        } else {
            match self.session(server, &parts.headers) {
                Ok((_, session)) => Some(session),
                Err(refusal) => return *refusal,
            }
        };
        let Some(session) = session else {
            return refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "the run has too many connections",
            );
        };
        let accepts_events = accepts(&parts.headers, "text/event-stream");
        let mut answer = exchange(
            &session,
            line_of(&body),
            expected,
            (accepts_events, is_stateless),
        )
        .await;
        if let Some(id) = new_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            answer.headers_mut().insert(SESSION_ID, id);
        }
        answer
    }

    /// Opens a stream for the messages that belong to no request.
    fn open_stream(&self, server: usize, headers: &HeaderMap) -> Answer {
        if !accepts(headers, "text/event-stream") {
            return refuse(StatusCode::NOT_ACCEPTABLE, "accept text/event-stream");
        }
        // Clients take this status as: there is no such stream.
        if !headers.contains_key(SESSION_ID) {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "streams belong to sessions");
        }
        match self.session(server, headers) {
            Ok((_, session)) => {
                let (sender, receiver) = mpsc::channel(STREAM_QUEUE);
                session.open_stream(sender);
                events(None, receiver, None)
            }
            Err(refusal) => *refusal,
        }
    }

    /// The session that a request names.
    fn session(
        &self,
        server: usize,
        headers: &HeaderMap,
    ) -> Result<(String, Arc<Session>), Box<Answer>> {
        let Some(id) = headers.get(SESSION_ID).and_then(|id| id.to_str().ok()) else {
            let why = "no Mcp-Session-Id; begin with initialize";
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, why)));
        };
        let found = lock(&self.sessions).get(id).cloned();
        match found.filter(|session| session.server() == server && !session.has_ended()) {
            Some(session) => Ok((id.to_owned(), session)),
            None => {
                let why = "there is no such session";
                Err(Box::new(refuse(StatusCode::NOT_FOUND, why)))
            }
        }
    }

    /// A shared connection on which none of these ids is in use.
    fn stateless(&self, server: usize, expected: &[Expected]) -> Option<Arc<Session>> {
        let mut shared = lock(&self.stateless);
        shared.retain(|session| !session.has_ended());
        let free =
            |session: &&Arc<Session>| session.server() == server && session.is_free(expected);
        if let Some(session) = shared.iter().find(free) {
            return Some(Arc::clone(session));
        }
        let session = self.open(server)?;
        shared.push(Arc::clone(&session));
        Some(session)
    }

    /// Opens a connection with a server.
    fn open(&self, server: usize) -> Option<Arc<Session>> {
        let connection = self.proxy.open(server)?;
        // Two pairs, each used in one direction, so that each side sees the end of the other.
        let (to_server, from_client) = duplex(BUFFER_BYTES);
        let (to_client, from_server) = duplex(BUFFER_BYTES);
        let session = Arc::new(Session::new(server, to_server));
        let (proxy, stop) = (Arc::clone(&self.proxy), self.stop.clone());
        let served = Arc::clone(&session);
        lock(&self.serving).spawn(async move {
            let routing = served.route(from_server);
            tokio::join!(
                serve(proxy, connection, from_client, to_client, stop),
                routing
            );
            served.end().await;
        });
        Some(session)
    }
}

/// Sends the messages of one body, and answers with what comes back.
async fn exchange(
    session: &Arc<Session>,
    line: Vec<u8>,
    expected: Vec<Expected>,
    (accepts_events, is_stateless): (bool, bool),
) -> Answer {
    let gone = || {
        refuse(
            StatusCode::BAD_GATEWAY,
            "the server could not be started, or has ended",
        )
    };
    if expected.is_empty() {
        return match session.send(&line).await {
            Ok(()) => whole(StatusCode::ACCEPTED, Bytes::new()),
            Err(_) => gone(),
        };
    }
    let is_batch = line.first() == Some(&b'[');
    let (sender, mut receiver) = mpsc::channel(STREAM_QUEUE);
    // Without a session, a client cancels a request by closing its answer.
    let pending = session.expect(expected, &sender, is_stateless);
    drop(sender);
    if session.send(&line).await.is_err() {
        return gone();
    }
    let Some(first) = receiver.recv().await else {
        return gone();
    };
    if first.is_reply && !is_batch {
        return whole(StatusCode::OK, first.bytes.trim_ascii().to_vec().into());
    }
    if accepts_events {
        return events(Some(first), receiver, Some(pending));
    }
    // Without a stream, only replies can be sent.
    let mut replies = Vec::new();
    let mut next = Some(first);
    while let Some(message) = next {
        if message.is_reply {
            replies.push(String::from_utf8_lossy(message.bytes.trim_ascii()).into_owned());
        }
        next = receiver.recv().await;
    }
    let body = match replies.as_slice() {
        [] => return gone(),
        [single] if !is_batch || single.starts_with('[') => single.clone(),
        replies => format!("[{}]", replies.join(",")),
    };
    whole(StatusCode::OK, body.into())
}

/// A stream of server-sent events, which ends with its source.
fn events(
    first: Option<FromServer>,
    mut rest: mpsc::Receiver<FromServer>,
    pending: Option<session::Pending>,
) -> Answer {
    let (mut sender, body) = Channel::new(STREAM_QUEUE);
    tokio::spawn(async move {
        let _pending = pending;
        let mut next = first;
        loop {
            let message = match next.take() {
                Some(message) => message,
                None => match rest.recv().await {
                    Some(message) => message,
                    None => return,
                },
            };
            let mut event = b"event: message\ndata: ".to_vec();
            event.extend_from_slice(message.bytes.trim_ascii());
            event.extend_from_slice(b"\n\n");
            if sender.send_data(event.into()).await.is_err() {
                // The client has closed the stream.
                return;
            }
        }
    });
    let mut answer = Response::new(Either::Right(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

fn whole(status: StatusCode, body: Bytes) -> Answer {
    let is_json = !body.is_empty();
    let mut answer = Response::new(Either::Left(Full::new(body)));
    *answer.status_mut() = status;
    if is_json {
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(CONTENT_TYPE, json);
    }
    answer
}

fn refuse(status: StatusCode, why: &str) -> Answer {
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": why}});
    whole(status, error.to_string().into())
}

/// Returns true if messages belong to no session: those of revision 2026-07-28 and later.
fn is_stateless(headers: &HeaderMap, messages: &[Value]) -> bool {
    let in_header = headers
        .get(PROTOCOL_VERSION)
        .and_then(|one| one.to_str().ok());
    let in_header = in_header.and_then(Revision::from_wire);
    in_header.is_some_and(Revision::is_stateless)
        || messages.iter().any(|message| {
            message["method"] == "server/discover"
                || !message["params"]["_meta"][meta::PROTOCOL_VERSION].is_null()
        })
}

/// Returns true if a client accepts a type, or names none.
fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    values.peek().is_none()
        || values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|range| range.split(';').next().unwrap_or(range).trim())
            .any(|range| range == "*/*" || range.eq_ignore_ascii_case(kind))
}

/// A body as one line: newlines between the tokens of JSON are spaces.
fn line_of(body: &[u8]) -> Vec<u8> {
    let mut line: Vec<u8> = body
        .trim_ascii()
        .iter()
        .map(|byte| match byte {
            b'\n' | b'\r' => b' ',
            other => *other,
        })
        .collect();
    line.push(b'\n');
    line
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
