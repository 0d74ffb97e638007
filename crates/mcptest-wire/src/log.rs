//! Log events about servers, connections and messages.
//!
//! Bodies are truncated, made one line, and stripped of the credentials that we send. Nothing is
//! formatted unless a subscriber wants the event.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcptest_http::secrets::mask;
use mcptest_http::text::quote_bytes;
use tracing::{Level, debug, enabled, info, trace};

use crate::error::WireError;
use crate::jsonrpc::{CallOutcome, Response};
use crate::violation::ViolationKind;

/// The target of the events in this crate.
pub(crate) const TARGET: &str = "mcptest::wire";

/// Characters shown of one message body.
const MAX_BODY_CHARS: usize = 4000;

/// Logs the events of one connection. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionLog(Arc<Inner>);

#[derive(Default)]
struct Inner {
    server: String,
    /// The credentials that we send.
    secrets: Vec<String>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl ConnectionLog {
    pub(crate) fn new(server: &str, secrets: &[String]) -> Self {
        Self(Arc::new(Inner {
            server: server.to_owned(),
            secrets: secrets.to_vec(),
        }))
    }

    fn server(&self) -> &str {
        &self.0.server
    }

    /// Logs a request or, without an id, a notification that we send.
    pub(crate) fn sent(&self, method: &str, id: Option<u64>, line: &[u8]) {
        let (server, bytes) = (self.server(), line.len());
        match id {
            Some(id) => debug!(target: TARGET, server, method, id, bytes, "request"),
            None => debug!(target: TARGET, server, method, bytes, "notification"),
        }
        self.body("sent", line);
    }

    /// Logs the end of a request.
    pub(crate) fn answered(
        &self,
        method: &str,
        took: Duration,
        result: &Result<Response, WireError>,
    ) {
        let (server, ms) = (self.server(), took.as_millis());
        match result {
            Ok(response) => {
                let (id, bytes) = (response.id, response.raw.len());
                match &response.outcome {
                    CallOutcome::Result(_) => {
                        debug!(target: TARGET, server, method, id, bytes, ms, "result");
                    }
                    CallOutcome::Error(error) => {
                        let code = error.code;
                        debug!(target: TARGET, server, method, id, bytes, ms, code, "error");
                    }
                }
            }
            Err(error) => {
                let (kind, detail) = (error.kind, error.detail.as_str());
                info!(target: TARGET, server, method, ms, %kind, detail, "request failed");
            }
        }
    }

    /// Logs the body of a message from the server.
    pub(crate) fn received(&self, line: &[u8]) {
        self.body("received", line);
    }

    /// Logs a notification or request of the server.
    pub(crate) fn server_message(&self, method: &str, is_request: bool, bytes: usize) {
        let server = self.server();
        if is_request {
            debug!(target: TARGET, server, method, bytes, "request of the server");
        } else {
            debug!(target: TARGET, server, method, bytes, "notification of the server");
        }
    }

    pub(crate) fn violation(&self, kind: ViolationKind, detail: &str) {
        debug!(target: TARGET, server = self.server(), %kind, detail, "protocol violation");
    }

    pub(crate) fn stderr(&self, line: &str) {
        debug!(target: TARGET, server = self.server(), %line, "stderr");
    }

    pub(crate) fn connected(&self, revision: &str, took: Duration) {
        let ms = took.as_millis();
        info!(target: TARGET, server = self.server(), revision, ms, "connected");
    }

    pub(crate) fn not_connected(&self, error: &WireError, took: Duration) {
        let (kind, detail) = (error.kind, error.detail.as_str());
        let ms = took.as_millis();
        info!(target: TARGET, server = self.server(), ms, %kind, detail, "cannot connect");
    }

    pub(crate) fn restarting(&self) {
        let server = self.server();
        info!(target: TARGET, server, "the server stopped at server/discover: starting it again");
    }

    pub(crate) fn closed(&self, reason: &str) {
        info!(target: TARGET, server = self.server(), reason, "connection closed");
    }

    pub(crate) fn resuming(&self, last_event: Option<&str>) {
        debug!(target: TARGET, server = self.server(), last_event, "resuming the event stream");
    }

    pub(crate) fn exited(&self, status: &str) {
        exited(self.server(), status);
    }

    pub(crate) fn stopped(&self, took: Duration) {
        info!(target: TARGET, server = self.server(), ms = took.as_millis(), "server stopped");
    }

    fn body(&self, direction: &str, line: &[u8]) {
        if !enabled!(target: TARGET, Level::TRACE) {
            return;
        }
        let body = quote_bytes(line.trim_ascii_end(), MAX_BODY_CHARS);
        let body = mask(&body, &self.0.secrets);
        trace!(target: TARGET, server = self.server(), %body, "{direction}");
    }
}

/// Logs the start of a server's process. Its arguments may hold secrets that only the writer of the
/// log can redact, so they are at the lowest level.
pub(crate) fn started(server: &str, pid: u32, argv: &[String]) {
    let program = argv.first().map(String::as_str).unwrap_or_default();
    info!(target: TARGET, server, pid, program, "process started");
    if enabled!(target: TARGET, Level::TRACE) {
        let command = quote_bytes(argv.join(" ").as_bytes(), MAX_BODY_CHARS);
        trace!(target: TARGET, server, pid, %command, "command line");
    }
}

/// Logs the exit of a server's process.
pub(crate) fn exited(server: &str, status: &str) {
    info!(target: TARGET, server, status, "process exited");
}
