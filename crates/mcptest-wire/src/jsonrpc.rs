//! JSON-RPC frames: reading a line into messages and what is wrong with it.
//!
//! The classifier is pure. It never fails: a line gives messages, findings, or
//! both. What the findings mean for a waiting call is decided in
//! `connection.rs`, which knows what was asked.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::violation::ViolationKind;
use mcptest_http::text::quote;

/// A JSON-RPC error as the server sent it. It is an outcome, hence evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RpcError {
    /// The code; -32601 is an unknown method, -32602 bad parameters.
    pub code: i64,
    /// The server's words, not cleaned: use [`crate::sanitize`] to show them.
    pub message: String,
    /// Whatever else the server attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// How a request ended, seen from the protocol: either way the server answered.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The `result` member exactly as sent.
    Result(Value),
    /// The `error` member.
    Error(RpcError),
}

/// A reply together with the line it came in.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Response {
    /// The id of the request.
    pub id: u64,
    /// What the server answered.
    pub outcome: CallOutcome,
    /// The line as received, for whoever needs what parsing loses (duplicate
    /// keys, number spelling). For a batch it is the line of the whole batch.
    pub raw: String,
}

/// A message id. JSON-RPC allows strings and numbers; null stands for "unknown".
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Id {
    Absent,
    Null,
    Number(u64),
    Text(String),
    /// Anything else: fractions, negatives, booleans, arrays, objects.
    Other(Value),
}

impl Id {
    fn read(object: &Map<String, Value>) -> Self {
        match object.get("id") {
            None => Self::Absent,
            Some(Value::Null) => Self::Null,
            Some(Value::String(s)) => Self::Text(s.clone()),
            Some(other) => match other.as_u64() {
                Some(n) => Self::Number(n),
                None => Self::Other(other.clone()),
            },
        }
    }

    /// The id as it goes back to a server that asked something.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Absent | Self::Null => Value::Null,
            Self::Number(n) => json!(n),
            Self::Text(s) => json!(s),
            Self::Other(value) => value.clone(),
        }
    }
}

/// The part of a reply that is not the id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Payload {
    Good(CallOutcome),
    /// Reply-shaped, but no client may accept it.
    Broken(ViolationKind, String),
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

/// Something wrong with a line as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) kind: ViolationKind,
    pub(crate) detail: String,
    /// The line looks like a reply that arrived damaged.
    pub(crate) damaged_reply: bool,
    /// The request it seems to answer, read from the damaged text.
    pub(crate) about: Option<u64>,
}

impl Finding {
    fn new(kind: ViolationKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            damaged_reply: false,
            about: None,
        }
    }

    fn damaged(kind: ViolationKind, detail: impl Into<String>, line: &str) -> Self {
        Self {
            damaged_reply: looks_like_message(line) && !line.contains("\"method\""),
            about: id_in_broken_text(line),
            ..Self::new(kind, detail)
        }
    }
}

/// What a line turned out to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Classified {
    pub(crate) messages: Vec<Message>,
    pub(crate) findings: Vec<Finding>,
    /// The line as text, damaged bytes replaced.
    pub(crate) raw: String,
}

/// Reads one line (without its newline).
pub(crate) fn classify(line: Vec<u8>) -> Classified {
    let mut out = Classified::default();
    out.raw = match String::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            out.findings.push(Finding::damaged(
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
        out.findings.push(Finding::new(ViolationKind::CrLf, ""));
    }
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        text = rest;
        out.findings
            .push(Finding::new(ViolationKind::ByteOrderMark, ""));
    }
    if text.trim().is_empty() {
        out.findings
            .push(Finding::new(ViolationKind::BlankLine, ""));
        return out;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) if items.iter().any(is_message_like) => {
            let detail = format!("{} messages", items.len());
            out.findings
                .push(Finding::new(ViolationKind::Batch, detail));
            for item in items {
                read_message(item, &mut out.messages, &mut out.findings);
            }
        }
        Ok(value) => read_message(value, &mut out.messages, &mut out.findings),
        Err(error) => {
            let finding = if !looks_like_message(text) {
                Finding::new(ViolationKind::StdoutNoise, "")
            } else if error.to_string().contains("recursion limit") {
                Finding::damaged(ViolationKind::TooDeep, error.to_string(), text)
            } else {
                Finding::damaged(ViolationKind::UnparsableJson, error.to_string(), text)
            };
            out.findings.push(finding);
        }
    }
    out
}

/// Whether broken text was meant as a message rather than as a log line.
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

fn read_message(value: Value, messages: &mut Vec<Message>, findings: &mut Vec<Finding>) {
    let Value::Object(mut object) = value else {
        findings.push(Finding::new(
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
    let id = Id::read(&object);
    if let Some(Value::String(method)) = object.get("method") {
        // Without the version this is as likely a log record as a message.
        if let Some(detail) = version {
            findings.push(Finding::new(ViolationKind::BadJsonRpcVersion, detail));
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
        findings.push(Finding::new(ViolationKind::NotJsonRpc, ""));
        return;
    }
    if version.is_some() && id == Id::Absent {
        // A log record such as {"level":"error","error":"…"}.
        findings.push(Finding::new(ViolationKind::NotJsonRpc, ""));
        return;
    }
    let payload = match version {
        Some(detail) => Payload::Broken(ViolationKind::BadJsonRpcVersion, detail),
        None => read_payload(&mut object, findings),
    };
    messages.push(Message::Reply { id, payload });
}

fn read_payload(object: &mut Map<String, Value>, findings: &mut Vec<Finding>) -> Payload {
    match (object.shift_remove("result"), object.shift_remove("error")) {
        (Some(result), None) => Payload::Good(CallOutcome::Result(result)),
        (Some(result), Some(Value::Null)) => {
            // Old JSON-RPC habit: harmless, yet strict clients refuse it.
            findings.push(Finding::new(
                ViolationKind::ResultAndError,
                "error is null, taken as a result",
            ));
            Payload::Good(CallOutcome::Result(result))
        }
        (Some(_), Some(_)) => Payload::Broken(ViolationKind::ResultAndError, String::new()),
        (None, None) => Payload::Broken(ViolationKind::NoResultOrError, String::new()),
        (None, Some(error)) => match read_error(error) {
            Ok(error) => Payload::Good(CallOutcome::Error(error)),
            Err(detail) => Payload::Broken(ViolationKind::MalformedError, detail),
        },
    }
}

fn read_error(error: Value) -> Result<RpcError, String> {
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

/// Finds the top-level id in damaged JSON, as far as that can be told: only
/// before the payload begins, since ids inside it are the tool's business.
fn id_in_broken_text(text: &str) -> Option<u64> {
    let payload = ["\"result\"", "\"error\"", "\"params\""]
        .iter()
        .filter_map(|key| text.find(key))
        .min()
        .unwrap_or(text.len());
    let head = &text[..payload];
    let after = head[head.find("\"id\"")? + 4..].trim_start();
    let after = after.strip_prefix(':')?.trim_start();
    let digits = after.find(|c: char| !c.is_ascii_digit())?;
    // A number cut off by the damage could be any longer number.
    after[digits..]
        .trim_start()
        .starts_with([',', '}'])
        .then_some(())?;
    after[..digits].parse().ok()
}

/// The line for a request or, without an id, a notification.
pub(crate) fn encode_call(id: Option<u64>, method: &str, params: Option<Value>) -> Vec<u8> {
    let mut line = br#"{"jsonrpc":"2.0","#.to_vec();
    if let Some(id) = id {
        line.extend_from_slice(format!("\"id\":{id},").as_bytes());
    }
    line.extend_from_slice(br#""method":"#);
    append(&mut line, &Value::from(method));
    if let Some(params) = params {
        line.extend_from_slice(br#","params":"#);
        append(&mut line, &params);
    }
    line.extend_from_slice(b"}\n");
    line
}

/// The line that answers a request of the server.
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

/// Compact JSON never holds a raw newline, so one line is one frame.
fn append(line: &mut Vec<u8>, value: &Value) {
    // A value has texts for keys, and writing to memory cannot fail.
    let _ = serde_json::to_writer(line, value);
}

#[cfg(test)]
mod tests;
