//! OpenAI's Responses API.

mod stream;
#[cfg(test)]
mod tests;

use mcptest_agent::{AssistantTurn, Message, ModelCall, OfferedTool, TurnEnd, Usage};
use serde_json::{Value, json};

use super::api_error::{self, ApiError};
use super::conversation::{self, TextBlocks, count};
use super::names::ToolNames;
use super::openai_chat::{self, NAMES};
use super::results;
use super::traits::{Adapter, Assembler, ProviderRequest};

/// The adapter of the Responses API.
///
/// Nothing is stored at the provider: each request has the whole conversation, so that a run
/// depends only on what it sends.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiResponses;

impl Adapter for OpenAiResponses {
    fn path(&self, _model: &str, _stream: bool) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        openai_chat::bearer(key)
    }

    fn body(&self, request: &ProviderRequest<'_>) -> Value {
        let turn = request.turn;
        let names = ToolNames::new(NAMES, turn.tools);
        let mut input = Vec::new();
        for (index, message) in turn.messages.iter().enumerate() {
            write(message, index, &names, &mut input);
        }
        let mut body = json!({"model": request.model, "stream": request.stream, "store": false});
        if let Some(system) = turn.system.filter(|system| !system.trim().is_empty()) {
            body["instructions"] = system.into();
        }
        body["input"] = input.into();
        if is_reasoning_model(request.model) {
            // Unstored reasoning must be sent back. Other models reject the option.
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        if let Some(most) = turn.max_tokens {
            body["max_output_tokens"] = most.into();
        }
        if !turn.tools.is_empty() {
            body["tools"] = names
                .tools()
                .map(|(name, tool)| offered(name, tool))
                .collect();
        }
        conversation::body(request, body)
    }

    fn turn(
        &self,
        request: &ProviderRequest<'_>,
        answer: &Value,
    ) -> Result<AssistantTurn, ApiError> {
        if let Some(error) = api_error::inside(answer) {
            return Err(error);
        }
        let Some(items) = answer.get("output").and_then(Value::as_array) else {
            return Err(ApiError::malformed(format!(
                "an answer without `output`: {answer}"
            )));
        };
        let end = end(answer)?;
        let names = ToolNames::new(NAMES, request.turn.tools);
        let mut text = TextBlocks::default();
        let mut calls = Vec::new();
        for item in items {
            text.separate();
            match item.get("type").and_then(Value::as_str) {
                Some("message") => {
                    for part in item
                        .get("content")
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                    {
                        let more = part
                            .get("text")
                            .or_else(|| part.get("refusal"))
                            .and_then(Value::as_str);
                        text.push(more.unwrap_or_default());
                    }
                }
                Some("function_call") => calls.push(called(item, &names)?),
                _ => {}
            }
        }
        Ok(AssistantTurn {
            text: text.into_text(),
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
}

/// Returns true if a model of OpenAI reasons, by its name: the o-series, and from gpt-5 on all but
/// the chat models.
fn is_reasoning_model(model: &str) -> bool {
    // A gateway may add its own prefix.
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
    // By default this API would rewrite the schema to be strict.
    offered["strict"] = false.into();
    offered
}

fn called(item: &Value, names: &ToolNames<'_>) -> Result<ModelCall, ApiError> {
    let Some(name) = item.get("name").and_then(Value::as_str) else {
        return Err(ApiError::malformed(format!(
            "a `function_call` without a name: {item}"
        )));
    };
    // A namespace is part of the name, unless the plain name was offered.
    let wire_name = match conversation::non_empty(item, "namespace") {
        Some(namespace) if !names.offers(name) => names.own_name(&format!("{namespace}__{name}")),
        _ => names.own_name(name),
    };
    let arguments = item
        .get("arguments")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(ModelCall {
        id: conversation::non_empty(item, "call_id")
            .or_else(|| conversation::non_empty(item, "id")),
        wire_name,
        args: Some(conversation::arguments(arguments)),
        caller: conversation::caller(item),
    })
}

fn usage(usage: &Value) -> Option<Usage> {
    conversation::known_usage(Usage {
        input: count(usage, &["input_tokens"])?,
        output: count(usage, &["output_tokens"])?,
        cached_input: count(usage, &["input_tokens_details", "cached_tokens"]),
        reasoning: count(usage, &["output_tokens_details", "reasoning_tokens"]),
    })
}

/// Maps the status. An answer that is not finished, or that the provider aborted, has no turn.
fn end(answer: &Value) -> Result<TurnEnd, ApiError> {
    let status = answer.get("status").and_then(Value::as_str);
    match (status, stop_reason(answer).as_deref()) {
        (Some(status @ ("queued" | "in_progress")), _) => Err(ApiError::malformed(format!(
            "the answer is not complete (status `{status}`): `background` in the body of \
             requests is not supported"
        ))),
        (Some(status @ ("failed" | "cancelled")), _) => Err(ApiError::aborted("status", status)),
        (_, Some("max_output_tokens")) => Ok(TurnEnd::OutOfTokens),
        (_, Some("content_filter")) => Ok(TurnEnd::Withheld),
        // Incomplete for an unknown reason.
        (Some("incomplete"), _) => Ok(TurnEnd::OutOfTokens),
        _ => Ok(TurnEnd::Finished),
    }
}

/// Returns the reason why an answer is incomplete, or else its status.
fn stop_reason(answer: &Value) -> Option<String> {
    let incomplete = answer
        .get("incomplete_details")
        .and_then(|details| conversation::non_empty(details, "reason"));
    incomplete.or_else(|| conversation::non_empty(answer, "status"))
}

fn write(message: &Message, index: usize, names: &ToolNames<'_>, out: &mut Vec<Value>) {
    match message {
        Message::User(text) => out.push(json!({"role": "user", "content": text})),
        Message::Assistant(turn) => match turn.native.as_ref().and_then(Value::as_array) {
            Some(items) => out.extend(sent_back(items, turn, index, names)),
            None => out.extend(built(turn, index, names)),
        },
        Message::Results(results) => {
            out.extend(results.iter().enumerate().map(|(position, (call, reply))| {
                let mut output = json!({
                    "type": "function_call_output",
                    "call_id": conversation::call_id(call, index.saturating_sub(1), position),
                    "output": results::text_with_error_prefix(reply),
                });
                if let Some(caller) = &call.caller {
                    output["caller"] = caller.clone();
                }
                output
            }))
        }
    }
}

/// Returns the provider's own items with only the changes that it requires: valid names, arguments
/// as objects, no reasoning that is neither included nor stored.
fn sent_back(
    items: &[Value],
    turn: &AssistantTurn,
    index: usize,
    names: &ToolNames<'_>,
) -> Vec<Value> {
    let mut calls = turn.calls.iter().enumerate();
    let lost = items.iter().any(is_lost_reasoning);
    let mut kept = Vec::with_capacity(items.len());
    for item in items.iter().filter(|item| !is_lost_reasoning(item)) {
        let mut item = item.clone();
        if item.get("type").and_then(Value::as_str) == Some("function_call")
            && let Some((position, call)) = calls.next()
        {
            let written = item.get("arguments").and_then(Value::as_str);
            item["arguments"] = conversation::arguments_text(written, call.args.as_ref()).into();
            if !item
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| names.is_valid(name))
            {
                item["name"] = names.sent_name(&call.wire_name).into();
            }
            item["call_id"] = conversation::call_id(call, index, position).into();
        }
        if lost && let Some(item) = item.as_object_mut() {
            // By the id, the provider would look for the reasoning before it.
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

fn built(turn: &AssistantTurn, index: usize, names: &ToolNames<'_>) -> Vec<Value> {
    let text = (!turn.text.is_empty()).then(|| json!({"role": "assistant", "content": turn.text}));
    let calls = turn.calls.iter().enumerate().map(|(position, call)| {
        json!({
            "type": "function_call",
            "call_id": conversation::call_id(call, index, position),
            "name": names.sent_name(&call.wire_name),
            "arguments": conversation::arguments_text(None, call.args.as_ref()),
        })
    });
    text.into_iter().chain(calls).collect()
}
