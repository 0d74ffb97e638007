//! A record of all messages of clients, as JSON Lines.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use mcptest_redact::redact::Redactor;
use serde_json::{Value, json};

use tokio::sync::Notify;

use crate::jsonrpc::{clip, write_json};

/// Writes one line per message: `{"seq": 1, "message": …}`. Each line is flushed, so that it is
/// written even if the server is killed.
pub(crate) struct Recorder {
    out: Mutex<(u64, Box<dyn Write + Send>)>,
    redactor: Redactor,
    /// The first error. Answers do not depend on it, but the record is incomplete.
    failure: OnceLock<io::Error>,
    failed: Notify,
}

impl Recorder {
    pub(crate) fn new(out: Box<dyn Write + Send>, redactor: Redactor) -> Self {
        Self {
            out: Mutex::new((0, out)),
            redactor,
            failure: OnceLock::new(),
            failed: Notify::new(),
        }
    }

    /// The error because of which messages are missing.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.get()
    }

    /// Waits until a message cannot be written.
    pub(crate) async fn failed(&self) -> io::Error {
        loop {
            let failed = self.failed.notified();
            if let Some(error) = self.failure() {
                return copy(error);
            }
            failed.await;
        }
    }

    /// Records a message or a batch.
    pub(crate) fn message(&self, message: &Value) {
        let mut body = br#""message":"#.to_vec();
        if self.redactor.is_clean_in(message) {
            write_json(&mut body, message);
        } else {
            let mut clean = message.clone();
            self.redactor.value(&mut clean);
            write_json(&mut body, &clean);
        }
        self.line(&body);
    }

    /// Records input that is not JSON.
    pub(crate) fn unreadable(&self, bytes: &[u8]) {
        let text = self.redactor.text(&String::from_utf8_lossy(bytes));
        let mut body = br#""unreadable":"#.to_vec();
        write_json(&mut body, &json!(clip(&text)));
        self.line(&body);
    }

    fn line(&self, body: &[u8]) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.0 += 1;
        let mut line = format!("{{\"seq\":{},", out.0).into_bytes();
        line.extend_from_slice(body);
        line.extend_from_slice(b"}\n");
        // A full disk must not change the server's answers, and no line follows a torn one.
        if self.failure().is_none()
            && let Err(error) = out.1.write_all(&line).and_then(|()| out.1.flush())
        {
            let _ = self.failure.set(error);
            self.failed.notify_waiters();
        }
    }
}

/// An error as a new value; the kind, the number and the message are the same.
pub(crate) fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}
