use serde_json::json;

use super::*;

fn read(value: Value) -> Vec<Trace> {
    let text = value.to_string();
    let input = Input::parse(text.as_bytes()).unwrap();
    let reader = crate::detect(&input).unwrap();
    assert_eq!(reader.format().name, "openai-chat");
    reader.read(&input).unwrap()
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn results_are_joined_by_id_and_broken_arguments_are_kept() {
    let traces = read(json!([
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": null, "tool_calls": [
            call("a", "f", "{\"x\": 1}"), call("b", "g", "{\"x\": ")]},
        {"role": "tool", "tool_call_id": "b", "content": "second"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "first"}]},
        {"role": "assistant", "content": "Done."},
    ]));
    let trace = &traces[0];
    assert_eq!(trace.tool_calls[0].args(), Some(&json!({"x": 1})));
    assert_eq!(trace.tool_calls[1].args(), Some(&json!("{\"x\": ")));
    assert_eq!(
        trace.tool_calls[1].extra("source"),
        Some(&json!("/1/tool_calls/1"))
    );
    assert_eq!(trace.pair_results(), [Some(1), Some(0)]);
    assert_eq!(trace.tool_results[0].is_error, None);
    assert_eq!(trace.final_text().unwrap(), "Done.");
    assert_eq!(trace.tool_calls[0].turn, Some(1));
    assert_eq!(trace.conversation.tokens, None);
}

#[test]
fn requests_that_continue_one_another_are_one_trace() {
    let first = json!([{"role": "user", "content": "Go."}]);
    let answer =
        json!({"role": "assistant", "content": null, "tool_calls": [call("a", "f", "{}")]});
    let second = json!([
        {"role": "user", "content": "Go."}, answer,
        {"role": "tool", "tool_call_id": "a", "content": "1"}]);
    let exchange = |messages: &Value, message: &Value, id: &str, reason: &str| {
        json!({
            "request": {"model": "m", "messages": messages,
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
            "response": {"id": id, "model": "m-1", "choices": [
                {"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12,
                    "prompt_tokens_details": {"cached_tokens": 4}}},
        })
    };
    let done = json!({"role": "assistant", "content": "Done."});
    let traces = read(json!([
        exchange(&first, &answer, "r1", "tool_calls"),
        exchange(&second, &done, "r2", "stop"),
        exchange(&first, &done, "r3", "length"),
    ]));
    assert_eq!(traces.len(), 2);
    let trace = &traces[0];
    assert_eq!(trace.tool_calls.len(), 1);
    assert_eq!(trace.tool_results.len(), 1);
    assert_eq!(trace.model.as_deref(), Some("m-1"));
    assert_eq!(trace.total_tokens(), Some(24));
    let tokens = trace.conversation.tokens.as_ref().unwrap();
    assert_eq!(tokens.extra("cached_input"), Some(&json!(8)));
    assert_eq!(trace.catalog().unwrap().len(), 1);
    assert_eq!(trace.extra("stop_reason"), Some(&json!("end")));
    assert_eq!(traces[1].extra("stop_reason"), Some(&json!("max_tokens")));
    assert_eq!(traces[1].total_tokens(), Some(12));
}

#[test]
fn the_form_before_tool_calls_is_joined_by_name() {
    let traces = read(json!({"messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "2"},
    ]}));
    assert_eq!(traces[0].pair_results(), [Some(0), Some(1)]);
}

#[test]
fn one_message_per_line_is_one_conversation() {
    let text =
        "{\"role\": \"system\", \"content\": \"s\"}\n{\"role\": \"user\", \"content\": \"u\"}\n";
    let input = Input::parse(text.as_bytes()).unwrap();
    let reader = crate::detect(&input).unwrap();
    assert_eq!(reader.grouping(&input), Grouping::Input);
    let traces = reader.read(&input).unwrap();
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].conversation.turns.as_ref().unwrap().len(), 2);
}

#[test]
fn a_conversation_without_marks_is_ambiguous() {
    let text = json!([{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]);
    let text = text.to_string();
    let error = crate::detect(&Input::parse(text.as_bytes()).unwrap())
        .err()
        .unwrap();
    let message = error.to_string();
    assert!(message.contains("openai-chat"), "{message}");
    assert!(message.contains("anthropic"), "{message}");
    assert!(
        message.contains("an object with the keys `role`, `content`"),
        "{message}"
    );
}

#[test]
fn errors_have_a_pointer() {
    for (value, wanted) in [
        (
            json!({"messages": 3}),
            "line 1, at /messages: not openai-chat: expected an array, found a number",
        ),
        (
            json!({"messages": [{"role": "user"}, 7]}),
            "line 1, at /messages/1: not openai-chat: expected an object, found a number",
        ),
        (
            json!("x"),
            "line 1: not openai-chat: expected a list of messages, a request with `messages` or a \
             response, found a string",
        ),
    ] {
        let text = value.to_string();
        let error = OpenAiChat
            .read(&Input::parse(text.as_bytes()).unwrap())
            .unwrap_err();
        assert_eq!(error.to_string(), wanted);
    }
}

#[test]
fn answers_are_bounded_and_batches_are_unwrapped() {
    let message = json!({"role": "assistant", "content": "a"});
    let choices = vec![json!({"message": message}); 129];
    let text = json!({"choices": choices}).to_string();
    let error = OpenAiChat
        .read(&Input::parse(text.as_bytes()).unwrap())
        .unwrap_err();
    assert!(
        error.to_string().contains("the response has 129 answers"),
        "{error}"
    );
    let batch = json!({"id": "b", "custom_id": "case-1", "error": null, "response": {
        "status_code": 200, "body": {"id": "r", "choices": [{"message": message}]}}});
    let traces = read(batch);
    assert_eq!(traces[0].final_text().unwrap(), "a");
    assert_eq!(traces[0].extra("custom_id"), Some(&json!("case-1")));
}

#[test]
fn parts_of_compatible_servers_are_accepted() {
    let traces = read(json!([
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "t"}],
         "tool_calls": [call("a", "f", "{}")]},
    ]));
    assert_eq!(traces[0].final_text().unwrap(), "t");
}
