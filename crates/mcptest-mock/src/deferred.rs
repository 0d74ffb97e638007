//! Answers that are not sent at once: the messages and the wait before each. Transports do the
//! waiting.

use std::time::Duration;

use serde_json::Value;

/// The answer to a request in parts: notifications first, the reply last.
#[derive(Debug, Clone, PartialEq)]
pub struct Deferred {
    /// The id of the request.
    pub id: Value,
    /// True if a cancellation stops it.
    pub honours_cancel: bool,
    /// The id of a request to the client that must be answered before the next message.
    pub waiting: Option<Value>,
    /// The messages, in order. If there are none, the request is never answered.
    pub messages: Vec<DeferredMessage>,
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
}

/// An event that a transport has to handle after passing on a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TransportEvent {
    /// A request is answered later, in parts, or never.
    Deferred(Deferred),
    /// The client has cancelled the request with this id.
    Cancelled(Value),
    /// The client has answered the request with this id.
    Answered(Value),
}

/// The timing of an answer to `tools/call`.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) never: bool,
    pub(crate) ignores_cancel: bool,
    /// The wait before the next message.
    pub(crate) wait: Duration,
    pub(crate) before: Vec<DeferredMessage>,
}

impl Schedule {
    /// Returns true if the answer is one message that is sent at once.
    pub(crate) fn is_immediate(&self) -> bool {
        !self.never && self.wait.is_zero() && self.before.is_empty()
    }

    /// Adds a message after the wait so far.
    pub(crate) fn send(&mut self, frame: Vec<u8>) {
        self.before.push(DeferredMessage {
            wait: std::mem::take(&mut self.wait),
            frame,
            ask: None,
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
        } else {
            let frame = reply();
            self.send(frame);
        }
        Deferred {
            id,
            honours_cancel: !self.ignores_cancel,
            waiting: None,
            messages: self.before,
        }
    }
}
