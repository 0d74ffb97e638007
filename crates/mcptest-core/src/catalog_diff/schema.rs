//! What changed between two JSON Schemas, and which way: does the new one accept less, more, or something else?
//!
//! JSON Schema is too rich to decide inclusion in general. Known here are types, values, bounds, properties, items, local references and
//! unions; any other rule that was added narrows, one that was removed widens, and one that was rewritten counts as changed, for which the worst is
//! assumed. `oneOf` is read as `anyOf`, and what stands beside a reference is put over what it refers to.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Direction, Kind};
use crate::json::{canonical, compare_numbers, equal, pointer_join};
use crate::text::{one_line, shorten};
use crate::tokens;

/// Schemas that need more comparisons than this are compared as a whole.
const FUEL: u32 = 200_000;
/// Schemas that are nested or refer deeper than this are compared as a whole.
const DEPTH: usize = 96;

/// A fact about two schemas.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fact {
    /// Where, in the new schema; for what is gone, in the old one.
    pub(super) pointer: String,
    pub(super) kind: Kind,
    /// Whether an added property is required.
    pub(super) required: bool,
    pub(super) message: String,
}

impl Fact {
    /// Whether somebody who relied on the old schema can be let down.
    pub(super) fn breaks(&self, direction: Direction) -> bool {
        match (self.kind, direction) {
            (Kind::PropertyAdded, Direction::Input) => self.required,
            (Kind::RequiredAdded | Kind::Narrowed, Direction::Input)
            | (Kind::RequiredRemoved | Kind::Widened, Direction::Output)
            | (Kind::PropertyRemoved | Kind::Changed, _) => true,
            _ => false,
        }
    }
}

/// All facts, sorted by place, each once.
pub(super) fn compare(at: &str, old: &Value, new: &Value) -> Vec<Fact> {
    let mut comparer = Comparer {
        old_root: old,
        new_root: new,
        at_root: at.to_owned(),
        has_refs: has_refs(old) || has_refs(new),
        references: Vec::new(),
        fuel: FUEL,
        depth: 0,
    };
    let mut facts = Vec::new();
    comparer.schemas(at, old, new, &mut facts);
    facts.sort();
    facts.dedup();
    facts
}

/// Words about a value, or about the use of it; no rule.
fn is_annotation(keyword: &str) -> bool {
    !is_rule(keyword) && !matches!(keyword, "$defs" | "definitions")
}

fn is_rule(keyword: &str) -> bool {
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

/// Bounds, and whether a larger number is stricter.
const BOUNDS: [(&str, bool); 10] = [
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

/// Rules whose inside is not understood here.
const OTHER_RULES: [&str; 22] = [
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

struct Comparer<'a> {
    old_root: &'a Value,
    new_root: &'a Value,
    at_root: String,
    has_refs: bool,
    /// The pairs of references that are being followed: a pair that leads back to itself has no difference of its own.
    references: Vec<(Option<String>, Option<String>)>,
    fuel: u32,
    depth: usize,
}

impl Comparer<'_> {
    fn schemas(&mut self, at: &str, old: &Value, new: &Value, facts: &mut Vec<Fact>) {
        if !self.has_refs && equal(old, new) {
            return;
        }
        if self.fuel == 0 || self.depth >= DEPTH {
            if !equal(old, new) {
                fact(
                    facts,
                    at,
                    Kind::Changed,
                    "the schema changed, and is too large to say how",
                );
            }
            return;
        }
        self.fuel -= 1;
        self.depth += 1;
        self.resolved(at, old, new, facts);
        self.depth -= 1;
    }

    fn resolved(&mut self, at: &str, old: &Value, new: &Value, facts: &mut Vec<Fact>) {
        let (old, old_ref) = resolve(self.old_root, old);
        let (new, new_ref) = resolve(self.new_root, new);
        let mut at = Cow::Borrowed(at);
        let followed = old_ref.is_some() || new_ref.is_some();
        if followed {
            let pair = (old_ref.clone(), new_ref.clone());
            if self.references.contains(&pair) {
                return;
            }
            self.references.push(pair);
            // What two schemas share by name has one place, however often it is used.
            if let (Some(old_ref), Some(new_ref)) = (&old_ref, &new_ref)
                && old_ref == new_ref
            {
                at = Cow::Owned(format!("{}{}", self.at_root, old_ref.trim_start_matches('#')));
            }
        }
        match (as_rules(&old), as_rules(&new)) {
            (Some(old), Some(new)) => self.maps(&at, &old, &new, facts),
            _ if equal(&old, &new) => {}
            (_, None) if *new == Value::Bool(false) => {
                fact(facts, &at, Kind::Narrowed, "nothing is accepted here any more");
            }
            (None, _) if *old == Value::Bool(false) => {
                fact(facts, &at, Kind::Widened, "something is accepted here now")
            }
            _ => fact(facts, &at, Kind::Changed, "what stands here is no schema"),
        }
        if followed {
            self.references.pop();
        }
    }

    fn maps(&mut self, at: &str, old: &Map<String, Value>, new: &Map<String, Value>, facts: &mut Vec<Fact>) {
        annotations(at, old, new, facts);
        let unions = (union(old), union(new));
        if (unions.0.is_some() || unions.1.is_some()) && is_plain_union(old) && is_plain_union(new) {
            self.unions(at, &split(at, old), &split(at, new), facts);
            return;
        }
        self.union_beside_rules(at, unions.0, unions.1, facts);
        types(at, old, new, facts);
        values(at, old, new, facts);
        for (keyword, larger_is_stricter) in BOUNDS {
            bound(at, keyword, larger_is_stricter, old, new, facts);
        }
        for keyword in OTHER_RULES {
            other_rule(at, keyword, old, new, facts);
        }
        unique_items(at, old, new, facts);
        self.nested(at, "items", old, new, facts);
        self.nested(at, "additionalProperties", old, new, facts);
        self.properties(at, old, new, facts);
    }

    fn properties<'m>(
        &mut self,
        at: &str,
        old: &'m Map<String, Value>,
        new: &'m Map<String, Value>,
        facts: &mut Vec<Fact>,
    ) {
        let empty = Map::new();
        let of = |schema: &'m Map<String, Value>| schema.get("properties").and_then(Value::as_object);
        let (old_properties, new_properties) = (of(old).unwrap_or(&empty), of(new).unwrap_or(&empty));
        let (old_required, new_required) = (required(old), required(new));
        let names: BTreeSet<&String> = old_properties
            .keys()
            .chain(new_properties.keys())
            .chain(&old_required)
            .chain(&new_required)
            .collect();
        for name in names {
            let place = if old_properties.contains_key(name) || new_properties.contains_key(name) {
                pointer_join(&format!("{at}/properties"), name)
            } else {
                format!("{at}/required")
            };
            let shown = one_line(name);
            let (was, is) = (old_required.contains(name), new_required.contains(name));
            match (old_properties.get(name), new_properties.get(name)) {
                (None, Some(_)) if !was => {
                    let how = if is { "a required" } else { "an optional" };
                    facts.push(Fact {
                        pointer: place,
                        kind: Kind::PropertyAdded,
                        required: is,
                        message: format!("`{shown}` is new, {how} property"),
                    });
                    continue;
                }
                (Some(_), None) if !is => {
                    fact(facts, &place, Kind::PropertyRemoved, format!("`{shown}` is gone"));
                    continue;
                }
                (old, new) => {
                    // A property that is only required, not described, may be anything.
                    let open = Value::Bool(true);
                    self.schemas(&place, old.unwrap_or(&open), new.unwrap_or(&open), facts);
                }
            }
            if was != is {
                let (kind, now) = if is {
                    (Kind::RequiredAdded, "is now required")
                } else {
                    (Kind::RequiredRemoved, "is now optional")
                };
                fact(facts, &place, kind, format!("`{shown}` {now}"));
            }
        }
    }

    /// `items` and `additionalProperties`: a schema for whatever is there.
    fn nested(
        &mut self,
        at: &str,
        keyword: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        facts: &mut Vec<Fact>,
    ) {
        let open = Value::Bool(true);
        let (old, new) = (old.get(keyword).unwrap_or(&open), new.get(keyword).unwrap_or(&open));
        let is_open = |schema: &Value| *schema == open || schema.as_object().is_some_and(Map::is_empty);
        let place = format!("{at}/{keyword}");
        let closed = Value::Bool(false);
        if is_open(old) && is_open(new) {
            return;
        }
        if old.is_array() || new.is_array() {
            // A tuple.
            if !equal(old, new) {
                fact(facts, &place, Kind::Changed, format!("`{keyword}` changed"));
            }
        } else if is_open(old) || (*new == closed && *old != closed) {
            let message = match (keyword, *new == closed) {
                ("additionalProperties", true) => "properties that are not listed are not allowed any more".to_owned(),
                ("additionalProperties", false) => "properties that are not listed have a schema now".to_owned(),
                _ => format!("`{keyword}` has a schema now"),
            };
            fact(facts, &place, Kind::Narrowed, message);
        } else if is_open(new) || (*old == closed && *new != closed) {
            let message = match keyword {
                "additionalProperties" => "properties that are not listed are allowed now".to_owned(),
                _ => format!("`{keyword}` has no schema any more"),
            };
            fact(facts, &place, Kind::Widened, message);
        } else {
            self.schemas(&place, old, new, facts);
        }
    }

    /// Alternatives that stand beside other rules are a rule among them.
    fn union_beside_rules(
        &mut self,
        at: &str,
        old: Option<(&str, &Vec<Value>)>,
        new: Option<(&str, &Vec<Value>)>,
        facts: &mut Vec<Fact>,
    ) {
        match (old, new) {
            (None, None) => {}
            (None, Some((keyword, _))) => {
                let place = format!("{at}/{keyword}");
                fact(facts, &place, Kind::Narrowed, format!("`{keyword}` is new"));
            }
            (Some((keyword, _)), None) => {
                let place = format!("{at}/{keyword}");
                fact(facts, &place, Kind::Widened, format!("`{keyword}` is gone"));
            }
            (Some((old_keyword, old)), Some((new_keyword, new))) => {
                let places = |keyword: &str, branches: &[Value]| -> Vec<(String, Value)> {
                    let place = |(index, branch): (usize, &Value)| (format!("{at}/{keyword}/{index}"), branch.clone());
                    branches.iter().enumerate().map(place).collect()
                };
                self.unions(at, &places(old_keyword, old), &places(new_keyword, new), facts);
            }
        }
    }

    /// Alternatives, each with its place.
    fn unions(&mut self, at: &str, old: &[(String, Value)], new: &[(String, Value)], facts: &mut Vec<Fact>) {
        let mut left_new: Vec<&(String, Value)> = new.iter().collect();
        let mut left_old = Vec::new();
        for branch in old {
            let mut same = None;
            for (index, (place, other)) in left_new.iter().enumerate() {
                let found = self.trial(place, &branch.1, other);
                if found.iter().all(|fact| fact.kind == Kind::Annotation) {
                    same = Some((index, found));
                    break;
                }
            }
            match same {
                Some((index, found)) => {
                    left_new.remove(index);
                    facts.extend(found);
                }
                None => left_old.push(branch),
            }
        }
        if let ([old], [new]) = (left_old.as_slice(), left_new.as_slice()) {
            self.schemas(&new.0, &old.1, &new.1, facts);
            return;
        }
        // What another alternative covers is not lost, and not new.
        let lost: Vec<_> = left_old
            .into_iter()
            .filter(|(_, branch)| !new.iter().any(|(_, other)| self.covers(branch, other)))
            .collect();
        let gained: Vec<_> = left_new
            .into_iter()
            .filter(|(_, branch)| {
                !old.iter()
                    .any(|(_, other)| self.turned(|turned| turned.covers(branch, other)))
            })
            .collect();
        if let ([old], [new]) = (lost.as_slice(), gained.as_slice()) {
            self.schemas(&new.0, &old.1, &new.1, facts);
            return;
        }
        let show = |branch: &Value| shorten(&one_line(&branch.to_string()), 80);
        for (place, branch) in lost {
            let message = format!("the alternative `{}` is gone", show(branch));
            fact(
                facts,
                if place.is_empty() { at } else { place },
                Kind::Narrowed,
                message,
            );
        }
        for (place, branch) in gained {
            fact(
                facts,
                place,
                Kind::Widened,
                format!("the alternative `{}` is new", show(branch)),
            );
        }
    }

    fn trial(&mut self, at: &str, old: &Value, new: &Value) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.schemas(at, old, new, &mut facts);
        facts
    }

    /// Whether everything that the old schema accepts is accepted by the new one.
    fn covers(&mut self, old: &Value, new: &Value) -> bool {
        self.trial("", old, new)
            .iter()
            .all(|fact| !fact.breaks(Direction::Input))
    }

    /// With old and new in each other's place.
    fn turned<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let turn = |comparer: &mut Self| {
            std::mem::swap(&mut comparer.old_root, &mut comparer.new_root);
            for pair in &mut comparer.references {
                *pair = (pair.1.take(), pair.0.take());
            }
        };
        turn(self);
        let result = work(self);
        turn(self);
        result
    }
}

fn fact(facts: &mut Vec<Fact>, at: &str, kind: Kind, message: impl Into<String>) {
    facts.push(Fact {
        pointer: at.to_owned(),
        kind,
        required: false,
        message: message.into(),
    });
}

fn has_refs(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(has_refs),
        Value::Array(items) => items.iter().any(has_refs),
        _ => false,
    }
}

/// The schema behind a local reference or an `allOf` of one, with what stands beside it put over it, and the last reference followed.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> (Cow<'a, Value>, Option<String>) {
    let mut schema = Cow::Borrowed(schema);
    let mut reference = None;
    // A chain that is longer than this goes in a circle.
    for _ in 0..32 {
        let Value::Object(map) = schema.as_ref() else { break };
        let (keyword, target) = match (map.get("$ref"), map.get("allOf")) {
            (Some(Value::String(written)), _) if written.starts_with('#') => {
                let Some(target) = root.pointer(written.trim_start_matches('#')) else {
                    break;
                };
                reference = Some(written.clone());
                ("$ref", target.clone())
            }
            (None, Some(Value::Array(parts))) if parts.len() == 1 => ("allOf", parts[0].clone()),
            _ => break,
        };
        let beside = map.iter().filter(|(key, _)| *key != keyword);
        schema = Cow::Owned(match target {
            Value::Object(mut target) => {
                target.extend(beside.map(|(key, value)| (key.clone(), value.clone())));
                Value::Object(target)
            }
            other => other,
        });
    }
    (schema, reference)
}

/// The rules of a schema: `true` has none. Nothing for `false`, and for what is no schema.
fn as_rules(schema: &Value) -> Option<Cow<'_, Map<String, Value>>> {
    match schema {
        Value::Object(map) => Some(Cow::Borrowed(map)),
        Value::Bool(true) => Some(Cow::Owned(Map::new())),
        _ => None,
    }
}

fn union(schema: &Map<String, Value>) -> Option<(&str, &Vec<Value>)> {
    ["anyOf", "oneOf"]
        .into_iter()
        .find_map(|keyword| Some((keyword, schema.get(keyword)?.as_array()?)))
}

/// Whether a schema is nothing but alternatives. One without any is its own only alternative.
fn is_plain_union(schema: &Map<String, Value>) -> bool {
    match union(schema) {
        Some((keyword, _)) => schema.keys().all(|key| key == keyword || !is_rule(key)),
        None => true,
    }
}

/// The alternatives of a schema with their places; several types are alternatives too.
fn split(at: &str, schema: &Map<String, Value>) -> Vec<(String, Value)> {
    let without_words = || -> Map<String, Value> {
        schema
            .iter()
            .filter(|(key, _)| is_rule(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    if let Some((keyword, branches)) = union(schema) {
        let place = |(index, branch): (usize, &Value)| (format!("{at}/{keyword}/{index}"), branch.clone());
        return branches.iter().enumerate().map(place).collect();
    }
    match schema.get("type").and_then(Value::as_array) {
        Some(types) => types
            .iter()
            .map(|one| {
                let mut branch = without_words();
                branch.insert("type".into(), one.clone());
                (format!("{at}/type"), Value::Object(branch))
            })
            .collect(),
        None => vec![(at.to_owned(), Value::Object(without_words()))],
    }
}

fn required(schema: &Map<String, Value>) -> BTreeSet<String> {
    let list = schema.get("required").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn annotations(at: &str, old: &Map<String, Value>, new: &Map<String, Value>, facts: &mut Vec<Fact>) {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).filter(|key| is_annotation(key)).collect();
    for key in keys {
        let (old, new) = (old.get(key), new.get(key));
        if old.zip(new).is_some_and(|(old, new)| equal(old, new)) {
            continue;
        }
        let shown = one_line(key);
        let message = match (key.as_str(), old, new) {
            ("description", old, new) => {
                let count = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, tokens::count);
                let (was, is) = (count(old), count(new));
                format!("the description changed: {was} → {is} tokens")
            }
            (_, None, Some(new)) => format!("`{shown}` is new: {}", value_text(new)),
            (_, Some(old), None) => format!("`{shown}` is gone: {}", value_text(old)),
            (_, old, new) => {
                let text = |value: Option<&Value>| value.map(value_text).unwrap_or_default();
                format!("`{shown}` {} is now {}", text(old), text(new))
            }
        };
        fact(facts, &pointer_join(at, key), Kind::Annotation, message);
    }
}

/// The types that a schema names; nothing if it leaves that open.
fn type_set(schema: &Map<String, Value>) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::String(one) => Some([one.as_str()].into()),
        Value::Array(several) => Some(several.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn types(at: &str, old: &Map<String, Value>, new: &Map<String, Value>, facts: &mut Vec<Fact>) {
    let place = format!("{at}/type");
    let text = |types: &BTreeSet<&str>| {
        let types: Vec<String> = types.iter().map(|one| format!("`{}`", one_line(one))).collect();
        types.join(" or ")
    };
    let within = |a: &BTreeSet<&str>, b: &BTreeSet<&str>| {
        a.iter()
            .all(|one| b.contains(one) || (*one == "integer" && b.contains("number")))
    };
    match (type_set(old), type_set(new)) {
        (None, None) => {}
        (None, Some(new)) => fact(facts, &place, Kind::Narrowed, format!("only {} now", text(&new))),
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
            fact(facts, &place, kind, format!("{} is now {}", text(&old), text(&new)));
        }
    }
}

/// The values that `enum` or `const` allow, by their canonical form.
fn value_set(schema: &Map<String, Value>) -> Option<(&'static str, BTreeMap<String, String>)> {
    let of = |values: &[Value]| values.iter().map(|one| (canonical(one), value_text(one))).collect();
    match (schema.get("const"), schema.get("enum")) {
        (Some(one), _) => Some(("const", of(std::slice::from_ref(one)))),
        (None, Some(Value::Array(several))) => Some(("enum", of(several))),
        _ => None,
    }
}

fn values(at: &str, old: &Map<String, Value>, new: &Map<String, Value>, facts: &mut Vec<Fact>) {
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
            let gone: Vec<_> = old.iter().filter(|(key, _)| !new.contains_key(*key)).collect();
            let added: Vec<_> = new.iter().filter(|(key, _)| !old.contains_key(*key)).collect();
            let (kind, message) = match (gone.is_empty(), added.is_empty()) {
                (true, true) => return,
                (false, true) => (
                    Kind::Narrowed,
                    format!("gone: {}", list(&mut gone.iter().map(|(_, text)| *text))),
                ),
                (true, false) => (
                    Kind::Widened,
                    format!("new: {}", list(&mut added.iter().map(|(_, text)| *text))),
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

fn bound(
    at: &str,
    keyword: &str,
    larger_is_stricter: bool,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    facts: &mut Vec<Fact>,
) {
    // A least count of nothing is no bound.
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
        (None, Some(new)) => (Kind::Narrowed, format!("`{keyword}` is new: {}", value_text(&new))),
        (Some(old), None) => (Kind::Widened, format!("`{keyword}` is gone: {}", value_text(&old))),
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
            let message = format!("`{keyword}` {} is now {}", value_text(&old), value_text(&new));
            (kind, message)
        }
    };
    fact(facts, &place, kind, message);
}

fn other_rule(at: &str, keyword: &str, old: &Map<String, Value>, new: &Map<String, Value>, facts: &mut Vec<Fact>) {
    let place = format!("{at}/{keyword}");
    let (kind, message) = match (old.get(keyword), new.get(keyword)) {
        (None, None) => return,
        (None, Some(new)) => (Kind::Narrowed, format!("`{keyword}` is new: {}", value_text(new))),
        (Some(old), None) => (Kind::Widened, format!("`{keyword}` is gone: {}", value_text(old))),
        (Some(old), Some(new)) if equal(old, new) => return,
        (Some(old), Some(new)) => (
            Kind::Changed,
            format!("`{keyword}` {} is now {}", value_text(old), value_text(new)),
        ),
    };
    fact(facts, &place, kind, message);
}

fn unique_items(at: &str, old: &Map<String, Value>, new: &Map<String, Value>, facts: &mut Vec<Fact>) {
    let is = |schema: &Map<String, Value>| schema.get("uniqueItems") == Some(&Value::Bool(true));
    let place = format!("{at}/uniqueItems");
    match (is(old), is(new)) {
        (false, true) => fact(facts, &place, Kind::Narrowed, "items must differ now"),
        (true, false) => fact(facts, &place, Kind::Widened, "items may be equal now"),
        _ => {}
    }
}

fn value_text(value: &Value) -> String {
    shorten(&one_line(&value.to_string()), 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Facts as `pointer kind`, words left out.
    fn facts(old: Value, new: Value) -> Vec<String> {
        compare("", &old, &new)
            .iter()
            .map(|fact| format!("{} {:?}", fact.pointer, fact.kind))
            .collect()
    }

    fn property(schema: Value) -> Value {
        json!({"type": "object", "properties": {"p": schema}})
    }

    /// One property with the old schema, then with the new one: the place below it and the kind; turned around, the opposite kind.
    fn check(old: Value, new: Value, place: &str, kind: Kind) {
        let found = facts(property(old.clone()), property(new.clone()));
        assert_eq!(found, [format!("/properties/p{place} {kind:?}")], "{old} → {new}");
        let back = compare("", &property(new.clone()), &property(old.clone()));
        assert_eq!(back.len(), 1, "{new} → {old}: {back:?}");
        assert_eq!(back[0].kind, kind.opposite(), "{new} → {old}");
    }

    #[test]
    fn types_and_values() {
        check(
            json!({"type": "number"}),
            json!({"type": "integer"}),
            "/type",
            Kind::Narrowed,
        );
        check(
            json!({"type": "string"}),
            json!({"type": "integer"}),
            "/type",
            Kind::Changed,
        );
        check(json!({}), json!({"type": "string"}), "/type", Kind::Narrowed);
        check(
            json!({"type": ["string", "null"]}),
            json!({"type": "string"}),
            "/type",
            Kind::Narrowed,
        );
        check(
            json!({"enum": ["a", "b"]}),
            json!({"enum": ["b"]}),
            "/enum",
            Kind::Narrowed,
        );
        check(json!({"enum": ["a"]}), json!({"enum": ["b"]}), "/enum", Kind::Changed);
        check(
            json!({"enum": ["a", 1]}),
            json!({"const": 1.0}),
            "/const",
            Kind::Narrowed,
        );
        check(json!({}), json!({"enum": ["a"]}), "/enum", Kind::Narrowed);
        assert!(
            facts(
                property(json!({"enum": ["a", "b"]})),
                property(json!({"enum": ["b", "a"]}))
            )
            .is_empty()
        );
    }

    #[test]
    fn bounds_and_other_rules() {
        check(json!({"minimum": 1}), json!({"minimum": 2}), "/minimum", Kind::Narrowed);
        check(
            json!({"maximum": 1}),
            json!({"maximum": 2.5}),
            "/maximum",
            Kind::Widened,
        );
        check(json!({}), json!({"maxLength": 5}), "/maxLength", Kind::Narrowed);
        check(json!({}), json!({"pattern": "x"}), "/pattern", Kind::Narrowed);
        check(
            json!({"pattern": "y"}),
            json!({"pattern": "x"}),
            "/pattern",
            Kind::Changed,
        );
        check(json!({"format": "uri"}), json!({}), "/format", Kind::Widened);
        check(json!({}), json!({"uniqueItems": true}), "/uniqueItems", Kind::Narrowed);
        assert!(facts(json!({"minLength": 0, "required": []}), json!({"uniqueItems": false})).is_empty());
    }

    #[test]
    fn properties_and_what_is_required() {
        let p = |more: Value| {
            let mut schema = property(json!({}));
            schema
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            schema
        };
        let empty = json!({"type": "object"});
        let found = compare("", &empty, &p(json!({"required": ["p"]})));
        assert_eq!(
            (found.len(), found[0].kind, found[0].required),
            (1, Kind::PropertyAdded, true)
        );
        assert_eq!(
            facts(p(json!({"required": ["p"]})), empty),
            ["/properties/p PropertyRemoved"]
        );
        assert_eq!(
            facts(p(json!({})), p(json!({"required": ["p"]}))),
            ["/properties/p RequiredAdded"]
        );
        assert_eq!(
            facts(p(json!({"required": ["p"]})), p(json!({}))),
            ["/properties/p RequiredRemoved"]
        );
        assert_eq!(
            facts(p(json!({})), p(json!({"additionalProperties": false}))),
            ["/additionalProperties Narrowed"]
        );
        assert_eq!(
            facts(
                p(json!({"additionalProperties": {"type": "string"}})),
                p(json!({"additionalProperties": true}))
            ),
            ["/additionalProperties Widened"]
        );
        // A name that is only required has no schema; it is known all the same.
        assert_eq!(
            facts(
                json!({"type": "object", "required": ["p"]}),
                p(json!({"required": ["p"]}))
            ),
            Vec::<String>::new()
        );
    }

    #[test]
    fn nested_schemas() {
        check(
            json!({"items": {"type": "string"}}),
            json!({"items": {"type": "string", "maxLength": 3}}),
            "/items/maxLength",
            Kind::Narrowed,
        );
        check(
            json!({}),
            json!({"items": {"type": "string"}}),
            "/items",
            Kind::Narrowed,
        );
        check(json!(true), json!(false), "", Kind::Narrowed);
        assert_eq!(
            facts(property(property(json!({"a": 1}))), property(property(json!({"a": 2})))),
            ["/properties/p/properties/p/a Annotation"]
        );
        assert_eq!(
            facts(
                json!({"properties": {"a/b": {"minimum": 1}}}),
                json!({"properties": {"a/b": {}}})
            ),
            ["/properties/a~1b/minimum Widened"]
        );
    }

    #[test]
    fn unions() {
        let string = json!({"type": "string"});
        let nothing = json!({"type": "null"});
        // One alternative more or less, also where one side is not written as a union.
        assert_eq!(
            facts(
                property(string.clone()),
                property(json!({"anyOf": [string, nothing], "default": null}))
            ),
            ["/properties/p/anyOf/1 Widened", "/properties/p/default Annotation"]
        );
        assert_eq!(
            facts(property(json!({"anyOf": [string, nothing]})), property(string.clone())),
            ["/properties/p/anyOf/1 Narrowed"]
        );
        assert!(facts(json!({"anyOf": [string, nothing]}), json!({"type": ["null", "string"]})).is_empty());
        assert!(facts(json!({"anyOf": [string, nothing]}), json!({"oneOf": [nothing, string]})).is_empty());
        // A change inside one alternative is told there.
        assert_eq!(
            facts(
                json!({"anyOf": [{"type": "string", "maxLength": 9}, nothing]}),
                json!({"anyOf": [nothing, {"type": "string", "maxLength": 5}]})
            ),
            ["/anyOf/1/maxLength Narrowed"]
        );
        // What another alternative covers is not lost.
        assert_eq!(
            facts(
                json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}, nothing]}),
                json!({"anyOf": [{"type": "number"}]})
            ),
            ["/anyOf/1 Narrowed", "/anyOf/2 Narrowed", "/anyOf/0 Widened"]
                .map(str::to_owned)
                .into_iter()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn references_are_followed() {
        let with = |definition: Value| json!({"$defs": {"d": definition}, "properties": {"a": {"$ref": "#/$defs/d"}, "b": {"$ref": "#/$defs/d"}}});
        assert_eq!(
            facts(
                with(json!({"type": "string"})),
                with(json!({"type": "string", "maxLength": 2}))
            ),
            ["/$defs/d/maxLength Narrowed"]
        );
        // Written out or referred to is the same.
        let inline = json!({"properties": {"a": {"type": "string"}, "b": {"allOf": [{"type": "string"}]}}});
        assert!(facts(with(json!({"type": "string"})), inline).is_empty());
        // Recursion ends.
        let tree = |more: Value| json!({"$defs": {"t": {"properties": {"left": {"$ref": "#/$defs/t"}, "v": more}}}, "$ref": "#/$defs/t"});
        assert_eq!(
            facts(tree(json!({})), tree(json!({"type": "string"}))),
            ["/$defs/t/properties/v/type Narrowed"]
        );
        assert!(facts(tree(json!({})), tree(json!({}))).is_empty());
        let circle = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
        assert!(facts(circle.clone(), circle).is_empty());
        assert_eq!(
            facts(
                json!({"$ref": "https://example.org/a"}),
                json!({"$ref": "https://example.org/b"})
            ),
            ["/$ref Changed"]
        );
    }

    #[test]
    fn what_is_no_schema_is_no_crash() {
        for (old, new) in [
            (json!(null), json!({})),
            (json!("x"), json!(3)),
            (json!([]), json!({"type": 3})),
        ] {
            compare("", &old, &new);
            assert!(compare("", &old, &old).is_empty());
        }
    }

    #[test]
    fn wide_unions_end_in_time() {
        let branch = |n: usize| json!({"anyOf": (0..n).map(|i| json!({"properties": {"x": {"anyOf": (0..n).map(|j| json!({"const": i * n + j})).collect::<Vec<_>>()}}})).collect::<Vec<_>>()});
        assert!(!compare("", &branch(12), &branch(13)).is_empty());
    }
}
