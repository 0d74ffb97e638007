//! A record of all messages of clients, as JSON Lines.

use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::jsonrpc::{clip, write_json};

/// Writes one line per message: `{"seq": 1, "message": …}`. Each line is flushed, so that it is
/// written even if the server is killed.
pub(crate) struct Recorder {
    out: Mutex<(u64, Box<dyn Write + Send>)>,
}

impl Recorder {
    pub(crate) fn new(out: Box<dyn Write + Send>) -> Self {
        Self {
            out: Mutex::new((0, out)),
        }
    }

    /// Records a message or a batch.
    pub(crate) fn message(&self, message: &Value) {
        let mut body = br#""message":"#.to_vec();
        write_json(&mut body, message);
        self.line(&body);
    }

    /// Records input that is not JSON.
    pub(crate) fn unreadable(&self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
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
        // A full disk must not change the server's answers.
        let _ = out.1.write_all(&line).and_then(|()| out.1.flush());
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}
