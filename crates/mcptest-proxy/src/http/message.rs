//! Messages of the client, as far as HTTP needs their content.

use hyper::body::Bytes;
use mcptest_json::surrogates::mended;
use serde_json::Value;

pub(super) fn needs_order(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(&mended(line))
        .is_ok_and(|message| message.get("id").is_none() || message.get("method").is_none())
}

pub(super) fn is_initialized(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(&mended(line))
        .is_ok_and(|message| message["method"] == "notifications/initialized")
}

/// A message of the client: its bytes and its value.
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) value: Value,
}

impl Message {
    pub(super) fn of(line: &[u8]) -> Self {
        let line = line.trim_ascii();
        Self {
            bytes: Bytes::copy_from_slice(line),
            value: serde_json::from_slice(&mended(line)).unwrap_or_default(),
        }
    }

    pub(super) fn method(&self) -> &str {
        self.value
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The id of a request.
    pub(super) fn id(&self) -> Option<&Value> {
        self.value.get("method")?;
        self.value.get("id").filter(|id| !id.is_null())
    }

    pub(super) fn is_reply(&self, frame: &Value) -> bool {
        frame.get("method").is_none() && frame.get("id") == self.id()
    }
}
