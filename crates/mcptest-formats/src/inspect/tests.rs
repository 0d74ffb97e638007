use serde_json::{Value, json};

use crate::Input;
use crate::detect;
use crate::producer_tests::{calls, detected, rejected, results, tokens};

fn log(sample: Value) -> String {
    json!({"version": 2, "eval": {"task": "t", "model": "m"}, "samples": [sample]}).to_string()
}

fn call(id: &str) -> Value {
    json!({"id": id, "function": "f", "arguments": {"text": "attachment://k"}})
}

fn event(kind: &str, span: &str, rest: Value) -> Value {
    let mut event = json!({"event": kind, "span_id": span});
    for (key, value) in rest.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

#[test]
fn the_epoch_is_the_run_and_graders_do_not_count() {
    let traces = detected(
        "inspect",
        &log(json!({
            "id": 7, "epoch": 2, "attachments": {"k": "long text"},
            "messages": [
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": "", "tool_calls": [call("a")]},
                {"role": "tool", "tool_call_id": "a", "content": "attachment://k"},
            ],
            "model_usage": {
                "m": {"input_tokens": 10, "input_tokens_cache_read": 5, "output_tokens": 2, "total_tokens": 17},
                "grader": {"input_tokens": 1000, "output_tokens": 1, "total_tokens": 1001}},
            "limit": {"type": "message"}, "scores": {"s": {"value": "C"}},
        })),
    );
    let trace = &traces[0];
    assert_eq!((trace.test.as_deref(), trace.run), (Some("7"), Some(2)));
    assert_eq!(
        trace.tool_calls[0].args(),
        Some(&json!({"text": "long text"}))
    );
    assert_eq!(
        results(trace),
        [Some(("long text".to_owned(), Some(false)))]
    );
    assert_eq!(tokens(trace), [Some(15), Some(2), Some(17)]);
    assert_eq!(trace.extra("stop_reason"), Some(&json!("max_turns")));
    assert_eq!(trace.extra("scores"), Some(&json!({"s": "C"})));
}

#[test]
fn cached_tokens_that_are_a_part_of_the_input_are_not_added() {
    let traces = detected(
        "inspect",
        &log(json!({"id": "a", "epoch": 1, "messages": [],
        "model_usage": {"m": {"input_tokens": 15, "input_tokens_cache_read": 5,
                              "output_tokens": 2, "total_tokens": 17}}})),
    );
    assert_eq!(tokens(&traces[0]), [Some(15), Some(2), Some(17)]);
}

#[test]
fn events_complete_messages_that_were_shortened() {
    let model = |id: &str| {
        json!({"output": {"choices": [
        {"message": {"role": "assistant", "content": "", "tool_calls": [call(id)]}}]},
        "tools": [{"name": "f", "description": "d", "parameters": {"type": "object"}}]})
    };
    let tool = |id: &str, error: Value| {
        json!({"id": id, "function": "f", "arguments": {},
        "result": "r", "error": error})
    };
    let traces = detected(
        "inspect",
        &log(json!({"id": "a", "epoch": 1,
        "messages": [{"role": "assistant", "content": "", "tool_calls": [call("b")]},
                     {"role": "tool", "tool_call_id": "b", "content": "r"}],
        "events": [
            event("model", "1", model("a")),
            event("tool", "1", tool("a", json!({"type": "timeout", "message": "late"}))),
            event("model", "1", model("b")),
            event("tool", "1", tool("b", json!(null))),
            event("span_begin", "s", json!({"id": "s", "type": "scorers"})),
            event("span_begin", "t", json!({"id": "t", "type": "scorer", "parent_id": "s"})),
            event("model", "t", model("grader")),
        ]})),
    );
    let trace = &traces[0];
    assert_eq!(calls(trace), ["f", "f"]);
    assert_eq!(trace.tool_calls[1].turn, Some(2));
    let flags: Vec<_> = results(trace)
        .into_iter()
        .map(|one| one.unwrap().1)
        .collect();
    assert_eq!(flags, [Some(true), Some(false)]);
    assert_eq!(trace.catalog.as_ref().unwrap().tools().len(), 1);
    assert_eq!(tokens(trace), [None; 3]);
}

#[test]
fn samples_that_failed_or_reached_a_limit_are_no_evidence() {
    for (sample, kind) in [
        (json!({"error": {"message": "boom"}}), "provider"),
        (json!({"limit": {"type": "time"}}), "budget"),
    ] {
        let traces = detected("inspect", &log(sample));
        assert_eq!(traces[0].error.as_ref().unwrap().kind.as_str(), kind);
    }
}

#[test]
fn other_archives_and_logs_without_samples_are_errors() {
    let zip = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.txt";
    let input = Input::parse(zip).unwrap();
    let error = detect(&input).err().unwrap().to_string();
    assert!(
        error.contains("not inspect: the archive does not start with"),
        "{error}"
    );
    let text = json!({"version": 2, "eval": {"task": "t", "model": "m"}}).to_string();
    assert!(
        rejected("inspect", &text)
            .to_string()
            .contains("no `samples`")
    );
}
