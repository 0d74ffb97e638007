use serde_json::{Value, json};

use crate::producer_tests::{calls, detected, lines, one, rejected, results, tokens};

fn item(kind: &str, item: Value) -> Value {
    json!({"type": kind, "item": item})
}

fn mcp(id: &str, status: &str) -> Value {
    json!({"id": id, "type": "mcp_tool_call", "server": "s", "tool": "f", "arguments": {},
           "status": status, "result": {"content": [{"type": "text", "text": status}]}})
}

fn completed(input: u64) -> Value {
    json!({"type": "turn.completed", "usage": {"input_tokens": input, "output_tokens": 1}})
}

#[test]
fn a_resumed_thread_counts_its_usage_once_and_its_items_twice() {
    let start = json!({"type": "thread.started", "thread_id": "t"});
    let trace = one(
        "codex",
        &lines(&[
            start.clone(),
            item("item.started", mcp("item_0", "in_progress")),
            item("item.completed", mcp("item_0", "completed")),
            completed(10),
            start,
            item("item.completed", mcp("item_0", "failed")),
            completed(30),
        ]),
    );
    assert_eq!(calls(&trace), ["s.f", "s.f"]);
    let flags: Vec<_> = results(&trace)
        .into_iter()
        .map(|one| one.unwrap().1)
        .collect();
    assert_eq!(flags, [Some(false), Some(true)]);
    assert_eq!(tokens(&trace)[0], Some(30));
}

#[test]
fn codex_own_tools_are_calls_and_warnings_are_not() {
    let trace = one(
        "codex",
        &lines(&[
            json!({"type": "thread.started", "thread_id": "t"}),
            item(
                "item.completed",
                json!({"id": "i0", "type": "error", "message": "careful"}),
            ),
            item(
                "item.completed",
                json!({"id": "i1", "type": "command_execution", "command": "ls",
            "aggregated_output": "no", "exit_code": 2, "status": "failed"}),
            ),
            item(
                "item.started",
                json!({"id": "i2", "type": "web_search", "query": "q"}),
            ),
            completed(1),
        ]),
    );
    assert_eq!(calls(&trace), ["command_execution", "web_search"]);
    assert_eq!(results(&trace), [Some(("no".to_owned(), Some(true))), None]);
    assert_eq!(trace.tool_calls[0].args(), Some(&json!({"command": "ls"})));
}

#[test]
fn a_stream_without_its_end_and_two_threads() {
    let start = |id: &str| json!({"type": "thread.started", "thread_id": id});
    let done = item("item.completed", mcp("item_0", "completed"));
    let traces = detected(
        "codex",
        &lines(&[start("a"), done.clone(), completed(1), start("b"), done]),
    );
    assert_eq!(traces.len(), 2);
    assert_eq!(traces[0].error, None);
    assert_eq!(traces[1].error.as_ref().unwrap().kind.as_str(), "transport");
}

fn line(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "t", "type": kind, "payload": payload})
}

fn meta(id: &str) -> Value {
    line("session_meta", json!({"id": id}))
}

fn function_call(id: &str, name: &str, arguments: &str) -> Value {
    line(
        "response_item",
        json!({"type": "function_call", "call_id": id, "name": name,
        "namespace": "mcp__s", "arguments": arguments}),
    )
}

fn output(id: &str, output: Value) -> Value {
    line(
        "response_item",
        json!({"type": "function_call_output", "call_id": id, "output": output}),
    )
}

#[test]
fn both_sides_of_a_call_are_one_call() {
    let end = |id: &str, result: Value| {
        line(
            "event_msg",
            json!({"type": "mcp_tool_call_end",
        "call_id": id, "invocation": {"server": "s", "tool": "get-sum"}, "result": result}),
        )
    };
    let trace = one(
        "codex",
        &lines(&[
            meta("1"),
            function_call("a", "get_sum", "{\"x\": 1}"),
            function_call("b", "get_sum", "{\"x\": "),
            end(
                "a",
                json!({"Ok": {"content": [{"type": "text", "text": "3"}], "isError": false}}),
            ),
            output("a", json!("Wall time: 1\nOutput:\n3")),
            end("b", json!({"Err": "no"})),
            output("b", json!("err")),
            function_call("c", "other", "{}"),
            output("c", json!({"content": "text", "success": false})),
        ]),
    );
    assert_eq!(calls(&trace), ["s.get-sum", "s.get-sum", "s.other"]);
    assert_eq!(trace.tool_calls[1].args(), Some(&json!("{\"x\": ")));
    assert_eq!(
        trace.tool_calls[0].extra("wire_name"),
        Some(&json!("mcp__s__get_sum"))
    );
    let turns: Vec<_> = trace
        .tool_calls
        .iter()
        .map(|call| call.turn.unwrap())
        .collect();
    assert_eq!(turns, [1, 1, 2]);
    let result = |text: &str, flag| Some((text.to_owned(), Some(flag)));
    assert_eq!(
        results(&trace),
        [result("3", false), result("no", true), result("text", true)]
    );
    assert_eq!(tokens(&trace), [None; 3]);
}

#[test]
fn repeated_counts_of_tokens_are_the_thread_so_far() {
    let count = |input: Value| {
        line(
            "event_msg",
            json!({"type": "token_count",
        "info": {"total_token_usage": {"input_tokens": input, "output_tokens": 2}}}),
        )
    };
    let trace = one(
        "codex",
        &lines(&[
            meta("1"),
            line(
                "response_item",
                json!({"type": "message", "role": "user", "content": "Go."}),
            ),
            count(json!(10)),
            count(json!(10)),
            count(json!(30)),
            line("event_msg", json!({"type": "token_count", "info": null})),
        ]),
    );
    assert_eq!(tokens(&trace), [Some(30), Some(2), Some(32)]);
}

#[test]
fn other_logs_are_rejected() {
    let error = rejected("codex", "{\"type\": \"turn.started\"}");
    assert!(error.to_string().contains("codex exec --json"), "{error}");
}
