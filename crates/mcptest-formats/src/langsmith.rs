//! LangSmith's runs: `--format langsmith`.
//!
//! Written for the runs of `langsmith` 0.14 for Python (`langsmith.schemas.Run`, as
//! `Client.list_runs` returns them), and for its run trees with `child_runs`.
//!
//! Runs of one `trace_id` are one trace, ordered by `dotted_order`. A run of type `tool` is a call
//! with its result; it failed if `error` is set or `status` is `error`. Messages of `llm` runs have
//! the calls too; they are joined by `tool_call_id`, else by name in order. Usage is that of `llm`
//! runs.

use std::collections::HashMap;

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{arguments, count, id, string, text};
use crate::error::FormatError;
use crate::input::{Input, a_type};
use crate::reader::{Detection, Format, Grouping, Reader, by_record};

/// The reader of LangSmith runs.
pub(crate) struct LangSmith;

static FORMAT: Format = Format {
    name: "langsmith",
    reads: "runs (`run_type`, `trace_id`) as arrays or JSON Lines, objects with `runs`, run trees \
            with `child_runs`",
    versions: "`langsmith` 0.14 for Python",
    unknown: "tokens, unless `llm` runs have them; the server; the offered tools",
};

/// The types of runs.
const RUN_TYPES: [&str; 7] = [
    "tool",
    "chain",
    "llm",
    "retriever",
    "embedding",
    "prompt",
    "parser",
];

impl Reader for LangSmith {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_record(input, |record| match record.get("runs") {
            Some(Value::Array(runs)) if !runs.is_empty() => {
                Detection::of_all(runs.iter().take(64).map(run))
            }
            _ => run(record),
        })
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut traces: Vec<Vec<&Value>> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut ids: std::collections::HashSet<&str> = std::collections::HashSet::new();
        for (document, record, _) in input.records() {
            let runs = match record.get("runs") {
                Some(_) => document.array(FORMAT.name, record, "runs")?.as_slice(),
                None => std::slice::from_ref(record),
            };
            for run in runs {
                if !run.is_object() || run.get("run_type").is_none() {
                    let message = format!("expected a run with `run_type`, found {}", a_type(run));
                    return Err(document.wrong(FORMAT.name, run, message));
                }
                let mut open = vec![run];
                while let Some(run) = open.pop() {
                    let children = run.get("child_runs").and_then(Value::as_array);
                    open.extend(children.into_iter().flatten());
                    let own = string(run, "id").unwrap_or_default();
                    if !own.is_empty() && !ids.insert(own) {
                        continue;
                    }
                    // A root without a trace id is a separate trace.
                    let trace = string(run, "trace_id").unwrap_or(own);
                    let at = *places.entry(trace).or_insert_with(|| {
                        traces.push(Vec::new());
                        traces.len() - 1
                    });
                    if let Some(runs) = traces.get_mut(at) {
                        runs.push(run);
                    }
                }
            }
        }
        Ok(traces.into_iter().map(trace).collect())
    }
}

fn run(run: &Value) -> Detection {
    let Some(kind) = string(run, "run_type") else {
        return Detection::No;
    };
    if !RUN_TYPES.contains(&kind) {
        return Detection::close("`run_type` is not a type of LangSmith");
    }
    let has = |key: &str| run.get(key).is_some();
    if has("trace_id") || has("dotted_order") || has("child_runs") {
        Detection::Match
    } else {
        Detection::close("a run has neither `trace_id` nor `dotted_order` nor `child_runs`")
    }
}

fn trace(mut runs: Vec<&Value>) -> Trace {
    // `dotted_order` begins with that of the parent. Without it, the start decides.
    runs.sort_by_key(|run| {
        let order = string(run, "dotted_order").or_else(|| string(run, "start_time"));
        (
            order.unwrap_or_default(),
            string(run, "start_time").unwrap_or_default(),
        )
    });
    let mut builder = TraceBuilder::new();
    for run in &runs {
        match string(run, "run_type") {
            Some("llm") => add_llm(&mut builder, run),
            Some("tool") => add_tool(&mut builder, run),
            _ => {}
        }
    }
    let is_root = |run: &&&Value| run.get("parent_run_id").is_none_or(Value::is_null);
    if let Some(root) = runs.iter().find(is_root) {
        for key in [
            "name",
            "trace_id",
            "reference_example_id",
            "session_id",
            "error",
        ] {
            if let Some(value) = root.get(key).filter(|value| !value.is_null()) {
                let key = if key == "error" { "run_error" } else { key };
                builder.trace.extra.insert(key, value.clone());
            }
        }
        let output = root.pointer("/outputs/output").and_then(Value::as_str);
        builder.trace.final_response = output.map(|output| output.to_owned().into());
    }
    builder.finish()
}

/// The message of an answer: LangChain's generations, a message, or a chat completion.
fn answer(outputs: &Value) -> Option<&Value> {
    let message = outputs
        .pointer("/generations/0/0/message")
        .or_else(|| outputs.pointer("/generations/0/message"))
        .or_else(|| outputs.pointer("/choices/0/message"))
        .or_else(|| outputs.get("message"))
        .or_else(|| outputs.get("output").filter(|output| output.is_object()))
        .or_else(|| outputs.get("role").map(|_| outputs))?;
    // A serialised object has its fields in `kwargs`.
    Some(message.get("kwargs").unwrap_or(message))
}

fn add_llm(builder: &mut TraceBuilder, run: &Value) {
    let outputs = run.get("outputs").unwrap_or(&Value::Null);
    let message = answer(outputs).unwrap_or(&Value::Null);
    builder.turn(
        "assistant",
        message.get("content").and_then(text).map(Value::from),
    );
    let source = string(run, "id").map(|id| format!("run {id}"));
    let list = |key: &str| {
        message
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    for call in list("tool_calls").chain(list("invalid_tool_calls")) {
        let function = call.get("function").filter(|function| function.is_object());
        let (name, args) = match function {
            Some(function) => (function.get("name"), function.get("arguments")),
            None => (call.get("name"), call.get("args")),
        };
        builder.call_once(Call {
            id: id(call, "id").cloned(),
            name: name.cloned().unwrap_or_default(),
            args: args.map(arguments),
            source: source.clone(),
            ..Call::default()
        });
    }
    builder.usage(usage(run, outputs, message));
    let model = run
        .pointer("/extra/metadata/ls_model_name")
        .or_else(|| run.pointer("/extra/invocation_params/model"))
        .or_else(|| run.pointer("/extra/invocation_params/model_name"));
    if let Some(model) = model.and_then(Value::as_str) {
        builder.trace.model = Some(model.to_owned().into());
    }
}

/// The usage of a request: the sums of the service, or those of the message.
fn usage(run: &Value, outputs: &Value, message: &Value) -> Option<Usage> {
    let of_run = Usage {
        input: count(run, &["prompt_tokens"]),
        output: count(run, &["completion_tokens"]),
        total: count(run, &["total_tokens"]),
        ..Usage::default()
    };
    if !of_run.is_unknown() {
        return Some(of_run);
    }
    let metadata = message
        .get("usage_metadata")
        .or_else(|| outputs.get("usage_metadata"))?;
    let usage = Usage {
        input: count(metadata, &["input_tokens"]),
        output: count(metadata, &["output_tokens"]),
        total: count(metadata, &["total_tokens"]),
        cached_input: count(metadata, &["input_token_details", "cache_read"]),
        cache_write: count(metadata, &["input_token_details", "cache_creation"]),
        reasoning: count(metadata, &["output_token_details", "reasoning"]),
    };
    (!usage.is_unknown()).then_some(usage)
}

fn add_tool(builder: &mut TraceBuilder, run: &Value) {
    let name = string(run, "name").unwrap_or_default();
    let output = run
        .pointer("/outputs/output")
        .or_else(|| run.get("outputs"));
    let output = output.map(|output| output.get("kwargs").unwrap_or(output));
    let recorded = run
        .pointer("/extra/tool_call_id")
        .or_else(|| output?.get("tool_call_id"))
        .filter(|id| !id.is_null())
        .cloned();
    let known = recorded.clone().filter(|id| builder.has_call(id));
    let call_id = match known.or_else(|| builder.answer_by_name(name)) {
        Some(id) => id,
        None => {
            let own = recorded
                .or_else(|| run.get("id").cloned())
                .unwrap_or_default();
            // Older tracers have the arguments as text.
            let inputs = run.get("inputs");
            let single = inputs
                .and_then(Value::as_object)
                .filter(|map| map.len() == 1);
            let text = single
                .and_then(|map| map.get("input"))
                .filter(|input| input.is_string());
            builder.call_once(Call {
                id: Some(own.clone()),
                name: name.into(),
                args: text.map(arguments).or_else(|| inputs.cloned()),
                source: string(run, "id").map(|id| format!("run {id}")),
                ..Call::default()
            });
            // It is answered here.
            let _ = builder.answer_by_name(name);
            own
        }
    };
    let error = string(run, "error").filter(|error| !error.is_empty());
    let marked = output.and_then(|output| string(output, "status")) == Some("error");
    let failed = error.is_some() || string(run, "status") == Some("error") || marked;
    let content = output.and_then(|output| output.get("content")).or(output);
    let content = content.filter(|content| content.as_object().is_none_or(|map| !map.is_empty()));
    if content.is_none() && error.is_none() && run.get("end_time").is_none_or(Value::is_null) {
        // The run did not end.
        return;
    }
    builder.result_once(Reply {
        call_id: Some(call_id),
        is_error: Some(failed),
        content: content.cloned().or_else(|| error.map(Value::from)),
        ..Reply::default()
    });
}
