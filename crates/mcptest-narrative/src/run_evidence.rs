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
}

/// The number of identifiers of a call that are looked up in the results.
const MAX_IDENTIFIERS: usize = 20;

impl Evidence {
    pub(super) fn new(trace: &TraceView<'_>, calls: &[CallWords]) -> Self {
        let results = evidence::results(trace);
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

    /// By call, whether it was given one of the values that a claim names.
    pub(super) fn touched(&self, trace: &TraceView<'_>, names: &[Name]) -> Vec<bool> {
        trace
            .tool_calls
            .iter()
            .map(|call| {
                call.args()
                    .is_some_and(|args| names.iter().any(|name| name.is_in(args)))
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
        // A state of something that no result is about comes from elsewhere.
        if claim.how == How::State {
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
        let dated = claim
            .tokens(sentence)
            .iter()
            .any(|token| token.kind == tokens::Kind::Number);
        let states = [Some(claim.verb), claim.alternative];
        self.results.iter().any(|result| {
            (names.is_empty()
                || names
                    .iter()
                    .any(|name| contains_whole(&result.text, name.normal())))
                && states.iter().flatten().any(|state| {
                    let nouns: &[String] = if names.is_empty() { &claim.nouns } else { &[] };
                    result.reports(&verbs::fold(state), nouns, dated)
                })
        })
    }
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
