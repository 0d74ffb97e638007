use serde_json::json;

use super::*;

fn read(value: &Value) -> Vec<Trace> {
    let text = value.to_string();
    let input = Input::parse(text.as_bytes()).unwrap();
    let reader = crate::detect(&input).unwrap();
    assert_eq!(reader.format().name, "gemini");
    reader.read(&input).unwrap()
}

#[test]
fn parts_are_joined_by_id_and_else_by_name() {
    let traces = read(&json!([
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": [
            {"text": "hidden", "thought": true},
            {"functionCall": {"name": "f", "args": {"x": 1}}},
            {"functionCall": {"name": "f", "args": {"x": 2}}},
            {"functionCall": {"id": "i", "name": "f", "args": {"x": 3}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "i", "name": "f", "response": {"error": "no"}}},
            {"functionResponse": {"name": "f", "response": {"output": 1}}},
            {"functionResponse": {"name": "f", "response": {"anything": 2}}}]},
        {"role": "model", "parts": [{"text": "Do"}, {"text": "ne."}]},
    ]));
    let trace = &traces[0];
    let errors: Vec<_> = trace
        .results_by_call()
        .into_iter()
        .map(|one| one.unwrap().is_error)
        .collect();
    assert_eq!(errors, [Some(false), None, Some(true)]);
    assert_eq!(trace.final_text().unwrap(), "Done.");
    assert_eq!(trace.conversation.turns.as_ref().unwrap().len(), 3);
    let structured = |at: usize| trace.tool_results[at].extra("structured_content");
    assert_eq!(structured(0), None);
    assert_eq!(structured(1), Some(&json!({"output": 1})));
}

#[test]
fn responses_count_thoughts_and_tool_prompts() {
    for (candidates, metadata, prompt, found, thoughts, total) in [
        (
            "candidates",
            "usageMetadata",
            "promptTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "totalTokenCount",
        ),
        (
            "candidates",
            "usage_metadata",
            "prompt_token_count",
            "candidates_token_count",
            "thoughts_token_count",
            "total_token_count",
        ),
    ] {
        let traces = read(&json!({
            candidates: [{"content": {"role": "model", "parts": [{"text": "Hi."}]},
                "finishReason": "STOP"}],
            metadata: {prompt: 10, found: 3, thoughts: 4, total: 17},
        }));
        let tokens = traces[0].conversation.tokens.as_ref().unwrap();
        assert_eq!(
            (tokens.input, tokens.output, tokens.total),
            (Some(10), Some(7), Some(17))
        );
        assert_eq!(traces[0].extra("stop_reason"), Some(&json!("end")));
    }
}
