//! Headers that MCP defines.

use std::borrow::Cow;

pub(crate) use mcptest_protocol::headers::encode;
use mcptest_protocol::headers::name_of;
use mcptest_protocol::{ToolHeaders, meta};
use serde::Deserialize;
use serde_json::Value;

pub(crate) const SESSION_ID: &str = "mcp-session-id";
pub(crate) const PROTOCOL_VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// A header of one message: its name and value.
pub(crate) type Header = (Cow<'static, str>, String);

/// The parts of a message that its headers repeat.
#[derive(Debug, Deserialize)]
pub(crate) struct Outline {
    /// Absent in a reply to the server.
    pub(crate) method: Option<String>,
    params: Option<Value>,
}

impl Outline {
    pub(crate) fn of(line: &[u8]) -> Self {
        serde_json::from_slice(line).unwrap_or(Self {
            method: None,
            params: None,
        })
    }

    /// The revision in a stateless message.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.params
            .as_ref()?
            .get("_meta")?
            .get(meta::PROTOCOL_VERSION)?
            .as_str()
    }

    /// The headers of the stateless revision, which repeat parts of the body.
    pub(crate) fn headers(&self, tools: &ToolHeaders) -> Vec<Header> {
        let Some(method) = &self.method else {
            return Vec::new();
        };
        let mut headers: Vec<Header> = vec![(METHOD.into(), encode(method))];
        let name = self
            .params
            .as_ref()
            .and_then(|params| name_of(method, params));
        headers.extend(name.map(|name| (NAME.into(), encode(name))));
        if let (Some(params), "tools/call") = (&self.params, method.as_str()) {
            let repeated = tools.of_call(params).into_iter();
            headers.extend(repeated.map(|(name, value)| (name.into(), value)));
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_repeat_the_body() {
        let params = serde_json::json!({
            "name": "echo", "_meta": {meta::PROTOCOL_VERSION: "2026-07-28"},
        });
        let line = serde_json::json!({"method": "tools/call", "params": params}).to_string();
        let outline = Outline::of(line.as_bytes());
        assert_eq!(outline.revision(), Some("2026-07-28"));
        assert_eq!(
            outline.headers(&ToolHeaders::default()),
            [
                ("mcp-method".into(), "tools/call".to_owned()),
                ("mcp-name".into(), "echo".to_owned())
            ]
        );
        assert!(
            Outline::of(br#"{"id":1,"result":{}}"#)
                .headers(&ToolHeaders::default())
                .is_empty()
        );
    }
}
