use serde_json::{Value, json};

use crate::producer_tests::{calls, detected, lines, one, rejected, results, tokens};

fn human(id: &str) -> Value {
    json!({"type": "human", "id": id, "content": "Go."})
}

fn ai(id: &str, calls: Value, usage: Option<u64>) -> Value {
    json!({"type": "ai", "id": id, "content": "", "tool_calls": calls,
           "usage_metadata": usage.map(|input| json!({"input_tokens": input, "output_tokens": 1}))})
}

fn call(id: &str) -> Value {
    json!([{"id": id, "name": "f", "args": {}}])
}

fn tool(id: &str, status: Value) -> Value {
    json!({"type": "tool", "tool_call_id": id, "content": "text", "status": status})
}

#[test]
fn streamed_states_are_one_run_and_other_states_are_others() {
    let messages = [
        human("1"),
        ai("2", call("a"), Some(10)),
        tool("a", json!("error")),
    ];
    let state = |number: usize| json!({"messages": messages[..number]});
    let other = json!({"values": {"messages": [human("9"), ai("8", json!([]), Some(1))]}});
    let traces = detected("langchain", &lines(&[state(1), state(2), state(3), other]));
    assert_eq!(traces.len(), 2);
    assert_eq!(results(&traces[0]), [Some(("text".to_owned(), Some(true)))]);
    assert_eq!(tokens(&traces[0]), [Some(10), Some(1), Some(11)]);
}

#[test]
fn one_message_per_line_is_one_run_and_unknown_usage_stays_unknown() {
    let all = [
        human("1"),
        ai("2", call("a"), Some(10)),
        tool("a", json!(null)),
        ai("3", json!([]), None),
    ];
    let trace = one("langchain", &lines(&all));
    assert_eq!(calls(&trace), ["f"]);
    assert_eq!(results(&trace), [Some(("text".to_owned(), None))]);
    assert_eq!(tokens(&trace), [None; 3]);
}

#[test]
fn calls_of_the_provider_are_read_where_there_are_no_others() {
    let mut message = ai("1", json!([]), Some(1));
    message["additional_kwargs"] = json!({"tool_calls": [
        {"id": "a", "function": {"name": "g", "arguments": "{\"x\": 1}"}}]});
    let trace = one("langchain", &json!([human("0"), message]).to_string());
    assert_eq!(calls(&trace), ["g"]);
    assert_eq!(trace.tool_calls[0].args(), Some(&json!({"x": 1})));
}

#[test]
fn elements_that_are_not_messages_are_rejected_with_their_place() {
    let error = rejected(
        "langchain",
        &json!({"messages": [human("1"), {"x": 1}]}).to_string(),
    );
    assert!(
        error
            .to_string()
            .starts_with("line 1, at /messages/1: not langchain:"),
        "{error}"
    );
}
