//! The output of `codex exec --json`.
//!
//! An MCP call is an `mcp_tool_call` item; it failed if its `status` is `failed`. Commands, edits
//! and searches of Codex itself are items of other types, and become calls of these names:
//! `command_execution`, `file_change`, `web_search`. An item of type `error` is a warning. The
//! stream does not show where a model turn ends, so calls have no turn.

use mcptest_trace::trace::Trace;
use serde_json::{Map, Value, json};

use super::usage;
use crate::agent_log::{self, Event, structured};
use crate::builder::{Call, Reply, TraceBuilder};
use crate::content::{count, string};

pub(super) fn read(lines: Vec<Event<'_>>) -> Vec<Trace> {
    // Events have no id of their thread: they belong to the last one that started.
    let mut thread = String::new();
    let threads = agent_log::groups(lines, |line| {
        if line.string("type") == Some("thread.started") {
            thread = line.string("thread_id").unwrap_or_default().to_owned();
        }
        thread.clone()
    });
    threads.iter().map(|events| thread_trace(events)).collect()
}

fn thread_trace(events: &[Event<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut starts = 0;
    let mut last_usage = None;
    let mut end = None;
    for event in events {
        match event.string("type").unwrap_or_default() {
            "thread.started" => {
                // A resumed thread numbers its items from the start again.
                starts += 1;
                if let Some(thread) = event.string("thread_id") {
                    builder.trace.extra.insert("session", thread.to_owned());
                }
            }
            kind @ ("item.started" | "item.updated" | "item.completed") => {
                if let Some(item) = event.value.get("item") {
                    let source = format!("{}/item", event.source);
                    add(
                        &mut builder,
                        item,
                        starts,
                        kind == "item.completed",
                        &source,
                    );
                }
            }
            "turn.started" => end = None,
            "turn.completed" => {
                last_usage = event.value.get("usage").and_then(usage);
                end = Some(event);
            }
            "turn.failed" => end = Some(event),
            _ => {}
        }
    }
    builder.usage(last_usage);
    match end {
        Some(end) if end.string("type") == Some("turn.failed") => {
            let message = end.value.pointer("/error/message").and_then(Value::as_str);
            agent_log::provider_failed(&mut builder, None, message.unwrap_or("the turn failed"));
        }
        Some(_) => {
            builder.trace.extra.insert("stop_reason", "end");
        }
        None => agent_log::incomplete(&mut builder, "`turn.completed`"),
    }
    let mut trace = builder.finish();
    for call in &mut trace.tool_calls {
        call.turn = None;
    }
    trace
}

fn add(builder: &mut TraceBuilder, item: &Value, starts: usize, completed: bool, source: &str) {
    let kind = string(item, "type").unwrap_or_default();
    if kind == "agent_message" {
        if completed {
            builder.turn("assistant", item.get("text").cloned());
        }
        return;
    }
    let (name, args) = match kind {
        "mcp_tool_call" => (item.get("tool").cloned(), item.get("arguments").cloned()),
        "command_execution" => (Some(kind.into()), part(item, &["command"])),
        "file_change" => (Some(kind.into()), part(item, &["changes"])),
        "web_search" => (Some(kind.into()), part(item, &["query", "action"])),
        _ => return,
    };
    let id = item
        .get("id")
        .filter(|id| !id.is_null())
        .map(|id| match (id, starts) {
            (Value::String(id), 2..) => format!("{starts}/{id}").into(),
            (id, _) => id.clone(),
        });
    builder.call_once(Call {
        id: id.clone(),
        name: name.unwrap_or_default(),
        server: string(item, "server").map(str::to_owned),
        args,
        source: Some(source.to_owned()),
        ..Call::default()
    });
    if completed {
        builder.result_once(reply(item, kind, id));
    }
}

/// Some keys of an item as arguments.
fn part(item: &Value, keys: &[&str]) -> Option<Value> {
    let pairs = keys
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), item.get(key)?.clone())));
    Some(Value::Object(pairs.collect::<Map<_, _>>()))
}

fn reply(item: &Value, kind: &str, call_id: Option<Value>) -> Reply {
    let failed = match string(item, "status") {
        Some("failed" | "declined") => Some(true),
        Some("completed") => Some(false),
        _ => None,
    };
    let code = item.get("exit_code").and_then(Value::as_i64);
    let result = item.get("result").filter(|result| !result.is_null());
    let content = match kind {
        "mcp_tool_call" => result.and_then(|result| result.get("content")).cloned(),
        "command_execution" => item.get("aggregated_output").cloned(),
        _ => None,
    };
    let error = item.pointer("/error/message").cloned();
    let mut extra = structured(result.and_then(|result| result.get("structured_content")));
    if let Some(code) = count(item, &["exit_code"]) {
        extra.push(("exit_code", json!(code)));
    }
    Reply {
        call_id,
        is_error: if error.is_some() || code.is_some_and(|code| code != 0) {
            Some(true)
        } else {
            failed
        },
        content: content.or(error),
        extra,
    }
}
