//! The Agent Trajectory Interchange Format of Harbor: `--format atif`.
//!
//! Written for ATIF v1.0 to v1.8 (Harbor's RFC 0001): an object with `schema_version`, `agent` and
//! `steps`.
//!
//! A call is an entry of a step's `tool_calls`; a result is an entry of `observation.results`,
//! joined by `source_call_id`. The core of the format has no error flag; `extra.is_error` of a
//! result is read where writers set it. `prompt_tokens` includes cached tokens. Totals of
//! `final_metrics` are used if a step of the agent has no metrics.

use mcptest_trace::trace::{Tokens, Trace};
use serde_json::Value;

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{arguments, count, id, string, text, tool};
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::openai_chat::offer_tool;
use crate::reader::{Detection, Format, Grouping, Reader, by_record};

/// The reader of ATIF trajectories.
pub(crate) struct Atif;

static FORMAT: Format = Format {
    name: "atif",
    reads: "a trajectory (`schema_version: ATIF-v1.x`, `steps`); JSON, arrays, JSON Lines",
    versions: "ATIF v1.0 to v1.8 (Harbor, RFC 0001)",
    unknown: "if a call failed, unless the writer sets `extra.is_error`; the server; trajectories of \
              subagents in other files",
};

impl Reader for Atif {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_record(input, |record| {
            let version = string(record, "schema_version");
            let steps = record.get("steps").is_some_and(Value::is_array);
            match version {
                Some(version) if version.starts_with("ATIF-v1.") && steps => Detection::Match,
                Some(version) if version.starts_with("ATIF-v1.") => {
                    Detection::close("`steps` is not an array")
                }
                Some(version) if version.starts_with("ATIF-") => {
                    Detection::close("`schema_version` is not ATIF-v1.x")
                }
                _ if steps && record.get("agent").is_some() => {
                    Detection::close("`schema_version` is missing")
                }
                _ => Detection::No,
            }
        })
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Document
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut traces = Vec::new();
        for (document, record, at) in input.records() {
            trajectory(document, record, &at, &mut traces)?;
        }
        Ok(traces)
    }
}

fn trajectory(
    document: &Document,
    record: &Value,
    at: &str,
    traces: &mut Vec<Trace>,
) -> Result<(), FormatError> {
    let mut builder = TraceBuilder::new();
    let steps = document.array(FORMAT.name, record, "steps")?;
    for (index, step) in steps.iter().enumerate() {
        document.object(FORMAT.name, step)?;
        add(&mut builder, step, &format!("{at}/steps/{index}"));
    }
    let agent = record.get("agent").unwrap_or(&Value::Null);
    let definitions = agent.get("tool_definitions").and_then(Value::as_array);
    if definitions.is_some() {
        builder.tools_known();
    }
    for definition in definitions.into_iter().flatten() {
        if definition.get("function").is_some() {
            offer_tool(&mut builder, definition);
        } else if let Some(name) = definition.get("name") {
            let schema = ["input_schema", "inputSchema", "parameters"];
            let schema = schema.iter().find_map(|key| definition.get(key));
            builder.tool(tool(None, name, definition.get("description"), schema));
        }
    }
    let of_steps = steps.iter().find_map(|step| string(step, "model_name"));
    let model = string(agent, "model_name").or(of_steps);
    builder.trace.model = model.map(|model| model.to_owned().into());
    for key in ["session_id", "trajectory_id", "notes"] {
        if let Some(value) = record.get(key).filter(|value| !value.is_null()) {
            builder.trace.extra.insert(key, value.clone());
        }
    }
    let mut trace = builder.finish();
    if trace.conversation.tokens.is_none() {
        trace.conversation.tokens = record.get("final_metrics").and_then(totals);
    }
    traces.push(trace);
    Ok(())
}

fn add(builder: &mut TraceBuilder, step: &Value, source: &str) {
    let message = step
        .get("message")
        .and_then(text)
        .filter(|text| !text.is_empty());
    let copied = step.get("is_copied_context").and_then(Value::as_bool) == Some(true);
    match string(step, "source").unwrap_or_default() {
        "agent" => {
            builder.turn("assistant", message.map(Value::from));
            // A step that repeats the context of an earlier trajectory made no request.
            if !copied && step.get("llm_call_count") != Some(&Value::from(0)) {
                builder.usage(step.get("metrics").and_then(usage));
            }
        }
        role => {
            if let Some(message) = message {
                builder.turn(role, Some(message.into()));
            }
        }
    }
    let calls = step.get("tool_calls").and_then(Value::as_array);
    for (at, call) in calls.into_iter().flatten().enumerate() {
        builder.call(Call {
            id: id(call, "tool_call_id").cloned(),
            name: call.get("function_name").cloned().unwrap_or_default(),
            args: call.get("arguments").map(arguments),
            source: Some(format!("{source}/tool_calls/{at}")),
            ..Call::default()
        });
    }
    let results = step
        .pointer("/observation/results")
        .and_then(Value::as_array);
    for result in results.into_iter().flatten() {
        // Without an id it is feedback of the environment, not the result of a call.
        if let Some(call_id) = id(result, "source_call_id") {
            builder.result(Reply {
                call_id: Some(call_id.clone()),
                is_error: result.pointer("/extra/is_error").and_then(Value::as_bool),
                content: result
                    .get("content")
                    .filter(|content| !content.is_null())
                    .cloned(),
                ..Reply::default()
            });
        }
    }
}

fn usage(metrics: &Value) -> Option<Usage> {
    let usage = Usage {
        input: count(metrics, &["prompt_tokens"]),
        output: count(metrics, &["completion_tokens"]),
        cached_input: count(metrics, &["cached_tokens"]),
        ..Usage::default()
    };
    (!usage.is_unknown()).then_some(usage)
}

/// The totals of a trajectory.
fn totals(metrics: &Value) -> Option<Tokens> {
    let input = count(metrics, &["total_prompt_tokens"]);
    let output = count(metrics, &["total_completion_tokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let mut tokens = Tokens {
        input,
        output,
        total: input
            .zip(output)
            .map(|(input, output)| input.saturating_add(output)),
        ..Tokens::default()
    };
    if let Some(cached) = count(metrics, &["total_cached_tokens"]) {
        tokens.extra.insert("cached_input", cached);
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(metrics: &Value) -> Trace {
        let value = json!({"schema_version": "ATIF-v1.6", "session_id": "s",
            "agent": {"name": "x", "version": "1", "model_name": "model-a"},
            "final_metrics": {"total_prompt_tokens": 100, "total_completion_tokens": 10,
                "total_cached_tokens": 30},
            "steps": [
            {"step_id": 1, "source": "user", "message": "Go."},
            {"step_id": 2, "source": "agent", "message": "", "metrics": metrics,
             "tool_calls": [
                {"tool_call_id": "a", "function_name": "f", "arguments": {"x": 1}},
                {"tool_call_id": "b", "function_name": "g", "arguments": {}}],
             "observation": {"results": [
                {"source_call_id": "b", "content": "no", "extra": {"is_error": true}},
                {"content": "feedback"},
                {"source_call_id": "a", "content": "yes"}]}},
            {"step_id": 3, "source": "agent", "message": [{"type": "text", "text": "Done."}],
             "metrics": {"prompt_tokens": 20, "completion_tokens": 3, "cached_tokens": 5}},
        ]});
        let text = value.to_string();
        let input = Input::parse(text.as_bytes()).unwrap();
        let reader = crate::detect(&input).unwrap();
        assert_eq!(reader.format().name, "atif");
        reader.read(&input).unwrap().remove(0)
    }

    #[test]
    fn steps_become_turns_with_calls_and_results() {
        let trace = read(&json!({"prompt_tokens": 10, "completion_tokens": 2}));
        assert_eq!(trace.pair_results(), [Some(1), Some(0)]);
        assert_eq!(trace.tool_results[0].is_error, Some(true));
        assert_eq!(trace.tool_results[1].is_error, None);
        assert_eq!(trace.tool_calls[1].turn, Some(1));
        assert_eq!(trace.total_tokens(), Some(35));
        assert_eq!(trace.final_text().unwrap(), "Done.");
        assert_eq!(trace.model.as_deref(), Some("model-a"));
    }

    #[test]
    fn totals_replace_missing_metrics() {
        let trace = read(&json!(null));
        let tokens = trace.conversation.tokens.unwrap();
        assert_eq!(
            (tokens.input, tokens.output, tokens.total),
            (Some(100), Some(10), Some(110))
        );
        assert_eq!(tokens.extra("cached_input"), Some(&json!(30)));
    }
}
