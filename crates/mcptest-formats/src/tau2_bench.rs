//! Results of tau2-bench: `--format tau2-bench`.
//!
//! Written for sierra-research/tau2-bench 0.2 (`tau2.data_model`: `Results`, `SimulationRun`): an
//! object with `simulations`, or one simulation.
//!
//! Messages have `tool_calls` with `name` and `arguments`; results are messages of role `tool` with
//! `id` and `error`, also bundled as `tool_messages`. Calls with `requestor: user` are those of the
//! simulated user, not of the agent: they are left out. Usage is that of assistant messages; the
//! fixed greeting has none and costs nothing, so it is not a request.

use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

use crate::builder::{Call, Reply, TraceBuilder};
use crate::content::{count, id, string};
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::openai_chat::usage;
use crate::reader::{Detection, Format, Grouping, Reader, by_record};

/// The reader of tau2-bench results.
pub(crate) struct Tau2Bench;

static FORMAT: Format = Format {
    name: "tau2-bench",
    reads: "the result file: an object with `simulations`; also single simulations (`messages`, \
            `task_id`, `termination_reason`), in arrays or as JSON Lines",
    versions: "sierra-research/tau2-bench 0.2 (`tau2.data_model`)",
    unknown: "tokens, if a message has no `usage`; the server",
};

impl Reader for Tau2Bench {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_record(input, |record| match record.get("simulations") {
            Some(Value::Array(list)) => {
                let known = |one: &Value| one.get("messages").is_some();
                if list.iter().all(known) {
                    Detection::Match
                } else {
                    Detection::close("an entry of `simulations` has no `messages`")
                }
            }
            Some(_) => Detection::close("`simulations` is not an array"),
            None => {
                let has = |key: &str| record.get(key).is_some();
                if has("messages") && has("task_id") && has("termination_reason") {
                    Detection::Match
                } else {
                    Detection::No
                }
            }
        })
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Document
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut traces = Vec::new();
        for (document, record, at) in input.records() {
            if record.get("messages").is_some() && record.get("simulations").is_none() {
                traces.push(simulation(document, record, &at, &Value::Null)?);
                continue;
            }
            let simulations = document.array(FORMAT.name, record, "simulations")?;
            let info = record.get("info").unwrap_or(&Value::Null);
            for (index, one) in simulations.iter().enumerate() {
                let at = format!("{at}/simulations/{index}");
                traces.push(simulation(document, one, &at, info)?);
            }
        }
        Ok(traces)
    }
}

fn simulation(
    document: &Document,
    simulation: &Value,
    at: &str,
    info: &Value,
) -> Result<Trace, FormatError> {
    let mut builder = TraceBuilder::new();
    let messages = document.array(FORMAT.name, simulation, "messages")?;
    for (index, message) in messages.iter().enumerate() {
        document.object(FORMAT.name, message)?;
        add(&mut builder, message, &format!("{at}/messages/{index}"));
    }
    let trace = &mut builder.trace;
    trace.test = match simulation.get("task_id") {
        Some(Value::String(task)) => Some(task.clone().into()),
        Some(Value::Null) | None => None,
        Some(other) => Some(other.to_string().into()),
    };
    trace.run = count(simulation, &["trial"]).map(|trial| trial.saturating_add(1));
    let model = info.pointer("/agent_info/llm").and_then(Value::as_str);
    trace.model = model.map(|model| model.to_owned().into());
    if let Some(reward) = simulation.pointer("/reward_info/reward") {
        trace.extra.insert("reward", reward.clone());
    }
    for key in ["agent_cost", "user_cost", "termination_reason"] {
        if let Some(value) = simulation.get(key).filter(|value| !value.is_null()) {
            trace.extra.insert(key, value.clone());
        }
    }
    match string(simulation, "termination_reason") {
        Some("agent_stop" | "user_stop") => trace.extra.insert("stop_reason", "end"),
        Some("max_steps") => trace.extra.insert("stop_reason", "max_turns"),
        Some("infrastructure_error") => {
            trace.error = Some(RunError {
                kind: ErrorKind::Provider,
                message: "tau2-bench reports an infrastructure error".to_owned(),
            });
        }
        _ => {}
    }
    Ok(builder.finish())
}

/// Returns true for a call or a result of the simulated user.
fn is_users(part: &Value) -> bool {
    string(part, "requestor") == Some("user")
}

fn add(builder: &mut TraceBuilder, message: &Value, source: &str) {
    let role = string(message, "role").unwrap_or_default();
    if role == "tool" {
        match message.get("tool_messages").and_then(Value::as_array) {
            Some(bundle) => bundle.iter().for_each(|one| add_result(builder, one)),
            None => add_result(builder, message),
        }
        return;
    }
    builder.turn(
        role,
        message
            .get("content")
            .filter(|text| !text.is_null())
            .cloned(),
    );
    if role == "assistant" {
        let free = message.get("cost").and_then(Value::as_f64) == Some(0.0);
        match message.get("usage").and_then(usage) {
            None if free => {}
            known => builder.usage(known),
        }
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for (at, call) in calls.into_iter().flatten().enumerate() {
        if is_users(call) || (role == "user" && call.get("requestor").is_none()) {
            continue;
        }
        builder.call(Call {
            id: id(call, "id").cloned(),
            name: call.get("name").cloned().unwrap_or_default(),
            args: call.get("arguments").cloned(),
            source: Some(format!("{source}/tool_calls/{at}")),
            ..Call::default()
        });
    }
}

fn add_result(builder: &mut TraceBuilder, message: &Value) {
    if is_users(message) {
        return;
    }
    builder.result(Reply {
        call_id: id(message, "id").cloned(),
        is_error: message.get("error").and_then(Value::as_bool),
        content: message
            .get("content")
            .filter(|text| !text.is_null())
            .cloned(),
        ..Reply::default()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_of_the_simulated_user_are_not_the_agents() {
        let call = |id: &str, name: &str, requestor: &str| json!({"id": id, "name": name, "arguments": {}, "requestor": requestor});
        let value = json!({"timestamp": "t", "tasks": [],
            "info": {"agent_info": {"llm": "model-a"}}, "simulations": [{
            "id": "s", "task_id": "7", "trial": 0, "termination_reason": "user_stop",
            "reward_info": {"reward": 1.0}, "agent_cost": 0.2, "messages": [
            {"role": "assistant", "content": "Hi!", "cost": 0.0, "usage": null},
            {"role": "user", "content": null, "tool_calls": [call("u", "reboot", "user")]},
            {"role": "tool", "id": "u", "content": "ok", "requestor": "user", "error": false},
            {"role": "assistant", "content": null, "cost": 0.1,
             "usage": {"prompt_tokens": 10, "completion_tokens": 2},
             "tool_calls": [call("a", "f", "assistant"), call("b", "g", "assistant")]},
            {"role": "tool", "tool_messages": [
                {"role": "tool", "id": "b", "content": "no", "error": true},
                {"role": "tool", "id": "a", "content": "yes", "error": false}]},
            {"role": "assistant", "content": "Done.", "cost": 0.1,
             "usage": {"prompt_tokens": 20, "completion_tokens": 3}},
        ]}]});
        let text = value.to_string();
        let input = Input::parse(text.as_bytes()).unwrap();
        let reader = crate::detect(&input).unwrap();
        assert_eq!(reader.format().name, "tau2-bench");
        let traces = reader.read(&input).unwrap();
        let trace = &traces[0];
        let names: Vec<_> = trace.tool_calls.iter().map(|call| call.name()).collect();
        assert_eq!(names, ["f", "g"]);
        assert_eq!(trace.pair_results(), [Some(1), Some(0)]);
        assert_eq!(trace.tool_results[0].is_error, Some(true));
        assert_eq!(trace.total_tokens(), Some(35));
        assert_eq!((trace.test.as_deref(), trace.run), (Some("7"), Some(1)));
        assert_eq!(trace.model.as_deref(), Some("model-a"));
        assert_eq!(trace.extra("reward"), Some(&json!(1.0)));
        assert!(trace.error.is_none());
    }

    #[test]
    fn a_request_without_usage_makes_tokens_unknown_and_infrastructure_is_an_error() {
        let value = json!({"messages": [{"role": "assistant", "content": "Hi!", "cost": null}],
            "task_id": 1, "termination_reason": "infrastructure_error"});
        let text = value.to_string();
        let input = Input::parse(text.as_bytes()).unwrap();
        let traces = Tau2Bench.read(&input).unwrap();
        assert_eq!(traces[0].conversation.tokens, None);
        assert_eq!(traces[0].error.as_ref().unwrap().kind, ErrorKind::Provider);
    }
}
