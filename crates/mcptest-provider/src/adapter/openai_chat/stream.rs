//! The chunks of a streamed completion.

use serde_json::{Map, Value, json};

use super::super::api_error::ApiError;
use super::super::stream::{self, EventReader, MAX_ITEMS};
use super::super::traits::Assembler;

/// The completion so far.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    events: EventReader,
    /// `id`, `model`, `usage`, …: the latest values.
    answer: Map<String, Value>,
    message: Map<String, Value>,
    calls: Vec<Call>,
    finish_reason: Option<Value>,
    done: bool,
    any: bool,
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    call: Map<String, Value>,
    function: Map<String, Value>,
}

impl Chunks {
    fn choice(&mut self, choice: &Value) -> Result<(), ApiError> {
        // Only one choice is requested.
        if choice.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
            return Ok(());
        }
        self.any = true;
        if let Some(reason) = choice
            .get("finish_reason")
            .filter(|reason| !reason.is_null())
        {
            self.finish_reason = Some(reason.clone());
        }
        for (key, value) in choice
            .get("delta")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            match (key.as_str(), value) {
                ("tool_calls", Value::Array(deltas)) => {
                    for delta in deltas {
                        self.call(delta)?;
                    }
                }
                ("role", role) => {
                    self.message.insert("role".to_owned(), role.clone());
                }
                // Content, refusal, and the reasoning of compatible servers.
                (_, Value::String(more)) => stream::append(&mut self.message, key, more),
                (_, Value::Array(more)) => match self.message.get_mut(key) {
                    Some(Value::Array(items)) => items.extend(more.iter().cloned()),
                    _ => {
                        self.message.insert(key.clone(), value.clone());
                    }
                },
                (_, Value::Null) => {
                    self.message.entry(key.clone()).or_insert(Value::Null);
                }
                (_, other) => {
                    self.message.insert(key.clone(), other.clone());
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, delta: &Value) -> Result<(), ApiError> {
        let Some(delta) = delta.as_object() else {
            return Err(ApiError::malformed(format!(
                "a fragment of a tool call that is not an object: {delta}"
            )));
        };
        let index = match delta.get("index") {
            None | Some(Value::Null) => None,
            Some(index) => Some(index.as_u64().ok_or_else(|| {
                ApiError::malformed(format!(
                    "a fragment of a tool call whose index is not a number: {index}"
                ))
            })?),
        };
        let place = match self.continued(index, delta) {
            Some(place) => place,
            None => {
                if self.calls.len() >= MAX_ITEMS {
                    return Err(ApiError::malformed(format!(
                        "more than {MAX_ITEMS} tool calls in one answer"
                    )));
                }
                self.calls.push(Call {
                    index,
                    call: Map::new(),
                    function: Map::new(),
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[place];
        for (key, value) in delta
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "index" | "function"))
        {
            if !value.is_null() && value.as_str() != Some("") {
                call.call.insert(key.clone(), value.clone());
            }
        }
        for (key, value) in delta
            .get("function")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            match (key.as_str(), value) {
                // Some servers send a complete object.
                ("arguments", Value::String(more)) => stream::append(&mut call.function, key, more),
                (_, Value::Null) => {}
                ("name", Value::String(name)) if name.is_empty() => {}
                (_, other) => {
                    call.function.insert(key.clone(), other.clone());
                }
            }
        }
        Ok(())
    }

    /// Returns the call that a fragment continues, or none if it starts a call. The index decides;
    /// some servers send none, or 0 for every call: then a new id starts a call.
    fn continued(&self, index: Option<u64>, delta: &Map<String, Value>) -> Option<usize> {
        let id = delta
            .get("id")
            .and_then(Value::as_str)
            .filter(|id| !id.is_empty());
        let place = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => {
                let starts_call = id.is_none()
                    && delta
                        .get("function")
                        .is_some_and(|function| function.get("name").is_some());
                self.calls.len().checked_sub(1).filter(|_| !starts_call)?
            }
        };
        let known = self.calls[place].call.get("id").and_then(Value::as_str);
        match (id, known) {
            (Some(new), Some(known)) if new != known => None,
            _ => Some(place),
        }
    }
}

impl Assembler for Chunks {
    fn event(&mut self, _name: Option<&str>, data: &str) -> Result<(), ApiError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk = self.events.chunk(data)?;
        for (key, value) in chunk
            .iter()
            .filter(|(key, value)| *key != "choices" && !value.is_null())
        {
            self.answer.insert(key.clone(), value.clone());
        }
        for choice in chunk
            .get("choices")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.choice(choice)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Value, ApiError> {
        // Some compatible servers send only one of the two end markers.
        if !self.any || (self.finish_reason.is_none() && !self.done) {
            return Err(ApiError::truncated("a `finish_reason`"));
        }
        self.message.entry("content").or_insert(Value::Null);
        if !self.calls.is_empty() {
            self.calls.sort_by_key(|call| call.index);
            let calls = self.calls.into_iter().map(|mut call| {
                call.call
                    .insert("function".to_owned(), call.function.into());
                Value::Object(call.call)
            });
            self.message
                .insert("tool_calls".to_owned(), calls.collect());
        }
        self.answer
            .insert("object".to_owned(), "chat.completion".into());
        self.answer.insert(
            "choices".to_owned(),
            json!([{"index": 0, "message": self.message, "finish_reason": self.finish_reason}]),
        );
        Ok(self.answer.into())
    }
}
