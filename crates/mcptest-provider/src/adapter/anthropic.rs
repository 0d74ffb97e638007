//! The Messages API of Anthropic.

mod stream;
#[cfg(test)]
mod tests;

use mcptest_agent::{AssistantTurn, Message, ModelCall, ToolReply, TurnEnd, Usage};
use serde_json::{Map, Value, json};

use super::api_error::{self, ApiError};
use super::conversation::{self, TextBlocks};
use super::names::{NameRule, ToolNames};
use super::results::{self, ContentPart};
use super::traits::{Adapter, Assembler, ProviderRequest};

const VERSION: &str = "2023-06-01";

/// The API requires `max_tokens` in every request.
const DEFAULT_MAX_TOKENS: u32 = 4096;

const NAMES: NameRule = NameRule {
    max_length: 128,
    extra_characters: &['-'],
    starts_with_letter: false,
};

/// The image types that the API accepts.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The adapter of Anthropic's Messages API.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anthropic;

impl Adapter for Anthropic {
    fn path(&self, _model: &str, _stream: bool) -> String {
        "/v1/messages".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
        headers
    }

    fn body(&self, request: &ProviderRequest<'_>) -> Value {
        let turn = request.turn;
        let names = ToolNames::new(NAMES, turn.tools);
        let messages: Vec<Value> = turn
            .messages
            .iter()
            .enumerate()
            .filter_map(|(index, message)| written(message, index, &names))
            .collect();
        let mut body = json!({
            "model": request.model,
            "max_tokens": turn.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            "stream": request.stream,
        });
        if let Some(system) = turn.system.filter(|system| !system.trim().is_empty()) {
            body["system"] = system.into();
        }
        body["messages"] = messages.into();
        if !turn.tools.is_empty() {
            body["tools"] = names
                .tools()
                .map(|(name, tool)| offered(name, tool))
                .collect();
        }
        if let Some(container) = container(turn.messages) {
            body["container"] = container.into();
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
        let Some(blocks) = answer.get("content").and_then(Value::as_array) else {
            return Err(ApiError::malformed(format!(
                "an answer without `content`: {answer}"
            )));
        };
        let names = ToolNames::new(NAMES, request.turn.tools);
        let mut text = TextBlocks::default();
        let mut calls = Vec::new();
        for block in blocks {
            match block.get("type").and_then(Value::as_str) {
                Some("text") => text.push(
                    block
                        .get("text")
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                ),
                Some("tool_use") => {
                    text.separate();
                    calls.push(called(block, &names)?);
                }
                _ => text.separate(),
            }
        }
        let mut native = Map::from_iter([("content".to_owned(), answer["content"].clone())]);
        if let Some(container) = answer
            .get("container")
            .filter(|container| !container.is_null())
        {
            native.insert("container".to_owned(), container.clone());
        }
        Ok(AssistantTurn {
            text: text.into_text(),
            calls,
            usage: answer.get("usage").and_then(usage),
            end: end(answer),
            stop_reason: conversation::non_empty(answer, "stop_reason"),
            native: Some(native.into()),
        })
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(stream::Blocks::default())
    }
}

fn end(answer: &Value) -> TurnEnd {
    match answer.get("stop_reason").and_then(Value::as_str) {
        Some("pause_turn") => TurnEnd::Paused,
        Some("max_tokens" | "model_context_window_exceeded") => TurnEnd::OutOfTokens,
        Some("refusal") => TurnEnd::Withheld,
        _ => TurnEnd::Finished,
    }
}

fn offered(name: &str, tool: &mcptest_agent::OfferedTool) -> Value {
    let mut offered = json!({"name": name});
    if let Some(description) = tool
        .tool
        .description()
        .filter(|text| !text.trim().is_empty())
    {
        offered["description"] = description.into();
    }
    offered["input_schema"] = conversation::schema(tool);
    offered
}

fn called(block: &Value, names: &ToolNames<'_>) -> Result<ModelCall, ApiError> {
    let Some(name) = block.get("name").and_then(Value::as_str) else {
        return Err(ApiError::malformed(format!(
            "a `tool_use` without a name: {block}"
        )));
    };
    Ok(ModelCall {
        id: conversation::non_empty(block, "id"),
        wire_name: names.own_name(name),
        args: Some(block.get("input").cloned().unwrap_or_else(|| json!({}))),
        caller: conversation::caller(block),
    })
}

/// Reads the usage. Tokens that were written to the cache or read from it are input tokens too.
fn usage(usage: &Value) -> Option<Usage> {
    let read = |key: &str| conversation::count(usage, &[key]);
    let cached = read("cache_read_input_tokens");
    let created = read("cache_creation_input_tokens").unwrap_or(0);
    conversation::known_usage(Usage {
        input: read("input_tokens")?
            .saturating_add(cached.unwrap_or(0))
            .saturating_add(created),
        output: read("output_tokens")?,
        cached_input: cached,
        reasoning: conversation::count(usage, &["output_tokens_details", "thinking_tokens"]),
    })
}

/// Converts a message. An empty turn gives none: the API rejects it.
fn written(message: &Message, index: usize, names: &ToolNames<'_>) -> Option<Value> {
    match message {
        Message::User(text) => Some(json!({"role": "user", "content": text})),
        Message::Assistant(turn) => {
            let blocks = match turn
                .native
                .as_ref()
                .and_then(|native| native.get("content")?.as_array())
            {
                Some(blocks) => sent_back(blocks, turn, index, names),
                None => built(turn, index, names),
            };
            (!blocks.is_empty()).then(|| json!({"role": "assistant", "content": blocks}))
        }
        // All results of a turn are one message. Separate messages would teach the model not to
        // make several calls in one turn.
        Message::Results(results) => {
            let blocks = results.iter().enumerate();
            let blocks: Vec<Value> = blocks
                .map(|(position, (call, reply))| {
                    result(
                        &conversation::call_id(call, index.saturating_sub(1), position),
                        reply,
                    )
                })
                .collect();
            (!blocks.is_empty()).then(|| json!({"role": "user", "content": blocks}))
        }
    }
}

/// Returns the provider's own blocks with only the changes that it requires: no empty texts, input
/// as objects, valid names.
fn sent_back(
    blocks: &[Value],
    turn: &AssistantTurn,
    index: usize,
    names: &ToolNames<'_>,
) -> Vec<Value> {
    let mut calls = turn.calls.iter().enumerate();
    let mut kept = Vec::with_capacity(blocks.len());
    for block in blocks {
        let kind = block.get("type").and_then(Value::as_str);
        if kind == Some("text") && blank(block) {
            continue;
        }
        let mut block = block.clone();
        if kind == Some("tool_use")
            && let Some((position, call)) = calls.next()
        {
            if !block.get("input").is_some_and(Value::is_object) {
                block["input"] = conversation::object(call.args.as_ref());
            }
            if !block
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| names.is_valid(name))
            {
                block["name"] = names.sent_name(&call.wire_name).into();
            }
            block["id"] = conversation::call_id(call, index, position).into();
        }
        kept.push(block);
    }
    kept
}

fn blank(block: &Value) -> bool {
    block
        .get("text")
        .and_then(Value::as_str)
        .is_none_or(|text| text.trim().is_empty())
}

fn built(turn: &AssistantTurn, index: usize, names: &ToolNames<'_>) -> Vec<Value> {
    let text = (!turn.text.trim().is_empty()).then(|| json!({"type": "text", "text": turn.text}));
    let calls = turn.calls.iter().enumerate().map(|(position, call)| {
        json!({
            "type": "tool_use",
            "id": conversation::call_id(call, index, position),
            "name": names.sent_name(&call.wire_name),
            "input": conversation::object(call.args.as_ref()),
        })
    });
    text.into_iter().chain(calls).collect()
}

/// Converts a result. An error result must have text and nothing else.
fn result(id: &str, reply: &ToolReply) -> Value {
    let mut result = json!({"type": "tool_result", "tool_use_id": id});
    if reply.is_error {
        let text = results::text(reply);
        result["content"] = if text.is_empty() {
            "Error".into()
        } else {
            text.into()
        };
        result["is_error"] = true.into();
        return result;
    }
    let pieces = results::content_parts(reply);
    let content: Vec<Value> = pieces.iter().map(block).collect();
    if !content.is_empty() {
        result["content"] = content.into();
    }
    result
}

fn block(piece: &ContentPart<'_>) -> Value {
    match piece {
        ContentPart::Image { mime, data } if IMAGES.contains(mime) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}})
        }
        piece => json!({"type": "text", "text": piece.as_text()}),
    }
}

/// Returns the container of the model's code. The next request must name it, or the code that waits
/// for a result is lost.
fn container(messages: &[Message]) -> Option<String> {
    messages.iter().rev().find_map(|message| match message {
        Message::Assistant(turn) => {
            conversation::non_empty(turn.native.as_ref()?.get("container")?, "id")
        }
        _ => None,
    })
}
