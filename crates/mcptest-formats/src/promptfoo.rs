//! Result files of promptfoo: `--format promptfoo`.
//!
//! Written for promptfoo 0.121 (`promptfoo eval -o FILE.json` or `FILE.jsonl`, results version 3).
//!
//! A result is a run of its test with one provider. Calls are read from
//! `response.metadata.toolCalls` (agent providers, with results), from an `output` that is a list
//! of OpenAI's tool calls, and from an `output` string with Anthropic's `tool_use` blocks. Tokens
//! are those of the response; the `tokenUsage` next to it has zeros where they are unknown. A
//! result with `failureReason` 2 could not be completed.

use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

use crate::anthropic::add_block;
use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{arguments, count, id, string};
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::reader::{Detection, Format, Grouping, Reader, by_record};

/// The reader of promptfoo results.
pub(crate) struct Promptfoo;

static FORMAT: Format = Format {
    name: "promptfoo",
    reads: "the result file of `promptfoo eval -o`: JSON (`results.results`) or JSON Lines",
    versions: "promptfoo 0.121 (results version 3)",
    unknown: "results of calls, unless the provider reports them in `metadata.toolCalls`; turns; the \
              server",
};

/// The value of `failureReason` for a run that could not be completed.
const FAILED_TO_RUN: u64 = 2;

impl Reader for Promptfoo {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_record(input, |record| {
            let results = record.get("results");
            match results.map(|results| results.get("results")) {
                Some(Some(Value::Array(list))) if list.iter().all(is_result) => Detection::Match,
                Some(_) if record.get("evalId").is_some() => {
                    Detection::close("`results` has no list `results`")
                }
                _ if is_result(record) => Detection::Match,
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
            document.object(FORMAT.name, record)?;
            match record.get("results") {
                Some(results) => {
                    let list = document.array(FORMAT.name, results, "results")?;
                    for (index, one) in list.iter().enumerate() {
                        let at = format!("{at}/results/results/{index}");
                        traces.push(result(document, one, &at)?);
                    }
                }
                None => traces.push(result(document, record, &at)?),
            }
        }
        Ok(traces)
    }
}

fn is_result(record: &Value) -> bool {
    let has = |key: &str| record.get(key).is_some();
    has("promptIdx") && has("testIdx") && has("testCase") && has("provider")
}

fn result(document: &Document, result: &Value, at: &str) -> Result<Trace, FormatError> {
    if !is_result(result) {
        let message = "expected a result with `promptIdx`, `testIdx`, `testCase` and `provider`";
        return Err(document.wrong(FORMAT.name, result, message));
    }
    let mut builder = TraceBuilder::new();
    if let Some(prompt) = result.pointer("/prompt/raw").and_then(Value::as_str) {
        builder.turn("user", Some(prompt.into()));
    }
    let response = result.get("response").unwrap_or(&Value::Null);
    let reported = response
        .pointer("/metadata/toolCalls")
        .and_then(Value::as_array);
    builder.count_turn();
    for (index, call) in reported.into_iter().flatten().enumerate() {
        let source = format!("{at}/response/metadata/toolCalls/{index}");
        add_reported(&mut builder, call, source);
    }
    add_output(
        &mut builder,
        response,
        reported.is_some(),
        &format!("{at}/response/output"),
    );
    let trace = &mut builder.trace;
    let test = result
        .pointer("/testCase/description")
        .and_then(Value::as_str);
    trace.test = test.map(|test| test.to_owned().into());
    let provider = result.get("provider").unwrap_or(&Value::Null);
    let model = string(provider, "id").or(provider.as_str());
    trace.model = model.map(|model| model.to_owned().into());
    for (key, name) in [
        ("vars", "vars"),
        ("success", "success"),
        ("score", "score"),
        ("cost", "cost"),
        ("testIdx", "test_index"),
        ("promptIdx", "prompt_index"),
    ] {
        if let Some(value) = result.get(key).filter(|value| !value.is_null()) {
            trace.extra.insert(name, value.clone());
        }
    }
    if count(result, &["failureReason"]) == Some(FAILED_TO_RUN) {
        let message = string(result, "error").or_else(|| string(response, "error"));
        trace.error = Some(RunError {
            kind: ErrorKind::Provider,
            message: message.unwrap_or("promptfoo reports an error").to_owned(),
        });
    }
    if let Some(tokens) = response.get("tokenUsage") {
        builder.usage(usage(tokens));
    }
    Ok(builder.finish())
}

/// Adds a call that a provider reports, with its result if it has one.
fn add_reported(builder: &mut TraceBuilder, call: &Value, source: String) {
    let call_id = id(call, "id").cloned();
    let args = ["input", "args", "arguments"]
        .iter()
        .find_map(|key| call.get(key));
    builder.call(Call {
        id: call_id.clone(),
        name: call.get("name").cloned().unwrap_or_default(),
        args: args.map(arguments),
        source: Some(source),
        ..Call::default()
    });
    let output = call.get("output").filter(|output| !output.is_null());
    let is_error = call.get("is_error").and_then(Value::as_bool);
    if output.is_none() && is_error.is_none() {
        return;
    }
    let call_id = call_id.or_else(|| builder.answer_by_name(string(call, "name")?));
    builder.result(Reply {
        call_id,
        is_error,
        content: output.cloned(),
        ..Reply::default()
    });
}

/// Adds the output: text, or calls in the form of their provider.
fn add_output(builder: &mut TraceBuilder, response: &Value, reported: bool, source: &str) {
    let output = response.get("output").unwrap_or(&Value::Null);
    let calls = match output {
        Value::Array(calls) => Some(calls),
        other => other.get("tool_calls").and_then(Value::as_array),
    };
    let is_call = |call: &Value| call.get("function").is_some_and(Value::is_object);
    if let Some(calls) = calls.filter(|calls| !calls.is_empty() && calls.iter().all(is_call)) {
        for (at, call) in calls.iter().enumerate() {
            builder.call(Call {
                id: id(call, "id").cloned(),
                name: call.pointer("/function/name").cloned().unwrap_or_default(),
                args: call.pointer("/function/arguments").map(arguments),
                source: Some(format!("{source}/{at}")),
                ..Call::default()
            });
        }
        let text = string(output, "content").filter(|text| !text.is_empty());
        builder.trace.final_response = text.map(|text| text.to_owned().into());
        return;
    }
    let Value::String(text) = output else {
        return;
    };
    // The blocks of an answer are joined by empty lines, those of calls as JSON.
    let mut texts = Vec::new();
    for part in text.split("\n\n") {
        let block = part.starts_with("{\"type\":\"tool_use\"");
        match serde_json::from_str::<Value>(part)
            .ok()
            .filter(|_| block && !reported)
        {
            Some(block) => add_block(builder, &block, source),
            None => texts.push(part),
        }
    }
    let text = texts.join("\n\n");
    builder.trace.final_response = (!text.is_empty()).then(|| text.into());
}

fn usage(tokens: &Value) -> Option<Usage> {
    let usage = Usage {
        input: count(tokens, &["prompt"]),
        output: count(tokens, &["completion"]),
        total: count(tokens, &["total"]),
        cached_input: count(tokens, &["completionDetails", "cacheReadInputTokens"]),
        cache_write: count(tokens, &["completionDetails", "cacheCreationInputTokens"]),
        reasoning: count(tokens, &["completionDetails", "reasoning"]),
    };
    (!usage.is_unknown()).then_some(usage)
}
