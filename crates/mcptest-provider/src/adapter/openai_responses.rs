//! OpenAI's Responses API.

mod stream;
#[cfg(test)]
mod tests;

use mcptest_agent::{AssistantTurn, Message, ModelCall, OfferedTool, TurnEnd, Usage};
use serde_json::{Value, json};

use super::conversation::{self, Said, count};
use super::names::Names;
use super::openai_chat::{self, NAMES};
use super::{Adapter, Ask, Assembler, Failure, failure, results};

/// The dialect of the Responses API.
///
/// Nothing is stored at the provider: each request carries the whole conversation, so that a run
/// depends on nothing but what it sends.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiResponses;

impl Adapter for OpenAiResponses {
    fn path(&self, _model: &str, _stream: bool) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        openai_chat::bearer(key)
    }

    fn body(&self, ask: &Ask<'_>) -> Value {
        let request = ask.request;
        let names = Names::new(NAMES, request.tools);
        let mut input = Vec::new();
        for (place, message) in request.messages.iter().enumerate() {
            write(message, place, &names, &mut input);
        }
        let mut body = json!({"model": ask.model, "stream": ask.stream, "store": false});
        if let Some(system) = request.system.filter(|system| !system.trim().is_empty()) {
            body["instructions"] = system.into();
        }
        body["input"] = input.into();
        if reasons(ask.model) {
            // What is not stored must be carried along. Models that do not reason refuse the wish.
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        if let Some(most) = request.max_tokens {
            body["max_output_tokens"] = most.into();
        }
        if !request.tools.is_empty() {
            body["tools"] = names
                .tools()
                .map(|(name, tool)| offered(name, tool))
                .collect();
        }
        conversation::body(ask, body)
    }

    fn turn(&self, ask: &Ask<'_>, answer: &Value) -> Result<AssistantTurn, Failure> {
        if let Some(failure) = failure::inside(answer) {
            return Err(failure);
        }
        let Some(items) = answer.get("output").and_then(Value::as_array) else {
            return Err(Failure::malformed(format!(
                "an answer without `output`: {answer}"
            )));
        };
        let end = end(answer)?;
        let names = Names::new(NAMES, ask.request.tools);
        let mut said = Said::default();
        let mut calls = Vec::new();
        for item in items {
            said.interrupt();
            match item.get("type").and_then(Value::as_str) {
                Some("message") => {
                    for part in item
                        .get("content")
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                    {
                        let words = part
                            .get("text")
                            .or_else(|| part.get("refusal"))
                            .and_then(Value::as_str);
                        said.say(words.unwrap_or_default());
                    }
                }
                Some("function_call") => calls.push(called(item, &names)?),
                _ => {}
            }
        }
        Ok(AssistantTurn {
            text: said.into_text(),
            calls,
            usage: answer.get("usage").and_then(usage),
            end,
            stop_reason: stop_reason(answer),
            native: Some(answer["output"].clone()),
        })
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(stream::Items::default())
    }

    fn failure(&self, status: u16, body: &[u8]) -> Failure {
        failure::from_status(status, body)
    }
}

/// Whether a model of OpenAI's reasons, by its name: the o-series, and from gpt-5 on all but the
/// chat ones.
fn reasons(model: &str) -> bool {
    // A gateway may put its own prefix in front.
    let name = model.rsplit('/').next().unwrap_or(model);
    let number_after = |prefix: &str| -> Option<u32> {
        let rest = name.strip_prefix(prefix)?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        rest[..digits].parse().ok()
    };
    let series = number_after("o").is_some();
    // Azure writes 3.5 as 35.
    let gpt = number_after("gpt-").is_some_and(|number| (5..35).contains(&number))
        && !name.contains("-chat");
    series || gpt || name.starts_with("codex-") || name.starts_with("gpt-oss")
}

fn offered(name: &str, tool: &OfferedTool) -> Value {
    let mut offered = openai_chat::function(name, tool);
    offered["type"] = "function".into();
    // By default this API would bend the schema until it is strict.
    offered["strict"] = false.into();
    offered
}

fn called(item: &Value, names: &Names<'_>) -> Result<ModelCall, Failure> {
    let Some(name) = item.get("name").and_then(Value::as_str) else {
        return Err(Failure::malformed(format!(
            "a `function_call` without a name: {item}"
        )));
    };
    // A namespace is part of the name, unless the plain name is what we offered.
    let wire_name = match conversation::own_id(item, "namespace") {
        Some(namespace) if !names.offers(name) => names.back(&format!("{namespace}__{name}")),
        _ => names.back(name),
    };
    let arguments = item
        .get("arguments")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(ModelCall {
        id: conversation::own_id(item, "call_id").or_else(|| conversation::own_id(item, "id")),
        wire_name,
        args: Some(conversation::arguments(arguments)),
        caller: conversation::caller(item),
    })
}

fn usage(usage: &Value) -> Option<Usage> {
    conversation::counted(Usage {
        input: count(usage, &["input_tokens"])?,
        output: count(usage, &["output_tokens"])?,
        cached_input: count(usage, &["input_tokens_details", "cached_tokens"]),
        reasoning: count(usage, &["output_tokens_details", "reasoning_tokens"]),
    })
}

/// An answer that is not finished, or that the provider gave up, holds no turn.
fn end(answer: &Value) -> Result<TurnEnd, Failure> {
    let status = answer.get("status").and_then(Value::as_str);
    match (status, stop_reason(answer).as_deref()) {
        (Some(status @ ("queued" | "in_progress")), _) => Err(Failure::malformed(format!(
            "the answer is not there yet (status `{status}`): `background` in the body of requests is not supported"
        ))),
        (Some(status @ ("failed" | "cancelled")), _) => Err(Failure::broken_off("status", status)),
        (_, Some("max_output_tokens")) => Ok(TurnEnd::OutOfTokens),
        (_, Some("content_filter")) => Ok(TurnEnd::Withheld),
        // Why is not said: whatever is there is not the whole.
        (Some("incomplete"), _) => Ok(TurnEnd::OutOfTokens),
        _ => Ok(TurnEnd::Finished),
    }
}

/// Why an answer is incomplete, or else its status.
fn stop_reason(answer: &Value) -> Option<String> {
    let incomplete = answer
        .get("incomplete_details")
        .and_then(|details| conversation::own_id(details, "reason"));
    incomplete.or_else(|| conversation::own_id(answer, "status"))
}

fn write(message: &Message, place: usize, names: &Names<'_>, out: &mut Vec<Value>) {
    match message {
        Message::User(text) => out.push(json!({"role": "user", "content": text})),
        Message::Assistant(turn) => match turn.native.as_ref().and_then(Value::as_array) {
            Some(items) => out.extend(sent_back(items, turn, place, names)),
            None => out.extend(built(turn, place, names)),
        },
        Message::Results(results) => {
            out.extend(results.iter().enumerate().map(|(at, (call, reply))| {
                let mut output = json!({
                    "type": "function_call_output",
                    "call_id": conversation::call_id(call, place.saturating_sub(1), at),
                    "output": results::text_that_tells_errors(reply),
                });
                if let Some(caller) = &call.caller {
                    output["caller"] = caller.clone();
                }
                output
            }))
        }
    }
}

/// The provider's own items, unchanged but for what it would not take back: names out of its
/// alphabet, arguments that are no object, and reasoning that is neither here nor stored there.
fn sent_back(items: &[Value], turn: &AssistantTurn, place: usize, names: &Names<'_>) -> Vec<Value> {
    let mut calls = turn.calls.iter().enumerate();
    let lost = items.iter().any(is_lost_reasoning);
    let mut kept = Vec::with_capacity(items.len());
    for item in items.iter().filter(|item| !is_lost_reasoning(item)) {
        let mut item = item.clone();
        if item.get("type").and_then(Value::as_str) == Some("function_call")
            && let Some((at, call)) = calls.next()
        {
            let written = item.get("arguments").and_then(Value::as_str);
            item["arguments"] = conversation::arguments_text(written, call.args.as_ref()).into();
            if !item
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| names.fits(name))
            {
                item["name"] = names.out(&call.wire_name).into();
            }
            item["call_id"] = conversation::call_id(call, place, at).into();
        }
        if lost && let Some(item) = item.as_object_mut() {
            // By its id the provider would look for the reasoning that led to it.
            item.shift_remove("id");
        }
        kept.push(item);
    }
    kept
}

fn is_lost_reasoning(item: &Value) -> bool {
    let absent = |key: &str| match item.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    item.get("type").and_then(Value::as_str) == Some("reasoning")
        && absent("encrypted_content")
        && absent("content")
}

fn built(turn: &AssistantTurn, place: usize, names: &Names<'_>) -> Vec<Value> {
    let text = (!turn.text.is_empty()).then(|| json!({"role": "assistant", "content": turn.text}));
    let calls = turn.calls.iter().enumerate().map(|(at, call)| {
        json!({
            "type": "function_call",
            "call_id": conversation::call_id(call, place, at),
            "name": names.out(&call.wire_name),
            "arguments": conversation::arguments_text(None, call.args.as_ref()),
        })
    });
    text.into_iter().chain(calls).collect()
}
