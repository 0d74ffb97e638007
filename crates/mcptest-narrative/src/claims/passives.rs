//! Claims without the agent as the subject: passives, with and without their auxiliary.

use super::guards::{Group, is_dateish, is_time};
use super::{Found, How, Reader};
use crate::tokens::{Kind, Token};
use crate::verbs::{BOOK, ENDING, Form, MAKE, PAY, POST, SEND};
use crate::words::{
    MODALS, NEGATIONS, SUBORDINATORS, is_adverb, is_article, is_auxiliary, is_conjunction,
    is_determiner, is_first_person, is_pastlike, is_preposition,
};

impl Reader<'_> {
    /// "I got the deadline extended", "I've had the light switched off".
    pub(super) fn caused(&self, at: usize, verb: &'static str, found: &mut Vec<Found>) -> bool {
        let Some(got) = (0..at).rev().take(10).find(|place| {
            let token = &self.tokens[*place];
            token.is_any(&["got", "had", "get"])
        }) else {
            return false;
        };
        let object = &self.tokens[got + 1..at];
        let plain = object.first().is_some_and(is_determiner)
            && object.iter().all(|token| {
                !token.is_mark()
                    && !is_preposition(token)
                    && !is_auxiliary(token)
                    && !is_conjunction(token)
                    && !is_first_person(token)
            });
        let own = (got.saturating_sub(4)..got)
            .rev()
            .find(|place| is_first_person(&self.tokens[*place]));
        let real = own.is_some_and(|own| {
            self.tokens[own..got].iter().all(|token| {
                !token.is_any(&["not", "never", "can", "could", "will", "would", "should"])
            }) && (!self.tokens[got].is("get")
                || self.tokens[own..got]
                    .iter()
                    .any(|token| token.is_any(&["managed", "able"])))
        });
        if !plain || !real {
            return false;
        }
        let phrase = self.phrase(got + 1, at);
        if phrase.is_something() {
            let from = own.unwrap_or(got);
            found.push(Found::new(verb, phrase.nouns, from, How::Active, at));
        }
        true
    }

    /// "Issue created.", "Email sent to Bob"
    pub(super) fn bare(
        &self,
        at: usize,
        end: usize,
        verb: &'static str,
        form: Form,
        found: &mut Vec<Found>,
    ) {
        let next_is = |words: &[&str]| self.get(at + 1).is_some_and(|token| token.is_any(words));
        let idle = match verb {
            "drop" => !self.sentence.done,
            "close" => next_is(&["at", "on", "for", "until", "to"]),
            _ => {
                let timed = next_is(&["for"]) && self.get(at + 2).is_some_and(is_time);
                form == Form::Any && !self.sentence.done && !next_is(&["to"]) && !timed
            }
        };
        // "50138 remains paid"
        let stays = self.before(end).is_some_and(|token| {
            token.is_any(&["remains", "remain", "remained", "stays", "stay", "stayed"])
        });
        if idle || stays {
            return;
        }
        // "Work submitted after the deadline loses 10 %": in prose, a participle describes.
        let stray = self.tokens.get(at + 1).is_some_and(|next| {
            is_preposition(next)
                && !next.is_any(&[
                    "to", "from", "for", "in", "into", "on", "with", "as", "at", "via", "onto",
                ])
        });
        if stray && !self.sentence.item {
            return;
        }
        // "Files removed from the list stay on disk": a bare plural is any of its kind.
        let generic = end == 1
            && !self.sentence.item
            && self.tokens[0].low.ends_with('s')
            && self.tokens[0].is_word()
            && self.get(at + 1).is_some_and(|next| {
                next.is_any(&["from", "by", "in", "with", "at", "on", "after", "before"])
            });
        if generic {
            return;
        }
        let mut start = (0..end)
            .rev()
            .find(|place| {
                let token = &self.tokens[*place];
                token.is_mark() && !token.is_any(&[")", "["]) && !token.is("]")
                    || is_conjunction(token)
            })
            .map_or(0, |place| place + 1);
        // "With the room booked, you are all set."
        let absolute = self.tokens.first().is_some_and(|token| token.is("with"))
            && self.tokens[..at]
                .iter()
                .all(|token| !is_auxiliary(token) && !token.is(","))
            && self.tokens[at..]
                .windows(2)
                .take(8)
                .any(|pair| pair[0].is(",") && pair[1].is_any(&["you", "everything", "i", "all"]))
            && !self.tokens[at..].iter().any(|token| token.is_any(MODALS));
        if absolute {
            start = start.max(1);
            let phrase = self.phrase(start, end);
            if !phrase.negative && !phrase.nouns.is_empty() {
                found.push(Found::new(verb, phrase.nouns, start, How::Bare, at));
            }
            return;
        }
        let subject = &self.tokens[start..end];
        // "- Redirect from the old address created"
        let listed = self.sentence.item && self.sentence.done && start == 0;
        // "the amount paid for it", "the amount your friend sent"
        let described = !listed && subject.iter().skip(1).any(is_article)
            || subject.first().is_some_and(is_article)
                && self
                    .get(at + 1)
                    .is_some_and(|next| is_preposition(next) || is_conjunction(next));
        if described {
            return;
        }
        let opens_with_past = listed && subject.first().is_some_and(is_pastlike);
        let is_plain = !subject.is_empty()
            && !opens_with_past
            && subject.len() <= if listed { 10 } else { 7 }
            && subject.iter().all(|token| {
                (!is_preposition(token) || listed)
                    && !is_auxiliary(token)
                    && !is_first_person(token)
                    && !token.is_any(&[
                        "you", "they", "he", "she", "it", "them", "date", "last", "time", "when",
                        "not",
                    ])
                    && !token.is_any(SUBORDINATORS)
            });
        let opened_by_conjunction = self
            .before(start)
            .is_some_and(|token| is_conjunction(token) || token.is(","));
        let terse = !self
            .tokens
            .iter()
            .any(|token| is_auxiliary(token) || is_first_person(token));
        let is_own = !opened_by_conjunction || !found.is_empty() || start <= 4 || terse;
        let mut after = at + 1;
        while self.get(after).is_some_and(is_adverb) {
            after += 1;
        }
        let ends = self
            .get(after)
            .is_none_or(|token| token.is_mark() || is_preposition(token) || is_conjunction(token));
        let labels_a_date = self.get(after).is_some_and(|token| token.is(":"))
            && self.get(after + 1).is_some_and(is_dateish);
        // "Emails sent: 14", "Emails sent: none"
        let counts = self.get(after).is_some_and(|token| token.is(":"))
            && self.get(after + 1).is_some_and(|token| {
                token.is_any(NEGATIONS)
                    || token.kind == Kind::Number
                        && subject.last().is_some_and(|noun| {
                            noun.low.ends_with('s') || noun.is_any(&["amount", "total", "sum"])
                        })
            });
        if !is_plain || !is_own || !ends || self.by_another(at) || self.is_history(at) {
            return;
        }
        if self.is_finite_until_break(after) {
            return;
        }
        let phrase = self.phrase(start, end);
        if phrase.negative || (phrase.nouns.is_empty() && !phrase.named) {
            return;
        }
        found.push(Found::new(verb, phrase.nouns, start, How::Bare, at));
        if let Some(found) = found.last_mut() {
            found.claim.weak = labels_a_date || counts;
        }
    }

    /// "The issue has been created", "your refund was sent", "it is now closed"
    pub(super) fn passive(
        &self,
        at: usize,
        verb: &'static str,
        group: &Group,
        found: &mut Vec<Found>,
    ) {
        let after = self.get(at + 1);
        let is_now =
            |next: Option<&Token>| next.is_some_and(|next| next.is_any(&["now", "successfully"]));
        let later = self.tokens[at + 1..]
            .iter()
            .take(8)
            .take_while(|token| !token.is_mark() && !is_conjunction(token))
            .last()
            .is_some_and(|last| last.is("now"));
        let now = group.now || is_now(after) || is_now(self.get(at + 2)) || later;
        let finished = group.been && group.have || group.was || group.is && now;
        // "Your order is cancelled as requested."
        let requested = group.is
            && after.is_some_and(|next| next.is("as"))
            && self
                .tokens
                .iter()
                .skip(at + 2)
                .take(2)
                .any(|token| token.is_any(&["requested", "asked", "instructed"]));
        let finished = finished || requested;
        let lasting = crate::verbs::verb(verb)
            .is_some_and(|verb| verb.is & (ENDING | BOOK | POST | SEND | PAY | MAKE) != 0);
        let state = group.is && !finished && self.is_state(at) && lasting;
        // "The timer is set for 13 minutes."
        let weak = group.is && !finished && !state;
        if !(finished || state || weak)
            || group.unfinished
            || group.already
            || self.by_another(at)
            || self.is_standing(at, verb)
        {
            return;
        }
        let plain_past = group.was && !group.been;
        let mut end = group.start;
        let mut start = self.clause_start(end);
        // "A job that repeats the clean-up has been set up."
        let relative = start > 1
            && self
                .before(start)
                .is_some_and(|token| token.is_any(&["that", "which"]))
            && self
                .get(start)
                .is_some_and(|token| token.low.ends_with('s'))
            && self.get(start + 1).is_some_and(is_determiner)
            && start + 1 < end;
        if relative {
            end = start - 1;
            start = self.clause_start(end);
        }
        if plain_past && self.is_history(at) || self.is_hearsay(start, end) {
            return;
        }
        let Some(phrase) = self.subject(start, end) else {
            return;
        };
        // "It was published in Nature": a pronoun and a plain past say too little.
        // "The following were deleted: a.txt"
        let listed =
            after.is_some_and(|next| next.is(":")) && self.get(at + 2).is_some_and(Token::is_name);
        if plain_past && phrase.nouns.is_empty() && !phrase.named && !listed && !self.is_fresh(at) {
            return;
        }
        let indefinite = self
            .get(start)
            .is_some_and(|token| token.is_any(&["a", "an"]));
        // "Comments on the post are switched off."
        let attached = self
            .get(start + 1)
            .is_some_and(|token| token.is_any(&["on", "of", "for", "in"]))
            && self.is_definite(start + 2, (start + 3).min(end));
        // "Two tickets are reserved in your name."
        let yours = self.tokens[at..].windows(3).any(|three| {
            three[0].is_any(&["in", "under", "to"]) && three[1].is("your")
                || three[0].is("for") && three[1].is("you")
        });
        let definite = yours
            || if weak {
                self.is_definite(start, start + 1)
            } else {
                self.is_definite(start, end)
            };
        if (state || weak) && !definite && !indefinite && !attached {
            return;
        }
        let how = if state || weak {
            How::State
        } else {
            How::Passive
        };
        let mut rest = phrase.end;
        let own = found.len();
        let (pronoun, named) = (phrase.pronoun, phrase.named);
        found.push(Found::new(verb, phrase.nouns, start, how, at));
        if let Some(last) = found.last_mut() {
            last.claim.pronoun = pronoun;
            last.claim.named = named;
        }
        // "The issue and the branch have been created"
        while let Some(next) = self.further_subject(rest, end) {
            found.push(Found::new(verb, next.nouns, rest, how, at));
            rest = next.end;
        }
        let own_thing = self.get(start).is_some_and(|token| {
            token.is("your") || !state && token.is_any(&["a", "an", "both", "all"])
        });
        let indefinite = self
            .get(start)
            .is_some_and(|token| token.is_any(&["a", "an", "both", "all"]))
            && !self.get(start + 1).is_some_and(|token| token.is("new"));
        for found in &mut found[own..] {
            found.claim.past = plain_past;
            found.claim.own_thing = own_thing || yours && !plain_past;
            found.claim.indefinite = indefinite && !yours;
            found.claim.weak = weak;
        }
    }
}
