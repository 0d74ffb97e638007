//! The events of a streamed response.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::api_error::{self, ApiError};
use super::super::stream::{self, EventReader};
use super::super::traits::Assembler;

/// The response so far.
///
/// The last event has the complete response. The fragments before it are still combined: they must
/// agree with it, and some servers leave its `output` empty.
#[derive(Debug, Default)]
pub(super) struct Items {
    events: EventReader,
    items: Vec<Item>,
    whole: Option<Map<String, Value>>,
}

#[derive(Debug, Default)]
struct Item {
    begun: Map<String, Value>,
    /// The item from its last event.
    done: Option<Value>,
    arguments: Option<String>,
    /// The texts by index of the part.
    texts: BTreeMap<usize, String>,
}

impl Item {
    /// Returns the item from its last event, or else from its fragments.
    fn into_value(self) -> Value {
        if let Some(done) = self.done {
            return done;
        }
        let mut item = self.begun;
        if let Some(arguments) = self.arguments {
            item.insert("arguments".to_owned(), arguments.into());
        }
        if !self.texts.is_empty() {
            let parts = self.texts.into_values();
            let parts: Vec<Value> = parts
                .map(|text| serde_json::json!({"type": "output_text", "text": text}))
                .collect();
            item.insert("content".to_owned(), parts.into());
        }
        item.into()
    }

    /// Returns true if the fragments equal the complete item.
    fn agrees(&self, whole: &Value) -> bool {
        let same =
            |fragment: &str, value: Option<&Value>| value.and_then(Value::as_str) == Some(fragment);
        let arguments = self.arguments.as_deref();
        arguments.is_none_or(|arguments| same(arguments, whole.get("arguments")))
            && self.texts.iter().all(|(part, text)| {
                let part = whole.get("content").and_then(|content| content.get(*part));
                same(text, part.and_then(|part| part.get("text")))
            })
    }
}

impl Items {
    fn begin(&mut self, event: &Value) -> Result<(), ApiError> {
        let index = stream::index(event, "output_index")?;
        match event.get("item").and_then(Value::as_object) {
            Some(item) if index == self.items.len() => {
                self.items.push(Item {
                    begun: item.clone(),
                    ..Item::default()
                });
                Ok(())
            }
            _ => Err(ApiError::malformed(format!(
                "an output item out of place, after {} others: {event}",
                self.items.len()
            ))),
        }
    }

    fn item(&mut self, event: &Value) -> Result<&mut Item, ApiError> {
        let index = stream::index(event, "output_index")?;
        self.items
            .get_mut(index)
            .filter(|item| item.done.is_none())
            .ok_or_else(|| {
                ApiError::malformed(format!(
                    "an event for output item {index}, which is not open"
                ))
            })
    }

    fn end(&mut self, event: &Value) -> Result<(), ApiError> {
        let Some(response) = event.get("response").and_then(Value::as_object) else {
            return Err(ApiError::malformed(format!(
                "an event without its response: {event}"
            )));
        };
        self.whole = Some(response.clone());
        Ok(())
    }
}

fn delta(event: &Value) -> &str {
    event
        .get("delta")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

impl Assembler for Items {
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<(), ApiError> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event = self.events.read(data)?;
        match event.get("type").and_then(Value::as_str).or(name) {
            Some("error") => return Err(api_error::from_body(None, &event)),
            Some("response.failed") => {
                let response = event.get("response").unwrap_or(&event);
                return Err(api_error::inside(response)
                    .unwrap_or_else(|| api_error::from_body(None, response)));
            }
            Some("response.output_item.added") => self.begin(&event)?,
            Some("response.output_item.done") => {
                let done = event.get("item").cloned();
                self.item(&event)?.done = done;
            }
            Some("response.function_call_arguments.delta") => {
                let item = self.item(&event)?;
                item.arguments
                    .get_or_insert_default()
                    .push_str(delta(&event));
            }
            Some("response.output_text.delta") => {
                let part = stream::index(&event, "content_index")?;
                let item = self.item(&event)?;
                item.texts.entry(part).or_default().push_str(delta(&event));
            }
            Some("response.completed" | "response.incomplete") => self.end(&event)?,
            // All other events repeat these, or are about tools that the provider runs itself.
            _ => match api_error::inside(&event) {
                Some(failure) if event.get("type").is_none() => return Err(failure),
                _ => {}
            },
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Value, ApiError> {
        let Some(mut whole) = self.whole else {
            return Err(ApiError::truncated("`response.completed`"));
        };
        match whole.get("output").and_then(Value::as_array) {
            Some(output) if !output.is_empty() => {
                let fragments = self.items.iter().zip(output);
                if self.items.len() > output.len()
                    || !fragments
                        .into_iter()
                        .all(|(item, whole)| item.agrees(whole))
                {
                    return Err(ApiError::malformed(
                        "the fragments of the stream do not match its last event",
                    ));
                }
            }
            _ => {
                let items: Vec<Value> = self.items.into_iter().map(Item::into_value).collect();
                whole.insert("output".to_owned(), items.into());
            }
        }
        Ok(whole.into())
    }
}
