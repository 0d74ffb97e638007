//! Log events of the proxy.
//!
//! Lines are truncated and made one line. Nothing is formatted unless a subscriber wants the event.

use mcptest_http::text::{quote, quote_bytes};
use serde_json::Value;
use tracing::{Level, debug, enabled, info, trace};

/// The target of the events in this crate.
const TARGET: &str = "mcptest::proxy";

/// Characters shown of one line.
const MAX_LINE_CHARS: usize = 4000;

/// The direction of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    FromClient,
    FromServer,
}

impl Direction {
    fn as_str(self) -> &'static str {
        match self {
            Self::FromClient => "client → server",
            Self::FromServer => "server → client",
        }
    }
}

/// Logs a line and the action on it.
pub(crate) fn line(direction: Direction, line: &[u8], action: &str) {
    if !enabled!(target: TARGET, Level::DEBUG) {
        return;
    }
    let direction = direction.as_str();
    let bytes = line.len();
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    let method = message
        .get("method")
        .and_then(Value::as_str)
        .map(|method| quote(method, 200));
    let id = message.get("id").map(|id| quote(&id.to_string(), 200));
    debug!(target: TARGET, direction, method, id, bytes, action, "line");
    if enabled!(target: TARGET, Level::TRACE) {
        let body = quote_bytes(line.trim_ascii_end(), MAX_LINE_CHARS);
        trace!(target: TARGET, direction, %body, "line");
    }
}

pub(crate) fn started(server: &str) {
    info!(target: TARGET, server, "session started");
}

pub(crate) fn ended(reason: &str, ms: u128) {
    info!(target: TARGET, reason, ms, "session ended");
}

pub(crate) fn recorded(bytes: usize, ms: u128) {
    debug!(target: TARGET, bytes, ms, "trace written");
}

pub(crate) fn resuming(last_event: Option<&str>) {
    debug!(target: TARGET, last_event, "resuming the event stream");
}

/// Logs a request that the proxy answers with an error because the server does not.
pub(crate) fn unanswered(method: &str, reason: &str) {
    if enabled!(target: TARGET, Level::INFO) {
        info!(target: TARGET, method = quote(method, 200), reason, "request failed");
    }
}
