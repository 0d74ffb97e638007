//! Stop reasons in every API: those of the model are turns, those of the provider are errors.

use mcptest_agent::{Message, TurnEnd};
use serde_json::{Value, json};

use super::super::{Adapter, Anthropic, ApiErrorKind, Gemini, OpenAiChat, OpenAiResponses};
use super::weather;

fn end_of(adapter: &dyn Adapter, answer: &Value) -> Result<TurnEnd, ApiErrorKind> {
    let turn = weather().turn_of(adapter, answer);
    turn.map(|turn| turn.end).map_err(|failure| failure.kind)
}

#[test]
fn anthropic_stop_reasons() {
    for (reason, end) in [
        ("end_turn", TurnEnd::Finished),
        ("stop_sequence", TurnEnd::Finished),
        ("tool_use", TurnEnd::Finished),
        ("pause_turn", TurnEnd::Paused),
        ("max_tokens", TurnEnd::OutOfTokens),
        ("model_context_window_exceeded", TurnEnd::OutOfTokens),
        ("refusal", TurnEnd::Withheld),
        ("something_new", TurnEnd::Finished),
    ] {
        let answer = json!({"content": [{"type": "text", "text": "x"}], "stop_reason": reason});
        assert_eq!(end_of(&Anthropic, &answer), Ok(end), "{reason}");
    }
}

#[test]
fn chat_finish_reasons() {
    for (reason, end) in [
        ("stop", Ok(TurnEnd::Finished)),
        ("tool_calls", Ok(TurnEnd::Finished)),
        ("eos", Ok(TurnEnd::Finished)),
        ("length", Ok(TurnEnd::OutOfTokens)),
        ("model_length", Ok(TurnEnd::OutOfTokens)),
        ("content_filter", Ok(TurnEnd::Withheld)),
        ("error", Err(ApiErrorKind::Transient)),
        (
            "insufficient_system_resource",
            Err(ApiErrorKind::Overloaded),
        ),
    ] {
        let answer = json!({"choices": [{"message": {"content": "x"}, "finish_reason": reason}]});
        assert_eq!(end_of(&OpenAiChat::openai(), &answer), end, "{reason}");
    }
}

#[test]
fn responses_status() {
    for (status, reason, end) in [
        ("completed", None, Ok(TurnEnd::Finished)),
        (
            "incomplete",
            Some("max_output_tokens"),
            Ok(TurnEnd::OutOfTokens),
        ),
        ("incomplete", Some("content_filter"), Ok(TurnEnd::Withheld)),
        ("incomplete", None, Ok(TurnEnd::OutOfTokens)),
        ("failed", None, Err(ApiErrorKind::Transient)),
        ("cancelled", None, Err(ApiErrorKind::Transient)),
        ("queued", None, Err(ApiErrorKind::Malformed)),
        ("in_progress", None, Err(ApiErrorKind::Malformed)),
    ] {
        let details = reason.map(|reason| json!({"reason": reason}));
        let answer = json!({"output": [], "status": status, "incomplete_details": details});
        assert_eq!(
            end_of(&OpenAiResponses, &answer),
            end,
            "{status} {reason:?}"
        );
    }
    // Compatible servers may leave it out.
    assert_eq!(
        end_of(&OpenAiResponses, &json!({"output": []})),
        Ok(TurnEnd::Finished)
    );
}

#[test]
fn gemini_finish_reasons() {
    for (reason, end) in [
        ("STOP", Ok(TurnEnd::Finished)),
        ("MAX_TOKENS", Ok(TurnEnd::OutOfTokens)),
        ("SAFETY", Ok(TurnEnd::Withheld)),
        ("RECITATION", Ok(TurnEnd::Withheld)),
        ("IMAGE_SAFETY", Ok(TurnEnd::Withheld)),
        ("MALFORMED_FUNCTION_CALL", Ok(TurnEnd::MalformedCall)),
        ("UNEXPECTED_TOOL_CALL", Ok(TurnEnd::MalformedCall)),
        ("TOO_MANY_TOOL_CALLS", Ok(TurnEnd::MalformedCall)),
        ("OTHER", Err(ApiErrorKind::Transient)),
        ("FINISH_REASON_UNSPECIFIED", Err(ApiErrorKind::Transient)),
        ("MISSING_THOUGHT_SIGNATURE", Err(ApiErrorKind::Refused)),
    ] {
        let answer = json!({"candidates": [{"finishReason": reason}]});
        assert_eq!(end_of(&Gemini, &answer), end, "{reason}");
    }
}

/// A paused turn is sent back unchanged, and the next turn's calls and results follow it.
#[test]
fn a_paused_turn_is_sent_back_unchanged() {
    let mut case = weather();
    let search = json!([
        {"type": "text", "text": "Looking."},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "x"},
        },
    ]);
    let paused = json!({"content": search, "stop_reason": "pause_turn", "container": {"id": "c1"}});
    let turn = case.turn_of(&Anthropic, &paused).unwrap();
    case.messages.push(Message::Assistant(turn));
    let body = case.body_of(&Anthropic);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(
        messages.last(),
        Some(&json!({"role": "assistant", "content": search}))
    );
    assert_eq!(body["container"], "c1");
}
