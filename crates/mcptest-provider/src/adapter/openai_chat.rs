//! Chat Completions: OpenAI's older API, and what every compatible server speaks.

mod stream;
#[cfg(test)]
mod tests;

use mcptest_agent::{AssistantTurn, Message, ModelCall, OfferedTool, TurnEnd, Usage};
use serde_json::{Map, Value, json};

use super::conversation::{self, count};
use super::names::{NameRule, Names};
use super::{Adapter, Ask, Assembler, Failure, FailureKind, failure, results};

pub(super) const NAMES: NameRule = NameRule {
    most: 64,
    also: &['-'],
    begins_with_letter: false,
};

/// The dialect of Chat Completions.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiChat {
    bound: &'static str,
}

impl OpenAiChat {
    /// As openai.com takes it: its reasoning models refuse `max_tokens`.
    #[must_use]
    pub fn openai() -> Self {
        Self {
            bound: "max_completion_tokens",
        }
    }

    /// As compatible servers take it: many do not know `max_completion_tokens`.
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            bound: "max_tokens",
        }
    }
}

impl Adapter for OpenAiChat {
    fn path(&self, _model: &str, _stream: bool) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn body(&self, ask: &Ask<'_>) -> Value {
        let request = ask.request;
        let names = Names::new(NAMES, request.tools);
        let mut messages = Vec::new();
        if let Some(system) = request.system.filter(|system| !system.trim().is_empty()) {
            messages.push(json!({"role": "system", "content": system}));
        }
        for (place, message) in request.messages.iter().enumerate() {
            write(message, place, &names, &mut messages);
        }
        let mut body = json!({"model": ask.model, "messages": messages, "stream": ask.stream});
        if ask.stream {
            // Without it, a streamed answer does not tell what it cost.
            body["stream_options"] = json!({"include_usage": true});
        }
        if let Some(most) = request.max_tokens {
            body[self.bound] = most.into();
        }
        if !request.tools.is_empty() {
            let tools = names.tools();
            body["tools"] = tools
                .map(|(name, tool)| json!({"type": "function", "function": function(name, tool)}))
                .collect();
        }
        conversation::body(ask, body)
    }

    fn turn(&self, ask: &Ask<'_>, answer: &Value) -> Result<AssistantTurn, Failure> {
        if let Some(failure) = failure::inside(answer) {
            return Err(failure);
        }
        let choice = answer.get("choices").and_then(|choices| choices.get(0));
        if let Some(failure) = choice.and_then(failure::inside) {
            return Err(failure);
        }
        let Some(message) = choice.and_then(|choice| choice.get("message")?.as_object()) else {
            return Err(Failure::malformed(format!(
                "an answer without `choices[0].message`: {answer}"
            )));
        };
        let reason = choice.and_then(|choice| conversation::own_id(choice, "finish_reason"));
        let end = end(reason.as_deref())?;
        let names = Names::new(NAMES, ask.request.tools);
        let calls = message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        Ok(AssistantTurn {
            text: said(message),
            calls: calls
                .map(|call| called(call, &names))
                .collect::<Result<_, _>>()?,
            usage: answer.get("usage").and_then(usage),
            end,
            stop_reason: reason,
            native: Some(message.clone().into()),
        })
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(stream::Chunks::default())
    }

    fn failure(&self, status: u16, body: &[u8]) -> Failure {
        failure::from_status(status, body)
    }
}

/// Compatible servers have words of their own; what they do not say here is an end like any other.
fn end(reason: Option<&str>) -> Result<TurnEnd, Failure> {
    match reason {
        Some("length" | "model_length") => Ok(TurnEnd::OutOfTokens),
        Some("content_filter") => Ok(TurnEnd::Withheld),
        Some("error") => Err(Failure::broken_off("finish_reason", "error")),
        Some("insufficient_system_resource") => Err(Failure {
            kind: FailureKind::Overloaded,
            ..Failure::broken_off("finish_reason", "insufficient_system_resource")
        }),
        _ => Ok(TurnEnd::Finished),
    }
}

/// How both of OpenAI's APIs take the key.
pub(super) fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}")))
        .into_iter()
        .collect()
}

/// A function as both of OpenAI's APIs describe it.
pub(super) fn function(name: &str, tool: &OfferedTool) -> Value {
    let mut function = json!({"name": name});
    if let Some(description) = tool.tool.description() {
        function["description"] = description.into();
    }
    function["parameters"] = conversation::schema(tool);
    function
}

/// The text of a message: its content, as text or in parts, or else its words of refusal.
fn said(message: &Map<String, Value>) -> String {
    let content = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        _ => String::new(),
    };
    match message.get("refusal").and_then(Value::as_str) {
        Some(refusal) if content.is_empty() => refusal.to_owned(),
        _ => content,
    }
}

fn called(call: &Value, names: &Names<'_>) -> Result<ModelCall, Failure> {
    let function = call.get("function");
    let Some(name) = function.and_then(|function| function.get("name")?.as_str()) else {
        return Err(Failure::malformed(format!(
            "a tool call without a name: {call}"
        )));
    };
    let args = match function.and_then(|function| function.get("arguments")) {
        Some(Value::String(text)) => conversation::arguments(text),
        // Some servers send the object itself.
        Some(Value::Null) | None => json!({}),
        Some(other) => other.clone(),
    };
    Ok(ModelCall {
        id: conversation::own_id(call, "id"),
        wire_name: names.back(name),
        args: Some(args),
        caller: conversation::caller(call),
    })
}

fn usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, &["prompt_tokens"])?;
    let mut output = count(usage, &["completion_tokens"])?;
    let reasoning = count(usage, &["completion_tokens_details", "reasoning_tokens"]);
    // Some providers leave the reasoning out of `completion_tokens`; the total tells.
    let with_reasoning = output.saturating_add(reasoning.unwrap_or(0));
    if count(usage, &["total_tokens"]) == Some(input.saturating_add(with_reasoning)) {
        output = with_reasoning;
    }
    conversation::counted(Usage {
        input,
        output,
        cached_input: count(usage, &["prompt_tokens_details", "cached_tokens"])
            .or_else(|| count(usage, &["prompt_cache_hit_tokens"])),
        reasoning,
    })
}

fn write(message: &Message, place: usize, names: &Names<'_>, out: &mut Vec<Value>) {
    match message {
        Message::User(text) => out.push(json!({"role": "user", "content": text})),
        Message::Assistant(turn) => {
            out.push(match turn.native.as_ref().and_then(Value::as_object) {
                Some(native) => sent_back(native, turn, place, names),
                None => built(turn, place, names),
            })
        }
        Message::Results(results) => {
            out.extend(results.iter().enumerate().map(|(at, (call, reply))| {
                json!({
                    "role": "tool",
                    "tool_call_id": conversation::call_id(call, place.saturating_sub(1), at),
                    "content": results::text_that_tells_errors(reply),
                })
            }))
        }
    }
}

/// The provider's own message, unchanged but for what it would not take back: fields without a
/// value (strict servers refuse those that only answers have), arguments that are no object, names
/// out of its alphabet.
fn sent_back(
    native: &Map<String, Value>,
    turn: &AssistantTurn,
    place: usize,
    names: &Names<'_>,
) -> Value {
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let mut message: Map<String, Value> = native.clone();
    message.retain(|key, value| key == "content" || !empty(value));
    message.insert("role".to_owned(), "assistant".into());
    message.entry("content").or_insert(Value::Null);
    let calls = message
        .get_mut("tool_calls")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    for (at, (block, call)) in calls.zip(&turn.calls).enumerate() {
        let mut function = block
            .get("function")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let written = |key: &str| function.get(key).and_then(Value::as_str);
        let arguments = conversation::arguments_text(written("arguments"), call.args.as_ref());
        let name = written("name")
            .filter(|name| names.fits(name))
            .map(str::to_owned);
        let name = name.unwrap_or_else(|| names.out(&call.wire_name).into_owned());
        let mut whole = block.as_object().cloned().unwrap_or_default();
        function.insert("name".to_owned(), name.into());
        function.insert("arguments".to_owned(), arguments.into());
        whole.insert(
            "id".to_owned(),
            conversation::call_id(call, place, at).into(),
        );
        whole.insert("type".to_owned(), "function".into());
        whole.insert("function".to_owned(), function.into());
        *block = whole.into();
    }
    if message.get("content").is_none_or(Value::is_null) && !message.contains_key("tool_calls") {
        message.insert("content".to_owned(), turn.text.as_str().into());
    }
    message.into()
}

fn built(turn: &AssistantTurn, place: usize, names: &Names<'_>) -> Value {
    let mut message = json!({"role": "assistant", "content": turn.text});
    if !turn.calls.is_empty() {
        if turn.text.is_empty() {
            message["content"] = Value::Null;
        }
        let calls = turn.calls.iter().enumerate().map(|(at, call)| {
            json!({
                "id": conversation::call_id(call, place, at),
                "type": "function",
                "function": {
                    "name": names.out(&call.wire_name),
                    "arguments": conversation::arguments_text(None, call.args.as_ref()),
                },
            })
        });
        message["tool_calls"] = calls.collect();
    }
    message
}
