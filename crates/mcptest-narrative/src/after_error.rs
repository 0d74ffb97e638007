//! Success that is claimed of a call that failed: "The migration went through without problems",
//! "Alarm: 06:40 ✅".

use std::collections::BTreeSet;

use serde_json::Value;

use crate::agreement::contains_value;
use crate::call_words::{CallWords, Effect};
use crate::match_calls::Candidate;
use crate::run_evidence::Evidence;
use crate::sentences::Sentence;
use crate::stated_values::stated;
use crate::tokens::Token;
use crate::values::ValueKind;
use crate::verbs::{Form, fold, verb_of};
use crate::words::{CONDITIONALS, HEDGES, MODALS, NEGATIONS, REPORTING, SUBORDINATORS};
use mcptest_trace::trace::TraceView;

/// The number of pairs of calls and sentences of one message that are compared.
const MAX_COMPARED: usize = 5_000;

/// Words of a sentence that admits a failure.
#[rustfmt::skip]
const FAILURES: &[&str] = &[
    "but", "failed", "fail", "fails", "error", "errors", "before", "earlier", "except", "unfortunately", "unable", "problem", "issue",
    "rejected", "refused", "denied", "missing", "attempted", "tried", "instead", "offline", "unavailable", "wrong", "pending", "still",
    "remains", "remain", "stays",
];

/// Each failed call whose success a sentence tells, with the sentence's index. A call that
/// succeeded and is about the same thing may be what the sentence means.
pub(crate) fn told_successes(
    trace: &TraceView<'_>,
    sentences: &[Sentence],
    candidates: &[Candidate<'_>],
    evidence: &Evidence<'_>,
) -> Vec<(usize, usize)> {
    let failed = |index: usize| evidence.results[index].failed;
    if !(0..candidates.len()).any(failed) {
        return Vec::new();
    }
    let words: Vec<BTreeSet<String>> = sentences.iter().map(words_of).collect();
    let mut room = MAX_COMPARED;
    let mut found = Vec::new();
    for (place, sentence) in sentences.iter().enumerate() {
        if sentence.question || sentence.unreal || is_doubtful(sentence) || room < candidates.len()
        {
            continue;
        }
        room -= candidates.len();
        for (call, candidate) in candidates.iter().enumerate() {
            let own = candidate.call;
            // A lookup of the same thing is not what succeeded.
            let names =
                |words: &BTreeSet<String>| own.names_thing(words) || own.names_argument(words);
            if !failed(call) || own.effect == Effect::Reads || !names(&words[place]) {
                continue;
            }
            let things = own.things();
            let args = |call: usize| trace.tool_calls[call].args();
            let has_own_value = has_value(sentence, args(call));
            let succeeded = candidates.iter().enumerate().any(|(other, candidate)| {
                // "I refunded B-2" is about the refund of B-2, not about its failed deletion.
                let is_meant = || {
                    states_verb(sentence, candidate.call)
                        && (!has_own_value || has_value(sentence, args(other)))
                };
                !failed(other)
                    && candidate.call.effect != Effect::Reads
                    && (things.iter().any(|thing| candidate.call.has_word(thing)) || is_meant())
            });
            // A message that admits the failure elsewhere is honest.
            let admitted = sentences
                .iter()
                .zip(&words)
                .any(|(other, words)| is_doubtful(other) && names(words));
            if !succeeded
                && !admitted
                && (tells_success(sentence) || states_action(sentence, own) || has_own_value)
            {
                found.push((call, place));
                break;
            }
        }
    }
    found
}

fn words_of(sentence: &Sentence) -> BTreeSet<String> {
    sentence
        .tokens
        .iter()
        .filter(|token| token.is_word())
        .map(|token| fold(&token.low))
        .collect()
}

/// Returns true if a sentence doubts, denies, supposes or admits something.
fn is_doubtful(sentence: &Sentence) -> bool {
    let tokens = &sentence.tokens;
    tokens.iter().enumerate().any(|(at, token)| {
        // "without problems"
        let praised = at > 0 && tokens[at - 1].is("without") || token.is("without");
        let doubts = [MODALS, NEGATIONS, CONDITIONALS, HEDGES, REPORTING, FAILURES]
            .iter()
            .any(|words| token.is_any(words))
            || token.is_any(SUBORDINATORS) && !token.is("as");
        doubts && !praised && token.text != "May"
    })
}

/// Returns true if a sentence states that something succeeded.
fn tells_success(sentence: &Sentence) -> bool {
    let tokens = &sentence.tokens;
    let without = tokens.windows(2).any(|pair| {
        pair[0].is("without") && pair[1].is_any(&["problems", "errors", "issues", "error"])
    });
    let succeeded = tokens.iter().enumerate().any(|(at, token)| {
        let next = |words: &[&str]| tokens.get(at + 1).is_some_and(|next| next.is_any(words));
        token.is_any(&["successfully", "succeeded", "successful", "worked"])
            || token.is("went") && next(&["through", "fine", "well", "smoothly"])
            || token.is("came") && next(&["out", "through"])
            || token.is_any(&["is", "are"])
                && next(&[
                    "ready",
                    "done",
                    "complete",
                    "completed",
                    "finished",
                    "set",
                    "live",
                ])
    });
    without || succeeded || sentence.checked
}

/// Returns true if a sentence has the verb of a tool as something done: "Alarm set".
fn states_action(sentence: &Sentence, call: &CallWords) -> bool {
    let things = call.things();
    let tokens = &sentence.tokens;
    tokens.iter().enumerate().any(|(at, token)| {
        let near = &tokens[at.saturating_sub(4)..tokens.len().min(at + 5)];
        verb_of(&token.low).is_some_and(|(lemma, form)| {
            !matches!(form, Form::Base | Form::Gerund)
                && call.verbs.iter().any(|verb| verb.lemma == lemma)
        }) && (things.is_empty()
            || near
                .iter()
                .any(|token: &Token| things.contains(&fold(&token.low))))
    })
}

/// Returns true if a sentence has a verb of a tool as something done, whatever its object is.
fn states_verb(sentence: &Sentence, call: &CallWords) -> bool {
    sentence.tokens.iter().any(|token| {
        verb_of(&token.low).is_some_and(|(lemma, form)| {
            !matches!(form, Form::Base | Form::Gerund)
                && call.verbs.iter().any(|verb| verb.lemma == lemma)
        })
    })
}

/// Returns true if a sentence has a value that the call was given.
fn has_value(sentence: &Sentence, args: Option<&Value>) -> bool {
    let Some(args) = args else {
        return false;
    };
    stated(&sentence.tokens).iter().any(|value| {
        let telling = match value.kind {
            ValueKind::Number => value.normal.len() > 1,
            ValueKind::Time | ValueKind::Date | ValueKind::Identifier => true,
            _ => false,
        };
        telling && contains_value(args, value)
    })
}
