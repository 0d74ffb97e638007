use serde_json::json;

use super::*;

fn read(value: Value) -> Vec<Trace> {
    let text = value.to_string();
    let input = Input::parse(text.as_bytes()).unwrap();
    let reader = crate::detect(&input).unwrap();
    assert_eq!(reader.format().name, "anthropic");
    reader.read(&input).unwrap()
}

#[test]
fn all_kinds_of_calls_and_results_are_read() {
    let traces = read(json!({
    "model": "claude", "system": "s", "max_tokens": 100,
    "messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
            {"type": "tool_use", "id": "b", "name": "g", "input": {},
             "caller": {"type": "code_execution_20250825", "tool_id": "srv"}},
            {"type": "tool_use", "id": "d", "name": "g", "input": {}, "caller": {"type": "direct"}},
            {"type": "mcp_tool_use", "id": "m", "name": "echo", "server_name": "srv", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": true,
             "content": [{"type": "text", "text": "no"}]},
            {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "w",
             "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": "2", "is_error": true},
            {"type": "tool_result", "tool_use_id": "a"},
        ]},
    ]}));
    let trace = &traces[0];
    let names: Vec<_> = trace.tool_calls.iter().map(|call| call.full_id()).collect();
    assert_eq!(names, ["f", "g", "g", "srv.echo", "web_search"]);
    let callers: Vec<_> = trace
        .tool_calls
        .iter()
        .map(|call| call.caller.is_some())
        .collect();
    assert_eq!(callers, [false, true, false, false, false]);
    let errors: Vec<_> = trace
        .results_by_call()
        .into_iter()
        .map(|one| one.and_then(|one| one.is_error))
        .collect();
    assert_eq!(
        errors,
        [Some(false), Some(true), None, Some(true), Some(true)]
    );
    assert_eq!(trace.conversation.turns.as_ref().unwrap().len(), 2);
    assert_eq!(trace.final_text().unwrap(), "Looking.");
}

#[test]
fn cached_tokens_are_input_and_usage_is_counted_once() {
    let response = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
        "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 300,
            "cache_creation_input_tokens": 50, "output_tokens": 7}});
    let traces = read(response);
    let tokens = traces[0].conversation.tokens.as_ref().unwrap();
    assert_eq!(
        (tokens.input, tokens.output, tokens.total),
        (Some(360), Some(7), Some(367))
    );
    assert_eq!(tokens.extra("cached_input"), Some(&json!(300)));
    assert_eq!(traces[0].extra("stop_reason"), Some(&json!("end")));
}

#[test]
fn pairs_continue_when_cache_marks_move() {
    let user = |mark: bool| {
        let mut block = json!({"type": "text", "text": "Go."});
        if mark {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        json!({"role": "user", "content": [block]})
    };
    let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    let response = |id: &str, content: Value| {
        json!({"id": id, "type": "message", "role": "assistant", "content": [content],
            "usage": {"input_tokens": 1, "output_tokens": 1}})
    };
    let traces = read(json!([
        {"request": {"model": "c", "messages": [user(true)]}, "response": response("m1", call.clone())},
        {"request": {"model": "c", "messages": [user(false),
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}]},
         "response": response("m2", json!({"type": "text", "text": "Done."}))},
    ]));
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].tool_calls.len(), 1);
    assert_eq!(traces[0].total_tokens(), Some(4));
    assert_eq!(traces[0].final_text().unwrap(), "Done.");
}

#[test]
fn results_of_a_batch_are_unwrapped() {
    let traces = read(
        json!({"custom_id": "case-1", "result": {"type": "succeeded", "message": {
        "id": "m", "type": "message", "role": "assistant",
        "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 2}}}}),
    );
    assert_eq!(traces[0].final_text().unwrap(), "Done.");
    assert_eq!(traces[0].total_tokens(), Some(3));
}
