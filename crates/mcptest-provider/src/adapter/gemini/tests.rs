use mcptest_agent::{AssistantTurn, Message, ToolReply, Usage};
use serde_json::{Value, json};

use super::super::tests::{answered, assembled, call, text_reply, weather};
use super::super::{Adapter, ApiError, ApiErrorKind};
use super::Gemini;

fn read(answer: Value) -> Result<AssistantTurn, ApiError> {
    weather().turn_of(&Gemini, &answer)
}

fn answer(parts: Value) -> Value {
    json!({
        "candidates": [{
            "content": {"role": "model", "parts": parts},
            "finishReason": "STOP",
            "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 40,
            "cachedContentTokenCount": 10,
            "candidatesTokenCount": 6,
            "thoughtsTokenCount": 4,
            "toolUsePromptTokenCount": 3,
            "totalTokenCount": 53,
        },
        "modelVersion": "gemini", "responseId": "r",
    })
}

#[test]
fn a_first_request_declares_functions_by_json_schema() {
    let mut case = weather();
    case.max_tokens = Some(50);
    case.stream = true;
    assert_eq!(
        case.body_of(&Gemini),
        json!({
            "contents": [{"role": "user", "parts": [{"text": "Weather in Paris?"}]}],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "generationConfig": {"maxOutputTokens": 50},
            "tools": [{"functionDeclarations": [
                {"name": "get_weather", "description": "The weather of a city.",
                    "parametersJsonSchema": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}},
                        "required": ["city"],
                    }},
                {"name": "gr__e_now", "parametersJsonSchema": {"type": "object", "properties": {}}},
            ]}],
        })
    );
    case.body = json!({"generationConfig": {"temperature": 0}})
        .as_object()
        .unwrap()
        .clone();
    assert_eq!(
        case.body_of(&Gemini)["generationConfig"],
        json!({"maxOutputTokens": 50, "temperature": 0})
    );
}

#[test]
fn the_model_is_in_the_path() {
    assert_eq!(
        Gemini.path("gemini-2.5-pro", false),
        "/v1beta/models/gemini-2.5-pro:generateContent"
    );
    assert_eq!(
        Gemini.path("gemini-2.5-pro", true),
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        Gemini.path("tunedModels/mine", false),
        "/v1beta/tunedModels/mine:generateContent"
    );
    assert_eq!(
        Gemini.path("a b?c#d", false),
        "/v1beta/models/a%20b%3Fc%23d:generateContent"
    );
    assert_eq!(
        Gemini.headers(Some("k")),
        [("x-goog-api-key", "k".to_owned())]
    );
}

#[test]
fn an_answer_gives_text_calls_and_usage_and_is_sent_back() {
    let parts = json!([
        {"text": "thinking aloud", "thought": true},
        {"text": "Let me "},
        {"text": "look."},
        {"text": ""},
        {
            "functionCall": {"name": "get_weather", "args": {"city": "Paris"}, "id": "f1"},
            "thoughtSignature": "c2ln",
        },
        {"functionCall": {"name": "gr__e_now"}},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"text": "", "thoughtSignature": "ZW5k"},
    ]);
    let turn = read(answer(parts.clone())).unwrap();
    assert_eq!(turn.text, "Let me look.");
    assert_eq!(turn.stop_reason.as_deref(), Some("STOP"));
    assert_eq!(
        turn.usage,
        Some(Usage {
            input: 43,
            output: 10,
            cached_input: Some(10),
            reasoning: Some(4)
        })
    );
    assert_eq!(
        turn.calls,
        [
            call(Some("f1"), "get_weather", json!({"city": "Paris"})),
            call(None, "größe/now", json!({})),
        ]
    );

    let mut case = weather();
    case.messages.extend(answered(
        &turn,
        vec![text_reply("22C"), ToolReply::refusal("no")],
    ));
    let contents = case.body_of(&Gemini)["contents"].clone();
    let mut expected = parts;
    expected.as_array_mut().unwrap().remove(3);
    assert_eq!(contents[1], json!({"role": "model", "parts": expected}));
    assert_eq!(
        contents[2],
        json!({"role": "user", "parts": [
            {
                "functionResponse": {
                    "name": "get_weather",
                    "response": {"output": "22C"},
                    "id": "f1",
                },
            },
            {"functionResponse": {"name": "gr__e_now", "response": {"error": "no"}}},
        ]})
    );
}

#[test]
fn a_turn_without_native_parts_is_built_unless_empty() {
    let turn = AssistantTurn {
        text: "Looking.".into(),
        calls: vec![call(None, "two words", json!("{broken"))],
        ..AssistantTurn::default()
    };
    let mut case = weather();
    case.messages.extend(answered(
        &turn,
        vec![ToolReply {
            is_error: true,
            ..ToolReply::default()
        }],
    ));
    case.messages
        .push(Message::Assistant(read(answer(json!([]))).unwrap()));
    let contents = case.body_of(&Gemini)["contents"].clone();
    assert_eq!(contents.as_array().unwrap().len(), 3);
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"text": "Looking."},
            {"functionCall": {"name": "two_words", "args": {"INVALID_JSON": "{broken"}}},
        ])
    );
    assert_eq!(
        contents[2]["parts"][0]["functionResponse"]["response"],
        json!({"error": "Error"})
    );
}

#[test]
fn a_blocked_prompt_is_refused_and_a_candidate_without_content_is_a_turn() {
    let blocked = read(json!({
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 4},
    }))
    .unwrap_err();
    assert_eq!(
        (blocked.kind, blocked.message.as_str()),
        (ApiErrorKind::Refused, "the prompt was blocked: SAFETY")
    );
    assert_eq!(read(json!({})).unwrap_err().kind, ApiErrorKind::Malformed);
    let silent = json!({
        "candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}],
        "usageMetadata": {"promptTokenCount": 4},
    });
    let turn = read(silent).unwrap();
    assert_eq!(turn.stop_reason.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
    assert_eq!(
        turn.usage,
        Some(Usage {
            input: 4,
            ..Usage::default()
        })
    );
    assert_eq!(read(json!({"candidates": [{}]})).unwrap().usage, None);
    let nameless = answer(json!([{"functionCall": {"args": {}}}]));
    assert_eq!(read(nameless).unwrap_err().kind, ApiErrorKind::Malformed);
}

fn chunk(parts: Value) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
        "usageMetadata": {"promptTokenCount": 9},
    })
}

#[test]
fn a_stream_equals_the_complete_answer() {
    let mut last = chunk(json!([{"text": "", "thoughtSignature": "ZW5k"}]));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({"promptTokenCount": 9, "candidatesTokenCount": 5});
    let events = [
        chunk(json!([{"text": "hm", "thought": true}])),
        chunk(json!([{"text": "m", "thought": true}])),
        chunk(json!([{"text": "Loo"}])),
        chunk(json!([{"text": "king"}])),
        chunk(json!([{
            "functionCall": {"name": "get_weather", "args": {}},
            "thoughtSignature": "c2ln",
        }])),
        last,
    ];
    let whole = assembled(&Gemini, &events).unwrap();
    assert_eq!(
        whole["candidates"][0]["content"],
        json!({"role": "model", "parts": [
            {"text": "hmm", "thought": true},
            {"text": "Looking"},
            {"functionCall": {"name": "get_weather", "args": {}}, "thoughtSignature": "c2ln"},
            {"text": "", "thoughtSignature": "ZW5k"},
        ]})
    );
    let turn = read(whole).unwrap();
    assert_eq!(
        turn.usage,
        Some(Usage {
            input: 9,
            output: 5,
            cached_input: None,
            reasoning: None
        })
    );
    for length in 0..events.len() {
        assert_eq!(
            assembled(&Gemini, &events[..length]).unwrap_err().kind,
            ApiErrorKind::Transient
        );
    }
}

#[test]
fn errors_and_blocked_prompts_in_a_stream_are_separated() {
    let error = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]}});
    let failure = assembled(&Gemini, &[chunk(json!([])), error]).unwrap_err();
    assert_eq!(failure.kind, ApiErrorKind::RateLimit);
    assert_eq!(failure.retry_after, Some(std::time::Duration::from_secs(7)));
    let blocked = assembled(
        &Gemini,
        &[json!({"promptFeedback": {"blockReason": "OTHER"}})],
    )
    .unwrap();
    assert_eq!(read(blocked).unwrap_err().kind, ApiErrorKind::Refused);
    assert_eq!(
        assembled(&Gemini, &[json!(7)]).unwrap_err().kind,
        ApiErrorKind::Malformed
    );
    assert_eq!(
        Gemini
            .error(
                503,
                br#"{"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}"#
            )
            .kind,
        ApiErrorKind::Overloaded
    );
}
