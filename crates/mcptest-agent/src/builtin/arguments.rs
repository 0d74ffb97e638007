//! Arguments for a schema, taken from a prompt by simple rules.
//!
//! Only required properties are filled. For each, the first of these that exists: a `const`, the
//! first `enum` value that the prompt contains (else the first), a `default`, the first of
//! `examples`; otherwise a value by type. Numbers are taken from the prompt in order. A string is
//! the first of these: an e-mail address, URL or date if the schema's `format` requires one; a
//! quoted part of the prompt; a capitalised name (after the first word); the whole prompt. Each
//! part of the prompt is used once, as long as there are others.

use serde_json::{Map, Value, json};

/// The deepest level of a schema that is filled.
const MAX_DEPTH: usize = 8;

/// Returns an object with the required properties of a schema.
#[must_use]
pub fn fill(schema: Option<&Value>, prompt: &str) -> Value {
    let mut parts = PromptParts::of(prompt);
    match schema {
        Some(schema) => object(schema, &mut parts, 0),
        None => json!({}),
    }
}

/// The usable parts of a prompt, each kind in the order of the prompt.
struct PromptParts {
    prompt: String,
    numbers: Vec<Value>,
    quoted: Vec<String>,
    names: Vec<String>,
    words: Vec<String>,
}

impl PromptParts {
    fn of(prompt: &str) -> Self {
        let words: Vec<String> = prompt.split_whitespace().map(str::to_owned).collect();
        Self {
            prompt: prompt.trim().to_owned(),
            numbers: words.iter().filter_map(|word| number(word)).collect(),
            quoted: quoted(prompt),
            names: names(&words),
            words,
        }
    }
}

fn object(schema: &Value, parts: &mut PromptParts, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let mut filled = Map::new();
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let property = schema
            .get("properties")
            .and_then(|properties| properties.get(name));
        filled.insert(
            name.to_owned(),
            value(property.unwrap_or(&Value::Null), parts, depth + 1),
        );
    }
    Value::Object(filled)
}

fn value(schema: &Value, parts: &mut PromptParts, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(fixed) = fixed(schema, parts) {
        return fixed;
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or("string"),
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    };
    match kind {
        "integer" | "number" => take_first(&mut parts.numbers)
            .unwrap_or_else(|| schema.get("minimum").cloned().unwrap_or_else(|| json!(0))),
        "boolean" => json!(false),
        "null" => Value::Null,
        "array" => {
            let least = schema
                .get("minItems")
                .and_then(Value::as_u64)
                .unwrap_or(1)
                .clamp(1, 8);
            let items = schema.get("items").unwrap_or(&Value::Null);
            (0..least).map(|_| value(items, parts, depth + 1)).collect()
        }
        "object" => object(schema, parts, depth),
        _ => text(schema, parts).into(),
    }
}

/// Returns the value that the schema itself determines.
fn fixed(schema: &Value, parts: &PromptParts) -> Option<Value> {
    if let Some(only) = schema.get("const") {
        return Some(only.clone());
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        let prompt = parts.prompt.to_lowercase();
        let named = allowed.iter().find(|value| {
            value
                .as_str()
                .is_some_and(|word| !word.is_empty() && prompt.contains(&word.to_lowercase()))
        });
        return named.or_else(|| allowed.first()).cloned();
    }
    let example = || schema.get("examples").and_then(|examples| examples.get(0));
    schema.get("default").or_else(example).cloned()
}

fn text(schema: &Value, parts: &mut PromptParts) -> String {
    let shaped = |fits: fn(&str) -> bool| {
        parts
            .words
            .iter()
            .map(|word| trim(word))
            .find(|word| fits(word))
            .map(str::to_owned)
    };
    let by_format = match schema.get("format").and_then(Value::as_str) {
        Some("email") => shaped(|word| {
            word.split_once('@')
                .is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
        }),
        Some("uri" | "url") => shaped(|word| word.contains("://")),
        Some("date") => shaped(is_date),
        Some("date-time") => shaped(|word| word.get(..10).is_some_and(is_date)),
        _ => None,
    };
    by_format
        .or_else(|| take_first(&mut parts.quoted))
        .or_else(|| take_first(&mut parts.names))
        .unwrap_or_else(|| parts.prompt.clone())
}

/// Returns the first part, and removes it unless it is the only one.
fn take_first<T: Clone>(parts: &mut Vec<T>) -> Option<T> {
    if parts.len() > 1 {
        Some(parts.remove(0))
    } else {
        parts.first().cloned()
    }
}

fn number(word: &str) -> Option<Value> {
    let word = word
        .trim_matches(|c: char| !c.is_ascii_digit() && c != '-' && c != '.')
        .trim_end_matches('.');
    word.parse::<i64>().map(Value::from).ok().or_else(|| {
        let float: f64 = word.parse().ok()?;
        serde_json::Number::from_f64(float).map(Value::Number)
    })
}

/// Returns the parts between matching quotes.
fn quoted(prompt: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (open, close) in [('"', '"'), ('`', '`'), ('“', '”'), ('«', '»')] {
        let mut rest = prompt;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inside, behind)) = after.split_once(close) else {
                break;
            };
            if !inside.trim().is_empty() {
                found.push(inside.to_owned());
            }
            rest = behind;
        }
    }
    found
}

/// Returns the sequences of capitalised words that do not start a sentence.
fn names(words: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for (index, word) in words.iter().enumerate() {
        let plain = trim(word);
        let starts_sentence = index == 0 || words[index - 1].ends_with(['.', '!', '?', ':']);
        let capital = plain.chars().next().is_some_and(char::is_uppercase) && plain != "I";
        if capital && !starts_sentence {
            match found.last_mut() {
                Some(last) if open => {
                    last.push(' ');
                    last.push_str(plain);
                }
                _ => found.push(plain.to_owned()),
            }
            open = !word.ends_with([',', '.', '!', '?', ';', ':']);
        } else {
            open = false;
        }
    }
    found
}

fn trim(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn is_date(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| {
            if at == 4 || at == 7 {
                *byte == b'-'
            } else {
                byte.is_ascii_digit()
            }
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn schema(properties: Value) -> Value {
        let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        json!({"type": "object", "required": required, "properties": properties})
    }

    #[test]
    fn properties_are_filled_from_the_prompt() {
        let cases = [
            (
                json!({"city": {"type": "string"}}),
                "What is the weather in Sacramento?",
                json!({"city": "Sacramento"}),
            ),
            (
                json!({"q": {"type": "string"}}),
                "Find products that match the keyword \"notebook\".",
                json!({"q": "notebook"}),
            ),
            (
                json!({"a": {"type": "integer"}, "b": {"type": "number"}}),
                "Add 2 and 3.5 please",
                json!({"a": 2, "b": 3.5}),
            ),
            (
                json!({"unit": {"enum": ["celsius", "fahrenheit"]}}),
                "in Fahrenheit",
                json!({"unit": "fahrenheit"}),
            ),
            (
                json!({"to": {"type": "string", "format": "email"}}),
                "Write to ann@example.com, now",
                json!({"to": "ann@example.com"}),
            ),
            (
                json!({"day": {"type": "string", "format": "date"}}),
                "On 2026-11-15.",
                json!({"day": "2026-11-15"}),
            ),
            (
                json!({"n": {"type": "integer", "default": 7}}),
                "take 3",
                json!({"n": 7}),
            ),
            (
                json!({"from": {"type": "string"}, "to": {"type": "string"}}),
                "Fly from New York to San Francisco",
                json!({"from": "New York", "to": "San Francisco"}),
            ),
            (
                json!({"tags": {"type": "array", "items": {"type": "string"}}}),
                "tag \"a\" and \"b\"",
                json!({"tags": ["a"]}),
            ),
            (
                json!({
                    "o": {
                        "type": "object",
                        "required": ["x"],
                        "properties": {"x": {"type": "integer"}},
                    },
                }),
                "set 4",
                json!({"o": {"x": 4}}),
            ),
            (
                json!({"text": {"type": "string"}}),
                "just words here",
                json!({"text": "just words here"}),
            ),
            (
                json!({
                    "flag": {"type": "boolean"},
                    "n": {"type": ["null", "integer"], "minimum": 5},
                }),
                "go",
                json!({"flag": false, "n": 5}),
            ),
        ];
        for (properties, prompt, expected) in cases {
            assert_eq!(
                fill(Some(&schema(properties)), prompt),
                expected,
                "{prompt}"
            );
        }
    }

    #[test]
    fn invalid_and_deep_schemas_are_tolerated() {
        assert_eq!(fill(None, "x"), json!({}));
        assert_eq!(fill(Some(&json!("nonsense")), "x"), json!({}));
        assert_eq!(
            fill(Some(&json!({"required": ["a", 3], "properties": 5})), "x"),
            json!({"a": "x"})
        );
        let mut deep = json!({"type": "string"});
        for _ in 0..30 {
            deep = json!({"type": "object", "required": ["x"], "properties": {"x": deep}});
        }
        assert!(fill(Some(&deep), "x").is_object());
    }

    proptest! {
        #[test]
        fn every_required_property_is_filled_and_nothing_else(
            prompt in "\\PC{0,40}",
            names in prop::collection::btree_set("[a-z]{1,5}", 0..5),
        ) {
            let string = json!({"type": "string"});
            let properties: Map<String, Value> =
                names.iter().map(|name| (name.clone(), string.clone())).collect();
            let filled = fill(Some(&schema(Value::Object(properties))), &prompt);
            let keys: BTreeSet<String> = filled.as_object().unwrap().keys().cloned().collect();
            prop_assert_eq!(keys, names);
        }
    }
}
