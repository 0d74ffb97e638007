//! OpenInference spans: `--format openinference`.
//!
//! Written for the semantic conventions of `openinference-semantic-conventions` 0.1, as OTLP JSON.
//!
//! Calls are in the output messages of LLM spans
//! (`llm.output_messages.N.message.tool_calls.M.tool_call…`), and a TOOL span is a call with its
//! result. They are joined by `tool_call.id` where the TOOL span has it, else by name in order.
//! Results are also in the input messages of later LLM spans. A TOOL span that failed is a failed
//! call. `llm.token_count.prompt` includes cached tokens; an LLM span inside of another one is the
//! same request.

use std::collections::{BTreeMap, HashMap};

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{arguments, tool};
use crate::error::FormatError;
use crate::input::Input;
use crate::otlp::{self, Span};
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of OpenInference spans.
pub(crate) struct OpenInference;

static FORMAT: Format = Format {
    name: "openinference",
    reads: "OTLP JSON (`resourceSpans`) with OpenInference spans; one document, arrays or JSON Lines",
    versions: "OpenInference semantic conventions 0.1 (Phoenix, Arize)",
    unknown: "if a call failed, unless a TOOL span records it; the server",
};

/// The attribute that every OpenInference span has.
const KIND: &str = "openinference.span.kind";
/// Ancestors that are searched for the span of the same request.
const MAX_ANCESTORS: usize = 32;

impl Reader for OpenInference {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        match otlp::detect(input, |span| match span.get(KIND) {
            Some(_) => Detection::Match,
            None => Detection::Possible,
        }) {
            Detection::Possible => Detection::close(format!("no span has `{KIND}`")),
            other => other,
        }
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let traces = otlp::traces(FORMAT.name, input.documents())?;
        let own = |spans: &Vec<Span<'_>>| spans.iter().any(|span| span.get(KIND).is_some());
        Ok(traces
            .iter()
            .filter(|spans| own(spans))
            .map(|spans| trace(spans))
            .collect())
    }
}

/// The attributes of a list, by position: `llm.tools.0.tool.json_schema` is `tool.json_schema` of
/// element 0.
type Elements<'s> = BTreeMap<u32, HashMap<&'s str, &'s Value>>;

fn elements<'s>(
    attributes: impl Iterator<Item = (&'s str, &'s Value)>,
    prefix: &str,
) -> Elements<'s> {
    let mut found = Elements::new();
    for (key, value) in attributes {
        let Some((at, rest)) = key
            .strip_prefix(prefix)
            .and_then(|rest| rest.split_once('.'))
        else {
            continue;
        };
        if let Ok(at) = at.parse() {
            found.entry(at).or_default().insert(rest, value);
        }
    }
    found
}

fn of_span<'s>(span: &'s Span<'_>, prefix: &str) -> Elements<'s> {
    elements(
        span.attributes.iter().map(|(key, value)| (*key, value)),
        prefix,
    )
}

fn text<'s>(message: &HashMap<&'s str, &'s Value>, key: &str) -> Option<&'s str> {
    message.get(key)?.as_str()
}

/// The text of a message: one string, or several parts.
fn content(message: &HashMap<&str, &Value>) -> Option<Value> {
    if let Some(text) = text(message, "message.content") {
        return Some(text.into());
    }
    let parts = message.iter().map(|(key, value)| (*key, *value));
    let parts = elements(parts, "message.contents.");
    let texts: Vec<&str> = parts
        .values()
        .filter_map(|part| text(part, "message_content.text"))
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n").into())
}

fn trace(spans: &[Span<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let by_id: HashMap<&str, &Span<'_>> = spans.iter().map(|span| (span.id, span)).collect();
    let is_llm = |span: &Span<'_>| span.text(KIND) == Some("LLM");
    let same_request = |span: &Span<'_>| {
        let above = |span: &&Span<'_>| by_id.get(span.parent?).copied();
        let ancestors = std::iter::successors(above(&span), above);
        ancestors.take(MAX_ANCESTORS).any(is_llm)
    };
    let mut first = true;
    for span in spans {
        match span.text(KIND) {
            Some("LLM") => {
                add_results(&mut builder, span, first);
                first = false;
                let repeated = same_request(span);
                add_answer(&mut builder, span, repeated);
                if !repeated {
                    builder.usage(usage(span));
                }
            }
            Some("TOOL") => add_tool(&mut builder, span),
            _ => {}
        }
    }
    let root = spans.iter().find(|span| span.parent.is_none());
    if let Some(session) = root.and_then(|root| root.text("session.id")) {
        builder.trace.extra.insert("session_id", session);
    }
    builder.finish()
}

/// Adds the results in the input of a request, and the prompt of the first one.
fn add_results(builder: &mut TraceBuilder, span: &Span<'_>, first: bool) {
    for message in of_span(span, "llm.input_messages.").values() {
        match text(message, "message.role") {
            Some("tool") => {
                let call_id = message.get("message.tool_call_id").map(|id| (*id).clone());
                // Without an id it could be the result of an earlier request.
                if let Some(call_id) = call_id {
                    builder.result_once(Reply {
                        call_id: Some(call_id),
                        content: content(message),
                        ..Reply::default()
                    });
                }
            }
            Some(role @ ("user" | "system")) if first => builder.turn(role, content(message)),
            _ => {}
        }
    }
}

/// Adds the output of a request: text, calls, and the tools that it offers.
fn add_answer(builder: &mut TraceBuilder, span: &Span<'_>, repeated: bool) {
    let messages = of_span(span, "llm.output_messages.");
    if !repeated {
        let texts: Vec<Value> = messages.values().filter_map(content).collect();
        builder.turn("assistant", texts.into_iter().next());
    }
    for message in messages.values() {
        let attributes = message.iter().map(|(key, value)| (*key, *value));
        for call in elements(attributes, "message.tool_calls.").values() {
            let value = |key: &str| call.get(key).map(|value| (*value).clone());
            builder.call_once(Call {
                id: value("tool_call.id"),
                name: value("tool_call.function.name").unwrap_or_default(),
                args: call
                    .get("tool_call.function.arguments")
                    .map(|text| arguments(text)),
                source: Some(format!("span {}", span.id)),
                ..Call::default()
            });
        }
    }
    for offered in of_span(span, "llm.tools.").values() {
        let Some(schema) = offered.get("tool.json_schema").map(|text| arguments(text)) else {
            continue;
        };
        let function = schema.get("function").unwrap_or(&schema);
        if let Some(name) = function.get("name") {
            let parameters = ["parameters", "input_schema", "inputSchema"];
            let parameters = parameters.iter().find_map(|key| function.get(key));
            builder.tool(tool(None, name, function.get("description"), parameters));
        }
    }
    if let Some(model) = span.text("llm.model_name") {
        builder.trace.model = Some(model.to_owned().into());
    }
}

fn usage(span: &Span<'_>) -> Option<Usage> {
    let usage = Usage {
        input: span.count("llm.token_count.prompt"),
        output: span.count("llm.token_count.completion"),
        total: span.count("llm.token_count.total"),
        cached_input: span.count("llm.token_count.prompt_details.cache_read"),
        cache_write: span.count("llm.token_count.prompt_details.cache_write"),
        reasoning: span.count("llm.token_count.completion_details.reasoning"),
    };
    (!usage.is_unknown()).then_some(usage)
}

/// Adds the call of a TOOL span, with its result.
fn add_tool(builder: &mut TraceBuilder, span: &Span<'_>) {
    let name = span.text("tool.name").unwrap_or(span.name);
    let ids = ["tool_call.id", "tool.id"];
    let recorded = ids.into_iter().find_map(|key| span.get(key)).cloned();
    let known = recorded.filter(|id| builder.has_call(id));
    let call_id = match known.or_else(|| builder.answer_by_name(name)) {
        Some(id) => id,
        None => {
            let id = Value::from(span.id);
            builder.call_once(Call {
                id: Some(id.clone()),
                name: name.into(),
                args: span.get("input.value").map(arguments),
                source: Some(format!("span {}", span.id)),
                ..Call::default()
            });
            // It is answered here.
            let _ = builder.answer_by_name(name);
            id
        }
    };
    let message = || span.message.filter(|_| span.failed).map(Value::from);
    builder.result_once(Reply {
        call_id: Some(call_id),
        is_error: Some(span.failed),
        content: span.get("output.value").cloned().or_else(message),
        ..Reply::default()
    });
}
