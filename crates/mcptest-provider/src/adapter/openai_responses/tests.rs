use mcptest_agent::{AssistantTurn, ToolReply, Usage};
use serde_json::{Value, json};

use super::super::tests::{Case, answered, assembled, call, offered, text_reply, weather};
use super::super::{Adapter, ApiError, ApiErrorKind};
use super::{OpenAiResponses, is_reasoning_model};

fn read(answer: Value) -> Result<AssistantTurn, ApiError> {
    weather().turn_of(&OpenAiResponses, &answer)
}

fn response(output: Value) -> Value {
    json!({
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": null,
        "incomplete_details": null,
        "model": "gpt",
        "output": output,
        "usage": {
            "input_tokens": 50,
            "input_tokens_details": {"cached_tokens": 30},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 8},
            "total_tokens": 70,
        },
    })
}

fn function_call(call_id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call",
        "id": format!("fc_{call_id}"),
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    })
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

#[test]
fn a_first_request_stores_nothing_and_is_not_strict() {
    let mut case = weather();
    case.max_tokens = Some(50);
    assert_eq!(
        case.body_of(&OpenAiResponses),
        json!({
            "model": "m-1", "stream": false, "store": false, "instructions": "Be brief.",
            "input": [{"role": "user", "content": "Weather in Paris?"}],
            "max_output_tokens": 50,
            "tools": [
                {
                    "type": "function",
                    "name": "get_weather",
                    "description": "The weather of a city.",
                    "strict": false,
                    "parameters": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}},
                        "required": ["city"],
                    },
                },
                {
                    "type": "function",
                    "name": "gr__e_now",
                    "strict": false,
                    "parameters": {
                        "$schema": "https://json-schema.org/draft/2020-12/schema",
                        "type": "object",
                        "properties": {},
                    },
                },
            ],
        })
    );
    case.model = "gpt-5-mini".into();
    assert_eq!(
        case.body_of(&OpenAiResponses)["include"],
        json!(["reasoning.encrypted_content"])
    );
    assert_eq!(OpenAiResponses.path("m", true), "/responses");
}

#[test]
fn reasoning_models_are_known_by_name() {
    for model in [
        "o1",
        "o3-mini",
        "o4-mini",
        "gpt-5",
        "gpt-5.1-codex",
        "gpt-6",
        "gpt-10",
        "codex-mini-latest",
        "openai/gpt-5",
        "gpt-oss-20b",
    ] {
        assert!(is_reasoning_model(model), "{model}");
    }
    for model in [
        "gpt-4o",
        "gpt-4.1",
        "gpt-3.5-turbo",
        "gpt-35-turbo",
        "gpt-5-chat-latest",
        "omni",
        "chatgpt-4o-latest",
        "llama-3",
        "o",
        "",
    ] {
        assert!(!is_reasoning_model(model), "{model}");
    }
}

#[test]
fn an_answer_gives_text_calls_and_usage_and_is_sent_back() {
    let mut coded = function_call("c2", "gr__e_now", "");
    coded["caller"] = json!({"type": "program", "caller_id": "prog_1"});
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        message("Looking."),
        message("Now."),
        {"type": "program", "id": "p", "call_id": "prog_1", "code": "…"},
        function_call("c1", "get_weather", "{\"city\":\"Paris\"}"),
        coded,
        function_call("c3", "two words", "{broken"),
    ]);
    let turn = read(response(output.clone())).unwrap();
    assert_eq!(turn.text, "Looking.\nNow.");
    assert_eq!(turn.stop_reason.as_deref(), Some("completed"));
    assert_eq!(
        turn.usage,
        Some(Usage {
            input: 50,
            output: 20,
            cached_input: Some(30),
            reasoning: Some(8)
        })
    );
    let mut coded_call = call(Some("c2"), "größe/now", json!({}));
    coded_call.caller = Some(json!({"type": "program", "caller_id": "prog_1"}));
    assert_eq!(
        turn.calls,
        [
            call(Some("c1"), "get_weather", json!({"city": "Paris"})),
            coded_call,
            call(Some("c3"), "two words", json!("{broken")),
        ]
    );

    let mut case = weather();
    case.messages.extend(answered(
        &turn,
        vec![text_reply("22C"), ToolReply::refusal("no"), text_reply("x")],
    ));
    let input = case.body_of(&OpenAiResponses)["input"].clone();
    let mut expected = output;
    expected[5]["arguments"] = "{}".into();
    expected[6]["arguments"] = "{\"INVALID_JSON\":\"{broken\"}".into();
    expected[6]["name"] = "two_words".into();
    assert_eq!(
        input.as_array().unwrap()[1..8],
        expected.as_array().unwrap()[..]
    );
    assert_eq!(
        input.as_array().unwrap()[8..],
        [
            json!({"type": "function_call_output", "call_id": "c1", "output": "22C"}),
            json!({
                "type": "function_call_output",
                "call_id": "c2",
                "output": "Error: no",
                "caller": {"type": "program", "caller_id": "prog_1"},
            }),
            json!({"type": "function_call_output", "call_id": "c3", "output": "x"}),
        ]
    );
}

#[test]
fn unstored_reasoning_is_not_sent_back_or_referenced() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": []},
        function_call("c1", "get_weather", "{}"),
    ]);
    let turn = read(response(output)).unwrap();
    let mut case = weather();
    case.messages.extend(answered(&turn, vec![text_reply("x")]));
    let input = case.body_of(&OpenAiResponses)["input"].clone();
    assert_eq!(
        input[1],
        json!({
            "type": "function_call",
            "call_id": "c1",
            "name": "get_weather",
            "arguments": "{}",
            "status": "completed",
        })
    );
    // Servers of open models include the reasoning.
    let output = json!([
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "hm"}],
        },
        message("x"),
    ]);
    let turn = read(response(output.clone())).unwrap();
    let mut case = weather();
    case.messages.extend(answered(&turn, vec![]));
    assert_eq!(
        case.body_of(&OpenAiResponses)["input"].as_array().unwrap()[1..],
        output.as_array().unwrap()[..]
    );
}

#[test]
fn a_turn_without_native_items_is_built() {
    let turn = AssistantTurn {
        text: "Looking.".into(),
        calls: vec![call(None, "get_weather", json!({"city": "Paris"}))],
        ..AssistantTurn::default()
    };
    let mut case = weather();
    case.messages
        .extend(answered(&turn, vec![text_reply("22C")]));
    assert_eq!(
        case.body_of(&OpenAiResponses)["input"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": "Looking."}),
            json!({
                "type": "function_call",
                "call_id": "call_1_0",
                "name": "get_weather",
                "arguments": "{\"city\":\"Paris\"}",
            }),
            json!({"type": "function_call_output", "call_id": "call_1_0", "output": "22C"}),
        ]
    );
}

#[test]
fn a_namespace_is_part_of_the_name_unless_the_plain_name_is_offered() {
    let mut item = function_call("c", "echo", "{}");
    item["namespace"] = "everything".into();
    let wire_name = |tools: &[&str]| {
        let case = Case {
            tools: tools
                .iter()
                .map(|name| offered(json!({"name": name})))
                .collect(),
            ..Case::default()
        };
        case.turn_of(&OpenAiResponses, &response(json!([item.clone()])))
            .unwrap()
            .calls[0]
            .wire_name
            .clone()
    };
    assert_eq!(wire_name(&["echo"]), "echo");
    assert_eq!(wire_name(&["everything__echo"]), "everything__echo");
    assert_eq!(wire_name(&[]), "everything__echo");
}

#[test]
fn an_incomplete_answer_has_its_reason() {
    let mut answer = response(json!([message("Once upon")]));
    answer["status"] = "incomplete".into();
    answer["incomplete_details"] = json!({"reason": "max_output_tokens"});
    let turn = read(answer).unwrap();
    assert_eq!(
        (turn.text.as_str(), turn.stop_reason.as_deref()),
        ("Once upon", Some("max_output_tokens"))
    );
    let refusal =
        json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]);
    assert_eq!(read(response(refusal)).unwrap().text, "I cannot.");
}

fn events() -> Vec<Value> {
    let call = function_call("c1", "get_weather", "{\"city\":\"Paris\"}");
    let mut begun = call.clone();
    begun["arguments"] = "".into();
    vec![
        json!({
            "type": "response.created",
            "response": {"id": "resp_1", "status": "in_progress", "output": []},
        }),
        json!({
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "in_progress",
                "content": [],
            },
        }),
        json!({
            "type": "response.content_part.added",
            "output_index": 0,
            "content_index": 0,
            "part": {"type": "output_text", "text": ""},
        }),
        json!({
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": 0,
            "delta": "Look",
        }),
        json!({
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": 0,
            "delta": "ing.",
        }),
        json!({
            "type": "response.output_text.done",
            "output_index": 0,
            "content_index": 0,
            "text": "Looking.",
        }),
        json!({
            "type": "response.output_item.done",
            "output_index": 0,
            "item": message("Looking."),
        }),
        json!({"type": "response.output_item.added", "output_index": 1, "item": begun}),
        json!({
            "type": "response.function_call_arguments.delta",
            "output_index": 1,
            "delta": "{\"city\":",
        }),
        json!({
            "type": "response.function_call_arguments.delta",
            "output_index": 1,
            "delta": "\"Paris\"}",
        }),
        json!({"type": "response.output_item.done", "output_index": 1, "item": call.clone()}),
        json!({
            "type": "response.completed",
            "response": response(json!([message("Looking."), call])),
        }),
    ]
}

#[test]
fn a_stream_equals_the_complete_answer() {
    let whole = events().pop().unwrap()["response"].clone();
    assert_eq!(assembled(&OpenAiResponses, &events()).unwrap(), whole);
    // Some servers omit the output of the last event, or the last events of the items.
    let mut empty = events();
    empty[11]["response"]["output"] = json!([]);
    assert_eq!(assembled(&OpenAiResponses, &empty).unwrap(), whole);
    empty.remove(10);
    empty.remove(6);
    let turn = read(assembled(&OpenAiResponses, &empty).unwrap()).unwrap();
    assert_eq!(turn.text, "Looking.");
    assert_eq!(
        turn.calls,
        [call(Some("c1"), "get_weather", json!({"city": "Paris"}))]
    );
}

#[test]
fn an_incomplete_or_inconsistent_stream_is_an_error() {
    let all = events();
    for length in 0..all.len() {
        assert_eq!(
            assembled(&OpenAiResponses, &all[..length])
                .unwrap_err()
                .kind,
            ApiErrorKind::Transient
        );
    }
    let changed = |at: usize, event: Value| {
        let mut events = events();
        events[at] = event;
        assembled(&OpenAiResponses, &events).unwrap_err().kind
    };
    let delta = |kind: &str, index: u64| {
        json!({
            "type": kind,
            "output_index": index,
            "content_index": 0,
            "delta": "x",
        })
    };
    assert_eq!(
        changed(4, delta("response.output_text.delta", 0)),
        ApiErrorKind::Malformed,
        "another text"
    );
    assert_eq!(
        changed(9, delta("response.function_call_arguments.delta", 1)),
        ApiErrorKind::Malformed,
        "other arguments"
    );
    assert_eq!(
        changed(9, delta("response.function_call_arguments.delta", 0)),
        ApiErrorKind::Malformed,
        "a closed item"
    );
    assert_eq!(
        changed(9, delta("response.function_call_arguments.delta", 9)),
        ApiErrorKind::Malformed,
        "no such item"
    );
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": {}});
    assert_eq!(changed(7, added), ApiErrorKind::Malformed, "an index again");
    let mut lost = events();
    lost[11]["response"]["output"].as_array_mut().unwrap().pop();
    assert_eq!(
        assembled(&OpenAiResponses, &lost).unwrap_err().kind,
        ApiErrorKind::Malformed,
        "an item less"
    );
}

#[test]
fn errors_in_a_stream_are_classified() {
    let kind = |event: Value| assembled(&OpenAiResponses, &[event]).unwrap_err();
    let failed = |code: &str| {
        json!({
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": code, "message": "no"}},
        })
    };
    assert_eq!(
        kind(failed("rate_limit_exceeded")).kind,
        ApiErrorKind::RateLimit
    );
    assert_eq!(kind(failed("server_error")).kind, ApiErrorKind::Transient);
    assert_eq!(kind(failed("invalid_prompt")).kind, ApiErrorKind::Refused);
    let error = kind(json!({
        "type": "error",
        "code": "rate_limit_exceeded",
        "message": "slow down",
        "param": null,
    }));
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ApiErrorKind::RateLimit, "slow down")
    );
    assert_eq!(
        kind(json!({"error": {"message": "x", "code": 401}})).kind,
        ApiErrorKind::Auth
    );
    assert_eq!(
        read(json!({
            "status": "failed",
            "error": {"code": "server_error", "message": "x"},
            "output": [],
        }),)
        .unwrap_err()
        .kind,
        ApiErrorKind::Transient
    );
    assert_eq!(read(json!({})).unwrap_err().kind, ApiErrorKind::Malformed);
}
