//! The words of a recorded call, and what its name and arguments show about its effect.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::commands::{command_verbs, only_checks, only_reads};
use crate::nouns::is_same_thing;
use crate::tool_words::{EITHER, OPERATING, QUERYING, READING, RECORDS, STATEMENTS};
use crate::verbs::{
    Classes, EXECUTING, Form, LISTED, PAY, Use, Verb, fold, nominal_of, tool_verb, verb, verb_of,
};
use mcptest_catalog::lexical;
use mcptest_trace::trace::ToolCallView;
use rustc_hash::FxHashSet;

/// The length of the part of an argument's string that names things; the rest is content.
const NAME_LENGTH: usize = 200;

/// The length of the part of a program that is read.
const CODE_LENGTH: usize = 4_000;

/// Keys of arguments that name what a tool for many operations does.
#[rustfmt::skip]
const OPERATIONS: &[&str] = &["service", "operation", "action", "op", "method", "command", "cmd", "function", "request", "event"];

/// The short values that name an operation.
fn operations(args: &Value) -> impl Iterator<Item = &str> {
    let map = args.as_object().into_iter().flatten();
    map.filter(|(key, _)| OPERATIONS.contains(&key.to_ascii_lowercase().as_str()))
        .filter_map(|(_, value)| value.as_str())
        .filter(|text| text.len() <= 60 && !text.contains(['\n', '=', '(', ';', '|', '&']))
        .filter_map(|text| text.split_whitespace().next())
}

/// The verb that an identifier of a program begins with: `drop` of `dropna`.
fn coded_verb(word: &str) -> Option<Verb> {
    (4..=word.len().min(9)).rev().find_map(|end| {
        let (lemma, form) = verb_of(word.get(..end)?)?;
        matches!(form, Form::Base | Form::Any)
            .then(|| verb(lemma))
            .flatten()
    })
}

/// A value of at most this many words names a thing; a longer one is content.
const SHORT_VALUE: usize = 4;

/// The words of a recorded call.
#[derive(Debug)]
pub(crate) struct CallWords {
    /// The words of the name, in lowercase.
    pub(crate) plain: Vec<String>,
    /// The same, folded.
    pub(crate) name: FxHashSet<String>,
    /// The verbs of the name.
    pub(crate) verbs: Vec<Verb>,
    pub(crate) classes: Classes,
    pub(crate) keys: FxHashSet<String>,
    pub(crate) values: FxHashSet<String>,
    /// The words of short values, which name things.
    pub(crate) short: FxHashSet<String>,
    /// The words of keys of lists.
    pub(crate) lists: FxHashSet<String>,
    /// True if a value has a version: `web:1.9.0`.
    pub(crate) versioned: bool,
    /// Values of one word, such as `closed`.
    pub(crate) states: FxHashSet<String>,
    /// The verbs that keys are made from: `attachments`.
    pub(crate) key_verbs: BTreeSet<&'static str>,
    /// The classes of the verbs that identifiers of a program begin with.
    pub(crate) coded: Classes,
    /// True if it runs a command that only tests, checks or builds.
    pub(crate) checks: bool,
    /// True if an argument names the operation of a tool for many.
    pub(crate) operates: bool,
    /// True if the tool counts as a write.
    pub mutating: bool,
    pub effect: Effect,
}

/// The effect of a call, as far as its tool's name shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only looks, so it is never an action.
    Reads,
    Acts,
    /// It runs what it is given.
    Executes,
    Unknown,
}

/// The list of the suite that a tool is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    Mutating,
    Readonly,
    Nowhere,
}

/// Returns true if a name contains a mutating verb as a whole word.
pub(crate) fn is_mutating_name(name: &str) -> bool {
    lexical::words(name)
        .iter()
        .any(|word| LISTED.contains(&word.as_str()))
}

/// Returns true if a word of a tool's name is about money that moves.
fn is_money(word: &str) -> bool {
    matches!(
        word,
        "money" | "payment" | "payments" | "transaction" | "transactions" | "funds" | "transfer"
    )
}

/// Returns true if a word of a tool's name is someone who does what a verb says, and so no thing:
/// `scheduler`, `editor`.
fn is_agent(word: &str) -> bool {
    (word.ends_with("er") || word.ends_with("or"))
        && word.len() > 5
        && verb_of(word).is_none()
        && nominal_of(word).is_none()
        && tool_verb(word).is_some()
}

/// The verbs of a tool's name: its first verb and those that "and" or "or" joins to it; without
/// one, the verbs that its nouns are made from, or a word that can be either.
fn verbs_of(words: &[String]) -> Vec<Verb> {
    let is_sure = |word: &String| !EITHER.contains(&word.as_str());
    let base = |word: &String| {
        let (lemma, form) = verb_of(word).filter(|_| is_sure(word))?;
        matches!(form, Form::Base | Form::Any)
            .then(|| verb(lemma))
            .flatten()
    };
    let mut verbs: Vec<Verb> = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let joined = place > 0 && matches!(words[place - 1].as_str(), "and" | "or");
        if verbs.is_empty() || joined {
            verbs.extend(base(word));
        }
    }
    if verbs.is_empty() {
        verbs.extend(
            words
                .iter()
                .filter(|word| is_sure(word))
                .filter_map(|word| tool_verb(word)),
        );
    }
    if verbs.is_empty() {
        // `place_hold` is a hold.
        let mut either: Vec<Verb> = words.iter().filter_map(|word| tool_verb(word)).collect();
        if either.iter().any(|verb| verb.usage != Use::Light) {
            either.retain(|verb| verb.usage != Use::Light);
        }
        verbs.extend(either.first());
    }
    verbs
}

/// The effect of a tool that no list of the suite names.
pub(crate) fn effect_of(words: &[String]) -> Effect {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    if has(&EXECUTING) || has(&["run"]) && has(&["query", "test", "tests"]) {
        return Effect::Executes;
    }
    let sure = |word: &String| tool_verb(word).is_some() && !EITHER.contains(&word.as_str());
    if words
        .last()
        .is_some_and(|word| RECORDS.contains(&word.as_str()))
        && !words.iter().any(sure)
    {
        return Effect::Reads;
    }
    let mut thing = false;
    for word in words {
        if READING.contains(&word.as_str()) {
            return Effect::Reads;
        }
        if tool_verb(word).is_some_and(|verb| verb.is != 0) {
            if !EITHER.contains(&word.as_str()) {
                return Effect::Acts;
            }
            thing = true;
        }
    }
    // `book_room`, but not `text_to_speech`.
    let first = words
        .windows(2)
        .any(|pair| EITHER.contains(&pair[0].as_str()) && pair[1] != "to");
    if thing && first {
        Effect::Acts
    } else {
        Effect::Unknown
    }
}

/// Returns true if a string has a version of three numbers: `web:1.9.0`, `v2.0.1`.
fn has_version(text: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
        .any(|part| {
            let part = part.strip_prefix(['v', 'V']).unwrap_or(part);
            let numbers: Vec<&str> = part.splitn(3, '.').collect();
            numbers.len() == 3
                && numbers[..2]
                    .iter()
                    .all(|own| !own.is_empty() && own.bytes().all(|c| c.is_ascii_digit()))
                && numbers[2].starts_with(|c: char| c.is_ascii_digit())
        })
}

/// The folded words of a string that are written with capitals inside: "GmbH", "GitHub".
pub(crate) fn mixed_words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphabetic())
        .filter(|word| {
            let capitals = word.chars().skip(1).filter(|c| c.is_uppercase()).count();
            capitals > 0 && word.chars().any(char::is_lowercase)
        })
        .map(|word| fold(&word.to_lowercase()))
        .collect()
}

impl CallWords {
    pub(crate) fn new(call: &ToolCallView<'_>, listed: Listed) -> Self {
        let plain = lexical::words(call.name());
        let verbs = verbs_of(&plain);
        Self {
            name: plain.iter().map(|word| fold(word)).collect(),
            // `apply_credit` moves money.
            classes: plain
                .iter()
                .filter(|word| !EITHER.contains(&word.as_str()))
                .filter_map(|word| Some(tool_verb(word)?.is & PAY))
                .chain(verbs.iter().map(|verb| verb.is))
                .chain(plain.iter().filter(|word| is_money(word)).map(|_| PAY))
                .fold(0, |all, class| all | class),
            verbs,
            keys: FxHashSet::default(),
            values: FxHashSet::default(),
            short: FxHashSet::default(),
            lists: FxHashSet::default(),
            versioned: false,
            states: FxHashSet::default(),
            key_verbs: BTreeSet::new(),
            coded: 0,
            checks: false,
            operates: false,
            mutating: match listed {
                Listed::Mutating => true,
                Listed::Readonly => false,
                Listed::Nowhere => is_mutating_name(call.name()),
            },
            effect: match (listed, effect_of(&plain)) {
                (Listed::Readonly, _) => Effect::Reads,
                (Listed::Mutating, Effect::Reads) => Effect::Unknown,
                (_, effect) => effect,
            },
            plain,
        }
    }

    /// The words of the tool's name, in lowercase.
    pub(crate) fn words(&self) -> &[String] {
        &self.plain
    }

    /// The folded words of the name that are not verbs.
    pub(crate) fn things(&self) -> Vec<String> {
        self.plain
            .iter()
            .filter(|word| {
                !EXECUTING.contains(&word.as_str())
                    && !QUERYING.contains(&word.as_str())
                    && !READING.contains(&word.as_str())
                    && !self
                        .verbs
                        .iter()
                        .any(|verb| verb_of(word).is_some_and(|(lemma, _)| lemma == verb.lemma))
                    && !matches!(
                        word.as_str(),
                        "details" | "info" | "by" | "id" | "to" | "from"
                    )
                    && !(self.plain.len() > 1 && self.plain[0] == **word && is_agent(word))
            })
            .map(|word| fold(word))
            .collect()
    }

    /// Returns true if the tool's name has only an agent and a verb, and no thing:
    /// `scheduler_move`.
    pub(crate) fn is_agents(&self) -> bool {
        self.effect == Effect::Acts
            && self.plain.first().is_some_and(|word| is_agent(word))
            && self.things().is_empty()
    }

    /// Returns true if the folded words of a sentence have the tool's verb or its thing.
    pub(crate) fn is_about(&self, words: &BTreeSet<String>) -> bool {
        self.plain
            .iter()
            .filter(|word| word.len() > 2 && !matches!(word.as_str(), "set" | "the" | "and"))
            .any(|word| words.contains(&fold(word)))
            || self
                .things()
                .iter()
                .any(|thing| words.iter().any(|word| is_same_thing(thing, word)))
            || self.verbs.iter().any(|verb| words.contains(verb.lemma))
            // "Your rental", of `rent_car`
            || self.plain.first().is_some_and(|first| {
                first.len() >= 4 && words.iter().any(|word| word.starts_with(first.as_str()))
            })
    }

    /// Returns true if the folded words of a sentence have the words of a short argument: "front
    /// door" of `lock.front_door`.
    pub(crate) fn names_argument(&self, words: &BTreeSet<String>) -> bool {
        let own: Vec<&String> = self.short.iter().filter(|word| word.len() > 2).collect();
        let shared = own.iter().filter(|word| words.contains(**word)).count();
        shared >= 2 && shared * 3 >= own.len() * 2
    }

    /// Returns true if the folded words of a sentence have all things of the tool's name. The first
    /// of several is its verb.
    pub(crate) fn names_thing(&self, words: &BTreeSet<String>) -> bool {
        let mut things = self.things();
        if things.len() > 1 && self.plain.first().map(|word| fold(word)) == Some(things[0].clone())
        {
            things.remove(0);
        }
        !things.is_empty()
            && things.iter().all(|thing| {
                words.contains(thing) || words.iter().any(|word| is_same_thing(thing, word))
            })
    }

    /// Returns true if a folded word is in the tool's name.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.name.contains(word)
    }

    /// Adds the words of the arguments, which only claims are compared with.
    pub(crate) fn add_arguments(&mut self, call: &ToolCallView<'_>) {
        if let Some(args) = call.args() {
            if self.effect == Effect::Executes && only_reads(args) {
                self.effect = Effect::Reads;
            }
            // What a statement does is known as well as what a tool does.
            let runs = self.effect == Effect::Executes || self.is_any(QUERYING);
            if let Some(verbs) = command_verbs(args).filter(|_| runs) {
                self.verbs = verbs.into_iter().filter_map(verb).collect();
                self.classes = self.verbs.iter().fold(0, |all, verb| all | verb.is);
                self.effect = Effect::Acts;
            }
            // `review` with a `body` or an `event` is written, and not read.
            let wrote = || {
                args.as_object()
                    .is_some_and(|map| map.contains_key("body") || map.contains_key("event"))
            };
            let reviews = self.effect == Effect::Reads && self.is_any(&["review"]) && wrote();
            if reviews {
                self.effect = Effect::Unknown;
                self.verbs.extend(verb("submit"));
                self.classes |= self.verbs.iter().fold(0, |all, verb| all | verb.is);
            }
            // `web.open` with a `url` reads a page.
            let opens = matches!(self.verbs.as_slice(), [one] if one.lemma == "open");
            if opens && args.as_object().is_some_and(|map| map.contains_key("url")) {
                self.effect = Effect::Reads;
            }
            self.checks = self.effect == Effect::Executes && only_checks(args);
            self.add_operations(args);
            if reviews {
                self.effect = Effect::Acts;
            }
            // A call that only looks answers nothing, unless its statement writes.
            if self.effect != Effect::Reads || self.is_any(QUERYING) {
                self.collect(args);
            }
        }
    }

    /// Adds the verbs of what a tool for many operations was asked to do: `service:
    /// light.turn_off`, `command: save-all`.
    fn add_operations(&mut self, args: &Value) {
        if !matches!(self.effect, Effect::Unknown | Effect::Executes) {
            return;
        }
        for operation in operations(args) {
            let words = lexical::words(operation);
            let base = |word: &String| {
                let (lemma, form) = verb_of(word)?;
                matches!(form, Form::Base | Form::Any)
                    .then(|| verb(lemma))
                    .flatten()
            };
            let own: Vec<Verb> = words.iter().find_map(base).into_iter().collect();
            self.classes |= own.iter().fold(0, |all, verb| all | verb.is);
            self.operates |= !own.is_empty();
            self.verbs.extend(own);
        }
    }

    /// Returns true if code that the call ran has an identifier that begins with a verb of one of
    /// the classes: `dropna`, `savefig`.
    pub(crate) fn codes_any(&self, classes: Classes) -> bool {
        self.effect == Effect::Executes && self.coded & classes != 0
    }

    fn collect(&mut self, args: &Value) {
        match args {
            Value::Object(map) => {
                for (key, value) in map {
                    for word in lexical::words(key) {
                        if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
                        {
                            self.key_verbs.extend(nominal_of(&word));
                        }
                        if value.is_array() {
                            self.lists.insert(fold(&word));
                        }
                        self.keys.insert(fold(&word));
                    }
                    self.collect(value);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.collect(value)),
            Value::String(text) => {
                let length = match self.effect {
                    Effect::Executes => CODE_LENGTH,
                    _ => NAME_LENGTH,
                };
                let head: String = text.chars().take(length).collect();
                let words = lexical::words(&head);
                if self.effect == Effect::Executes && words.len() > 1 {
                    self.coded |= words
                        .iter()
                        .filter_map(|word| coded_verb(word))
                        .fold(0, |all, verb| all | verb.is);
                }
                self.versioned |= words.len() <= 8 && has_version(&head);
                // `query` with `DELETE FROM …` does not only look.
                let statement = words.len() > 2
                    && words
                        .first()
                        .is_some_and(|word| STATEMENTS.contains(&word.as_str()));
                if statement && self.is_any(QUERYING) && self.effect != Effect::Acts {
                    self.effect = Effect::Executes;
                }
                if let [state] = words.as_slice() {
                    self.states.insert(fold(state));
                }
                if words.len() <= SHORT_VALUE {
                    self.short.extend(words.iter().map(|word| fold(word)));
                }
                self.values.extend(words.iter().map(|word| fold(word)));
                // "GmbH" and "GitHub" are one word, too.
                let mixed = mixed_words(&head);
                if words.len() <= SHORT_VALUE {
                    self.short.extend(mixed.iter().cloned());
                }
                self.values.extend(mixed);
            }
            _ => {}
        }
    }

    /// Returns true if the text names the call: every word of three or more letters of its name is
    /// there. A name with none so long needs all.
    pub(crate) fn is_mentioned(&self, text: &FxHashSet<String>) -> bool {
        let salient = |word: &&String| word.chars().count() >= 3;
        let any_salient = self.plain.iter().any(|word| salient(&word));
        !self.plain.is_empty()
            && self
                .plain
                .iter()
                .filter(|word| !any_salient || salient(word))
                .all(|word| text.contains(&fold(word)))
    }

    /// Returns true if the call does something.
    pub(crate) fn acts(&self) -> bool {
        self.effect == Effect::Acts || self.is_any(OPERATING)
    }

    pub(crate) fn is_any(&self, words: &[&str]) -> bool {
        self.plain.iter().any(|word| words.contains(&word.as_str()))
    }
}
