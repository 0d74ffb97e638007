//! Comparison of single keywords: constraints, and the direction of their changes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::Kind;
use super::{Fact, fact};
use crate::tokens;
use mcptest_json::text::{one_line, shorten};
use mcptest_json::{canonical, compare_numbers, equal, pointer_join};

/// Keywords that describe a value without constraining it.
pub(super) fn is_annotation(keyword: &str) -> bool {
    !is_rule(keyword) && !matches!(keyword, "$defs" | "definitions")
}

pub(super) fn is_rule(keyword: &str) -> bool {
    matches!(
        keyword,
        "type"
            | "enum"
            | "const"
            | "properties"
            | "required"
            | "additionalProperties"
            | "items"
            | "anyOf"
            | "oneOf"
            | "uniqueItems"
    ) || OTHER_RULES.contains(&keyword)
        || BOUNDS.iter().any(|(bound, _)| *bound == keyword)
}

/// Bounds; true if a larger number is stricter.
pub(super) const BOUNDS: [(&str, bool); 10] = [
    ("minimum", true),
    ("exclusiveMinimum", true),
    ("minLength", true),
    ("minItems", true),
    ("minProperties", true),
    ("maximum", false),
    ("exclusiveMaximum", false),
    ("maxLength", false),
    ("maxItems", false),
    ("maxProperties", false),
];

/// Constraints that are compared as a whole.
pub(super) const OTHER_RULES: [&str; 22] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "allOf",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "format",
    "if",
    "multipleOf",
    "not",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedProperties",
];

pub(super) fn annotations(
    at: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    facts: &mut Vec<Fact>,
) {
    let keys: BTreeSet<&String> = old
        .keys()
        .chain(new.keys())
        .filter(|key| is_annotation(key))
        .collect();
    for key in keys {
        let (old, new) = (old.get(key), new.get(key));
        if old.zip(new).is_some_and(|(old, new)| equal(old, new)) {
            continue;
        }
        let shown = one_line(key);
        let message = match (key.as_str(), old, new) {
            ("description", old, new) => {
                let count =
                    |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, tokens::count);
                let (was, is) = (count(old), count(new));
                format!("the description changed: {was} → {is} tokens")
            }
            (_, None, Some(new)) => format!("`{shown}` was added: {}", value_text(new)),
            (_, Some(old), None) => format!("`{shown}` was removed: {}", value_text(old)),
            (_, old, new) => {
                let text = |value: Option<&Value>| value.map(value_text).unwrap_or_default();
                format!("`{shown}` {} is now {}", text(old), text(new))
            }
        };
        fact(facts, &pointer_join(at, key), Kind::Annotation, message);
    }
}

/// The types that a schema names; `None` if it names none.
pub(super) fn type_set(schema: &Map<String, Value>) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::String(one) => Some([one.as_str()].into()),
        Value::Array(several) => Some(several.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

pub(super) fn types(
    at: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    facts: &mut Vec<Fact>,
) {
    let place = format!("{at}/type");
    let text = |types: &BTreeSet<&str>| {
        let types: Vec<String> = types
            .iter()
            .map(|one| format!("`{}`", one_line(one)))
            .collect();
        types.join(" or ")
    };
    let within = |a: &BTreeSet<&str>, b: &BTreeSet<&str>| {
        a.iter()
            .all(|one| b.contains(one) || (*one == "integer" && b.contains("number")))
    };
    match (type_set(old), type_set(new)) {
        (None, None) => {}
        (None, Some(new)) => fact(
            facts,
            &place,
            Kind::Narrowed,
            format!("only {} now", text(&new)),
        ),
        (Some(old), None) => fact(
            facts,
            &place,
            Kind::Widened,
            format!("any type now, not only {}", text(&old)),
        ),
        (Some(old), Some(new)) => {
            let kind = match (within(&old, &new), within(&new, &old)) {
                (true, true) => return,
                (true, false) => Kind::Widened,
                (false, true) => Kind::Narrowed,
                (false, false) => Kind::Changed,
            };
            fact(
                facts,
                &place,
                kind,
                format!("{} is now {}", text(&old), text(&new)),
            );
        }
    }
}

/// The values that `enum` or `const` allow, by their canonical form.
pub(super) fn value_set(
    schema: &Map<String, Value>,
) -> Option<(&'static str, BTreeMap<String, String>)> {
    let of = |values: &[Value]| {
        values
            .iter()
            .map(|one| (canonical(one), value_text(one)))
            .collect()
    };
    match (schema.get("const"), schema.get("enum")) {
        (Some(one), _) => Some(("const", of(std::slice::from_ref(one)))),
        (None, Some(Value::Array(several))) => Some(("enum", of(several))),
        _ => None,
    }
}

pub(super) fn values(
    at: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    facts: &mut Vec<Fact>,
) {
    let list = |values: &mut dyn Iterator<Item = &String>| {
        let all: Vec<&str> = values.map(String::as_str).collect();
        shorten(&all.join(", "), 120)
    };
    match (value_set(old), value_set(new)) {
        (None, None) => {}
        (None, Some((keyword, new))) => {
            let message = format!("only {} now", list(&mut new.values()));
            fact(facts, &format!("{at}/{keyword}"), Kind::Narrowed, message);
        }
        (Some((keyword, old)), None) => {
            let message = format!("any value now, not only {}", list(&mut old.values()));
            fact(facts, &format!("{at}/{keyword}"), Kind::Widened, message);
        }
        (Some((_, old)), Some((keyword, new))) => {
            let gone: Vec<_> = old
                .iter()
                .filter(|(key, _)| !new.contains_key(*key))
                .collect();
            let added: Vec<_> = new
                .iter()
                .filter(|(key, _)| !old.contains_key(*key))
                .collect();
            let (kind, message) = match (gone.is_empty(), added.is_empty()) {
                (true, true) => return,
                (false, true) => (
                    Kind::Narrowed,
                    format!("removed: {}", list(&mut gone.iter().map(|(_, text)| *text))),
                ),
                (true, false) => (
                    Kind::Widened,
                    format!("added: {}", list(&mut added.iter().map(|(_, text)| *text))),
                ),
                (false, false) => (
                    Kind::Changed,
                    format!(
                        "gone: {}; new: {}",
                        list(&mut gone.iter().map(|(_, text)| *text)),
                        list(&mut added.iter().map(|(_, text)| *text))
                    ),
                ),
            };
            fact(facts, &format!("{at}/{keyword}"), kind, message);
        }
    }
}

pub(super) fn bound(
    at: &str,
    keyword: &str,
    larger_is_stricter: bool,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    facts: &mut Vec<Fact>,
) {
    // A minimum of zero is not a bound.
    let counts = keyword.starts_with("min") && keyword != "minimum";
    let of = |schema: &'_ Map<String, Value>| {
        schema
            .get(keyword)
            .filter(|value| !(counts && value.as_u64() == Some(0)))
            .cloned()
    };
    let place = format!("{at}/{keyword}");
    let (kind, message) = match (of(old), of(new)) {
        (None, None) => return,
        (None, Some(new)) => (
            Kind::Narrowed,
            format!("`{keyword}` was added: {}", value_text(&new)),
        ),
        (Some(old), None) => (
            Kind::Widened,
            format!("`{keyword}` was removed: {}", value_text(&old)),
        ),
        (Some(old), Some(new)) => {
            let kind = match (&old, &new) {
                (Value::Number(a), Value::Number(b)) => match compare_numbers(a, b) {
                    Ordering::Equal => return,
                    order if (order == Ordering::Less) == larger_is_stricter => Kind::Narrowed,
                    _ => Kind::Widened,
                },
                _ if equal(&old, &new) => return,
                _ => Kind::Changed,
            };
            let message = format!(
                "`{keyword}` {} is now {}",
                value_text(&old),
                value_text(&new)
            );
            (kind, message)
        }
    };
    fact(facts, &place, kind, message);
}

pub(super) fn other_rule(
    at: &str,
    keyword: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    facts: &mut Vec<Fact>,
) {
    let place = format!("{at}/{keyword}");
    let (kind, message) = match (old.get(keyword), new.get(keyword)) {
        (None, None) => return,
        (None, Some(new)) => (
            Kind::Narrowed,
            format!("`{keyword}` was added: {}", value_text(new)),
        ),
        (Some(old), None) => (
            Kind::Widened,
            format!("`{keyword}` was removed: {}", value_text(old)),
        ),
        (Some(old), Some(new)) if equal(old, new) => return,
        (Some(old), Some(new)) => (
            Kind::Changed,
            format!("`{keyword}` {} is now {}", value_text(old), value_text(new)),
        ),
    };
    fact(facts, &place, kind, message);
}

pub(super) fn unique_items(
    at: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    facts: &mut Vec<Fact>,
) {
    let is = |schema: &Map<String, Value>| schema.get("uniqueItems") == Some(&Value::Bool(true));
    let place = format!("{at}/uniqueItems");
    match (is(old), is(new)) {
        (false, true) => fact(facts, &place, Kind::Narrowed, "items must differ now"),
        (true, false) => fact(facts, &place, Kind::Widened, "items may be equal now"),
        _ => {}
    }
}

pub(super) fn value_text(value: &Value) -> String {
    shorten(&one_line(&value.to_string()), 60)
}
