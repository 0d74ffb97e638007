//! Forms of a claim beyond subject, verb and object: "I was able to delete …", "Your cancellation
//! is complete", "- **Deleted**: 3 branches", and the cells of a table.

use super::guards::is_dateish;
use super::{Found, How, Reader};
use crate::inner_verbs::{is_inner, is_talk};
use crate::tokens::{Kind, Token};
use crate::verbs::{Form, OPEN, Use, fold, is_open_base, nominal_of, open_past, verb, verb_of};
use crate::words::{
    BE, HAVE, MODALS, NEGATIONS, is_adverb, is_auxiliary, is_conjunction, is_determiner,
    is_first_person, is_pastlike, is_preposition, month,
};

/// Words that say that an action has come to its end.
#[rustfmt::skip]
const COMPLETE: &[&str] = &[
    "complete", "completed", "done", "finished", "successful", "through", "confirmed", "finalized", "finalised",
    "succeeded", "processed", "executed",
];

impl Reader<'_> {
    /// "I did create the issue", "I was able to delete the branch", "✅ Delete the branch".
    pub(super) fn infinitive(&self, at: usize, verb: &'static str, found: &mut Vec<Found>) {
        if at == 0 && self.sentence.checked && self.sentence.item && !self.sentence.row {
            // "Merge request approved"
            let other = self.tokens[1..].iter().any(|token| {
                verb_of(&token.low)
                    .is_some_and(|(_, form)| matches!(form, Form::Past | Form::Participle))
            });
            if other {
                return;
            }
            let phrase = self.object(at);
            if phrase.is_something() && !phrase.pronoun {
                found.push(Found::new(verb, phrase.nouns, 0, How::Bare, at));
            }
            return;
        }
        let mut place = self.skip_adverbs(at);
        // "… and cancel it", which shares what governs the verb before.
        if self
            .before(place)
            .is_some_and(|token| is_conjunction(token) || token.is(","))
        {
            let Some(governor) = self.governor(place - 1) else {
                return;
            };
            place = governor;
        }
        if self.before(place).is_some_and(|token| token.is("did")) {
            if self.before(place - 1).is_some_and(is_first_person) {
                self.active(at, place - 2, verb, How::Active, found);
            }
            return;
        }
        if !self.before(place).is_some_and(|token| token.is("to")) {
            return;
        }
        let place = self.skip_adverbs(place - 1);
        let able = match self.before(place) {
            Some(token) if token.is("able") => true,
            Some(token) if token.is_any(&["managed", "proceeded"]) => false,
            _ => return,
        };
        let mut past = !able;
        let mut place = place - 1;
        while let Some(token) = self.before(place) {
            if token.is_any(&["was", "were", "been"]) {
                past = true;
            } else if !(is_adverb(token) || token.is_any(HAVE)) {
                break;
            }
            place -= 1;
        }
        if past && self.before(place).is_some_and(is_first_person) {
            self.active(at, place - 1, verb, How::Active, found);
        }
    }

    /// "I was able to drain the node": a verb that is in no list.
    pub(super) fn open_infinitive(&self, at: usize, found: &mut Vec<Found>) {
        let token = &self.tokens[at];
        let object = self.get(at + 1).is_some_and(|next| {
            next.is_any(&["the", "your", "all", "it", "them", "both", "this", "these"])
                || next.is_name()
        });
        let governed = self.before(at).is_some_and(|before| before.is("to"));
        if !governed || !object || !is_open_base(&token.low) {
            return;
        }
        let own = found.len();
        self.infinitive(at, OPEN, found);
        for found in &mut found[own..] {
            found.claim.open = Some((token.low.clone(), fold(&token.low)));
        }
    }

    /// "I took care of the cancellation."
    pub(super) fn care(&self, at: usize, found: &mut Vec<Found>) {
        let of = self.get(at + 1).is_some_and(|token| token.is("care"))
            && self.get(at + 2).is_some_and(|token| token.is("of"));
        let group = self.group(at);
        let own = self.before(group.start).is_some_and(is_first_person);
        let phrase = self.phrase(at + 3, self.tokens.len());
        let lemma = phrase.nouns.iter().rev().find_map(|noun| nominal_of(noun));
        if let Some(lemma) = lemma.filter(|_| of && own && !group.unreal) {
            let mut nouns = phrase.nouns;
            nouns.retain(|noun| nominal_of(noun) != Some(lemma));
            found.push(Found::new(lemma, nouns, group.start - 1, How::Active, at));
        }
    }

    fn skip_adverbs(&self, mut at: usize) -> usize {
        while self.before(at).is_some_and(is_adverb) {
            at -= 1;
        }
        at
    }

    /// The place after "able to" or "managed to" that also governs what follows a conjunction.
    fn governor(&self, end: usize) -> Option<usize> {
        let to = (0..end).rev().take(25).find(|place| {
            let token = &self.tokens[*place];
            token.is("to") || is_first_person(token) || token.is_any(MODALS)
        })?;
        let governs = self.tokens[to].is("to")
            && self
                .before(to)
                .is_some_and(|token| token.is_any(&["able", "managed", "proceeded"]));
        governs.then_some(to + 1)
    }

    /// "Your cancellation is complete", "Refund successful", "Deletion of the branch: done".
    pub(super) fn nominal(&self, found: &mut Vec<Found>) {
        if self.sentence.heading {
            return;
        }
        let mut last_end = 0;
        for at in 0..self.tokens.len() {
            let token = &self.tokens[at];
            if at < last_end || !token.is_word() {
                continue;
            }
            let gerund = || {
                let (lemma, form) = verb_of(&token.low)?;
                let plain = verb(lemma).is_some_and(|verb| verb.usage == Use::Plain);
                (form == Form::Gerund && plain).then_some(lemma)
            };
            let Some(lemma) = nominal_of(&token.low).or_else(gerund) else {
                continue;
            };
            let Some(end) = self.completion(at) else {
                continue;
            };
            let start = self.clause_start(at);
            let subject = &self.tokens[start..at];
            let denied = subject.iter().any(|token| {
                token.is_any(NEGATIONS) || token.is_any(MODALS) || is_first_person(token)
            });
            let plain = subject.len() <= 6
                && subject.iter().all(|token| {
                    !is_preposition(token) && !token.is_any(BE) && !token.is_any(HAVE)
                });
            if denied || !plain || self.is_hearsay(start, at + 1) || self.is_history(end) {
                continue;
            }
            let already = found
                .iter()
                .any(|found| found.at >= start && found.at <= end + 1);
            if already {
                continue;
            }
            let mut nouns = self.phrase(start, at).nouns;
            if let Some(of) = self
                .get(at + 1)
                .filter(|token| token.is_any(&["of", "for", "on", "to"]))
            {
                let phrase = self.phrase(at + 2, end);
                if of.is_any(&["of", "for"]) && phrase.is_something() {
                    nouns.extend(phrase.nouns);
                }
            }
            nouns.retain(|noun| !COMPLETE.contains(&noun.as_str()));
            found.push(Found::new(lemma, nouns, start, How::Passive, end));
            last_end = end;
        }
    }

    /// The place of the word that completes the noun at `at`, if it is complete for good.
    fn completion(&self, at: usize) -> Option<usize> {
        let mut place = at + 1;
        if self
            .get(place)
            .is_some_and(|token| token.is_any(&["request", "requests", "process"]))
        {
            place += 1;
        }
        // "of your order #W1"
        if self
            .get(place)
            .is_some_and(|token| token.is_any(&["of", "for", "to", "on"]))
        {
            let end = (place..self.tokens.len()).take(12).find(|place| {
                let token = &self.tokens[*place];
                token.is_any(BE)
                    || token.is_any(HAVE)
                    || token.is_any(MODALS)
                    || token.is_any(&["completed", "finished", "succeeded"])
                    || token.is_mark()
            })?;
            place = end;
        }
        let mut linked = false;
        let mut been = false;
        while let Some(token) = self.get(place) {
            if token.is_any(&["is", "are", "was", "were", "'s", "went"]) {
                linked = true;
            } else if token.is_any(HAVE) || token.is("been") {
                linked = true;
                been |= token.is("been");
            } else if token.is_mark() && token.is_any(&[":", "—", "–", "-", "|"]) && !linked {
                linked = true;
            } else if !is_adverb(token) || token.is_any(&["next", "last"]) {
                break;
            }
            place += 1;
        }
        let token = self.get(place)?;
        if !token.is_any(COMPLETE) {
            return None;
        }
        let verbal = token.is_any(&["processed", "executed"]);
        let next = self.get(place + 1);
        let ends = next.is_none_or(|next| {
            next.is_mark() && !next.is("|")
                || next.is("|")
                || is_conjunction(next)
                || next.is_any(&["with", "successfully", "now"])
        });
        // "the refund is processed within a week" is a rule.
        let direct = place == at + 1 || token.is_any(&["completed", "finished", "succeeded"]);
        (ends && (!verbal || been) && (linked || direct)).then_some(place)
    }

    /// "| feature-a | Deleted |", "feature-a: deleted", where what was done is listed, or as a
    /// state.
    pub(super) fn cells(&self, found: &mut Vec<Found>) {
        if !self.sentence.item || self.sentence.question || self.sentence.heading {
            return;
        }
        // "notes.md (created)"
        let bracketed = self.tokens.len() > 3
            && self.tokens[0].is_name()
            && self.tokens[1].is("(")
            && self.tokens[3].is(")");
        let is_bar = |token: &Token| {
            token.is_mark()
                && (token.is("|")
                    || bracketed && token.is_any(&["(", ")"])
                    || !self.sentence.row && token.is_any(&[":", "—", "–", "-", "→"]))
        };
        // "✅ Table of contents", "| Car rental | ✅ |", "Gdynia: done": a claim where nothing is
        // known of it.
        let ends_done = self
            .tokens
            .last()
            .is_some_and(|token| token.is_any(COMPLETE) && self.tokens.len() > 2)
            && self.tokens.iter().any(is_bar);
        if self.sentence.checked || ends_done {
            let end = self
                .tokens
                .iter()
                .position(is_bar)
                .unwrap_or(self.tokens.len());
            let phrase = self.phrase(0, end);
            let plain = self.tokens[..end].iter().all(|token| {
                (!is_preposition(token) || token.is_any(&["of", "for", "to"]))
                    && !is_auxiliary(token)
                    && !is_pastlike(token)
            });
            let exclaims = self.tokens.last().is_some_and(|token| token.is("!"));
            // "| Delete the branch | ✅ Done |" is read below.
            let orders = self.sentence.row
                && self.tokens.first().is_some_and(|token| {
                    verb_of(&token.low)
                        .is_some_and(|(_, form)| matches!(form, Form::Base | Form::Any))
                });
            let short = end <= 5
                && !exclaims
                && !orders
                && (ends_done || end == self.tokens.len() || self.sentence.row);
            if short && plain && !phrase.nouns.is_empty() && !phrase.negative {
                let mut one = Found::new(OPEN, phrase.nouns, 0, How::State, 0);
                one.claim.open = Some(("done".to_owned(), "done".to_owned()));
                one.claim.weak = true;
                one.claim.own_thing = true;
                found.push(one);
                return;
            }
        }
        let mut cells: Vec<(usize, usize)> = Vec::new();
        let mut start = 0;
        for (place, token) in self.tokens.iter().enumerate() {
            if is_bar(token) {
                cells.push((start, place));
                start = place + 1;
            }
        }
        cells.push((start, self.tokens.len()));
        cells.retain(|(start, end)| start < end);
        if cells.len() < 2 || cells.len() > 12 {
            return;
        }
        let unled = !self.sentence.done && !self.sentence.led && !self.sentence.row;
        let how = if self.sentence.done {
            How::Bare
        } else {
            How::State
        };
        let completed = cells.iter().any(|(start, end)| {
            let cell = &self.tokens[*start];
            end - start == 1 && (cell.is_any(COMPLETE) || cell.is("yes"))
                || cell.is_any(&["success", "ok"])
        });
        if self.sentence.row && (self.sentence.checked || completed) {
            // "| Delete the branch | ✅ Done |"
            for (start, end) in &cells {
                let base = verb_of(&self.tokens[*start].low)
                    .filter(|(_, form)| matches!(form, Form::Base | Form::Any));
                let phrase = self.phrase(start + 1, *end);
                if let Some((lemma, _)) = base
                    && !phrase.nouns.is_empty()
                    && !phrase.negative
                    && start + 1 < *end
                {
                    found.push(Found::new(lemma, phrase.nouns, *start, How::Bare, *start));
                    return;
                }
            }
        }
        for (index, (start, end)) in cells.iter().enumerate() {
            let words: Vec<usize> = (*start..*end)
                .filter(|place| !is_adverb(&self.tokens[*place]) && !self.tokens[*place].is_mark())
                .collect();
            // "deleted", "issued to Visa"
            let at = match *words.as_slice() {
                [at] => at,
                [at, next, ..]
                    if index > 0
                        && (is_preposition(&self.tokens[next])
                            || self.tokens[next].is_any(&["off", "on", "down", "up"])) =>
                {
                    at
                }
                _ => continue,
            };
            let token = &self.tokens[at];
            let listed = self.sentence.done;
            let open = open_past(&token.low)
                .or_else(|| is_talk(&token.low).then(|| fold(&token.low)))
                .filter(|_| listed && token.is_word());
            let known = verb_of(&token.low).filter(|_| token.is_word());
            let Some((lemma, form)) = known.or(open.as_ref().map(|_| (OPEN, Form::Past))) else {
                continue;
            };
            let past = matches!(form, Form::Past | Form::Participle)
                || form == Form::Any && self.sentence.item;
            // "Early check-in: arranged": a claim where nothing is known of a check-in.
            let arranged = token.is_any(&["arranged", "confirmed", "secured", "included"]);
            let (lemma, open) = if arranged {
                (OPEN, Some(fold(&token.low)))
            } else {
                (lemma, open)
            };
            // "Lab test: ordered" can be news, unless what was done is listed.
            let colon = listed || !self.sentence.row && !self.sentence.led;
            let own = verb(lemma).is_some_and(|verb| verb.usage != Use::Plain) && !listed;
            let plain = verb(lemma)
                .is_some_and(|verb| verb.usage == Use::Plain || colon && verb.usage != Use::Light);
            // "Opening hours: closed on Mondays"
            let weekly = cells
                .iter()
                .any(|(start, end)| end - start == 1 && self.tokens[*start].low.ends_with("day"));
            let as_what = words
                .get(1)
                .is_some_and(|place| self.tokens[*place].is("as"));
            let standing = lemma == "close" && (words.len() > 1 && !as_what || weekly);
            if !past || !plain || standing {
                continue;
            }
            // "Created: September 1889", "**Deleted**: 3 branches"
            let label = index == 0 && !self.sentence.row;
            let object = if label { cells.get(1) } else { cells.first() };
            let Some((from, to)) = object.filter(|cell| **cell != (*start, *end)) else {
                continue;
            };
            if label && !self.is_listed_object(*from) {
                continue;
            }
            let phrase = self.phrase(*from, *to);
            // "5501: closed"
            let numbered = to - from == 1
                && self.tokens[*from].kind == Kind::Number
                && self.tokens[*from].text.len() >= 3;
            if (phrase.is_something() || numbered) && !phrase.pronoun {
                let how = if label && self.is_counted(*from) {
                    How::Bare
                } else {
                    how
                };
                found.push(Found::new(lemma, phrase.nouns, *from, how, at));
                if let Some(found) = found.last_mut() {
                    found.claim.from = 0;
                    found.claim.listed = unled;
                    found.claim.weak = (arranged || own) && how == How::State;
                    if lemma == OPEN {
                        found.claim.named = true;
                        found.claim.open = open.map(|stem| (token.low.clone(), stem));
                    }
                }
                return;
            }
        }
    }

    /// The nouns that the words after a verb add to its object: "to your reservation".
    pub(super) fn places(&self, verb: usize, end: usize) -> Vec<String> {
        let mut nouns = Vec::new();
        let mut place = verb + 1;
        while place < end.min(verb + 30) {
            let opens = self.tokens[place].is_any(&[
                "to", "from", "in", "into", "on", "of", "for", "with", "as", "onto", "at",
            ]) && !self.is_infinitive(place);
            place += 1;
            if opens {
                let phrase = self.phrase(place, end);
                let lasting = phrase
                    .nouns
                    .iter()
                    .filter(|noun| month(noun).is_none() && !noun.ends_with("day"));
                nouns.extend(lasting.cloned());
                place = phrase.end.max(place);
            }
        }
        nouns
    }

    /// Returns true if "to" begins an infinitive: "to go out".
    pub(super) fn is_infinitive(&self, place: usize) -> bool {
        // "a task to wrap it"
        let governs = self.get(place + 1).is_some_and(|next| {
            next.is_word()
                && !next.is_capitalized()
                && !is_determiner(next)
                && !is_preposition(next)
                && next.low.len() > 2
        }) && self.get(place + 2).is_some_and(|object| {
            object.is_any(&[
                "it", "them", "him", "the", "a", "an", "your", "my", "our", "this",
            ])
        });
        self.tokens[place].is("to") && governs
            || self.tokens[place].is("to")
                && self.get(place + 1).is_some_and(|next| {
                    next.is_word()
                        && (is_inner(&next.low)
                            || verb_of(&next.low).is_some_and(|(_, form)| form == Form::Base))
                        && self.get(place + 2).is_some_and(|after| !after.is_mark())
                })
    }

    /// The nouns of what something was brought to: "to your calendar".
    pub(super) fn targets(&self, verb: usize, end: usize, wide: bool) -> Vec<String> {
        (verb + 1..end.min(verb + 14))
            .take_while(|place| !self.tokens[*place].is_mark())
            .find(|place| {
                let token = &self.tokens[*place];
                token.is_any(&["to", "into", "onto"]) && !self.is_infinitive(*place)
                    || wide && token.is_any(&["in", "on"])
            })
            .map(|place| self.phrase(place + 1, end).nouns)
            .unwrap_or_default()
            .into_iter()
            .filter(|noun| month(noun).is_none() && !noun.ends_with("day"))
            .collect()
    }

    /// Returns true if an object can start after a label: not a date, a year or a person.
    fn is_listed_object(&self, from: usize) -> bool {
        let Some(first) = self.get(from) else {
            return false;
        };
        let dated = self.tokens[from..].iter().take(4).any(is_dateish);
        !dated && !first.is_any(NEGATIONS) && !first.is_any(&["on", "by", "at", "in", "n", "since"])
    }

    fn is_counted(&self, from: usize) -> bool {
        self.get(from).is_some_and(|token| {
            token.kind == Kind::Number && token.text.chars().all(|c| c.is_ascii_digit())
                || is_determiner(token)
                || matches!(token.kind, Kind::Path | Kind::Email)
        }) && self
            .get(from + 1)
            .is_some_and(|next| !next.is_mark() && !is_preposition(next))
    }

    /// Returns true if a present passive states a finished action: nothing dates or qualifies it.
    pub(super) fn is_state(&self, at: usize) -> bool {
        let placed = |next: &Token| {
            next.is_any(&["for", "at", "in", "as", "on", "under", "until"])
                && self
                    .get(at + 2)
                    .is_some_and(|value| value.kind == Kind::Path)
        };
        self.get(at + 1).is_none_or(|next| {
            next.is_mark() && next.is_any(&[".", "!", ",", ";"]) || next.is("and") || placed(next)
        })
    }

    /// Returns true if a subject is one certain thing of this run: "your order", "PROJ-12".
    pub(super) fn is_definite(&self, start: usize, end: usize) -> bool {
        let subject = self.tokens.get(start..end).unwrap_or_default();
        subject.iter().any(|token| {
            token.is_any(&["the", "your", "this", "both", "all", "each"])
                || token.kind == Kind::Identifier
        })
    }
}
