//! The output of `gemini -o stream-json` and `gemini -o json`.

use mcptest_trace::trace::Trace;
use serde_json::Value;

use super::{FORMAT, failure, is_error, named};
use crate::agent_log::{self, Event};
use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{count, id, string};
use crate::error::FormatError;
use crate::input::Document;

/// Returns true for an event that only this stream has.
pub(super) fn is_event(event: &Value) -> bool {
    match string(event, "type") {
        Some("init") => event.get("session_id").is_some() && event.get("model").is_some(),
        Some("tool_use") => event.get("tool_name").is_some() && event.get("tool_id").is_some(),
        Some("tool_result") => event.get("tool_id").is_some(),
        Some("result") => event.get("stats").is_some() && event.get("status").is_some(),
        _ => false,
    }
}

/// Returns true for the object of `-o json`.
pub(super) fn is_summary(value: &Value) -> bool {
    value.pointer("/stats/models").is_some_and(Value::is_object)
        && value.pointer("/stats/tools").is_some_and(Value::is_object)
}

pub(super) fn read(events: Vec<Event<'_>>) -> Vec<Trace> {
    // Each session starts with its `init`.
    let mut number = 0;
    let sessions = agent_log::groups(events, |event| {
        if event.string("type") == Some("init") {
            number += 1;
        }
        number.to_string()
    });
    sessions.iter().map(|events| session(events)).collect()
}

fn session(events: &[Event<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    // True while the events of one answer of the model follow one another.
    let mut in_answer = false;
    let mut end = None;
    for event in events {
        match event.string("type").unwrap_or_default() {
            "init" => {
                builder.trace.model = event.string("model").map(|model| model.to_owned().into());
                if let Some(session) = event.string("session_id") {
                    builder.trace.extra.insert("session", session.to_owned());
                }
            }
            "message" => {
                let text = event.string("content").unwrap_or_default();
                if event.string("role") == Some("assistant") {
                    answer(&mut builder, &mut in_answer);
                    builder.append_text(text);
                } else {
                    in_answer = false;
                    builder.turn("user", Some(text.into()));
                }
            }
            "tool_use" => {
                answer(&mut builder, &mut in_answer);
                let (name, server, extra) = named(event.value, "tool_name");
                builder.call(Call {
                    id: id(event.value, "tool_id").cloned(),
                    name,
                    server,
                    args: event.value.get("parameters").cloned(),
                    source: Some(event.source.clone()),
                    extra,
                    ..Call::default()
                });
            }
            "tool_result" => {
                in_answer = false;
                let error = event
                    .value
                    .pointer("/error/message")
                    .and_then(Value::as_str);
                builder.result(Reply {
                    call_id: id(event.value, "tool_id").cloned(),
                    is_error: is_error(event.string("status")),
                    content: match error {
                        Some(message) => Some(failure(message)),
                        None => event.value.get("output").cloned(),
                    },
                    extra: Vec::new(),
                });
            }
            "result" => end = Some(event),
            _ => {}
        }
    }
    match end {
        None => agent_log::incomplete(&mut builder, "`result`"),
        Some(end) => {
            builder.usage(end.value.get("stats").map(stats));
            if end.string("status") == Some("error") {
                let message = end.value.pointer("/error/message").and_then(Value::as_str);
                let message = message.unwrap_or("the agent failed");
                agent_log::provider_failed(&mut builder, None, message);
            } else {
                builder.trace.extra.insert("stop_reason", "end");
            }
        }
    }
    builder.finish()
}

/// Starts a turn, unless the answer has one already.
fn answer(builder: &mut TraceBuilder, in_answer: &mut bool) {
    if !*in_answer {
        builder.turn("assistant", None);
        *in_answer = true;
    }
}

/// The usage of a run. `output_tokens` has no hidden reasoning; the total has.
fn stats(stats: &Value) -> Usage {
    let input = count(stats, &["input_tokens"]);
    let total = count(stats, &["total_tokens"]);
    let rest = total
        .zip(input)
        .and_then(|(total, input)| total.checked_sub(input));
    let answer = count(stats, &["output_tokens"]);
    Usage {
        input,
        output: rest
            .filter(|rest| answer.is_none_or(|answer| *rest >= answer))
            .or(answer),
        total,
        cached_input: count(stats, &["cached"]),
        ..Usage::default()
    }
}

/// The trace of the object of `-o json`.
pub(super) fn summary(document: &Document) -> Result<Trace, FormatError> {
    let value = &document.value;
    let mut builder = TraceBuilder::new();
    let tools = value
        .pointer("/stats/tools/byName")
        .and_then(Value::as_object);
    let called: Vec<(&String, &Value)> = tools
        .into_iter()
        .flatten()
        .filter(|(_, tool)| count(tool, &["count"]) != Some(0))
        .collect();
    if let [_, (_, second), ..] = called.as_slice() {
        return Err(document.wrong(
            FORMAT.name,
            second,
            "`-o json` does not record the order of calls: record the run with `-o stream-json`, \
             or read the session file",
        ));
    }
    for (name, tool) in called {
        let (name, server, extra) = named(&serde_json::json!({"name": name}), "name");
        let number = count(tool, &["count"]).unwrap_or(0);
        // The flag of each result is known if all are the same.
        let flag = match (count(tool, &["success"]), count(tool, &["fail"])) {
            (Some(succeeded), _) if succeeded == number => Some(false),
            (_, Some(failed)) if failed == number => Some(true),
            _ => None,
        };
        // No session has nearly as many calls.
        for at in 0..number.min(10_000) {
            let call_id = Some(Value::from(format!("c{}", at + 1)));
            builder.call(Call {
                id: call_id.clone(),
                name: name.clone(),
                server: server.clone(),
                extra: extra.clone(),
                ..Call::default()
            });
            if flag.is_some() {
                builder.result(Reply {
                    call_id,
                    is_error: flag,
                    ..Reply::default()
                });
            }
        }
    }
    let models = value.pointer("/stats/models").and_then(Value::as_object);
    for (model, stats) in models.into_iter().flatten() {
        builder
            .trace
            .model
            .get_or_insert_with(|| model.clone().into());
        builder.usage(stats.get("tokens").map(|tokens| {
            let reasoning = count(tokens, &["thoughts"]);
            Usage {
                input: count(tokens, &["prompt"])
                    .map(|input| input.saturating_add(count(tokens, &["tool"]).unwrap_or(0))),
                output: count(tokens, &["candidates"])
                    .map(|output| output.saturating_add(reasoning.unwrap_or(0))),
                total: count(tokens, &["total"]),
                cached_input: count(tokens, &["cached"]),
                cache_write: None,
                reasoning,
            }
        }));
    }
    if let Some(session) = string(value, "session_id") {
        builder.trace.extra.insert("session", session.to_owned());
    }
    match value.get("error").filter(|error| !error.is_null()) {
        Some(error) => {
            let message = string(error, "message").unwrap_or("the agent failed");
            agent_log::provider_failed(&mut builder, count(error, &["code"]), message);
        }
        None => {
            builder.trace.final_response =
                string(value, "response").map(|text| text.to_owned().into());
            builder.trace.extra.insert("stop_reason", "end");
        }
    }
    Ok(builder.finish())
}
