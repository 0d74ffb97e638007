//! HTTP+SSE, the transport of revision 2024-11-05: one event stream carries all messages of the
//! server, and its first event names the address to which ours are posted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{Method, Response, StatusCode, Uri};
use mcptest_http::body::{content_type, describe_status, error_chain};
use mcptest_http::sse::{Event, Parser};
use mcptest_http::text::{quote, quote_bytes};
use mcptest_http::{Sender, without_query};
use tokio::time::{Instant, sleep};

use super::request::Request;
use super::{Endpoint, HttpTransport};
use crate::error::WireErrorKind;
use crate::state::Closed;
use crate::tasks::Shared;
use crate::time::show_duration;

/// The longest wait for the stream and its first event.
const MAX_OPENING_WAIT: Duration = Duration::from_secs(10);

/// The pause between checks of the wait; waiting for a credential does not count.
const TICK: Duration = Duration::from_millis(50);

/// The event with the address for our messages.
const ENDPOINT_EVENT: &str = "endpoint";

/// The event stream of a server, and the path to which messages are posted.
pub(super) struct LegacyStream {
    path: String,
    unread: Option<OpenStream>,
}

/// A stream whose first event was read.
pub(super) struct OpenStream {
    response: Response<Incoming>,
    parser: Parser,
    /// Events that arrived together with the first one.
    events: Vec<Event>,
    /// Closes the connection when it is dropped.
    _sender: Sender,
}

impl Endpoint {
    /// Returns true if the server's answer to `initialize` suggests the older transport.
    pub(crate) fn may_be_legacy(&self) -> bool {
        let refused = self.negotiated().refused;
        self.transport == HttpTransport::Auto
            && refused.is_some_and(|status| {
                status.is_client_error()
                    && !matches!(
                        status,
                        StatusCode::UNAUTHORIZED
                            | StatusCode::FORBIDDEN
                            | StatusCode::PROXY_AUTHENTICATION_REQUIRED
                            | StatusCode::REQUEST_TIMEOUT
                            | StatusCode::TOO_MANY_REQUESTS
                    )
            })
    }

    /// The path for messages over HTTP+SSE, once its stream is open.
    pub(crate) fn legacy_path(&self) -> Option<String> {
        let legacy = self.legacy.lock().unwrap_or_else(PoisonError::into_inner);
        legacy.as_ref().map(|legacy| legacy.path.clone())
    }

    /// The open stream, for the task that reads it.
    pub(super) fn unread_stream(&self) -> Option<OpenStream> {
        let mut legacy = self.legacy.lock().unwrap_or_else(PoisonError::into_inner);
        legacy.as_mut()?.unread.take()
    }

    /// Opens the event stream and waits for its first event.
    ///
    /// # Errors
    /// The reason why the server does not offer HTTP+SSE, with its kind.
    pub(crate) async fn open_legacy(&self, limit: Duration) -> Result<(), (WireErrorKind, String)> {
        let limit = limit.min(MAX_OPENING_WAIT);
        let waits = AtomicBool::new(false);
        let opening = self.try_open_legacy(&waits);
        tokio::pin!(opening);
        let mut remaining = limit;
        let opened = loop {
            let began = Instant::now();
            tokio::select! {
                biased;
                opened = &mut opening => break opened?,
                () = sleep(TICK.min(remaining)) => {}
            }
            if !waits.load(Ordering::Relaxed) {
                remaining = remaining.saturating_sub(began.elapsed());
            }
            if remaining.is_zero() {
                return Err((
                    WireErrorKind::Timeout,
                    format!(
                        "its event stream (GET) sent no `{ENDPOINT_EVENT}` event within {}",
                        show_duration(limit)
                    ),
                ));
            }
        };
        *self.legacy.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        // Whatever the server sends by itself comes over this stream.
        self.listening().cancel();
        Ok(())
    }

    async fn try_open_legacy(
        &self,
        waits: &AtomicBool,
    ) -> Result<LegacyStream, (WireErrorKind, String)> {
        let request = Request {
            method: &Method::GET,
            path: &self.path,
            body: Bytes::new(),
            extra: &[],
        };
        let waiting = |waiting: bool| waits.store(waiting, Ordering::Relaxed);
        let (mut response, sender) = self
            .send_waiting(waiting, request)
            .await
            .map_err(|error| (error.kind, error.detail))?;
        let status = response.status();
        let kind = content_type(&response);
        if !status.is_success() || kind.as_deref() != Some("text/event-stream") {
            let what = match kind {
                Some(kind) if status.is_success() => format!(", `{}`", quote(&kind, 80)),
                _ => String::new(),
            };
            let kind = match status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => WireErrorKind::Auth,
                _ => WireErrorKind::Protocol,
            };
            let status = describe_status(status);
            return Err((kind, format!("GET opens no event stream ({status}{what})")));
        }
        let mut parser = Parser::new(self.max_bytes);
        let base = StreamAddress {
            path: &self.path,
            tls: self.pool.is_tls(),
            authority: &self.authority,
        };
        let (path, events) = read_endpoint(response.body_mut(), &mut parser, base)
            .await
            .map_err(|error| (WireErrorKind::Protocol, error.0))?;
        Ok(LegacyStream {
            path,
            unread: Some(OpenStream {
                response,
                parser,
                events,
                _sender: sender,
            }),
        })
    }

    /// Handles the messages of the stream. Its end is the end of the connection.
    pub(super) async fn read_legacy(self: Arc<Self>, shared: Arc<Shared>, mut stream: OpenStream) {
        for event in stream.events.drain(..) {
            if event.kind.is_empty() || event.kind == "message" {
                self.handle_message(&shared, &event.data);
            }
        }
        let body = stream.response.body_mut();
        let ended = self.read_events(&shared, body, &mut stream.parser).await;
        let closed = match ended {
            Ok(()) => Closed {
                kind: WireErrorKind::Transport,
                detail: "the server closed its event stream".to_owned(),
            },
            Err(error) => Closed {
                kind: error.kind,
                detail: error.detail,
            },
        };
        shared.state().close(closed);
    }
}

/// The address of an event stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamAddress<'a> {
    /// Path and query.
    pub path: &'a str,
    /// True for `https`.
    pub tls: bool,
    /// Host and port as the `Host` header has them.
    pub authority: &'a HeaderValue,
}

/// An event stream that does not begin with the address for messages, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointError(String);

impl std::fmt::Display for EndpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EndpointError {}

/// Reads the first event of an HTTP+SSE stream. Returns the path to which messages are posted, and
/// the events that arrived with the first one.
///
/// # Errors
/// The stream has another first event, or one that names another host.
pub async fn read_endpoint(
    body: &mut Incoming,
    parser: &mut Parser,
    base: StreamAddress<'_>,
) -> Result<(String, Vec<Event>), EndpointError> {
    let (first, events) = first_event(body, parser).await?;
    if first.kind != ENDPOINT_EVENT {
        return Err(EndpointError(format!(
            "its event stream (GET) begins with an event `{}`, not `{ENDPOINT_EVENT}`",
            quote(&first.kind, 40)
        )));
    }
    let named = String::from_utf8_lossy(&first.data);
    let path = base.resolve(named.trim()).ok_or_else(|| {
        EndpointError(format!(
            "its `{ENDPOINT_EVENT}` event does not name an address of the same host: {}",
            quote(&without_query(&named), 200)
        ))
    })?;
    Ok((path, events))
}

/// The first event of a stream, and those that arrived with it.
async fn first_event(
    body: &mut Incoming,
    parser: &mut Parser,
) -> Result<(Event, Vec<Event>), EndpointError> {
    let mut events = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            EndpointError(format!(
                "its event stream (GET) was interrupted: {}",
                error_chain(&error)
            ))
        })?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        parser.push(data, &mut events).map_err(|_| {
            let shown = quote_bytes(data, 80);
            EndpointError(format!("its first event is too long: {shown}"))
        })?;
        if !events.is_empty() {
            let first = events.remove(0);
            return Ok((first, events));
        }
    }
    let message = "its event stream (GET) ended without an event";
    Err(EndpointError(message.to_owned()))
}

impl StreamAddress<'_> {
    /// The path of an address that is written relative to this one; `None` if it is on another
    /// host, because our headers are not meant for that.
    fn resolve(self, named: &str) -> Option<String> {
        let Self {
            path: base,
            tls,
            authority,
        } = self;
        if named.is_empty() || named.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return None;
        }
        let named = named.split('#').next().unwrap_or_default();
        let scheme = if tls { "https:" } else { "http:" };
        let absolute = match named.strip_prefix("//") {
            Some(rest) => Some(format!("{scheme}//{rest}")),
            None if named.contains("://") && !named.starts_with(['/', '?']) => {
                Some(named.to_owned())
            }
            None => None,
        };
        let path = match absolute {
            Some(absolute) => {
                let uri: Uri = absolute.parse().ok()?;
                let host = uri.authority()?.as_str().as_bytes();
                let same = host.eq_ignore_ascii_case(authority.as_bytes())
                    && (uri.scheme_str() == Some("https")) == tls;
                if !same {
                    return None;
                }
                let path = uri.path_and_query();
                path.map_or("/", |path| path.as_str()).to_owned()
            }
            None if named.starts_with('/') => named.to_owned(),
            None => {
                let base = base.split('?').next().unwrap_or_default();
                let folder = match named.starts_with('?') {
                    true => base,
                    false => base.rfind('/').map_or("/", |end| &base[..=end]),
                };
                format!("{folder}{named}")
            }
        };
        // Anything that is not a path with a query would not be sent as it is written.
        let uri: Uri = path.parse().ok()?;
        (uri.path_and_query()?.as_str() == path).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_for_messages_is_relative_or_on_the_same_host() {
        let authority = HeaderValue::from_static("127.0.0.1:3000");
        let base = StreamAddress {
            path: "/base/sse?x=1",
            tls: false,
            authority: &authority,
        };
        let resolved = |named: &str| base.resolve(named);
        for (named, path) in [
            ("/message?sessionId=1", "/message?sessionId=1"),
            ("messages/?session_id=2", "/base/messages/?session_id=2"),
            ("?session=3", "/base/sse?session=3"),
            ("http://127.0.0.1:3000/m?s=4", "/m?s=4"),
            ("//127.0.0.1:3000/m", "/m"),
            ("/m?url=http://other/", "/m?url=http://other/"),
            ("/m#part", "/m"),
        ] {
            assert_eq!(resolved(named).as_deref(), Some(path), "{named}");
        }
        for named in [
            "",
            "http://other:3000/m",
            "https://127.0.0.1:3000/m",
            "//evil.example/m",
            "http://127.0.0.1:3000@evil.example/m",
            "file:///etc/passwd",
            "/m\r\nX: y",
            "/a b",
        ] {
            assert_eq!(resolved(named), None, "{named}");
        }
    }
}
