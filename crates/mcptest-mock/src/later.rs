//! Answers that do not come at once: what to send, and how long to wait before each part.
//! Transports do the waiting.

use std::time::Duration;

use serde_json::Value;

/// The answer to a request in parts: notifications first, the reply last.
#[derive(Debug, Clone, PartialEq)]
pub struct Deferred {
    /// The id of the request.
    pub id: Value,
    /// Whether a cancellation stops it.
    pub honours_cancel: bool,
    /// The id of a request to the client that must be answered before the next step.
    pub waiting: Option<Value>,
    /// What to send, in order. With nothing here the request is never answered.
    pub steps: Vec<Step>,
}

/// One message of a deferred answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// How long to wait before it is sent.
    pub wait: Duration,
    /// The message, without a line end.
    pub frame: Vec<u8>,
    /// If it is a request to the client: its id. The next step waits for the reply.
    pub ask: Option<Value>,
}

/// Something that a transport has to act on after it has handed over a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A request is answered later, in parts, or never.
    Later(Deferred),
    /// The client has cancelled the request with this id.
    Cancelled(Value),
    /// The client has answered the request with this id.
    Answered(Value),
}

/// What `tools/call` decides about its answer beside the answer itself.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) never: bool,
    pub(crate) ignores_cancel: bool,
    /// How long to wait before the next part.
    pub(crate) wait: Duration,
    pub(crate) before: Vec<Step>,
}

impl Schedule {
    /// Whether the answer is one message, to be sent at once.
    pub(crate) fn is_plain(&self) -> bool {
        !self.never && self.wait.is_zero() && self.before.is_empty()
    }

    /// Adds a message after the wait so far.
    pub(crate) fn send(&mut self, frame: Vec<u8>) {
        self.before.push(Step {
            wait: std::mem::take(&mut self.wait),
            frame,
            ask: None,
        });
    }

    /// Adds a request to the client.
    pub(crate) fn ask(&mut self, frame: Vec<u8>, id: Value) {
        self.send(frame);
        if let Some(step) = self.before.last_mut() {
            step.ask = Some(id);
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
            steps: self.before,
        }
    }
}
