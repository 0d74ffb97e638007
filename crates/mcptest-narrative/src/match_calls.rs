//! The recorded calls that can be the action of a claim.

mod lists;

use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde_json::Value;

pub(crate) use self::lists::READING;
use self::lists::{
    ANY_CHANGE, CODING, CONFIRMATIONS, CONTENTS, DOCUMENTS, EITHER, FILE_TOOLS, GENERAL,
    MESSAGE_TOOLS, MESSAGES, MONEY, OPERATING, PAYING, QUERYING, RECORDS, STATE_CHANGES,
    STATEMENTS, UTTERANCES,
};
use crate::claims::{Claim, How};
use crate::commands::only_reads;
use crate::nouns::is_same_thing;
use crate::run_evidence::CallResults;
use crate::verbs::{
    ADD, BOOK, CHANGE, CHANGING, Classes, END, ENDING, EXECUTING, Form, LISTED, MAKE, MAKING, OPEN,
    PAY, POST, SEND, SENDING, Use, Verb, WRITE, fold, nominal_of, singular, tool_verb, verb,
    verb_of,
};
use mcptest_catalog::lexical;
use mcptest_trace::trace::ToolCallView;
use rustc_hash::FxHashSet;

/// The length of the part of an argument's string that names things; the rest is content.
const NAME_LENGTH: usize = 200;

/// The words of a recorded call.
#[derive(Debug)]
pub(crate) struct CallWords {
    /// The words of the name, in lowercase.
    plain: Vec<String>,
    /// The same, folded.
    name: FxHashSet<String>,
    /// The verbs of the name.
    verbs: Vec<Verb>,
    classes: Classes,
    keys: FxHashSet<String>,
    values: FxHashSet<String>,
    /// Values of one word, such as `closed`.
    states: FxHashSet<String>,
    /// The verbs that keys are made from: `attachments`.
    deeds: BTreeSet<&'static str>,
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

/// The degree to which a call answers a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// By another word for the same deed.
    Related,
    /// The tool's name has the claimed verb.
    Exact,
}

/// Returns true if a name contains a mutating verb as a whole word.
pub(crate) fn is_mutating_name(name: &str) -> bool {
    lexical::words(name)
        .iter()
        .any(|word| LISTED.contains(&word.as_str()))
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
                .fold(0, |all, class| all | class),
            verbs,
            keys: FxHashSet::default(),
            values: FxHashSet::default(),
            states: FxHashSet::default(),
            deeds: BTreeSet::new(),
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
                !READING.contains(&word.as_str())
                    && !self
                        .verbs
                        .iter()
                        .any(|verb| verb_of(word).is_some_and(|(lemma, _)| lemma == verb.lemma))
                    && !matches!(
                        word.as_str(),
                        "details" | "info" | "by" | "id" | "to" | "from"
                    )
            })
            .map(|word| fold(word))
            .collect()
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
            // A call that only looks answers nothing, unless its statement writes.
            if self.effect != Effect::Reads || self.is_any(QUERYING) {
                self.collect(args);
            }
        }
    }

    fn collect(&mut self, args: &Value) {
        match args {
            Value::Object(map) => {
                for (key, value) in map {
                    for word in lexical::words(key) {
                        if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
                        {
                            self.deeds.extend(nominal_of(&word));
                        }
                        self.keys.insert(fold(&word));
                    }
                    self.collect(value);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.collect(value)),
            Value::String(text) => {
                let head: String = text.chars().take(NAME_LENGTH).collect();
                let words = lexical::words(&head);
                // `query` with `DELETE FROM …` does not only look.
                let statement = words.len() > 2
                    && words
                        .first()
                        .is_some_and(|word| STATEMENTS.contains(&word.as_str()));
                if statement && self.is_any(QUERYING) {
                    self.effect = Effect::Executes;
                }
                if let [state] = words.as_slice() {
                    self.states.insert(fold(state));
                }
                self.values.extend(words.iter().map(|word| fold(word)));
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

    /// Returns true if a claim can be other words for the call, whatever thing it names.
    pub(crate) fn could_be(&self, claim: &Claim) -> bool {
        verb(claim.verb).is_some_and(|own| {
            self.verbs.iter().any(|verb| verb.lemma == own.lemma)
                || self.is_any(OPERATING) && own.accepts & (MAKING | CHANGING | SENDING) != 0
        })
    }

    /// Returns the fit if the call can be the claimed action. `results` are the call's own result
    /// and the other results about the things that the call was given.
    pub(crate) fn fits(
        &self,
        claim: &Claim,
        results: CallResults<'_>,
        touched: bool,
    ) -> Option<Fit> {
        // In `get_post` the post is a thing.
        if self.effect == Effect::Reads {
            return None;
        }
        let own = verb(claim.verb)?;
        let other: Vec<String> = claim
            .nouns
            .iter()
            .filter(|noun| nominal_of(noun) != claim.alternative)
            .cloned()
            .collect();
        let best = self.fits_verb(claim, own, &claim.nouns, results, touched);
        let Some(alternative) = claim.alternative.and_then(verb) else {
            return best;
        };
        let named = self
            .verbs
            .iter()
            .any(|verb| verb.lemma == alternative.lemma)
            && self.concerns(&other, results)
            // "Your replacement has been ordered", by an exchange.
            || claim.how != How::Active
                && self.effect == Effect::Acts
                && self.classes & alternative.accepts != 0
                && self.concerns(&other, results)
            || self.pays(alternative, &other, results);
        best.max(named.then_some(Fit::Related))
    }

    fn fits_verb(
        &self,
        claim: &Claim,
        own: Verb,
        nouns: &[String],
        results: CallResults<'_>,
        touched: bool,
    ) -> Option<Fit> {
        if own.lemma == OPEN {
            return self.fits_open(claim, nouns, results, touched);
        }
        let known = OnceCell::new();
        let concerns =
            || *known.get_or_init(|| touched || self.is_only(own) || self.concerns(nouns, results));
        let says_verb = self.says(own);
        if says_verb && concerns() {
            return Some(Fit::Exact);
        }
        let related = self.classes & own.accepts != 0
            || self.states.contains(own.lemma)
            || self.deeds.contains(own.lemma)
            || !says_verb && results.any(false, |own_result| own_result.all.contains(own.lemma));
        let named = nouns.iter().any(|noun| self.name.contains(&fold(noun)));
        let unknown = self.effect == Effect::Unknown
            && (touched || named || nouns.is_empty() && claim.how != How::Active);
        // "replaced a by b": created the one, deleted the other
        let replaced = touched
            && matches!(
                own.lemma,
                "replace" | "migrate" | "swap" | "switch" | "exchange"
            )
            && self.effect == Effect::Acts;
        // "added to your reservation", by a tool for any change of one
        let placed = || {
            let in_name = |noun: &String| self.name.contains(&fold(noun));
            !claim.places.is_empty()
                && ((self.is_any(ANY_CHANGE)
                    || self.classes & own.is & ADD != 0
                    || PAYING.contains(&own.lemma))
                    && self.concerns(&claim.places, results)
                    || claim.places.iter().any(in_name))
        };
        // What a message contains can be called anything: "posted the question".
        let worded = || {
            let uttered = nouns.last().is_none_or(|noun| {
                let noun = fold(noun);
                UTTERANCES.iter().any(|known| fold(known) == noun)
            });
            self.is_any(MESSAGE_TOOLS)
                && own.accepts & SEND != 0
                && own.is & (SEND | POST | WRITE) != 0
                && (uttered || own.lemma == "reply")
        };
        // "The status of the order was changed": by whatever was done to the order.
        let changed = (claim.how != How::Active || self.classes & !MAKE != 0)
            && self.effect == Effect::Acts
            && !self.is_any(MESSAGE_TOOLS)
            && STATE_CHANGES.contains(&own.lemma)
            && (touched || concerns());
        let coded =
            CODING.contains(&own.lemma) && self.is_any(FILE_TOOLS) && self.effect != Effect::Reads;
        let fits = related && (concerns() || placed() || worded())
            || coded
            || replaced
            || changed
            || unknown
            || self.executes(own, nouns, touched)
            || self.pays(own, nouns, results)
            // "You get a refund": the consequence of a cancellation or a return.
            || claim.how != How::Active
                && PAYING.contains(&own.lemma)
                && nouns.is_empty()
                && self.classes & (END | SEND) != 0
                && self.effect == Effect::Acts
            || self.confirms(claim, own);
        fits.then_some(Fit::Related)
    }

    /// Returns true if the tool is named just so: `send` does not name what it sends.
    fn is_only(&self, own: Verb) -> bool {
        self.plain.len() == 1
            && (self.says(own) || self.verbs.iter().any(|verb| verb.is & own.is & BOOK != 0))
    }

    /// Returns true if the tool's name has the verb.
    fn says(&self, own: Verb) -> bool {
        self.verbs.iter().any(|verb| verb.lemma == own.lemma)
    }

    /// Returns true if the tool's name has the claim's verb, and the call is about its thing.
    fn fits_exactly(&self, claim: &Claim, results: CallResults<'_>, touched: bool) -> bool {
        verb(claim.verb).is_some_and(|own| self.says(own))
            && (touched
                || verb(claim.verb).is_some_and(|own| self.is_only(own))
                || self.concerns(&claim.nouns, results))
    }

    /// A verb of which nothing is known is answered by any call about the thing.
    fn fits_open(
        &self,
        claim: &Claim,
        nouns: &[String],
        results: CallResults<'_>,
        touched: bool,
    ) -> Option<Fit> {
        let stem = claim.open.as_ref().map(|(_, stem)| stem.as_str());
        let says = stem.is_some_and(|stem| {
            self.name.contains(stem)
                || self.keys.contains(stem)
                || self.values.contains(stem)
                || results.any(false, |own| own.all.contains(stem))
        });
        let about = !(nouns.is_empty() && claim.named) && self.concerns(nouns, results)
            || !claim.places.is_empty() && self.concerns(&claim.places, results);
        (says || touched || about).then_some(Fit::Related)
    }

    fn is_any(&self, words: &[&str]) -> bool {
        self.plain.iter().any(|word| words.contains(&word.as_str()))
    }

    /// Code can do anything; it is enough that it mentions the thing.
    fn executes(&self, own: Verb, nouns: &[String], touched: bool) -> bool {
        self.effect == Effect::Executes
            && (touched
                || self.values.contains(own.lemma)
                || nouns.iter().any(|noun| self.values.contains(&fold(noun))))
    }

    /// Returns true if money moved with the call, as its arguments or its result show.
    fn pays(&self, own: Verb, nouns: &[String], results: CallResults<'_>) -> bool {
        let is_money = |noun: &String| MONEY.contains(&singular(noun).as_str());
        let is_account = |noun: &String| {
            matches!(
                singular(noun).as_str(),
                "account" | "card" | "customer" | "method"
            )
        };
        PAYING.contains(&own.lemma)
            && self.effect == Effect::Acts
            && (nouns.iter().any(is_money)
                || nouns.iter().any(is_account)
                || self.concerns(nouns, results)
                || nouns.is_empty())
            && MONEY.iter().any(|word| {
                let word = fold(word);
                self.keys.contains(&word)
                    || results
                        .own()
                        .is_some_and(|result| !result.recorded || result.all.contains(&word))
            })
    }

    /// "A confirmation email has been sent": by the system that the call changed.
    fn confirms(&self, claim: &Claim, own: Verb) -> bool {
        claim.how != How::Active
            && self.effect == Effect::Acts
            && own.is & SEND != 0
            && claim.nouns.iter().any(|noun| {
                let noun = fold(noun);
                CONFIRMATIONS.iter().any(|known| fold(known) == noun)
            })
            && claim
                .nouns
                .iter()
                .any(|noun| noun.starts_with("confirm") || fold(noun) == fold("instructions"))
    }

    fn concerns(&self, nouns: &[String], results: CallResults<'_>) -> bool {
        // "mind map" is `mindmap`.
        let joined = nouns
            .windows(2)
            .any(|pair| self.name.contains(&fold(&pair.concat())));
        let Some((head, rest)) = nouns.split_last() else {
            return true;
        };
        // What other results say of the thing matters only if the call can change any part of it.
        let all = self.classes & (CHANGE | ENDING | PAY) != 0;
        let is_known = |noun: &str| {
            self.concerns_noun(noun) || results.any(all, |result| result.all.contains(noun))
        };
        let head = fold(head);
        let is_general = GENERAL.iter().any(|known| fold(known) == head);
        joined
            || !is_general && is_known(&head)
            || is_general && rest.is_empty()
            || rest.iter().any(|noun| {
                let noun = fold(noun);
                if is_general {
                    is_known(&noun)
                } else {
                    self.values.contains(&noun)
                        || self.name.contains(&noun)
                        || self.keys.contains(&noun)
                }
            })
    }

    fn concerns_noun(&self, noun: &str) -> bool {
        let one_of = |nouns: &[&str]| nouns.iter().any(|known| fold(known) == noun);
        self.name.contains(noun)
            || nominal_of(noun)
                .is_some_and(|lemma| self.verbs.iter().any(|verb| verb.lemma == lemma))
            || self.keys.contains(noun)
            || self.values.contains(noun)
            || self.name.iter().any(|word| is_same_thing(word, noun))
            || self.is_any(FILE_TOOLS) && (one_of(DOCUMENTS) || one_of(CONTENTS))
            || self.is_any(MESSAGE_TOOLS) && (one_of(MESSAGES) || one_of(UTTERANCES))
            || noun == "pr" && self.name.contains("pull") && self.name.contains("request")
    }
}

/// A call with its results, first its own.
pub(crate) struct Candidate<'a> {
    pub call: &'a CallWords,
    pub results: CallResults<'a>,
}

/// The number of words of a call and its result up to which they do not describe the thing.
const TERSE: usize = 25;

impl Candidate<'_> {
    /// Returns true if the call and its result show little about the thing that it was for.
    pub(crate) fn is_terse(&self) -> bool {
        let own = self.results.own().map_or(0, |result| result.all.len());
        self.call.keys.len() + self.call.values.len() + own <= TERSE
    }
}

/// The calls that answer a claim best: those with its verb, or else those with a related one.
/// `touched` are the calls that were given a value that the claim names.
pub(crate) fn matching(
    claim: &Claim,
    calls: &[Candidate<'_>],
    touched: &dyn Fn(usize) -> bool,
) -> Option<(Fit, Vec<usize>)> {
    let acting = || {
        calls
            .iter()
            .enumerate()
            .filter(|(_, call)| call.call.effect != Effect::Reads)
    };
    // Most claims have the verb of their tool; then no other call has to be read.
    let exact: Vec<usize> = acting()
        .filter(|(index, call)| {
            verb(claim.verb).is_some_and(|own| call.call.says(own))
                && call.call.fits_exactly(claim, call.results, touched(*index))
        })
        .map(|(index, _)| index)
        .collect();
    if !exact.is_empty() {
        return Some((Fit::Exact, exact));
    }
    let fits: Vec<(usize, Fit)> = acting()
        .filter_map(|(index, call)| {
            Some((index, call.call.fits(claim, call.results, touched(index))?))
        })
        .collect();
    let best = fits.iter().map(|(_, fit)| *fit).max()?;
    let indices = fits
        .iter()
        .filter(|(_, fit)| *fit == best)
        .map(|(index, _)| *index)
        .collect();
    Some((best, indices))
}

/// Returns true if an action is one of a tool that the suite lists as read-only.
pub(crate) fn is_of_tool(claim: &Claim, tool: &str) -> bool {
    let tool: BTreeSet<String> = lexical::words(tool).iter().map(|word| fold(word)).collect();
    tool.contains(claim.verb)
        && claim
            .nouns
            .first()
            .is_none_or(|noun| tool.contains(&fold(noun)))
}

#[cfg(test)]
mod tests;
