//! Volatile values, which differ in every run: found by rules, replaced by placeholders in a
//! recording, and restored for the replay.
//!
//! In recorded exchanges a UUID is `<uuid:1>`. The same value has the same placeholder throughout a
//! run, in messages of the model and in answers of tools. One table at the end of the file holds
//! the values. So two recordings of the same behaviour differ in that table only, and in a replay
//! every gate sees the values of the live run.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// A rule that finds volatile values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The name of the placeholders: `order` gives `<order:1>`. A rule with the name of a built-in
    /// rule replaces it.
    pub name: String,
    /// A regular expression. If it has a group, the first group is the value.
    pub pattern: String,
}

/// The rule that also finds JSON numbers: it is applied to `"key":number`.
const EPOCH: &str = "epoch";

/// The built-in rules: name, pattern and description.
pub const BUILTIN: [(&str, &str, &str); 5] = [
    (
        "uuid",
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        "UUIDs",
    ),
    (
        "timestamp",
        r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?",
        "timestamps with date and time of day, as in ISO 8601",
    ),
    (
        "date",
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\b",
        "HTTP dates",
    ),
    (
        "id",
        r"\b(?:req|call|toolu|srvtoolu|msg|resp|chatcmpl|fc|rs|gen)[_-][A-Za-z]{0,40}[0-9][A-Za-z0-9]{7,}\b",
        "ids that providers assign to requests, responses and calls",
    ),
    (
        EPOCH,
        r#""(?:\w*(?:[Tt]ime|[Tt]imestamp|[Dd]ate|_at|_ts|[a-z]At)|created|updated|modified|expires|iat|exp|nbf|ts|now)\\?"\s*:\s*([12]\d{9}(?:\d{3}){0,3}(?:\.\d+)?)\b"#,
        "seconds since 1970 (or milli-, micro-, nanoseconds) in JSON, as strings or numbers, under a \
         key that names a time",
    ),
];

/// The maximum number of rules: a cassette from another source must not slow down its replay.
const MAX_RULES: usize = 100;

/// The rule of text that looks like a placeholder but is not one.
const LITERAL: &str = "literal";
const PLACEHOLDER: &str = r"<[a-z][a-z0-9_-]{0,31}:[0-9]{1,9}>";

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RuleError {
    /// The index of the rule, from 0.
    pub index: usize,
    /// True if the name is wrong, not the pattern.
    pub in_name: bool,
    /// The problem.
    pub message: String,
}

/// Compiled rules.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<(Rule, Regex)>,
}

impl Rules {
    /// Compiles the suite's own rules, which take precedence, and the built-in ones. A rule with
    /// the name of a built-in one replaces it.
    ///
    /// # Errors
    /// The first rule that cannot be used.
    pub fn new(own: &[Rule]) -> Result<Self, RuleError> {
        let mut all: Vec<Rule> = own.to_vec();
        for (name, pattern, _) in BUILTIN {
            if !own.iter().any(|rule| rule.name == name) {
                all.push(Rule {
                    name: name.to_owned(),
                    pattern: pattern.to_owned(),
                });
            }
        }
        Self::compile(&all)
    }

    /// Compiles exactly these rules: those that a cassette was recorded with.
    ///
    /// # Errors
    /// The first rule that cannot be used.
    pub fn compile(rules: &[Rule]) -> Result<Self, RuleError> {
        if rules.len() > MAX_RULES {
            return Err(RuleError {
                index: MAX_RULES,
                in_name: true,
                message: format!("more than {MAX_RULES} rules"),
            });
        }
        let mut compiled: Vec<(Rule, Regex)> = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let fail = |in_name, message: String| RuleError {
                index,
                in_name,
                message,
            };
            let mut letters = rule.name.chars();
            let is_name = letters
                .next()
                .is_some_and(|first| first.is_ascii_lowercase())
                && letters
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-')
                && rule.name.len() <= 32;
            if !is_name {
                let message = "a rule name starts with a lowercase letter, followed by lowercase \
                               letters, digits, `_` and `-`; at most 32 characters";
                return Err(fail(true, message.to_owned()));
            }
            if rule.name == LITERAL || compiled.iter().any(|(other, _)| other.name == rule.name) {
                return Err(fail(
                    true,
                    format!("the rule name `{}` is already in use", rule.name),
                ));
            }
            let regex = regex::RegexBuilder::new(&rule.pattern)
                .size_limit(1 << 20)
                .build()
                .map_err(|error| fail(false, format!("not a regular expression: {error}")))?;
            if regex.is_match("") {
                return Err(fail(
                    false,
                    "the pattern matches the empty string, so it would match everywhere".to_owned(),
                ));
            }
            compiled.push((rule.clone(), regex));
        }
        Ok(Self { rules: compiled })
    }

    /// The rules as recorded in cassettes.
    #[must_use]
    pub fn written(&self) -> Vec<Rule> {
        self.rules.iter().map(|(rule, _)| rule.clone()).collect()
    }

    /// Returns true if a number under a key is a point in time. Only the key can show that.
    fn is_epoch(&self, key: &str, number: &Number) -> bool {
        let Some((_, regex)) = self.rules.iter().find(|(rule, _)| rule.name == EPOCH) else {
            return false;
        };
        let text = format!("\"{key}\":{number}");
        let found = regex.captures(&text);
        let value = found.and_then(|groups| groups.get(1).or_else(|| groups.get(0)));
        value.is_some_and(|value| value.end() == text.len() && value.as_str() == number.to_string())
    }

    /// The volatile values of a string: their ranges, and the names of their rules. The earliest
    /// match wins, then the first rule.
    fn find(&self, text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
        let mut found = Vec::new();
        let mut at = 0;
        // Most texts contain no placeholder; the check is cheap.
        let literal = text.contains('<').then(placeholder);
        while at < text.len() {
            let literal = literal.as_ref().and_then(|regex| regex.find_at(text, at));
            let literal = literal.map(|found| (found.range(), LITERAL));
            let by_rule = self.rules.iter().filter_map(|(rule, regex)| {
                let groups = regex.captures_at(text, at)?;
                let value = groups.get(1).or_else(|| groups.get(0))?;
                (!value.is_empty() && value.start() >= at)
                    .then(|| (value.range(), rule.name.as_str()))
            });
            // `min_by_key` keeps the first of equals.
            let Some(next) = literal
                .into_iter()
                .chain(by_rule)
                .min_by_key(|(range, _)| range.start)
            else {
                break;
            };
            at = next.0.end;
            found.push(next);
        }
        found
    }
}

fn placeholder() -> Regex {
    static COMPILED: std::sync::OnceLock<Regex> = std::sync::OnceLock::new();
    COMPILED
        .get_or_init(|| {
            #[expect(clippy::unwrap_used, reason = "a constant that many tests compile")]
            Regex::new(PLACEHOLDER).unwrap()
        })
        .clone()
}

/// A volatile value. The number 1 and the string `1` have separate placeholders, so that each is
/// restored with its type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum VolatileValue {
    Text(String),
    /// In digits.
    Number(String),
}

impl VolatileValue {
    fn number(number: &Number) -> Self {
        Self::Number(number.to_string())
    }

    /// Reads a value of a cassette's table.
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Number(number) => Some(Self::number(number)),
            _ => None,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
        }
    }

    /// The JSON value; a number stays a number.
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Number(digits) => {
                serde_json::from_str(digits).unwrap_or_else(|_| digits.as_str().into())
            }
        }
    }
}

/// Replaces volatile values by placeholders while a run is recorded.
#[derive(Debug)]
pub struct Normaliser {
    rules: Arc<Rules>,
    by_value: BTreeMap<(String, VolatileValue), String>,
    counts: BTreeMap<String, u32>,
    values: Map<String, Value>,
}

impl Normaliser {
    /// A normaliser for one run.
    #[must_use]
    pub fn new(rules: Arc<Rules>) -> Self {
        Self {
            rules,
            by_value: BTreeMap::new(),
            counts: BTreeMap::new(),
            values: Map::new(),
        }
    }

    fn name(&mut self, rule: &str, found: VolatileValue) -> String {
        let key = (rule.to_owned(), found);
        if let Some(known) = self.by_value.get(&key) {
            return known.clone();
        }
        let count = self.counts.entry(rule.to_owned()).or_default();
        *count += 1;
        let name = format!("<{rule}:{count}>");
        self.values.insert(name.clone(), key.1.value());
        self.by_value.insert(key, name.clone());
        name
    }

    /// Replaces the volatile values in a value by placeholders.
    pub fn value(&mut self, value: &mut Value) {
        let rules = Arc::clone(&self.rules);
        map_strings(value, &mut |text| {
            replaced(&rules, text, &mut |rule, value| {
                self.name(rule, VolatileValue::Text(value.to_owned()))
            })
        });
        // After the strings, which would treat such a placeholder as literal text.
        replace_epochs(&rules, value, &mut |number| {
            self.name(EPOCH, VolatileValue::number(number))
        });
    }

    /// The values of the placeholders, in the order of their first use.
    #[must_use]
    pub fn take_values(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.values)
    }
}

fn replaced(rules: &Rules, text: &str, name: &mut dyn FnMut(&str, &str) -> String) -> String {
    let mut out = String::new();
    let mut done = 0;
    for (range, rule) in rules.find(text) {
        out.push_str(&text[done..range.start]);
        out.push_str(&name(rule, &text[range.clone()]));
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// Changes all strings of a value, keys included.
fn map_strings(value: &mut Value, change: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map_strings(item, change)),
        Value::Object(map) => {
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, mut value)| {
                    let key = change(&key);
                    map_strings(&mut value, change);
                    (key, value)
                })
                .collect();
        }
        _ => {}
    }
}

/// Replaces all numbers of a value that are points in time by placeholders.
fn replace_epochs(rules: &Rules, value: &mut Value, name: &mut dyn FnMut(&Number) -> String) {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| replace_epochs(rules, item, name)),
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::Number(number) if rules.is_epoch(key, number) => {
                        *value = name(number).into()
                    }
                    other => replace_epochs(rules, other, name),
                }
            }
        }
        _ => {}
    }
}

/// The values of placeholders during a replay: the recorded values, or those of the live side where
/// there is one.
#[derive(Debug, Clone)]
pub struct Bindings {
    rules: Arc<Rules>,
    recorded: Map<String, Value>,
    by_name: BTreeMap<String, VolatileValue>,
    /// By rule and value.
    by_value: BTreeMap<(String, VolatileValue), String>,
}

impl Bindings {
    /// Bindings to the recorded values.
    #[must_use]
    pub fn new(rules: Arc<Rules>, recorded: Map<String, Value>) -> Self {
        Self {
            rules,
            recorded,
            by_name: BTreeMap::new(),
            by_value: BTreeMap::new(),
        }
    }

    /// Replaces placeholders by their values, and binds them to these values.
    pub fn restore(&mut self, value: &mut Value) {
        self.restore_numbers(value);
        let regex = placeholder();
        map_strings(value, &mut |text| {
            let insert = |found: &regex::Captures<'_>| match self.value_of(&found[0]) {
                Some(value) => value.text().to_owned(),
                None => found[0].to_owned(),
            };
            regex.replace_all(text, insert).into_owned()
        });
    }

    /// Restores numbers: the placeholder of a number is a whole string.
    fn restore_numbers(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if rule_of(text) == EPOCH => {
                if let Some(number @ VolatileValue::Number(_)) = self.value_of(text) {
                    *value = number.value();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.restore_numbers(item)),
            Value::Object(map) => map
                .values_mut()
                .for_each(|value| self.restore_numbers(value)),
            _ => {}
        }
    }

    fn value_of(&mut self, name: &str) -> Option<VolatileValue> {
        if let Some(bound) = self.by_name.get(name) {
            return Some(bound.clone());
        }
        let value = VolatileValue::read(self.recorded.get(name)?)?;
        bind(&mut self.by_name, &mut self.by_value, name, &value);
        Some(value)
    }

    /// Replaces known values by their placeholders, and marks unknown ones as `<rule:?>`.
    pub fn denote(&self, value: &mut Value) {
        let name = |rule: &str, found: VolatileValue| {
            let known = self.by_value.get(&(rule.to_owned(), found)).cloned();
            known.unwrap_or_else(|| format!("<{rule}:?>"))
        };
        map_strings(value, &mut |text| {
            replaced(&self.rules, text, &mut |rule, value| {
                name(rule, VolatileValue::Text(value.to_owned()))
            })
        });
        replace_epochs(&self.rules, value, &mut |number| {
            name(EPOCH, VolatileValue::number(number))
        });
    }

    /// Returns true if a live value equals the recorded one apart from volatile values. If so, the
    /// placeholders are bound to the live values.
    pub fn align(&mut self, recorded: &Value, live: &Value) -> bool {
        let mut fresh = Vec::new();
        if !self.same(recorded, live, &mut fresh) {
            return false;
        }
        for (name, value) in fresh {
            bind(&mut self.by_name, &mut self.by_value, &name, &value);
        }
        true
    }

    fn same(
        &self,
        recorded: &Value,
        live: &Value,
        fresh: &mut Vec<(String, VolatileValue)>,
    ) -> bool {
        match (recorded, live) {
            (Value::String(recorded), Value::String(live)) => self.same_text(recorded, live, fresh),
            (Value::Array(recorded), Value::Array(live)) => {
                recorded.len() == live.len()
                    && recorded
                        .iter()
                        .zip(live)
                        .all(|(a, b)| self.same(a, b, fresh))
            }
            (Value::Object(recorded), Value::Object(live)) => {
                recorded.len() == live.len()
                    && recorded.iter().all(|(key, value)| match live.get(key) {
                        Some(Value::Number(number)) if value.is_string() => {
                            let name = value.as_str().unwrap_or_default();
                            rule_of(name) == EPOCH
                                && self.rules.is_epoch(key, number)
                                && self.can_bind(name, &VolatileValue::number(number), fresh)
                        }
                        Some(other) => self.same(value, other, fresh),
                        None => live.iter().any(|(other_key, other)| {
                            !recorded.contains_key(other_key)
                                && self.same_text(key, other_key, fresh)
                                && self.same(value, other, fresh)
                        }),
                    })
            }
            _ => mcptest_json::equal(recorded, live),
        }
    }

    fn same_text(
        &self,
        recorded: &str,
        live: &str,
        fresh: &mut Vec<(String, VolatileValue)>,
    ) -> bool {
        let regex = placeholder();
        let mut names = regex.find_iter(recorded);
        let mut values = self.rules.find(live).into_iter();
        let (mut at_recorded, mut at_live) = (0, 0);
        loop {
            match (names.next(), values.next()) {
                (None, None) => return recorded[at_recorded..] == live[at_live..],
                (Some(name), Some((range, rule))) => {
                    if recorded[at_recorded..name.start()] != live[at_live..range.start] {
                        return false;
                    }
                    let (value, name_text) = (
                        VolatileValue::Text(live[range.clone()].to_owned()),
                        name.as_str(),
                    );
                    if rule_of(name_text) != rule || !self.can_bind(name_text, &value, fresh) {
                        return false;
                    }
                    (at_recorded, at_live) = (name.end(), range.end);
                }
                _ => return false,
            }
        }
    }

    fn can_bind(
        &self,
        name: &str,
        value: &VolatileValue,
        fresh: &mut Vec<(String, VolatileValue)>,
    ) -> bool {
        let rule = rule_of(name);
        let just_now =
            |(a, b): &&(String, VolatileValue)| a == name || (b == value && rule_of(a) == rule);
        if let Some((known_name, known_value)) = fresh.iter().find(just_now) {
            return known_name == name && known_value == value;
        }
        match (
            self.by_name.get(name),
            self.by_value.get(&(rule.to_owned(), value.clone())),
        ) {
            (Some(bound), _) => bound == value,
            (None, Some(_)) => false,
            (None, None) => {
                fresh.push((name.to_owned(), value.clone()));
                true
            }
        }
    }
}

/// The rule of a placeholder.
fn rule_of(name: &str) -> &str {
    name.trim_start_matches('<')
        .split(':')
        .next()
        .unwrap_or_default()
}

fn bind(
    by_name: &mut BTreeMap<String, VolatileValue>,
    by_value: &mut BTreeMap<(String, VolatileValue), String>,
    name: &str,
    value: &VolatileValue,
) {
    by_value.insert((rule_of(name).to_owned(), value.clone()), name.to_owned());
    by_name.insert(name.to_owned(), value.clone());
}

/// The placeholders in a value that are missing in the table.
#[must_use]
pub fn unexplained(value: &Value, table: &Map<String, Value>) -> Vec<String> {
    let regex = placeholder();
    let mut missing = Vec::new();
    let mut value = value.clone();
    map_strings(&mut value, &mut |text| {
        for found in regex.find_iter(text) {
            if !table.contains_key(found.as_str())
                && !missing.iter().any(|known| known == found.as_str())
            {
                missing.push(found.as_str().to_owned());
            }
        }
        text.to_owned()
    });
    missing
}
