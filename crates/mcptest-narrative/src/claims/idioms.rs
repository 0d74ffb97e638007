//! Completed actions that are stated as a state: "A refund is on its way", "The duplicates are
//! gone", "A new record now exists", "The pipeline is green now".

use super::{Found, How, Reader};
use crate::inner_verbs::is_inner_past;
use crate::tokens::{Kind, Token};
use crate::verbs::{OPEN, fold, verb_of};
use crate::words::{
    BE, MODALS, NEGATIONS, is_adverb, is_auxiliary, is_determiner, is_first_person, is_noun,
    is_preposition,
};

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

/// States after "is", with the verbs of the actions that lead to them.
#[rustfmt::skip]
const STATES: &[(&[&str], &str, &str)] = &[
    (&["on", "its", "way"], "send", "order"), (&["on", "their", "way"], "send", "order"), (&["on", "the", "way"], "send", "order"),
    (&["under", "way"], "start", "create"), (&["underway"], "start", "create"), (&["in", "transit"], "send", "order"),
    (&["gone"], "delete", "move"), (&["no", "more"], "delete", "move"), (&["history"], "delete", "close"),
    (&["live"], "publish", "start"), (&["up", "and", "running"], "start", "create"),
    (&["in", "place"], "create", "set"), (&["in", "effect"], "set", "create"), (&["in", "force"], "set", "create"),
    (&["on", "hold"], "hold", "suspend"), (&["on", "file"], "save", "submit"), (&["on", "record"], "save", "write"),
    (&["on", "the", "calendar"], "schedule", "create"), (&["in", "your", "calendar"], "schedule", "create"),
    (&["on", "your", "calendar"], "schedule", "create"), (&["in", "the", "calendar"], "schedule", "create"),
    (&["in", "your", "inbox"], "send", "forward"), (&["in", "the", "diary"], "schedule", "create"),
    (&["in", "your", "cart"], "add", "order"), (&["in", "the", "cart"], "add", "order"),
    (&["taken", "care", "of"], "resolve", "update"),
];

/// Verbs that say that something came to pass: "went out".
#[rustfmt::skip]
const EVENTS: &[(&[&str], &str, &str)] = &[
    (&["went", "out"], "send", "pay"), (&["gone", "out"], "send", "pay"), (&["went", "live"], "publish", "start"),
    (&["gone", "live"], "publish", "start"), (&["took", "effect"], "set", "update"), (&["came", "back", "up"], "restart", "start"),
];

/// Verbs of the present that say nothing of what was done.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    "need", "needs", "want", "wants", "know", "knows", "see", "sees", "look", "looks", "seem", "seems", "appear", "appears", "require",
    "requires", "mean", "means", "understand", "hope", "think", "believe", "say", "says", "make", "makes", "let", "lets", "have", "has", "do", "does",
    "contain", "contains", "get", "gets", "take", "takes", "reads", "states", "shows", "works", "waits",
];

impl Reader<'_> {
    /// Finds idioms whose subject is a thing.
    pub(super) fn idioms(&self, found: &mut Vec<Found>) {
        if self.sentence.heading || self.asks() {
            return;
        }
        for at in 0..self.tokens.len() {
            let Some(idiom) = self.idiom(at) else {
                continue;
            };
            let subject_end = idiom.subject_end;
            if found.iter().any(|known| known.at.abs_diff(at) <= 3) {
                continue;
            }
            let mut start = self.clause_start(subject_end);
            let mut subject_end = subject_end;
            // "The rule that blocked you is gone."
            if start > 1 && self.tokens[start - 1].is_any(&["that", "which", "who"]) {
                subject_end = start - 1;
                start = self.clause_start(subject_end);
            }
            let subject = &self.tokens[start..subject_end];
            let unreal = self.group(subject_end).unreal
                || subject
                    .iter()
                    .any(|token| token.is_any(NEGATIONS) || token.is_any(MODALS));
            if unreal || self.is_hearsay(start, subject_end) || self.is_conditional(start) {
                continue;
            }
            let you = subject.last().is_some_and(|token| token.is("you"));
            let received = self.tokens[at].is_any(&["received", "got"]);
            let first = subject.last().is_some_and(is_first_person);
            if received && (you || first || subject.is_empty()) {
                continue;
            }
            let (nouns, own_thing) = if received {
                (self.object(at).nouns, true)
            } else if you {
                (self.predicate_nouns(at), true)
            } else {
                let Some(phrase) = self.subject(start, subject_end) else {
                    continue;
                };
                let own = self
                    .get(start)
                    .is_some_and(|token| token.is_any(&["your", "a", "an", "both", "all", "one"]));
                (phrase.nouns, own)
            };
            let is_automatic = |noun: &String| AUTOMATIC.contains(&noun.as_str());
            // "A confirmation is on its way"
            let automatic = idiom.verb == "send"
                && nouns.iter().any(is_automatic)
                && (!self.tokens[at].is_any(&["went", "gone"])
                    || nouns.iter().any(|noun| noun.starts_with("confirm")));
            if nouns.is_empty() || automatic && !received {
                continue;
            }
            let mut one = Found::new(idiom.verb, nouns, start, How::State, at);
            one.claim.alternative = idiom.alternative;
            one.claim.open = idiom.open;
            one.claim.own_thing = own_thing;
            one.claim.fresh = idiom.now;
            one.claim.weak = idiom.weak && !self.is_from_now_on();
            one.claim.fresh |= self.is_from_now_on();
            one.claim.shown = true;
            found.push(one);
        }
    }

    /// The nouns behind "on" and "in": "on the waiting list".
    fn predicate_nouns(&self, at: usize) -> Vec<String> {
        let from = if self.get(at).is_some_and(is_preposition) {
            at + 1
        } else {
            at
        };
        self.phrase(from, self.tokens.len()).nouns
    }

    /// The idiom at a place.
    fn idiom(&self, at: usize) -> Option<Idiom> {
        let words_at = |words: &[&str]| {
            words
                .iter()
                .enumerate()
                .all(|(offset, word)| self.get(at + offset).is_some_and(|token| token.is(word)))
        };
        let token = self.get(at)?;
        if !token.is_word() {
            return self.now_value(at);
        }
        for (words, verb, alternative) in EVENTS {
            if words_at(words) && !self.get(at + words.len()).is_some_and(|next| next.is("of")) {
                let have = self
                    .before(at)
                    .is_some_and(|before| before.is_any(&["has", "have"]));
                return Some(Idiom::known(
                    verb,
                    alternative,
                    at - usize::from(have),
                    true,
                ));
            }
        }
        for (words, verb, alternative) in STATES {
            let after = at + words.len();
            if words_at(words)
                && self.ends_at(after)
                && let Some((subject_end, now)) = self.be_before(at)
            {
                let now = now || self.get(after).is_some_and(|next| next.is("now"));
                return Some(Idiom::known(verb, alternative, subject_end, now));
            }
        }
        if token.is_any(&["exists", "exist"]) {
            let before = self.is_now(at);
            let now = before || self.get(at + 1).is_some_and(|next| next.is("now"));
            return now.then(|| Idiom::known("create", "add", at - usize::from(before), true));
        }
        self.present(at)
            .or_else(|| self.now_state(at))
            .or_else(|| self.now_value(at))
            .or_else(|| self.switched(at))
            .or_else(|| self.received(at))
    }

    /// "The paper now sits at the top."
    fn present(&self, at: usize) -> Option<Idiom> {
        let token = &self.tokens[at];
        let verb = token.low.len() > 3
            && token.low.ends_with('s')
            && !token.low.ends_with("ss")
            && !token.is_any(PLAIN)
            && !is_auxiliary(token)
            && !is_determiner(token);
        if !self.is_now(at) || !verb || self.before(at - 1).is_none_or(|noun| !is_thing(noun)) {
            return None;
        }
        Some(Idiom {
            verb: OPEN,
            alternative: None,
            open: Some((token.low.clone(), fold(&token.low))),
            subject_end: at - 1,
            now: true,
            weak: false,
        })
    }

    /// "The pipeline is green now", "You are now on the waiting list".
    fn now_state(&self, at: usize) -> Option<Idiom> {
        let token = &self.tokens[at];
        let (subject_end, before) = self.be_before(at)?;
        let end = (at..self.tokens.len())
            .find(|place| {
                let token = &self.tokens[*place];
                token.is_mark() || token.is_any(&["and", "but", "so", "because", "which"])
            })
            .unwrap_or(self.tokens.len());
        let after = end > at + 1 && self.tokens[end - 1].is("now") && end - at <= 4;
        let placed = is_preposition(token) && token.is_any(&["on", "in", "under", "at"]);
        let plain = is_noun(token)
            && !token.is_any(NEGATIONS)
            && !is_preposition(token)
            && verb_of(&token.low).is_none()
            && (!token.low.ends_with("ed") || before && is_inner_past(&token.low))
            && !token.low.ends_with("ing")
            && !token.is_any(&[
                "ready",
                "able",
                "available",
                "aware",
                "sure",
                "free",
                "set",
                "clear",
                "good",
                "there",
                "here",
                "possible",
                "time",
                "up",
            ]);
        if !(before || after) || !(placed || plain) {
            return None;
        }
        let word = if placed {
            self.predicate_nouns(at).pop()?
        } else {
            token.low.clone()
        };
        Some(Idiom {
            verb: OPEN,
            alternative: None,
            open: Some((word.clone(), fold(&word))),
            subject_end,
            now: true,
            weak: false,
        })
    }

    /// "The threshold is now 95%", "Your address is now the one on Maple Street".
    fn now_value(&self, at: usize) -> Option<Idiom> {
        let token = &self.tokens[at];
        let (subject_end, now) = self.be_before(at)?;
        let value = token.is_name() || is_determiner(token);
        (now && value).then(|| Idiom::known("set", "update", subject_end, true))
    }

    /// "The blinds are down": a claim only where nothing is known of blinds.
    fn switched(&self, at: usize) -> Option<Idiom> {
        let token = &self.tokens[at];
        let switched = token.is_any(&[
            "off", "on", "down", "up", "shut", "active", "inactive", "public", "private",
            "visible", "hidden", "quiet", "locked", "unlocked", "open", "ready",
        ]);
        let (subject_end, now) = self.be_before(at).filter(|_| switched)?;
        self.ends_at(at + 1).then(|| Idiom {
            verb: OPEN,
            alternative: None,
            open: Some((token.low.clone(), fold(&token.low))),
            subject_end,
            now,
            weak: !now,
        })
    }

    /// "Kofi has received an invitation."
    fn received(&self, at: usize) -> Option<Idiom> {
        let token = &self.tokens[at];
        let have = self
            .before(at)
            .is_some_and(|before| before.is_any(&["has", "have"]));
        let object = self
            .get(at + 1)
            .is_some_and(|next| next.is_any(&["a", "an", "their", "his", "her"]));
        let each = self
            .before(at)
            .is_some_and(|before| before.is_any(&["each", "both"]) || before.low.ends_with('s'));
        let received = token.is("received") || token.is("got") && (have || each);
        (received && object).then(|| Idiom {
            verb: "send",
            alternative: Some("invite"),
            open: None,
            subject_end: at - usize::from(have),
            now: true,
            weak: false,
        })
    }

    fn is_now(&self, at: usize) -> bool {
        self.before(at).is_some_and(|token| token.is("now"))
    }

    /// The place of the "is", "are" or "has been" right before an idiom, and if "now" is there.
    fn be_before(&self, at: usize) -> Option<(usize, bool)> {
        let mut place = at;
        let mut now = false;
        while self
            .before(place)
            .is_some_and(|token| is_adverb(token) && !token.is("still"))
        {
            place -= 1;
            now |= self.tokens[place].is_any(&["now", "already"]);
        }
        let be = self.before(place)?;
        let is = be.is_any(BE) && be.is_any(&["is", "are"])
            || be.is("'s") && place > 1 && !is_preposition(&self.tokens[place - 2]);
        is.then_some((place - 1, now))
    }

    /// Returns true if nothing or a small word follows.
    fn ends_at(&self, at: usize) -> bool {
        self.get(at).is_none_or(|token: &Token| {
            token.is_mark()
                || token.kind == Kind::Number
                || token.is_any(&[
                    "now", "from", "on", "in", "at", "and", "as", "for", "to", "until", "with",
                    "under", "too", "again",
                ])
        })
    }
}

struct Idiom {
    verb: &'static str,
    alternative: Option<&'static str>,
    open: Option<(String, String)>,
    /// The end of the subject.
    subject_end: usize,
    now: bool,
    weak: bool,
}

impl Idiom {
    fn known(verb: &'static str, alternative: &'static str, subject_end: usize, now: bool) -> Self {
        Self {
            verb,
            alternative: Some(alternative),
            open: None,
            subject_end,
            now,
            weak: false,
        }
    }
}

fn is_thing(token: &Token) -> bool {
    (is_noun(token) || token.is_name()) && !is_preposition(token) && !is_first_person(token)
}
