//! Completed actions that are stated without a verb of doing: "A refund is on its way", "The
//! duplicates are gone", "A new record now exists".

use super::{Found, How, Reader};
use crate::tokens::Token;
use crate::words::{BE, NEGATIONS, is_adverb};

/// Things that a service sends by itself.
const AUTOMATIC: &[&str] = &[
    "confirmation",
    "email",
    "mail",
    "e-mail",
    "receipt",
    "notification",
    "reminder",
];

impl Reader<'_> {
    /// Finds idioms whose subject is a thing.
    pub(super) fn idioms(&self, found: &mut Vec<Found>) {
        if self.sentence.heading || self.asks() {
            return;
        }
        for at in 0..self.tokens.len() {
            let Some((verb, alternative, subject_end)) = self.idiom(at) else {
                continue;
            };
            if found.iter().any(|known| known.at.abs_diff(at) <= 3) {
                continue;
            }
            let start = self.clause_start(subject_end);
            let unreal = self.group(subject_end).unreal
                || self.tokens[start..subject_end]
                    .iter()
                    .any(|token| token.is_any(NEGATIONS));
            if unreal || self.is_hearsay(start, subject_end) || self.is_conditional(start) {
                continue;
            }
            let Some(phrase) = self.subject(start, subject_end) else {
                continue;
            };
            let is_automatic = |noun: &String| AUTOMATIC.contains(&noun.as_str());
            if phrase.nouns.is_empty() || verb == "send" && phrase.nouns.iter().any(is_automatic) {
                continue;
            }
            let mut one = Found::new(verb, phrase.nouns, start, How::State, at);
            one.claim.alternative = Some(alternative);
            one.claim.own_thing = self
                .get(start)
                .is_some_and(|token| token.is_any(&["your", "a", "an", "both", "all"]));
            found.push(one);
        }
    }

    /// The verbs that the idiom at a place means, and the end of its subject.
    fn idiom(&self, at: usize) -> Option<(&'static str, &'static str, usize)> {
        let next = |offset: usize, words: &[&str]| {
            self.get(at + offset)
                .is_some_and(|token| token.is_any(words))
        };
        let token = self.get(at)?;
        if token.is("on") && next(1, &["its", "their", "the"]) && next(2, &["way"]) {
            return Some(("send", "order", self.be_before(at)?));
        }
        if token.is("went") && next(1, &["out"]) && !next(2, &["of"]) {
            return Some(("send", "pay", at));
        }
        if token.is("gone") && self.ends_at(at + 1) {
            return Some(("delete", "move", self.be_before(at)?));
        }
        if token.is("live") && self.ends_at(at + 1) {
            return Some(("publish", "start", self.be_before(at)?));
        }
        if token.is_any(&["exists", "exist"]) && (next(1, &["now"]) || self.is_now(at)) {
            let end = if self.is_now(at) { at - 1 } else { at };
            return Some(("create", "add", end));
        }
        None
    }

    fn is_now(&self, at: usize) -> bool {
        self.before(at).is_some_and(|token| token.is("now"))
    }

    /// The place of the "is", "are" or "has been" right before an idiom.
    fn be_before(&self, at: usize) -> Option<usize> {
        let mut place = at;
        while self
            .before(place)
            .is_some_and(|token| is_adverb(token) && !token.is_any(&["still", "already"]))
        {
            place -= 1;
        }
        let be = self.before(place)?;
        (be.is_any(BE) && be.is_any(&["is", "are"])).then_some(place - 1)
    }

    /// Returns true if nothing or a small word follows.
    fn ends_at(&self, at: usize) -> bool {
        self.get(at).is_none_or(|token: &Token| {
            token.is_mark() || token.is_any(&["now", "from", "on", "in", "at", "and", "as"])
        })
    }
}
