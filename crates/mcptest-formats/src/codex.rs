//! Codex: `--format codex`.
//!
//! Checked with Codex 0.166.0: its session files ("rollouts") and the output of `codex exec
//! --json`. Both have the token usage of the whole thread so far, cached tokens included, so the
//! last figure counts.

mod exec;
mod rollout;

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::agent_log;
use crate::builder::Usage;
use crate::content::{count, string};
use crate::error::FormatError;
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of Codex's logs.
pub(crate) struct Codex;

static FORMAT: Format = Format {
    name: "codex",
    reads: "session files of Codex (`~/.codex/sessions/**/rollout-*.jsonl`), and the output of \
            `codex exec --json`",
    versions: "Codex 0.166.0; in session files also the `mcp_tool_call_end` events of earlier \
               versions, which no fixture has",
    unknown: "offered tools; with `exec --json` also the prompt and turns; after `exec resume`, \
              the usage has that of the runs before",
};

impl Reader for Codex {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        agent_log::detect(input, |line| is_rollout(line) || is_exec(line))
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let lines = agent_log::events(FORMAT.name, input)?;
        let traces = if lines.iter().any(|line| is_exec(line.value)) {
            exec::read(lines)
        } else {
            rollout::read(lines)
        };
        match (traces.is_empty(), input.documents().first()) {
            (true, Some(first)) => Err(first.wrong(
                FORMAT.name,
                &first.value,
                "expected `session_meta` and `response_item` lines of a session file, or the \
                 `item.completed` events of `codex exec --json`",
            )),
            _ => Ok(traces),
        }
    }
}

fn is_rollout(line: &Value) -> bool {
    let kind = string(line, "type");
    let known = matches!(
        kind,
        Some("session_meta" | "response_item" | "turn_context")
    );
    known && line.get("payload").is_some_and(Value::is_object)
}

fn is_exec(line: &Value) -> bool {
    match string(line, "type") {
        Some("thread.started") => line.get("thread_id").is_some(),
        Some("item.started" | "item.updated" | "item.completed") => line
            .get("item")
            .is_some_and(|item| string(item, "type").is_some()),
        _ => false,
    }
}

/// Reads the usage of a thread.
fn usage(usage: &Value) -> Option<Usage> {
    let usage = Usage {
        input: count(usage, &["input_tokens"]),
        output: count(usage, &["output_tokens"]),
        total: count(usage, &["total_tokens"]),
        cached_input: count(usage, &["cached_input_tokens"]),
        cache_write: count(usage, &["cache_write_input_tokens"]),
        reasoning: count(usage, &["reasoning_output_tokens"]),
    };
    (!usage.is_unknown()).then_some(usage)
}

#[cfg(test)]
mod tests;
