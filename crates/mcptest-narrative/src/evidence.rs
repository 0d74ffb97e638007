//! The words and values of a run's results, for deciding what was observed.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::ops::Deref;

use serde_json::Value;

use crate::call_words::mixed_words;
use crate::nouns::is_same_thing;
use crate::tokens::unescaped;
use crate::verbs::{Classes, fold, nominal_of, verb};
use mcptest_catalog::lexical;
use mcptest_trace::trace::ToolResultView;
use rustc_hash::FxHashSet;

/// The number of words of one result that are read.
const MAX_WORDS: usize = 20_000;
/// The number of words of a request that are read.
const MAX_REQUEST: usize = 200;

/// A result up to this many words is about one thing; in a longer one, words belong together only
/// if they are near each other.
const SHORT: usize = 400;
/// A value of at most this many words states something about the call.
const SAID: usize = 20;
const NEAR: usize = 15;

/// A result as words.
#[derive(Debug, Default)]
pub(crate) struct ResultWords {
    /// The folded words in their order, keys included.
    sequence: Vec<String>,
    /// The folded words of keys.
    keys: FxHashSet<String>,
    /// All folded words.
    pub all: FxHashSet<String>,
    /// The folded words of short values and of keys that are true: what the result states.
    pub said: FxHashSet<String>,
    /// The verbs that filled keys are made from.
    key_verbs: FxHashSet<String>,
    /// The words of the name of a tool that only looks.
    tool: FxHashSet<String>,
    /// The lowercase text.
    pub text: String,
}

impl ResultWords {
    /// Adds what a call that only looks was asked for.
    pub(crate) fn add_request(&mut self, tool: &[String], args: &Value) {
        let mut room = MAX_REQUEST;
        // What was asked is no answer.
        let said = self.said.clone();
        for word in tool {
            self.tool.insert(fold(word));
            self.push(word, &mut room);
        }
        self.add(args, &mut room);
        self.said = said;
    }

    /// The words of the result that are verbs of one of the classes.
    pub(crate) fn states_like(&self, classes: Classes) -> BTreeSet<&str> {
        self.all
            .iter()
            // In `read_file` the file is a thing.
            .filter(|word| !self.tool.contains(*word) || self.said.contains(*word))
            .filter(|word| verb(word).is_some_and(|verb| verb.is & classes != 0))
            .map(String::as_str)
            .collect()
    }

    /// Returns true if the result reports the state: the word, and one of the nouns near it.
    pub(crate) fn reports(&self, state: &str, nouns: &[String], dated: bool, same: bool) -> bool {
        let keyed = self.keys.contains(state) && !dated && !self.is_value(state);
        if !self.all.contains(state) || keyed && !self.key_verbs.contains(state) {
            return false;
        }
        if keyed {
            return true;
        }
        let nouns: Vec<String> = nouns.iter().map(|noun| fold(noun)).collect();
        if nouns.is_empty() {
            return true;
        }
        if self.sequence.len() <= SHORT {
            return nouns.iter().any(|noun| {
                self.all.contains(noun)
                    || same && self.all.iter().any(|word| is_same_thing(word, noun))
            });
        }
        let places = (0..self.sequence.len()).filter(|place| self.sequence[*place] == state);
        places.take(200).any(|place| {
            let from = place.saturating_sub(NEAR);
            let to = self.sequence.len().min(place + NEAR);
            self.sequence[from..to]
                .iter()
                .any(|word| nouns.contains(word))
        })
    }

    /// Returns true if a folded word is in a value, not only in a key.
    pub(crate) fn is_valued(&self, word: &str) -> bool {
        self.all.contains(word) && (!self.keys.contains(word) || self.is_value(word))
    }

    /// Returns true if a folded word is in a key.
    pub(crate) fn has_key(&self, word: &str) -> bool {
        self.keys.contains(word)
    }

    /// Returns true if a word that is a key is a value too.
    fn is_value(&self, word: &str) -> bool {
        self.sequence
            .iter()
            .filter(|own| *own == word)
            .take(2)
            .count()
            > 1
    }

    fn add(&mut self, value: &Value, room: &mut usize) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let structural = matches!(key.as_str(), "type" | "text");
                    if !structural {
                        // `"cancelled": true` states it.
                        let stated = *value == Value::Bool(true);
                        let filled = !matches!(value, Value::Null | Value::Bool(false))
                            && value.as_f64() != Some(0.0)
                            && value.as_array().is_none_or(|list| !list.is_empty());
                        for word in lexical::words(key) {
                            // `"attachments": ["a.pdf"]`: they were attached.
                            if filled && nominal_of(&word).is_some() {
                                self.said.insert(fold(&word));
                                self.key_verbs.insert(fold(&word));
                            }
                            if stated {
                                self.said.insert(fold(&word));
                            } else {
                                self.keys.insert(fold(&word));
                            }
                            self.push(&word, room);
                        }
                    }
                    match value {
                        // A ticket with the subject "Password reset loop" resets nothing.
                        Value::String(text) if is_title(key, text) => {
                            self.add_text(text, false, room);
                        }
                        _ => self.add(value, room),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.add(value, room)),
            Value::String(text) => self.add_text(text, true, room),
            Value::Number(number) => {
                self.text.push(' ');
                self.text.push_str(&number.to_string());
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn add_text(&mut self, text: &str, states: bool, room: &mut usize) {
        let trimmed = text.trim_start();
        if trimmed.starts_with(['{', '['])
            && trimmed.len() < 1_000_000
            && let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(trimmed)
        {
            self.add(&inner, room);
            return;
        }
        let mut end = text.len().min(*room * 8);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &*unescaped(&text[..end]);
        self.text.push(' ');
        self.text.push_str(&text.to_lowercase());
        let words = lexical::words(&without_denied(text));
        if states && words.len() <= SAID {
            self.said.extend(words.iter().map(|word| fold(word)));
        }
        for word in words {
            self.push(&word, room);
        }
        self.all.extend(mixed_words(text));
    }

    fn push(&mut self, word: &str, room: &mut usize) {
        if *room == 0 || self.sequence.len() >= MAX_WORDS {
            return;
        }
        *room -= 1;
        let folded = fold(word);
        self.all.insert(folded.clone());
        self.sequence.push(folded);
    }
}

/// A string without the verbs of what did not happen: "0 destroyed", "not approved", "will be
/// assigned".
fn without_denied(text: &str) -> Cow<'_, str> {
    let is_denial = |part: &str| {
        let part = part.trim_start_matches('(');
        part == "0"
            || ["not", "be", "never"]
                .iter()
                .any(|own| part.eq_ignore_ascii_case(own))
    };
    if !text.split_whitespace().any(is_denial) {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    let mut denied = false;
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim();
        let links = matches!(word, "to" | "been" | "yet");
        if !(denied && !links && word.starts_with(|c: char| c.is_ascii_lowercase())) {
            kept.push_str(part);
        }
        denied = is_denial(word) || denied && links;
    }
    kept.into()
}

/// Returns true if a string is the title of a thing: its words describe the thing, and do not state
/// what became of it.
fn is_title(key: &str, text: &str) -> bool {
    matches!(key, "subject" | "title" | "name" | "headline" | "label")
        && text.contains(char::is_whitespace)
        && !text.trim_start().starts_with(['{', '['])
}

/// The result of a call, read when something asks for its words.
pub(crate) struct LazyResult<'a> {
    source: Option<&'a ToolResultView<'a>>,
    /// The name and the arguments of a call that only looks.
    request: Option<(&'a [String], &'a Value)>,
    room: &'a Cell<usize>,
    words: OnceCell<ResultWords>,
    pub failed: bool,
    /// True if the result has a content.
    pub recorded: bool,
}

impl<'a> LazyResult<'a> {
    /// The result of a call; `room` is the number of words that the results of a run have left.
    pub(crate) fn new(
        source: Option<&'a ToolResultView<'a>>,
        request: Option<(&'a [String], &'a Value)>,
        room: &'a Cell<usize>,
    ) -> Self {
        // A lookup that answers with one word, such as "ok", reports nothing.
        let says = |content: &Value| match content {
            Value::Null => false,
            Value::String(text) => request.is_none() || text.split_whitespace().nth(1).is_some(),
            _ => true,
        };
        let recorded = source.is_some_and(|result| result.content().is_some_and(says));
        Self {
            source,
            request: request.filter(|_| recorded),
            room,
            words: OnceCell::new(),
            failed: source
                .is_some_and(|own| is_failure(own) || request.is_none() && is_refusal(own)),
            recorded,
        }
    }

    /// Returns true if a part of the result is accepted.
    pub(crate) fn any(&self, mut accepts: impl FnMut(&Value) -> bool) -> bool {
        self.source.is_some_and(|result| {
            result.content().is_some_and(&mut accepts) || result.extra.values().any(accepts)
        })
    }
}

impl Deref for LazyResult<'_> {
    type Target = ResultWords;

    fn deref(&self) -> &ResultWords {
        self.words.get_or_init(|| {
            let mut words = ResultWords::default();
            let mut room = self.room.get();
            if let Some(result) = self.source {
                if let Some(content) = result.content() {
                    words.add(content, &mut room);
                }
                for value in result.extra.values() {
                    words.add(value, &mut room);
                }
            }
            self.room.set(room);
            if let Some((tool, args)) = self.request {
                words.add_request(tool, args);
            }
            words
        })
    }
}

/// The number of words of all results of a run that are read.
pub(crate) const MAX_WORDS_IN_TOTAL: usize = 100_000;

/// Returns true if a result is an error: by its mark, or, without one, by its first word.
fn is_failure(result: &ToolResultView<'_>) -> bool {
    result.is_error.unwrap_or_else(|| {
        let values = result.content().into_iter().chain(result.extra.values());
        let first = values.into_iter().find_map(first_text);
        first.is_some_and(|text| {
            let text = text.trim_start().as_bytes();
            text.len() >= 5 && text[..5].eq_ignore_ascii_case(b"error")
        })
    })
}

/// Returns true if the result of a call that acts is an object that says it was not done: it has an
/// `error`, or `success` is false.
fn is_refusal(result: &ToolResultView<'_>) -> bool {
    fn refuses(value: &Value) -> bool {
        const DONE: [&str; 8] = [
            "ok",
            "success",
            "succeeded",
            "successful",
            "accepted",
            "applied",
            "valid",
            "done",
        ];
        match value {
            Value::Object(map) => {
                let filled = |value: &Value| match value {
                    Value::String(text) => !text.trim().is_empty(),
                    Value::Object(inner) => !inner.is_empty(),
                    _ => false,
                };
                let error = map.get("error").is_some_and(filled);
                let denied = DONE
                    .iter()
                    .any(|key| map.get(*key) == Some(&Value::Bool(false)));
                let block = map.get("type").is_some_and(|kind| kind == "text");
                error || denied || block && map.get("text").is_some_and(refuses)
            }
            Value::Array(list) => matches!(list.as_slice(), [one] if refuses(one)),
            Value::String(text) => {
                let text = text.trim();
                text.starts_with('{')
                    && text.len() < 10_000
                    && serde_json::from_str(text).is_ok_and(|inner: Value| refuses(&inner))
            }
            _ => false,
        }
    }
    result.content().is_some_and(refuses)
}

/// The first string that is not the type of a block.
fn first_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(list) => list.iter().find_map(first_text),
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| *key != "type")
            .find_map(|(_, value)| first_text(value)),
        _ => None,
    }
}

/// Returns true if a lowercase text contains a value whole: what is beside it is no letter, digit,
/// hyphen or underscore.
pub(crate) fn contains_whole(text: &str, value: &str) -> bool {
    if value.is_empty() {
        return false;
    }
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(value).take(1_000).any(|(place, _)| {
        let mut ahead = text[..place].chars();
        let before = match ahead.next_back() {
            // A dot or a plus sign joins what is before it: `ann.lee@x.org`.
            Some('.' | '+' | '@') => ahead.next_back().filter(|c| part(*c)),
            other => other,
        };
        let mut after = text[place + value.len()..].chars();
        let next = after.next();
        // A hyphen, a dot or a slash continues a name only if something follows it.
        let continued = match next {
            Some('-' | '.' | '/') => after.next().is_some_and(part),
            Some(c) => part(c),
            None => false,
        };
        !continued && !before.is_some_and(|c| part(c) || c == '-')
    })
}

#[cfg(test)]
mod tests {
    use super::contains_whole;

    #[test]
    fn values_have_boundaries() {
        assert!(contains_whole("key: proj-7", "proj-7"));
        assert!(contains_whole("#w123, done", "w123"));
        assert!(contains_whole("see ord-1.", "ord-1"));
        assert!(!contains_whole("ord-12", "ord-1"));
        assert!(!contains_whole("ord-1-b", "ord-1"));
        assert!(!contains_whole("xord-1", "ord-1"));
        assert!(!contains_whole("a@b.com.au", "a@b.com"));
        assert!(!contains_whole("ann.lee@b.com", "lee@b.com"));
        assert!(contains_whole("done. lee@b.com", "lee@b.com"));
        assert!(!contains_whole("anything", ""));
    }
}
