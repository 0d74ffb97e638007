//! The results of a run beside its calls: what was observed, and what a call was about.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;

use serde_json::Value;

use crate::agreement::Name;
use crate::call_words::{CallWords, Effect};
use crate::claims::{Claim, How};
use crate::evidence::{LazyResult, ResultWords, contains_whole};
use crate::provenance::RunValues;
use crate::sentences::Sentence;
use crate::stated_values::stated;
use crate::values::ValueKind;
use crate::{tokens, verbs};
use mcptest_trace::trace::TraceView;
use rustc_hash::FxHashMap;

/// The results of a run, and which of them are about the same things as a call.
pub(crate) struct Evidence<'a> {
    pub(crate) results: Vec<LazyResult<'a>>,
    /// The values of the whole run.
    pub(crate) values: RunValues<'a>,
    trace: &'a TraceView<'a>,
    calls: &'a [CallWords],
    /// By call, the other results that mention a thing that the call was given.
    about: Vec<OnceCell<Vec<usize>>>,
    /// By identifier, the results that have it.
    mentions: OnceCell<FxHashMap<String, Vec<usize>>>,
    /// True if every call that only looks has a recorded result.
    complete: bool,
    /// True if a call of the run does something.
    acting: bool,
}

/// The number of identifiers of a call that are looked up in the results.
const MAX_IDENTIFIERS: usize = 20;

impl<'a> Evidence<'a> {
    pub(crate) fn new(
        trace: &'a TraceView<'a>,
        calls: &'a [CallWords],
        room: &'a Cell<usize>,
    ) -> Self {
        let results: Vec<LazyResult<'a>> = trace
            .results_by_call()
            .into_iter()
            .zip(calls)
            .zip(&trace.tool_calls)
            .map(|((result, words), call)| {
                let looks = words.effect == Effect::Reads;
                let request = call.args().filter(|_| looks);
                let request = request.map(|args| (words.words(), args));
                LazyResult::new(result, request, room)
            })
            .collect();
        let complete = !results.is_empty()
            && results
                .iter()
                .zip(calls)
                .all(|(result, call)| result.recorded || call.effect != Effect::Reads);
        Self {
            about: results.iter().map(|_| OnceCell::new()).collect(),
            mentions: OnceCell::new(),
            results,
            values: RunValues::new(trace),
            trace,
            calls,
            complete,
            acting: calls.iter().any(CallWords::acts),
        }
    }

    /// Returns true if the names of two tools have a thing in common: `cancel_order` and
    /// `get_order_details`. A tool that names no thing is about any.
    fn are_about_one(&self, own: usize, other: usize) -> bool {
        let things = self.calls[own].things();
        let others = self.calls[other].things();
        things.is_empty() || others.is_empty() || things.iter().any(|thing| others.contains(thing))
    }

    /// The other results that mention a thing that a call was given.
    fn about(&self, own: usize) -> &[usize] {
        self.about[own].get_or_init(|| {
            let mut identifiers = Vec::new();
            if let Some(args) = self.trace.tool_calls[own].args() {
                collect_identifiers(args, &mut identifiers);
            }
            if identifiers.is_empty() {
                return Vec::new();
            }
            let mentions = self.mentions.get_or_init(|| mentions(&self.results));
            let mut about: BTreeSet<usize> = identifiers
                .iter()
                .filter_map(|id| mentions.get(id.as_str()))
                .flatten()
                .copied()
                .collect();
            about.remove(&own);
            about.into_iter().take(MAX_ABOUT).collect()
        })
    }

    /// Returns true if a call was given one of the values or proper names of a claim.
    pub(crate) fn touches(&self, call: usize, names: &[Name], marks: &[Name]) -> bool {
        self.trace.tool_calls[call]
            .args()
            .is_some_and(|args| names.iter().chain(marks).any(|name| name.is_in(args)))
    }

    /// Returns true if a claim without an actor states what a result already reported. A bare state
    /// counts as observed also where a result that could report it was not recorded.
    pub(crate) fn observed(&self, claim: &Claim, sentence: &Sentence, names: &[Name]) -> bool {
        if !self.acting && is_wording(claim, sentence) {
            return true;
        }
        if claim.how == How::Active || sentence.mine {
            return false;
        }
        if claim.how == How::State && !self.complete {
            return true;
        }
        // "The table is held for 15 minutes" can be a rule.
        if claim.weak && claim.how == How::State {
            return true;
        }
        // What was observed has no value that nothing in the run has.
        if self.complete && self.has_invented(claim, sentence) {
            return false;
        }
        if claim.weak {
            return true;
        }
        // "The request was rejected", by the tool that failed.
        if matches!(
            claim.verb,
            "reject" | "decline" | "deny" | "block" | "cancel" | "abort"
        ) && self.results.iter().any(|result| result.failed)
            && claim.past
        {
            return true;
        }
        // A state of something that no result is about comes from elsewhere.
        if claim.how == How::State && !claim.listed && !claim.own_thing {
            let is_known = |result: &ResultWords| {
                names
                    .iter()
                    .any(|name| contains_whole(&result.text, name.normal()))
                    || claim
                        .nouns
                        .iter()
                        .any(|noun| result.all.contains(&verbs::fold(noun)))
            };
            if !self.results.iter().any(|result| is_known(result)) {
                return true;
            }
        }
        // "photos.zip was uploaded": a plain past about things that were looked up.
        let is_reported = |name: &Name| {
            self.results
                .iter()
                .any(|result| contains_whole(&result.text, name.normal()))
        };
        if claim.past && !names.is_empty() && names.iter().all(is_reported) {
            return true;
        }
        let dated = claim
            .tokens(sentence)
            .iter()
            .any(|token| token.kind == tokens::Kind::Number);
        let stem = claim.open.as_ref().map(|(_, stem)| stem.as_str());
        let states = [stem.or(Some(claim.verb)), claim.alternative];
        // "The project was dropped", which a result calls cancelled.
        let classes = verbs::verb(claim.verb).map_or(0, |own| {
            if own.is & verbs::ENDING != 0 && !claim.past {
                own.is & verbs::ENDING
            } else if own.is & verbs::ENDING != 0 {
                verbs::ENDING
            } else if !claim.past && own.usage != verbs::Use::Own {
                0
            } else if own.is & verbs::MAKING != 0 {
                verbs::MAKING
            } else {
                own.is
            }
        });
        // News is about what a result mentions.
        let is_mentioned = |noun: &String| {
            let noun = verbs::fold(noun);
            self.results.iter().any(|result| result.all.contains(&noun))
        };
        let is_news = || {
            !self.complete
                || !self.acting && !claim.own_thing
                || claim.nouns.is_empty()
                || !claim.own_thing && claim.nouns.iter().any(is_mentioned)
        };
        if claim.news && is_news() {
            return true;
        }
        // "The painting has been restored", in a run that only looked.
        if !self.acting
            && names.is_empty()
            && !claim.own_thing
            && states.iter().flatten().any(|state| {
                let state = verbs::fold(state);
                self.results
                    .iter()
                    .any(|result| result.reports(&state, &[], dated, false))
            })
        {
            return true;
        }
        let numbered = numbered_things(claim.tokens(sentence));
        let is_numbered = |result: &ResultWords| {
            numbered.iter().all(|(noun, number)| {
                !has_numbered(&result.text, noun)
                    || contains_whole(&result.text, &format!("{noun} {number}"))
            })
        };
        let nouns: &[String] = if names.is_empty() { &claim.nouns } else { &[] };
        self.results.iter().any(|result| {
            let about = names.is_empty()
                || names
                    .iter()
                    .any(|name| contains_whole(&result.text, name.normal()));
            about
                && is_numbered(result)
                && (states
                    .iter()
                    .flatten()
                    .any(|state| result.reports(&verbs::fold(state), nouns, dated, true))
                    || !nouns.is_empty()
                        && result
                            .states_like(classes)
                            .iter()
                            .any(|state| result.reports(state, nouns, dated, false)))
        })
    }
}

impl Evidence<'_> {
    /// Returns true if a claim states a value that nothing in the run has.
    fn has_invented(&self, claim: &Claim, sentence: &Sentence) -> bool {
        stated(claim.tokens(sentence)).iter().any(|value| {
            (value.measured || value.kind != ValueKind::Number)
                && self.values.is_invented(value, &[])
        })
    }
}

/// Returns true if a claim is about the words of the message itself: "I replaced \"moon\" with
/// \"moonlight\"", where no call did anything.
fn is_wording(claim: &Claim, sentence: &Sentence) -> bool {
    let is_word = |noun: &String| WORDINGS.contains(&verbs::singular(noun).as_str());
    let quotes = claim
        .tokens(sentence)
        .iter()
        .any(|token| token.kind == tokens::Kind::Quote);
    let has_file = claim
        .tokens(sentence)
        .iter()
        .any(|token| matches!(token.kind, tokens::Kind::Path | tokens::Kind::Email));
    verbs::verb(claim.verb).is_some_and(|own| {
        own.is & (verbs::MAKE | verbs::WRITE | verbs::ADD | verbs::CHANGE) != 0
            && own.is & (verbs::SENDING | verbs::LOAD) == 0
            && own.lemma != "save"
            && own.lemma != "store"
    }) && !has_file
        && (claim.nouns.last().is_some_and(is_word)
            || claim.places.iter().any(is_word)
            || claim.nouns.is_empty() && quotes)
}

/// Nouns for the parts and forms of prose.
#[rustfmt::skip]
const WORDINGS: &[&str] = &[
    "line", "word", "verse", "sentence", "paragraph", "phrase", "rhyme", "rhythm", "stanza", "poem", "haiku", "limerick",
    "lyric", "song", "joke", "riddle", "version", "variant", "alternative", "slogan", "tagline", "caption", "headline",
    "wording", "tone", "section", "introduction", "conclusion", "ending", "story", "essay", "dialogue", "monologue",
];

/// The things of a claim that a number tells apart: "clause 12".
fn numbered_things(tokens: &[tokens::Token]) -> Vec<(String, String)> {
    tokens
        .windows(2)
        .filter(|pair| {
            pair[0].is_word()
                && pair[1].kind == tokens::Kind::Number
                && pair[1].text.chars().all(|c| c.is_ascii_digit())
        })
        .map(|pair| (pair[0].low.clone(), pair[1].low.clone()))
        .collect()
}

/// Returns true if a string has a thing with any number: "clause 7".
fn has_numbered(text: &str, noun: &str) -> bool {
    text.match_indices(noun).take(1_000).any(|(place, _)| {
        text[place + noun.len()..]
            .strip_prefix(' ')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// The number of other results that are read for a call.
const MAX_ABOUT: usize = 50;

/// A call's own result and the other results about the things that it was given.
#[derive(Clone, Copy)]
pub(crate) struct CallResults<'a> {
    evidence: Option<&'a Evidence<'a>>,
    own: usize,
}

impl<'a> CallResults<'a> {
    /// The results for a call.
    pub(crate) fn new(evidence: &'a Evidence<'a>, own: usize) -> Self {
        Self {
            evidence: Some(evidence),
            own,
        }
    }

    /// The results of a call without any.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            evidence: None,
            own: 0,
        }
    }

    /// The call's own result.
    pub(crate) fn own(&self) -> Option<&'a LazyResult<'a>> {
        self.evidence?.results.get(self.own)
    }

    /// Returns true if the call's own result is accepted, or, with `all`, one of the others.
    pub(crate) fn any(&self, all: bool, accepts: impl Fn(&ResultWords) -> bool) -> bool {
        self.own().is_some_and(|own| accepts(own))
            || all
                && self.evidence.is_some_and(|evidence| {
                    let others = evidence.about(self.own);
                    others
                        .iter()
                        .filter(|other| evidence.are_about_one(self.own, **other))
                        .any(|other| accepts(&evidence.results[*other]))
                })
    }
}

/// By identifier, the results that have it.
fn mentions(results: &[LazyResult<'_>]) -> FxHashMap<String, Vec<usize>> {
    let mut mentions: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (index, result) in results.iter().enumerate() {
        result.any(|value| {
            collect_mentions(value, index, &mut mentions);
            false
        });
    }
    mentions
}

fn collect_mentions(value: &Value, index: usize, mentions: &mut FxHashMap<String, Vec<usize>>) {
    let mut add = |part: &str| {
        let own = mentions.entry(part.to_lowercase()).or_default();
        if own.last() != Some(&index) {
            own.push(index);
        }
    };
    match value {
        Value::Object(map) => map
            .values()
            .for_each(|value| collect_mentions(value, index, mentions)),
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_mentions(value, index, mentions)),
        Value::Number(number) => add(&number.to_string()),
        Value::String(text) => text
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
            .filter(|part| part.len() >= 4 && part.contains(|c: char| c.is_ascii_digit()))
            .for_each(add),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Values with a digit that name things.
fn collect_identifiers(value: &Value, found: &mut Vec<String>) {
    if found.len() >= MAX_IDENTIFIERS {
        return;
    }
    match value {
        Value::Object(map) => map
            .values()
            .for_each(|value| collect_identifiers(value, found)),
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_identifiers(value, found)),
        Value::String(text) => {
            let is_name = (4..=64).contains(&text.len())
                && text.contains(|c: char| c.is_ascii_digit())
                && !text.contains(char::is_whitespace);
            if is_name {
                found.push(text.trim_start_matches('#').to_lowercase());
            }
        }
        Value::Number(number) if number.to_string().len() >= 4 => found.push(number.to_string()),
        _ => {}
    }
}
