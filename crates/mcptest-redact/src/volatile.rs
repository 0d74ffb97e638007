//! Values that are different each time: found by rules, replaced by placeholders, and put back for
//! replay.
//!
//! In the recorded exchanges a UUID stands as `<uuid:1>`: the same value has the same placeholder
//! throughout a run, in whatever the model said or a tool answered. What it was stands in one table
//! at the end of the file. So two recordings of the same behaviour differ in that table alone, and
//! a replay still gives every gate what the live run saw.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// How volatile values are found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What placeholders are called: `order` gives `<order:1>`. The name of a built-in rule
    /// replaces that rule.
    pub name: String,
    /// A regular expression. If it has a group, the first group is the value.
    pub pattern: String,
}

/// The rule that also finds JSON numbers: it is asked about `"key":number`.
const EPOCH: &str = "epoch";

/// The rules that always apply, with what they are for.
pub const BUILTIN: [(&str, &str, &str); 5] = [
    (
        "uuid",
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        "UUIDs",
    ),
    (
        "timestamp",
        r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?",
        "points in time with date and time of day, as in ISO 8601",
    ),
    (
        "date",
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\b",
        "the dates of HTTP",
    ),
    (
        "id",
        r"\b(?:req|call|toolu|srvtoolu|msg|resp|chatcmpl|fc|rs|gen)[_-][A-Za-z]{0,40}[0-9][A-Za-z0-9]{7,}\b",
        "ids that providers give to requests, answers and calls",
    ),
    (
        EPOCH,
        r#""(?:\w*(?:[Tt]ime|[Tt]imestamp|[Dd]ate|_at|_ts|[a-z]At)|created|updated|modified|expires|iat|exp|nbf|ts|now)\\?"\s*:\s*([12]\d{9}(?:\d{3}){0,3}(?:\.\d+)?)\b"#,
        "seconds since 1970 (or milli-, micro-, nanoseconds) in JSON, under a key that tells a time; also where they are numbers",
    ),
];

/// A cassette from somebody else must not keep us busy with its rules.
const MOST_RULES: usize = 100;

/// Text that only looks like a placeholder.
const LITERAL: &str = "literal";
const PLACEHOLDER: &str = r"<[a-z][a-z0-9_-]{0,31}:[0-9]{1,9}>";

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// Which of the rules, from 0.
    pub index: usize,
    /// Whether it is the name that is wrong, not the pattern.
    pub in_name: bool,
    /// What is wrong.
    pub message: String,
}

/// Compiled rules.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<(Rule, Regex)>,
}

impl Rules {
    /// The suite's own rules, which come first, and the built-in ones. A rule with the name of a
    /// built-in one replaces it.
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

    /// These rules and no others: those that a cassette says it was written with.
    ///
    /// # Errors
    /// The first rule that cannot be used.
    pub fn compile(rules: &[Rule]) -> Result<Self, RuleError> {
        if rules.len() > MOST_RULES {
            return Err(RuleError {
                index: MOST_RULES,
                in_name: true,
                message: format!("there are more than {MOST_RULES} rules"),
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
            let named = letters
                .next()
                .is_some_and(|first| first.is_ascii_lowercase())
                && letters
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-')
                && rule.name.len() <= 32;
            if !named {
                let words = "a name begins with a small letter and has small letters, digits, `_` and `-`, at most 32";
                return Err(fail(true, words.to_owned()));
            }
            if rule.name == LITERAL || compiled.iter().any(|(other, _)| other.name == rule.name) {
                return Err(fail(true, format!("`{}` is taken", rule.name)));
            }
            let regex = regex::RegexBuilder::new(&rule.pattern)
                .size_limit(1 << 20)
                .build()
                .map_err(|error| fail(false, format!("not a regular expression: {error}")))?;
            if regex.is_match("") {
                return Err(fail(
                    false,
                    "the pattern matches the empty text, so it is everywhere".to_owned(),
                ));
            }
            compiled.push((rule.clone(), regex));
        }
        Ok(Self { rules: compiled })
    }

    /// As they are written into cassettes.
    #[must_use]
    pub fn written(&self) -> Vec<Rule> {
        self.rules.iter().map(|(rule, _)| rule.clone()).collect()
    }

    /// Whether a number under a key is volatile. A number alone could be anything: only its key
    /// tells.
    fn is_epoch(&self, key: &str, number: &Number) -> bool {
        let Some((_, regex)) = self.rules.iter().find(|(rule, _)| rule.name == EPOCH) else {
            return false;
        };
        let text = format!("\"{key}\":{number}");
        let found = regex.captures(&text);
        let value = found.and_then(|groups| groups.get(1).or_else(|| groups.get(0)));
        value.is_some_and(|value| value.end() == text.len() && value.as_str() == number.to_string())
    }

    /// The volatile values of a text: where they are, and the name of the rule. The earliest wins,
    /// then the first rule.
    fn find(&self, text: &str) -> Vec<(std::ops::Range<usize>, &str)> {
        let mut found = Vec::new();
        let mut at = 0;
        // Most texts have no placeholder in them; the check is cheap.
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
            #[expect(clippy::unwrap_used, reason = "a constant, compiled in every test")]
            Regex::new(PLACEHOLDER).unwrap()
        })
        .clone()
}

/// A volatile value as it was found. The number 1 and the text `1` have placeholders of their own,
/// so that each comes back as it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Text(String),
    /// In digits.
    Number(String),
}

impl Found {
    fn number(number: &Number) -> Self {
        Self::Number(number.to_string())
    }

    /// As the table of a cassette has it.
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

    /// A number has been one, so it is one again.
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
    by_value: BTreeMap<(String, Found), String>,
    counts: BTreeMap<String, u32>,
    values: Map<String, Value>,
}

impl Normaliser {
    /// For one run.
    #[must_use]
    pub fn new(rules: Arc<Rules>) -> Self {
        Self {
            rules,
            by_value: BTreeMap::new(),
            counts: BTreeMap::new(),
            values: Map::new(),
        }
    }

    fn name(&mut self, rule: &str, found: Found) -> String {
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

    /// Puts placeholders into a value.
    pub fn value(&mut self, value: &mut Value) {
        let rules = Arc::clone(&self.rules);
        each_text(value, &mut |text| {
            replaced(&rules, text, &mut |rule, value| {
                self.name(rule, Found::Text(value.to_owned()))
            })
        });
        // After the texts, which would take a placeholder for one that was there before.
        each_epoch(&rules, value, &mut |number| {
            self.name(EPOCH, Found::number(number))
        });
    }

    /// What the placeholders stand for, in the order in which they came up.
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

/// All texts of a value, keys included.
fn each_text(value: &mut Value, change: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(map) => {
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, mut value)| {
                    let key = change(&key);
                    each_text(&mut value, change);
                    (key, value)
                })
                .collect();
        }
        _ => {}
    }
}

/// All numbers of a value that are volatile, in place of which a placeholder stands.
fn each_epoch(rules: &Rules, value: &mut Value, name: &mut dyn FnMut(&Number) -> String) {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| each_epoch(rules, item, name)),
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::Number(number) if rules.is_epoch(key, number) => {
                        *value = name(number).into()
                    }
                    other => each_epoch(rules, other, name),
                }
            }
        }
        _ => {}
    }
}

/// What placeholders stand for while a run is replayed: the recorded values, or those of the live
/// side where there is one.
#[derive(Debug, Clone)]
pub struct Bindings {
    rules: Arc<Rules>,
    recorded: Map<String, Value>,
    by_name: BTreeMap<String, Found>,
    /// By rule and value.
    by_value: BTreeMap<(String, Found), String>,
}

impl Bindings {
    /// With what placeholders stood for when the run was recorded.
    #[must_use]
    pub fn new(rules: Arc<Rules>, recorded: Map<String, Value>) -> Self {
        Self {
            rules,
            recorded,
            by_name: BTreeMap::new(),
            by_value: BTreeMap::new(),
        }
    }

    /// Puts values in for placeholders. From then on they are what the placeholders stand for.
    pub fn restore(&mut self, value: &mut Value) {
        self.restore_numbers(value);
        let regex = placeholder();
        each_text(value, &mut |text| {
            let put_in = |found: &regex::Captures<'_>| match self.stands_for(&found[0]) {
                Some(value) => value.text().to_owned(),
                None => found[0].to_owned(),
            };
            regex.replace_all(text, put_in).into_owned()
        });
    }

    /// A placeholder of a number stands alone.
    fn restore_numbers(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if rule_of(text) == EPOCH => {
                if let Some(number @ Found::Number(_)) = self.stands_for(text) {
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

    fn stands_for(&mut self, name: &str) -> Option<Found> {
        if let Some(bound) = self.by_name.get(name) {
            return Some(bound.clone());
        }
        let value = Found::read(self.recorded.get(name)?)?;
        bind(&mut self.by_name, &mut self.by_value, name, &value);
        Some(value)
    }

    /// Puts placeholders in for known values, and marks those that are not known.
    pub fn denote(&self, value: &mut Value) {
        let name = |rule: &str, found: Found| {
            let known = self.by_value.get(&(rule.to_owned(), found)).cloned();
            known.unwrap_or_else(|| format!("<{rule}:?>"))
        };
        each_text(value, &mut |text| {
            replaced(&self.rules, text, &mut |rule, value| {
                name(rule, Found::Text(value.to_owned()))
            })
        });
        each_epoch(&self.rules, value, &mut |number| {
            name(EPOCH, Found::number(number))
        });
    }

    /// Whether a live value is the recorded one up to volatile values. If so, its values are what
    /// the placeholders stand for from now on.
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

    fn same(&self, recorded: &Value, live: &Value, fresh: &mut Vec<(String, Found)>) -> bool {
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
                                && self.may_stand_for(name, &Found::number(number), fresh)
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

    fn same_text(&self, recorded: &str, live: &str, fresh: &mut Vec<(String, Found)>) -> bool {
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
                    let (value, name_text) =
                        (Found::Text(live[range.clone()].to_owned()), name.as_str());
                    if rule_of(name_text) != rule || !self.may_stand_for(name_text, &value, fresh) {
                        return false;
                    }
                    (at_recorded, at_live) = (name.end(), range.end);
                }
                _ => return false,
            }
        }
    }

    fn may_stand_for(&self, name: &str, value: &Found, fresh: &mut Vec<(String, Found)>) -> bool {
        let rule = rule_of(name);
        let just_now = |(a, b): &&(String, Found)| a == name || (b == value && rule_of(a) == rule);
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

/// The rule whose placeholder this is.
fn rule_of(name: &str) -> &str {
    name.trim_start_matches('<')
        .split(':')
        .next()
        .unwrap_or_default()
}

fn bind(
    by_name: &mut BTreeMap<String, Found>,
    by_value: &mut BTreeMap<(String, Found), String>,
    name: &str,
    value: &Found,
) {
    by_value.insert((rule_of(name).to_owned(), value.clone()), name.to_owned());
    by_name.insert(name.to_owned(), value.clone());
}

/// The placeholders in a value that the table does not explain.
#[must_use]
pub fn unexplained(value: &Value, table: &Map<String, Value>) -> Vec<String> {
    let regex = placeholder();
    let mut missing = Vec::new();
    let mut value = value.clone();
    each_text(&mut value, &mut |text| {
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
