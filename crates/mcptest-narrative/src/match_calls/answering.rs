//! The calls of a run that answer a claim best.

use std::collections::BTreeSet;

use super::Fit;
use crate::agreement::Touch;
use crate::call_words::{CallWords, Effect};
use crate::claims::Claim;
use crate::run_evidence::{CallResults, Evidence};
use crate::sentences::Sentence;
use crate::stated_values::{marks, names};
use crate::verbs::{fold, verb};
use mcptest_catalog::lexical;

/// A call with its results, first its own.
pub(crate) struct Candidate<'a> {
    pub call: &'a CallWords,
    pub results: CallResults<'a>,
}

/// The calls of a run with their results.
pub(crate) fn candidates<'a>(
    evidence: &'a Evidence<'a>,
    calls: &'a [CallWords],
) -> Vec<Candidate<'a>> {
    (0..evidence.results.len())
        .zip(calls)
        .map(|(index, call)| Candidate {
            call,
            results: CallResults::new(evidence, index),
        })
        .collect()
}

/// The calls that answer a claim of a sentence best.
pub(crate) fn answering(
    claim: &Claim,
    sentence: &Sentence,
    candidates: &[Candidate<'_>],
    evidence: &Evidence<'_>,
) -> Option<(Fit, Vec<usize>)> {
    let names = names(claim.tokens(sentence));
    let marks = marks(claim.tokens(sentence));
    let (fit, mut indices) = matching(claim, candidates, &|call| {
        evidence.touch(call, &names, &marks)
    })?;
    // Of several calls, those for the thing that the claim names.
    let own: Vec<usize> = indices
        .iter()
        .copied()
        .filter(|index| evidence.touches(*index, &names, &[]))
        .collect();
    if !own.is_empty() {
        indices = own;
    }
    Some((fit, indices))
}

/// The calls that answer a claim best: those with its verb, or else those with a related one.
/// `touch` compares the values that the claim names with those of a call.
fn matching(
    claim: &Claim,
    calls: &[Candidate<'_>],
    touch: &dyn Fn(usize) -> Touch,
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
                && call.call.fits(claim, call.results, touch(*index)) == Some(Fit::Exact)
        })
        .map(|(index, _)| index)
        .collect();
    if !exact.is_empty() {
        return Some((Fit::Exact, exact));
    }
    let fits: Vec<(usize, Fit)> = acting()
        .filter_map(|(index, call)| {
            Some((index, call.call.fits(claim, call.results, touch(index))?))
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
