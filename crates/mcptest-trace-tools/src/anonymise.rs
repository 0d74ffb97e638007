//! Traces without personal data: consistent placeholders, structure kept.
//!
//! Personal data is found in two ways. By its form: e-mail addresses, phone and card numbers,
//! account numbers (IBAN), social security numbers, IP and MAC addresses, home folders. By its key:
//! `first_name`, `phone`, `date_of_birth`, `user_id`, … in arguments and in results that are JSON.
//! A value that a key gives away is then replaced wherever it occurs in the traces, the closing
//! message included.
//!
//! The same value always gets the same placeholder, of the same type and form
//! (`user1@example.com`), so that calls that were equal stay equal, and schemas still accept them.
//! Keys, tool names, ids of calls, catalogs and figures are not touched.
//!
//! Names in free text that no key gives away cannot be found this way.

mod forms;
mod keys;
mod placeholders;

use std::collections::HashSet;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

pub use placeholders::Kind;

use keys::PersonalKeys;
use placeholders::Placeholders;

/// The first pass: the values that keys give away, over all traces.
#[derive(Debug, Default)]
pub struct Collector {
    keys: PersonalKeys,
    placeholders: Placeholders,
    /// Values to replace wherever they occur.
    known: Vec<(String, Kind)>,
    seen: HashSet<String>,
}

impl Collector {
    /// A collector that takes the values of these further keys as personal too.
    #[must_use]
    pub fn new(more_keys: &[String]) -> Self {
        Self {
            keys: PersonalKeys::new(more_keys),
            ..Self::default()
        }
    }

    /// Collects the personal values of a trace.
    pub fn observe(&mut self, trace: &Value) {
        let mut found = Vec::new();
        for (key, part) in trace.as_object().into_iter().flatten() {
            if !UNTOUCHED.contains(&key.as_str()) {
                visit(part, &self.keys, &mut |kind, value| {
                    found.push((kind, value))
                });
            }
        }
        for (kind, value) in found {
            if kind.is_searched_for(&value) && self.seen.insert(value.clone()) {
                self.known.push((value, kind));
            }
        }
    }

    /// Ends the first pass.
    #[must_use]
    pub fn finish(mut self) -> Anonymiser {
        // In the order of their first occurrence: the numbers of placeholders follow from it.
        let replacements = self
            .known
            .iter()
            .map(|(value, kind)| self.placeholders.of(*kind, value))
            .collect();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(self.known.iter().map(|(value, _)| value))
            .ok();
        Anonymiser {
            keys: self.keys,
            placeholders: self.placeholders,
            finder,
            replacements,
        }
    }
}

/// Keys of a trace that are not touched: names, figures, and what servers offer to everyone.
const UNTOUCHED: &[&str] = &["test", "model", "run", "catalog", "distractors"];

/// The keys below a key of a trace that are not touched: names, figures, and the ids that join
/// calls with results.
fn untouched_below(key: &str) -> Option<&'static [&'static str]> {
    match key {
        "tool_calls" => Some(&["id", "name", "server", "caller", "turn"]),
        "tool_results" => Some(&[
            "call_id",
            "is_error",
            "error_kind",
            "fault",
            "attack",
            "contained",
        ]),
        "conversation" => Some(&["tokens"]),
        "attacks" => Some(&["name", "place", "payload", "carrier", "target"]),
        _ => None,
    }
}

/// The parts of a trace in which personal data can be.
fn parts(trace: &mut Value) -> Vec<&mut Value> {
    let mut parts = Vec::new();
    for (key, value) in trace.as_object_mut().into_iter().flatten() {
        let below = untouched_below(key);
        match (value, below) {
            _ if UNTOUCHED.contains(&key.as_str()) => {}
            (value, None) => parts.push(value),
            (value, Some(untouched)) => {
                let objects = match value {
                    Value::Array(items) => items.iter_mut().collect(),
                    one => vec![one],
                };
                for entries in objects.into_iter().filter_map(Value::as_object_mut) {
                    let touched = |(key, _): &(&String, _)| !untouched.contains(&key.as_str());
                    parts.extend(entries.iter_mut().filter(touched).map(|(_, value)| value));
                }
            }
        }
    }
    parts
}

/// Calls a function for each personal value, also in JSON inside of strings.
fn visit(value: &Value, keys: &PersonalKeys, found: &mut dyn FnMut(Kind, String)) {
    match value {
        Value::Array(items) => {
            for item in items {
                visit(item, keys, found);
            }
        }
        Value::Object(entries) => {
            let personal = keys.has_personal(entries);
            for (key, value) in entries {
                match (keys.kind(key, personal), value) {
                    (Some(kind), Value::String(text)) => found(kind, text.clone()),
                    (Some(kind), Value::Number(number)) => found(kind, number.to_string()),
                    _ => visit(value, keys, found),
                }
            }
        }
        Value::String(text) => {
            if let Some(inner) = inner_json(text) {
                visit(&inner, keys, found);
            }
        }
        _ => {}
    }
}

/// The JSON object or array that a string consists of. Nesting is bounded by the JSON reader.
fn inner_json(text: &str) -> Option<Value> {
    let text = text.trim();
    let looks_like = (text.starts_with('{') && text.ends_with('}'))
        || (text.starts_with('[') && text.ends_with(']'));
    // One level: a string inside of this JSON is not parsed again as an object.
    looks_like
        .then(|| serde_json::from_str(text).ok())
        .flatten()
}

/// The second pass: replaces personal data.
#[derive(Debug)]
pub struct Anonymiser {
    keys: PersonalKeys,
    placeholders: Placeholders,
    finder: Option<AhoCorasick>,
    /// The placeholders of the values that the finder finds, by their position.
    replacements: Vec<String>,
}

impl Anonymiser {
    /// Replaces the personal data of a trace.
    pub fn apply(&mut self, trace: &mut Value) {
        for part in parts(trace) {
            self.value(part);
        }
    }

    /// The number of replaced values of each kind, by first occurrence.
    #[must_use]
    pub fn counts(&self) -> Vec<(Kind, usize)> {
        self.placeholders.counts()
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => {
                for item in items {
                    self.value(item);
                }
            }
            Value::Object(entries) => {
                let personal = self.keys.has_personal(entries);
                for (key, value) in entries.iter_mut() {
                    match (self.keys.kind(key, personal), &mut *value) {
                        (Some(kind), Value::String(text)) if !text.is_empty() => {
                            *text = self.placeholders.of(kind, text);
                        }
                        (Some(kind), Value::Number(number)) => {
                            *value = self
                                .placeholders
                                .number_of(kind, &number.to_string())
                                .into();
                        }
                        _ => self.value(value),
                    }
                }
            }
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    /// The string without personal data.
    fn text(&mut self, text: &str) -> String {
        if let Some(mut inner) = inner_json(text) {
            let before = inner.clone();
            self.value(&mut inner);
            return if inner == before {
                text.to_owned()
            } else {
                inner.to_string()
            };
        }
        let text = forms::replace(text, &mut self.placeholders);
        self.replace_known(&text)
    }

    fn replace_known(&self, text: &str) -> String {
        let Some(finder) = &self.finder else {
            return text.to_owned();
        };
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for found in finder.find_iter(text) {
            // A part of a longer word is something else.
            let outside = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let whole = outside(text[..found.start()].chars().next_back())
                && outside(text[found.end()..].chars().next());
            if whole {
                out.push_str(&text[end..found.start()]);
                out.push_str(&self.replacements[found.pattern().as_usize()]);
                end = found.end();
            }
        }
        out.push_str(&text[end..]);
        out
    }
}

#[cfg(test)]
mod tests;
