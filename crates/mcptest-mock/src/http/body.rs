//! Answers over HTTP: JSON, streams of events, refusals.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::jsonrpc::{Reply, RpcError};

/// An answer.
pub(super) type Answer = Response<ReplyBody>;

/// One server-sent event.
pub(super) fn event(frame: &[u8]) -> Bytes {
    let mut text = b"event: message\ndata: ".to_vec();
    text.extend_from_slice(frame);
    text.extend_from_slice(b"\n\n");
    text.into()
}

pub(super) fn event_stream(receiver: mpsc::Receiver<Bytes>) -> Answer {
    let mut answer = Response::new(ReplyBody::Stream(receiver));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

pub(super) fn plain(status: StatusCode, kind: Option<&'static str>, body: Bytes) -> Answer {
    let mut answer = Response::new(ReplyBody::Whole(Some(body)));
    *answer.status_mut() = status;
    if let Some(kind) = kind {
        answer
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    answer
}

pub(super) fn refuse(status: StatusCode, why: &'static str) -> Answer {
    error_reply(
        status,
        None,
        RpcError::invalid_request(format!("Invalid request: {why}")),
    )
}

pub(super) fn not_allowed() -> Answer {
    let mut answer = refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "the method is not allowed here",
    );
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("POST"));
    answer
}

pub(super) fn error_reply(status: StatusCode, id: Option<Value>, error: RpcError) -> Answer {
    let mut text = Vec::new();
    Reply::error(id, error).write_to(&mut text);
    plain(status, Some("application/json"), text.into())
}

/// The body of an answer.
pub(super) enum ReplyBody {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Poll::Ready(
                body.take()
                    .filter(|body| !body.is_empty())
                    .map(|body| Ok(Frame::data(body))),
            ),
            Self::Stream(receiver) => receiver
                .poll_recv(context)
                .map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(body) if body.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => {
                SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
