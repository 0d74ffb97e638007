use serde_json::{Value, json};

use crate::producer_tests::{calls, detected, one, rejected, results, tokens};

fn usage(input: u64) -> Value {
    json!({"promptTokenCount": input, "candidatesTokenCount": 2, "thoughtsTokenCount": 1,
           "totalTokenCount": input + 3})
}

fn invocation(events: Value) -> Value {
    json!({"userContent": {"parts": [{"text": "Go."}]},
           "finalResponse": {"parts": [{"text": "Do"}, {"text": "ne."}]},
           "intermediateData": {"invocationEvents": events}})
}

fn case(events: Value) -> Value {
    json!({"evalId": "e", "conversation": [invocation(events)]})
}

fn call(usage: Value) -> Value {
    json!({"author": "a", "usageMetadata": usage, "content": {"parts": [
        {"functionCall": {"name": "f", "args": {"x": 1}}}]}})
}

fn response(response: Value) -> Value {
    json!({"author": "a", "content": {"parts": [
        {"functionResponse": {"name": "f", "response": response}}]}})
}

#[test]
fn calls_without_ids_are_joined_by_name_and_conventions_give_flags() {
    for (answer, text, flag) in [
        (json!({"result": 3}), "{\"result\":3}", None),
        (json!({"error": "no"}), "no", Some(true)),
        (
            json!({"status": "success"}),
            "{\"status\":\"success\"}",
            Some(false),
        ),
        (
            json!({"content": [{"type": "text", "text": "t"}], "isError": true}),
            "t",
            Some(true),
        ),
    ] {
        let last = json!({"author": "a", "usageMetadata": usage(20)});
        let trace = one(
            "adk",
            &case(json!([call(usage(10)), response(answer), last])).to_string(),
        );
        assert_eq!(results(&trace), [Some((text.to_owned(), flag))]);
        assert_eq!(tokens(&trace), [Some(30), Some(6), Some(36)]);
        assert_eq!(trace.final_text().as_deref(), Some("Done."));
        assert_eq!(trace.test.as_deref(), Some("e"));
    }
}

#[test]
fn a_request_without_usage_makes_the_sum_unknown() {
    // The answer's own request is not recorded.
    let trace = one(
        "adk",
        &case(json!([call(usage(10)), response(json!({}))])).to_string(),
    );
    assert_eq!(tokens(&trace), [None; 3]);
    let trace = one(
        "adk",
        &case(json!([call(json!(null)), response(json!({}))])).to_string(),
    );
    assert_eq!(tokens(&trace), [None; 3]);
}

#[test]
fn keys_in_snake_case_and_results_of_several_runs() {
    let invocation = json!({"user_content": {"parts": [{"text": "Go."}]}, "intermediate_data": {
        "tool_uses": [{"id": "1", "name": "f", "args": {}}], "tool_responses": []}});
    let result = json!({"eval_id": "e", "eval_metric_result_per_invocation": [
        {"actual_invocation": invocation, "expected_invocation": {}}]});
    let text = json!({"eval_case_results": [result, result]}).to_string();
    let traces = detected("adk", &text);
    let runs: Vec<_> = traces
        .iter()
        .map(|trace| (calls(trace), trace.run))
        .collect();
    assert_eq!(
        runs,
        [
            (vec!["f".to_owned()], Some(1)),
            (vec!["f".to_owned()], Some(2))
        ]
    );
}

#[test]
fn a_case_without_a_conversation_is_rejected() {
    let text = json!({"eval_cases": [{"evalId": "e", "conversationScenario": {}}]}).to_string();
    let error = rejected("adk", &text);
    assert!(
        error.to_string().contains("no recorded `conversation`"),
        "{error}"
    );
}
