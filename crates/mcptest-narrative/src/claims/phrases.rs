//! Noun phrases: where a verb's subject or object begins and ends, and which nouns it has.

use super::Reader;
use crate::tokens::{Kind, Token};
use crate::verbs::verb_of;
use crate::words::{
    HAVE, NEGATIONS, PRONOUNS, SUBORDINATORS, is_adverb, is_auxiliary, is_conjunction,
    is_determiner, is_first_person, is_noun, is_pastlike, is_preposition, is_verb_only,
};

/// Nouns for a part or a form of another.
#[rustfmt::skip]
const PARTS: &[&str] = &["version", "part", "parts", "batch", "group", "list", "set", "collection", "draft", "type", "portion", "copy", "copies"];

/// Words before the name of a thing.
const NAMING: &[&str] = &[
    "named", "called", "titled", "entitled", "labeled", "labelled", "dubbed",
];

/// Words that begin an afterthought: ", all free of charge".
const AFTERTHOUGHTS: &[&str] = &["all", "both", "each", "any", "that", "those"];

/// Words that are an object by themselves.
#[rustfmt::skip]
const ALONE: &[&str] = &["it", "they", "them", "everything", "something", "anything", "ones", "you"];

/// The nouns between two places.
#[derive(Debug, Default)]
pub(super) struct Phrase {
    pub(super) nouns: Vec<String>,
    /// An identifier, a path, a quotation.
    pub(super) named: bool,
    pub(super) pronoun: bool,
    pub(super) negative: bool,
    /// The place after it.
    pub(super) end: usize,
}

impl Phrase {
    pub(super) fn is_something(&self) -> bool {
        !self.negative && (!self.nouns.is_empty() || self.named || self.pronoun)
    }
}

impl Reader<'_> {
    /// The subject of a passive whose auxiliary is at `end`; `None` if it is not a thing that the
    /// agent acted on.
    pub(super) fn subject(&self, start: usize, end: usize) -> Option<Phrase> {
        let mut phrase = self.phrase(start, end);
        if start == end {
            match self.before(start) {
                Some(token) if token.is("which") => {
                    let comma = start - 1;
                    let before = self.clause_start(comma.saturating_sub(1));
                    phrase = self.phrase(before, comma);
                    phrase.end = end;
                }
                Some(token) if token.is_any(&["that", "who", "what"]) => return None,
                // "Your plan is updated and was shared with Kim."
                Some(token) if token.is("and") => {
                    let clause = self.clause_start(start - 1);
                    let verb = (clause..start).find(|place| is_auxiliary(&self.tokens[*place]));
                    phrase = self.phrase(clause, verb.unwrap_or(clause));
                    phrase.end = end;
                    phrase.pronoun |= phrase.nouns.is_empty();
                }
                _ => phrase.pronoun = true,
            }
        }
        let subject = &self.tokens[start..end];
        let negated = subject.iter().any(|token| token.is_any(NEGATIONS));
        let is_person = subject
            .last()
            .is_some_and(|token| is_first_person(token) || token.is("there"));
        if subject
            .last()
            .is_some_and(|token| token.is_any(&["he", "she"]))
        {
            phrase.nouns.clear();
            phrase.pronoun = true;
        }
        (!negated && !is_person && phrase.is_something()).then_some(phrase)
    }

    /// The next of several subjects: "and the branch".
    pub(super) fn further_subject(&self, from: usize, end: usize) -> Option<Phrase> {
        let next = (from..end).find(|place| !self.tokens[*place].is_any(&[",", "and", "&"]))?;
        if next == from {
            return None;
        }
        let phrase = self.phrase(next, end);
        (!phrase.nouns.is_empty() && !phrase.negative).then_some(phrase)
    }

    /// The object of an active verb.
    pub(super) fn object(&self, verb: usize) -> Phrase {
        let mut start = verb + 1;
        // "so I stopped there"
        if self
            .get(start)
            .is_some_and(|token| token.is_any(&["there", "here", "short", "at"]))
            && self.tokens[verb].is_any(&["stopped", "paused", "started"])
        {
            return Phrase::default();
        }
        if self
            .get(start)
            .is_some_and(|token| token.is_any(&["together", "aside", "forward", "forth"]))
            || self.get(start).is_some_and(|token| token.is("off"))
                && !self.tokens[verb].is_any(&["turned", "switched"])
        {
            return Phrase::default();
        }
        let particle =
            |token: &Token| token.is_any(&["up", "out", "back", "over", "down", "on", "off"]);
        // "Successfully created: the issue"
        let listed = self.get(start).is_some_and(|token| token.is(":"))
            && self.before(verb).is_some_and(is_adverb);
        if listed
            || self
                .get(start)
                .is_some_and(|token| particle(token) || is_adverb(token))
        {
            start += 1;
        }
        // "sent you the file", "sent Bob the file"
        let to_whom = self.get(start).is_some_and(|token| {
            token.is_any(&["you", "him", "her", "them", "me", "us", "everyone"])
                || token.is_word() && token.is_capitalized()
        });
        if to_whom && self.get(start + 1).is_some_and(is_determiner) {
            start += 1;
        }
        self.phrase(start, self.tokens.len())
    }

    /// The next of several objects: "and the branch".
    pub(super) fn further_object(&self, end: usize) -> Option<Phrase> {
        let mut start = end;
        while self
            .get(start)
            .is_some_and(|token| token.is(",") || token.is("and") || token.is("&"))
        {
            start += 1;
        }
        if start == end
            || !self
                .get(start)
                .is_some_and(|token| is_determiner(token) && !token.is_any(AFTERTHOUGHTS))
        {
            return None;
        }
        let phrase = self.phrase(start, self.tokens.len());
        let ends = self
            .get(phrase.end)
            .is_none_or(|token| token.is_mark() || is_preposition(token) || is_conjunction(token));
        (ends && phrase.is_something() && !phrase.pronoun).then_some(phrase)
    }

    /// The object of a verb that comes before its subject: "the issue I created".
    pub(super) fn gap(&self, subject: usize, verb: usize) -> Option<Phrase> {
        let ends = self
            .get(verb + 1)
            .is_none_or(|token| token.is_mark() || is_preposition(token) || is_auxiliary(token));
        let start = (0..subject)
            .rev()
            .take_while(|place| {
                let token = &self.tokens[*place];
                is_noun(token)
                    && !is_preposition(token)
                    && !is_auxiliary(token)
                    && !is_conjunction(token)
            })
            .last()?;
        let preceded = self.before(start).is_some_and(is_determiner);
        (ends && preceded).then(|| self.phrase(start, subject))
    }

    /// Reads a noun phrase from `start`, not beyond `end`.
    pub(super) fn phrase(&self, start: usize, end: usize) -> Phrase {
        let mut phrase = Phrase {
            end: start,
            ..Phrase::default()
        };
        let mut described = false;
        let mut number = false;
        let mut place = start;
        while place < end.min(start + 14) {
            let token = &self.tokens[place];
            let started = !phrase.nouns.is_empty() || phrase.named;
            if token.is("(") {
                match (place..end).find(|close| self.tokens[*close].is(")")) {
                    Some(close) => {
                        place = close + 1;
                        continue;
                    }
                    None => break,
                }
            }
            if token.is_any(&["[", "]", "#"]) && token.is_mark() {
                place += 1;
                continue;
            }
            // "all of the files", "a copy of the file"
            let part = phrase
                .nouns
                .last()
                .is_some_and(|noun| PARTS.contains(&noun.as_str()));
            if token.is("of") && (!started || part) {
                place += 1;
                continue;
            }
            // "a well-formatted, comprehensive report"
            if token.is(",") && described && !started {
                place += 1;
                continue;
            }
            if token.is_mark()
                || is_conjunction(token)
                || started && is_verb_only(token)
                || is_auxiliary(token)
                || is_first_person(token)
            {
                break;
            }
            if token.is_any(PRONOUNS) {
                if started {
                    break;
                }
                phrase.pronoun = true;
                if token.is_any(ALONE) {
                    phrase.end = place + 1;
                    break;
                }
            } else if token.is_any(NEGATIONS)
                || token.is("zero")
                || token.kind == Kind::Number && token.text == "0"
            {
                phrase.negative = true;
            } else if is_preposition(token) {
                if started || phrase.pronoun || place > start {
                    break;
                }
                // "In total 3 files …": a subject may begin so, an object not.
                if start == place && end == self.tokens.len() {
                    break;
                }
            } else if token.kind == Kind::Number {
                // "order 43" is a name, "3 orders" a count.
                phrase.named |= started;
                number = true;
            } else if token.is_name() {
                phrase.named = true;
            } else if is_adverb(token) && place > start && started {
                break;
            } else if token.is_any(&["now", "then", "today"]) {
                // "which I opened just now"
            } else if started && self.is_clause_of_gerund(place, end) {
                break;
            } else if token.is_any(NAMING) && started {
                // "a file named a.txt"
                phrase.named = true;
                place += 1;
                while place < end
                    && (self.tokens[place].is_name() || self.tokens[place].is_capitalized())
                {
                    place += 1;
                }
                phrase.end = place;
                break;
            } else if is_noun(token) {
                let next = self.tokens[..end].get(place + 1);
                let describes = is_pastlike(token)
                    && (next.is_some_and(|next| next.is(",")) && token.low.contains('-')
                        || next.is_some_and(|next| {
                            is_noun(next)
                                && !is_preposition(next)
                                && !is_auxiliary(next)
                                && !is_conjunction(next)
                        }));
                if describes {
                    described = true;
                } else if started && is_pastlike(token) && verb_of(&token.low).is_some() {
                    break;
                } else {
                    phrase.nouns.extend(
                        token
                            .low
                            .split('-')
                            .filter(|part| part.len() > 1)
                            .map(str::to_owned),
                    );
                }
            } else {
                described |= token.is_word() && !is_determiner(token);
            }
            place += 1;
            phrase.end = place;
        }
        if !phrase.nouns.is_empty() {
            phrase.pronoun = false;
        } else if number && !phrase.pronoun {
            phrase.named = true;
        } else if described && !phrase.named {
            // "the first two", "the rest"
            phrase.pronoun = phrase.end > start;
        }
        phrase
    }

    /// Returns true if a gerund after a noun begins a clause: "your question asking everyone to …".
    fn is_clause_of_gerund(&self, place: usize, end: usize) -> bool {
        let token = &self.tokens[place];
        token.is_word()
            && token.low.len() > 4
            && token.low.ends_with("ing")
            && self.tokens[..end].get(place + 1).is_some_and(|next| {
                is_determiner(next) || next.is_any(&["everyone", "them", "you", "people", "that"])
            })
    }

    /// The position where the subject that ends at `end` begins.
    pub(super) fn clause_start(&self, end: usize) -> usize {
        let mut place = end;
        // "The file, named a.txt, was deleted", "from May 1 to May 5, 2024, was booked"
        if place > 1 && self.tokens[place - 1].is(",") {
            let open = (place.saturating_sub(12)..place - 1)
                .rev()
                .find(|comma| self.tokens[*comma].is(","));
            if let Some(open) = open.filter(|open| *open > 0 && !self.has_finite(*open + 1, place))
            {
                place = open;
            }
        }
        while place > 0 {
            let token = &self.tokens[place - 1];
            if token.is(")") {
                let open = (0..place - 1).rev().find(|open| self.tokens[*open].is("("));
                match open {
                    Some(open) => {
                        place = open;
                        continue;
                    }
                    None => return place,
                }
            }
            if token.is_mark() && token.is_any(&[":", "—", "–", "-", "(", "|", "=", ">"]) {
                return place;
            }
            // "The review that day was cancelled."
            let dated = token.is("that")
                && self
                    .get(place)
                    .is_some_and(|next| next.is_any(&["day", "week", "month", "time", "year"]));
            if dated {
                place -= 1;
                continue;
            }
            if token.is_any(&[
                "that", "which", "who", "but", "so", "while", "although", "though", "whereas",
            ]) || token.is_any(SUBORDINATORS) && !token.is("as")
            {
                return place;
            }
            // "The lunch on May 19, from 12:00 to 13:00 has been created."
            let inserted = self
                .get(place)
                .is_some_and(|next| place > 2 && next.is_any(&["from", "at", "on", "for", "with"]));
            if token.is(",")
                && !inserted
                && !self.is_list(place, end)
                && !self.is_before_year(place)
            {
                return place;
            }
            if token.is_any(&["and", "or", "&"]) && self.has_verb(place - 1) {
                return place;
            }
            place -= 1;
        }
        0
    }

    /// Returns true if there is a finite verb between two places.
    fn has_finite(&self, from: usize, to: usize) -> bool {
        (from..to).any(|place| {
            let token = &self.tokens[place];
            is_auxiliary(token) && !self.is_month(place) || is_first_person(token)
        })
    }

    /// Returns true if a comma is one of a list of subjects: "the issue, the branch and the tag
    /// have been created".
    fn is_list(&self, comma: usize, end: usize) -> bool {
        let left = &self.tokens[..comma - 1];
        let joined = self.tokens[comma..end].iter().any(|token| token.is("and"));
        joined
            && left
                .first()
                .is_some_and(|token| is_determiner(token) || token.kind == Kind::Number)
            && left.iter().all(|token| !is_preposition(token))
            && !self.has_verb(comma - 1)
    }

    /// Returns true if a comma belongs to a date: "May 5, 2024".
    fn is_before_year(&self, comma: usize) -> bool {
        let is_number =
            |token: Option<&Token>| token.is_some_and(|token| token.kind == Kind::Number);
        is_number(self.before(comma - 1))
            && is_number(self.get(comma))
            && self.tokens[comma].text.len() == 4
    }

    /// Returns true if there is a finite verb before this position.
    fn has_verb(&self, end: usize) -> bool {
        (0..end).any(|place| {
            let token = &self.tokens[place];
            let describes = self.before(place).is_some_and(|before| {
                is_determiner(before) || before.kind == Kind::Number || is_preposition(before)
            }) && !token.is_any(HAVE);
            is_first_person(token) || (is_auxiliary(token) || is_pastlike(token)) && !describes
        })
    }
}
