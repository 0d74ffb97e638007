use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::producer_tests::{calls, one, rejected, results, tokens};

/// A span: id, parent, start and end in seconds, attributes.
fn span(id: &str, parent: &str, at: (u64, u64), attributes: Value) -> Value {
    let attributes: Vec<Value> = attributes
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| {
            let value = match value {
                Value::Number(number) => json!({"intValue": number.to_string()}),
                Value::String(text) => json!({"stringValue": text}),
                other => json!({"stringValue": other.to_string()}),
            };
            json!({"key": key, "value": value})
        })
        .collect();
    json!({"traceId": "t", "spanId": id, "parentSpanId": parent, "name": id,
           "startTimeUnixNano": at.0.to_string(), "endTimeUnixNano": at.1.to_string(),
           "attributes": attributes})
}

fn export(spans: Value) -> String {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).to_string()
}

fn read(spans: Value) -> Trace {
    one("otel", &export(spans))
}

fn chat(id: &str, parent: &str, at: (u64, u64), calls: Value, input: u64) -> Value {
    span(
        id,
        parent,
        at,
        json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": 1,
        "gen_ai.output.messages": [{"role": "assistant", "parts": calls}]}),
    )
}

fn made(id: &str, name: &str, args: Value) -> Value {
    json!({"type": "tool_call", "id": id, "name": name, "arguments": args})
}

fn failed(mut span: Value, kind: &str) -> Value {
    span["status"] = json!({"code": 2, "message": "no"});
    let attribute = json!({"key": "error.type", "value": {"stringValue": kind}});
    span["attributes"].as_array_mut().unwrap().push(attribute);
    span
}

fn mcp(id: &str, parent: &str, at: (u64, u64), tool: &str) -> Value {
    span(
        id,
        parent,
        at,
        json!({"mcp.method.name": "tools/call", "gen_ai.tool.name": tool}),
    )
}

#[test]
fn the_spans_of_one_call_are_one_call_and_the_server_knows_its_name() {
    let trace = read(json!([
        chat(
            "c",
            "",
            (1, 2),
            json!([made("a", "weather_get", json!({"x": 1}))]),
            10
        ),
        span(
            "x",
            "",
            (3, 9),
            json!({"gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "weather_get", "gen_ai.tool.call.id": "a"})
        ),
        failed(mcp("y", "x", (4, 8), "get"), "tool_error"),
        span("z", "y", (5, 7), json!({"mcp.method.name": "tools/call"})),
        span("l", "", (1, 2), json!({"mcp.method.name": "tools/list"})),
    ]));
    assert_eq!(calls(&trace), ["weather.get"]);
    assert_eq!(
        trace.tool_calls[0].extra("wire_name"),
        Some(&json!("weather_get"))
    );
    assert_eq!(results(&trace), [Some(("no".to_owned(), Some(true)))]);
}

#[test]
fn tools_called_by_a_tool_are_separate_calls() {
    let tool = |id: &str, parent: &str, at, name: &str| {
        span(
            id,
            parent,
            at,
            json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}),
        )
    };
    let trace = read(json!([
        tool("x", "", (1, 9), "research"),
        chat("c", "x", (2, 3), json!([]), 10),
        tool("y", "x", (4, 5), "search"),
        tool("z", "c", (6, 7), "research"),
    ]));
    assert_eq!(calls(&trace), ["research", "search", "research"]);
}

#[test]
fn spans_without_ids_are_joined_by_name_and_arguments() {
    let answers = json!([
        made("a", "f", json!({"x": 1})),
        made("b", "f", json!({"x": 2}))
    ]);
    let tool = |id: &str, at, args: Value| {
        span(
            id,
            "",
            at,
            json!({
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f",
        "gen_ai.tool.call.arguments": args, "gen_ai.tool.call.result": id}),
        )
    };
    let trace = read(json!([
        chat("c", "", (1, 2), answers.clone(), 10),
        tool("second", (3, 4), json!({"x": 2})),
        tool("first", (3, 5), json!({"x": 1})),
    ]));
    let texts: Vec<String> = results(&trace)
        .into_iter()
        .map(|one| one.unwrap().0)
        .collect();
    assert_eq!(texts, ["first", "second"]);
    // Without arguments nobody knows which of the two failed.
    let trace = read(json!([
        chat("c", "", (1, 2), answers, 10),
        mcp("x", "", (3, 4), "f"),
        failed(mcp("y", "", (3, 5), "f"), "tool_error"),
    ]));
    assert_eq!(trace.tool_calls.len(), 2);
    let flags: Vec<_> = results(&trace)
        .into_iter()
        .map(|one| one.unwrap().1)
        .collect();
    assert_eq!(flags, [None, None]);
}

#[test]
fn usage_counts_once_per_request() {
    let trace = read(json!([
        span(
            "agent",
            "",
            (0, 9),
            json!({"gen_ai.operation.name": "invoke_agent",
            "gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 2})
        ),
        chat("c", "agent", (1, 4), json!([]), 10),
        // The library below records the same request.
        chat("d", "c", (2, 3), json!([]), 10),
        span(
            "e",
            "agent",
            (5, 6),
            json!({"gen_ai.request.model": "m",
            "gen_ai.usage.prompt_tokens": 20, "gen_ai.usage.completion_tokens": 1})
        ),
    ]));
    assert_eq!(tokens(&trace), [Some(30), Some(2), Some(32)]);
    let trace = read(json!([span(
        "agent",
        "",
        (0, 9),
        json!({
        "gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 2})
    )]));
    assert_eq!(tokens(&trace), [Some(30), Some(2), Some(32)]);
    let trace = read(json!([
        chat("c", "", (1, 4), json!([]), 10),
        span("d", "", (5, 6), json!({"gen_ai.operation.name": "chat"})),
    ]));
    assert_eq!(tokens(&trace), [None; 3]);
}

#[test]
fn one_attribute_per_value_is_read_into_messages() {
    let trace = read(json!([
        span(
            "c",
            "",
            (1, 2),
            json!({"gen_ai.operation.name": "chat",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Go.",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.tool_calls.0.id": "a",
            "gen_ai.completion.0.tool_calls.0.name": "f",
            "gen_ai.completion.0.tool_calls.0.arguments": "{\"x\": "})
        ),
        span(
            "d",
            "",
            (3, 4),
            json!({"gen_ai.operation.name": "chat",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Go.",
            "gen_ai.prompt.1.role": "tool", "gen_ai.prompt.1.tool_call_id": "a",
            "gen_ai.prompt.1.content": "text", "gen_ai.completion.0.content": "Done."})
        ),
    ]));
    assert_eq!(calls(&trace), ["f"]);
    assert_eq!(trace.tool_calls[0].args(), Some(&json!("{\"x\": ")));
    assert_eq!(results(&trace), [Some(("text".to_owned(), None))]);
    assert_eq!(trace.final_text().as_deref(), Some("Done."));
    let turns = trace.conversation.turns.as_ref().unwrap();
    assert_eq!(
        turns
            .iter()
            .filter(|turn| turn.role.as_deref() == Some("user"))
            .count(),
        1
    );
}

#[test]
fn a_failed_last_request_is_the_providers_failure() {
    let last = failed(chat("c", "", (1, 2), json!([]), 1), "429");
    assert_eq!(
        read(json!([last])).error.unwrap().kind.as_str(),
        "rate_limit"
    );
}

#[test]
fn spans_that_are_their_own_parents_end() {
    let trace = read(json!([
        mcp("x", "y", (1, 2), "f"),
        mcp("y", "x", (1, 2), "g")
    ]));
    assert_eq!(trace.tool_calls.len(), 2);
}

#[test]
fn other_spans_are_rejected() {
    let text = export(json!([span(
        "http",
        "",
        (1, 2),
        json!({"http.request.method": "GET"})
    )]));
    let error = rejected("otel", &text);
    assert!(
        error
            .to_string()
            .contains("no span is a request to a model"),
        "{error}"
    );
    let input = crate::Input::parse(text.as_bytes()).unwrap();
    let error = crate::detect(&input).err().unwrap().to_string();
    assert!(
        error.contains("not otel: no span has an attribute"),
        "{error}"
    );
}
