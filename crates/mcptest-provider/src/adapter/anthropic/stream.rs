//! The events of a streamed message.

use serde_json::{Map, Value};

use super::super::api_error::{self, ApiError};
use super::super::conversation;
use super::super::stream::{self, EventReader};
use super::super::traits::Assembler;

/// The message so far.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    events: EventReader,
    message: Option<Map<String, Value>>,
    blocks: Vec<Block>,
    stopped: bool,
}

#[derive(Debug)]
struct Block {
    content: Map<String, Value>,
    /// The input of a call, which comes as fragments of JSON.
    input: String,
    open: bool,
}

impl Block {
    fn close(&mut self) {
        self.open = false;
        // Without fragments, the input at the start of the block stays.
        if !self.input.trim().is_empty() {
            let input = conversation::arguments(&self.input);
            self.content.insert("input".to_owned(), input);
        }
        self.input.clear();
    }

    fn grow(&mut self, delta: &Value) {
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        match delta.get("type").and_then(Value::as_str) {
            Some("text_delta") => stream::append(&mut self.content, "text", text("text")),
            Some("thinking_delta") => {
                stream::append(&mut self.content, "thinking", text("thinking"))
            }
            Some("input_json_delta") => self.input.push_str(text("partial_json")),
            Some("signature_delta") => {
                self.content
                    .insert("signature".to_owned(), text("signature").into());
            }
            Some("citations_delta") => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                match self.content.get_mut("citations") {
                    Some(Value::Array(citations)) => citations.push(citation),
                    _ => {
                        self.content
                            .insert("citations".to_owned(), vec![citation].into());
                    }
                }
            }
            // An unknown kind of block: strings are appended, other values replaced.
            _ => {
                for (key, value) in delta
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(key, _)| *key != "type")
                {
                    match value {
                        Value::String(more) => stream::append(&mut self.content, key, more),
                        other => {
                            self.content.insert(key.clone(), other.clone());
                        }
                    }
                }
            }
        }
    }
}

impl Blocks {
    fn start(&mut self, event: &Value) -> Result<(), ApiError> {
        if self.message.is_some() {
            return Err(ApiError::malformed("the stream starts a second message"));
        }
        let Some(message) = event.get("message").and_then(Value::as_object) else {
            return Err(ApiError::malformed(format!(
                "a `message_start` without a message: {event}"
            )));
        };
        self.message = Some(message.clone());
        Ok(())
    }

    fn begin_block(&mut self, event: &Value) -> Result<(), ApiError> {
        let index = stream::index(event, "index")?;
        let content = event.get("content_block").and_then(Value::as_object);
        match content {
            Some(content) if self.message.is_some() && index == self.blocks.len() => {
                self.blocks.push(Block {
                    content: content.clone(),
                    input: String::new(),
                    open: true,
                });
                Ok(())
            }
            _ => Err(ApiError::malformed(format!(
                "a content block out of place, after {} others: {event}",
                self.blocks.len()
            ))),
        }
    }

    fn open_block(&mut self, event: &Value) -> Result<&mut Block, ApiError> {
        let index = stream::index(event, "index")?;
        self.blocks
            .get_mut(index)
            .filter(|block| block.open)
            .ok_or_else(|| {
                ApiError::malformed(format!(
                    "an event for content block {index}, which is not open"
                ))
            })
    }

    fn end(&mut self, event: &Value) -> Result<(), ApiError> {
        let Some(message) = &mut self.message else {
            return Err(ApiError::malformed("a `message_delta` before any message"));
        };
        if let Some(delta) = event.get("delta") {
            stream::overlay(message, delta);
        }
        if let Some(newer) = event.get("usage").filter(|usage| usage.is_object()) {
            // Counts are running totals, and some events omit some of them.
            match message.get_mut("usage") {
                Some(Value::Object(usage)) => stream::overlay(usage, newer),
                _ => {
                    message.insert("usage".to_owned(), newer.clone());
                }
            }
        }
        Ok(())
    }
}

impl Assembler for Blocks {
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<(), ApiError> {
        let event = self.events.read(data)?;
        match event.get("type").and_then(Value::as_str).or(name) {
            Some("error") => return Err(api_error::from_body(None, &event)),
            Some("message_start") => self.start(&event)?,
            Some("content_block_start") => self.begin_block(&event)?,
            Some("content_block_delta") => {
                let block = self.open_block(&event)?;
                block.grow(event.get("delta").unwrap_or(&Value::Null));
            }
            Some("content_block_stop") => self.open_block(&event)?.close(),
            Some("message_delta") => self.end(&event)?,
            Some("message_stop") => self.stopped = true,
            // `ping` and future events: the documentation requires clients to ignore them.
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Value, ApiError> {
        let Some(mut message) = self.message.take().filter(|_| self.stopped) else {
            return Err(ApiError::truncated("`message_stop`"));
        };
        for block in self.blocks.iter_mut().filter(|block| block.open) {
            block.close();
        }
        let content: Vec<Value> = self
            .blocks
            .into_iter()
            .map(|block| block.content.into())
            .collect();
        // A message that starts with content has no blocks.
        if !content.is_empty() || !message.contains_key("content") {
            message.insert("content".to_owned(), content.into());
        }
        Ok(message.into())
    }
}
