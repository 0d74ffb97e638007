//! Captures of MCP traffic: `--format mcp-jsonrpc`.
//!
//! Written for MCP 2024-11-05 to 2026-07-28: JSON-RPC messages of both directions, one per line, in
//! an array or as batches. Records around messages are read too: agent-vcr
//! (`session.interactions`), mcp-recorder (`interactions`), mcp-debug (`direction`, `message`),
//! mcpsnoop (`direction`, `raw`) and mcporter (`_meta` next to the message).
//!
//! A call is a request `tools/call`; its result is the response with the same id, per connection. A
//! call without a response has no result. `isError` or a JSON-RPC error mark a failed call. A call
//! that the server answers with `input_required` is continued by the client: both are one call. The
//! catalog is that of `tools/list`.

use std::collections::{HashMap, VecDeque};

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::builder::{Call, Reply, TraceBuilder};
use crate::content::string;
use crate::error::FormatError;
use crate::input::{Input, a_type};
use crate::reader::{Detection, Format, Grouping, Reader, by_document};

/// The reader of MCP captures.
pub(crate) struct McpJsonRpc;

static FORMAT: Format = Format {
    name: "mcp-jsonrpc",
    reads: "JSON-RPC messages of both directions (lines, arrays, batches), and the recordings of \
            agent-vcr, mcp-recorder, mcp-debug, mcpsnoop and mcporter",
    versions: "MCP 2024-11-05 to 2026-07-28; agent-vcr 1.0, mcp-recorder 1.0, mcp-debug, mcpsnoop \
               and mcporter as of 2026",
    unknown: "the model, its messages, tokens, turns; the server, unless the recording names it",
};

/// A message with the facts of the record around it.
struct Message<'v> {
    message: &'v Value,
    /// True if the client sent it, false if the server did.
    from_client: Option<bool>,
    server: Option<&'v str>,
    session: Option<&'v str>,
    /// The tool of a message that has no id to join by.
    tool: Option<&'v str>,
    source: String,
}

impl Reader for McpJsonRpc {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_document(input, |document| detect(&document.value))
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut sessions: Vec<Session> = Vec::new();
        let mut places: HashMap<Option<&str>, usize> = HashMap::new();
        let whole = input.documents().len() == 1;
        for document in input.documents() {
            let mut messages = Vec::new();
            if !unwrap(&document.value, String::new(), &mut messages) {
                let found = a_type(&document.value);
                let message = format!("expected a JSON-RPC message or a recording, found {found}");
                return Err(document.wrong(FORMAT.name, &document.value, message));
            }
            for mut message in messages {
                if !whole {
                    let source = format!("line {} {}", document.line, message.source);
                    message.source = source.trim_end().to_owned();
                }
                let at = *places.entry(message.session).or_insert_with(|| {
                    sessions.push(Session::default());
                    sessions.len() - 1
                });
                if let Some(session) = sessions.get_mut(at) {
                    session.add(message);
                }
            }
        }
        Ok(sessions
            .into_iter()
            .map(|session| session.builder.finish())
            .collect())
    }
}

fn is_message(value: &Value) -> bool {
    string(value, "jsonrpc") == Some("2.0")
        && (value.get("method").is_some()
            || value.get("result").is_some()
            || value.get("error").is_some())
}

fn detect(value: &Value) -> Detection {
    let array = |value: &Value, key: &str| value.get(key).is_some_and(Value::is_array);
    match value {
        Value::Array(items) if items.is_empty() => Detection::No,
        Value::Array(items) => Detection::of_all(items.iter().map(detect)),
        _ if is_message(value) => Detection::Match,
        _ if value.get("jsonrpc").is_some() => Detection::close(
            "a message has `jsonrpc`, but neither `method` nor `result` nor `error`",
        ),
        _ if array(value, "interactions") => interactions(value),
        _ if value
            .get("session")
            .is_some_and(|session| array(session, "interactions")) =>
        {
            value.get("session").map_or(Detection::No, interactions)
        }
        _ if is_mcp_debug(value) || is_mcp_debug_header(value) => Detection::Match,
        _ if is_mcpsnoop(value) => Detection::Match,
        _ => Detection::No,
    }
}

/// Detects a list of requests with their responses.
fn interactions(recording: &Value) -> Detection {
    let list = recording.get("interactions").and_then(Value::as_array);
    let mut list = list.into_iter().flatten();
    let parts = |one: &Value| [one.get("request").cloned(), one.get("response").cloned()];
    if list.any(|one| parts(one).iter().flatten().any(is_message)) {
        Detection::Match
    } else {
        Detection::close("no entry of `interactions` has a JSON-RPC message")
    }
}

fn is_mcp_debug(value: &Value) -> bool {
    value.get("message_type").is_some()
        && value.get("message").is_some()
        && matches!(string(value, "direction"), Some("request" | "response"))
}

fn is_mcp_debug_header(value: &Value) -> bool {
    value.get("start_time").is_some()
        && value.get("server_info").is_some()
        && value.get("messages").is_some_and(Value::is_array)
}

fn is_mcpsnoop(value: &Value) -> bool {
    value.get("session_id").is_some()
        && value.get("seq").is_some()
        && matches!(
            string(value, "direction"),
            Some("c2s" | "s2c" | "stderr" | "meta")
        )
}

/// Takes the messages out of a document. Returns false if it is not known.
fn unwrap<'v>(value: &'v Value, source: String, messages: &mut Vec<Message<'v>>) -> bool {
    let plain = |message: &'v Value, source: String| Message {
        message,
        from_client: None,
        server: None,
        session: None,
        tool: None,
        source,
    };
    if let Value::Array(items) = value {
        let mut items = items.iter().enumerate();
        return items.all(|(at, item)| unwrap(item, format!("{source}/{at}"), messages));
    }
    if string(value, "jsonrpc").is_some() {
        let meta = value.get("_meta");
        let direction = meta.and_then(|meta| string(meta, "dir"));
        messages.push(Message {
            from_client: direction.map(|direction| direction == "send"),
            server: meta.and_then(|meta| string(meta, "server")),
            ..plain(value, source)
        });
        return true;
    }
    let inner = value
        .get("session")
        .filter(|session| session.get("interactions").is_some());
    let (recording, place) = match inner {
        Some(session) => (session, "/session"),
        None => (value, ""),
    };
    if let Some(interactions) = recording.get("interactions").and_then(Value::as_array) {
        for (from_client, key) in [(true, "initialize_request"), (false, "initialize_response")] {
            if let Some(message) = recording.get(key) {
                messages.push(Message {
                    from_client: Some(from_client),
                    ..plain(message, format!("{source}{place}/{key}"))
                });
            }
        }
        for (at, one) in interactions.iter().enumerate() {
            let to_server = string(one, "direction") != Some("server_to_client");
            for (from_client, key) in [(to_server, "request"), (!to_server, "response")] {
                if let Some(message) = one.get(key).filter(|message| message.is_object()) {
                    messages.push(Message {
                        from_client: Some(from_client),
                        ..plain(message, format!("{source}{place}/interactions/{at}/{key}"))
                    });
                }
            }
        }
        return true;
    }
    if is_mcp_debug(value) {
        if let Some(message) = value.get("message") {
            messages.push(Message {
                from_client: Some(string(value, "direction") == Some("request")),
                server: string(value, "server_name"),
                tool: string(value, "tool_name"),
                ..plain(message, format!("{source}/message"))
            });
        }
        return true;
    }
    if is_mcp_debug_header(value) {
        let inside = value.get("messages").and_then(Value::as_array);
        let mut inside = inside.into_iter().flatten().enumerate();
        return inside.all(|(at, one)| unwrap(one, format!("{source}/messages/{at}"), messages));
    }
    if is_mcpsnoop(value) {
        let from_client = match string(value, "direction") {
            Some("c2s") => Some(true),
            Some("s2c") => Some(false),
            _ => return true,
        };
        if let Some(message) = value.get("raw").filter(|message| !message.is_null()) {
            messages.push(Message {
                from_client,
                server: string(value, "server_label"),
                session: string(value, "session_id"),
                ..plain(message, format!("{source}/raw"))
            });
        }
        return true;
    }
    false
}

/// A request that waits for its response.
enum Pending {
    /// The id in the trace, and the key of the tool.
    Call(Value, String),
    List(Option<String>),
    Other,
}

/// The state of one session.
#[derive(Default)]
struct Session {
    builder: TraceBuilder,
    /// The requests that wait, by connection, side and id.
    pending: HashMap<String, VecDeque<Pending>>,
    /// Calls that the server answered with a request for input, by connection and tool.
    paused: HashMap<String, VecDeque<Value>>,
    calls: usize,
}

impl Session {
    fn add(&mut self, message: Message<'_>) {
        if let Value::Array(batch) = message.message {
            for (at, one) in batch.iter().enumerate() {
                let source = format!("{}/{at}", message.source);
                self.add(Message {
                    message: one,
                    source,
                    ..message
                });
            }
            return;
        }
        if message.message.get("method").is_some() {
            self.request(&message);
        } else {
            self.response(&message);
        }
    }

    /// The key of a request and of its response: ids are unique for one side of a connection.
    fn key(message: &Message<'_>, from_client: Option<bool>) -> Option<String> {
        let side = match from_client {
            Some(true) | None => "c",
            Some(false) => "s",
        };
        let id = message.message.get("id").filter(|id| !id.is_null());
        let id = match (id, message.tool) {
            (Some(id), _) => id.to_string(),
            (None, Some(tool)) => format!("tool {tool}"),
            (None, None) => return None,
        };
        Some(format!(
            "{side} {id} {}",
            message.server.unwrap_or_default()
        ))
    }

    fn request(&mut self, message: &Message<'_>) {
        let pending = match string(message.message, "method") {
            Some("tools/call") if message.from_client != Some(false) => {
                let (id, tool) = self.call(message);
                Pending::Call(id, tool)
            }
            Some("tools/list") => Pending::List(message.server.map(str::to_owned)),
            _ => Pending::Other,
        };
        if let Some(key) = Self::key(message, message.from_client) {
            self.pending.entry(key).or_default().push_back(pending);
        }
    }

    /// Adds a call and returns its id in the trace and the key of its tool.
    fn call(&mut self, message: &Message<'_>) -> (Value, String) {
        let params = message.message.get("params").unwrap_or(&Value::Null);
        let name = params.get("name").cloned().unwrap_or_default();
        let tool = format!("{} {name}", message.server.unwrap_or_default());
        let continued = params.get("inputResponses").or(params.get("requestState"));
        if continued.is_some()
            && let Some(id) = self.paused.get_mut(&tool).and_then(VecDeque::pop_front)
        {
            return (id, tool);
        }
        // Ids of JSON-RPC may be used again, and by other connections.
        self.calls += 1;
        let id = Value::from(format!("c{}", self.calls));
        let mut extra = Vec::new();
        if let Some(id) = message.message.get("id") {
            extra.push(("jsonrpc_id", id.clone()));
        }
        self.builder.call(Call {
            id: Some(id.clone()),
            name,
            server: message.server.map(str::to_owned),
            args: params.get("arguments").cloned(),
            source: Some(message.source.clone()),
            extra,
            ..Call::default()
        });
        (id, tool)
    }

    fn response(&mut self, message: &Message<'_>) {
        let asked = message.from_client.map(|from_client| !from_client);
        let waiting = Self::key(message, asked).and_then(|key| self.pending.get_mut(&key));
        let Some(pending) = waiting.and_then(VecDeque::pop_front) else {
            return;
        };
        let error = message
            .message
            .get("error")
            .filter(|error| !error.is_null());
        // mcp-debug records the result itself.
        let whole = message.message.get("jsonrpc").is_none() && error.is_none();
        let result = message
            .message
            .get("result")
            .or(whole.then_some(message.message));
        match pending {
            Pending::Other => {
                if let Some(info) = result.and_then(|result| result.get("serverInfo")) {
                    self.builder.trace.extra.insert("server_info", info.clone());
                }
            }
            Pending::List(server) => {
                let tools = result.and_then(|result| result.get("tools")?.as_array());
                if tools.is_some() {
                    self.builder.tools_known();
                }
                for tool in tools.into_iter().flatten() {
                    self.builder.tool(with_server(tool, server.as_deref()));
                }
            }
            Pending::Call(id, tool) => {
                let required = result.and_then(|result| string(result, "resultType"));
                if required == Some("input_required") {
                    self.paused.entry(tool).or_default().push_back(id);
                    return;
                }
                self.builder.result(reply(id, result, error));
            }
        }
    }
}

fn with_server(tool: &Value, server: Option<&str>) -> Value {
    match (tool, server) {
        (Value::Object(map), Some(server)) => {
            let mut with = serde_json::Map::new();
            with.insert("server".to_owned(), server.into());
            with.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
            Value::Object(with)
        }
        _ => tool.clone(),
    }
}

fn reply(id: Value, result: Option<&Value>, error: Option<&Value>) -> Reply {
    let mut extra = Vec::new();
    if let Some(error) = error {
        extra.push(("error", error.clone()));
        let message = string(error, "message").unwrap_or_default();
        return Reply {
            call_id: Some(id),
            is_error: Some(true),
            content: Some(json!([{"type": "text", "text": message}])),
            extra,
        };
    }
    if let Some(structured) = result.and_then(|result| result.get("structuredContent")) {
        extra.push(("structured_content", structured.clone()));
    }
    let flag = result
        .and_then(|result| result.get("isError"))
        .and_then(Value::as_bool);
    Reply {
        call_id: Some(id),
        // An absent flag means success.
        is_error: Some(flag.unwrap_or(false)),
        content: result.and_then(|result| result.get("content")).cloned(),
        extra,
    }
}

#[cfg(test)]
mod tests;
