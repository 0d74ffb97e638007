//! Answers that are not sent immediately: the messages and the wait before each. Transports do the
//! waiting.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::database::SessionState;
use crate::manifest::LogLevel;
use crate::server_changes::ServerChanges;

/// The answer to a request in parts: notifications first, the reply last.
#[derive(Debug, Clone)]
pub struct Deferred {
    /// The id of the request.
    pub id: Value,
    /// True if a cancellation stops it.
    pub honours_cancel: bool,
    /// The id of a request to the client that must be answered before the next message.
    pub waiting: Option<Value>,
    /// The messages, in order. If there are none, and no rest, the request is never answered.
    pub messages: Vec<DeferredMessage>,
    /// The number of the stream that the request opens and that stays open.
    pub(crate) listener: Option<u64>,
    /// The part of the answer that depends on the client's answers.
    pub(crate) rest: Option<Box<Continuation>>,
}

impl Deferred {
    /// Returns true if nothing is left to send.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.messages.is_empty() && self.rest.is_none()
    }

    /// Keeps the client's answer to the request that it waits for.
    pub fn answered(&mut self, id: &Value, answer: Option<Value>) {
        if self.waiting.as_ref() == Some(id) {
            self.waiting = None;
        }
        if let Some(rest) = &mut self.rest {
            rest.answered(id, answer);
        }
    }

    /// Returns true if all requests to the client are answered, and the rest can be made
    /// ([`MockServer::resume`](crate::MockServer::resume)).
    #[must_use]
    pub fn can_resume(&self) -> bool {
        self.messages.is_empty() && self.waiting.is_none() && self.rest.is_some()
    }
}

/// The destination of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Route {
    /// The stream of the request.
    #[default]
    Reply,
    /// The stream of the session for messages outside of requests, if there is one.
    Session,
    /// The stream with this number.
    Listener(u64),
}

/// One message of a deferred answer.
#[derive(Debug, Clone, PartialEq)]
pub struct DeferredMessage {
    /// The wait before it is sent.
    pub wait: Duration,
    /// The message, without a line end.
    pub frame: Vec<u8>,
    /// The id of a request to the client. The next message waits for its reply.
    pub ask: Option<Value>,
    /// The destination. Standard output is one stream for all.
    pub route: Route,
}

/// The rest of an answer, which is made when the client has answered.
#[derive(Debug, Clone)]
pub(crate) struct Continuation {
    pub(crate) work: Work,
    /// The requests to the client: their ids and names.
    pub(crate) asked: Vec<(Value, String)>,
    pub(crate) answers: Map<String, Value>,
    pub(crate) context: CallContext,
}

/// The work that a continuation does.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// Answers a tool call.
    Call {
        tool: String,
        params: Map<String, Value>,
        arguments: Value,
    },
    /// Answers `tasks/result`.
    TaskResult(String),
}

/// The parts of a session that the rest of an answer needs.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) changes: ServerChanges,
    pub(crate) subscribed: BTreeSet<String>,
    pub(crate) database: Option<SessionState>,
}

impl Continuation {
    fn answered(&mut self, id: &Value, answer: Option<Value>) {
        let asked = self.asked.iter().find(|(asked, _)| asked == id);
        if let Some((_, name)) = asked {
            self.answers
                .insert(name.clone(), answer.unwrap_or_default());
        }
    }
}

/// An event that a transport has to handle after passing on a message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TransportEvent {
    /// A request is answered later, in parts, or never.
    Deferred(Deferred),
    /// The client has cancelled the request with this id.
    Cancelled(Value),
    /// The client has answered the request with this id. An error has no result.
    Answered(Value, Option<Value>),
}

/// The timing of an answer to `tools/call`.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) never: bool,
    pub(crate) ignores_cancel: bool,
    /// The wait before the next message.
    pub(crate) wait: Duration,
    pub(crate) before: Vec<DeferredMessage>,
    /// The number of the stream that the request opens. It has no answer.
    pub(crate) listener: Option<u64>,
    /// The part of the answer that depends on the client's answers.
    pub(crate) rest: Option<Box<Continuation>>,
}

impl Schedule {
    /// Returns true if the answer is one message that is sent immediately.
    pub(crate) fn is_immediate(&self) -> bool {
        !self.never && self.wait.is_zero() && self.before.is_empty() && self.rest.is_none()
    }

    /// Adds a message after the wait so far.
    pub(crate) fn send(&mut self, frame: Vec<u8>) {
        self.send_to(frame, Route::Reply);
    }

    /// Adds a message for another stream.
    pub(crate) fn send_to(&mut self, frame: Vec<u8>, route: Route) {
        self.before.push(DeferredMessage {
            wait: std::mem::take(&mut self.wait),
            frame,
            ask: None,
            route,
        });
    }

    /// Adds a request to the client.
    pub(crate) fn ask(&mut self, frame: Vec<u8>, id: Value) {
        self.send(frame);
        if let Some(message) = self.before.last_mut() {
            message.ask = Some(id);
        }
    }

    pub(crate) fn deferred(mut self, id: Value, reply: impl FnOnce() -> Vec<u8>) -> Deferred {
        if self.never {
            self.before.clear();
        } else if self.rest.is_none() && self.listener.is_none() {
            let frame = reply();
            self.send(frame);
        }
        Deferred {
            id,
            honours_cancel: !self.ignores_cancel,
            waiting: None,
            messages: self.before,
            listener: self.listener,
            rest: self.rest.filter(|_| !self.never),
        }
    }
}
