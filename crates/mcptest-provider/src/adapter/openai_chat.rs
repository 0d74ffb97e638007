//! Chat Completions: OpenAI's older API, which compatible servers share.

mod stream;
#[cfg(test)]
mod tests;

use mcptest_agent::{AssistantTurn, Message, ModelCall, OfferedTool, TurnEnd, Usage};
use serde_json::{Map, Value, json};

use super::api_error::{self, ApiError, ApiErrorKind};
use super::conversation::{self, count};
use super::names::{NameRule, ToolNames};
use super::results;
use super::traits::{Adapter, Assembler, ProviderRequest};

pub(super) const NAMES: NameRule = NameRule {
    max_length: 64,
    extra_characters: &['-'],
    starts_with_letter: false,
};

/// The adapter of Chat Completions.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiChat {
    /// The name of the limit of output tokens.
    max_tokens_key: &'static str,
}

impl OpenAiChat {
    /// Returns the adapter for openai.com, whose reasoning models reject `max_tokens`.
    #[must_use]
    pub fn openai() -> Self {
        Self {
            max_tokens_key: "max_completion_tokens",
        }
    }

    /// Returns the adapter for compatible servers: many do not support `max_completion_tokens`.
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            max_tokens_key: "max_tokens",
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

    fn body(&self, request: &ProviderRequest<'_>) -> Value {
        let turn = request.turn;
        let names = ToolNames::new(NAMES, turn.tools);
        let mut messages = Vec::new();
        if let Some(system) = turn.system.filter(|system| !system.trim().is_empty()) {
            messages.push(json!({"role": "system", "content": system}));
        }
        for (index, message) in turn.messages.iter().enumerate() {
            write(message, index, &names, &mut messages);
        }
        let mut body =
            json!({"model": request.model, "messages": messages, "stream": request.stream});
        if request.stream {
            // Without it, a streamed answer has no usage.
            body["stream_options"] = json!({"include_usage": true});
        }
        if let Some(most) = turn.max_tokens {
            body[self.max_tokens_key] = most.into();
        }
        if !turn.tools.is_empty() {
            let tools = names.tools();
            body["tools"] = tools
                .map(|(name, tool)| json!({"type": "function", "function": function(name, tool)}))
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
        let choice = answer.get("choices").and_then(|choices| choices.get(0));
        if let Some(error) = choice.and_then(api_error::inside) {
            return Err(error);
        }
        let Some(message) = choice.and_then(|choice| choice.get("message")?.as_object()) else {
            return Err(ApiError::malformed(format!(
                "an answer without `choices[0].message`: {answer}"
            )));
        };
        let reason = choice.and_then(|choice| conversation::non_empty(choice, "finish_reason"));
        let end = end(reason.as_deref())?;
        let names = ToolNames::new(NAMES, request.turn.tools);
        let calls = message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        Ok(AssistantTurn {
            text: text(message),
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
}

/// Maps `finish_reason`. Compatible servers have others, which count as finished.
fn end(reason: Option<&str>) -> Result<TurnEnd, ApiError> {
    match reason {
        Some("length" | "model_length") => Ok(TurnEnd::OutOfTokens),
        Some("content_filter") => Ok(TurnEnd::Withheld),
        Some("error") => Err(ApiError::aborted("finish_reason", "error")),
        Some("insufficient_system_resource") => Err(ApiError {
            kind: ApiErrorKind::Overloaded,
            ..ApiError::aborted("finish_reason", "insufficient_system_resource")
        }),
        _ => Ok(TurnEnd::Finished),
    }
}

/// Returns the header with the key, for both of OpenAI's APIs.
pub(super) fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}")))
        .into_iter()
        .collect()
}

/// Returns the description of a function, for both of OpenAI's APIs.
pub(super) fn function(name: &str, tool: &OfferedTool) -> Value {
    let mut function = json!({"name": name});
    if let Some(description) = tool.tool.description() {
        function["description"] = description.into();
    }
    function["parameters"] = conversation::schema(tool);
    function
}

/// Returns the text of a message: its content, as string or parts, or else its refusal.
fn text(message: &Map<String, Value>) -> String {
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

fn called(call: &Value, names: &ToolNames<'_>) -> Result<ModelCall, ApiError> {
    let function = call.get("function");
    let Some(name) = function.and_then(|function| function.get("name")?.as_str()) else {
        return Err(ApiError::malformed(format!(
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
        id: conversation::non_empty(call, "id"),
        wire_name: names.own_name(name),
        args: Some(args),
        caller: conversation::caller(call),
    })
}

fn usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, &["prompt_tokens"])?;
    let mut output = count(usage, &["completion_tokens"])?;
    let reasoning = count(usage, &["completion_tokens_details", "reasoning_tokens"]);
    // Some providers omit reasoning from `completion_tokens`; the total shows it.
    let with_reasoning = output.saturating_add(reasoning.unwrap_or(0));
    if count(usage, &["total_tokens"]) == Some(input.saturating_add(with_reasoning)) {
        output = with_reasoning;
    }
    conversation::known_usage(Usage {
        input,
        output,
        cached_input: count(usage, &["prompt_tokens_details", "cached_tokens"])
            .or_else(|| count(usage, &["prompt_cache_hit_tokens"])),
        reasoning,
    })
}

fn write(message: &Message, index: usize, names: &ToolNames<'_>, out: &mut Vec<Value>) {
    match message {
        Message::User(text) => out.push(json!({"role": "user", "content": text})),
        Message::Assistant(turn) => {
            out.push(match turn.native.as_ref().and_then(Value::as_object) {
                Some(native) => sent_back(native, turn, index, names),
                None => built(turn, index, names),
            })
        }
        Message::Results(results) => {
            out.extend(results.iter().enumerate().map(|(position, (call, reply))| {
                json!({
                    "role": "tool",
                    "tool_call_id": conversation::call_id(call, index.saturating_sub(1), position),
                    "content": results::text_with_error_prefix(reply),
                })
            }))
        }
    }
}

/// Returns the provider's own message with only the changes that it requires: no empty fields
/// (strict servers reject those that only answers have), arguments as objects, valid names.
fn sent_back(
    native: &Map<String, Value>,
    turn: &AssistantTurn,
    index: usize,
    names: &ToolNames<'_>,
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
    for (position, (block, call)) in calls.zip(&turn.calls).enumerate() {
        let mut function = block
            .get("function")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let written = |key: &str| function.get(key).and_then(Value::as_str);
        let arguments = conversation::arguments_text(written("arguments"), call.args.as_ref());
        let name = written("name")
            .filter(|name| names.is_valid(name))
            .map(str::to_owned);
        let name = name.unwrap_or_else(|| names.sent_name(&call.wire_name).into_owned());
        let mut whole = block.as_object().cloned().unwrap_or_default();
        function.insert("name".to_owned(), name.into());
        function.insert("arguments".to_owned(), arguments.into());
        whole.insert(
            "id".to_owned(),
            conversation::call_id(call, index, position).into(),
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

fn built(turn: &AssistantTurn, index: usize, names: &ToolNames<'_>) -> Value {
    let mut message = json!({"role": "assistant", "content": turn.text});
    if !turn.calls.is_empty() {
        if turn.text.is_empty() {
            message["content"] = Value::Null;
        }
        let calls = turn.calls.iter().enumerate().map(|(position, call)| {
            json!({
                "id": conversation::call_id(call, index, position),
                "type": "function",
                "function": {
                    "name": names.sent_name(&call.wire_name),
                    "arguments": conversation::arguments_text(None, call.args.as_ref()),
                },
            })
        });
        message["tool_calls"] = calls.collect();
    }
    message
}
