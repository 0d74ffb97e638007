//! The chunks of a streamed answer: each is an answer with further parts.

use serde_json::{Map, Value};

use super::super::api_error::ApiError;
use super::super::stream::{self, EventReader, MAX_ITEMS};
use super::super::traits::Assembler;

/// The answer so far.
#[derive(Debug, Default)]
pub(super) struct Parts {
    events: EventReader,
    answer: Map<String, Value>,
    candidate: Option<Map<String, Value>>,
    /// The content, once a chunk has any.
    content: Option<Map<String, Value>>,
    parts: Vec<Value>,
}

impl Parts {
    fn candidate(&mut self, newer: &Value) -> Result<(), ApiError> {
        // Only one candidate is requested.
        if newer.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
            return Ok(());
        }
        let candidate = self.candidate.get_or_insert_default();
        stream::overlay(candidate, newer);
        let Some(content) = newer.get("content").filter(|content| !content.is_null()) else {
            return Ok(());
        };
        stream::overlay(self.content.get_or_insert_default(), content);
        for part in content
            .get("parts")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.add(part)?;
        }
        Ok(())
    }

    fn add(&mut self, part: &Value) -> Result<(), ApiError> {
        if let (Some(last), Some(more)) = (self.parts.last_mut(), plain_text(part))
            && plain_text(last).is_some()
            && last.get("thought") == part.get("thought")
        {
            if let Some(last) = last.as_object_mut() {
                stream::append(last, "text", more);
            }
            return Ok(());
        }
        if self.parts.len() >= MAX_ITEMS {
            return Err(ApiError::malformed(format!(
                "more than {MAX_ITEMS} parts in one answer"
            )));
        }
        self.parts.push(part.clone());
        Ok(())
    }
}

/// Returns the text of a part without other fields. A part with a signature stays separate.
fn plain_text(part: &Value) -> Option<&str> {
    let alone = part
        .as_object()?
        .keys()
        .all(|key| matches!(key.as_str(), "text" | "thought"));
    part.get("text")?.as_str().filter(|_| alone)
}

impl Assembler for Parts {
    fn event(&mut self, _name: Option<&str>, data: &str) -> Result<(), ApiError> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let chunk = self.events.chunk(data)?;
        for (key, value) in chunk
            .iter()
            .filter(|(key, value)| *key != "candidates" && !value.is_null())
        {
            match (self.answer.get_mut(key), value) {
                // Counts are running totals, and some chunks omit some of them.
                (Some(Value::Object(known)), newer @ Value::Object(_)) => {
                    stream::overlay(known, newer)
                }
                _ => {
                    self.answer.insert(key.clone(), value.clone());
                }
            }
        }
        for candidate in chunk
            .get("candidates")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.candidate(candidate)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Value, ApiError> {
        match self.candidate {
            Some(mut candidate)
                if candidate
                    .get("finishReason")
                    .is_some_and(|reason| !reason.is_null()) =>
            {
                if let Some(mut content) = self.content {
                    content.insert("parts".to_owned(), self.parts.into());
                    candidate.insert("content".to_owned(), content.into());
                }
                self.answer
                    .insert("candidates".to_owned(), vec![Value::from(candidate)].into());
                Ok(self.answer.into())
            }
            None if self.answer.contains_key("promptFeedback") => Ok(self.answer.into()),
            _ => Err(ApiError::truncated("a `finishReason`")),
        }
    }
}
