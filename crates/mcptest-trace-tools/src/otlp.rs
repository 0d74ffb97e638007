//! Traces as OpenTelemetry spans (OTLP JSON), for tools that read those.
//!
//! A run is one OTLP trace: an `invoke_agent` span with the model, the tokens and the messages, and
//! one `execute_tool` span for each call, as the GenAI semantic conventions (1.37) name them. What
//! the conventions have no name for is under `mcptest.`, so that reading the spans again gives the
//! same calls, results, tokens and answer.
//!
//! A trace has no clock, so times are made up: call *n* lasts from second *n* to second *n* + 1
//! after 1970. Ids are hashes of the trace's content and position: equal input gives equal bytes.

use mcptest_json::canonical;
use mcptest_trace::trace::{ToolCallView, ToolResultView, TraceView};
use serde_json::{Map, Value, json};
use twox_hash::XxHash3_128;

use crate::result_text::result_text;

/// The scope of the spans.
const SCOPE: &str = "mcptest";
const SECOND: u64 = 1_000_000_000;
/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u64 = 1;
/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: u64 = 2;

/// One trace as an OTLP `TracesData` object. `position` is that of the trace in the output, from 0.
#[must_use]
pub fn traces_data(trace: &TraceView<'_>, position: u64) -> Value {
    let digest = hash(&format!("{position} {}", trace.to_json()));
    let trace_id = format!("{digest:032x}");
    let span_id = |number: u64| {
        let hash = hash(&format!("{trace_id} {number}"));
        // The low half; an id of zeros would be invalid.
        format!("{:016x}", (hash as u64).max(1))
    };
    let root = span_id(0);
    let results = trace.results_by_call();
    let mut spans = vec![agent_span(trace, &trace_id, &root)];
    for (at, (call, result)) in trace.tool_calls.iter().zip(results).enumerate() {
        let number = at as u64 + 1;
        let place = Place {
            trace_id: &trace_id,
            span_id: span_id(number),
            parent: &root,
            number,
        };
        spans.push(tool_span(call, result, place));
    }
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes([("service.name", json!(SCOPE))])},
        "scopeSpans": [{"scope": {"name": SCOPE}, "spans": spans}],
    }]})
}

fn hash(text: &str) -> u128 {
    XxHash3_128::oneshot(text.as_bytes())
}

fn agent_span(trace: &TraceView<'_>, trace_id: &str, span_id: &str) -> Value {
    let tokens = trace.conversation.tokens.as_ref();
    let figure = |value: Option<u64>| value.map(Value::from);
    let catalog = trace.catalog().map(|tools| json!(tools).to_string().into());
    let messages = trace.conversation.turns.as_ref().map(|turns| {
        let turns = turns.iter().map(|turn| {
            let role = turn.role.as_deref().unwrap_or("assistant");
            json!({"role": role, "parts": [{"type": "text", "content": turn.text()}]})
        });
        Value::from(Value::from_iter(turns).to_string())
    });
    let answer = trace.final_text().map(|text| {
        let parts = json!([{"type": "text", "content": text}]);
        let message = json!([{"role": "assistant", "parts": parts, "finish_reason": "stop"}]);
        Value::from(message.to_string())
    });
    let list = [
        ("gen_ai.operation.name", Some(json!("invoke_agent"))),
        (
            "gen_ai.request.model",
            trace.model.as_deref().map(Value::from),
        ),
        (
            "gen_ai.usage.input_tokens",
            figure(tokens.and_then(|it| it.input)),
        ),
        (
            "gen_ai.usage.output_tokens",
            figure(tokens.and_then(|it| it.output)),
        ),
        (
            "mcptest.usage.total_tokens",
            figure(tokens.and_then(|it| it.total)),
        ),
        ("gen_ai.input.messages", messages),
        ("gen_ai.output.messages", answer),
        ("gen_ai.tool.definitions", catalog),
        ("mcptest.test", trace.test.as_deref().map(Value::from)),
        ("mcptest.run", figure(trace.run)),
        (
            "error.type",
            trace.error.as_ref().map(|it| it.kind.as_str().into()),
        ),
    ];
    let list = list
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)));
    let end = (trace.tool_calls.len() as u64 + 1) * SECOND;
    let mut span = json!({
        "traceId": trace_id,
        "spanId": span_id,
        "name": "invoke_agent",
        "kind": INTERNAL,
        "startTimeUnixNano": SECOND.to_string(),
        "endTimeUnixNano": end.max(2 * SECOND).to_string(),
        "attributes": attributes(list),
    });
    if let Some(error) = &trace.error {
        span["status"] = json!({"code": STATUS_ERROR, "message": error.message});
    }
    span
}

/// The place of a span in its trace.
struct Place<'a> {
    trace_id: &'a str,
    span_id: String,
    parent: &'a str,
    /// The number of the call, from 1.
    number: u64,
}

fn tool_span(
    call: &ToolCallView<'_>,
    result: Option<&ToolResultView<'_>>,
    place: Place<'_>,
) -> Value {
    let id = call.id().map(|id| match id {
        Value::String(text) => text.clone(),
        other => canonical(other),
    });
    let failed = result.and_then(|result| result.is_error);
    let kind = result.and_then(|result| result.extra("error_kind")?.as_str());
    let list = [
        ("gen_ai.operation.name", Some(json!("execute_tool"))),
        ("gen_ai.tool.name", Some(json!(call.name()))),
        ("gen_ai.tool.call.id", id.map(Value::from)),
        ("gen_ai.tool.call.arguments", call.args().map(argument_text)),
        (
            "gen_ai.tool.call.result",
            result.map(|result| result_text(result).into()),
        ),
        (
            "error.type",
            (failed == Some(true)).then(|| kind.unwrap_or("tool_error").into()),
        ),
        ("mcp.server.name", call.server.as_deref().map(Value::from)),
        ("mcptest.turn", call.turn.map(Value::from)),
    ];
    let list = list
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)));
    let mut span = json!({
        "traceId": place.trace_id,
        "spanId": place.span_id,
        "parentSpanId": place.parent,
        "name": format!("execute_tool {}", call.name()),
        "kind": INTERNAL,
        "startTimeUnixNano": (place.number * SECOND).to_string(),
        "endTimeUnixNano": ((place.number + 1) * SECOND).to_string(),
        "attributes": attributes(list),
    });
    if failed == Some(true) {
        span["status"] = json!({"code": STATUS_ERROR});
    }
    span
}

/// Arguments that were not valid JSON are kept as the string that they are.
fn argument_text(args: &Value) -> Value {
    match args {
        Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}

/// Attributes in the form of OTLP JSON, in which whole numbers are strings.
fn attributes<'k>(list: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    let attribute = |(key, value): (&str, Value)| {
        let (kind, value) = match value {
            Value::Bool(_) => ("boolValue", value),
            Value::Number(number) if number.is_u64() => ("intValue", number.to_string().into()),
            Value::String(_) => ("stringValue", value),
            other => ("stringValue", other.to_string().into()),
        };
        let value = Map::from_iter([(kind.to_owned(), value)]);
        json!({"key": key, "value": value})
    };
    list.into_iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn spans(text: &str) -> Vec<Value> {
        let trace = TraceView::parse(text).unwrap();
        let data = traces_data(&trace, 0);
        let spans = &data["resourceSpans"][0]["scopeSpans"][0]["spans"];
        spans.as_array().unwrap().clone()
    }

    fn attribute<'v>(span: &'v Value, key: &str) -> Option<&'v Value> {
        let list = span["attributes"].as_array().unwrap();
        let found = list.iter().find(|it| it["key"] == key)?;
        found["value"].as_object().unwrap().values().next()
    }

    #[test]
    fn a_run_is_an_agent_span_with_a_tool_span_per_call() {
        let spans = spans(
            r#"{"test": "t", "run": 3, "model": "m", "tool_calls": [
                 {"id": "c1", "name": "get", "server": "w", "args": {"q": 1}, "turn": 2},
                 {"name": "bad", "args": "{broken"}],
               "tool_results": [{"call_id": "c1", "is_error": true, "error_kind": "timeout",
                 "content": [{"type": "text", "text": "slow"}]}],
               "conversation": {"tokens": {"input": 9, "total": 10}},
               "final_response": "done"}"#,
        );
        assert_eq!(spans.len(), 3);
        let [agent, get, bad] = &spans[..] else {
            panic!("three spans")
        };
        assert_eq!(
            attribute(agent, "gen_ai.usage.input_tokens"),
            Some(&json!("9"))
        );
        assert_eq!(attribute(agent, "gen_ai.usage.output_tokens"), None);
        assert_eq!(attribute(agent, "mcptest.run"), Some(&json!("3")));
        assert_eq!(
            attribute(get, "gen_ai.tool.call.arguments"),
            Some(&json!("{\"q\":1}"))
        );
        assert_eq!(
            attribute(get, "gen_ai.tool.call.result"),
            Some(&json!("slow"))
        );
        assert_eq!(attribute(get, "error.type"), Some(&json!("timeout")));
        assert_eq!(attribute(get, "mcp.server.name"), Some(&json!("w")));
        assert_eq!(get["status"]["code"], 2);
        assert_eq!(
            attribute(bad, "gen_ai.tool.call.arguments"),
            Some(&json!("{broken"))
        );
        assert_eq!(get["parentSpanId"], agent["spanId"]);
        let ids: HashSet<_> = spans
            .iter()
            .map(|span| span["spanId"].to_string())
            .collect();
        assert_eq!(ids.len(), 3);
        assert!(spans.iter().all(|span| span["traceId"] == agent["traceId"]));
    }

    #[test]
    fn the_reader_of_spans_gives_the_trace_back() {
        let text = r#"{"test": "t", "model": "m", "run": 3, "tool_calls": [
             {"id": "c1", "name": "get", "server": "w", "args": {"q": [1, "a"]}},
             {"id": "c2", "name": "bad", "args": "{broken"}],
           "tool_results": [
             {"call_id": "c1", "is_error": true, "content": [{"type": "text", "text": "slow"}]},
             {"call_id": "c2", "is_error": false, "content": [{"type": "text", "text": "ok"}]}],
           "conversation": {"turns": [{"role": "user", "content": "Hi"}],
             "tokens": {"input": 9, "output": 1, "total": 12}},
           "final_response": "done",
           "catalog": [{"server": "w", "name": "get", "inputSchema": {"type": "object"}}]}"#;
        let before = TraceView::parse(text).unwrap();
        let lines = format!("{}\n{}\n", traces_data(&before, 0), traces_data(&before, 1));
        let input = mcptest_formats::Input::parse(lines.as_bytes()).unwrap();
        let reader = mcptest_formats::detect(&input).unwrap();
        assert_eq!(reader.format().name, "otel");
        let after = reader.read(&input).unwrap();
        assert_eq!(after.len(), 2);
        for after in after {
            assert_eq!(
                (&after.test, &after.model, after.run),
                (&before.test, &before.model, before.run)
            );
            assert_eq!(after.final_response, before.final_response);
            assert_eq!(after.conversation, before.conversation);
            assert_eq!(after.catalog, before.catalog);
            assert_eq!(after.tool_results, before.tool_results);
            let calls = |trace: &TraceView<'_>| {
                let calls = trace.tool_calls.iter();
                let facts =
                    calls.map(|call| (call.id().cloned(), call.full_id(), call.args().cloned()));
                facts.collect::<Vec<_>>()
            };
            assert_eq!(calls(&after), calls(&before));
        }
    }

    #[test]
    fn ids_depend_on_content_and_position_only() {
        let trace = TraceView::parse(r#"{"tool_calls": []}"#).unwrap();
        assert_eq!(traces_data(&trace, 1), traces_data(&trace, 1));
        assert_ne!(traces_data(&trace, 1), traces_data(&trace, 2));
    }
}
