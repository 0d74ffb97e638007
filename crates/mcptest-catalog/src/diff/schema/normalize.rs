//! Normalisation of schemas: references followed, unions split.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::keywords::is_rule;

pub(super) fn has_refs(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(has_refs),
        Value::Array(items) => items.iter().any(has_refs),
        _ => false,
    }
}

/// The target of a local reference or of an `allOf` with one entry, overridden by the keywords next
/// to it, and the last reference followed.
pub(super) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> (Cow<'a, Value>, Option<String>) {
    let mut schema = Cow::Borrowed(schema);
    let mut reference: Option<String> = None;
    let mut followed = BTreeSet::new();
    while let Value::Object(map) = schema.as_ref() {
        let (keyword, target) = match (map.get("$ref"), map.get("allOf")) {
            (Some(Value::String(written)), _) if written.starts_with('#') => {
                // A reference that leads back to itself describes nothing.
                if !followed.insert(written.clone()) {
                    break;
                }
                let Some(target) = root.pointer(written.trim_start_matches('#')) else {
                    break;
                };
                reference = Some(written.clone());
                ("$ref", target.clone())
            }
            (None, Some(Value::Array(parts))) if parts.len() == 1 => ("allOf", parts[0].clone()),
            _ => break,
        };
        let others = map.iter().filter(|(key, _)| *key != keyword);
        schema = Cow::Owned(match target {
            Value::Object(mut target) => {
                target.extend(others.map(|(key, value)| (key.clone(), value.clone())));
                Value::Object(target)
            }
            other => other,
        });
    }
    (schema, reference)
}

/// The keywords of a schema; `true` has none. `None` for `false`, and for anything else.
pub(super) fn as_rules(schema: &Value) -> Option<Cow<'_, Map<String, Value>>> {
    match schema {
        Value::Object(map) => Some(Cow::Borrowed(map)),
        Value::Bool(true) => Some(Cow::Owned(Map::new())),
        _ => None,
    }
}

pub(super) fn union(schema: &Map<String, Value>) -> Option<(&str, &Vec<Value>)> {
    ["anyOf", "oneOf"]
        .into_iter()
        .find_map(|keyword| Some((keyword, schema.get(keyword)?.as_array()?)))
}

/// Returns true if a schema consists only of alternatives.
pub(super) fn is_plain_union(schema: &Map<String, Value>) -> bool {
    match union(schema) {
        Some((keyword, _)) => schema.keys().all(|key| key == keyword || !is_rule(key)),
        None => true,
    }
}

/// The alternatives of a schema with their places; several types are alternatives too. A schema
/// without alternatives is its own only one.
pub(super) fn split(at: &str, schema: &Map<String, Value>) -> Vec<(String, Value)> {
    let rules_only = || -> Map<String, Value> {
        schema
            .iter()
            .filter(|(key, _)| is_rule(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    if let Some((keyword, branches)) = union(schema) {
        let place =
            |(index, branch): (usize, &Value)| (format!("{at}/{keyword}/{index}"), branch.clone());
        return branches.iter().enumerate().map(place).collect();
    }
    match schema.get("type").and_then(Value::as_array) {
        Some(types) => types
            .iter()
            .map(|one| {
                let mut branch = rules_only();
                branch.insert("type".into(), one.clone());
                (format!("{at}/type"), Value::Object(branch))
            })
            .collect(),
        None => vec![(at.to_owned(), Value::Object(rules_only()))],
    }
}

pub(super) fn required(schema: &Map<String, Value>) -> BTreeSet<String> {
    let list = schema.get("required").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
