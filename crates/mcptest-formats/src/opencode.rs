//! opencode: `--format opencode`.
//!
//! Checked with opencode 1.18.33: the output of `opencode run --format json`, and of `opencode
//! export`.
//!
//! A tool of a server is `SERVER_TOOL`. The name does not show where the server ends: it is split
//! at the first `_`, unless it is a tool of opencode itself. Usage is that of each step, without
//! cached tokens, and is added up. Events of calls come when calls end; their parts have ids in the
//! order of the calls.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::agent_log::{self, Event};
use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{count, id, string};
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of opencode's output.
pub(crate) struct OpenCode;

static FORMAT: Format = Format {
    name: "opencode",
    reads: "the output of `opencode run --format json`, and of `opencode export`",
    versions: "opencode 1.18.33",
    unknown: "offered tools; with `run` also the prompt and the model",
};

/// The tools of opencode itself whose names have a `_`.
const OWN_TOOLS: [&str; 3] = ["apply_patch", "plan_enter", "plan_exit"];

impl Reader for OpenCode {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        match input.documents() {
            [one] if is_export(&one.value) => Detection::Match,
            _ => agent_log::detect(input, |event| {
                event.get("sessionID").is_some()
                    && match string(event, "type") {
                        Some("error") => event.get("error").is_some(),
                        Some("step_start" | "step_finish" | "text" | "tool_use" | "reasoning") => {
                            event.get("part").is_some_and(Value::is_object)
                        }
                        _ => false,
                    }
            }),
        }
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut exports = Vec::new();
        for document in input.documents() {
            if is_export(&document.value) {
                exports.push(export(document)?);
            }
        }
        if !exports.is_empty() {
            return Ok(exports);
        }
        let events = agent_log::events(FORMAT.name, input)?;
        if let Some(other) = events
            .iter()
            .find(|event| event.string("sessionID").is_none())
        {
            return Err(other
                .document
                .wrong(FORMAT.name, other.value, "`sessionID` is missing"));
        }
        let sessions = agent_log::groups(events, |event| {
            event.string("sessionID").unwrap_or_default().to_owned()
        });
        Ok(sessions.iter().map(|events| session(events)).collect())
    }
}

fn is_export(value: &Value) -> bool {
    value.pointer("/info/id").is_some_and(Value::is_string)
        && value.get("messages").is_some_and(Value::is_array)
        && value
            .get("info")
            .is_some_and(|info| info.get("projectID").is_some() || info.get("directory").is_some())
}

/// The steps of a run: usage, cost and the reason of the last one.
#[derive(Default)]
struct Steps {
    cost: Option<f64>,
    reason: Option<String>,
}

impl Steps {
    fn add(&mut self, builder: &mut TraceBuilder, part: &Value) {
        builder.usage(part.get("tokens").and_then(usage));
        if let Some(cost) = part.get("cost").and_then(Value::as_f64) {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
        self.reason = string(part, "reason").map(str::to_owned);
    }

    /// Returns true if the last step ended the run.
    fn finish(self, builder: &mut TraceBuilder) -> bool {
        if let Some(cost) = self.cost {
            builder.trace.extra.insert("cost_usd", json!(cost));
        }
        match self.reason.as_deref() {
            None | Some("tool-calls" | "unknown") => false,
            Some("length") => {
                builder.trace.extra.insert("stop_reason", "max_tokens");
                true
            }
            Some(_) => {
                builder.trace.extra.insert("stop_reason", "end");
                true
            }
        }
    }
}

fn session(events: &[Event<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut steps = Steps::default();
    let mut calls: Vec<(&Value, String)> = Vec::new();
    for event in events {
        if let Some(session) = event.string("sessionID") {
            builder.trace.extra.insert("session", session.to_owned());
        }
        let part = event.value.get("part").unwrap_or(&Value::Null);
        match event.string("type").unwrap_or_default() {
            "step_start" => {
                add_calls(&mut builder, &mut calls);
                builder.turn("assistant", None);
            }
            "text" => builder.say(string(part, "text").unwrap_or_default()),
            "tool_use" => calls.push((part, format!("{}/part", event.source))),
            "step_finish" => {
                add_calls(&mut builder, &mut calls);
                steps.add(&mut builder, part);
            }
            "error" => failed(&mut builder, event.value.get("error")),
            _ => {}
        }
    }
    add_calls(&mut builder, &mut calls);
    if !steps.finish(&mut builder) && builder.trace.error.is_none() {
        agent_log::incomplete(
            &mut builder,
            "`step_finish` with another reason than `tool-calls`",
        );
    }
    builder.finish()
}

/// Adds the calls of a step in the order in which the model made them.
fn add_calls(builder: &mut TraceBuilder, calls: &mut Vec<(&Value, String)>) {
    calls.sort_by_key(|(part, _)| string(part, "id").unwrap_or_default());
    for (part, source) in calls.drain(..) {
        add_call(builder, part, source);
    }
}

fn add_call(builder: &mut TraceBuilder, part: &Value, source: String) {
    let recorded = part.get("tool").cloned().unwrap_or_default();
    let state = part.get("state").unwrap_or(&Value::Null);
    let split = recorded.as_str().and_then(split);
    let (name, server, extra) = match split {
        Some((server, tool)) => (
            tool.into(),
            Some(server.to_owned()),
            vec![("wire_name", recorded.clone())],
        ),
        None => (recorded.clone(), None, Vec::new()),
    };
    let call_id = id(part, "callID").cloned();
    builder.call_once(Call {
        id: call_id.clone(),
        name,
        server,
        args: state.get("input").cloned(),
        source: Some(source),
        extra,
        ..Call::default()
    });
    let (is_error, content) = match string(state, "status") {
        Some("completed") => (false, state.get("output")),
        Some("error") => (true, state.get("error")),
        _ => return,
    };
    builder.result_once(Reply {
        call_id,
        is_error: Some(is_error),
        content: content.cloned(),
        extra: Vec::new(),
    });
}

/// Splits `server_tool`.
fn split(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.split_once('_')?;
    let own = OWN_TOOLS.contains(&name) || server.is_empty() || tool.is_empty();
    (!own).then_some((server, tool))
}

/// The usage of a step. Cached tokens and hidden reasoning are apart.
fn usage(tokens: &Value) -> Option<Usage> {
    let cached_input = count(tokens, &["cache", "read"]);
    let cache_write = count(tokens, &["cache", "write"]);
    let reasoning = count(tokens, &["reasoning"]);
    let with = |count: Option<u64>, more: &[Option<u64>]| {
        let more = more
            .iter()
            .flatten()
            .fold(0_u64, |sum, one| sum.saturating_add(*one));
        count.map(|count| count.saturating_add(more))
    };
    let usage = Usage {
        input: with(count(tokens, &["input"]), &[cached_input, cache_write]),
        output: with(count(tokens, &["output"]), &[reasoning]),
        total: count(tokens, &["total"]),
        cached_input,
        cache_write,
        reasoning,
    };
    (!usage.is_unknown()).then_some(usage)
}

fn failed(builder: &mut TraceBuilder, error: Option<&Value>) {
    let error = error.unwrap_or(&Value::Null);
    let message = error.pointer("/data/message").and_then(Value::as_str);
    let message = message
        .or_else(|| string(error, "name"))
        .unwrap_or("the agent failed");
    agent_log::provider_failed(builder, count(error, &["data", "statusCode"]), message);
}

/// The trace of an exported session.
fn export(document: &Document) -> Result<Trace, FormatError> {
    let value = &document.value;
    let mut builder = TraceBuilder::new();
    let mut steps = Steps::default();
    if let Some(session) = value.pointer("/info/id").and_then(Value::as_str) {
        builder.trace.extra.insert("session", session.to_owned());
    }
    for (at, message) in document
        .array(FORMAT.name, value, "messages")?
        .iter()
        .enumerate()
    {
        document.object(FORMAT.name, message)?;
        let info = message.get("info").unwrap_or(&Value::Null);
        let parts = message.get("parts").and_then(Value::as_array);
        let parts = parts.map_or(&[][..], Vec::as_slice);
        let of_user = string(info, "role") == Some("user");
        if of_user {
            builder.turn("user", None);
        } else if let Some(model) = string(info, "modelID") {
            builder
                .trace
                .model
                .get_or_insert_with(|| model.to_owned().into());
        }
        let mut started = of_user;
        for (number, part) in parts.iter().enumerate() {
            let written = part.get("synthetic") != Some(&Value::Bool(true));
            match string(part, "type").unwrap_or_default() {
                "step-start" => {
                    builder.turn("assistant", None);
                    started = true;
                }
                "text" if written => {
                    if !started {
                        builder.turn("assistant", None);
                        started = true;
                    }
                    builder.say(string(part, "text").unwrap_or_default());
                }
                "tool" => {
                    let source = format!("/messages/{at}/parts/{number}");
                    add_call(&mut builder, part, source);
                }
                "step-finish" => steps.add(&mut builder, part),
                _ => {}
            }
        }
        if let Some(error) = info.get("error").filter(|error| !error.is_null()) {
            failed(&mut builder, Some(error));
        }
    }
    steps.finish(&mut builder);
    Ok(builder.finish())
}

#[cfg(test)]
mod tests;
