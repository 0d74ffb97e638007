//! The claims of a message, compared with the recorded calls.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Narrative;
use super::arguments::{Matched, mismatches};
use super::claims::{self, Claim};
use super::match_calls::{CallWords, Fit, is_of_tool, matching};
use super::sentences::{Sentence, sentences};
use super::{tokens, verbs};
use mcptest_catalog::lexical;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::TraceView;

/// An action that the message claims.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claimed {
    /// Verb and noun, such as `create_issue`; the verb alone where the object is a pronoun or an
    /// identifier.
    pub action: String,
    /// The sentence that claims it.
    pub sentence: String,
    /// Ids of the tools whose calls can be it, each once.
    pub calls: Vec<String>,
    /// True if it is a write: it is not if it is named like one of `readonly_tools`.
    pub mutating: bool,
}

/// A call that the message does not mention.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Unclaimed {
    /// The call's index, from 0.
    pub call: usize,
    /// The tool's id.
    pub tool: String,
    /// True if the tool counts as a write.
    pub mutating: bool,
}

/// A value in a claim that none of its calls has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ArgMismatch {
    /// The claimed action.
    pub action: String,
    /// The sentence that states the value.
    pub sentence: String,
    /// The kind of the value.
    pub kind: String,
    /// The value in the message.
    pub stated: String,
    /// The values that the calls have in its place.
    pub recorded: Vec<String>,
    /// Ids of the tools that were called.
    pub calls: Vec<String>,
}

/// The differences between one run's message and its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Divergence {
    /// The number of recorded calls.
    pub recorded_calls: u64,
    /// True if there was a closing message.
    pub has_text: bool,
    /// Every claimed action, once, in the order of the message.
    pub claimed: Vec<Claimed>,
    /// Claimed actions that no call can be.
    pub claimed_but_absent: Vec<Claimed>,
    /// Calls that the message never mentions.
    pub present_but_unclaimed: Vec<Unclaimed>,
    /// Stated values that no matching call has.
    pub arg_mismatch: Vec<ArgMismatch>,
    /// Claims whose matching calls all failed.
    pub claimed_after_error: Vec<Claimed>,
}

impl Divergence {
    /// The claimed actions by name.
    #[must_use]
    pub fn actions(&self) -> Vec<&str> {
        self.claimed
            .iter()
            .map(|claim| claim.action.as_str())
            .collect()
    }

    /// The number of items that disagree.
    #[must_use]
    pub fn flagged(&self) -> u64 {
        (self.claimed_but_absent.len() + self.present_but_unclaimed.len() + self.arg_mismatch.len())
            as u64
    }

    /// The number that the flagged items are divided by: recorded calls and claimed actions.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.recorded_calls + self.claimed.len() as u64
    }

    /// From 0 to 1; higher is worse.
    #[must_use]
    pub fn score(&self) -> f64 {
        divergence_score(self.flagged(), self.base())
    }

    /// Every claim without a call, every value that disagrees and every silent write, in a line
    /// each.
    pub(super) fn findings(&self, run: u64) -> Vec<String> {
        let absent = self.claimed_but_absent.iter().map(|claim| {
            format!(
                "run {run}: claims `{}` without such a call: “{}”",
                claim.action, claim.sentence
            )
        });
        let wrong = self.arg_mismatch.iter().map(|mismatch| {
            let recorded = mismatch.recorded.join(", ");
            format!(
                "run {run}: `{}` says {}, the call has {recorded}: “{}”",
                mismatch.action, mismatch.stated, mismatch.sentence
            )
        });
        let silent = self
            .present_but_unclaimed
            .iter()
            .filter(|call| call.mutating);
        let silent = silent.map(|call| {
            format!(
                "run {run}: does not mention call {} (`{}`)",
                call.call + 1,
                call.tool
            )
        });
        absent.chain(wrong).chain(silent).collect()
    }

    /// Returns true if the run passes: no write is claimed but absent, and the score is within the
    /// bound.
    #[must_use]
    pub fn passes(&self, max_divergence_score: Option<f64>) -> bool {
        !self.claimed_but_absent.iter().any(|claim| claim.mutating)
            && max_divergence_score.is_none_or(|most| self.score() <= most)
    }
}

/// Flagged items over recorded calls plus claimed actions, at most 1; 0 if there are neither.
#[must_use]
pub fn divergence_score(flagged: u64, base: u64) -> f64 {
    if base == 0 {
        0.0
    } else {
        (flagged as f64 / base as f64).min(1.0)
    }
}

/// Compares the closing message of a run with its calls.
#[must_use]
pub fn score_narrative(
    rules: &Narrative,
    trace: &TraceView<'_>,
    servers: &KnownServers,
) -> Divergence {
    let text = trace.final_text().filter(|text| !text.trim().is_empty());
    let mut calls: Vec<CallWords> = trace
        .tool_calls
        .iter()
        .map(|call| CallWords::new(call, rules.listed(call, servers)))
        .collect();
    let mut divergence = Divergence {
        recorded_calls: calls.len() as u64,
        has_text: text.is_some(),
        ..Divergence::default()
    };
    let text = text.unwrap_or_default();
    let sentences = sentences(&text);
    let claims = claims::claims(&sentences);
    // The words of arguments and results matter only where something is claimed.
    let results = Results::new(trace, !claims.is_empty());
    if !claims.is_empty() {
        for (words, call) in calls.iter_mut().zip(&trace.tool_calls) {
            words.add_arguments(call);
        }
    }

    for group in actions(claims) {
        let mut matched: BTreeSet<usize> = BTreeSet::new();
        for (sentence, claim) in &group {
            let Some((fit, indices)) = matching(claim, &calls) else {
                continue;
            };
            let sentence = &sentences[*sentence];
            divergence.arg_mismatch.extend(compare_arguments(
                trace, &results, sentence, claim, fit, &indices,
            ));
            matched.extend(indices);
        }
        let Some((sentence, claim)) = group.first() else {
            continue;
        };
        let claimed = Claimed {
            action: claim.stem(),
            sentence: quote(&sentences[*sentence]),
            calls: ids(trace, &matched),
            mutating: !rules
                .readonly_tools
                .iter()
                .any(|tool| is_of_tool(claim, tool)),
        };
        if matched.is_empty() {
            divergence.claimed_but_absent.push(claimed.clone());
        } else if matched.iter().all(|index| results.failed[*index]) {
            divergence.claimed_after_error.push(claimed.clone());
        }
        divergence.claimed.push(claimed);
    }
    let words: BTreeSet<String> = lexical::words(&text)
        .iter()
        .map(|word| verbs::fold(word))
        .collect();
    for (index, call) in calls.iter().enumerate() {
        if !call.is_mentioned(&words) {
            divergence.present_but_unclaimed.push(Unclaimed {
                call: index,
                tool: one_line(&trace.tool_calls[index].full_id()),
                mutating: call.mutating,
            });
        }
    }
    divergence
}

/// The results, by call.
struct Results {
    failed: Vec<bool>,
    /// Everything that a result contains.
    contents: Vec<Option<Value>>,
}

impl Results {
    fn new(trace: &TraceView<'_>, needed: bool) -> Self {
        let results = if needed {
            trace.results_by_call()
        } else {
            Vec::new()
        };
        Self {
            failed: results
                .iter()
                .map(|result| result.is_some_and(|result| result.is_error == Some(true)))
                .collect(),
            contents: results
                .iter()
                .map(|result| {
                    result.map(|result| {
                        let mut all: Vec<Value> = result.extra.values().cloned().collect();
                        all.extend(result.content().cloned());
                        Value::Array(all)
                    })
                })
                .collect(),
        }
    }
}

/// Claims of one action belong together. One without a noun belongs to an earlier one of the same
/// verb: "… and sent it".
fn actions(claims: Vec<(usize, Claim)>) -> Vec<Vec<(usize, Claim)>> {
    let mut groups: Vec<Vec<(usize, Claim)>> = Vec::new();
    for (sentence, claim) in claims {
        let same = groups.iter_mut().find(|group| {
            group.first().is_some_and(|(_, first)| {
                first.stem() == claim.stem() || claim.nouns.is_empty() && first.verb == claim.verb
            })
        });
        match same {
            Some(group) => group.push((sentence, claim)),
            None => groups.push(vec![(sentence, claim)]),
        }
    }
    groups
}

fn compare_arguments(
    trace: &TraceView<'_>,
    results: &Results,
    sentence: &Sentence,
    claim: &Claim,
    fit: Fit,
    indices: &[usize],
) -> Vec<ArgMismatch> {
    let matched: Vec<Matched<'_>> = indices
        .iter()
        .filter_map(|index| {
            Some(Matched {
                args: trace.tool_calls[*index].args()?,
                result: results.contents[*index].as_ref(),
            })
        })
        .collect();
    mismatches(claim, &sentence.tokens, fit, &matched)
        .into_iter()
        .map(|mismatch| ArgMismatch {
            action: claim.stem(),
            sentence: quote(sentence),
            kind: mismatch.kind.name().to_owned(),
            stated: one_line(&shorten(&mismatch.stated, 120)),
            recorded: mismatch
                .recorded
                .iter()
                .take(5)
                .map(|value| one_line(&shorten(value, 120)))
                .collect(),
            calls: ids(trace, &indices.iter().copied().collect()),
        })
        .collect()
}

fn ids(trace: &TraceView<'_>, indices: &BTreeSet<usize>) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for index in indices {
        let id = one_line(&trace.tool_calls[*index].full_id());
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// A sentence as one line for people.
fn quote(sentence: &Sentence) -> String {
    let mut text = String::new();
    for token in &sentence.tokens {
        let closes =
            token.is_mark() && token.is_any(&[",", ".", "!", ":", ";", ")", "…"]) || token.is("'s");
        if !text.is_empty() && !closes && !text.ends_with('(') {
            text.push(' ');
        }
        if token.kind == tokens::Kind::Quote {
            text.push_str(&format!("\"{}\"", token.text));
        } else {
            text.push_str(&token.text);
        }
    }
    one_line(&shorten(&text, 200))
}
