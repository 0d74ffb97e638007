//! Event streams: reading one, resuming one that ended early, and listening to messages that the
//! server sends by itself.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::{Bytes, Incoming};
use mcptest_http::body::{content_type, error_chain};
use mcptest_http::sse::{Parser, TooLong};
use tokio::time::sleep;

use super::{Endpoint, ExchangeError};
use crate::error::WireErrorKind;
use crate::tasks::Shared;

/// The number of empty streams in a row that are resumed.
const MAX_EMPTY_STREAMS: u32 = 3;

/// The default pause before a stream is resumed.
const RESUME_PAUSE: Duration = Duration::from_millis(1000);

/// The longest pause that a server can set.
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(30);

impl Endpoint {
    /// Reads events until the stream ends.
    pub(super) async fn read_events(
        &self,
        shared: &Shared,
        body: &mut Incoming,
        parser: &mut Parser,
    ) -> Result<(), ExchangeError> {
        let mut events = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    let detail =
                        format!("the event stream was interrupted: {}", error_chain(&error));
                    self.record_violation(shared, &detail, "");
                    break;
                }
            };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            parser.push(data, &mut events).map_err(|TooLong| {
                ExchangeError::new(
                    WireErrorKind::Protocol,
                    format!(
                        "an event of more than {} bytes, which is the limit",
                        self.max_bytes
                    ),
                )
            })?;
            for event in events.drain(..) {
                let is_message = event.kind.is_empty() || event.kind == "message";
                // An empty event only carries the id to resume from.
                if is_message && !event.data.trim_ascii().is_empty() {
                    self.handle_message(shared, &event.data);
                }
            }
        }
        Ok(())
    }

    /// Requests the rest of a stream that ended without the reply, if the server numbered its
    /// events.
    pub(super) async fn resume(
        &self,
        shared: &Shared,
        id: u64,
        mut parser: Parser,
    ) -> Result<(), ExchangeError> {
        let mut empty = 0;
        while shared.state().is_waiting(id) {
            let position = if parser.is_mid_event() {
                " in the middle of an event"
            } else {
                ""
            };
            let ended = || {
                ExchangeError::new(
                    WireErrorKind::Protocol,
                    format!("the event stream ended{position} without the reply"),
                )
            };
            let Some(last_id) = parser.last_id.clone() else {
                return Err(ended());
            };
            if empty >= MAX_EMPTY_STREAMS {
                return Err(ended());
            }
            shared.log.resuming(Some(&last_id));
            sleep(pause(&parser)).await;
            let mut next = Parser::new(self.max_bytes);
            next.last_id = Some(last_id.clone());
            next.retry_ms = parser.retry_ms;
            if !self.get(shared, &mut next).await? {
                return Err(ended());
            }
            empty = if next.last_id.as_deref() == Some(last_id.as_str()) {
                empty + 1
            } else {
                0
            };
            parser = next;
        }
        Ok(())
    }

    /// Sends one GET for the server's own messages or for the rest of a stream. Returns false if
    /// the server offers no stream.
    async fn get(&self, shared: &Shared, parser: &mut Parser) -> Result<bool, ExchangeError> {
        let mut extra = self.session_headers();
        extra.extend(
            parser
                .last_id
                .clone()
                .map(|id| ("last-event-id".into(), id)),
        );
        let sent = self.send(&Method::GET, Bytes::new(), &extra).await;
        if parser.last_id.is_none() {
            self.listening().cancel();
        }
        let (mut response, sender) = sent?;
        if !response.status().is_success()
            || content_type(&response).as_deref() != Some("text/event-stream")
        {
            return Ok(false);
        }
        self.read_events(shared, response.body_mut(), parser)
            .await?;
        self.pool.give_back(sender);
        Ok(true)
    }

    /// Listens to messages that the server sends by itself, as long as it offers that.
    pub(super) async fn listen(self: Arc<Self>, shared: Arc<Shared>) {
        let mut parser = Parser::new(self.max_bytes);
        let mut empty = 0;
        while empty < MAX_EMPTY_STREAMS {
            let before = parser.last_id.clone();
            let mut next = Parser::new(self.max_bytes);
            next.last_id.clone_from(&before);
            next.retry_ms = parser.retry_ms;
            // A server without such a stream answers 405, which is fine.
            if !matches!(self.get(&shared, &mut next).await, Ok(true)) {
                return;
            }
            empty = if next.last_id == before { empty + 1 } else { 0 };
            parser = next;
            sleep(pause(&parser)).await;
            shared.log.resuming(parser.last_id.as_deref());
        }
    }
}

fn pause(parser: &Parser) -> Duration {
    parser
        .retry_ms
        .map_or(RESUME_PAUSE, Duration::from_millis)
        .min(MAX_RESUME_PAUSE)
}
