//! Values that a JSON Schema accepts: arguments for a first call, answers for a mock.
//!
//! Required properties are filled, others only where the schema demands it. Values come from the
//! schema itself (`const`, `enum`, `examples`, `default`, an example in a description), else from
//! the name of the property and its type. Every result is checked by a validator; what cannot be
//! made is given up, with a reason.

mod effective;
mod examples;
mod pattern;
mod strings;

use std::fmt;

use serde_json::{Map, Number, Value, json};

use effective::Effective;

/// The deepest level of a value.
const MAX_DEPTH: usize = 12;

/// The number of elements of a list, at most.
const MAX_ITEMS: u64 = 32;

/// The number of schemas that are tried for one value: alternatives of alternatives multiply.
const MAX_TRIES: usize = 256;

/// The reason why no value was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SynthesisError {
    /// The schema is not a valid schema.
    Unusable(String),
    /// No value that was tried is valid; the reason of the last one.
    NoValue(String),
}

impl fmt::Display for SynthesisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(reason) => write!(f, "its schema cannot be used: {reason}"),
            Self::NoValue(reason) => write!(f, "no value fits its schema: {reason}"),
        }
    }
}

/// The source of values for properties that the schema leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hints {
    /// Defaults, examples, names and descriptions.
    All,
    /// Types and bounds only.
    None,
}

/// An object that a schema accepts.
///
/// # Errors
/// The schema cannot be used, or no value was found.
pub fn object(schema: Option<&Value>) -> Result<Map<String, Value>, SynthesisError> {
    let Some(schema) = schema else {
        return Ok(Map::new());
    };
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| SynthesisError::Unusable(short(&error.masked().to_string())))?;
    let mut reason = String::from("its references and alternatives could not be resolved");
    for hints in [Hints::All, Hints::None] {
        let mut maker = Maker {
            root: schema,
            hints,
            tries: 0,
        };
        for candidate in maker.candidates(schema, Some("object")) {
            let Some(value @ Value::Object(_)) = maker.value(&candidate, "", 0) else {
                "it demands what could not be made up".clone_into(&mut reason);
                continue;
            };
            match validator.validate(&value) {
                Ok(()) => {
                    if let Value::Object(made) = value {
                        return Ok(made);
                    }
                }
                Err(error) => {
                    let place = error.instance_path().as_str().to_owned();
                    let message = short(&error.masked().to_string());
                    reason = if place.is_empty() {
                        message
                    } else {
                        format!("{place}: {message}")
                    };
                }
            }
        }
    }
    Err(SynthesisError::NoValue(reason))
}

fn short(text: &str) -> String {
    mcptest_json::text::shorten(&mcptest_json::text::one_line(text), 160)
}

/// Makes values for the parts of one schema.
struct Maker<'a> {
    root: &'a Value,
    hints: Hints,
    tries: usize,
}

impl Maker<'_> {
    /// The schema without references and combinations, once for each alternative.
    fn candidates(&mut self, schema: &Value, kind: Option<&str>) -> Vec<Effective> {
        let found = Effective::all(schema, self.root, MAX_TRIES.saturating_sub(self.tries));
        self.tries += found.len();
        let fits = |one: &Effective| match kind {
            Some(kind) => one.kind().is_none_or(|own| own == kind),
            None => true,
        };
        let (mut fitting, others): (Vec<_>, Vec<_>) = found.into_iter().partition(fits);
        // Null is a value for those who have nothing to say.
        fitting.sort_by_key(|one| one.kind() == Some("null"));
        fitting.extend(others);
        fitting
    }

    /// A value for a schema of a property with this name.
    fn part(&mut self, schema: &Value, name: &str, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH || self.tries >= MAX_TRIES {
            return None;
        }
        match schema {
            Value::Bool(true) => return Some(json!({})),
            Value::Bool(false) => return None,
            _ => {}
        }
        let candidates = self.candidates(schema, None);
        let several = candidates.len() > 1;
        for candidate in &candidates {
            let Some(value) = self.value(candidate, name, depth) else {
                continue;
            };
            // With one candidate the check of the whole decides.
            if !several || candidate.accepts(&value, self.root) {
                return Some(value);
            }
        }
        None
    }

    fn value(&mut self, schema: &Effective, name: &str, depth: usize) -> Option<Value> {
        if let Some(fixed) = schema.fixed() {
            return Some(fixed);
        }
        if self.hints == Hints::All
            && let Some(given) = schema.given()
        {
            return Some(given);
        }
        let kind = schema.kind().unwrap_or_else(|| examples::kind_of(name));
        match kind {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, name, depth),
            "integer" | "number" => self.number(schema, name, kind == "integer"),
            "boolean" => {
                Some((self.hints == Hints::All && examples::is_harmless_flag(name)).into())
            }
            "null" => Some(Value::Null),
            _ => {
                let hints = (self.hints == Hints::All).then_some(name);
                strings::string(schema, hints).map(Value::String)
            }
        }
    }

    fn object(&mut self, schema: &Effective, depth: usize) -> Option<Value> {
        let mut made = Map::new();
        let properties = schema.properties();
        let mut names: Vec<String> = schema.required();
        let mut at = 0;
        while let Some(name) = names.get(at).cloned() {
            at += 1;
            if made.contains_key(&name) {
                continue;
            }
            let value = match properties.and_then(|all| all.get(&name)) {
                Some(property) => self.part(property, &name, depth + 1)?,
                None => match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => return None,
                    Some(open @ Value::Object(_)) => self.part(open, &name, depth + 1)?,
                    _ => strings::by_name(&name).into(),
                },
            };
            names.extend(schema.dependent(&name));
            made.insert(name, value);
        }
        let least = schema.count("minProperties").unwrap_or(0);
        for (name, property) in properties.into_iter().flatten() {
            if made.len() as u64 >= least.min(MAX_ITEMS) {
                break;
            }
            if !made.contains_key(name)
                && let Some(value) = self.part(property, name, depth + 1)
            {
                made.insert(name.clone(), value);
            }
        }
        let mut index = 0;
        while (made.len() as u64) < least.min(MAX_ITEMS) && index < MAX_ITEMS {
            index += 1;
            let name = schema.property_name(index)?;
            let value = match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => return None,
                Some(open @ Value::Object(_)) => self.part(open, &name, depth + 1)?,
                _ => "value".into(),
            };
            made.insert(name, value);
        }
        Some(Value::Object(made))
    }

    fn array(&mut self, schema: &Effective, name: &str, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        for item in prefix.into_iter().flatten() {
            items.push(self.part(item, name, depth + 1)?);
        }
        let least = schema.count("minItems").unwrap_or(1).min(MAX_ITEMS);
        let most = schema.count("maxItems").unwrap_or(u64::MAX);
        let wanted = least.max(1).min(most);
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let item = schema.get("items").or_else(|| schema.get("contains"));
        // `tags` is a list of things called `tag`.
        let single = name.strip_suffix('s').unwrap_or(name);
        while (items.len() as u64) < wanted {
            let value = match item {
                Some(item) => self.part(item, single, depth + 1),
                None => Some(strings::by_name(single).into()),
            };
            let Some(value) = value else {
                // A list without elements may do.
                if schema.count("minItems").unwrap_or(0) == 0 {
                    break;
                }
                return None;
            };
            let value = if unique && items.contains(&value) {
                let options = item.map_or(&[][..], |item| enum_of(item));
                let other = options.iter().find(|one| !items.contains(*one)).cloned();
                other.or_else(|| varied(&value, items.len()))?
            } else {
                value
            };
            items.push(value);
        }
        Some(Value::Array(items))
    }

    fn number(&self, schema: &Effective, name: &str, whole: bool) -> Option<Value> {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let step = bound("multipleOf").filter(|step| *step > 0.0 && step.is_finite());
        let unit = step.unwrap_or(if whole { 1.0 } else { 0.5 });
        let mut low = bound("minimum").unwrap_or(f64::NEG_INFINITY);
        if let Some(above) = bound("exclusiveMinimum").filter(|above| *above >= low) {
            low = above + unit;
        }
        let mut high = bound("maximum").unwrap_or(f64::INFINITY);
        if let Some(below) = bound("exclusiveMaximum").filter(|below| *below <= high) {
            high = below - unit;
        }
        let wish = match self.hints {
            Hints::All => examples::number(schema.description(), name),
            Hints::None => 1.0,
        };
        let mut value = wish.clamp(low.min(high), high.max(low));
        if let Some(step) = step {
            value = (value / step).round() * step;
            if value < low {
                value += step;
            }
            if value > high {
                value -= step;
            }
        } else if whole {
            value = value.ceil();
            if value > high {
                value = high.floor();
            }
        }
        if whole || value.fract() == 0.0 {
            // Beyond this range a float does not represent every whole number.
            if value.abs() < 9e15 {
                #[expect(clippy::cast_possible_truncation, reason = "whole, and in range")]
                return Some((value as i64).into());
            }
            let exact = [schema.get("minimum"), schema.get("maximum")];
            return exact.into_iter().flatten().next().cloned();
        }
        Number::from_f64(value).map(Value::Number)
    }
}

fn enum_of(schema: &Value) -> &[Value] {
    let values = schema.get("enum").and_then(Value::as_array);
    values.map_or(&[], Vec::as_slice)
}

/// Another value of the same type.
fn varied(value: &Value, index: usize) -> Option<Value> {
    match value {
        Value::String(text) => Some(format!("{text}{}", index + 1).into()),
        Value::Number(number) => {
            let step = i64::try_from(index).ok()?;
            Some(number.as_i64()?.checked_add(step)?.into())
        }
        Value::Bool(flag) => Some((!flag).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
