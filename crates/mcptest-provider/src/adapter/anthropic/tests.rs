use mcptest_agent::{AssistantTurn, Message, ToolReply, Usage};
use serde_json::{Value, json};

use super::super::tests::{answered, assembled, call, text_reply, weather};
use super::super::{Adapter, ApiError, ApiErrorKind};
use super::Anthropic;

fn read(answer: Value) -> Result<AssistantTurn, ApiError> {
    weather().turn_of(&Anthropic, &answer)
}

fn message(content: Value) -> Value {
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": content,
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 300,
            "output_tokens": 7,
        },
    })
}

#[test]
fn a_first_request_has_system_tools_and_max_tokens() {
    let mut case = weather();
    assert_eq!(
        case.body_of(&Anthropic),
        json!({
            "model": "m-1",
            "max_tokens": 4096,
            "stream": false,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Weather in Paris?"}],
            "tools": [
                {"name": "get_weather", "description": "The weather of a city.",
                 "input_schema": {
                     "type": "object",
                     "properties": {"city": {"type": "string"}},
                     "required": ["city"],
                 }},
                {
                    "name": "gr__e_now",
                    "input_schema": {
                        "$schema": "https://json-schema.org/draft/2020-12/schema",
                        "type": "object",
                        "properties": {},
                    },
                },
            ],
        })
    );
    case.max_tokens = Some(50);
    case.stream = true;
    case.system = Some(" ".into());
    case.tools.clear();
    assert_eq!(
        case.body_of(&Anthropic),
        json!({
            "model": "m-1",
            "max_tokens": 50,
            "stream": true,
            "messages": [{"role": "user", "content": "Weather in Paris?"}],
        })
    );
    assert_eq!(Anthropic.path("m-1", true), "/v1/messages");
    let headers = Anthropic.headers(Some("k"));
    assert_eq!(
        headers,
        [
            ("anthropic-version", "2023-06-01".to_owned()),
            ("x-api-key", "k".to_owned())
        ]
    );
}

#[test]
fn an_answer_gives_text_calls_usage_and_keeps_every_block() {
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "text", "text": "Let me "},
        {"type": "text", "text": "look."},
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
        {
            "type": "server_tool_use",
            "id": "srv_1",
            "name": "code_execution",
            "input": {"code": "…"},
        },
        {
            "type": "tool_use",
            "id": "toolu_2",
            "name": "gr__e_now",
            "input": {},
            "caller": {"type": "code_execution_20250825", "tool_id": "srv_1"},
        },
        {
            "type": "tool_use",
            "id": "toolu_3",
            "name": "invented",
            "input": {},
            "caller": {"type": "direct"},
        },
        {"type": "new_kind", "x": 1},
    ]);
    let turn = read(message(content.clone())).unwrap();
    assert_eq!(turn.text, "Let me look.");
    assert_eq!(turn.stop_reason.as_deref(), Some("tool_use"));
    assert_eq!(
        turn.usage,
        Some(Usage {
            input: 330,
            output: 7,
            cached_input: Some(300),
            reasoning: None
        })
    );
    let names: Vec<_> = turn
        .calls
        .iter()
        .map(|call| call.wire_name.as_str())
        .collect();
    assert_eq!(names, ["get_weather", "größe/now", "invented"]);
    assert_eq!(
        turn.calls[1].caller,
        Some(json!({"type": "code_execution_20250825", "tool_id": "srv_1"}))
    );
    assert_eq!(turn.calls[2].caller, None);

    // All blocks are sent back unchanged, and the results follow in one message.
    let mut case = weather();
    let replies = vec![text_reply("22C"), ToolReply::refusal("no"), text_reply("")];
    case.messages.extend(answered(&turn, replies));
    let messages = case.body_of(&Anthropic)["messages"].clone();
    assert_eq!(
        messages[1],
        json!({"role": "assistant", "content": content})
    );
    assert_eq!(
        messages[2],
        json!({"role": "user", "content": [
            {
                "type": "tool_result",
                "tool_use_id": "toolu_1",
                "content": [{"type": "text", "text": "22C"}],
            },
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": true},
            {"type": "tool_result", "tool_use_id": "toolu_3"},
        ]})
    );
}

#[test]
fn blocks_that_the_api_rejects_are_not_sent_back() {
    let content = json!([
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "", "name": "two words", "input": "{\"city\": \"Par"},
    ]);
    let turn = read(message(content)).unwrap();
    assert_eq!(
        turn.calls,
        [call(None, "two words", json!("{\"city\": \"Par"))]
    );
    let mut case = weather();
    case.messages.extend(answered(
        &turn,
        vec![ToolReply {
            is_error: true,
            ..ToolReply::default()
        }],
    ));
    let silent = read(message(json!([]))).unwrap();
    case.messages.push(Message::Assistant(silent));
    let messages = case.body_of(&Anthropic)["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 3);
    assert_eq!(
        messages[1]["content"],
        json!([{
            "type": "tool_use",
            "id": "call_1_0",
            "name": "two_words",
            "input": {"INVALID_JSON": "{\"city\": \"Par"},
        }])
    );
    assert_eq!(
        messages[2]["content"],
        json!([{
            "type": "tool_result",
            "tool_use_id": "call_1_0",
            "content": "Error",
            "is_error": true,
        }])
    );
}

#[test]
fn images_are_sent_if_the_api_accepts_them() {
    let turn = AssistantTurn {
        text: "Look.".into(),
        calls: vec![
            call(None, "get_weather", json!({})),
            call(None, "get_weather", json!({})),
        ],
        ..AssistantTurn::default()
    };
    let picture = |mime: &str| json!({"type": "image", "data": "aGk=", "mimeType": mime});
    let mut shown = text_reply("here");
    shown.content =
        json!([{"type": "text", "text": "here"}, picture("image/png"), picture("image/tiff")]);
    let mut failed = ToolReply::refusal("bad");
    failed.content = json!([{"type": "text", "text": "bad"}, picture("image/png")]);
    let mut case = weather();
    case.messages.extend(answered(&turn, vec![shown, failed]));
    let messages = case.body_of(&Anthropic)["messages"].clone();
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "text", "text": "Look."},
            {"type": "tool_use", "id": "call_1_0", "name": "get_weather", "input": {}},
            {"type": "tool_use", "id": "call_1_1", "name": "get_weather", "input": {}},
        ])
    );
    let results = &messages[2]["content"];
    assert_eq!(
        results[0]["content"],
        json!([
            {"type": "text", "text": "here"},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
            },
            {"type": "text", "text": "[image image/tiff: left out]"},
        ])
    );
    // An error result may have only text.
    assert_eq!(results[1]["content"], "bad\n[image image/png: left out]");
}

#[test]
fn a_container_is_named_in_the_next_request() {
    let mut answer =
        message(json!([{"type": "tool_use", "id": "t", "name": "get_weather", "input": {}}]));
    answer["container"] = json!({"id": "container_1", "expires_at": "2026-11-16T00:00:00Z"});
    let turn = read(answer).unwrap();
    let mut case = weather();
    case.messages.extend(answered(&turn, vec![text_reply("x")]));
    assert_eq!(case.body_of(&Anthropic)["container"], "container_1");
}

#[test]
fn usage_that_is_absent_or_zero_is_unknown() {
    let mut answer = message(json!([]));
    answer["usage"] = json!({"input_tokens": 0, "output_tokens": 0});
    assert_eq!(read(answer.clone()).unwrap().usage, None);
    answer["usage"] = json!({"output_tokens": 5});
    assert_eq!(read(answer.clone()).unwrap().usage, None);
    answer.as_object_mut().unwrap().remove("usage");
    assert_eq!(read(answer).unwrap().usage, None);
    let thinking = json!({
        "input_tokens": 1,
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
    });
    let mut answer = message(json!([]));
    answer["usage"] = thinking;
    assert_eq!(read(answer).unwrap().usage.unwrap().reasoning, Some(4));
}

/// The documentation's example of a stream with thinking and a call.
fn events() -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {"input_tokens": 25, "cache_read_input_tokens": 100, "output_tokens": 1},
        }}),
        json!({
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        }),
        json!({"type": "ping"}),
        json!({
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "Let me"},
        }),
        json!({
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": " think"},
        }),
        json!({
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "EqQB"},
        }),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "redacted_thinking", "data": "eA=="},
        }),
        json!({"type": "content_block_stop", "index": 1}),
        json!({
            "type": "content_block_start",
            "index": 2,
            "content_block": {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "get_weather",
                "input": {},
            },
        }),
        json!({
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": ""},
        }),
        json!({
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": "{\"ci"},
        }),
        json!({
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": "ty\": \"Paris\"}"},
        }),
        json!({"type": "content_block_stop", "index": 2}),
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 89},
        }),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn a_stream_equals_the_complete_answer() {
    let answer = assembled(&Anthropic, &events()).unwrap();
    assert_eq!(
        answer["content"],
        json!([
            {"type": "thinking", "thinking": "Let me think", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "eA=="},
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "get_weather",
                "input": {"city": "Paris"},
            },
        ])
    );
    let turn = read(answer).unwrap();
    assert_eq!(
        turn.usage,
        Some(Usage {
            input: 125,
            output: 89,
            cached_input: Some(100),
            reasoning: None
        })
    );
    assert_eq!(turn.stop_reason.as_deref(), Some("tool_use"));
}

#[test]
fn truncated_input_stays_a_string() {
    let mut events = events();
    events.remove(12);
    let turn = read(assembled(&Anthropic, &events).unwrap()).unwrap();
    assert_eq!(turn.calls[0].args, Some(json!("{\"ci")));
    // No fragment means no arguments.
    events.drain(10..12);
    let turn = read(assembled(&Anthropic, &events).unwrap()).unwrap();
    assert_eq!(turn.calls[0].args, Some(json!({})));
}

#[test]
fn an_incomplete_or_unordered_stream_is_an_error() {
    let whole = events();
    for length in 0..whole.len() {
        let failure = assembled(&Anthropic, &whole[..length]).unwrap_err();
        assert_eq!(failure.kind, ApiErrorKind::Transient, "{length}");
    }
    let changed = |at: usize, event: Value| {
        let mut events = events();
        events[at] = event;
        assembled(&Anthropic, &events).map_err(|failure| failure.kind)
    };
    let malformed = Err(ApiErrorKind::Malformed);
    assert_eq!(
        changed(1, json!({"type": "message_start", "message": {}})),
        malformed,
        "twice"
    );
    assert_eq!(
        changed(
            7,
            json!({"type": "content_block_start", "index": 0, "content_block": {}})
        ),
        malformed,
        "an index again"
    );
    assert_eq!(
        changed(
            7,
            json!({"type": "content_block_start", "index": 7, "content_block": {}})
        ),
        malformed,
        "an index left out"
    );
    assert_eq!(
        changed(
            7,
            json!({"type": "content_block_start", "content_block": {}})
        ),
        malformed,
        "no index"
    );
    assert_eq!(
        changed(
            8,
            json!({"type": "content_block_delta", "index": 0, "delta": {}})
        ),
        malformed,
        "a closed block"
    );
    assert_eq!(
        changed(
            8,
            json!({"type": "content_block_delta", "index": u64::MAX, "delta": {}})
        ),
        malformed,
        "a huge index"
    );
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(changed(5, overloaded), Err(ApiErrorKind::Overloaded));
    let mut assembler = Anthropic.assembler();
    assert_eq!(
        assembler
            .event(Some("message_start"), "{nonsense")
            .unwrap_err()
            .kind,
        ApiErrorKind::Malformed
    );
}

#[test]
fn unknown_blocks_are_kept_and_unknown_events_ignored() {
    let mut events = events();
    events[2] = json!({"type": "heartbeat_v2", "index": "x"});
    events[7] = json!({
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "compaction", "content": null},
    });
    events.insert(
        8,
        json!({
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "compaction_delta", "content": "sum"},
        }),
    );
    events.insert(
        9,
        json!({
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "compaction_delta", "content": "mary", "n": 2},
        }),
    );
    events.insert(
        10,
        json!({
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "citations_delta", "citation": {"a": 1}},
        }),
    );
    let answer = assembled(&Anthropic, &events).unwrap();
    assert_eq!(
        answer["content"][1],
        json!({"type": "compaction", "content": "summary", "n": 2, "citations": [{"a": 1}]})
    );
}

#[test]
fn an_invalid_answer_is_malformed_and_errors_are_kept() {
    assert_eq!(
        read(json!({"id": "x"})).unwrap_err().kind,
        ApiErrorKind::Malformed
    );
    assert_eq!(
        read(message(json!([{"type": "tool_use"}])))
            .unwrap_err()
            .kind,
        ApiErrorKind::Malformed
    );
    let error = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}});
    assert_eq!(read(error).unwrap_err().kind, ApiErrorKind::RateLimit);
    assert_eq!(Anthropic.error(401, b"{}").kind, ApiErrorKind::Auth);
}
