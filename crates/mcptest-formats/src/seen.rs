//! The description of an input in error messages.

use serde_json::Value;

use crate::error::shown;
use crate::input::{Input, a_type};

/// The number of keys that a description lists.
const KEYS: usize = 12;

/// Describes an input by its top-level structure and keys.
pub(crate) fn describe(input: &Input<'_>) -> String {
    if let Some(bytes) = input.archive() {
        return format!("found a ZIP archive of {} bytes", bytes.len());
    }
    match input.documents() {
        [] => "found nothing".to_owned(),
        [one] => match &one.value {
            Value::Array(items) => format!(
                "found an array of {} elements, the first of them {}",
                items.len(),
                items.first().map_or_else(|| "missing".to_owned(), value)
            ),
            other => format!("found {}", value(other)),
        },
        [first, ..] => format!(
            "found {} JSON documents, the first of them {}",
            input.documents().len(),
            value(&first.value)
        ),
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "an object without keys".to_owned(),
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().take(KEYS).map(|key| shown(key)).collect();
            let more = if map.len() > KEYS { ", …" } else { "" };
            format!("an object with the keys `{}`{more}", keys.join("`, `"))
        }
        other => a_type(other),
    }
}
