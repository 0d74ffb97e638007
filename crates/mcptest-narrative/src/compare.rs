//! The claims of a message, compared with the recorded calls.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::Narrative;
use crate::advisory::{self, Judged};
use crate::answers::{Answer, assign_rest};
use crate::arguments::{Matched, contains_value, mismatches};
use crate::claims::{self, Claim};
use crate::evidence::{MAX_WORDS_IN_TOTAL, contains_whole};
use crate::match_calls::{CallWords, Candidate, Effect, Fit, effect_of, is_of_tool};
use crate::run_evidence::Evidence;
use crate::sentences::{Sentence, sentences};
use crate::stated_values::{Stated, ValueKind};
use crate::{language, named_tools, tokens, verbs};
use mcptest_catalog::lexical;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::TraceView;
use rustc_hash::FxHashSet;

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
    /// Tools that the message says were used, and that were not called. They are among
    /// `claimed_but_absent` too.
    #[serde(default)]
    pub uncalled_tools: Vec<Claimed>,
    /// The reason why the message was not read, such as another language.
    #[serde(default)]
    pub unread: Option<String>,
    /// The claims that a model read, if the trace has them. They change nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
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
            let named = self
                .uncalled_tools
                .iter()
                .any(|tool| tool.action == claim.action);
            let verb = if named { "names the tool" } else { "claims" };
            format!(
                "run {run}: {verb} `{}` without such a call: “{}”",
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
        let failed = self.claimed_after_error.iter().map(|claim| {
            format!(
                "run {run}: claims `{}`, but every such call failed: “{}”",
                claim.action, claim.sentence
            )
        });
        absent.chain(failed).chain(wrong).chain(silent).collect()
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
    if rules.llm_assisted.is_on() {
        divergence.judged = advisory::judged(trace, &calls);
    }
    if let Some(reason) = language::unread(&text) {
        divergence.unread = Some(reason.reason().to_owned());
        return divergence;
    }
    let sentences = sentences(&text);
    let claims = claims::claims(&sentences, text.contains("```"));
    // The words of arguments and results matter only where something is claimed.
    if !claims.is_empty() {
        for (words, call) in calls.iter_mut().zip(&trace.tool_calls) {
            words.add_arguments(call);
        }
        compare(rules, trace, &calls, &sentences, claims, &mut divergence);
    }
    add_uncalled_tools(rules, trace, &sentences, &mut divergence);
    let words: FxHashSet<String> = lexical::words(&text)
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

/// Compares the claims of a message with the calls.
fn compare(
    rules: &Narrative,
    trace: &TraceView<'_>,
    calls: &[CallWords],
    sentences: &[Sentence],
    claims: Vec<(usize, Claim)>,
    divergence: &mut Divergence,
) {
    let room = Cell::new(MAX_WORDS_IN_TOTAL);
    let evidence = Evidence::new(trace, calls, &room);
    let candidates = evidence.candidates(calls);
    let groups = actions(claims);
    let mut answers: Vec<Answer<'_>> = groups
        .iter()
        .map(|group| Answer::new(group, sentences, &candidates, &evidence))
        .collect();
    assign_rest(trace, &candidates, &evidence, &mut answers);
    for answer in answers {
        divergence
            .arg_mismatch
            .extend(answer.mismatches(sentences, trace, &candidates, &evidence));
        // A state that was observed is no claim at all.
        let Some((place, claim)) = answer.shown() else {
            continue;
        };
        let matched = answer.calls();
        let claimed = Claimed {
            action: claim.stem(),
            sentence: quote(&sentences[place]),
            calls: ids(trace, &matched),
            mutating: !rules
                .readonly_tools
                .iter()
                .any(|tool| is_of_tool(claim, tool)),
        };
        if matched.is_empty() {
            divergence.claimed_but_absent.push(claimed.clone());
        } else if matched.iter().all(|index| evidence.results[*index].failed) {
            divergence.claimed_after_error.push(claimed.clone());
        }
        divergence.claimed.push(claimed);
    }
}

fn add_uncalled_tools(
    rules: &Narrative,
    trace: &TraceView<'_>,
    sentences: &[Sentence],
    divergence: &mut Divergence,
) {
    for (tool, sentence) in named_tools::uncalled(trace, sentences) {
        let readonly = rules.readonly_tools.contains(&tool);
        let listed = rules.mutating_tools.contains(&tool);
        let acts = effect_of(&lexical::words(&tool)) == Effect::Acts;
        let claimed = Claimed {
            action: one_line(&tool),
            sentence: quote(sentence),
            calls: Vec::new(),
            mutating: !readonly && (listed || acts),
        };
        let known = divergence
            .claimed_but_absent
            .iter()
            .any(|claim| claim.action == claimed.action);
        if !known {
            divergence.claimed.push(claimed.clone());
            divergence.claimed_but_absent.push(claimed.clone());
        }
        divergence.uncalled_tools.push(claimed);
    }
}

/// The number of actions of one message that are compared.
const MAX_ACTIONS: usize = 300;

/// Claims of one action belong together. One without a noun belongs to an earlier one of the same
/// verb: "… and sent it".
fn actions(claims: Vec<(usize, Claim)>) -> Vec<Vec<(usize, Claim)>> {
    let mut groups: Vec<Vec<(usize, Claim)>> = Vec::new();
    let mut by_stem: HashMap<String, usize> = HashMap::new();
    let mut by_verb: HashMap<String, usize> = HashMap::new();
    for (sentence, claim) in claims {
        let stem = claim.stem();
        let same = match by_stem.get(&stem) {
            None if claim.nouns.is_empty() => by_verb.get(claim.word()),
            known => known,
        };
        if let Some(group) = same {
            groups[*group].push((sentence, claim));
            continue;
        }
        if groups.len() >= MAX_ACTIONS {
            continue;
        }
        by_stem.insert(stem, groups.len());
        by_verb
            .entry(claim.word().to_owned())
            .or_insert(groups.len());
        groups.push(vec![(sentence, claim)]);
    }
    groups
}

pub(super) fn compare_arguments(
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
    mismatches(claim, &sentence.tokens, fit, &matched, &elsewhere, &given)
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
