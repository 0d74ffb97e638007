use serde_json::json;

use super::*;

fn read(value: &Value) -> Vec<Trace> {
    let text = value.to_string();
    let input = Input::parse(text.as_bytes()).unwrap();
    let reader = crate::detect(&input).unwrap();
    assert_eq!(reader.format().name, "openai-responses");
    reader.read(&input).unwrap()
}

#[test]
fn items_of_all_kinds_are_read() {
    let traces = read(&json!([
        {"role": "user", "content": "Go."},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"x\": "},
        {"type": "function_call", "call_id": "b", "name": "g", "arguments": ""},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "mcp_list_tools", "server_label": "srv", "tools": [
            {"name": "echo", "input_schema": {"type": "object"}}]},
        {"type": "mcp_call", "id": "mcp_1", "server_label": "srv", "name": "echo",
         "arguments": "{\"t\": 1}", "output": null, "error": {"type": "http_error"}},
        {"type": "web_search_call", "id": "ws_1", "status": "completed",
         "action": {"type": "search", "query": "q"}},
        {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "Done."}]},
    ]));
    let trace = &traces[0];
    let ids: Vec<_> = trace.tool_calls.iter().map(|call| call.full_id()).collect();
    assert_eq!(ids, ["f", "g", "srv.echo", "web_search"]);
    let turns: Vec<_> = trace.tool_calls.iter().map(|call| call.turn).collect();
    assert_eq!(turns, [Some(1), Some(1), Some(2), Some(2)]);
    assert_eq!(trace.tool_calls[0].args(), Some(&json!("{\"x\": ")));
    assert_eq!(trace.tool_calls[1].args(), Some(&json!({})));
    let errors: Vec<_> = trace
        .results_by_call()
        .into_iter()
        .map(|one| one.and_then(|one| one.is_error))
        .collect();
    assert_eq!(errors, [None, None, Some(true), Some(false)]);
    assert_eq!(trace.catalog().unwrap()[0].server(), Some("srv"));
    assert_eq!(trace.final_text().unwrap(), "Done.");
}

#[test]
fn responses_that_continue_by_id_are_one_trace() {
    let response = |id: &str, output: Value| {
        json!({"id": id, "object": "response", "model": "m", "status": "completed",
            "output": output, "usage": {"input_tokens": 10, "output_tokens": 5,
            "total_tokens": 15, "input_tokens_details": {"cached_tokens": 4},
            "output_tokens_details": {"reasoning_tokens": 2}}})
    };
    let call = json!([{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]);
    let done = json!([{"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": "Done."}]}]);
    let traces = read(&json!([
        {"request": {"model": "m", "input": "Go."}, "response": response("r1", call)},
        {"request": {"model": "m", "previous_response_id": "r1", "input": [
            {"type": "function_call_output", "call_id": "a", "output": "1"}]},
         "response": response("r2", done)},
    ]));
    assert_eq!(traces.len(), 1);
    let trace = &traces[0];
    assert_eq!(trace.pair_results(), [Some(0)]);
    assert_eq!(trace.total_tokens(), Some(30));
    let tokens = trace.conversation.tokens.as_ref().unwrap();
    assert_eq!(tokens.extra("cached_input"), Some(&json!(8)));
    assert_eq!(tokens.extra("reasoning"), Some(&json!(4)));
    assert_eq!(trace.extra("stop_reason"), Some(&json!("end")));
    assert_eq!(trace.final_text().unwrap(), "Done.");
}
