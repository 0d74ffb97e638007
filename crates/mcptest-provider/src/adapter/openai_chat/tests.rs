use mcptest_agent::{AssistantTurn, ToolReply, Usage};
use serde_json::{Value, json};

use super::super::tests::{answered, assembled, call, text_reply, weather};
use super::super::{Adapter, ApiError, ApiErrorKind};
use super::OpenAiChat;

fn read(answer: Value) -> Result<AssistantTurn, ApiError> {
    weather().turn_of(&OpenAiChat::openai(), &answer)
}

fn completion(message: Value, reason: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99,
            "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 5}},
    })
}

fn tool_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn a_request_for_openai_and_for_compatible_servers() {
    let mut case = weather();
    case.max_tokens = Some(50);
    let body = case.body_of(&OpenAiChat::openai());
    assert_eq!(
        body,
        json!({
            "model": "m-1",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Weather in Paris?"},
            ],
            "stream": false,
            "max_completion_tokens": 50,
            "tools": [
                {"type": "function", "function": {
                    "name": "get_weather",
                    "description": "The weather of a city.",
                    "parameters": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}},
                        "required": ["city"],
                    },
                }},
                {"type": "function", "function": {
                    "name": "gr__e_now",
                    "parameters": {
                        "$schema": "https://json-schema.org/draft/2020-12/schema",
                        "type": "object",
                        "properties": {},
                    },
                }},
            ],
        })
    );
    case.stream = true;
    case.tools.clear();
    case.system = None;
    assert_eq!(
        case.body_of(&OpenAiChat::compatible()),
        json!({
            "model": "m-1",
            "messages": [{"role": "user", "content": "Weather in Paris?"}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 50,
        })
    );
    assert_eq!(OpenAiChat::openai().path("m", false), "/chat/completions");
    assert_eq!(
        OpenAiChat::openai().headers(Some("k")),
        [("authorization", "Bearer k".to_owned())]
    );
    assert_eq!(OpenAiChat::openai().headers(None), []);
}

#[test]
fn an_answer_gives_text_calls_and_usage_and_is_sent_back() {
    let message = json!({
        "role": "assistant",
        "content": null,
        "refusal": null,
        "annotations": [],
        "reasoning_content": "hm",
        "tool_calls": [
            tool_call("call_1", "get_weather", "{ \"city\":\"Paris\" }"),
            tool_call("call_2", "gr__e_now", ""),
            tool_call("", "two words", "{broken"),
        ],
    });
    let turn = read(completion(message, "tool_calls")).unwrap();
    assert_eq!(turn.text, "");
    assert_eq!(turn.stop_reason.as_deref(), Some("tool_calls"));
    assert_eq!(
        turn.usage,
        Some(Usage {
            input: 82,
            output: 17,
            cached_input: Some(64),
            reasoning: Some(5)
        })
    );
    assert_eq!(
        turn.calls,
        [
            call(Some("call_1"), "get_weather", json!({"city": "Paris"})),
            call(Some("call_2"), "größe/now", json!({})),
            call(None, "two words", json!("{broken")),
        ]
    );

    let mut case = weather();
    case.messages.extend(answered(
        &turn,
        vec![text_reply("22C"), ToolReply::refusal("no"), text_reply("")],
    ));
    let messages = case.body_of(&OpenAiChat::openai())["messages"].clone();
    assert_eq!(
        messages[2],
        json!({
            "role": "assistant", "content": null, "reasoning_content": "hm",
            "tool_calls": [
                tool_call("call_1", "get_weather", "{ \"city\":\"Paris\" }"),
                tool_call("call_2", "gr__e_now", "{}"),
                tool_call("call_1_2", "two_words", "{\"INVALID_JSON\":\"{broken\"}"),
            ],
        })
    );
    let results = messages.as_array().unwrap()[3..].to_vec();
    assert_eq!(
        results,
        [
            json!({"role": "tool", "tool_call_id": "call_1", "content": "22C"}),
            json!({"role": "tool", "tool_call_id": "call_2", "content": "Error: no"}),
            json!({"role": "tool", "tool_call_id": "call_1_2", "content": ""}),
        ]
    );
}

#[test]
fn a_turn_without_native_message_is_built() {
    let turn = AssistantTurn {
        text: "Looking.".into(),
        calls: vec![call(None, "get_weather", json!({"city": "Paris"}))],
        ..AssistantTurn::default()
    };
    let mut case = weather();
    case.messages
        .extend(answered(&turn, vec![text_reply("22C")]));
    let messages = case.body_of(&OpenAiChat::compatible())["messages"].clone();
    assert_eq!(
        messages[2],
        json!({
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [tool_call("call_1_0", "get_weather", "{\"city\":\"Paris\"}")],
        })
    );
    assert_eq!(messages[3]["tool_call_id"], "call_1_0");
}

#[test]
fn variants_of_answers_are_read() {
    let text = |message: Value| read(completion(message, "stop")).unwrap().text;
    assert_eq!(text(json!({"content": "hi"})), "hi");
    assert_eq!(
        text(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})),
        "ab"
    );
    assert_eq!(
        text(json!({"content": null, "refusal": "I cannot."})),
        "I cannot."
    );
    assert_eq!(text(json!({})), "");
    let object = json!({
        "content": "",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}],
    });
    let turn = read(completion(object, "tool_calls")).unwrap();
    assert_eq!(turn.calls[0].args, Some(json!({"a": 1})));
    let mut case = weather();
    case.messages.extend(answered(&turn, vec![text_reply("x")]));
    let sent = case.body_of(&OpenAiChat::openai())["messages"][2]["tool_calls"].clone();
    assert_eq!(sent, json!([tool_call("1", "f", "{\"a\":1}")]));
}

#[test]
fn usage_matches_the_total() {
    let usage = |usage: Value| {
        let mut answer = completion(json!({"content": "x"}), "stop");
        answer["usage"] = usage;
        read(answer).unwrap().usage
    };
    let apart = json!({
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 22,
        "completion_tokens_details": {"reasoning_tokens": 7},
    });
    assert_eq!(usage(apart).unwrap().output, 12);
    let hit = json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4});
    assert_eq!(usage(hit).unwrap().cached_input, Some(4));
    assert_eq!(usage(json!({"prompt_tokens": 10})), None);
    assert_eq!(
        usage(json!({"prompt_tokens": 0, "completion_tokens": 0})),
        None
    );
    assert_eq!(usage(Value::Null), None);
}

fn chunk(delta: Value, reason: Value) -> Value {
    json!({
        "id": "c",
        "object": "chat.completion.chunk",
        "model": "gpt",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        "usage": null,
    })
}

fn content_parts(pieces: &[Value]) -> Result<Value, ApiError> {
    let mut events = vec![chunk(
        json!({"role": "assistant", "content": null}),
        Value::Null,
    )];
    events.extend(
        pieces
            .iter()
            .map(|piece| chunk(json!({"tool_calls": [piece]}), Value::Null)),
    );
    events.push(chunk(json!({}), json!("tool_calls")));
    events.push(
        json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
    );
    assembled(&OpenAiChat::openai(), &events)
}

#[test]
fn a_stream_equals_the_complete_answer() {
    let answer = content_parts(&[
        json!({
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": ""},
        }),
        json!({"index": 0, "function": {"arguments": "{\"city\":"}}),
        json!({
            "index": 1,
            "id": "call_2",
            "type": "function",
            "function": {"name": "get_weather", "arguments": "{}"},
        }),
        json!({"index": 0, "function": {"arguments": "\"Paris\"}"}}),
    ])
    .unwrap();
    assert_eq!(
        answer["choices"][0]["message"],
        json!({"role": "assistant", "content": null, "tool_calls": [
            tool_call("call_1", "get_weather", "{\"city\":\"Paris\"}"),
            tool_call("call_2", "get_weather", "{}"),
        ]})
    );
    let turn = read(answer).unwrap();
    assert_eq!(turn.usage.unwrap().input, 3);
    assert_eq!(turn.stop_reason.as_deref(), Some("tool_calls"));
}

#[test]
fn calls_without_usable_index_are_assembled() {
    let names = |deltas: &[Value]| {
        let turn = read(content_parts(deltas).unwrap()).unwrap();
        turn.calls
            .into_iter()
            .map(|call| (call.wire_name, call.args.unwrap()))
            .collect::<Vec<_>>()
    };
    let expected = vec![
        ("a".to_owned(), json!({"x": 1})),
        ("b".to_owned(), json!({})),
    ];
    // Every call with index 0, separated by id.
    assert_eq!(
        names(&[
            json!({"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"x\":"}}),
            json!({"index": 0, "id": "1", "function": {"arguments": "1}"}}),
            json!({"index": 0, "id": "2", "function": {"name": "b", "arguments": "{}"}}),
        ]),
        expected
    );
    // No index at all.
    assert_eq!(
        names(&[
            json!({"id": "1", "function": {"name": "a", "arguments": "{\"x\":"}}),
            json!({"function": {"arguments": "1}"}}),
            json!({"id": "2", "function": {"name": "b", "arguments": "{}"}}),
        ]),
        expected
    );
    // Neither index nor id.
    assert_eq!(
        names(&[
            json!({"function": {"name": "a", "arguments": "{\"x\":1}"}}),
            json!({"function": {"name": "b", "arguments": "{}"}}),
        ]),
        expected
    );
    // The second before the first.
    assert_eq!(
        names(&[
            json!({"index": 1, "id": "2", "function": {"name": "b", "arguments": "{}"}}),
            json!({"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"x\":1}"}}),
        ]),
        expected
    );
}

#[test]
fn an_incomplete_stream_is_an_error() {
    let kind =
        |events: &[Value]| assembled(&OpenAiChat::openai(), events).map_err(|failure| failure.kind);
    assert_eq!(kind(&[]), Err(ApiErrorKind::Transient));
    let begun = chunk(json!({"role": "assistant", "content": "Hel"}), Value::Null);
    assert_eq!(
        kind(std::slice::from_ref(&begun)),
        Err(ApiErrorKind::Transient)
    );
    assert_eq!(
        kind(&[json!({"choices": [], "usage": {}})]),
        Err(ApiErrorKind::Transient)
    );
    let error = json!({"error": {"message": "busy", "type": "server_error", "code": 503}});
    assert_eq!(kind(&[begun.clone(), error]), Err(ApiErrorKind::Overloaded));
    assert_eq!(kind(&[json!([1])]), Err(ApiErrorKind::Malformed));
    let strange = chunk(json!({"tool_calls": [{"index": "one"}]}), Value::Null);
    assert_eq!(kind(&[strange]), Err(ApiErrorKind::Malformed));
    let mut assembler = OpenAiChat::openai().assembler();
    assembler.event(None, &begun.to_string()).unwrap();
    assembler.event(None, "[DONE]").unwrap();
    assert_eq!(
        assembler.finish().unwrap()["choices"][0]["message"]["content"],
        "Hel"
    );
}

#[test]
fn an_invalid_answer_is_malformed_and_errors_are_kept() {
    assert_eq!(
        read(json!({"choices": []})).unwrap_err().kind,
        ApiErrorKind::Malformed
    );
    let nameless = json!({"tool_calls": [{"id": "1"}]});
    assert_eq!(
        read(completion(nameless, "stop")).unwrap_err().kind,
        ApiErrorKind::Malformed
    );
    let inside = json!({
        "choices": [{"error": {"code": 502, "message": "upstream"}, "message": {"content": ""}}],
    });
    assert_eq!(read(inside).unwrap_err().kind, ApiErrorKind::Transient);
}
