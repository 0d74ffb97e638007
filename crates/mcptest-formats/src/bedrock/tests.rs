use serde_json::json;

use super::*;

fn read(value: &Value) -> Vec<Trace> {
    let text = value.to_string();
    let input = Input::parse(text.as_bytes()).unwrap();
    let reader = crate::detect(&input).unwrap();
    assert_eq!(reader.format().name, "bedrock");
    reader.read(&input).unwrap()
}

#[test]
fn requests_and_responses_are_one_conversation() {
    let user = json!({"role": "user", "content": [{"text": "Go."}]});
    let call = json!({"role": "assistant", "content": [
        {"toolUse": {"toolUseId": "a", "name": "f", "input": {"x": 1}}},
        {"toolUse": {"toolUseId": "b", "name": "g", "input": {}}}]});
    let result = json!({"role": "user", "content": [
        {"toolResult": {"toolUseId": "b", "content": [{"text": "no"}], "status": "error"}},
        {"toolResult": {"toolUseId": "a", "content": [{"json": {"y": 2}}]}}]});
    let response = |message: &Value, reason: &str| {
        json!({"output": {"message": message}, "stopReason": reason,
            "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15,
                "cacheReadInputTokens": 100}})
    };
    let done = json!({"role": "assistant", "content": [{"text": "Done."}]});
    let tools = json!({"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}]});
    let traces = read(&json!([
        {"request": {"modelId": "m", "messages": [user], "toolConfig": tools},
         "response": response(&call, "tool_use")},
        {"request": {"modelId": "m", "messages": [user, call, result], "toolConfig": tools},
         "response": response(&done, "end_turn")},
    ]));
    assert_eq!(traces.len(), 1);
    let trace = &traces[0];
    assert_eq!(trace.pair_results(), [Some(1), Some(0)]);
    assert_eq!(trace.tool_results[0].is_error, Some(true));
    assert_eq!(trace.tool_results[1].is_error, None);
    assert_eq!(
        trace.tool_results[1].extra("structured_content"),
        Some(&json!({"y": 2}))
    );
    let tokens = trace.conversation.tokens.as_ref().unwrap();
    assert_eq!(
        (tokens.input, tokens.output, tokens.total),
        (Some(220), Some(10), Some(230))
    );
    assert_eq!(trace.model.as_deref(), Some("m"));
    assert_eq!(trace.catalog().unwrap()[0].name(), "f");
}
