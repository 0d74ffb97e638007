//! The meaning of "contains" for each type.

use serde_json::Value;

use mcptest_json as json;

/// Text: substring. List: an element equal to `wanted`; for a wanted list, all its elements, each
/// found once more than the last (a multiset). Object: the wanted keys, their values equal, or
/// contained where both are objects or both lists.
pub(super) fn contains(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::String(actual), Value::String(wanted)) => actual.contains(wanted.as_str()),
        (Value::Array(actual), Value::Array(wanted)) => has_all(actual, wanted),
        (Value::Array(actual), wanted) => actual.iter().any(|item| json::equal(item, wanted)),
        (Value::Object(_), Value::Object(_)) => is_subset(wanted, actual),
        _ => false,
    }
}

/// Object subset at any depth: inside it, leaves are equal or not (a substring is not a part of an
/// object).
pub(crate) fn is_subset(wanted: &Value, actual: &Value) -> bool {
    match (wanted, actual) {
        (Value::Object(wanted), Value::Object(actual)) => wanted
            .iter()
            .all(|(key, value)| actual.get(key).is_some_and(|found| is_subset(value, found))),
        (Value::Array(wanted), Value::Array(actual)) => has_all(actual, wanted),
        _ => json::equal(wanted, actual),
    }
}

/// Every wanted element has its own equal in the list. Equality is transitive, so taking the first
/// free one is enough.
fn has_all(actual: &[Value], wanted: &[Value]) -> bool {
    let mut free: Vec<&Value> = actual.iter().collect();
    wanted.iter().all(|value| {
        free.iter()
            .position(|candidate| json::equal(candidate, value))
            .map(|at| free.swap_remove(at))
            .is_some()
    })
}

/// All strings in lowercase, keys included.
pub(super) fn lower(value: &Value) -> Value {
    match value {
        Value::String(text) => text.to_lowercase().into(),
        Value::Array(items) => items.iter().map(lower).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.to_lowercase(), lower(value)))
            .collect(),
        other => other.clone(),
    }
}
