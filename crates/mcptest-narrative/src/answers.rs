//! The calls that answer each claimed action.

use std::collections::BTreeSet;

use crate::agreement::contains_value;
use crate::arguments::{Known, mismatches};
use crate::call_words::Effect;
use crate::claims::{Claim, How};
use crate::divergence::ArgMismatch;
use crate::evidence::contains_whole;
use crate::match_calls::{Candidate, Fit, answering};
use crate::recorded::{Leaf, Matched};
use crate::run_evidence::Evidence;
use crate::sentences::Sentence;
use crate::stated_values::names;
use crate::values::{Stated, ValueKind};
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::trace::TraceView;

/// The number of times that one action is compared.
const MAX_REPEATS: usize = 10;

/// One claimed action with the calls that answer it.
pub(super) struct Answer<'a> {
    group: &'a [(usize, Claim)],
    /// The claims that calls answer: which, how well, and by which calls.
    matched: Vec<(usize, Fit, Vec<usize>)>,
    /// The first claim that no call answers and no result reports.
    unanswered: Option<usize>,
    /// The first claim that names a thing for which every call failed.
    failed: Option<usize>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        group: &'a [(usize, Claim)],
        sentences: &[Sentence],
        candidates: &[Candidate<'_>],
        evidence: &Evidence<'_>,
    ) -> Self {
        let mut answer = Self {
            group,
            matched: Vec::new(),
            unanswered: None,
            failed: None,
        };
        for (own, (place, claim)) in group.iter().enumerate().take(MAX_REPEATS) {
            let sentence = &sentences[*place];
            let names = names(claim.tokens(sentence));
            match answering(claim, sentence, candidates, evidence) {
                // "The door is still unlocked", after an attempt to lock it.
                Some((_, indices))
                    if (claim.how == How::State
                        || claim.past
                        || claim.weak
                        || claim.how != How::Active && claim.verb == "deny")
                        && indices.iter().all(|index| evidence.results[*index].failed)
                        && (claim.weak || evidence.observed(claim, sentence, &names)) => {}
                Some((fit, indices)) => {
                    let all_failed = indices.iter().all(|index| evidence.results[*index].failed);
                    if all_failed && !names.is_empty() && answer.failed.is_none() {
                        answer.failed = Some(own);
                    }
                    answer.matched.push((own, fit, indices));
                }
                None if answer.unanswered.is_none()
                    && !evidence.observed(claim, sentence, &names) =>
                {
                    answer.unanswered = Some(own);
                }
                None => {}
            }
        }
        answer
    }

    pub(super) fn calls(&self) -> BTreeSet<usize> {
        self.matched
            .iter()
            .flat_map(|(_, _, indices)| indices.iter().copied())
            .collect()
    }

    /// The claim about a thing for which every call failed.
    pub(super) fn failed(&self) -> Option<(usize, &'a Claim)> {
        let (place, claim) = self.group.get(self.failed?)?;
        Some((*place, claim))
    }

    /// The claim that is reported: the one without an answer, or else the first.
    pub(super) fn shown(&self) -> Option<(usize, &'a Claim)> {
        let own = match self.unanswered {
            Some(own) => own,
            None if !self.matched.is_empty() => 0,
            None => return None,
        };
        let (place, claim) = self.group.get(own)?;
        Some((*place, claim))
    }

    pub(super) fn mismatches(
        &self,
        sentences: &[Sentence],
        trace: &TraceView<'_>,
        candidates: &[Candidate<'_>],
        evidence: &Evidence<'_>,
    ) -> Vec<ArgMismatch> {
        let mut found = Vec::new();
        for (own, fit, indices) in &self.matched {
            let Some((place, claim)) = self.group.get(*own) else {
                continue;
            };
            if claim.weak && claim.how == How::State && *fit != Fit::Exact {
                continue;
            }
            let sentence = &sentences[*place];
            let names = names(claim.tokens(sentence));
            let own =
                compare_arguments(trace, candidates, evidence, sentence, claim, *fit, indices);
            if !own.is_empty() && (names.is_empty() || !evidence.observed(claim, sentence, &names))
            {
                found.extend(own);
            }
        }
        found
    }
}

fn compare_arguments(
    trace: &TraceView<'_>,
    calls: &[Candidate<'_>],
    evidence: &Evidence<'_>,
    sentence: &Sentence,
    claim: &Claim,
    fit: Fit,
    indices: &[usize],
) -> Vec<ArgMismatch> {
    let matched: Vec<Matched<'_>> = indices
        .iter()
        .filter_map(|index| {
            Some(Matched {
                tool: trace.tool_calls[*index].name(),
                name: calls[*index].call.words(),
                failed: evidence.results[*index].failed,
                args: trace.tool_calls[*index].args()?,
                result: &evidence.results[*index],
            })
        })
        .collect();
    let elsewhere = |value: &str| {
        evidence
            .results
            .iter()
            .any(|result| contains_whole(&result.text, value))
    };
    // A path that any call was given, and an identifier that another action was given.
    let given = |value: &Stated| {
        trace.tool_calls.iter().zip(calls).any(|(call, own)| {
            (value.kind == ValueKind::Path || own.call.effect != Effect::Reads)
                && call.args().is_some_and(|args| contains_value(args, value))
        })
    };
    let is_alias = |value: &Stated, given: &[&Leaf]| evidence.is_alias(value, given);
    mismatches(
        claim,
        &sentence.tokens,
        fit,
        &matched,
        &Known {
            elsewhere: &elsewhere,
            given: &given,
            is_alias: &is_alias,
        },
        &evidence.values,
    )
    .into_iter()
    .map(|mismatch| ArgMismatch {
        action: claim.stem(),
        sentence: sentence.quote(),
        kind: mismatch.kind.name().to_owned(),
        stated: one_line(&shorten(&mismatch.stated, 120)),
        recorded: mismatch
            .recorded
            .iter()
            .take(5)
            .map(|value| shown(value))
            .collect(),
        calls: ids(trace, &indices.iter().copied().collect()),
    })
    .collect()
}

/// The ids of the tools of calls, each once.
pub(super) fn ids(trace: &TraceView<'_>, indices: &BTreeSet<usize>) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for index in indices {
        let id = one_line(&trace.tool_calls[*index].full_id());
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// A recorded value as it is shown.
pub(super) fn shown(value: &str) -> String {
    one_line(&shorten(value, 120))
}
