use serde_json::{Value, json};

use crate::producer_tests::{calls, lines, one, rejected, results, tokens};

fn header() -> Value {
    json!({"sessionId": "s", "projectHash": "h"})
}

fn answer(id: &str, calls: Value, input: u64) -> Value {
    json!({"id": id, "type": "gemini", "content": "Text.", "toolCalls": calls,
           "tokens": {"input": input, "output": 2, "thoughts": 3, "tool": 1, "total": input + 6}})
}

fn call(name: &str, shown: &str) -> Value {
    json!([{"id": name, "name": name, "displayName": shown, "args": {}, "status": "success",
        "result": [{"functionResponse": {"response": {
            "output": "<untrusted_context>\nfine\n</untrusted_context>"}}}]}])
}

#[test]
fn the_last_form_of_a_message_counts_and_rewound_ones_are_gone() {
    let calls_of = call("mcp_my_server_get_it", "get_it (my_server MCP Server)");
    let session = [
        header(),
        json!({"id": "u", "type": "user", "content": [{"text": "Go."}]}),
        answer("a", json!([]), 10),
        json!({"$set": {"lastUpdated": "now"}}),
        answer("a", calls_of.clone(), 10),
        answer("b", call("gone", ""), 100),
        json!({"$rewindTo": "b"}),
        answer("c", json!([]), 20),
    ];
    let trace = one("gemini-cli", &lines(&session));
    assert_eq!(calls(&trace), ["my_server.get_it"]);
    assert_eq!(results(&trace), [Some(("fine".to_owned(), Some(false)))]);
    assert_eq!(tokens(&trace), [Some(32), Some(10), Some(42)]);
    let mut whole = header();
    whole["messages"] = json!([answer("a", calls_of, 10)]);
    let trace = one("gemini-cli", &whole.to_string());
    assert_eq!(calls(&trace), ["my_server.get_it"]);
}

#[test]
fn streamed_pieces_are_joined_and_hidden_reasoning_is_output() {
    let trace = one(
        "gemini-cli",
        &lines(&[
            json!({"type": "init", "session_id": "s", "model": "m"}),
            json!({"type": "message", "role": "user", "content": "Go."}),
            json!({"type": "message", "role": "assistant", "content": "It ", "delta": true}),
            json!({"type": "message", "role": "assistant", "content": "is.", "delta": true}),
            json!({"type": "tool_use", "tool_name": "read_file", "tool_id": "1", "parameters": {}}),
            json!({"type": "tool_use", "tool_name": "mcp_s_get_it", "tool_id": "2", "parameters": {}}),
            json!({"type": "tool_result", "tool_id": "2", "status": "success", "output": "two"}),
            json!({"type": "tool_result", "tool_id": "1", "status": "error", "output": "",
               "error": {"type": "x", "message": "no file"}}),
            json!({"type": "result", "status": "success", "stats":
               {"input_tokens": 10, "output_tokens": 2, "total_tokens": 15, "cached": 4}}),
        ]),
    );
    assert_eq!(calls(&trace), ["read_file", "s.get_it"]);
    let wanted =
        [("no file", true), ("two", false)].map(|(text, flag)| Some((text.to_owned(), Some(flag))));
    assert_eq!(results(&trace), wanted);
    assert_eq!(trace.final_text().as_deref(), Some("It is."));
    assert_eq!(tokens(&trace), [Some(10), Some(5), Some(15)]);
}

#[test]
fn a_stream_without_its_end_is_no_evidence() {
    let start = json!({"type": "init", "session_id": "s", "model": "m"});
    let trace = one("gemini-cli", &start.to_string());
    assert_eq!(trace.error.unwrap().kind.as_str(), "transport");
}

#[test]
fn the_json_output_has_no_order_of_different_tools() {
    let output = |tools: Value| {
        json!({"response": "Done.", "stats": {
        "models": {"m": {"tokens": {"prompt": 10, "candidates": 2, "thoughts": 1, "total": 13}}},
        "tools": {"byName": tools}}})
        .to_string()
    };
    let tool = |count: u64, failed: u64| json!({"count": count, "success": count - failed, "fail": failed});
    let trace = one("gemini-cli", &output(json!({"mcp_s_f": tool(2, 0)})));
    assert_eq!(calls(&trace), ["s.f", "s.f"]);
    assert_eq!(trace.tool_results.len(), 2);
    assert_eq!(tokens(&trace), [Some(10), Some(3), Some(13)]);
    let trace = one("gemini-cli", &output(json!({"mcp_s_f": tool(2, 1)})));
    assert_eq!(trace.tool_results.len(), 0);
    assert_eq!(calls(&one("gemini-cli", &output(json!({})))), [""; 0]);
    let error = rejected(
        "gemini-cli",
        &output(json!({"f": tool(1, 0), "g": tool(1, 0)})),
    );
    assert!(
        error
            .to_string()
            .contains("does not record the order of calls"),
        "{error}"
    );
}
