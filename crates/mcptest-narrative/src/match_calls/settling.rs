//! Calls that settle something: an order of what was prepared, a payment, a confirmation.

use crate::call_words::{CallWords, Effect};
use crate::claims::{Claim, How};
use crate::run_evidence::CallResults;
use crate::tool_words::{CONCLUDING, CONFIRMATIONS, MESSAGE_TOOLS, MONEY, MOVED, PAYING};
use crate::verbs::{BOOK, COPY, END, LOAD, PAY, SEND, Verb, WRITE, fold, singular};

impl CallWords {
    /// Returns true if the call concludes what other calls of the run prepared, so that its own
    /// arguments need not name the thing: `place_order` after `add_to_cart`.
    pub(super) fn concludes(
        &self,
        own: Verb,
        head: &Option<String>,
        results: CallResults<'_>,
    ) -> bool {
        own.is & (BOOK | PAY) != 0
            && self.is_any(CONCLUDING)
            && head.as_ref().is_some_and(|head| results.is_prepared(head))
    }

    /// Returns true if money moved with the call, as its arguments or its result show.
    pub(super) fn pays(
        &self,
        claim: &Claim,
        own: Verb,
        nouns: &[String],
        results: CallResults<'_>,
    ) -> bool {
        let is_money = |noun: &String| MONEY.contains(&singular(noun).as_str());
        let is_account = |noun: &String| {
            matches!(
                singular(noun).as_str(),
                "account" | "card" | "customer" | "method"
            )
        };
        // A request for money moves none.
        let asks = self.is_any(&["request"]) && !matches!(own.lemma, "bill" | "invoice" | "charge");
        let moves = PAYING.contains(&own.lemma) && self.effect == Effect::Acts && !asks;
        // "You get a refund": the consequence of a cancellation or a return.
        let follows = claim.how != How::Active
            && nouns.is_empty()
            && self.classes & (END | SEND) != 0
            && !self.is_any(MESSAGE_TOOLS);
        let is_known = |noun: &String| {
            let folded = fold(noun);
            is_money(noun)
                || is_account(noun)
                || self.name.contains(&folded)
                || self.keys.contains(&folded)
                || self.values.contains(&folded)
                || results.any(true, |result| result.all.contains(&folded))
        };
        moves
            && nouns.iter().all(is_known)
            && (nouns.is_empty() || nouns.iter().any(is_money) || nouns.iter().any(is_account))
            && (follows
                || MOVED.iter().any(|word| {
                    let word = fold(word);
                    self.keys.contains(&word)
                        || results
                            .own()
                            .is_some_and(|result| !result.recorded || result.all.contains(&word))
                }))
    }

    /// "A confirmation email has been sent": by the system that the call changed.
    pub(super) fn confirms(&self, claim: &Claim, own: Verb) -> bool {
        claim.how != How::Active
            && self.effect == Effect::Acts
            && !self.is_any(MESSAGE_TOOLS)
            && self.classes & (WRITE | LOAD | COPY) == 0
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
}
