//! Codex's session files.
//!
//! The model's side of a call is a `response_item` (`function_call` with a `namespace` and a name
//! in which other characters than letters, digits and `_` are replaced); Codex's side is an event
//! with the server, the tool's own name, the result and its error flag. Both have the `call_id`,
//! and make one call. Without an event, the namespace gives the server.

use std::collections::HashMap;

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use super::usage;
use crate::agent_log::{self, Event, structured};
use crate::builder::{Call, Reply, TraceBuilder};
use crate::content::{arguments, id, string, text};

pub(super) fn read(lines: Vec<Event<'_>>) -> Vec<Trace> {
    // A file is one thread. Several files after one another are several.
    let mut session = String::new();
    let sessions = agent_log::groups(lines, |line| {
        if line.string("type") == Some("session_meta") {
            let id = line.value.pointer("/payload/id").and_then(Value::as_str);
            session = id.unwrap_or_default().to_owned();
        }
        session.clone()
    });
    let has_items = |lines: &&Vec<Event<'_>>| {
        lines
            .iter()
            .any(|line| line.string("type") == Some("response_item"))
    };
    sessions
        .iter()
        .filter(has_items)
        .map(|lines| session_trace(lines))
        .collect()
}

/// Codex's side of a call.
#[derive(Default)]
struct Executed<'v> {
    server: Option<&'v str>,
    tool: Option<&'v str>,
    is_error: Option<bool>,
    content: Option<Value>,
    structured: Option<&'v Value>,
}

fn session_trace(lines: &[Event<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let executed = executed(lines);
    let mut prompts = lines
        .iter()
        .filter_map(|line| prompt(line.value))
        .peekable();
    let has_prompts = prompts.peek().is_some();
    let mut last_usage = None;
    // True while items of one answer of the model follow one another.
    let mut in_answer = false;
    for line in lines {
        let Some(payload) = line.value.get("payload") else {
            continue;
        };
        match line.string("type").unwrap_or_default() {
            "session_meta" => {
                if let Some(session) = string(payload, "id") {
                    builder.trace.extra.insert("session", session.to_owned());
                }
            }
            "turn_context" => {
                if let Some(model) = string(payload, "model") {
                    builder.trace.model = Some(model.to_owned().into());
                }
            }
            "response_item" => {
                let source = format!("{}/payload", line.source);
                add_item(&mut builder, payload, &executed, &mut in_answer, &source);
                let role = string(payload, "role");
                if role == Some("user") && !has_prompts {
                    builder.turn("user", payload_text(payload).map(Value::from));
                }
            }
            "event_msg" => {
                if let Some(text) = prompt(line.value) {
                    builder.turn("user", Some(text));
                    in_answer = false;
                }
                match string(payload, "type").unwrap_or_default() {
                    "token_count" => {
                        let total = payload.pointer("/info/total_token_usage");
                        last_usage = total.and_then(usage).or(last_usage);
                    }
                    "task_complete" => finish(&mut builder, payload),
                    "task_started" => builder.trace.error = None,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    builder.usage(last_usage);
    builder.finish()
}

/// Records the end of a task.
fn finish(builder: &mut TraceBuilder, payload: &Value) {
    match payload.get("error").filter(|error| !error.is_null()) {
        Some(error) => {
            let message = string(error, "message").unwrap_or("the task failed");
            agent_log::provider_failed(builder, None, message);
        }
        None => {
            builder.trace.extra.insert("stop_reason", "end");
        }
    }
}

/// The prompt that an event shows. The items with the role `user` are also Codex's own.
fn prompt(line: &Value) -> Option<Value> {
    if string(line, "type") != Some("event_msg") {
        return None;
    }
    let payload = line.get("payload")?;
    match string(payload, "type")? {
        "user_message" => payload.get("message").cloned(),
        "item_completed" => {
            let item = payload.get("item")?;
            let is_prompt = string(item, "type") == Some("UserMessage");
            text(item.get("content").filter(|_| is_prompt)?).map(Value::from)
        }
        _ => None,
    }
}

fn executed<'v>(lines: &[Event<'v>]) -> HashMap<&'v str, Executed<'v>> {
    let mut all = HashMap::new();
    for line in lines {
        let Some(payload) = line.value.get("payload") else {
            continue;
        };
        match string(payload, "type") {
            Some("item_completed") => {
                let item = payload.get("item").unwrap_or(&Value::Null);
                let call = string(item, "id");
                if let (Some("McpToolCall"), Some(id)) = (string(item, "type"), call) {
                    all.insert(id, of_item(item));
                }
            }
            Some("mcp_tool_call_end") => {
                if let Some(id) = string(payload, "call_id") {
                    all.insert(id, of_end(payload));
                }
            }
            _ => {}
        }
    }
    all
}

fn of_item(item: &Value) -> Executed<'_> {
    let result = item.get("result").filter(|result| !result.is_null());
    let error = item.get("error").filter(|error| !error.is_null());
    let error_text = error.map(|error| error.get("message").unwrap_or(error).clone());
    Executed {
        server: string(item, "server"),
        tool: string(item, "tool"),
        is_error: match string(item, "status") {
            Some("failed" | "declined") => Some(true),
            Some("completed") => Some(false),
            _ => None,
        },
        content: result
            .and_then(|result| result.get("content").cloned())
            .or(error_text),
        structured: result.and_then(|result| result.get("structuredContent")),
    }
}

/// The event of earlier versions. Its result is `{"Ok": …}` or `{"Err": "…"}`.
fn of_end(payload: &Value) -> Executed<'_> {
    let invocation = payload.get("invocation").unwrap_or(&Value::Null);
    let result = payload.get("result");
    let answer = result.and_then(|result| result.get("Ok"));
    let error = result.and_then(|result| result.get("Err"));
    let flag = ["isError", "is_error"]
        .iter()
        .find_map(|key| answer?.get(key)?.as_bool());
    let structured = ["structuredContent", "structured_content"];
    Executed {
        server: string(invocation, "server"),
        tool: string(invocation, "tool"),
        is_error: match (answer, error) {
            (Some(_), _) => Some(flag.unwrap_or(false)),
            (None, Some(_)) => Some(true),
            (None, None) => None,
        },
        content: answer
            .and_then(|answer| answer.get("content").cloned())
            .or_else(|| error.cloned()),
        structured: structured.iter().find_map(|key| answer?.get(key)),
    }
}

fn payload_text(payload: &Value) -> Option<String> {
    payload.get("content").and_then(text)
}

fn add_item(
    builder: &mut TraceBuilder,
    item: &Value,
    executed: &HashMap<&str, Executed<'_>>,
    in_answer: &mut bool,
    source: &str,
) {
    let kind = string(item, "type").unwrap_or_default();
    let mut answer = |builder: &mut TraceBuilder| {
        if !*in_answer {
            builder.turn("assistant", None);
            *in_answer = true;
        }
    };
    match kind {
        "message" if string(item, "role") == Some("assistant") => {
            answer(builder);
            if let Some(text) = payload_text(item) {
                builder.say(&text);
            }
        }
        "reasoning" => answer(builder),
        "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call" => {
            answer(builder);
            let call_id = id(item, "call_id").or_else(|| id(item, "id"));
            let known = call_id
                .and_then(Value::as_str)
                .and_then(|id| executed.get(id));
            builder.call(call(item, kind, call_id, known, source));
        }
        "function_call_output" | "custom_tool_call_output" => {
            *in_answer = false;
            let call_id = id(item, "call_id");
            let known = call_id
                .and_then(Value::as_str)
                .and_then(|id| executed.get(id));
            builder.result(reply(item, call_id, known));
        }
        "message" => *in_answer = false,
        _ => {}
    }
}

fn call(
    item: &Value,
    kind: &str,
    call_id: Option<&Value>,
    known: Option<&Executed<'_>>,
    source: &str,
) -> Call {
    let recorded = item.get("name").cloned();
    let name = recorded.unwrap_or_else(|| kind.strip_suffix("_call").unwrap_or(kind).into());
    let args = match kind {
        "function_call" => item.get("arguments").map(arguments),
        "custom_tool_call" => item.get("input").cloned(),
        _ => item.get("action").cloned(),
    };
    let namespace = string(item, "namespace");
    let server = namespace.and_then(|space| space.strip_prefix("mcp__"));
    let server = known.and_then(|known| known.server).or(server);
    let tool = known.and_then(|known| known.tool);
    let mut extra = Vec::new();
    if let Some(space) = namespace {
        let name = name.as_str().unwrap_or_default();
        extra.push(("wire_name", json!(format!("{space}__{name}"))));
    }
    Call {
        id: call_id.cloned(),
        name: tool.map_or(name, Value::from),
        server: server.map(str::to_owned),
        args,
        source: Some(source.to_owned()),
        extra,
        ..Call::default()
    }
}

fn reply(item: &Value, call_id: Option<&Value>, known: Option<&Executed<'_>>) -> Reply {
    let output = item.get("output");
    let mut reply = Reply {
        call_id: call_id.cloned(),
        content: output.map(|output| output.get("content").unwrap_or(output).clone()),
        // Older versions have a flag beside the content.
        is_error: output
            .and_then(|output| output.get("success")?.as_bool())
            .map(|success| !success),
        extra: Vec::new(),
    };
    if let Some(known) = known {
        reply.is_error = known.is_error.or(reply.is_error);
        if let Some(content) = &known.content {
            reply.content = Some(content.clone());
        }
        reply.extra = structured(known.structured);
    }
    reply
}
