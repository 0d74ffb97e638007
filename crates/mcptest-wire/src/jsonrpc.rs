//! JSON-RPC messages: parsing a line into messages and violations.
//!
//! The parser is pure and never fails: a line gives messages, violations, or both. `state.rs`
//! decides what they mean for a waiting call.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::violation::ViolationKind;
use mcptest_http::text::quote;
use mcptest_json::surrogates::mended_text;

/// A JSON-RPC error as the server sent it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RpcError {
    /// The code; -32601 is an unknown method, -32602 invalid parameters.
    pub code: i64,
    /// The server's message, unsanitized: use [`crate::sanitize`] to show it.
    pub message: String,
    /// Additional data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// The server's answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The `result` member exactly as sent.
    Result(Value),
    /// The `error` member.
    Error(RpcError),
}

/// A reply with its raw line.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Response {
    /// The id of the request.
    pub id: u64,
    /// The answer.
    pub outcome: CallOutcome,
    /// The line as received, for callers that need what parsing loses (duplicate keys, number
    /// formats). For a batch it is the line of the whole batch.
    pub raw: String,
    /// The time in which a credential for the request was obtained: it is not the time of the call.
    pub credential_wait: Duration,
}

/// A message id. JSON-RPC allows strings and numbers; null means "unknown".
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Id {
    Absent,
    Null,
    Number(u64),
    String(String),
    /// Anything else: fractions, negatives, booleans, arrays, objects.
    Other(Value),
}

impl Id {
    fn of(object: &Map<String, Value>) -> Self {
        match object.get("id") {
            None => Self::Absent,
            Some(Value::Null) => Self::Null,
            Some(Value::String(s)) => Self::String(s.clone()),
            Some(other) => match other.as_u64() {
                Some(n) => Self::Number(n),
                None => Self::Other(other.clone()),
            },
        }
    }

    /// The id for the answer to a request of the server.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Absent | Self::Null => Value::Null,
            Self::Number(n) => json!(n),
            Self::String(s) => json!(s),
            Self::Other(value) => value.clone(),
        }
    }
}

/// A reply without its id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Payload {
    Valid(CallOutcome),
    /// Shaped like a reply, but not acceptable.
    Invalid(ViolationKind, String),
}

/// One message of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Request {
        id: Id,
        method: String,
        params: Option<Value>,
    },
    Notification {
        method: String,
        params: Option<Value>,
    },
    Reply {
        id: Id,
        payload: Payload,
    },
}

/// A violation by a line as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LineViolation {
    pub(crate) kind: ViolationKind,
    pub(crate) detail: String,
    /// The line looks like a damaged reply.
    pub(crate) damaged_reply: bool,
    /// The id of the request that it seems to answer, read from the damaged text.
    pub(crate) request_id: Option<u64>,
}

impl LineViolation {
    fn new(kind: ViolationKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            damaged_reply: false,
            request_id: None,
        }
    }

    fn damaged(kind: ViolationKind, detail: impl Into<String>, line: &str) -> Self {
        Self {
            damaged_reply: looks_like_message(line) && !line.contains("\"method\""),
            request_id: id_in_damaged_text(line),
            ..Self::new(kind, detail)
        }
    }
}

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ParsedLine {
    pub(crate) messages: Vec<Message>,
    pub(crate) violations: Vec<LineViolation>,
    /// The line as a string, with invalid bytes replaced.
    pub(crate) raw: String,
}

/// Parses one line (without its newline).
pub(crate) fn parse_line(line: Vec<u8>) -> ParsedLine {
    let mut out = ParsedLine::default();
    out.raw = match String::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            out.violations.push(LineViolation::damaged(
                ViolationKind::InvalidUtf8,
                error.utf8_error().to_string(),
                &text,
            ));
            out.raw = text;
            return out;
        }
    };
    let mut text = out.raw.as_str();
    if let Some(rest) = text.strip_suffix('\r') {
        text = rest;
        out.violations
            .push(LineViolation::new(ViolationKind::CrLf, ""));
    }
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        text = rest;
        out.violations
            .push(LineViolation::new(ViolationKind::ByteOrderMark, ""));
    }
    if text.trim().is_empty() {
        out.violations
            .push(LineViolation::new(ViolationKind::BlankLine, ""));
        return out;
    }
    let mended = mended_text(text);
    let text = mended.as_ref();
    if let Some(reply) = plain_reply(text) {
        out.messages = vec![reply];
        return out;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) if items.iter().any(is_message_like) => {
            let detail = format!("{} messages", items.len());
            out.violations
                .push(LineViolation::new(ViolationKind::Batch, detail));
            for item in items {
                parse_message(item, &mut out.messages, &mut out.violations);
            }
        }
        Ok(value) => parse_message(value, &mut out.messages, &mut out.violations),
        Err(error) => {
            let violation = if !looks_like_message(text) {
                LineViolation::new(ViolationKind::StdoutNoise, "")
            } else if error.to_string().contains("recursion limit") {
                LineViolation::damaged(ViolationKind::TooDeep, error.to_string(), text)
            } else {
                LineViolation::damaged(ViolationKind::UnparsableJson, error.to_string(), text)
            };
            out.violations.push(violation);
        }
    }
    out
}

/// A result with nothing else in its message, as nearly every line is. Its envelope becomes no map.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainReply<'a> {
    jsonrpc: &'a str,
    id: u64,
    result: Value,
}

/// Parses a [`PlainReply`]; `None` for any other line, which the thorough parser then reads.
fn plain_reply(text: &str) -> Option<Message> {
    // A list of the three values would be decoded, too.
    if !text.starts_with('{') {
        return None;
    }
    let reply: PlainReply<'_> = serde_json::from_str(text).ok()?;
    (reply.jsonrpc == "2.0").then_some(Message::Reply {
        id: Id::Number(reply.id),
        payload: Payload::Valid(CallOutcome::Result(reply.result)),
    })
}

/// Returns true if invalid JSON was meant as a message rather than as a log line.
fn looks_like_message(line: &str) -> bool {
    let line = line.trim_start_matches(['\u{feff}', ' ', '\t', '[']);
    line.starts_with('{') && line.contains("\"jsonrpc\"")
}

fn is_message_like(value: &Value) -> bool {
    value.as_object().is_some_and(|o| {
        ["jsonrpc", "method", "result", "error"]
            .iter()
            .any(|key| o.contains_key(*key))
    })
}

fn parse_message(value: Value, messages: &mut Vec<Message>, violations: &mut Vec<LineViolation>) {
    let Value::Object(mut object) = value else {
        violations.push(LineViolation::new(
            ViolationKind::NotJsonRpc,
            "a message must be an object",
        ));
        return;
    };
    let version = match object.get("jsonrpc") {
        Some(Value::String(v)) if v == "2.0" => None,
        Some(other) => Some(format!("it is {}", quote(&other.to_string(), 40))),
        None => Some("it is missing".to_owned()),
    };
    let id = Id::of(&object);
    if let Some(Value::String(method)) = object.get("method") {
        // Without the version this is as likely a log record as a message.
        if let Some(detail) = version {
            violations.push(LineViolation::new(ViolationKind::BadJsonRpcVersion, detail));
            return;
        }
        let method = method.clone();
        let params = object.shift_remove("params");
        messages.push(match id {
            Id::Absent => Message::Notification { method, params },
            id => Message::Request { id, method, params },
        });
        return;
    }
    let reply_shaped = object.contains_key("result") || object.contains_key("error");
    if !reply_shaped && (id == Id::Absent || version.is_some()) {
        violations.push(LineViolation::new(ViolationKind::NotJsonRpc, ""));
        return;
    }
    if version.is_some() && id == Id::Absent {
        // A log record such as {"level":"error","error":"…"}.
        violations.push(LineViolation::new(ViolationKind::NotJsonRpc, ""));
        return;
    }
    let payload = match version {
        Some(detail) => Payload::Invalid(ViolationKind::BadJsonRpcVersion, detail),
        None => parse_payload(&mut object, violations),
    };
    messages.push(Message::Reply { id, payload });
}

fn parse_payload(object: &mut Map<String, Value>, violations: &mut Vec<LineViolation>) -> Payload {
    match (object.shift_remove("result"), object.shift_remove("error")) {
        (Some(result), None) => Payload::Valid(CallOutcome::Result(result)),
        (Some(result), Some(Value::Null)) => {
            // A habit from older JSON-RPC: harmless, but strict clients reject it.
            violations.push(LineViolation::new(
                ViolationKind::ResultAndError,
                "error is null, taken as a result",
            ));
            Payload::Valid(CallOutcome::Result(result))
        }
        (Some(_), Some(_)) => Payload::Invalid(ViolationKind::ResultAndError, String::new()),
        (None, None) => Payload::Invalid(ViolationKind::NoResultOrError, String::new()),
        (None, Some(error)) => match parse_error(error) {
            Ok(error) => Payload::Valid(CallOutcome::Error(error)),
            Err(detail) => Payload::Invalid(ViolationKind::MalformedError, detail),
        },
    }
}

fn parse_error(error: Value) -> Result<RpcError, String> {
    let Value::Object(mut error) = error else {
        return Err("error is not an object".to_owned());
    };
    let code = error
        .get("code")
        .and_then(Value::as_i64)
        .ok_or("error.code is not an integer")?;
    let Some(Value::String(message)) = error.shift_remove("message") else {
        return Err("error.message is not a string".to_owned());
    };
    Ok(RpcError {
        code,
        message,
        data: error.shift_remove("data"),
    })
}

/// Finds the top-level id in damaged JSON. It searches only before the payload, because the payload
/// may contain ids of its own.
fn id_in_damaged_text(text: &str) -> Option<u64> {
    let payload = ["\"result\"", "\"error\"", "\"params\""]
        .iter()
        .filter_map(|key| text.find(key))
        .min()
        .unwrap_or(text.len());
    let head = &text[..payload];
    let after = head[head.find("\"id\"")? + 4..].trim_start();
    let after = after.strip_prefix(':')?.trim_start();
    let digits = after.find(|c: char| !c.is_ascii_digit())?;
    // A number truncated by the damage could be any longer number.
    after[digits..]
        .trim_start()
        .starts_with([',', '}'])
        .then_some(())?;
    after[..digits].parse().ok()
}

/// The line for a request or, without an id, a notification.
pub(crate) fn encode_call(id: Option<u64>, method: &str, params: &Params<'_>) -> Vec<u8> {
    let mut line = Vec::with_capacity(CALL_BYTES);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        line.extend_from_slice(br#""id":"#);
        append(&mut line, &id);
        line.push(b',');
    }
    line.extend_from_slice(br#""method":"#);
    append(&mut line, method);
    match params {
        Params::None => {}
        Params::Value(params) => {
            line.extend_from_slice(br#","params":"#);
            append(&mut line, params);
        }
        Params::Tool { name, args } => {
            line.extend_from_slice(br#","params":{"name":"#);
            append(&mut line, *name);
            if !args.is_null() {
                line.extend_from_slice(br#","arguments":"#);
                append(&mut line, *args);
            }
            line.push(b'}');
        }
    }
    line.extend_from_slice(b"}\n");
    line
}

/// The size of most calls.
const CALL_BYTES: usize = 256;

/// The parameters of a request or a notification.
#[derive(Debug, Clone)]
pub(crate) enum Params<'a> {
    None,
    Value(Value),
    /// The call of a tool; without `arguments` if they are null.
    Tool {
        name: &'a str,
        args: &'a Value,
    },
}

impl From<Option<Value>> for Params<'_> {
    fn from(params: Option<Value>) -> Self {
        params.map_or(Self::None, Self::Value)
    }
}

impl Params<'_> {
    /// The parameters as a value.
    pub(crate) fn into_value(self) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Value(value) => Some(value),
            Self::Tool { name, args } => {
                let mut params = Map::with_capacity(2);
                params.insert("name".to_owned(), name.into());
                if !args.is_null() {
                    params.insert("arguments".to_owned(), args.clone());
                }
                Some(Value::Object(params))
            }
        }
    }
}

/// The line of an answer to a request of the server.
pub(crate) fn encode_reply(id: &Id, outcome: Result<Value, RpcError>) -> Vec<u8> {
    let id = id.to_value();
    to_line(&match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    })
}

fn to_line(value: &Value) -> Vec<u8> {
    let mut line = Vec::new();
    append(&mut line, value);
    line.push(b'\n');
    line
}

/// Appends compact JSON, which never contains a raw newline, so one line is one message.
fn append(line: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Values have string keys, and writing to memory cannot fail.
    let _ = serde_json::to_writer(line, value);
}

#[cfg(test)]
mod tests;
