//! Claude Code's `--output-format stream-json`: `--format claude-stream`.
//!
//! Checked with Claude Code 2.1.325 (`claude -p … --output-format stream-json --verbose`; the
//! array of `--output-format json --verbose` has the same events).
//!
//! Messages are written while they are streamed, so their `usage` is that of their start; the usage
//! of a prompt is in its `result`. Messages with a `parent_tool_use_id` are a subagent's and left
//! out. `subtype` is `success` for failed runs too: `is_error` decides.

use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

use crate::agent_log::{self, Event};
use crate::anthropic;
use crate::builder::TraceBuilder;
use crate::claude_code;
use crate::content::{count, string};
use crate::error::FormatError;
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of Claude Code's event stream.
pub(crate) struct ClaudeStream;

static FORMAT: Format = Format {
    name: "claude-stream",
    reads: "the output of `claude -p` with `--output-format stream-json --verbose`, or with `json \
            --verbose`",
    versions: "Claude Code 2.1.325",
    unknown: "the prompt, descriptions of offered tools, hidden reasoning tokens",
};

impl Reader for ClaudeStream {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        agent_log::detect(input, |event| {
            event.get("session_id").is_some()
                && match string(event, "type") {
                    Some("system") => string(event, "subtype") == Some("init"),
                    Some("assistant" | "user") => event.get("parent_tool_use_id").is_some(),
                    Some("result") => event.get("num_turns").is_some(),
                    _ => false,
                }
        })
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let events = agent_log::events(FORMAT.name, input)?;
        let sessions = agent_log::groups(events, |event| {
            event.string("session_id").unwrap_or_default().to_owned()
        });
        sessions.iter().map(|events| session(events)).collect()
    }
}

fn session(events: &[Event<'_>]) -> Result<Trace, FormatError> {
    let of_agent = |event: &&Event<'_>| {
        matches!(event.string("type"), Some("user" | "assistant"))
            && event
                .value
                .get("parent_tool_use_id")
                .is_none_or(Value::is_null)
    };
    let messages: Vec<&Event<'_>> = events.iter().filter(of_agent).collect();
    let results: Vec<&Event<'_>> = events
        .iter()
        .filter(|event| event.string("type") == Some("result"))
        .collect();
    if let (true, Some(result)) = (messages.is_empty(), results.first()) {
        return Err(result.document.wrong(
            FORMAT.name,
            result.value,
            "the result has no messages before it: record the run with `--output-format \
             stream-json --verbose`",
        ));
    }
    let mut builder = TraceBuilder::new();
    let mut servers = Vec::new();
    for event in events {
        if let Some(session) = event.string("session_id") {
            builder.trace.extra.insert("session", session.to_owned());
        }
        if event.string("subtype") == Some("init") {
            if let Some(model) = event.string("model") {
                builder.trace.model = Some(model.to_owned().into());
            }
            let list = event.value.get("mcp_servers").and_then(Value::as_array);
            let names = list
                .into_iter()
                .flatten()
                .filter_map(|one| string(one, "name"));
            servers.extend(names.map(str::to_owned));
        }
    }
    for server in &servers {
        builder.server(&agent_log::sanitized(server));
    }
    claude_code::add_messages(&mut builder, &messages);
    if results.is_empty() {
        agent_log::incomplete(&mut builder, "`result`");
    } else {
        // Each has the usage since the one before.
        for result in &results {
            builder.usage(result.value.get("usage").and_then(anthropic::usage));
        }
    }
    if let Some(last) = results.last() {
        finish(&mut builder, last);
    }
    let mut trace = builder.finish();
    for call in &mut trace.tool_calls {
        let server = call.server.as_deref().unwrap_or_default();
        let named = servers
            .iter()
            .find(|name| agent_log::sanitized(name) == server);
        if let Some(name) = named.filter(|name| *name != server) {
            call.server = Some(name.clone().into());
        }
    }
    Ok(trace)
}

/// Adds the facts of the last result.
fn finish(builder: &mut TraceBuilder, last: &Event<'_>) {
    if let Some(cost) = last
        .value
        .get("total_cost_usd")
        .filter(|cost| cost.is_number())
    {
        builder.trace.extra.insert("cost_usd", cost.clone());
    }
    let result = last.string("result").unwrap_or_default();
    let is_error = last.value.get("is_error").and_then(Value::as_bool) == Some(true);
    match last.string("subtype").unwrap_or_default() {
        "error_max_turns" => {
            builder.trace.extra.insert("stop_reason", "max_turns");
        }
        "error_max_budget_usd" => builder.error(RunError {
            kind: ErrorKind::Budget,
            message: "the agent reached its budget (`error_max_budget_usd`)".to_owned(),
        }),
        _ if is_error => {
            let status = count(last.value, &["api_error_status"]);
            let errors = last.value.get("errors").map(Value::to_string);
            let message = if result.is_empty() {
                errors.unwrap_or_else(|| "the agent failed".to_owned())
            } else {
                result.to_owned()
            };
            agent_log::provider_failed(builder, status, &message);
        }
        _ => {
            builder.trace.extra.insert("stop_reason", "end");
            if !result.is_empty() {
                builder.trace.final_response = Some(result.to_owned().into());
            }
        }
    }
}

#[cfg(test)]
mod tests;
