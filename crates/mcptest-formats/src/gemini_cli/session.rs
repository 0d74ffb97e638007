//! Gemini CLI's session files.
//!
//! A file is a log of messages and of changes (`$set`). A message is written again, under its id,
//! when its calls are done: the last one counts. Files of earlier versions are one object with all
//! `messages`.

use std::collections::HashMap;

use mcptest_trace::trace::Trace;
use serde_json::Value;

use super::{failure, is_error, named, unwrapped};
use crate::agent_log::{self, Event};
use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{count, id, string, text};

/// Returns true for the first line of a session.
pub(super) fn is_header(value: &Value) -> bool {
    value.get("sessionId").is_some()
        && value.get("projectHash").is_some()
        && value.get("messages").is_none_or(Value::is_array)
}

/// Returns true for a whole session in one object.
pub(super) fn is_whole(value: &Value) -> bool {
    is_header(value) && value.get("messages").is_some()
}

pub(super) fn read(events: Vec<Event<'_>>) -> Vec<Trace> {
    let mut number = 0;
    let sessions = agent_log::groups(events, |event| {
        if is_header(event.value) {
            number += 1;
        }
        number.to_string()
    });
    sessions.iter().map(|events| session(events)).collect()
}

/// Messages in the order in which they were first written.
#[derive(Default)]
struct Messages<'v> {
    list: Vec<(&'v Value, String)>,
    place: HashMap<&'v str, usize>,
}

impl<'v> Messages<'v> {
    fn add(&mut self, message: &'v Value, source: String) {
        let known = string(message, "id").and_then(|id| self.place.get(id));
        match known.and_then(|at| self.list.get_mut(*at)) {
            Some(known) => *known = (message, source),
            None => {
                if let Some(id) = string(message, "id") {
                    self.place.insert(id, self.list.len());
                }
                self.list.push((message, source));
            }
        }
    }

    fn replace(&mut self, messages: &'v [Value], source: &str) {
        *self = Self::default();
        for (at, message) in messages.iter().enumerate() {
            self.add(message, format!("{source}/{at}"));
        }
    }

    /// Removes a message and those after it.
    fn rewind(&mut self, id: &str) {
        if let Some(at) = self.place.get(id).copied() {
            self.list.truncate(at);
            self.place.retain(|_, place| *place < at);
        }
    }
}

fn session(events: &[Event<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut messages = Messages::default();
    for event in events {
        let source = &event.source;
        if let Some(session) = event.string("sessionId") {
            builder.trace.extra.insert("session", session.to_owned());
        }
        if let Some(Value::Array(all)) = event.value.get("messages") {
            messages.replace(all, &format!("{source}/messages"));
        } else if let Some(set) = event.value.get("$set") {
            if let Some(Value::Array(all)) = set.get("messages") {
                messages.replace(all, &format!("{source}/$set/messages"));
            }
        } else if let Some(id) = event.string("$rewindTo") {
            messages.rewind(id);
        } else if event.string("type").is_some() {
            messages.add(event.value, source.clone());
        }
    }
    for (message, source) in &messages.list {
        match string(message, "type") {
            Some("user") => add_user(&mut builder, message),
            Some("gemini") => add_answer(&mut builder, message, source),
            _ => {}
        }
    }
    builder.finish()
}

fn add_user(builder: &mut TraceBuilder, message: &Value) {
    let content = message.get("content");
    let parts = content
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    if parts
        .iter()
        .any(|part| part.get("functionResponse").is_some())
    {
        return;
    }
    let text = content.and_then(text);
    // The first message is written by Gemini CLI itself.
    if text
        .as_deref()
        .is_some_and(|text| text.starts_with("<session_context>"))
    {
        return;
    }
    builder.turn("user", text.map(Value::from));
}

fn add_answer(builder: &mut TraceBuilder, message: &Value, source: &str) {
    let text = message
        .get("content")
        .and_then(text)
        .filter(|text| !text.is_empty());
    builder.turn("assistant", text.map(Value::from));
    if let Some(model) = string(message, "model") {
        builder
            .trace
            .model
            .get_or_insert_with(|| model.to_owned().into());
    }
    builder.usage(message.get("tokens").and_then(usage));
    let calls = message.get("toolCalls").and_then(Value::as_array);
    for (at, call) in calls.into_iter().flatten().enumerate() {
        let (name, server, extra) = named(call, "name");
        builder.call(Call {
            id: id(call, "id").cloned(),
            name,
            server,
            args: call.get("args").cloned(),
            source: Some(format!("{source}/toolCalls/{at}")),
            extra,
            ..Call::default()
        });
        if let Some(reply) = reply(call) {
            builder.result(reply);
        }
    }
}

/// The result of a call; `None` while it runs.
fn reply(call: &Value) -> Option<Reply> {
    let response = call.pointer("/result/0/functionResponse/response");
    let flag = is_error(string(call, "status"));
    if response.is_none() && flag.is_none() {
        return None;
    }
    let error = response.and_then(|response| string(response, "error"));
    let output = response.and_then(|response| response.get("output"));
    Some(Reply {
        call_id: id(call, "id").cloned(),
        is_error: flag,
        content: match (error, output) {
            (Some(message), _) => Some(failure(message)),
            (None, Some(Value::String(text))) => Some(unwrapped(text).into()),
            (None, Some(other)) => Some(other.clone()),
            (None, None) => response.cloned(),
        },
        extra: Vec::new(),
    })
}

/// The usage of one request: hidden reasoning and the prompts of Gemini's own tools are apart.
fn usage(tokens: &Value) -> Option<Usage> {
    let more = |key: &str| count(tokens, &[key]).unwrap_or(0);
    let usage = Usage {
        input: count(tokens, &["input"]).map(|input| input.saturating_add(more("tool"))),
        output: count(tokens, &["output"]).map(|output| output.saturating_add(more("thoughts"))),
        total: count(tokens, &["total"]),
        cached_input: count(tokens, &["cached"]),
        cache_write: None,
        reasoning: count(tokens, &["thoughts"]),
    };
    (!usage.is_unknown()).then_some(usage)
}
