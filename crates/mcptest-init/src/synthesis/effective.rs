//! A schema without references and combinations.

use serde_json::{Map, Value, json};

use super::pattern;

/// The number of references and combinations that are resolved in a row.
const MAX_STEPS: usize = 64;

/// The number of schemas that are expanded for one value.
const MAX_EXPANDED: usize = 256;

/// The number of schemas that one `allOf` combines.
const MAX_MEMBERS: usize = 48;

/// The values of `required` that are considered.
const MAX_REQUIRED: usize = 256;

/// One alternative of a schema: `$ref`, `allOf`, `anyOf`, `oneOf`, `if` and `dependentSchemas` are
/// resolved on its first level.
#[derive(Debug, Clone, Default)]
pub(super) struct Effective(Map<String, Value>);

/// Keys of which the larger value is the stricter one.
const LOWER_BOUNDS: [&str; 5] = [
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
];

/// Keys of which the smaller value is the stricter one.
const UPPER_BOUNDS: [&str; 5] = [
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
];

impl Effective {
    /// All alternatives, at most `max`, in the order of the schema.
    pub(super) fn all(schema: &Value, root: &Value, max: usize) -> Vec<Self> {
        let mut done = Vec::new();
        let mut open = vec![(schema_map(schema), 0)];
        let mut expanded = 0;
        while let Some((map, steps)) = open.pop() {
            expanded += 1;
            if done.len() >= max || expanded > MAX_EXPANDED {
                break;
            }
            match expand(map, root, steps) {
                Expanded::Done(map) => done.push(Self(map)),
                // The first alternative is taken from the stack first.
                Expanded::Further(further) if open.len() < max => {
                    open.extend(further.into_iter().rev().map(|map| (map, steps + 1)));
                }
                Expanded::Further(_) | Expanded::Never => {}
            }
        }
        done
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(super) fn count(&self, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        value.as_u64().or_else(|| {
            let float = value.as_f64().filter(|float| *float >= 0.0)?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative; a float beyond the range becomes the largest number"
            )]
            Some(float as u64)
        })
    }

    pub(super) fn description(&self) -> &str {
        let text = self.get("description").and_then(Value::as_str);
        text.unwrap_or_default()
    }

    /// The type, by name or by the keywords that only one type has.
    pub(super) fn kind(&self) -> Option<&str> {
        match self.get("type") {
            Some(Value::String(kind)) => return Some(kind),
            Some(Value::Array(kinds)) => {
                let mut kinds = kinds.iter().filter_map(Value::as_str);
                let first = kinds.clone().next();
                return kinds.find(|kind| *kind != "null").or(first);
            }
            _ => {}
        }
        let has = |keys: &[&str]| keys.iter().any(|key| self.0.contains_key(*key));
        if has(&[
            "properties",
            "required",
            "additionalProperties",
            "minProperties",
        ]) {
            Some("object")
        } else if has(&["items", "prefixItems", "minItems"]) {
            Some("array")
        } else if has(&["pattern", "minLength", "maxLength", "format"]) {
            Some("string")
        } else if has(&LOWER_BOUNDS[..2]) || has(&UPPER_BOUNDS[..2]) || has(&["multipleOf"]) {
            Some("number")
        } else {
            None
        }
    }

    /// The only value, or the first of those that are listed.
    pub(super) fn fixed(&self) -> Option<Value> {
        if let Some(only) = self.get("const") {
            return Some(only.clone());
        }
        let values = self.get("enum").and_then(Value::as_array)?;
        let first = values.iter().find(|value| !value.is_null());
        first.or(values.first()).cloned()
    }

    /// The value that the author of the schema gives.
    pub(super) fn given(&self) -> Option<Value> {
        let listed = self.get("examples").and_then(Value::as_array);
        let example = listed.and_then(|examples| examples.first());
        let example = example.or_else(|| self.get("example"));
        let default = self.get("default").filter(|default| !default.is_null());
        // An empty default is a way to say that there is none.
        let default = default.filter(|default| **default != json!(""));
        example.or(default).cloned()
    }

    pub(super) fn properties(&self) -> Option<&Map<String, Value>> {
        self.get("properties").and_then(Value::as_object)
    }

    pub(super) fn required(&self) -> Vec<String> {
        let names = self.get("required").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.take(MAX_REQUIRED).map(str::to_owned).collect()
    }

    /// The properties that a property requires.
    pub(super) fn dependent(&self, name: &str) -> Vec<String> {
        let keys = ["dependentRequired", "dependencies"];
        let names = keys
            .iter()
            .filter_map(|key| self.get(key)?.get(name)?.as_array())
            .flatten();
        names
            .filter_map(Value::as_str)
            .take(MAX_REQUIRED)
            .map(str::to_owned)
            .collect()
    }

    /// The name of a property that the schema does not name itself.
    pub(super) fn property_name(&self, index: u64) -> Option<String> {
        let names = self.get("propertyNames");
        let written = names.and_then(|names| names.get("pattern")?.as_str());
        let patterns = self.get("patternProperties").and_then(Value::as_object);
        let written = written.or_else(|| patterns?.keys().next().map(String::as_str));
        if let Some(values) = names.and_then(|names| names.get("enum")?.as_array()) {
            let at = usize::try_from(index).ok()?.checked_sub(1)?;
            return values.get(at)?.as_str().map(str::to_owned);
        }
        match written {
            Some(written) => {
                let longer = usize::try_from(index).ok()?;
                pattern::matching(written, longer)
            }
            None => Some(format!("key{index}")),
        }
    }

    /// Returns true if a value is valid for this alternative.
    pub(super) fn accepts(&self, value: &Value, root: &Value) -> bool {
        let mut schema = self.0.clone();
        // References lead into the whole schema.
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = root.get(key) {
                schema.insert(key.to_owned(), definitions.clone());
            }
        }
        jsonschema::validator_for(&Value::Object(schema))
            .is_ok_and(|validator| validator.is_valid(value))
    }
}

fn schema_map(schema: &Value) -> Map<String, Value> {
    match schema {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    }
}

enum Expanded {
    /// Nothing is left to resolve.
    Done(Map<String, Value>),
    /// Alternatives, each with one combination less.
    Further(Vec<Map<String, Value>>),
    /// A reference that leads nowhere, or in a circle.
    Never,
}

/// Resolves one reference or combination.
fn expand(mut map: Map<String, Value>, root: &Value, steps: usize) -> Expanded {
    if steps > MAX_STEPS {
        return Expanded::Never;
    }
    if let Some(reference) = map.shift_remove("$ref") {
        let target = reference.as_str().and_then(|text| target(text, root));
        return match target {
            Some(Value::Object(target)) => Expanded::Further(vec![merged(map, target)]),
            Some(Value::Bool(true)) => Expanded::Further(vec![map]),
            _ => Expanded::Never,
        };
    }
    // Choices first: merging brings further ones.
    for key in ["oneOf", "anyOf"] {
        if let Some(Value::Array(members)) = map.shift_remove(key) {
            let each = members.iter().filter_map(|member| match member {
                Value::Object(member) => Some(merged(map.clone(), member)),
                Value::Bool(true) => Some(map.clone()),
                _ => None,
            });
            return Expanded::Further(each.collect());
        }
    }
    if let Some(Value::Array(members)) = map.shift_remove("allOf") {
        if members.len() > MAX_MEMBERS {
            return Expanded::Never;
        }
        let all = members.iter().fold(map, |map, member| match member {
            Value::Object(member) => merged(map, &inlined(member, root)),
            _ => map,
        });
        return Expanded::Further(vec![all]);
    }
    if let Some(condition) = map.shift_remove("if") {
        let branch = |key: &str| schema_map(map.get(key).unwrap_or(&Value::Null));
        let (then, otherwise) = (branch("then"), branch("else"));
        map.shift_remove("then");
        map.shift_remove("else");
        let holds = merged(merged(map.clone(), &then), &schema_map(&condition));
        return Expanded::Further(vec![merged(map.clone(), &otherwise), holds]);
    }
    Expanded::Done(map)
}

/// A member of `allOf` whose own reference is resolved, so that two of them do not collide.
fn inlined(member: &Map<String, Value>, root: &Value) -> Map<String, Value> {
    let mut map = member.clone();
    for _ in 0..MAX_STEPS {
        let Some(reference) = map.shift_remove("$ref") else {
            break;
        };
        match reference.as_str().and_then(|text| target(text, root)) {
            Some(Value::Object(target)) => map = merged(map, target),
            _ => break,
        }
    }
    map
}

/// The part of the schema that a reference names. Others than `#/…` are not resolved.
fn target<'a>(reference: &str, root: &'a Value) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(root);
    }
    root.pointer(pointer)
}

/// A schema that demands what two schemas demand, as far as it can be written as one.
fn merged(mut one: Map<String, Value>, other: &Map<String, Value>) -> Map<String, Value> {
    for (key, value) in other {
        let own = one.get(key).cloned();
        let both = match (key.as_str(), own) {
            (_, None) => value.clone(),
            ("properties" | "$defs" | "definitions", Some(Value::Object(own))) => {
                let theirs = value.as_object().cloned().unwrap_or_default();
                Value::Object(merged_properties(own, theirs))
            }
            ("required", Some(Value::Array(mut own))) => {
                let more = value.as_array().into_iter().flatten();
                let more: Vec<Value> = more.filter(|name| !own.contains(name)).cloned().collect();
                own.extend(more);
                own.into()
            }
            ("allOf", Some(Value::Array(mut own))) => {
                own.extend(value.as_array().into_iter().flatten().cloned());
                own.into()
            }
            // A second choice is kept as a separate condition.
            ("anyOf" | "oneOf", Some(own)) => {
                let mut all = one
                    .get("allOf")
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default();
                all.push(json!({ key.as_str(): value }));
                one.insert("allOf".to_owned(), all.into());
                own
            }
            ("enum", Some(Value::Array(own))) => {
                let theirs = value.as_array().cloned().unwrap_or_default();
                own.into_iter().filter(|one| theirs.contains(one)).collect()
            }
            ("type", Some(own)) => narrower(own, value),
            (key, Some(own)) if LOWER_BOUNDS.contains(&key) => {
                stricter(own, value, |own, other| other > own)
            }
            (key, Some(own)) if UPPER_BOUNDS.contains(&key) => {
                stricter(own, value, |own, other| other < own)
            }
            (_, Some(own)) => own,
        };
        one.insert(key.clone(), both);
    }
    one
}

fn merged_properties(mut one: Map<String, Value>, other: Map<String, Value>) -> Map<String, Value> {
    for (name, theirs) in other {
        let both = match one.get(&name) {
            Some(own) if *own != theirs => json!({"allOf": [own, theirs]}),
            _ => theirs,
        };
        one.insert(name, both);
    }
    one
}

/// The types that both schemas allow; the first one's if there are none.
fn narrower(own: Value, other: &Value) -> Value {
    let list = |value: &Value| match value {
        Value::Array(kinds) => kinds.clone(),
        one => vec![one.clone()],
    };
    let theirs = list(other);
    // Whole numbers are numbers.
    let is_theirs = |kind: &Value| {
        theirs.contains(kind) || (*kind == json!("integer") && theirs.contains(&json!("number")))
    };
    let both: Vec<Value> = list(&own).into_iter().filter(is_theirs).collect();
    match both.as_slice() {
        [] if own == json!("number") && theirs.contains(&json!("integer")) => json!("integer"),
        [] => own,
        [only] => only.clone(),
        _ => both.into(),
    }
}

fn stricter(own: Value, other: &Value, replaces: fn(f64, f64) -> bool) -> Value {
    match (own.as_f64(), other.as_f64()) {
        (Some(mine), Some(theirs)) if replaces(mine, theirs) => other.clone(),
        _ => own,
    }
}
