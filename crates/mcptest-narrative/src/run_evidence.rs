//! The results of a run beside its calls: what was observed, and what a call was about.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::claims::{Claim, How};
use crate::evidence::{self, ResultWords, contains_whole};
use crate::match_calls::{CallWords, Candidate, Effect};
use crate::sentences::Sentence;
use crate::stated_values::Name;
use crate::{tokens, verbs};
use mcptest_trace::trace::TraceView;

/// The results of a run, and which of them are about the same things as a call.
#[derive(Default)]
pub(super) struct Evidence {
    pub(super) results: Vec<ResultWords>,
    /// By call, everything that its result contains.
    pub(super) contents: Vec<Option<Value>>,
    /// By call, the other results that mention a thing that the call was given.
    about: Vec<Vec<usize>>,
    /// True if every call that only looks has a recorded result.
    complete: bool,
    /// True if a call of the run does something.
    acting: bool,
}

/// The number of identifiers of a call that are looked up in the results.
const MAX_IDENTIFIERS: usize = 20;

impl Evidence {
    pub(super) fn new(trace: &TraceView<'_>, calls: &[CallWords]) -> Self {
        let mut results = evidence::results(trace);
        for ((result, words), call) in results.iter_mut().zip(calls).zip(&trace.tool_calls) {
            if words.effect == Effect::Reads
                && result.recorded
                && let Some(args) = call.args()
            {
                result.add_request(words.words(), args);
            }
        }
        let contents = trace
            .results_by_call()
            .iter()
            .map(|result| {
                result.map(|result| {
                    let mut all: Vec<Value> = result.extra.values().cloned().collect();
                    all.extend(result.content().cloned());
                    Value::Array(all)
                })
            })
            .collect();
        let mentions = mentions(&results);
        let about = calls
            .iter()
            .zip(&trace.tool_calls)
            .enumerate()
            .map(|(own, (words, call))| {
                let mut identifiers = Vec::new();
                if words.effect != Effect::Reads
                    && let Some(args) = call.args()
                {
                    collect_identifiers(args, &mut identifiers);
                }
                let mut about: BTreeSet<usize> = identifiers
                    .iter()
                    .filter_map(|id| mentions.get(id.as_str()))
                    .flatten()
                    .copied()
                    .collect();
                about.remove(&own);
                about.into_iter().take(MAX_ABOUT).collect()
            })
            .collect();
        let complete = !results.is_empty()
            && results
                .iter()
                .zip(calls)
                .all(|(result, call)| result.recorded || call.effect != Effect::Reads);
        Self {
            results,
            contents,
            about,
            complete,
            acting: calls.iter().any(CallWords::acts),
        }
    }

    pub(super) fn candidates<'a>(&'a self, calls: &'a [CallWords]) -> Vec<Candidate<'a>> {
        self.results
            .iter()
            .zip(calls)
            .zip(&self.about)
            .map(|((own, call), about)| Candidate {
                call,
                results: std::iter::once(own)
                    .chain(about.iter().map(|other| &self.results[*other]))
                    .collect(),
            })
            .collect()
    }

    /// By call, true if it was given one of the values or proper names of a claim.
    pub(super) fn touched(
        &self,
        trace: &TraceView<'_>,
        names: &[Name],
        marks: &[Name],
    ) -> Vec<bool> {
        trace
            .tool_calls
            .iter()
            .map(|call| {
                call.args()
                    .is_some_and(|args| names.iter().chain(marks).any(|name| name.is_in(args)))
            })
            .collect()
    }

    /// Returns true if a claim without an actor states what a result already reported. A bare state
    /// counts as observed also where a result that could report it was not recorded.
    pub(super) fn observed(&self, claim: &Claim, sentence: &Sentence, names: &[Name]) -> bool {
        if claim.how == How::Active {
            return false;
        }
        if claim.how == How::State && !self.complete {
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
        if claim.how == How::State && !claim.listed {
            let is_known = |result: &ResultWords| {
                names
                    .iter()
                    .any(|name| contains_whole(&result.text, name.normal()))
                    || claim
                        .nouns
                        .iter()
                        .any(|noun| result.all.contains(&verbs::fold(noun)))
            };
            if !self.results.iter().any(is_known) {
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
            if own.is & verbs::ENDING != 0 {
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
                || claim.nouns.iter().any(is_mentioned)
        };
        if claim.news && is_news() {
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
                    .any(|state| result.reports(&verbs::fold(state), nouns, dated))
                    || !nouns.is_empty()
                        && result
                            .states_like(classes)
                            .iter()
                            .any(|state| result.reports(state, nouns, dated)))
        })
    }
}

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

/// Returns true if a text has a thing with any number: "clause 7".
fn has_numbered(text: &str, noun: &str) -> bool {
    text.match_indices(noun).take(1_000).any(|(place, _)| {
        text[place + noun.len()..]
            .strip_prefix(' ')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// The number of other results that are read for a call.
const MAX_ABOUT: usize = 50;

/// By identifier, the results that have it.
fn mentions(results: &[ResultWords]) -> HashMap<&str, Vec<usize>> {
    let mut mentions: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, result) in results.iter().enumerate() {
        let parts = result
            .text
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
        for part in parts.filter(|part| part.contains(|c: char| c.is_ascii_digit())) {
            let own = mentions.entry(part).or_default();
            if own.last() != Some(&index) {
                own.push(index);
            }
        }
    }
    mentions
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
