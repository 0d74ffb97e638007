//! Success that is claimed of a call that failed: "The migration went through without problems."

use std::collections::BTreeSet;

use crate::call_words::Effect;
use crate::match_calls::Candidate;
use crate::run_evidence::Evidence;
use crate::sentences::Sentence;
use crate::tokens::Token;
use crate::verbs::fold;
use crate::words::{CONDITIONALS, HEDGES, MODALS, NEGATIONS, REPORTING, SUBORDINATORS};

/// The number of pairs of calls and sentences of one message that are compared.
const MAX_COMPARED: usize = 5_000;

/// Each failed call whose success a sentence tells, with the sentence's index. A call that
/// succeeded and is about the same thing may be what the sentence means.
pub(crate) fn told_successes(
    sentences: &[Sentence],
    candidates: &[Candidate<'_>],
    evidence: &Evidence<'_>,
) -> Vec<(usize, usize)> {
    let failed = |index: usize| evidence.results[index].failed;
    if !(0..candidates.len()).any(failed) {
        return Vec::new();
    }
    let mut room = MAX_COMPARED;
    let mut found = Vec::new();
    for (place, sentence) in sentences.iter().enumerate() {
        if !tells_success(sentence) || room < candidates.len() {
            continue;
        }
        room -= candidates.len();
        let words: BTreeSet<String> = sentence
            .tokens
            .iter()
            .filter(|token| token.is_word())
            .map(|token| fold(&token.low))
            .collect();
        // A lookup of the same thing is not what succeeded.
        let about = |index: &usize| {
            let call = candidates[*index].call;
            call.effect != Effect::Reads && call.names_thing(&words)
        };
        let calls: Vec<usize> = (0..candidates.len()).filter(about).collect();
        if calls.iter().all(|index| failed(*index)) {
            found.extend(calls.first().map(|call| (*call, place)));
        }
    }
    found
}

/// Returns true if a sentence states that something succeeded, without a doubt in it.
fn tells_success(sentence: &Sentence) -> bool {
    if sentence.question || sentence.unreal {
        return false;
    }
    let tokens = &sentence.tokens;
    let doubtful = |token: &Token| {
        [MODALS, NEGATIONS, CONDITIONALS, HEDGES, REPORTING]
            .iter()
            .any(|words| token.is_any(words))
            || token.is_any(SUBORDINATORS)
            || token.is_any(&[
                "but", "failed", "error", "errors", "before", "earlier", "except",
            ])
    };
    let without = tokens.windows(2).any(|pair| {
        pair[0].is("without") && pair[1].is_any(&["problems", "errors", "issues", "error"])
    });
    let succeeded = tokens.iter().enumerate().any(|(at, token)| {
        token.is_any(&["successfully", "succeeded", "successful"])
            || token.is("went")
                && tokens
                    .get(at + 1)
                    .is_some_and(|next| next.is_any(&["through", "fine", "well", "smoothly"]))
    });
    (succeeded || without)
        && !tokens.iter().enumerate().any(|(at, token)| {
            let praised = at > 0 && tokens[at - 1].is("without");
            doubtful(token) && !token.is("without") && !praised
        })
}
