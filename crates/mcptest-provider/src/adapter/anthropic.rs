//! The Messages API of Anthropic.

mod stream;
#[cfg(test)]
mod tests;

use mcptest_agent::{AssistantTurn, Message, ModelCall, ToolReply, TurnEnd, Usage};
use serde_json::{Map, Value, json};

use super::conversation::{self, Said};
use super::names::{NameRule, Names};
use super::results::{self, Piece};
use super::{Adapter, Ask, Assembler, Failure, failure};

const VERSION: &str = "2023-06-01";

/// The API wants a bound in every request.
const DEFAULT_MAX_TOKENS: u32 = 4096;

const NAMES: NameRule = NameRule {
    most: 128,
    also: &['-'],
    begins_with_letter: false,
};

/// The image types that the API takes.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The dialect of Anthropic's Messages API.
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

    fn body(&self, ask: &Ask<'_>) -> Value {
        let request = ask.request;
        let names = Names::new(NAMES, request.tools);
        let messages: Vec<Value> = request
            .messages
            .iter()
            .enumerate()
            .filter_map(|(place, message)| written(message, place, &names))
            .collect();
        let mut body = json!({
            "model": ask.model,
            "max_tokens": request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            "stream": ask.stream,
        });
        if let Some(system) = request.system.filter(|system| !system.trim().is_empty()) {
            body["system"] = system.into();
        }
        body["messages"] = messages.into();
        if !request.tools.is_empty() {
            body["tools"] = names
                .tools()
                .map(|(name, tool)| offered(name, tool))
                .collect();
        }
        if let Some(container) = container(request.messages) {
            body["container"] = container.into();
        }
        conversation::body(ask, body)
    }

    fn turn(&self, ask: &Ask<'_>, answer: &Value) -> Result<AssistantTurn, Failure> {
        if let Some(failure) = failure::inside(answer) {
            return Err(failure);
        }
        let Some(blocks) = answer.get("content").and_then(Value::as_array) else {
            return Err(Failure::malformed(format!(
                "an answer without `content`: {answer}"
            )));
        };
        let names = Names::new(NAMES, ask.request.tools);
        let mut said = Said::default();
        let mut calls = Vec::new();
        for block in blocks {
            match block.get("type").and_then(Value::as_str) {
                Some("text") => said.say(
                    block
                        .get("text")
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                ),
                Some("tool_use") => {
                    said.interrupt();
                    calls.push(called(block, &names)?);
                }
                _ => said.interrupt(),
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
            text: said.into_text(),
            calls,
            usage: answer.get("usage").and_then(usage),
            end: end(answer),
            stop_reason: conversation::own_id(answer, "stop_reason"),
            native: Some(native.into()),
        })
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(stream::Blocks::default())
    }

    fn failure(&self, status: u16, body: &[u8]) -> Failure {
        failure::from_status(status, body)
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

fn called(block: &Value, names: &Names<'_>) -> Result<ModelCall, Failure> {
    let Some(name) = block.get("name").and_then(Value::as_str) else {
        return Err(Failure::malformed(format!(
            "a `tool_use` without a name: {block}"
        )));
    };
    Ok(ModelCall {
        id: conversation::own_id(block, "id"),
        wire_name: names.back(name),
        args: Some(block.get("input").cloned().unwrap_or_else(|| json!({}))),
        caller: conversation::caller(block),
    })
}

/// Tokens that were written to the cache, or read from it, were read all the same.
fn usage(usage: &Value) -> Option<Usage> {
    let read = |key: &str| conversation::count(usage, &[key]);
    let cached = read("cache_read_input_tokens");
    let created = read("cache_creation_input_tokens").unwrap_or(0);
    conversation::counted(Usage {
        input: read("input_tokens")?
            .saturating_add(cached.unwrap_or(0))
            .saturating_add(created),
        output: read("output_tokens")?,
        cached_input: cached,
        reasoning: conversation::count(usage, &["output_tokens_details", "thinking_tokens"]),
    })
}

/// A message in the dialect; none for a turn in which nothing was said, which the API refuses.
fn written(message: &Message, place: usize, names: &Names<'_>) -> Option<Value> {
    match message {
        Message::User(text) => Some(json!({"role": "user", "content": text})),
        Message::Assistant(turn) => {
            let blocks = match turn
                .native
                .as_ref()
                .and_then(|native| native.get("content")?.as_array())
            {
                Some(blocks) => sent_back(blocks, turn, place, names),
                None => built(turn, place, names),
            };
            (!blocks.is_empty()).then(|| json!({"role": "assistant", "content": blocks}))
        }
        // The results of one turn go in one message, or the model learns not to make several calls
        // at once.
        Message::Results(results) => {
            let blocks = results.iter().enumerate();
            let blocks: Vec<Value> = blocks
                .map(|(at, (call, reply))| {
                    result(
                        &conversation::call_id(call, place.saturating_sub(1), at),
                        reply,
                    )
                })
                .collect();
            (!blocks.is_empty()).then(|| json!({"role": "user", "content": blocks}))
        }
    }
}

/// The provider's own blocks, unchanged but for what it would not take back: empty texts, input
/// that is no object, names out of its alphabet.
fn sent_back(
    blocks: &[Value],
    turn: &AssistantTurn,
    place: usize,
    names: &Names<'_>,
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
            && let Some((at, call)) = calls.next()
        {
            if !block.get("input").is_some_and(Value::is_object) {
                block["input"] = conversation::object(call.args.as_ref());
            }
            if !block
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| names.fits(name))
            {
                block["name"] = names.out(&call.wire_name).into();
            }
            block["id"] = conversation::call_id(call, place, at).into();
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

fn built(turn: &AssistantTurn, place: usize, names: &Names<'_>) -> Vec<Value> {
    let text = (!turn.text.trim().is_empty()).then(|| json!({"type": "text", "text": turn.text}));
    let calls = turn.calls.iter().enumerate().map(|(at, call)| {
        json!({
            "type": "tool_use",
            "id": conversation::call_id(call, place, at),
            "name": names.out(&call.wire_name),
            "input": conversation::object(call.args.as_ref()),
        })
    });
    text.into_iter().chain(calls).collect()
}

/// An error must say something, and only in text.
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
    let pieces = results::pieces(reply);
    let content: Vec<Value> = pieces.iter().map(block).collect();
    if !content.is_empty() {
        result["content"] = content.into();
    }
    result
}

fn block(piece: &Piece<'_>) -> Value {
    match piece {
        Piece::Image { mime, data } if IMAGES.contains(mime) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}})
        }
        piece => json!({"type": "text", "text": piece.in_words()}),
    }
}

/// The container in which the model's code runs: the next request must name it, or the code that
/// waits for a result is gone.
fn container(messages: &[Message]) -> Option<String> {
    messages.iter().rev().find_map(|message| match message {
        Message::Assistant(turn) => {
            conversation::own_id(turn.native.as_ref()?.get("container")?, "id")
        }
        _ => None,
    })
}
