//! Claude Code's session files: `--format claude-code`.
//!
//! Checked with sessions of Claude Code 2.1.325 (`~/.claude/projects/*/*.jsonl`).
//!
//! A line has one block of an assistant message: lines with the same `message.id` are one message,
//! and its usage, which every line repeats, is counted once. Lines of subagents (`isSidechain`) are
//! left out, unless the file has no others: then it is a subagent's own. A session continues in the
//! lines whose `parentUuid` leads to it; other sessions in the same file are separate traces.
//! An absent `is_error` means success. Results of MCP tools have the structured content, if there
//! is any, as their text; the session has it as a value in `mcpMeta`.

use std::collections::{HashMap, HashSet};

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::agent_log::{self, Event, structured};
use crate::anthropic;
use crate::builder::{Reply, TraceBuilder};
use crate::content::{count, id, string, text};
use crate::error::FormatError;
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of Claude Code's session files.
pub(crate) struct ClaudeCode;

static FORMAT: Format = Format {
    name: "claude-code",
    reads: "session files of Claude Code (`~/.claude/projects/*/*.jsonl`), one or several",
    versions: "sessions of Claude Code 2.1.325",
    unknown: "offered tools, hidden reasoning tokens",
};

impl Reader for ClaudeCode {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        agent_log::detect(input, |line| {
            line.get("sessionId").is_some() && line.get("parentUuid").is_some()
        })
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let lines = agent_log::events(FORMAT.name, input)?;
        let traces: Vec<Trace> = sessions(lines)
            .iter()
            .filter_map(|one| session(one))
            .collect();
        match (traces.is_empty(), input.documents().first()) {
            (true, Some(first)) => Err(first.wrong(
                FORMAT.name,
                &first.value,
                "no line has a message (`type` is `user` or `assistant`)",
            )),
            _ => Ok(traces),
        }
    }
}

/// Lines by session. A resumed session may have another id: its lines still lead to the first.
fn sessions(lines: Vec<Event<'_>>) -> Vec<Vec<Event<'_>>> {
    let mut of_line: HashMap<String, String> = HashMap::new();
    let mut of_session: HashMap<String, String> = HashMap::new();
    agent_log::groups(lines, |line| {
        let own = line.string("sessionId").unwrap_or_default();
        let parent = ["parentUuid", "logicalParentUuid"]
            .iter()
            .find_map(|key| of_line.get(line.string(key)?));
        let group = parent.or_else(|| of_session.get(own)).cloned();
        let group = group.unwrap_or_else(|| own.to_owned());
        if let Some(uuid) = line.string("uuid") {
            of_line.insert(uuid.to_owned(), group.clone());
        }
        of_session
            .entry(own.to_owned())
            .or_insert_with(|| group.clone());
        group
    })
}

fn flag(line: &Value, key: &str) -> bool {
    line.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// The trace of a session; `None` if it has no messages.
fn session(lines: &[Event<'_>]) -> Option<Trace> {
    let is_message = |line: &&Event<'_>| {
        matches!(line.string("type"), Some("user" | "assistant"))
            && line.value.get("message").is_some_and(Value::is_object)
    };
    let of_subagent = |line: &&Event<'_>| flag(line.value, "isSidechain");
    let mut messages: Vec<&Event<'_>> = lines.iter().filter(is_message).collect();
    if !messages.iter().all(of_subagent) {
        messages.retain(|line| !of_subagent(line));
    }
    // A resumed session may repeat lines.
    let mut seen = HashSet::new();
    messages.retain(|line| {
        line.string("uuid")
            .is_none_or(|uuid| seen.insert(uuid.to_owned()))
    });
    let first = messages.first()?;
    let mut builder = TraceBuilder::new();
    if let Some(session) = first.string("sessionId") {
        builder.trace.extra.insert("session", session.to_owned());
    }
    for line in lines {
        // The server of the call before.
        if let Some(server) = line.string("attributionMcpServer") {
            builder.server(&agent_log::sanitized(server));
        }
        if line.string("type") == Some("cost-state")
            && let Some(cost) = line
                .value
                .get("totalCostUSD")
                .filter(|cost| cost.is_number())
        {
            builder.trace.extra.insert("cost_usd", cost.clone());
        }
    }
    add_messages(&mut builder, &messages);
    add_usages(&mut builder, &messages);
    Some(builder.finish())
}

/// Adds messages whose blocks are on several lines.
pub(crate) fn add_messages(builder: &mut TraceBuilder, lines: &[&Event<'_>]) {
    let mut blocks: HashMap<&str, Vec<(Value, String)>> = HashMap::new();
    for line in lines {
        if let Some(message) = assistant_id(line.value) {
            let known = blocks.entry(message).or_default();
            known.extend(blocks_of(line));
        }
    }
    for line in lines {
        let Some(message) = line.value.get("message") else {
            continue;
        };
        if line.string("type") == Some("user") {
            add_user(builder, line, message);
        } else if is_api_error(line.value) {
            let status = ["apiErrorStatus", "api_error_status"];
            let status = status.iter().find_map(|key| count(line.value, &[key]));
            let reason = message.get("content").and_then(text).unwrap_or_default();
            agent_log::provider_failed(builder, status, &reason);
        } else {
            // The first line of a message stands for all of its lines.
            let blocks = match assistant_id(line.value) {
                Some(id) => match blocks.remove(id) {
                    Some(blocks) => blocks,
                    None => continue,
                },
                None => blocks_of(line),
            };
            add_assistant(builder, message, &blocks);
        }
    }
}

/// Counts the usage of each message once. A later line has that of the whole message, an earlier
/// one that of its start.
fn add_usages(builder: &mut TraceBuilder, lines: &[&Event<'_>]) {
    for line in lines {
        if line.string("type") == Some("assistant") && !is_api_error(line.value) {
            let message = &line.value["message"];
            let usage = message.get("usage").and_then(anthropic::usage);
            match assistant_id(line.value) {
                Some(id) => builder.usage_of(id, usage),
                None => builder.usage(usage),
            }
        }
    }
}

/// The id of the message that an assistant's line is a part of.
fn assistant_id(line: &Value) -> Option<&str> {
    if string(line, "type") != Some("assistant") || is_api_error(line) {
        return None;
    }
    string(line.get("message")?, "id")
}

/// Returns true for a message that the agent wrote itself because its provider failed.
fn is_api_error(line: &Value) -> bool {
    flag(line, "isApiErrorMessage") || flag(line, "is_api_error_message")
}

fn blocks_of(line: &Event<'_>) -> Vec<(Value, String)> {
    let source = format!("{}/message/content", line.source);
    match line
        .value
        .get("message")
        .and_then(|message| message.get("content"))
    {
        Some(Value::Array(blocks)) => blocks
            .iter()
            .enumerate()
            .map(|(at, block)| (block.clone(), format!("{source}/{at}")))
            .collect(),
        Some(Value::String(text)) => vec![(json!({"type": "text", "text": text}), source)],
        _ => Vec::new(),
    }
}

fn add_assistant(builder: &mut TraceBuilder, message: &Value, blocks: &[(Value, String)]) {
    let texts: Vec<&str> = blocks
        .iter()
        .filter(|(block, _)| string(block, "type") == Some("text"))
        .filter_map(|(block, _)| string(block, "text"))
        .collect();
    let text = (!texts.is_empty()).then(|| texts.join("\n").into());
    builder.turn("assistant", text);
    for (block, source) in blocks {
        anthropic::add_block(builder, block, source);
    }
    // The agent names itself as the model of messages that no model wrote.
    let model = string(message, "model").filter(|model| *model != "<synthetic>");
    if let Some(model) = model.filter(|_| builder.trace.model.is_none()) {
        builder.trace.model = Some(model.to_owned().into());
    }
}

fn add_user(builder: &mut TraceBuilder, line: &Event<'_>, message: &Value) {
    let content = message.get("content");
    let blocks = content
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let results: Vec<&Value> = blocks
        .iter()
        .filter(|block| string(block, "type") == Some("tool_result"))
        .collect();
    let written = !flag(line.value, "isMeta") && !flag(line.value, "isCompactSummary");
    if results.is_empty() && written {
        builder.turn("user", content.and_then(text).map(Value::from));
    }
    let structured_content = ["mcpMeta", "tool_use_result", "toolUseResult"]
        .iter()
        .find_map(|key| line.value.get(key)?.get("structuredContent"))
        .filter(|_| results.len() == 1);
    for block in results {
        builder.result(Reply {
            call_id: id(block, "tool_use_id").cloned(),
            is_error: Some(flag(block, "is_error")),
            content: block.get("content").map(unwrapped),
            extra: structured(structured_content),
        });
    }
}

/// A result without the tags around the agent's own error messages.
fn unwrapped(content: &Value) -> Value {
    let inner = content.as_str().and_then(|text| {
        let rest = text.strip_prefix("<tool_use_error>")?;
        rest.strip_suffix("</tool_use_error>")
    });
    inner.map_or_else(|| content.clone(), Value::from)
}

#[cfg(test)]
mod tests;
