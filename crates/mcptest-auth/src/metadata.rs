//! Fields of metadata documents, whose types are untrusted.

use mcptest_http::text::quote;
use serde_json::{Map, Value};

/// The number of entries of a list that are read.
const MAX_ENTRIES: usize = 1000;

/// The length of a string that is read.
const MAX_CHARS: usize = 8 * 1024;

/// A string field.
///
/// # Errors
/// The field is not a string.
pub(crate) fn string(object: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() > MAX_CHARS => {
            Err(format!("its `{key}` is longer than {MAX_CHARS} bytes"))
        }
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(not(key, "a string", other)),
    }
}

/// A field with a list of strings.
///
/// # Errors
/// The field is not a list of strings.
pub(crate) fn strings(
    object: &Map<String, Value>,
    key: &str,
) -> Result<Option<Vec<String>>, String> {
    let list = match object.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) if list.len() > MAX_ENTRIES => {
            return Err(format!("its `{key}` has more than {MAX_ENTRIES} entries"));
        }
        Some(Value::Array(list)) => list,
        Some(other) => return Err(not(key, "a list of strings", other)),
    };
    let strings = list.iter().map(|item| match item {
        Value::String(text) if text.len() <= MAX_CHARS => Ok(text.clone()),
        other => Err(not(key, "a list of strings", other)),
    });
    strings.collect::<Result<_, _>>().map(Some)
}

/// A field with a boolean.
///
/// # Errors
/// The field is not a boolean.
pub(crate) fn boolean(object: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(other) => Err(not(key, "true or false", other)),
    }
}

fn not(key: &str, expected: &str, found: &Value) -> String {
    let found = quote(&found.to_string(), 80);
    format!("its `{key}` is not {expected}: {found}")
}
