use serde_json::{Value, json};

use crate::producer_tests::{calls, detected, lines, one, results, tokens};

fn event(kind: &str, part: Value) -> Value {
    json!({"type": kind, "sessionID": "s", "part": part})
}

fn tool(part: &str, call: &str, name: &str, state: Value) -> Value {
    event(
        "tool_use",
        json!({"id": part, "callID": call, "tool": name, "state": state}),
    )
}

fn finish(reason: &str, input: u64) -> Value {
    event(
        "step_finish",
        json!({"reason": reason, "cost": 0.25, "tokens": {"input": input,
        "output": 2, "reasoning": 3, "cache": {"read": 5, "write": 1}}}),
    )
}

fn done(output: &str) -> Value {
    json!({"status": "completed", "input": {}, "output": output})
}

#[test]
fn steps_add_up_and_calls_are_in_the_order_of_their_parts() {
    let trace = one(
        "opencode",
        &lines(&[
            event("step_start", json!({})),
            event("text", json!({"text": "A"})),
            event("text", json!({"text": "B"})),
            tool("prt_2", "b", "s_get_it", done("two")),
            tool(
                "prt_1",
                "a",
                "apply_patch",
                json!({"status": "error", "input": {}, "error": "no"}),
            ),
            finish("tool-calls", 10),
            event("step_start", json!({})),
            event("text", json!({"text": "Done."})),
            finish("stop", 20),
        ]),
    );
    assert_eq!(calls(&trace), ["apply_patch", "s.get_it"]);
    let wanted =
        [("no", true), ("two", false)].map(|(text, flag)| Some((text.to_owned(), Some(flag))));
    assert_eq!(results(&trace), wanted);
    assert_eq!(tokens(&trace), [Some(42), Some(10), Some(52)]);
    assert_eq!(trace.extra("cost_usd"), Some(&json!(0.5)));
    assert_eq!(trace.conversation.turns.as_ref().unwrap()[0].text(), "A\nB");
    assert_eq!(trace.error, None);
}

#[test]
fn a_run_that_stops_after_calls_is_no_evidence() {
    let mut other = event("step_start", json!({}));
    other["sessionID"] = "other".into();
    let mut failed = json!({"type": "error", "sessionID": "other", "error":
        {"name": "APIError", "data": {"message": "no key", "statusCode": 401}}});
    failed["timestamp"] = 1.into();
    let traces = detected(
        "opencode",
        &lines(&[
            event("step_start", json!({})),
            finish("tool-calls", 1),
            other,
            failed,
        ]),
    );
    let kinds: Vec<_> = traces
        .iter()
        .map(|trace| trace.error.as_ref().unwrap().kind.as_str())
        .collect();
    assert_eq!(kinds, ["transport", "auth"]);
}

#[test]
fn an_export_has_prompts_and_steps() {
    let export = json!({"info": {"id": "s", "projectID": "p"}, "messages": [
        {"info": {"role": "user"}, "parts": [
            {"type": "text", "text": "Go."},
            {"type": "text", "text": "hidden", "synthetic": true}]},
        {"info": {"role": "assistant", "modelID": "m"}, "parts": [
            {"type": "step-start"},
            {"type": "tool", "id": "p1", "callID": "a", "tool": "s_f", "state": {"status": "running", "input": {}}},
            {"type": "step-finish", "reason": "tool-calls", "tokens": {"input": 1, "output": 1}},
            {"type": "step-start"},
            {"type": "text", "text": "Done."},
            {"type": "step-finish", "reason": "stop", "tokens": {"input": 2, "output": 1}}]},
    ]});
    let trace = one("opencode", &export.to_string());
    assert_eq!(calls(&trace), ["s.f"]);
    assert_eq!(results(&trace), [None]);
    assert_eq!(tokens(&trace), [Some(3), Some(2), Some(5)]);
    let turns = trace.conversation.turns.as_ref().unwrap();
    let texts: Vec<String> = turns.iter().map(|turn| turn.text()).collect();
    assert_eq!(texts, ["Go.", "", "Done."]);
    assert_eq!(trace.model.as_deref(), Some("m"));
}
