//! HTTP+SSE, the transport of revision 2024-11-05: one event stream carries all messages of the
//! server, and its first event names the address to which messages are posted.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::{Method, Response, StatusCode};
use mcptest_http::Sender;
use mcptest_http::body::{content_type, describe_status, read_excerpt};
use mcptest_http::sse::{Event, Parser};
use mcptest_wire::{StreamAddress, read_endpoint};
use tokio::time::timeout;

use super::{Endpoint, ToClient, send_line};
use crate::lines::MAX_LINE_BYTES;

/// The longest wait for the first event.
const FIRST_EVENT_WAIT: Duration = Duration::from_secs(10);

/// A stream whose first event was read.
pub(super) struct OpenStream {
    response: Response<Incoming>,
    parser: Parser,
    /// Events that arrived together with the first one.
    events: Vec<Event>,
    /// Closes the connection when it is dropped.
    _sender: Sender,
}

/// Returns true if a server that refuses `initialize` with this status may use the older transport.
pub(super) fn may_be_legacy(status: StatusCode) -> bool {
    status.is_client_error()
        && !matches!(
            status,
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::PROXY_AUTHENTICATION_REQUIRED
                | StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
        )
}

impl Endpoint {
    /// The path for messages over HTTP+SSE, once its stream is open.
    pub(super) fn legacy_path(&self) -> Option<String> {
        let path = self.legacy_path.lock();
        path.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the event stream and waits for its first event.
    pub(super) async fn open_legacy(&self) -> Result<OpenStream, String> {
        let (mut response, sender) = self.send(Method::GET, Bytes::new(), &[]).await?;
        let status = response.status();
        let is_stream = content_type(&response).as_deref() == Some("text/event-stream");
        if !status.is_success() || !is_stream {
            let body = read_excerpt(response.body_mut()).await;
            self.note_refusal(status, &body);
            let status = describe_status(status);
            return Err(format!("GET opens no event stream ({status})"));
        }
        let mut parser = Parser::new(MAX_LINE_BYTES);
        let address = StreamAddress {
            path: &self.path,
            tls: self.pool.is_tls(),
            authority: &self.authority,
        };
        let first = read_endpoint(response.body_mut(), &mut parser, address);
        let first = timeout(FIRST_EVENT_WAIT, first).await.map_err(|_| {
            let limit = FIRST_EVENT_WAIT.as_secs();
            format!("its event stream (GET) sent no `endpoint` event within {limit} s")
        })?;
        let (path, events) = first.map_err(|error| error.to_string())?;
        let mut known = self
            .legacy_path
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *known = Some(path);
        Ok(OpenStream {
            response,
            parser,
            events,
            _sender: sender,
        })
    }

    /// Forwards the messages of the stream until it ends.
    pub(super) async fn read_legacy(self: Arc<Self>, mut stream: OpenStream, to_client: ToClient) {
        for event in stream.events.drain(..) {
            if event.kind.is_empty() || event.kind == "message" {
                send_line(&to_client, &event.data).await;
            }
        }
        let body = stream.response.body_mut();
        // An event that is too long ends the session, too.
        let _ = self
            .forward_events(body, &mut stream.parser, None, &to_client)
            .await;
    }
}
