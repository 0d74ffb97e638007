use serde_json::{Value, json};

use crate::producer_tests::{calls, detected, lines, one, rejected, results, tokens};

/// A line of a session.
fn line(kind: &str, uuid: &str, parent: Option<&str>, message: Value) -> Value {
    json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1",
           "isSidechain": false, "message": message})
}

fn assistant(id: &str, blocks: Value, output: u64) -> Value {
    json!({"id": id, "role": "assistant", "model": "m", "content": blocks,
           "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": output}})
}

fn tool_use(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn tool_result(id: &str, text: &str) -> Value {
    json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": text}]})
}

#[test]
fn a_message_on_several_lines_is_one_turn_and_its_usage_counts_once() {
    let trace = one(
        "claude-code",
        &lines(&[
            line("user", "1", None, json!({"role": "user", "content": "Go."})),
            line(
                "assistant",
                "2",
                Some("1"),
                assistant("m1", json!([{"type": "text", "text": "A"}]), 1),
            ),
            line(
                "assistant",
                "3",
                Some("2"),
                assistant("m1", json!([tool_use("a", "mcp__s__f")]), 1),
            ),
            line("user", "4", Some("3"), tool_result("a", "1")),
            line(
                "assistant",
                "5",
                Some("3"),
                assistant("m1", json!([tool_use("b", "mcp__s__f")]), 7),
            ),
            line("user", "6", Some("5"), tool_result("b", "2")),
            // A resumed session repeats a line.
            line("user", "6", Some("5"), tool_result("b", "2")),
            line(
                "assistant",
                "7",
                Some("6"),
                assistant("m2", json!([{"type": "text", "text": "B"}]), 3),
            ),
        ]),
    );
    assert_eq!(calls(&trace), ["s.f", "s.f"]);
    assert!(trace.tool_calls.iter().all(|call| call.turn == Some(1)));
    let ok = |text: &str| Some((text.to_owned(), Some(false)));
    assert_eq!(results(&trace), [ok("1"), ok("2")]);
    assert_eq!(tokens(&trace), [Some(30), Some(10), Some(40)]);
    assert_eq!(trace.final_text().as_deref(), Some("B"));
    assert_eq!(trace.model.as_deref(), Some("m"));
}

#[test]
fn subagents_are_left_out_unless_the_file_is_theirs() {
    let mut sub = line(
        "assistant",
        "2",
        Some("1"),
        assistant("m9", json!([tool_use("x", "g")]), 9),
    );
    sub["isSidechain"] = true.into();
    let own = line(
        "assistant",
        "3",
        Some("1"),
        assistant("m1", json!([tool_use("a", "f")]), 1),
    );
    let trace = one("claude-code", &lines(&[sub.clone(), own]));
    assert_eq!(calls(&trace), ["f"]);
    assert_eq!(tokens(&trace)[1], Some(1));
    assert_eq!(calls(&one("claude-code", &lines(&[sub]))), ["g"]);
}

#[test]
fn sessions_are_traces_and_a_resumed_one_continues() {
    let go = |uuid: &str, parent: Option<&str>, session: &str, id: &str| {
        let blocks = json!([tool_use(id, "f")]);
        let mut line = line("assistant", uuid, parent, assistant(uuid, blocks, 1));
        line["sessionId"] = session.into();
        line
    };
    let traces = detected(
        "claude-code",
        &lines(&[
            go("1", None, "s1", "a"),
            go("2", None, "s2", "b"),
            go("3", Some("1"), "s3", "c"),
            go("4", None, "s3", "d"),
        ]),
    );
    let calls: Vec<usize> = traces.iter().map(|trace| trace.tool_calls.len()).collect();
    assert_eq!(calls, [3, 1]);
}

#[test]
fn errors_of_tools_and_of_the_provider_are_kept_apart() {
    let mut failed = line(
        "assistant",
        "3",
        None,
        assistant("x", json!("API Error: 429"), 0),
    );
    failed["isApiErrorMessage"] = true.into();
    failed["apiErrorStatus"] = 429.into();
    let trace = one(
        "claude-code",
        &lines(&[
            line(
                "assistant",
                "1",
                None,
                assistant("m1", json!([tool_use("a", "f")]), 1),
            ),
            line(
                "user",
                "2",
                None,
                json!({"role": "user", "content": [{"type": "tool_result",
            "tool_use_id": "a", "is_error": true,
            "content": "<tool_use_error>No such tool</tool_use_error>"}]}),
            ),
            failed,
        ]),
    );
    assert_eq!(
        results(&trace),
        [Some(("No such tool".to_owned(), Some(true)))]
    );
    assert_eq!(trace.error.as_ref().unwrap().kind.as_str(), "rate_limit");
    assert_eq!(trace.final_text(), None);
    assert_eq!(tokens(&trace)[1], Some(1));
}

#[test]
fn a_file_without_messages_is_rejected() {
    let error = rejected(
        "claude-code",
        "{\"type\": \"summary\", \"sessionId\": \"s\"}",
    );
    assert!(
        error.to_string().contains("no line has a message"),
        "{error}"
    );
}
