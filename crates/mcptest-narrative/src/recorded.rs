//! The values of recorded calls.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::evidence::LazyResult;
use crate::tokens::number;
use crate::verbs::fold;
use mcptest_catalog::lexical;

/// A call that a claim matched: its arguments and what came back.
#[derive(Clone, Copy)]
pub(crate) struct Matched<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The words of the tool's name.
    pub name: &'a [String],
    pub failed: bool,
    pub args: &'a Value,
    pub result: &'a LazyResult<'a>,
}

/// A scalar inside arguments, with the words of its keys.
pub(crate) struct Leaf {
    pub keys: BTreeSet<String>,
    pub text: String,
    pub is_number: bool,
}

/// The scalars inside a value.
pub(crate) fn leaves(value: &Value) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    collect(value, &BTreeSet::new(), &mut leaves);
    leaves
}

fn collect(value: &Value, keys: &BTreeSet<String>, leaves: &mut Vec<Leaf>) {
    let mut leaf = |text: String, is_number: bool| {
        leaves.push(Leaf {
            keys: keys.clone(),
            text,
            is_number,
        });
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let own: BTreeSet<String> =
                    lexical::words(key).iter().map(|word| fold(word)).collect();
                // The key itself, and the one above for items of a list.
                let keys = if value.is_object() {
                    keys.union(&own).cloned().collect()
                } else {
                    own
                };
                collect(value, &keys, leaves);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, keys, leaves)),
        Value::String(text) => leaf(text.clone(), false),
        Value::Number(number) => leaf(number.to_string(), true),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Returns true if a record has two values that are both accepted: `{"id": "i-0a1", "name":
/// "api-1"}` names one thing twice.
pub(crate) fn has_record_with(
    value: &Value,
    left: &dyn Fn(&str) -> bool,
    right: &dyn Fn(&str) -> bool,
) -> bool {
    match value {
        Value::Object(map) => {
            let any = |accepts: &dyn Fn(&str) -> bool| {
                map.values().any(|value| match value {
                    Value::String(text) => accepts(text),
                    Value::Number(number) => accepts(&number.to_string()),
                    _ => false,
                })
            };
            any(left) && any(right)
                || map
                    .values()
                    .any(|value| has_record_with(value, left, right))
        }
        Value::Array(list) => list.iter().any(|value| has_record_with(value, left, right)),
        Value::String(text) => {
            let trimmed = text.trim_start();
            trimmed.starts_with(['{', '['])
                && trimmed.len() < 1_000_000
                && serde_json::from_str::<Value>(trimmed)
                    .is_ok_and(|inner| has_record_with(&inner, left, right))
        }
        _ => false,
    }
}

/// Returns true if a string is a path, a file name or a URL.
pub(crate) fn is_pathlike(text: &str) -> bool {
    text.len() <= 300
        && !text.contains(char::is_whitespace)
        && (text.contains('/') || text.contains('.') || text.contains('\\'))
        && number(text).is_none()
        && !text.contains('@')
}

/// The strings of a result that are an e-mail address.
pub(crate) fn collect_emails(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| collect_emails(value, found)),
        Value::Array(list) => list.iter().for_each(|value| collect_emails(value, found)),
        Value::String(text)
            if text.contains('@')
                && text.len() < 100
                && !text.contains(char::is_whitespace)
                && found.len() < 20 =>
        {
            found.push(text.clone());
        }
        _ => {}
    }
}
