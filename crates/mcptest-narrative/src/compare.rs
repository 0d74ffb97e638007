//! The claims of a message, compared with the recorded calls.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Narrative;
use crate::advisory;
use crate::after_error::told_successes;
use crate::answers::{Answer, ids, shown};
use crate::call_words::{CallWords, Effect, effect_of};
use crate::claims::{self, Claim};
use crate::divergence::{ArgMismatch, Claimed, Divergence, Unclaimed};
use crate::evidence::MAX_WORDS_IN_TOTAL;
use crate::figures::message::MessageFigures;
use crate::match_calls::{answering, candidates, is_of_tool};
use crate::run_evidence::Evidence;
use crate::sentence_figures::{MAX_COMPARED, wrong_figures};
use crate::sentences::{Sentence, sentences};
use crate::tokens::Token;
use crate::{language, named_tools, verbs};
use mcptest_catalog::lexical;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::TraceView;
use rustc_hash::FxHashSet;

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
    let has_code = text.contains("```");
    let mut sentences = sentences(&text);
    let mut claims = claims::claims(&sentences, has_code);
    // The words of arguments and results matter only where something is claimed.
    let errs = || {
        trace
            .tool_results
            .iter()
            .any(|result| result.is_error == Some(true))
    };
    let figures = || has_figures(&text);
    if !claims.is_empty() || calls.iter().any(CallWords::acts) || errs() || figures() {
        for (words, call) in calls.iter_mut().zip(&trace.tool_calls) {
            words.add_arguments(call);
        }
        if mark_actions(trace, &calls, &mut sentences, &claims) {
            claims = claims::claims(&sentences, has_code);
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

/// Returns true if the message has a figure, an address or a path.
fn has_figures(text: &str) -> bool {
    text.bytes()
        .any(|c| c.is_ascii_digit() || c == b'@' || c == b'/')
}

/// Marks the items of lists that report what was done: a call answers one of their items, by its
/// own verb. Returns true if an item is marked.
fn mark_actions(
    trace: &TraceView<'_>,
    calls: &[CallWords],
    sentences: &mut [Sentence],
    claims: &[(usize, Claim)],
) -> bool {
    let open = |sentence: &Sentence| sentence.list.is_some() && !sentence.done && !sentence.unreal;
    if !claims.iter().any(|(place, _)| open(&sentences[*place])) {
        return false;
    }
    let room = Cell::new(MAX_WORDS_IN_TOTAL);
    let evidence = Evidence::new(trace, calls, &room);
    let candidates = candidates(&evidence, calls);
    let mut lists: BTreeSet<usize> = BTreeSet::new();
    for (place, claim) in claims.iter().take(MAX_ACTIONS) {
        let sentence = &sentences[*place];
        let Some(list) = sentence.list.filter(|_| open(sentence)) else {
            continue;
        };
        if !lists.contains(&list) && answering(claim, sentence, &candidates, &evidence).is_some() {
            lists.insert(list);
        }
    }
    lists.extend(reported_lists(sentences, claims, evidence.is_recorded()));
    let mut marked = false;
    for sentence in sentences {
        if open(sentence) && sentence.list.is_some_and(|list| lists.contains(&list)) {
            sentence.done = true;
            marked = true;
        }
    }
    marked
}

/// The lists of which every item states something done, and the tables with a row that is done.
///
/// A table can be one of states that were looked up, where that is not `recorded`.
fn reported_lists(sentences: &[Sentence], claims: &[(usize, Claim)], recorded: bool) -> Vec<usize> {
    let mut items: BTreeMap<usize, (usize, usize, bool)> = BTreeMap::new();
    let claimed: BTreeSet<usize> = claims
        .iter()
        .filter(|(_, claim)| !claim.weak)
        .map(|(place, _)| *place)
        .collect();
    for (place, sentence) in sentences.iter().enumerate() {
        let Some(list) = sentence
            .list
            .filter(|_| !sentence.heading && !sentence.unreal)
        else {
            continue;
        };
        let own = items.entry(list).or_default();
        own.0 += 1;
        own.1 += usize::from(claimed.contains(&place) && (recorded || !sentence.row));
        let cell =
            |token: &Token| token.is_any(&["done", "completed", "complete", "success", "yes"]);
        own.2 |= sentence.row && (sentence.checked || sentence.tokens.iter().any(cell));
    }
    let is_done =
        |(_, (all, own, done)): &(usize, (usize, usize, bool))| *done || *all >= 2 && all == own;
    items
        .into_iter()
        .filter(is_done)
        .map(|(list, _)| list)
        .collect()
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
    let candidates = candidates(&evidence, calls);
    let groups = actions(claims);
    let answers: Vec<Answer<'_>> = groups
        .iter()
        .map(|group| Answer::new(group, sentences, &candidates, &evidence))
        .collect();
    for answer in answers {
        divergence
            .arg_mismatch
            .extend(answer.mismatches(sentences, trace, &candidates, &evidence));
        // A state that was observed is not a claim.
        let Some((place, claim)) = answer.shown() else {
            continue;
        };
        let matched = answer.calls();
        let claimed = Claimed {
            action: claim.stem(),
            sentence: sentences[place].quote(),
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
        } else if let Some((place, claim)) = answer.failed() {
            divergence.claimed_after_error.push(Claimed {
                action: claim.stem(),
                sentence: sentences[place].quote(),
                ..claimed.clone()
            });
        }
        divergence.claimed.push(claimed);
    }
    for (call, place) in told_successes(trace, sentences, &candidates, &evidence) {
        let quoted = sentences[place].quote();
        let mut known = divergence
            .claimed_after_error
            .iter()
            .chain(&divergence.claimed_but_absent);
        if known.all(|claimed| claimed.sentence != quoted) {
            let call = &trace.tool_calls[call];
            divergence.claimed_after_error.push(Claimed {
                action: one_line(call.name()),
                sentence: quoted,
                calls: vec![one_line(&call.full_id())],
                mutating: calls.iter().any(|words| words.mutating),
            });
        }
    }
    let mut left = MAX_COMPARED;
    let acts = calls
        .iter()
        .map(|call| call.effect != Effect::Reads)
        .collect();
    let recorded = evidence.is_recorded();
    let figures = MessageFigures::new(trace, &evidence.values, sentences, recorded, acts);
    for sentence in sentences {
        let mut wrong = wrong_figures(trace, &candidates, &evidence, sentence, &mut left);
        for figure in figures.wrong(sentence) {
            if wrong.iter().all(|known| known.stated != figure.stated) {
                wrong.push(figure);
            }
        }
        if wrong.is_empty() {
            continue;
        }
        let quoted = sentence.quote();
        for figure in wrong {
            let known = divergence
                .arg_mismatch
                .iter()
                .any(|known| known.sentence == quoted && known.stated == figure.stated);
            if !known {
                let call = trace.tool_calls.get(figure.call);
                divergence.arg_mismatch.push(ArgMismatch {
                    action: call.map_or_else(|| "message".to_owned(), |call| one_line(call.name())),
                    sentence: quoted.clone(),
                    kind: figure.kind.name().to_owned(),
                    stated: one_line(&shorten(&figure.stated, 120)),
                    recorded: figure
                        .recorded
                        .iter()
                        .take(5)
                        .map(|own| shown(own))
                        .collect(),
                    calls: call.iter().map(|call| one_line(&call.full_id())).collect(),
                });
            }
        }
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
            sentence: sentence.quote(),
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
