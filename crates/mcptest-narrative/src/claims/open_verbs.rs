//! Verbs that are in no list, and verbs that are actions with a particle only.

use super::{Found, How, Reader};
use crate::tokens::Token;
use crate::verbs::{Form, OPEN, takes};
use crate::words::{is_conjunction, is_first_person, opens_object};

impl Reader<'_> {
    /// A verb that is in no list is a claim with the agent as its actor, in the perfect passive,
    /// and where what was done is listed.
    pub(super) fn open(&self, at: usize, stem: String, found: &mut Vec<Found>) {
        let group = self.group(at);
        if group.unreal || group.already {
            return;
        }
        let own = found.len();
        if group.passive() {
            if group.have && group.been && !self.sentence.label {
                self.passive(at, OPEN, &group, found);
            }
        } else if group.having {
            self.active(at, group.start, OPEN, How::Active, found);
        } else if self.before(group.start).is_none() {
            // "- Drained node-4"
            let named = self.get(at + 1).is_some_and(opens_object);
            if self.sentence.item && self.sentence.done && named {
                self.active(at, at, OPEN, How::Elided, found);
            }
        } else if let Some(before) = self.before(group.start) {
            let joined = (is_conjunction(before) || before.is(","))
                && found
                    .last()
                    .is_some_and(|last| last.claim.how == How::Active)
                && !self.is_other_subject(group.start);
            if is_first_person(before) {
                self.active(at, group.start - 1, OPEN, How::Active, found);
            } else if joined {
                self.active(at, at, OPEN, How::Active, found);
            } else if self.sentence.item && self.sentence.done {
                self.bare(at, group.start, OPEN, Form::Past, found);
            }
        }
        let tokens = &self.tokens[at..self.tokens.len().min(at + 8)];
        let named = tokens.iter().any(Token::is_name);
        for found in &mut found[own..] {
            found.claim.named = named;
            found.claim.news = found.claim.how == How::Passive;
            found.claim.open = Some((self.tokens[at].low.clone(), stem.clone()));
        }
    }

    /// Returns true if someone else is the subject of what leads up to a verb.
    fn is_other_subject(&self, end: usize) -> bool {
        (0..end).rev().find_map(|place| {
            let token = &self.tokens[place];
            if is_first_person(token) {
                Some(false)
            } else if token.is_any(&["you", "they", "he", "she", "it", "who", "which", "that"]) {
                Some(true)
            } else {
                None
            }
        }) == Some(true)
    }

    /// Returns true if a verb is an action as it is used here: "rolled back", "rolled it back".
    pub(super) fn takes_particle(&self, at: usize, verb: &str) -> bool {
        (at + 1..self.tokens.len().min(at + 6))
            .take_while(|place| !self.tokens[*place].is_mark())
            .any(|place| takes(verb, Some(&self.tokens[place].low)))
            || takes(verb, None)
    }
}
