//! The messages of a model's span.
//!
//! Messages have `role` and `parts`: `text` (`content`), `tool_call` (`id`, `name`, `arguments`)
//! and `tool_call_response` (`id`, `response`). Older spans have an attribute for each value
//! (`gen_ai.completion.0.tool_calls.0.name`): they are read into the same form.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::content::{id, string};
use crate::otlp::Span;

/// The messages that were sent to the model.
pub(super) fn input(span: &Span<'_>) -> Vec<Value> {
    messages(span, "gen_ai.input.messages", "gen_ai.prompt.")
}

/// The messages that the model answered with.
pub(super) fn output(span: &Span<'_>) -> Vec<Value> {
    messages(span, "gen_ai.output.messages", "gen_ai.completion.")
}

fn messages(span: &Span<'_>, key: &str, indexed: &str) -> Vec<Value> {
    match span.json(key) {
        Some(Value::Array(messages)) => messages,
        _ => from_attributes(span, indexed),
    }
}

/// The messages of one attribute per value.
fn from_attributes(span: &Span<'_>, prefix: &str) -> Vec<Value> {
    let mut messages: BTreeMap<u32, Map<String, Value>> = BTreeMap::new();
    let mut calls: BTreeMap<(u32, u32), Map<String, Value>> = BTreeMap::new();
    for (key, value) in &span.attributes {
        let Some((number, field)) = key.strip_prefix(prefix).and_then(indexed) else {
            continue;
        };
        match field.strip_prefix("tool_calls.").and_then(indexed) {
            Some((call, field)) => {
                let call = calls.entry((number, call)).or_default();
                call.insert(field.to_owned(), value.clone());
            }
            None => {
                let message = messages.entry(number).or_default();
                message.insert(field.to_owned(), value.clone());
            }
        }
    }
    for (number, _) in calls.keys() {
        messages.entry(*number).or_default();
    }
    messages
        .into_iter()
        .map(|(number, fields)| {
            let mut parts = Vec::new();
            let content = fields.get("content").filter(|content| !content.is_null());
            match (fields.get("tool_call_id"), content) {
                (Some(id), content) => parts.push(json!({
                    "type": "tool_call_response", "id": id, "response": content,
                })),
                (None, Some(content)) => parts.push(json!({"type": "text", "content": content})),
                (None, None) => {}
            }
            for (_, call) in calls.range((number, 0)..=(number, u32::MAX)) {
                parts.push(json!({
                    "type": "tool_call", "id": call.get("id"), "name": call.get("name"),
                    "arguments": call.get("arguments"),
                }));
            }
            json!({"role": fields.get("role"), "parts": parts})
        })
        .collect()
}

/// Splits `0.name`.
fn indexed(key: &str) -> Option<(u32, &str)> {
    let (number, field) = key.split_once('.')?;
    Some((number.parse().ok()?, field))
}

fn parts(message: &Value) -> &[Value] {
    let parts = message.get("parts").and_then(Value::as_array);
    parts.map_or(&[][..], Vec::as_slice)
}

/// The text of a message.
pub(super) fn text(message: &Value) -> Option<String> {
    let texts: Vec<&str> = parts(message)
        .iter()
        .filter(|part| string(part, "type") == Some("text"))
        .filter_map(|part| string(part, "content"))
        .filter(|text| !text.is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The text of a user's message.
pub(super) fn prompt(message: &Value) -> Option<String> {
    (string(message, "role") == Some("user")).then(|| text(message))?
}

/// The calls of a message.
pub(super) fn calls(message: &Value) -> impl Iterator<Item = &Value> {
    let parts = parts(message).iter();
    parts.filter(|part| string(part, "type") == Some("tool_call"))
}

/// The results of a message, each with the id of its call.
pub(super) fn responses(message: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    parts(message)
        .iter()
        .filter(|part| string(part, "type") == Some("tool_call_response"))
        .filter_map(|part| {
            let response = ["response", "result", "content"];
            let response = response.iter().find_map(|key| part.get(key))?;
            Some((id(part, "id")?, response))
        })
}
