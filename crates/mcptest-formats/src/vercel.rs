//! Spans of the Vercel AI SDK: `--format vercel`.
//!
//! Written for the telemetry of `ai` 4 to 6 (`experimental_telemetry`), as OTLP JSON.
//!
//! A span `ai.toolCall` is a call with its result; `ai.response.toolCalls` of a model span has the
//! calls too, also those that the application runs itself. They are joined by `ai.toolCall.id`.
//! Usage is that of the spans of single requests (`…doGenerate`, `…doStream`); the span around them
//! repeats the sum. Input tokens include cached ones.

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{arguments, id, string, text, tool};
use crate::error::FormatError;
use crate::input::Input;
use crate::otlp::{self, Span};
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of spans of the Vercel AI SDK.
pub(crate) struct Vercel;

static FORMAT: Format = Format {
    name: "vercel",
    reads: "OTLP JSON (`resourceSpans`) with spans of the Vercel AI SDK; one document, arrays or \
            JSON Lines",
    versions: "telemetry of `ai` 4 to 6",
    unknown: "arguments and results, if the application does not record inputs and outputs",
};

impl Reader for Vercel {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        match otlp::detect(input, |span| {
            if span.get("openinference.span.kind").is_some() {
                Detection::No
            } else if span.get("ai.operationId").is_some() {
                Detection::Match
            } else {
                Detection::Possible
            }
        }) {
            Detection::Possible => Detection::close("no span has `ai.operationId`"),
            other => other,
        }
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let traces = otlp::traces(FORMAT.name, input.documents())?;
        let own = |spans: &Vec<Span<'_>>| spans.iter().any(|span| operation(span).is_some());
        Ok(traces
            .iter()
            .filter(|spans| own(spans))
            .map(|spans| trace(spans))
            .collect())
    }
}

fn operation<'s>(span: &'s Span<'_>) -> Option<&'s str> {
    span.text("ai.operationId")
}

/// Returns true for a single request to a model.
fn is_request(operation: &str) -> bool {
    operation.ends_with(".doGenerate") || operation.ends_with(".doStream")
}

fn trace(spans: &[Span<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let has_requests = spans.iter().filter_map(operation).any(is_request);
    for span in spans {
        match operation(span) {
            Some("ai.toolCall") => add_call(&mut builder, span),
            Some(operation) if is_request(operation) => add_request(&mut builder, span),
            Some("ai.generateText" | "ai.streamText" | "ai.generateObject" | "ai.streamObject") => {
                add_prompt(&mut builder, span);
                if !has_requests {
                    add_request(&mut builder, span);
                }
            }
            _ => {}
        }
    }
    builder.finish()
}

/// Adds the prompt of a run.
fn add_prompt(builder: &mut TraceBuilder, span: &Span<'_>) {
    if let Some(function) = span.text("ai.telemetry.functionId") {
        builder.trace.extra.insert("function_id", function);
    }
    let Some(prompt) = span.json("ai.prompt") else {
        return;
    };
    if let Some(prompt) = string(&prompt, "prompt") {
        builder.turn("user", Some(prompt.into()));
    }
    for message in prompt
        .get("messages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if let Some(role @ ("user" | "system")) = string(message, "role") {
            builder.turn(role, message.get("content").and_then(text).map(Value::from));
        }
    }
}

/// Adds a request to a model: its text, its calls, its usage and the tools that it offers.
fn add_request(builder: &mut TraceBuilder, span: &Span<'_>) {
    builder.turn("assistant", span.text("ai.response.text").map(Value::from));
    let calls = span.json("ai.response.toolCalls");
    for call in calls
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        // The name before version 5 is `args`.
        let args = call.get("input").or_else(|| call.get("args"));
        builder.call_once(Call {
            id: id(call, "toolCallId").cloned(),
            name: call.get("toolName").cloned().unwrap_or_default(),
            args: args.map(arguments),
            source: Some(format!("span {}", span.id)),
            ..Call::default()
        });
    }
    builder.usage(usage(span));
    let offered = span.get("ai.prompt.tools").and_then(Value::as_array);
    if offered.is_some() {
        builder.tools_known();
    }
    for offered in offered.into_iter().flatten().map(arguments) {
        if let Some(name) = offered.get("name") {
            let schema = offered
                .get("inputSchema")
                .or_else(|| offered.get("parameters"));
            builder.tool(tool(None, name, offered.get("description"), schema));
        }
    }
    let model = ["ai.response.model", "gen_ai.response.model", "ai.model.id"];
    if let Some(model) = model.into_iter().find_map(|key| span.text(key)) {
        builder.trace.model = Some(model.to_owned().into());
    }
    let reason = match span.text("ai.response.finishReason") {
        Some("stop") => "end",
        Some("length") => "max_tokens",
        Some("content-filter") => "withheld",
        _ => return,
    };
    builder.trace.extra.insert("stop_reason", reason);
}

fn usage(span: &Span<'_>) -> Option<Usage> {
    let first = |keys: &[&str]| keys.iter().find_map(|key| span.count(key));
    let usage = Usage {
        input: first(&[
            "ai.usage.inputTokens",
            "ai.usage.promptTokens",
            "gen_ai.usage.input_tokens",
        ]),
        output: first(&[
            "ai.usage.outputTokens",
            "ai.usage.completionTokens",
            "gen_ai.usage.output_tokens",
        ]),
        total: span.count("ai.usage.totalTokens"),
        cached_input: first(&[
            "ai.usage.inputTokenDetails.cacheReadTokens",
            "ai.usage.cachedInputTokens",
        ]),
        cache_write: span.count("ai.usage.inputTokenDetails.cacheWriteTokens"),
        reasoning: first(&[
            "ai.usage.outputTokenDetails.reasoningTokens",
            "ai.usage.reasoningTokens",
        ]),
    };
    (!usage.is_unknown()).then_some(usage)
}

/// Adds a call that the SDK ran, with its result.
fn add_call(builder: &mut TraceBuilder, span: &Span<'_>) {
    let call_id = span.get("ai.toolCall.id").cloned();
    let call_id = call_id.unwrap_or_else(|| span.id.into());
    builder.call_once(Call {
        id: Some(call_id.clone()),
        name: span.get("ai.toolCall.name").cloned().unwrap_or_default(),
        args: span.get("ai.toolCall.args").map(arguments),
        source: Some(format!("span {}", span.id)),
        ..Call::default()
    });
    let result = span.json("ai.toolCall.result");
    let message = || span.message.filter(|_| span.failed).map(Value::from);
    builder.result_once(Reply {
        call_id: Some(call_id),
        is_error: Some(span.failed),
        content: result.or_else(message),
        ..Reply::default()
    });
}
