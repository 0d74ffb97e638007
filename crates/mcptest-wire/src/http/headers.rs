//! Headers that MCP asks for.

use serde::Deserialize;
use serde_json::Value;

use crate::handshake::META_VERSION;

pub(crate) const SESSION_ID: &str = "mcp-session-id";
pub(crate) const PROTOCOL_VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// What a message says that its headers must repeat.
#[derive(Debug, Deserialize)]
pub(crate) struct Outline {
    /// Absent in an answer to the server.
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

    /// The revision that a stateless message names.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.params.as_ref()?.get("_meta")?.get(META_VERSION)?.as_str()
    }

    /// The headers of the stateless revision, which must say what the body says.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        let Some(method) = &self.method else {
            return Vec::new();
        };
        let mut headers = vec![(METHOD, encode(method))];
        let key = match method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return headers,
        };
        if let Some(name) = self.params.as_ref().and_then(|params| params.get(key)?.as_str()) {
            headers.push((NAME, encode(name)));
        }
        headers
    }
}

/// A value as a header can carry it: text that would not survive goes as Base64.
pub(crate) fn encode(value: &str) -> String {
    let blank = |c: Option<char>| c.is_some_and(|c| matches!(c, ' ' | '\t'));
    let unsafe_value = blank(value.chars().next())
        || blank(value.chars().next_back())
        || value.chars().any(|c| !(' '..='~').contains(&c))
        || (value.starts_with("=?base64?") && value.ends_with("?="));
    if unsafe_value {
        format!("=?base64?{}?=", base64(value.as_bytes()))
    } else {
        value.to_owned()
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place <= chunk.len() {
                out.push(char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_known_values() {
        // RFC 4648, section 10.
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn only_what_needs_it_is_encoded() {
        assert_eq!(encode("get-weather"), "get-weather");
        assert_eq!(encode("a b"), "a b");
        assert_eq!(encode(" a"), "=?base64?IGE=?=");
        assert_eq!(encode("ä"), "=?base64?w6Q=?=");
        assert_eq!(encode("a\r\nX: y"), "=?base64?YQ0KWDogeQ==?=");
        assert_eq!(encode("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }

    #[test]
    fn headers_repeat_the_body() {
        let line = br#"{"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let outline = Outline::of(line);
        assert_eq!(outline.revision(), Some("2026-07-28"));
        assert_eq!(
            outline.headers(),
            [("mcp-method", "tools/call".to_owned()), ("mcp-name", "echo".to_owned())]
        );
        assert!(Outline::of(br#"{"id":1,"result":{}}"#).headers().is_empty());
    }
}
