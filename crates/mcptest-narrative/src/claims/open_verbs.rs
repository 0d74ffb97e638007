//! The verb at a place: of the table, with a particle, or one that is in no list.

use super::{Found, How, Reader};
use crate::inner_verbs::{is_ordering, is_talk};
use crate::tokens::{Kind, Token};
use crate::verbs::{Form, OPEN, fold, open_past, takes, verb_of};
use crate::words::{is_adverb, is_conjunction, is_first_person, opens_object};

/// A verb as it is used at a place.
pub(super) struct Action {
    /// The base form of the verb of the table, or [`OPEN`].
    pub(super) lemma: &'static str,
    pub(super) form: Form,
    /// The word as written and its stem, of a verb that is in no list.
    pub(super) open: Option<(String, String)>,
}

/// Verbs that another verb stands for with a particle. Those without one are not of the table, or
/// not the same there.
#[rustfmt::skip]
const WITH_PARTICLES: &[(&str, &str, &str)] = &[
    ("sign", "up", "register"), ("set", "up", "create"), ("shut", "down", "stop"), ("take", "down", "delete"),
    ("set", "aside", "reserve"), ("put", "aside", "reserve"), ("bring", "up", "start"), ("bring", "down", "stop"), ("spin", "up", "create"), ("spin", "down", "stop"),
    ("tear", "down", "delete"), ("clean", "up", "delete"), ("hand", "over", "transfer"), ("kick", "off", "start"),
    ("put", "together", "create"), ("fill", "in", "write"), ("fill", "out", "write"), ("pay", "out", "pay"),
    ("roll", "back", "revert"), ("roll", "out", "deploy"), ("push", "back", "reschedule"), ("push", "forward", "reschedule"),
    ("turn", "on", "switch"), ("turn", "off", "switch"), ("turn", "up", "switch"), ("turn", "down", "switch"),
    ("switch", "on", "switch"), ("switch", "off", "switch"), ("back", "up", "back"), ("send", "out", "send"),
    ("call", "off", "cancel"), ("call", "back", "contact"), ("check", "in", "register"), ("check", "out", "checkout"), ("take", "out", "remove"), ("pull", "down", "delete"),
    ("move", "up", "reschedule"), ("swap", "out", "replace"), ("switch", "over", "change"), ("give", "back", "return"),
    ("write", "up", "write"), ("open", "up", "open"), ("close", "out", "close"), ("sort", "out", "resolve"),
    ("clear", "out", "delete"), ("throw", "away", "delete"), ("throw", "out", "delete"), ("strike", "out", "delete"),
    ("pass", "on", "forward"), ("top", "up", "add"), ("loop", "in", "notify"), ("reach", "out", "contact"), ("lock", "down", "lock"),
    ("hold", "back", "hold"), ("bring", "back", "restore"), ("put", "back", "restore"), ("cut", "down", "reduce"), ("drop", "off", "deliver"), ("phase", "out", "delete"),
];

/// Particles after which a verb is not an action: "logged in".
const IDLE: &[(&str, &str)] = &[
    ("log", "in"),
    ("log", "out"),
    ("log", "on"),
    ("run", "into"),
    ("set", "out"),
];

impl Reader<'_> {
    /// The verb at a place.
    pub(super) fn action(&self, at: usize) -> Option<Action> {
        let token = self.get(at).filter(|token| token.is_word())?;
        let known = verb_of(&token.low);
        let particle = self.particle(at);
        if let Some(particle) = particle {
            let is_of = |base: &str| crate::inflection::pasts(base).contains(&token.low);
            if IDLE
                .iter()
                .any(|(base, own)| *own == particle && is_of(base))
            {
                return None;
            }
            let with = WITH_PARTICLES
                .iter()
                .find(|(base, own, _)| *own == particle && is_of(base));
            if let Some((_, _, lemma)) = with {
                return Some(Action {
                    lemma,
                    form: Form::Past,
                    open: None,
                });
            }
        }
        // "pushed the deadline to Sunday"
        let pushed = token.is_any(&["pushed", "bumped"])
            && (at + 1..self.tokens.len().min(at + 9)).any(|place| {
                self.tokens[place].is("to")
                    && self
                        .get(place + 1)
                        .is_some_and(|next| super::is_time(next) && next.kind != Kind::Number)
            });
        if pushed {
            return Some(Action {
                lemma: "reschedule",
                form: Form::Past,
                open: None,
            });
        }
        // "I raised a ticket."
        if token.is("raised") && self.raises_request(at) {
            return Some(Action {
                lemma: "open",
                form: Form::Past,
                open: None,
            });
        }
        // "A comment was left on the page", but not "The review was left where it is".
        let stays = self.get(at + 1).is_some_and(|next| {
            next.is_any(&[
                "where",
                "as",
                "alone",
                "untouched",
                "unchanged",
                "open",
                "out",
            ])
        });
        if token.is("left") && !stays {
            let is_note = |other: &Token| {
                other.is_any(&[
                    "comment",
                    "note",
                    "message",
                    "voicemail",
                    "review",
                    "reply",
                    "feedback",
                ])
            };
            let near = self.tokens[at.saturating_sub(4)..self.tokens.len().min(at + 5)].iter();
            if near.into_iter().any(is_note) {
                return Some(Action {
                    lemma: "add",
                    form: Form::Past,
                    open: None,
                });
            }
        }
        // "The workbook has been password-protected."
        let group = self.group(at);
        if token.low.contains('-') && token.low.ends_with("ed") && group.have && group.been {
            return Some(Action {
                lemma: OPEN,
                form: Form::Past,
                open: Some((token.low.clone(), fold(&token.low))),
            });
        }
        // "The video was made public."
        let made = token.is("made")
            && self.get(at + 1).is_some_and(|next| {
                next.is_any(&[
                    "public",
                    "private",
                    "available",
                    "visible",
                    "live",
                    "mandatory",
                    "optional",
                    "editable",
                    "default",
                    "permanent",
                    "active",
                ])
            });
        if made {
            return Some(Action {
                lemma: "update",
                form: Form::Past,
                open: None,
            });
        }
        if let Some((lemma, form)) = known {
            // "The release was rolled back."
            return self.takes_particle(at, lemma).then_some(Action {
                lemma,
                form,
                open: None,
            });
        }
        let stem = if is_talk(&token.low) {
            // "The values have been highlighted", but "I highlighted the differences".
            let perfect = group.have && group.been || group.was;
            (perfect || is_ordering(&token.low) && !group.passive()).then(|| fold(&token.low))?
        } else if is_ordering(&token.low) && !group.passive() {
            fold(&token.low)
        } else {
            open_past(&token.low)?
        };
        Some(Action {
            lemma: OPEN,
            form: Form::Past,
            open: Some((token.low.clone(), stem)),
        })
    }

    /// Returns true if what is raised is a request to others: "a pull request", "an issue".
    fn raises_request(&self, at: usize) -> bool {
        let is_request = |token: &Token| {
            token.is_any(&[
                "request",
                "requests",
                "issue",
                "issues",
                "ticket",
                "tickets",
                "pr",
                "case",
                "incident",
                "bug",
                "dispute",
                "complaint",
                "claim",
                "invoice",
            ])
        };
        let group = self.group(at);
        let object = if group.passive() {
            &self.tokens[group.start.saturating_sub(3)..group.start]
        } else {
            &self.tokens[at + 1..self.tokens.len().min(at + 5)]
        };
        // "I raised the ticket's priority", "the priority of the ticket was raised"
        let other = object.iter().any(|token| {
            token.is_any(&[
                "of", "'s", "priority", "limit", "level", "severity", "price", "amount",
            ])
        });
        !other && object.iter().any(is_request)
    }

    /// The particle of a verb: right after it, or after a short object: "rolled it back".
    fn particle(&self, at: usize) -> Option<&str> {
        const PARTICLES: &[&str] = &[
            "up", "down", "off", "on", "out", "over", "back", "in", "away", "together", "forward",
            "aside",
        ];
        let next = self.get(at + 1)?;
        if next.is_any(PARTICLES) {
            // "turned on the light", but not "posted on the board"
            return Some(&next.low);
        }
        let short = next.is_any(&[
            "it",
            "them",
            "you",
            "him",
            "her",
            "everything",
            "this",
            "that",
        ]);
        let after = self.get(at + 2)?;
        (short && after.is_any(PARTICLES)).then_some(&after.low)
    }

    /// A verb that is in no list: with the agent as its actor, in a passive, and where what was
    /// done is listed.
    pub(super) fn open(&self, at: usize, action: &Action, found: &mut Vec<Found>) {
        let group = self.group(at);
        if group.unreal || group.already {
            return;
        }
        let own = found.len();
        if group.passive() {
            if !self.sentence.label {
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
            let passive = (is_conjunction(before) || before.is(","))
                && found
                    .last()
                    .is_some_and(|last| last.claim.how == How::Passive && at - last.at <= 4);
            if is_first_person(before) {
                self.active(at, group.start - 1, OPEN, How::Active, found);
            } else if joined {
                self.active(at, at, OPEN, How::Active, found);
            } else if passive && let Some(last) = found.last() {
                // "has been drained and cordoned"
                let (nouns, past) = (last.claim.nouns.clone(), last.claim.past);
                let mut one = Found::new(OPEN, nouns, at, How::Passive, at);
                one.claim.past = past;
                one.claim.own_thing = last.claim.own_thing;
                found.push(one);
            } else if self.sentence.item && self.sentence.done && !self.is_measured(at) {
                self.bare(at, group.start, OPEN, Form::Past, found);
            }
        }
        let tokens = &self.tokens[at..self.tokens.len().min(at + 8)];
        let named = tokens.iter().any(Token::is_name);
        for found in &mut found[own..] {
            found.claim.named = named;
            found.claim.news = found.claim.how == How::Passive && found.claim.past;
            found.claim.open = action.open.clone();
            found.claim.talk = is_ordering(&self.tokens[at].low) && !group.passive();
        }
    }

    /// Returns true if a figure was observed: "p99 peaked at 1.94 s".
    fn is_measured(&self, at: usize) -> bool {
        self.get(at + 1)
            .is_some_and(|next| next.is_any(&["at", "by", "above", "below", "between"]))
            && self
                .get(at + 2)
                .is_some_and(|value| value.text.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Returns true if the words around a verb say that it was done just now, or for the reader.
    pub(super) fn is_fresh(&self, at: usize) -> bool {
        let near = &self.tokens[at + 1..self.tokens.len().min(at + 8)];
        let after = near.iter().take_while(|token| !token.is_mark());
        let said = after.clone().any(|token| {
            token.is_any(&[
                "now",
                "too",
                "accordingly",
                "afterwards",
                "successfully",
                "today",
            ])
        });
        let pairs = near.windows(2).any(|pair| {
            pair[0].is("as")
                && pair[1].is_any(&["well", "requested", "asked", "discussed", "agreed"])
                || pair[0].is("for") && pair[1].is("you")
                || pair[0].is("by") && pair[1].is_any(&["me", "us"])
                || pair[0].is("from") && pair[1].is_any(&["now", "today"])
                || pair[0].is_any(&["minute", "minutes", "moment", "moments"]) && pair[1].is("ago")
                || pair[0].is("this") && pair[1].is_any(&["morning", "afternoon", "evening"])
        });
        let before = self.tokens[..at].iter().rev().take(4).any(|token| {
            is_adverb(token) && token.is_any(&["also", "just", "now", "successfully"])
        });
        said || pairs || before
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
    fn takes_particle(&self, at: usize, verb: &str) -> bool {
        (at + 1..self.tokens.len().min(at + 6))
            .take_while(|place| !self.tokens[*place].is_mark())
            .any(|place| takes(verb, Some(&self.tokens[place].low)))
            || takes(verb, None)
    }
}
