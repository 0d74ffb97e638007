//! Other names of the things that calls were given: the words of the records that have the same
//! identifier.
//!
//! A call was given `ev3`; a result shows that `ev3` has the title "Standup". So a claim about the
//! stand-up can be about that call.

use serde_json::Value;

use crate::verbs::fold;
use mcptest_catalog::lexical;
use mcptest_trace::trace::TraceView;
use rustc_hash::{FxHashMap, FxHashSet};

/// The number of records that are kept.
const MAX_RECORDS: usize = 20_000;
/// The number of words of one record.
const MAX_WORDS: usize = 40;
/// The number of records in which one value is looked up.
const MAX_SAME: usize = 8;
/// The number of values of one call that are looked up.
const MAX_VALUES: usize = 20;
/// A longer string names nothing.
const MAX_NAME: usize = 80;
/// The number of characters of a text whose lines are read as records.
const MAX_TEXT: usize = 200_000;

/// The records of a run, by the values in them.
#[derive(Debug, Default)]
pub(crate) struct Records {
    words: Vec<Vec<String>>,
    by_value: FxHashMap<String, Vec<u32>>,
}

impl Records {
    pub(crate) fn new(trace: &TraceView<'_>) -> Self {
        let mut records = Self::default();
        let results = trace.results_by_call();
        for (index, call) in trace.tool_calls.iter().enumerate() {
            let Some(result) = results.get(index).copied().flatten() else {
                continue;
            };
            let parts = || result.content().into_iter().chain(result.extra.values());
            for part in parts() {
                records.add(part);
            }
            // What a call was given belongs to the identifiers that it returned.
            let mut given = Vec::new();
            let mut got = Vec::new();
            if let Some(args) = call.args() {
                collect_values(args, &mut given);
            }
            parts().for_each(|part| collect_values(part, &mut got));
            got.retain(|value| value.contains(|c: char| c.is_ascii_digit()));
            if got.len() <= MAX_VALUES {
                records.push(&given, got);
            }
        }
        records
    }

    /// The folded words of the records that have a value of the arguments.
    pub(crate) fn of(&self, args: &Value) -> FxHashSet<String> {
        let mut values = Vec::new();
        collect_values(args, &mut values);
        let mut words = FxHashSet::default();
        for value in values.iter().take(MAX_VALUES) {
            let records = self.by_value.get(&value.to_lowercase());
            for record in records.into_iter().flatten().take(MAX_SAME) {
                words.extend(self.words[*record as usize].iter().cloned());
            }
        }
        words
    }

    fn push(&mut self, described: &[String], values: Vec<String>) {
        if self.words.len() >= MAX_RECORDS || values.is_empty() || described.is_empty() {
            return;
        }
        let id = self.words.len() as u32;
        let mut words: Vec<String> = Vec::new();
        for value in described {
            words.extend(lexical::words(value).iter().map(|word| fold(word)));
            if words.len() >= MAX_WORDS {
                break;
            }
        }
        self.words.push(words);
        for value in values {
            self.by_value
                .entry(value.to_lowercase())
                .or_default()
                .push(id);
        }
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                let mut described = Vec::new();
                let mut values = Vec::new();
                for (key, value) in map {
                    let Some(text) = name_of(value) else {
                        continue;
                    };
                    // `"teacher": "Ms Okafor"`: she is the teacher.
                    if !value.is_number() && !matches!(key.as_str(), "type" | "text" | "id") {
                        self.push(std::slice::from_ref(key), vec![text.clone()]);
                    }
                    described.push(text.clone());
                    values.push(text);
                }
                self.push(&described, values);
                map.values().for_each(|value| self.add(value));
            }
            Value::Array(list) => list.iter().for_each(|value| self.add(value)),
            Value::String(text) => self.add_text(text),
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        let trimmed = text.trim_start();
        if trimmed.starts_with(['{', '['])
            && trimmed.len() < 1_000_000
            && let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(trimmed)
        {
            self.add(&inner);
            return;
        }
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        for line in text[..end].lines() {
            if line.len() > 300 {
                continue;
            }
            let names: Vec<String> = line
                .split(|c: char| c.is_whitespace() || ",;:()[]\"'".contains(c))
                .filter(|part| part.len() > 1 && part.contains(|c: char| c.is_ascii_digit()))
                .map(str::to_owned)
                .collect();
            if names.len() <= 6 {
                self.push(&[line.to_owned()], names);
            }
        }
    }
}

/// The text of a value that can name something.
fn name_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if (1..=MAX_NAME).contains(&text.len()) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn collect_values(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| collect_values(value, found)),
        Value::Array(list) => list.iter().for_each(|value| collect_values(value, found)),
        _ if found.len() < 2 * MAX_VALUES => found.extend(name_of(value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use mcptest_trace::trace::Trace;
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_records_with_the_same_identifier() {
        let trace: Trace = serde_json::from_value(json!({
            "tool_calls": [
                {"id": "a", "name": "list_events", "args": {}},
                {"id": "b", "name": "upload", "args": {"name": "Lease"}},
                {"id": "c", "name": "search", "args": {}},
            ],
            "tool_results": [
                {"call_id": "a", "content": [
                    {"id": "ev1", "title": "Standup"}, {"id": "ev2", "title": "Budget review"}]},
                {"call_id": "b", "content": {"document": "doc-31"}},
                {"call_id": "c", "content": "B-201 Tidal Rivers\nB-377 Sand"},
            ],
        }))
        .unwrap();
        let records = Records::new(&trace);
        let words = |args: Value| records.of(&args);
        assert!(words(json!({"id": "ev2"})).contains(&fold("budget")));
        assert!(!words(json!({"id": "ev2"})).contains(&fold("standup")));
        assert!(words(json!({"document": "doc-31"})).contains(&fold("lease")));
        assert!(words(json!({"book": "B-201"})).contains(&fold("rivers")));
        assert!(!words(json!({"book": "B-201"})).contains(&fold("sand")));
        assert!(words(json!({})).is_empty());
    }
}
