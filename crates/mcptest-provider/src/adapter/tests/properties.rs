use mcptest_agent::{AssistantTurn, Message, ToolReply};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Adapter, Anthropic, Gemini, OpenAiChat, OpenAiResponses};
use super::{assembled, call, text_reply, weather};

/// One part of a model's answer, independent of any API.
#[derive(Debug, Clone)]
enum AnswerPart {
    Text(String),
    Thought(String),
    Call(String, Value),
}

/// An answer, and the lengths of the fragments in which it is streamed.
#[derive(Debug, Clone)]
struct SampleAnswer {
    parts: Vec<AnswerPart>,
    cuts: Vec<usize>,
    input: u64,
    output: u64,
}

fn sample() -> impl Strategy<Value = SampleAnswer> {
    let text = "[a-zäß\u{1f600}\u{202e}\"\\\\\n{]{1,20}";
    let args = prop::collection::btree_map(
        "[a-zé]{0,4}",
        prop_oneof![
            Just(json!(null)),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from)
        ],
        0..4,
    );
    let parts = prop_oneof![
        text.prop_map(AnswerPart::Text),
        text.prop_map(AnswerPart::Thought),
        ("[a-z_]{1,8}", args).prop_map(|(name, args)| AnswerPart::Call(name, json!(args))),
    ];
    (
        prop::collection::vec(parts, 0..6),
        prop::collection::vec(1usize..7, 1..5),
        1u64..1000,
        0u64..1000,
    )
        .prop_map(|(parts, cuts, input, output)| {
            let mut sample = SampleAnswer {
                parts: Vec::new(),
                cuts,
                input,
                output,
            };
            for next in parts {
                // Some APIs merge adjacent parts of the same kind.
                let same = matches!(
                    (sample.parts.last(), &next),
                    (Some(AnswerPart::Text(_)), AnswerPart::Text(_))
                        | (Some(AnswerPart::Thought(_)), AnswerPart::Thought(_))
                );
                if !same {
                    sample.parts.push(next);
                }
            }
            sample
        })
}

/// Splits a text into fragments of these lengths, repeated; at least one fragment.
fn cut<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let ends: Vec<usize> = text
        .char_indices()
        .map(|(at, _)| at)
        .skip(1)
        .chain([text.len()])
        .collect();
    let mut pieces = Vec::new();
    let (mut from, mut done, mut turn) = (0, 0, 0);
    while done < ends.len() {
        done = (done + cuts[turn % cuts.len()]).min(ends.len());
        pieces.push(&text[from..ends[done - 1]]);
        from = ends[done - 1];
        turn += 1;
    }
    if pieces.is_empty() { vec![""] } else { pieces }
}

/// A complete answer, and the same answer as a stream of events.
type Both = (Value, Vec<Value>);

fn anthropic(sample: &SampleAnswer) -> Both {
    let mut content = Vec::new();
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [],
        "usage": {"input_tokens": sample.input, "output_tokens": 1}}}),
    ];
    for (index, part) in sample.parts.iter().enumerate() {
        let (block, begun, deltas): (Value, Value, Vec<Value>) = match part {
            AnswerPart::Text(text) => (
                json!({"type": "text", "text": text}),
                json!({"type": "text", "text": ""}),
                cut(text, &sample.cuts)
                    .into_iter()
                    .map(|piece| json!({"type": "text_delta", "text": piece}))
                    .collect(),
            ),
            AnswerPart::Thought(text) => {
                let mut deltas: Vec<Value> = cut(text, &sample.cuts)
                    .into_iter()
                    .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                    .collect();
                deltas.push(json!({"type": "signature_delta", "signature": "sig"}));
                (
                    json!({"type": "thinking", "thinking": text, "signature": "sig"}),
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                    deltas,
                )
            }
            AnswerPart::Call(name, args) => (
                json!({"type": "tool_use", "id": format!("t{index}"), "name": name, "input": args}),
                json!({"type": "tool_use", "id": format!("t{index}"), "name": name, "input": {}}),
                cut(&args.to_string(), &sample.cuts)
                    .into_iter()
                    .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                    .collect(),
            ),
        };
        content.push(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        events.extend(
            deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": sample.output},
    }));
    events.push(json!({"type": "message_stop"}));
    let whole = json!({
        "id": "m",
        "role": "assistant",
        "content": content,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": sample.input, "output_tokens": sample.output},
    });
    (whole, events)
}

fn chat(sample: &SampleAnswer) -> Both {
    let mut message = json!({"role": "assistant", "content": null});
    let mut events =
        vec![json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": null}}]})];
    let mut delta = |delta: Value| {
        events.push(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
    };
    let mut calls = Vec::new();
    for part in &sample.parts {
        match part {
            AnswerPart::Text(text) | AnswerPart::Thought(text) => {
                let key = if matches!(part, AnswerPart::Text(_)) {
                    "content"
                } else {
                    "reasoning_content"
                };
                let before = message.get(key).and_then(Value::as_str).unwrap_or_default();
                message[key] = format!("{before}{text}").into();
                cut(text, &sample.cuts)
                    .into_iter()
                    .for_each(|piece| delta(json!({ key: piece })));
            }
            AnswerPart::Call(name, args) => {
                let (index, id) = (calls.len(), format!("t{}", calls.len()));
                calls.push(json!({
                    "id": id,
                    "type": "function",
                    "function": {"name": name, "arguments": args.to_string()},
                }));
                delta(json!({
                    "tool_calls": [{
                        "index": index,
                        "id": id,
                        "type": "function",
                        "function": {"name": name, "arguments": ""},
                    }],
                }));
                for piece in cut(&args.to_string(), &sample.cuts) {
                    delta(
                        json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                    );
                }
            }
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let usage = json!({"prompt_tokens": sample.input, "completion_tokens": sample.output});
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    events.push(json!({"choices": [], "usage": usage}));
    (
        json!({
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }),
        events,
    )
}

fn responses(sample: &SampleAnswer) -> Both {
    let mut output = Vec::new();
    let mut events = vec![json!({"type": "response.created", "response": {"output": []}})];
    for (index, part) in sample.parts.iter().enumerate() {
        let (item, kind, text) = match part {
            AnswerPart::Text(text) => (
                json!({"type": "message", "content": [{"type": "output_text", "text": text}]}),
                "response.output_text.delta",
                text.clone(),
            ),
            AnswerPart::Thought(text) => (
                json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": text}),
                "response.reasoning_text.delta",
                text.clone(),
            ),
            AnswerPart::Call(name, args) => (
                json!({
                    "type": "function_call",
                    "call_id": format!("t{index}"),
                    "name": name,
                    "arguments": args.to_string(),
                }),
                "response.function_call_arguments.delta",
                args.to_string(),
            ),
        };
        let begun = json!({"type": item["type"], "call_id": item["call_id"], "name": item["name"]});
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        );
        for piece in cut(&text, &sample.cuts) {
            events.push(
                json!({"type": kind, "output_index": index, "content_index": 0, "delta": piece}),
            );
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
        output.push(item);
    }
    let whole = json!({
        "status": "completed",
        "output": output,
        "usage": {"input_tokens": sample.input, "output_tokens": sample.output},
    });
    let mut last = whole.clone();
    if sample.output.is_multiple_of(2) {
        last["output"] = json!([]);
    }
    events.push(json!({"type": "response.completed", "response": last}));
    (whole, events)
}

fn gemini(sample: &SampleAnswer) -> Both {
    let mut parts = Vec::new();
    let mut events = Vec::new();
    let chunk = |part: &Value| {
        json!({
            "candidates": [{"content": {"role": "model", "parts": [part]}}],
            "usageMetadata": {"promptTokenCount": sample.input},
        })
    };
    for part in &sample.parts {
        match part {
            AnswerPart::Text(text) | AnswerPart::Thought(text) => {
                let part = |text: &str| match part {
                    AnswerPart::Thought(_) => json!({"text": text, "thought": true}),
                    _ => json!({"text": text}),
                };
                parts.push(part(text));
                events.extend(
                    cut(text, &sample.cuts)
                        .into_iter()
                        .map(|piece| chunk(&part(piece))),
                );
            }
            AnswerPart::Call(name, args) => {
                let part = json!({
                    "functionCall": {"name": name, "args": args},
                    "thoughtSignature": "sig",
                });
                events.push(chunk(&part));
                parts.push(part);
            }
        }
    }
    let usage = json!({"promptTokenCount": sample.input, "candidatesTokenCount": sample.output});
    events.push(json!({
        "candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}],
        "usageMetadata": usage,
    }));
    let whole = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": usage,
    });
    (whole, events)
}

type Sampler = fn(&SampleAnswer) -> Both;

fn adapters() -> [(Box<dyn Adapter>, Sampler); 4] {
    [
        (Box::new(Anthropic), anthropic),
        (Box::new(OpenAiChat::compatible()), chat),
        (Box::new(OpenAiResponses), responses),
        (Box::new(Gemini), gemini),
    ]
}

/// Random JSON with the keys and values of all APIs, so that it passes the first checks.
fn random_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "text",
        "tool_use",
        "thinking",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "input_json_delta",
        "text_delta",
        "error",
        "function_call",
        "message",
        "reasoning",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.completed",
        "STOP",
        "get_weather",
        "",
        "{\"a\":1}",
        "{broken",
        "ä",
    ]);
    let key = prop::sample::select(vec![
        "type",
        "index",
        "content_block",
        "delta",
        "message",
        "content",
        "text",
        "id",
        "name",
        "input",
        "partial_json",
        "usage",
        "input_tokens",
        "output_tokens",
        "choices",
        "tool_calls",
        "function",
        "arguments",
        "finish_reason",
        "output",
        "output_index",
        "content_index",
        "item",
        "response",
        "call_id",
        "caller",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "finishReason",
        "usageMetadata",
        "promptTokenCount",
        "error",
        "code",
        "details",
        "retryDelay",
        "status",
        "container",
        "thought",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![0u64..3, any::<u64>()].prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|pairs| pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn a_streamed_answer_equals_the_complete_answer(sample in sample()) {
        for (adapter, sampler) in adapters() {
            let (whole, events) = sampler(&sample);
            let streamed = assembled(adapter.as_ref(), &events);
            let streamed = streamed.unwrap_or_else(|failure| panic!("{adapter:?}: {failure}"));
            let case = weather();
            prop_assert_eq!(
                case.turn_of(adapter.as_ref(), &streamed),
                case.turn_of(adapter.as_ref(), &whole),
                "{:?}",
                adapter,
            );
        }
    }

    #[test]
    fn a_turn_has_all_text_and_calls_and_is_sent_back_with_every_result(sample in sample()) {
        for (adapter, sampler) in adapters() {
            let (whole, _) = sampler(&sample);
            let mut case = weather();
            let turn = case.turn_of(adapter.as_ref(), &whole).unwrap();
            let calls: Vec<(String, Value)> = turn.calls.iter().map(|call| (
                call.wire_name.clone(),
                call.args.clone().unwrap(),
            )).collect();
            let made: Vec<(String, Value)> = sample.parts.iter().filter_map(|part| match part {
                AnswerPart::Call(name, args) => Some((name.clone(), args.clone())),
                _ => None,
            }).collect();
            prop_assert_eq!(calls, made);
            for part in &sample.parts {
                if let AnswerPart::Text(text) = part {
                    prop_assert!(turn.text.contains(text.as_str()));
                }
            }
            prop_assert_eq!(turn.usage.unwrap().input, sample.input);
            let results = turn.calls.iter().map(|call| (
                call.clone(),
                text_reply("seen it"),
            )).collect();
            case.messages.push(Message::Assistant(turn.clone()));
            case.messages.push(Message::Results(results));
            let body = case.body_of(adapter.as_ref()).to_string();
            prop_assert_eq!(body.matches("seen it").count(), turn.calls.len());
        }
    }

    #[test]
    fn a_truncated_stream_is_never_a_shorter_answer(sample in sample(), part in 0.0f64..1.0) {
        for (adapter, sampler) in adapters() {
            let (whole, events) = sampler(&sample);
            let kept = (events.len() as f64 * part) as usize;
            let case = weather();
            if let Ok(answer) = assembled(adapter.as_ref(), &events[..kept]) {
                // Only the usage at the end of a chat stream may be missing.
                let mut expected = case.turn_of(adapter.as_ref(), &whole).unwrap();
                let turn = case.turn_of(adapter.as_ref(), &answer).unwrap();
                expected.usage = turn.usage;
                prop_assert_eq!(turn, expected);
            }
        }
    }

    #[test]
    fn a_recorded_turn_with_random_json_can_be_sent(
        native in random_json(),
        inner in random_json(),
        args in random_json(),
    ) {
        let shapes = [
            native.clone(),
            json!({
                "content": [inner, {"type": "tool_use"}],
                "tool_calls": [inner, {"function": inner}],
                "parts": [inner, {"functionCall": inner}],
            }),
            json!([inner, {"type": "function_call", "arguments": inner}, {"type": "reasoning"}]),
        ];
        for (adapter, _) in adapters() {
            for native in &shapes {
                let mut case = weather();
                let calls = vec![call(None, "x", args.clone()), call(None, "y", args.clone())];
                case.messages.push(
                    Message::Assistant(
                        AssistantTurn {
                            calls,
                            native: Some(native.clone()),
                            ..AssistantTurn::default()
                        },
                    ),
                );
                prop_assert!(case.body_of(adapter.as_ref()).is_object());
            }
        }
    }

    #[test]
    fn random_json_is_an_error_or_a_turn_that_can_be_sent(
        answer in random_json(),
        events in prop::collection::vec(random_json(), 0..8),
    ) {
        for (adapter, _) in adapters() {
            let mut case = weather();
            let streamed = assembled(adapter.as_ref(), &events).ok();
            for answer in [Some(answer.clone()), streamed].into_iter().flatten() {
                let Ok(turn) = case.turn_of(adapter.as_ref(), &answer) else { continue };
                let results = turn.calls.iter().map(|call| (
                    call.clone(),
                    ToolReply { content: answer.clone(), ..text_reply("") },
                )).collect();
                case.messages.push(Message::Assistant(turn));
                case.messages.push(Message::Results(results));
            }
            prop_assert!(case.body_of(adapter.as_ref()).is_object());
            prop_assert!(adapter.error(500, answer.to_string().as_bytes()).message.len() < 10_000);
        }
    }
}
