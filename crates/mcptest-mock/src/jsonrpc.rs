//! JSON-RPC 2.0 as MCP uses it: classification of messages and writing of replies.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The message is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The message is JSON but not a valid request.
pub const INVALID_REQUEST: i32 = -32600;
/// The method does not exist, or the server has not declared the capability for it.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// The server is at fault.
pub const INTERNAL_ERROR: i32 = -32603;
/// The resource does not exist (before 2026-07-28).
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// A header is missing or does not match the body (2026-07-28, HTTP).
pub const HEADER_MISMATCH: i32 = -32020;
/// The client has not declared a capability that the request needs (2026-07-28).
pub const MISSING_CAPABILITY: i32 = -32021;
/// The server does not support the protocol version in `_meta` (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;

/// The characters of client text shown in an error message.
const CLIP_CHARS: usize = 200;

/// An error reply.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// One of the codes above.
    pub code: i32,
    /// One sentence.
    pub message: String,
    /// Additional data for programs.
    pub data: Option<Value>,
    /// True for an error about the request's `_meta`, not about its content.
    pub(crate) in_envelope: bool,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            in_envelope: false,
        }
    }

    pub(crate) fn about_envelope(mut self) -> Self {
        self.in_envelope = true;
        self
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(
            METHOD_NOT_FOUND,
            format!("Method not found: {}", clip(method)),
        )
    }
}

/// Truncates client text, so that a reply does not grow with the client's message.
pub(crate) fn clip(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(CLIP_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A classified message.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    /// Needs exactly one reply.
    Request {
        id: &'a Value,
        method: &'a str,
        params: Option<&'a Map<String, Value>>,
    },
    /// A notification: never answered.
    Notification {
        method: &'a str,
        params: Option<&'a Map<String, Value>>,
    },
    /// A reply, even if the mock sent no such request.
    Response {
        id: Option<&'a Value>,
        /// The result; none for an error.
        result: Option<&'a Value>,
    },
    /// An invalid message, with its id if there is one.
    Invalid {
        id: Option<&'a Value>,
        error: RpcError,
    },
}

/// Classifies a message.
pub(crate) fn classify(message: &Value) -> Incoming<'_> {
    let invalid = |id, text: &str| Incoming::Invalid {
        id,
        error: RpcError::invalid_request(text),
    };
    let Value::Object(message) = message else {
        return invalid(None, "Invalid request: a message is a JSON object");
    };
    let sent_id = message.get("id");
    let id = sent_id.filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let method = match message.get("method") {
        Some(Value::String(method)) => method,
        Some(_) => return invalid(id, "Invalid request: method is not a string"),
        None if message.contains_key("result") || message.contains_key("error") => {
            let result = message.get("result");
            return Incoming::Response { id, result };
        }
        None => return invalid(id, "Invalid request: no method"),
    };
    if sent_id.is_none() {
        let params = message.get("params").and_then(Value::as_object);
        return Incoming::Notification { method, params };
    }
    let Some(id) = id else {
        return invalid(
            None,
            "Invalid request: the id is neither a string nor an integer",
        );
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(Some(id), "Invalid request: jsonrpc is not \"2.0\"");
    }
    let params = match message.get("params") {
        None => None,
        Some(Value::Object(params)) => Some(params),
        Some(_) => {
            return Incoming::Invalid {
                id: Some(id),
                error: RpcError::invalid_params("Invalid params: params is not an object"),
            };
        }
    };
    Incoming::Request { id, method, params }
}

/// The answer to one request.
#[derive(Debug, Clone)]
pub struct Reply<'a> {
    pub(crate) id: Option<Value>,
    pub(crate) outcome: Result<ResultBody<'a>, RpcError>,
}

/// A result as JSON members without the braces: first the members that the revision adds to every
/// result (with a trailing comma, or empty), then the result's own. Both are usually borrowed from
/// text that the server wrote at its start.
#[derive(Debug, Clone)]
pub(crate) struct ResultBody<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) members: Cow<'a, [u8]>,
}

impl<'a> Reply<'a> {
    pub(crate) fn error(id: Option<Value>, error: RpcError) -> Self {
        Self {
            id,
            outcome: Err(error),
        }
    }

    /// The id of the request, if it has a valid one.
    #[must_use]
    pub fn id(&self) -> Option<&Value> {
        self.id.as_ref()
    }

    /// The error, if it is one: a transport may map its code to an HTTP status.
    #[must_use]
    pub fn as_error(&self) -> Option<&RpcError> {
        self.outcome.as_ref().err()
    }

    /// Appends the JSON text without a line end.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        match &self.id {
            Some(id) => write_json(out, id),
            None => out.extend_from_slice(b"null"),
        }
        match &self.outcome {
            Ok(body) => {
                out.extend_from_slice(br#","result":{"#);
                let head = match body.members.is_empty() {
                    true => body.head.strip_suffix(b",").unwrap_or(body.head),
                    false => body.head,
                };
                out.extend_from_slice(head);
                out.extend_from_slice(&body.members);
            }
            Err(error) => {
                out.extend_from_slice(br#","error":{"code":"#);
                write_json(out, &error.code);
                out.extend_from_slice(br#","message":"#);
                write_json(out, &error.message);
                if let Some(data) = &error.data {
                    out.extend_from_slice(br#","data":"#);
                    write_json(out, data);
                }
            }
        }
        out.extend_from_slice(b"}}");
    }
}

/// The replies to one message or batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Replies<'a> {
    /// None: there was no request.
    None,
    /// The reply to a single request.
    One(Reply<'a>),
    /// The replies to a batch, in its order.
    Batch(Vec<Reply<'a>>),
}

impl Replies<'_> {
    /// Appends the JSON text without a line end. Returns true if there was anything to write.
    pub fn write_to(&self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::None => return false,
            Self::One(reply) => reply.write_to(out),
            Self::Batch(replies) => {
                for (index, reply) in replies.iter().enumerate() {
                    out.push(if index == 0 { b'[' } else { b',' });
                    reply.write_to(out);
                }
                out.push(b']');
            }
        }
        true
    }
}

/// Appends a value as compact JSON.
pub(crate) fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    // Writing plain JSON values to memory cannot fail; if it did, the message would stay valid.
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// A parameter that is a string.
pub(crate) fn string_param<'a>(
    params: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a str, RpcError> {
    params
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params(format!("Invalid params: {name} is not a string")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_requests_with_a_usable_id_are_requests() {
        let request = json!({"jsonrpc": "2.0", "id": "a", "method": "ping"});
        assert!(matches!(
            classify(&request),
            Incoming::Request { method: "ping", .. }
        ));
        for notification in [
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"method": "anything", "params": 7}),
        ] {
            assert!(
                matches!(classify(&notification), Incoming::Notification { .. }),
                "{notification}"
            );
        }
        for reply in [
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}),
        ] {
            assert!(
                matches!(classify(&reply), Incoming::Response { .. }),
                "{reply}"
            );
        }
        for (message, has_id) in [
            (json!(1), false),
            (json!({}), false),
            (json!({"id": 7}), true),
            (
                json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
                false,
            ),
            (
                json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
                false,
            ),
            (json!({"jsonrpc": "2.0", "id": 1, "method": 2}), true),
            (json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), true),
            (
                json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}),
                true,
            ),
        ] {
            match classify(&message) {
                Incoming::Invalid { id, .. } => assert_eq!(id.is_some(), has_id, "{message}"),
                other => panic!("{message}: {other:?}"),
            }
        }
    }

    #[test]
    fn long_strings_are_truncated_between_characters() {
        assert_eq!(clip("short"), "short");
        let long = "ä".repeat(CLIP_CHARS + 1);
        assert_eq!(clip(&long).chars().count(), CLIP_CHARS + 1);
        assert!(clip(&long).ends_with('…'));
    }
}
