//! The figures of a run with the words around them.
//!
//! A number of a message that nothing in the run has is wrong if the run has another one in the
//! same place: under the same key, beside the same word, or with one digit changed.

use serde_json::Value;

use crate::dates::{dates_in, times_in};
use crate::tokens::{number, unescaped};
use crate::values::ValueKind;
use crate::verbs::fold;
use mcptest_catalog::lexical;
use mcptest_trace::trace::TraceView;
use rustc_hash::{FxHashMap, FxHashSet};

/// The number of figures that are kept.
const MAX_FIGURES: usize = 20_000;
/// The number of short strings that are kept.
const MAX_STRINGS: usize = 5_000;
/// The number of characters of one string that are read for figures.
const MAX_TEXT: usize = 200_000;
/// The number of words on each side of a figure in a string that belong to it.
const NEAR: usize = 12;
/// The number of words of the values beside a figure.
const MAX_SIBLINGS: usize = 24;

/// Words that name amounts of money.
#[rustfmt::skip]
const AMOUNTS: &[&str] = &[
    "amount", "price", "cost", "fee", "balance", "payment", "refund", "paid", "budget", "salary", "usd", "eur", "rent",
    "charge", "credit",
];

/// A recorded figure.
#[derive(Debug)]
pub(crate) struct Figure {
    pub kind: ValueKind,
    /// In the form in which values of the kind are compared.
    pub normal: String,
    pub percent: bool,
    /// The folded unit that is written with it: `2h`.
    pub unit: Option<&'static str>,
    /// True if it is a whole value, not a part of a string.
    pub whole: bool,
    /// True if it is written like an amount of money, or under a key for one.
    pub is_amount: bool,
    /// The words that name it: its key, the words beside it.
    attributes: Vec<u32>,
    /// The words of what it belongs to.
    near: Vec<u32>,
    /// In a string, the two words before it and the two after it.
    beside: [Option<[u32; 2]>; 2],
    /// The call that it was given to, or that gave it.
    pub call: Option<usize>,
}

/// The figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub all: Vec<Figure>,
    words: FxHashMap<String, u32>,
    /// Short strings in lowercase, with their calls.
    pub strings: Vec<(String, Option<usize>)>,
    /// Identifiers, addresses and paths, in lowercase, with their calls.
    pub names: Vec<(String, Option<usize>)>,
    known_names: FxHashSet<(String, Option<usize>)>,
    /// The words that name amounts.
    amount_words: Vec<u32>,
}

impl Figures {
    pub(crate) fn new(trace: &TraceView<'_>) -> Self {
        let mut figures = Self::default();
        for word in AMOUNTS {
            let id = figures.id(&fold(word));
            figures.amount_words.push(id);
        }
        let results = trace.results_by_call();
        for (index, call) in trace.tool_calls.iter().enumerate() {
            let tool: Vec<u32> = figures.ids(call.name());
            if let Some(args) = call.args() {
                figures.add(args, &[], &tool, Some(index));
            }
            let Some(result) = results.get(index).copied().flatten() else {
                continue;
            };
            let mut about = tool.clone();
            if let Some(args) = call.args() {
                figures.add_words(args, &mut about);
            }
            let values = result.content().into_iter().chain(result.extra.values());
            for value in values {
                figures.add(value, &[], &about, Some(index));
            }
        }
        let turns = trace.conversation.turns.as_deref().unwrap_or_default();
        for turn in turns {
            if turn.role.as_deref() != Some("assistant") {
                figures.add_text(&turn.text(), &[], &[], None);
            }
        }
        figures
    }

    /// The number of a folded word, if a figure has it.
    pub(crate) fn word(&self, folded: &str) -> Option<u32> {
        self.words.get(folded).copied()
    }

    fn ids(&mut self, text: &str) -> Vec<u32> {
        lexical::words(text)
            .iter()
            .filter(|word| word.len() > 1 && !is_filler(word))
            .map(|word| self.id(&fold(word)))
            .collect()
    }

    fn id(&mut self, folded: &str) -> u32 {
        if let Some(id) = self.words.get(folded) {
            return *id;
        }
        let id = self.words.len() as u32;
        self.words.insert(folded.to_owned(), id);
        id
    }

    /// Adds the words of short arguments.
    fn add_words(&mut self, value: &Value, found: &mut Vec<u32>) {
        match value {
            Value::Object(map) => map.values().for_each(|value| self.add_words(value, found)),
            Value::Array(list) => {
                list.iter()
                    .take(5)
                    .for_each(|value| self.add_words(value, found));
            }
            Value::String(text) if text.len() <= 200 && found.len() < MAX_SIBLINGS => {
                let ids = self.ids(text);
                found.extend(ids);
            }
            _ => {}
        }
    }

    fn push(&mut self, kind: ValueKind, normal: String, percent: bool, words: Words<'_>) {
        if self.all.len() < MAX_FIGURES {
            let cents = normal
                .split_once('.')
                .is_some_and(|(_, cents)| cents.len() == 2);
            let keyed = || {
                words
                    .attributes
                    .iter()
                    .any(|id| self.amount_words.contains(id))
            };
            self.all.push(Figure {
                is_amount: words.money || cents || keyed(),
                unit: words.unit,
                kind,
                normal,
                percent,
                whole: words.whole,
                attributes: words.attributes.to_vec(),
                near: words.near.to_vec(),
                beside: words.beside,
                call: words.call,
            });
        }
    }

    fn add(&mut self, value: &Value, keys: &[u32], near: &[u32], call: Option<usize>) {
        match value {
            Value::Object(map) => {
                let mut siblings = near.to_vec();
                for value in map.values() {
                    if let Value::String(text) = value
                        && text.len() <= 80
                        && siblings.len() < MAX_SIBLINGS
                    {
                        siblings.extend(self.ids(text));
                    }
                }
                for (key, value) in map {
                    let mut own = self.ids(key);
                    if value.is_array() || value.is_object() {
                        let mut wide = siblings.clone();
                        wide.extend(&own);
                        own.extend(keys.iter().take(3));
                        self.add(value, &own, &wide, call);
                    } else {
                        let mut wide = siblings.clone();
                        wide.extend(keys);
                        self.add(value, &own, &wide, call);
                    }
                }
            }
            Value::Array(list) => {
                if !keys.is_empty() {
                    let words = Words {
                        attributes: keys,
                        near,
                        call,
                        whole: true,
                        money: false,
                        unit: None,
                        beside: [None; 2],
                    };
                    self.push(ValueKind::Count, list.len().to_string(), false, words);
                }
                for value in list {
                    self.add(value, keys, near, call);
                }
            }
            Value::Number(own) => {
                if let Some(normal) = number(&own.to_string()) {
                    let words = Words {
                        attributes: keys,
                        near,
                        call,
                        whole: true,
                        money: false,
                        unit: None,
                        beside: [None; 2],
                    };
                    self.push(ValueKind::Number, normal, false, words);
                }
            }
            Value::String(text) => {
                let trimmed = text.trim_start();
                if trimmed.starts_with(['{', '['])
                    && trimmed.len() < 1_000_000
                    && let Ok(inner @ (Value::Object(_) | Value::Array(_))) =
                        serde_json::from_str(trimmed)
                {
                    self.add(&inner, keys, near, call);
                } else {
                    if (4..=80).contains(&text.len())
                        && text.contains(' ')
                        && self.strings.len() < MAX_STRINGS
                    {
                        self.strings.push((text.to_lowercase(), call));
                    }
                    self.add_text(text, keys, near, call);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn add_text(&mut self, text: &str, keys: &[u32], near: &[u32], call: Option<usize>) {
        let text = &*unescaped(text);
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text[..end];
        if !text.contains(|c: char| c.is_ascii_digit()) && !text.contains(['@', '/', '.']) {
            return;
        }
        let parts: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || "()[]{}\"'`<>|;!=".contains(c))
            .filter(|part| !part.is_empty())
            .collect();
        let whole = parts.len() <= 2;
        let words: Vec<Vec<u32>> = parts
            .iter()
            .map(|part| {
                if part.len() > 60 {
                    Vec::new()
                } else {
                    self.ids(part)
                }
            })
            .collect();
        for (place, part) in parts.iter().enumerate() {
            let own = part.trim_matches(|c: char| ",.:;*_=~".contains(c) || c == '…');
            let digits = own.contains(|c: char| c.is_ascii_digit());
            if !digits && !own.contains(['@', '/', '.']) {
                continue;
            }
            let from = place.saturating_sub(NEAR);
            let to = parts.len().min(place + NEAR + 1);
            let around = || -> Vec<u32> {
                let mut all: Vec<u32> = (from..to)
                    .filter(|other| *other != place)
                    .flat_map(|other| words[other].iter().copied())
                    .collect();
                all.extend(near);
                all.extend(keys);
                all
            };
            if digits && let Some(normal) = measured(own) {
                let mut attributes: Vec<u32> = if whole { keys.to_vec() } else { Vec::new() };
                let before = words.iter().take(place).skip(place.saturating_sub(2));
                let after = words.iter().skip(place + 1).take(1);
                attributes.extend(before.chain(after).flatten());
                let near = around();
                let percent = own.ends_with('%');
                let one = |place: Option<usize>| match words.get(place?)?.as_slice() {
                    [only] => Some(*only),
                    _ => None,
                };
                let pair =
                    |left: Option<usize>, right: Option<usize>| Some([one(left)?, one(right)?]);
                let beside = [
                    pair(place.checked_sub(2), place.checked_sub(1)),
                    pair(Some(place + 1), Some(place + 2)),
                ];
                // "In stock: 6"
                let labelled = place > 0 && parts[place - 1].ends_with(':');
                let words = Words {
                    beside,
                    attributes: &attributes,
                    near: &near,
                    call,
                    whole: whole || labelled,
                    money: part.contains(['$', '€', '£'])
                        || parts
                            .get(place + 1)
                            .is_some_and(|next| next.starts_with(['$', '€', '£'])),
                    unit: unit_of(own),
                };
                self.push(ValueKind::Number, normal, percent, words);
            } else if (own.contains(['@', '/', '.']) || digits) && own.len() <= 200 {
                let low = own.trim_start_matches('#').to_lowercase();
                let known = (low.clone(), call);
                if !low.is_empty() && self.known_names.insert(known) {
                    self.names.push((low, call));
                }
            }
        }
        if text.contains(|c: char| c.is_ascii_digit()) {
            self.add_times(text, keys, near, call);
        }
    }

    /// Adds the dates and times of day of a string, line by line.
    fn add_times(&mut self, text: &str, keys: &[u32], near: &[u32], call: Option<usize>) {
        for line in text.lines().take(2_000) {
            if line.len() > 2_000 || !line.contains(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let plain = line.replace(['\'', '"'], " ");
            let dates = dates_in(&plain);
            let times = times_in(&plain);
            if dates.is_empty() && times.is_empty() {
                continue;
            }
            let mut around = self.ids(line);
            around.truncate(40);
            around.extend(near);
            around.extend(keys);
            let attributes: Vec<u32> = if keys.is_empty() {
                around.iter().copied().take(12).collect()
            } else {
                keys.to_vec()
            };
            let words = Words {
                attributes: &attributes,
                near: &around,
                call,
                whole: false,
                money: false,
                unit: None,
                beside: [None; 2],
            };
            for date in dates {
                self.push(ValueKind::Date, date, false, words);
            }
            for time in times {
                self.push(ValueKind::Time, time, false, words);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Words<'a> {
    attributes: &'a [u32],
    near: &'a [u32],
    call: Option<usize>,
    whole: bool,
    money: bool,
    unit: Option<&'static str>,
    beside: [Option<[u32; 2]>; 2],
}

impl Figure {
    /// Returns true if one of the words names the figure.
    pub(crate) fn is_named(&self, words: &[u32]) -> bool {
        self.attributes.iter().any(|own| words.contains(own))
    }

    /// Returns true if the words beside it are these.
    pub(crate) fn is_between(&self, behind: Option<[u32; 2]>, ahead: Option<[u32; 2]>) -> bool {
        let same = |own: Option<[u32; 2]>, other: Option<[u32; 2]>| {
            own.zip(other).is_some_and(|(own, other)| own == other)
        };
        same(self.beside[0], behind) || same(self.beside[1], ahead)
    }

    /// Returns true if a word alone names the figure.
    pub(crate) fn is_only(&self, word: u32) -> bool {
        self.attributes.as_slice() == [word]
    }

    /// The number of the words that name the figure.
    pub(crate) fn named(&self, words: &[u32]) -> usize {
        words
            .iter()
            .filter(|word| self.attributes.contains(word))
            .count()
    }

    /// The number of the words that belong to the figure or to what it is of.
    pub(crate) fn shared(&self, words: &[u32]) -> usize {
        words
            .iter()
            .filter(|word| self.attributes.contains(word) || self.near.contains(word))
            .count()
    }
}

/// The number of a part of a string: `98.70`, `$5`, `26°C`, `20m`, `12%`.
fn measured(part: &str) -> Option<String> {
    if let Some(own) = number(part) {
        return Some(own);
    }
    let part = part.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '-');
    let unit = part.find(|c: char| c.is_alphabetic() || c == '°' || c == '%')?;
    (unit > 0 && part.len() - unit <= 5)
        .then(|| number(&part[..unit]))
        .flatten()
}

/// The folded unit of a part of a string: "hour" of `2h`.
fn unit_of(part: &str) -> Option<&'static str> {
    let unit = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if unit.len() == part.len() {
        return None;
    }
    Some(match unit.to_ascii_lowercase().as_str() {
        "h" | "hr" | "hrs" => "hour",
        "m" | "min" | "mins" => "minut",
        "s" | "sec" => "second",
        "d" => "day",
        "w" => "week",
        _ => return None,
    })
}

/// Words that name nothing.
fn is_filler(word: &str) -> bool {
    matches!(
        word,
        "the"
            | "a"
            | "an"
            | "of"
            | "to"
            | "is"
            | "and"
            | "in"
            | "on"
            | "at"
            | "for"
            | "by"
            | "with"
            | "or"
            | "as"
            | "it"
            | "you"
            | "your"
            | "we"
            | "be"
            | "this"
            | "that"
            | "are"
            | "was"
            | "from"
            | "has"
            | "have"
            | "will"
            | "can"
            | "not"
            | "if"
            | "no"
            | "text"
            | "type"
            | "content"
            | "data"
            | "value"
            | "result"
            | "results"
            | "true"
            | "false"
            | "none"
            | "null"
    )
}
