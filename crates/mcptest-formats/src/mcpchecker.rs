//! Results of mcpchecker: `--format mcpchecker`.
//!
//! Written for mcpchecker/mcpchecker 0.1 (`eval.EvalOutput`, `mcpproxy.CallHistory`): an object
//! with `summary` and `results`, or the older bare array of results.
//!
//! A proxy in front of every server records `callHistory.ToolCalls`. The lists of servers are
//! joined and sorted by time. A call failed if the proxy had an error or the result has `isError`.
//! The token estimate leaves out the system prompt, so tokens are unknown; it is kept as
//! `token_estimate`.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::builder::{Call, Reply, TraceBuilder};
use crate::content::{count, string};
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::reader::{Detection, Format, Grouping, Reader, by_record};
use crate::time::nanoseconds;

/// The reader of mcpchecker results.
pub(crate) struct Mcpchecker;

static FORMAT: Format = Format {
    name: "mcpchecker",
    reads: "the result file: an object with `summary` and `results`, or an array of results",
    versions: "mcpchecker/mcpchecker 0.1 (`eval.EvalOutput`)",
    unknown: "tokens, turns, calls of tools that are not from MCP servers",
};

impl Reader for Mcpchecker {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_record(input, |record| {
            let is_result =
                |one: &Value| one.get("callHistory").is_some() && one.get("taskName").is_some();
            match record.get("results") {
                Some(Value::Array(results)) if results.iter().any(is_result) => Detection::Match,
                Some(Value::Array(results))
                    if results.iter().any(|one| one.get("taskName").is_some()) =>
                {
                    Detection::close("no entry of `results` has a `callHistory`")
                }
                None if is_result(record) => Detection::Match,
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
            if record.get("taskName").is_some() {
                traces.push(result(document, record, &at, None)?);
                continue;
            }
            let model = record
                .pointer("/summary/agent/model")
                .and_then(Value::as_str);
            for (index, one) in document
                .array(FORMAT.name, record, "results")?
                .iter()
                .enumerate()
            {
                traces.push(result(
                    document,
                    one,
                    &format!("{at}/results/{index}"),
                    model,
                )?);
            }
        }
        Ok(traces)
    }
}

/// A field that Go writes with or without a tag.
fn field<'v>(value: &'v Value, go: &str, tag: &str) -> Option<&'v Value> {
    value
        .get(go)
        .or_else(|| value.get(tag))
        .filter(|value| !value.is_null())
}

fn result(
    document: &Document,
    result: &Value,
    at: &str,
    model: Option<&str>,
) -> Result<Trace, FormatError> {
    document.object(FORMAT.name, result)?;
    let mut builder = TraceBuilder::new();
    // A task that could not start has no history.
    if let Some(history) = result
        .get("callHistory")
        .filter(|history| !history.is_null())
    {
        document.object(FORMAT.name, history)?;
        let calls = field(history, "ToolCalls", "toolCalls").and_then(Value::as_array);
        let mut calls: Vec<(usize, &Value)> = calls.into_iter().flatten().enumerate().collect();
        // The sort is stable: calls without a time stay behind the one before them.
        let mut latest = None;
        let mut timed: Vec<_> = calls
            .drain(..)
            .map(|(index, call)| {
                latest = string(call, "timestamp").and_then(nanoseconds).or(latest);
                (latest, index, call)
            })
            .collect();
        timed.sort_by_key(|(time, ..)| *time);
        for (number, (_, index, call)) in timed.into_iter().enumerate() {
            let source = format!("{at}/callHistory/ToolCalls/{index}");
            add(&mut builder, call, number + 1, source);
        }
    }
    let trace = &mut builder.trace;
    trace.test = string(result, "taskName").map(|name| name.to_owned().into());
    trace.model = model.map(|model| model.to_owned().into());
    // The index is left out of the first of several runs.
    let several = count(result, &["totalRuns"]).is_some_and(|runs| runs > 1);
    let run = count(result, &["runIndex"]).or(several.then_some(0));
    trace.run = run.map(|run| run.saturating_add(1));
    let output = string(result, "taskOutput").filter(|output| !output.trim().is_empty());
    trace.final_response = output.map(|output| output.to_owned().into());
    for (key, name) in [
        ("taskPassed", "task_passed"),
        ("tokenEstimate", "token_estimate"),
        ("taskError", "task_error"),
        ("timedOut", "timed_out"),
    ] {
        if let Some(value) = result.get(key).filter(|value| !value.is_null()) {
            trace.extra.insert(name, value.clone());
        }
    }
    Ok(builder.finish())
}

fn add(builder: &mut TraceBuilder, call: &Value, number: usize, source: String) {
    let params = call
        .get("request")
        .and_then(|request| field(request, "Params", "params"));
    let name = call
        .get("name")
        .or_else(|| call.get("toolName"))
        .or_else(|| params?.get("name"));
    // Calls have no ids of their own.
    let id = Value::from(format!("c{number}"));
    builder.call(Call {
        id: Some(id.clone()),
        name: name.cloned().unwrap_or_default(),
        server: string(call, "serverName").map(str::to_owned),
        args: params.and_then(|params| params.get("arguments")).cloned(),
        source: Some(source),
        extra: call
            .get("timestamp")
            .map(|time| ("started_at", time.clone()))
            .into_iter()
            .collect(),
        ..Call::default()
    });
    let error = string(call, "error").filter(|error| !error.is_empty());
    let failed = error.is_some() || call.get("success") == Some(&Value::Bool(false));
    let result = call.get("result").filter(|result| !result.is_null());
    if result.is_none() && !failed && call.get("success").is_none() {
        return;
    }
    let is_error = result
        .and_then(|result| result.get("isError"))
        .and_then(Value::as_bool);
    let content = result.and_then(|result| result.get("content")).cloned();
    let mut extra = Vec::new();
    if let Some(structured) = result.and_then(|result| result.get("structuredContent")) {
        extra.push(("structured_content", structured.clone()));
    }
    if let Some(error) = error {
        extra.push(("error", json!({"message": error})));
    }
    builder.result(Reply {
        call_id: Some(id),
        is_error: Some(failed || is_error.unwrap_or(false)),
        content: content.or_else(|| error.map(Value::from)),
        extra,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_of_servers_are_joined_by_time() {
        let call = |server: &str, name: &str, time: &str, error: bool| {
            json!({"serverName": server, "timestamp": time, "success": true, "name": name,
                "request": {"Session": {}, "Params": {"name": name, "arguments": {"x": 1}},
                    "Extra": null},
                "result": {"content": [{"type": "text", "text": "r"}], "isError": error}})
        };
        let value = json!({"summary": {"agent": {"type": "builtin", "model": "model-a"}},
            "results": [{"taskName": "t", "taskPath": "t.yaml", "taskPassed": true,
            "taskOutput": "Done.", "runIndex": 1, "totalRuns": 2,
            "callHistory": {"ToolCalls": [
                call("a", "late", "2026-01-01T00:00:00.5Z", true),
                call("b", "early", "2026-01-01T00:00:00Z", false),
            ], "ResourceReads": [], "PromptGets": []},
            "tokenEstimate": {"totalTokens": 9}}]});
        let text = value.to_string();
        let input = Input::parse(text.as_bytes()).unwrap();
        let reader = crate::detect(&input).unwrap();
        assert_eq!(reader.format().name, "mcpchecker");
        let traces = reader.read(&input).unwrap();
        let trace = &traces[0];
        let ids: Vec<_> = trace.tool_calls.iter().map(|call| call.full_id()).collect();
        assert_eq!(ids, ["b.early", "a.late"]);
        assert_eq!(trace.tool_calls[0].args(), Some(&json!({"x": 1})));
        let errors: Vec<_> = trace.tool_results.iter().map(|one| one.is_error).collect();
        assert_eq!(errors, [Some(false), Some(true)]);
        assert_eq!(
            (trace.run, trace.model.as_deref()),
            (Some(2), Some("model-a"))
        );
        assert_eq!(trace.conversation.tokens, None);
        assert_eq!(trace.final_text().unwrap(), "Done.");
    }
}
