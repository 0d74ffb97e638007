//! The recorded calls that can be the action of a claim.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::call_words::{CallWords, Effect};
use crate::claims::{Claim, How};
use crate::nouns::is_same_thing;
use crate::run_evidence::{CallResults, Evidence};
use crate::sentences::Sentence;
use crate::stated_values::{marks, names};
use crate::tool_words::{
    ANY_CHANGE, CODING, CONFIRMATIONS, CONTENTS, DOCUMENTS, FILE_TOOLS, GENERAL, MESSAGE_TOOLS,
    MESSAGES, MONEY, OPERATING, PAYING, STATE_CHANGES, STATE_KEYS, UNITS, UTTERANCES,
};
use crate::verbs::{
    ADD, ASSIGN, BOOK, CHANGE, CHANGING, END, ENDING, MAKE, MAKING, OPEN, PAY, POST, SEND, SENDING,
    START, Use, Verb, WRITE, fold, nominal_of, singular, tool_verb, verb,
};
use mcptest_catalog::lexical;

/// The degree to which a call answers a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// By another word for the same deed.
    Related,
    /// The tool's name has the claimed verb.
    Exact,
}

impl CallWords {
    /// Returns true if a claim can be other words for the call, whatever thing it names.
    pub(crate) fn could_be(&self, claim: &Claim) -> bool {
        // "A dashboard has been set up" is no other word for `set_flag`.
        if claim.own_thing && !claim.nouns.is_empty() && !self.things().is_empty() {
            return false;
        }
        verb(claim.verb).is_some_and(|own| {
            self.verbs.iter().any(|verb| verb.lemma == own.lemma)
                || self.is_any(OPERATING) && own.accepts & (MAKING | CHANGING | SENDING) != 0
        })
    }

    /// Returns the fit if the call can be the claimed action. `results` are the call's own result
    /// and the other results about the things that the call was given.
    pub(crate) fn fits(
        &self,
        claim: &Claim,
        results: CallResults<'_>,
        touched: bool,
    ) -> Option<Fit> {
        // In `get_post` the post is a thing.
        if self.effect == Effect::Reads {
            return None;
        }
        let own = verb(claim.verb)?;
        let other: Vec<String> = claim
            .nouns
            .iter()
            .filter(|noun| nominal_of(noun) != claim.alternative)
            .cloned()
            .collect();
        let best = self.fits_verb(claim, own, &claim.nouns, results, touched);
        let Some(alternative) = claim.alternative.and_then(verb) else {
            return best;
        };
        let named = self
            .verbs
            .iter()
            .any(|verb| verb.lemma == alternative.lemma)
            && self.concerns(&other, results)
            // "Your replacement has been ordered", by an exchange.
            || claim.how != How::Active
                && self.effect == Effect::Acts
                && self.classes & alternative.accepts != 0
                && self.concerns(&other, results)
            || self.pays(alternative, &other, results);
        best.max(named.then_some(Fit::Related))
    }

    fn fits_verb(
        &self,
        claim: &Claim,
        own: Verb,
        nouns: &[String],
        results: CallResults<'_>,
        touched: bool,
    ) -> Option<Fit> {
        if own.lemma == OPEN {
            return self.fits_open(claim, nouns, results, touched);
        }
        let known = OnceCell::new();
        let concerns = || {
            *known
                .get_or_init(|| self.concerns_claim(own, (nouns, &claim.places), results, touched))
        };
        let says_verb = self.says(own);
        if says_verb && concerns() {
            return Some(Fit::Exact);
        }
        // "The deployment is complete" says nothing but its verb.
        let empty = nouns.is_empty() && claim.places.is_empty() && !touched && !claim.named;
        let accepts = if empty && claim.how != How::Active {
            own.is
        } else {
            own.accepts
        };
        let related = self.classes & accepts != 0
            && !(own.is & ENDING != 0 && self.only_changes() && !self.shows_state(results))
            // `add_label` labels.
            || own.is & ASSIGN != 0 && self.name.iter().any(|word| word.starts_with(own.lemma))
            // `create_release` publishes a release.
            || nouns.iter().any(|noun| {
                self.name.contains(&fold(noun))
                    && tool_verb(noun).is_some_and(|verb| verb.is & own.accepts & START != 0)
            })
            || self.states.contains(own.lemma)
            || self.deeds.contains(own.lemma)
            || !says_verb && results.any(false, |own_result| own_result.all.contains(own.lemma));
        let named = nouns.iter().any(|noun| self.name.contains(&fold(noun)));
        let unknown = self.effect == Effect::Unknown
            && (own.is & ENDING == 0 || self.short.contains(own.lemma))
            && (touched
                || named
                || nouns.is_empty() && claim.places.is_empty() && claim.how != How::Active);
        // "replaced a by b": created the one, deleted the other
        let replaced = touched
            && matches!(
                own.lemma,
                "replace" | "migrate" | "swap" | "switch" | "exchange"
            )
            && self.effect == Effect::Acts;
        // "added to your reservation", by a tool for any change of one
        let placed = || {
            let in_name = |noun: &String| self.name.contains(&fold(noun));
            !claim.places.is_empty()
                && (touched
                    || nouns.is_empty()
                    || !self.only_changes()
                    || self.knows_any(nouns, results)
                    || claim
                        .places
                        .iter()
                        .any(|noun| self.short.contains(&fold(noun))))
                && ((self.is_any(ANY_CHANGE)
                    || self.classes & own.is & ADD != 0
                    || PAYING.contains(&own.lemma))
                    && self.concerns(&claim.places, results)
                    || own.is & (ADD | CHANGE | WRITE | ASSIGN) != 0
                        && claim.places.iter().any(in_name))
        };
        // What a message contains can be called anything: "posted the question".
        let worded = || {
            let uttered = nouns.last().is_none_or(|noun| {
                let noun = fold(noun);
                UTTERANCES.iter().any(|known| fold(known) == noun)
            });
            self.is_any(MESSAGE_TOOLS)
                && own.accepts & SEND != 0
                && own.is & (SEND | POST | WRITE) != 0
                && (uttered || own.lemma == "reply")
        };
        // "The status of the order was changed": by whatever was done to the order.
        let changed = (claim.how != How::Active || self.classes & !MAKE != 0)
            && self.effect == Effect::Acts
            && !self.is_any(MESSAGE_TOOLS)
            && STATE_CHANGES.contains(&own.lemma)
            && (touched || concerns());
        let coded =
            CODING.contains(&own.lemma) && self.is_any(FILE_TOOLS) && self.effect != Effect::Reads;
        // "The team has been informed": by whatever was sent.
        let told = own.usage == Use::Telling && self.classes & (SEND | POST) != 0 && self.acts();
        let fits = related && (concerns() || placed() || worded())
            || told
            || coded
            || replaced
            || changed
            || unknown
            || self.executes(own, nouns, touched)
            || self.pays(own, nouns, results)
            // "You get a refund": the consequence of a cancellation or a return.
            || claim.how != How::Active
                && PAYING.contains(&own.lemma)
                && nouns.is_empty()
                && self.classes & (END | SEND) != 0
                && self.effect == Effect::Acts
            || self.confirms(claim, own);
        fits.then_some(Fit::Related)
    }

    /// Returns true if the call or its result has one of the nouns.
    fn knows_any(&self, nouns: &[String], results: CallResults<'_>) -> bool {
        nouns.iter().any(|noun| {
            let noun = fold(noun);
            self.concerns_noun(&noun) || results.any(true, |result| result.all.contains(&noun))
        })
    }

    /// Returns true if the tool is one for any change, and for nothing else.
    fn only_changes(&self) -> bool {
        self.classes == CHANGE && self.is_any(ANY_CHANGE)
    }

    /// Returns true if the arguments or the result have a state, so that the call can have ended
    /// something: `status`, `closed: true`.
    fn shows_state(&self, results: CallResults<'_>) -> bool {
        let ends = |word: &str| verb(word).is_some_and(|verb| verb.is & ENDING != 0);
        STATE_KEYS.iter().any(|key| self.keys.contains(*key))
            || self.keys.iter().chain(&self.short).any(|word| ends(word))
            || self.keys.is_empty()
            || self.is_any(FILE_TOOLS)
            || results.own().is_some_and(|own| !own.recorded)
    }

    /// Returns true if the call can be about what a claim names.
    fn concerns_claim(
        &self,
        own: Verb,
        (nouns, places): (&[String], &[String]),
        results: CallResults<'_>,
        touched: bool,
    ) -> bool {
        self.is_only(own)
            || self.says(own) && self.is_placed(places)
            || (touched || self.concerns(nouns, results))
                && !(self.makes(own) && self.is_of_another(nouns, results))
    }

    /// Returns true if the tool's name has the place of a claim: "posted them to the website", by
    /// `post_webpage`.
    fn is_placed(&self, places: &[String]) -> bool {
        places.iter().any(|noun| {
            let noun = fold(noun);
            self.name.contains(&noun) || self.name.iter().any(|word| is_same_thing(word, &noun))
        })
    }

    /// Returns true if a claim is about something new, and the tool names what it works on.
    fn makes(&self, own: Verb) -> bool {
        own.is & (MAKE | BOOK | SEND) != 0
            && own.is & (POST | CHANGE | PAY) == 0
            && !(own.is & SEND != 0 && self.says(own))
    }

    /// Returns true if the call is about another kind of thing: its tool names one, and neither
    /// name, short values nor the own result have the claim's noun. An argument's key is only
    /// where the thing belongs: `add_comment` with a `card` makes no card.
    fn is_of_another(&self, nouns: &[String], results: CallResults<'_>) -> bool {
        let things = self.things();
        let one_of = |known: &[&str], noun: &str| known.iter().any(|own| fold(own) == noun);
        !things.is_empty()
            && !nouns.is_empty()
            && nouns.iter().all(|noun| {
                let noun = fold(noun);
                !(self.name.contains(&noun)
                    || noun == "pr" && self.name.contains("pull")
                    || one_of(GENERAL, &noun)
                    || one_of(UNITS, &noun)
                    || self.short.contains(&noun)
                    || self.name.iter().any(|word| is_same_thing(word, &noun))
                    || nominal_of(&noun)
                        .is_some_and(|lemma| self.verbs.iter().any(|verb| verb.lemma == lemma))
                    || self.is_any(FILE_TOOLS)
                        && (one_of(DOCUMENTS, &noun) || one_of(CONTENTS, &noun))
                    || self.is_any(MESSAGE_TOOLS)
                        && (one_of(MESSAGES, &noun) || one_of(UTTERANCES, &noun))
                    || results.any(false, |own| own.all.contains(&noun)))
            })
            && !nouns
                .windows(2)
                .any(|pair| self.name.contains(&fold(&pair.concat())))
    }

    /// Returns true if the tool is named just so: `send` does not name what it sends.
    fn is_only(&self, own: Verb) -> bool {
        self.plain.len() == 1
            && (self.says(own) || self.verbs.iter().any(|verb| verb.is & own.is & BOOK != 0))
    }

    /// Returns true if the tool's name has the verb.
    fn says(&self, own: Verb) -> bool {
        self.verbs.iter().any(|verb| verb.lemma == own.lemma)
    }

    /// Returns true if the tool's name has the claim's verb, and the call is about its thing.
    fn fits_exactly(&self, claim: &Claim, results: CallResults<'_>, touched: bool) -> bool {
        verb(claim.verb).is_some_and(|own| self.says(own))
            && verb(claim.verb).is_some_and(|own| {
                self.concerns_claim(own, (&claim.nouns, &claim.places), results, touched)
            })
    }

    /// A verb of which nothing is known is answered by any call about the thing.
    fn fits_open(
        &self,
        claim: &Claim,
        nouns: &[String],
        results: CallResults<'_>,
        touched: bool,
    ) -> Option<Fit> {
        let stem = claim.open.as_ref().map(|(_, stem)| stem.as_str());
        let says = stem.is_some_and(|stem| {
            self.name.contains(stem)
                || self.keys.contains(stem)
                || self.values.contains(stem)
                || results.any(false, |own| own.all.contains(stem))
        });
        let about = !(nouns.is_empty() && claim.named) && self.concerns(nouns, results)
            || !claim.places.is_empty() && self.concerns(&claim.places, results);
        (says || touched || about).then_some(Fit::Related)
    }

    /// Code can do anything; it is enough that it mentions the thing.
    fn executes(&self, own: Verb, nouns: &[String], touched: bool) -> bool {
        self.effect == Effect::Executes
            && (touched
                || self.values.contains(own.lemma)
                || nouns.iter().any(|noun| self.values.contains(&fold(noun))))
    }

    /// Returns true if money moved with the call, as its arguments or its result show.
    fn pays(&self, own: Verb, nouns: &[String], results: CallResults<'_>) -> bool {
        let is_money = |noun: &String| MONEY.contains(&singular(noun).as_str());
        let is_account = |noun: &String| {
            matches!(
                singular(noun).as_str(),
                "account" | "card" | "customer" | "method"
            )
        };
        PAYING.contains(&own.lemma)
            && self.effect == Effect::Acts
            && (nouns.iter().any(is_money)
                || nouns.iter().any(is_account)
                || self.concerns(nouns, results)
                || nouns.is_empty())
            && MONEY.iter().any(|word| {
                let word = fold(word);
                self.keys.contains(&word)
                    || results
                        .own()
                        .is_some_and(|result| !result.recorded || result.all.contains(&word))
            })
    }

    /// "A confirmation email has been sent": by the system that the call changed.
    fn confirms(&self, claim: &Claim, own: Verb) -> bool {
        claim.how != How::Active
            && self.effect == Effect::Acts
            && own.is & SEND != 0
            && claim.nouns.iter().any(|noun| {
                let noun = fold(noun);
                CONFIRMATIONS.iter().any(|known| fold(known) == noun)
            })
            && claim
                .nouns
                .iter()
                .any(|noun| noun.starts_with("confirm") || fold(noun) == fold("instructions"))
    }

    fn concerns(&self, nouns: &[String], results: CallResults<'_>) -> bool {
        // "mind map" is `mindmap`.
        let joined = nouns
            .windows(2)
            .any(|pair| self.name.contains(&fold(&pair.concat())));
        let Some((head, rest)) = nouns.split_last() else {
            return true;
        };
        // `client_max_body_size`
        let compound = |noun: &String| {
            noun.contains('_')
                && lexical::words(noun).iter().all(|word| {
                    self.values.contains(&fold(word)) || self.keys.contains(&fold(word))
                })
        };
        if nouns.iter().any(compound) {
            return true;
        }
        // What other results say of the thing matters only if the call can change any part of it.
        let all = self.classes & (CHANGE | ENDING | PAY) != 0;
        let is_known = |noun: &str| {
            self.concerns_noun(noun) || results.any(all, |result| result.all.contains(noun))
        };
        let head = fold(head);
        let is_general = GENERAL.iter().any(|known| fold(known) == head);
        joined
            || !is_general && is_known(&head)
            || is_general && rest.is_empty()
            || rest.iter().any(|noun| {
                let noun = fold(noun);
                if is_general {
                    is_known(&noun)
                } else {
                    self.values.contains(&noun)
                        || self.name.contains(&noun)
                        || self.keys.contains(&noun)
                }
            })
    }

    fn concerns_noun(&self, noun: &str) -> bool {
        let one_of = |nouns: &[&str]| nouns.iter().any(|known| fold(known) == noun);
        self.name.contains(noun)
            || nominal_of(noun)
                .is_some_and(|lemma| self.verbs.iter().any(|verb| verb.lemma == lemma))
            || self.keys.contains(noun)
            || self.values.contains(noun)
            || self.name.iter().any(|word| is_same_thing(word, noun))
            || self.keys.iter().any(|word| is_same_thing(word, noun))
            || self.is_any(FILE_TOOLS) && (one_of(DOCUMENTS) || one_of(CONTENTS))
            || self.is_any(MESSAGE_TOOLS) && (one_of(MESSAGES) || one_of(UTTERANCES))
            || noun == "pr" && self.name.contains("pull") && self.name.contains("request")
    }
}

/// A call with its results, first its own.
pub(crate) struct Candidate<'a> {
    pub call: &'a CallWords,
    pub results: CallResults<'a>,
}

/// The number of words of a call and its result up to which they do not describe the thing.
const TERSE: usize = 25;

impl Candidate<'_> {
    /// Returns true if the call and its result show little about the thing that it was for.
    pub(crate) fn is_terse(&self) -> bool {
        let own = self.results.own().map_or(0, |result| result.all.len());
        self.call.keys.len() + self.call.values.len() + own <= TERSE
    }
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
        evidence.touches(call, &names, &marks)
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
/// `touched` are the calls that were given a value that the claim names.
fn matching(
    claim: &Claim,
    calls: &[Candidate<'_>],
    touched: &dyn Fn(usize) -> bool,
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
                && call.call.fits_exactly(claim, call.results, touched(*index))
        })
        .map(|(index, _)| index)
        .collect();
    if !exact.is_empty() {
        return Some((Fit::Exact, exact));
    }
    let fits: Vec<(usize, Fit)> = acting()
        .filter_map(|(index, call)| {
            Some((index, call.call.fits(claim, call.results, touched(index))?))
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

#[cfg(test)]
mod tests;
