use serde_json::{Value, json};

use crate::producer_tests::{calls, lines, one, rejected, tokens};

fn event(kind: &str, rest: Value) -> Value {
    let mut event = json!({"type": kind, "session_id": "s", "parent_tool_use_id": null});
    for (key, value) in rest.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

fn call(id: &str, name: &str) -> Value {
    event(
        "assistant",
        json!({"message": {"id": id, "role": "assistant",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "tool_use", "id": id, "name": name, "input": {}}]}}),
    )
}

fn result(output: u64) -> Value {
    event(
        "result",
        json!({"subtype": "success", "is_error": false, "num_turns": 1,
        "result": "Done.", "total_cost_usd": 0.5,
        "usage": {"input_tokens": 10, "output_tokens": output}}),
    )
}

#[test]
fn usage_is_that_of_the_results_and_subagents_are_left_out() {
    let mut sub = call("b", "g");
    sub["parent_tool_use_id"] = "a".into();
    let trace = one(
        "claude-stream",
        &lines(&[
            event(
                "system",
                json!({"subtype": "init", "model": "m",
            "mcp_servers": [{"name": "my.server"}, {"name": "a__b"}]}),
            ),
            call("a", "mcp__my_server__f"),
            sub,
            result(5),
            call("c", "mcp__a__b__c"),
            result(7),
        ]),
    );
    assert_eq!(calls(&trace), ["my.server.f", "a__b.c"]);
    assert_eq!(tokens(&trace), [Some(20), Some(12), Some(32)]);
    assert_eq!(trace.final_response.as_deref(), Some("Done."));
    assert_eq!(trace.extra("cost_usd"), Some(&json!(0.5)));
}

#[test]
fn a_stream_without_its_end_is_no_evidence() {
    let trace = one("claude-stream", &lines(&[call("a", "f")]));
    assert_eq!(trace.error.as_ref().unwrap().kind.as_str(), "transport");
    assert_eq!(tokens(&trace), [None; 3]);
}

#[test]
fn the_result_alone_has_no_calls() {
    let error = rejected("claude-stream", &result(1).to_string());
    assert!(
        error.to_string().contains("stream-json --verbose"),
        "{error}"
    );
}

#[test]
fn reaching_the_limit_of_turns_is_the_agents_own_end() {
    let mut end = result(1);
    end["subtype"] = "error_max_turns".into();
    end["is_error"] = true.into();
    let trace = one("claude-stream", &lines(&[call("a", "f"), end.clone()]));
    assert_eq!(trace.error, None);
    assert_eq!(trace.extra("stop_reason"), Some(&json!("max_turns")));
    end["subtype"] = "error_max_budget_usd".into();
    let trace = one("claude-stream", &lines(&[call("a", "f"), end]));
    assert_eq!(trace.error.unwrap().kind.as_str(), "budget");
}
