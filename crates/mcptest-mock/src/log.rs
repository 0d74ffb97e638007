//! Log events of the mock server.
//!
//! Bodies are truncated and made one line. Nothing is formatted unless a subscriber wants the
//! event.

use mcptest_json::text::{one_line, shorten};
use serde_json::Value;
use tracing::{Level, debug, enabled, info, trace};

use crate::jsonrpc::RpcError;

/// The target of the events in this crate.
const TARGET: &str = "mcptest::mock";

/// Characters shown of one message body.
const MAX_BODY_CHARS: usize = 4000;

/// The way in which a request is answered.
pub(crate) enum Answered<'a> {
    Result,
    Error(&'a RpcError),
    /// Later, in parts, or never.
    Deferred,
}

pub(crate) fn request(method: &str, id: &Value, answered: &Answered<'_>) {
    if !enabled!(target: TARGET, Level::DEBUG) {
        return;
    }
    let method = quote(method, 200);
    let id = quote(&id.to_string(), 200);
    match answered {
        Answered::Result => debug!(target: TARGET, method, id, "request: result"),
        Answered::Error(error) => {
            let (code, message) = (error.code, quote(&error.message, 300));
            debug!(target: TARGET, method, id, code, message, "request: error");
        }
        Answered::Deferred => debug!(target: TARGET, method, id, "request: deferred answer"),
    }
}

pub(crate) fn notification(method: &str) {
    if enabled!(target: TARGET, Level::DEBUG) {
        debug!(target: TARGET, method = quote(method, 200), "notification");
    }
}

pub(crate) fn invalid_message(error: &RpcError) {
    if enabled!(target: TARGET, Level::DEBUG) {
        let error = quote(&error.message, 300);
        debug!(target: TARGET, error, "invalid message");
    }
}

pub(crate) fn initialized(revision: &str) {
    info!(target: TARGET, revision, "client connected");
}

pub(crate) fn session_ended() {
    info!(target: TARGET, "session ended");
}

pub(crate) fn http_response(method: &str, status: u16) {
    debug!(target: TARGET, method, status, "HTTP response");
}

pub(crate) fn not_accepted(error: &std::io::Error) {
    debug!(target: TARGET, %error, "connection not accepted");
}

pub(crate) fn received(message: &Value) {
    if enabled!(target: TARGET, Level::TRACE) {
        let body = quote(&message.to_string(), MAX_BODY_CHARS);
        trace!(target: TARGET, %body, "received");
    }
}

/// Logs messages to the client, which are one per line.
pub(crate) fn sent(messages: &[u8]) {
    if enabled!(target: TARGET, Level::TRACE) {
        for message in messages.split(|byte| *byte == b'\n') {
            if !message.is_empty() {
                let start = &message[..message.len().min(4 * MAX_BODY_CHARS)];
                let body = quote(&String::from_utf8_lossy(start), MAX_BODY_CHARS);
                trace!(target: TARGET, bytes = message.len(), %body, "sent");
            }
        }
    }
}

/// Text of a client on one line, truncated.
fn quote(text: &str, max_chars: usize) -> String {
    one_line(&shorten(text, max_chars))
}
