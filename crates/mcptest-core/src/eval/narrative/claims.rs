//! Which sentences claim that the agent did something.
//!
//! A verb of the list is a claim only in a shape that says "done, by me": with the agent as its subject ("I've cancelled the
//! order"), in the passive ("the order has been cancelled"), or with both left out as in a list of what was done ("Cancelled the order",
//! "Order cancelled"). Everything else (offers, questions, conditions, plans, rules, what the user or a third party did, what was
//! the case before) is no claim.

use super::sentences::Sentence;
use super::tokens::{Kind, Token};
use super::verbs::{Form, verb_of};
use super::words::{
    BE, CONDITIONALS, HAVE, HEDGES, MODALS, NEGATIONS, PRONOUNS, REPORTING, SPOKEN, SUBORDINATORS, is_adverb,
    is_article, is_auxiliary, is_conjunction, is_determiner, is_first_person, is_noun, is_pastlike, is_preposition,
    month, opens_object,
};

/// One claimed action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The verb's base form.
    pub verb: &'static str,
    /// The nouns of what it was done to, first the one that names the action; none if that is a pronoun or an identifier.
    pub nouns: Vec<String>,
    /// The tokens of the sentence that belong to the claim.
    pub from: usize,
    pub to: usize,
}

impl Claim {
    /// `create_issue`, or `create` where the object is not named.
    pub(crate) fn stem(&self) -> String {
        match self.nouns.first() {
            Some(noun) => format!("{}_{}", self.verb, singular_stem(noun)),
            None => self.verb.to_owned(),
        }
    }
}

/// A noun as a tool would be named after it.
fn singular_stem(noun: &str) -> String {
    let keep = noun.ends_with("ss") || noun.ends_with("us") || noun.ends_with("is") || noun.len() <= 3;
    match noun.strip_suffix("ies") {
        Some(start) if start.len() > 1 => format!("{start}y"),
        _ if keep => noun.to_owned(),
        _ => noun.strip_suffix('s').unwrap_or(noun).to_owned(),
    }
}

/// The claims of all sentences, each with its sentence's index.
pub(crate) fn claims(sentences: &[Sentence]) -> Vec<(usize, Claim)> {
    let mut all = Vec::new();
    let mut after_elided = false;
    for (index, sentence) in sentences.iter().enumerate() {
        let reader = Reader {
            tokens: &sentence.tokens,
            sentence,
            after_elided,
        };
        let found = reader.claims();
        after_elided = found.first().is_some_and(|found| found.how == How::Elided);
        all.extend(found.into_iter().map(|found| (index, found.claim)));
    }
    all
}

/// The shape that a claim was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Active,
    Passive,
    Elided,
    /// A passive without its auxiliary: "Issue created."
    Bare,
}

struct Found {
    claim: Claim,
    how: How,
    /// Where the verb is.
    at: usize,
}

/// The words right before a verb that make up its tense.
#[derive(Debug, Default)]
struct Group {
    /// Where it starts; the verb itself if there is none.
    start: usize,
    have: bool,
    having: bool,
    been: bool,
    /// "was", "were", "got".
    was: bool,
    /// "is", "are".
    is: bool,
    /// "be", "being".
    unfinished: bool,
    /// A modal, an infinitive or a negation.
    unreal: bool,
    already: bool,
    now: bool,
}

impl Group {
    fn passive(&self) -> bool {
        self.been || self.was || self.is || self.unfinished
    }
}

/// The nouns between two places.
#[derive(Debug, Default)]
struct Phrase {
    nouns: Vec<String>,
    /// An identifier, a path, a quotation.
    named: bool,
    pronoun: bool,
    negative: bool,
    /// The place after it.
    end: usize,
}

impl Phrase {
    fn is_something(&self) -> bool {
        !self.negative && (!self.nouns.is_empty() || self.named || self.pronoun)
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    sentence: &'a Sentence,
    /// The sentence before was a list item such as "Created the list".
    after_elided: bool,
}

impl Reader<'_> {
    fn claims(&self) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        if self.sentence.question || self.sentence.unreal || self.asks() {
            return found;
        }
        for at in 0..self.tokens.len() {
            let token = &self.tokens[at];
            let Some((verb, form)) = verb_of(&token.low).filter(|_| token.is_word()) else {
                continue;
            };
            let before = found.len();
            match form {
                Form::Base => self.emphatic(at, verb, &mut found),
                Form::Gerund => self.gerund(at, verb, &mut found),
                _ => self.past(at, verb, form, &mut found),
            }
            if found.len() > before && self.is_spoken(verb, &found[before].claim) {
                found.truncate(before);
            }
        }
        let starts: Vec<usize> = found.iter().map(|found| found.claim.from).collect();
        for (index, found) in found.iter_mut().enumerate() {
            if index == 0 {
                found.claim.from = 0;
            }
            let next = starts[index + 1..].iter().find(|next| **next > starts[index]);
            found.claim.to = next.copied().unwrap_or(self.tokens.len());
        }
        found
    }

    fn get(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    fn before(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at.checked_sub(1)?)
    }

    /// A request or a wish for the reader: "Please confirm that …", "Let me know …".
    fn asks(&self) -> bool {
        let first = self.tokens.iter().find(|token| !token.is_mark() && !is_adverb(token));
        first.is_some_and(|token| {
            token.is_any(&[
                "please", "let", "would", "could", "should", "imagine", "suppose", "make", "ensure", "verify", "check",
                "tell", "remember", "confirm", "wait",
            ])
        })
    }

    /// "I've written the summary below:" is true by being said.
    fn is_spoken(&self, verb: &str, claim: &Claim) -> bool {
        ["create", "write", "add", "put", "set", "update"].contains(&verb)
            && claim.nouns.iter().any(|noun| SPOKEN.contains(&noun.as_str()))
            && (self.sentence.label
                || self
                    .tokens
                    .iter()
                    .any(|token| token.is_any(&["below", "above", "here", "following"])))
    }

    fn group(&self, verb: usize) -> Group {
        let mut group = Group {
            start: verb,
            ..Group::default()
        };
        while let Some(token) = self.before(group.start) {
            let is_s = token.is("'s")
                && (group.been
                    || self.before(group.start - 1).is_some_and(|before| {
                        before.is_any(&["it", "that", "this", "everything", "there", "he", "she"])
                    }));
            if is_adverb(token) && !token.is_any(&["next", "last"]) {
                group.already |= token.is_any(&["already", "previously", "originally", "initially", "recently"]);
                group.now |= token.is_any(&["now", "successfully"]);
                group.unreal |= token.is_any(&["nearly", "hardly", "barely", "supposedly", "allegedly"]);
            } else if token.is_any(HAVE) {
                group.have = true;
            } else if token.is("having") {
                group.have = true;
                group.having = true;
            } else if token.is("been") || token.is("gotten") {
                group.been = true;
            } else if token.is_any(&["was", "were", "got"]) {
                group.was = true;
            } else if token.is_any(&["is", "are", "am"]) || is_s {
                if group.been {
                    group.have = true;
                } else {
                    group.is = true;
                }
            } else if token.is_any(BE) {
                group.unfinished = true;
            } else if token.is_any(MODALS) || token.is_any(&["not", "never", "to", "almost"]) {
                group.unreal = true;
            } else if token.is_any(&["did", "do", "does"]) {
                // "did not"; "did create" is looked at elsewhere.
            } else {
                break;
            }
            group.start -= 1;
        }
        group
    }

    /// "I did create the issue."
    fn emphatic(&self, at: usize, verb: &'static str, found: &mut Vec<Found>) {
        let mut place = at;
        while self.before(place).is_some_and(is_adverb) {
            place -= 1;
        }
        let did = self.before(place).is_some_and(|token| token.is("did"));
        if did && self.before(place - 1).is_some_and(is_first_person) {
            self.active(at, place - 2, verb, How::Active, found);
        }
    }

    /// "I fixed it by updating the configuration", "After creating the issue, I …".
    fn gerund(&self, at: usize, verb: &'static str, found: &mut Vec<Found>) {
        let mut place = at;
        while self.before(place).is_some_and(is_adverb) {
            place -= 1;
        }
        let done = self
            .before(place)
            .is_some_and(|token| token.is_any(&["by", "after", "finished", "completed"]));
        let mine = self.tokens.iter().enumerate().any(|(place, token)| {
            let next = self.tokens[place + 1..]
                .iter()
                .find(|next| !is_adverb(next) && !next.is_any(HAVE));
            is_first_person(token) && next.is_some_and(is_pastlike)
        });
        let real = !self
            .tokens
            .iter()
            .any(|token| token.is_any(MODALS) || token.is_any(&CONDITIONALS[..6]) || token.is_any(NEGATIONS));
        if done && mine && real {
            self.active(at, at, verb, How::Active, found);
        }
    }

    fn past(&self, at: usize, verb: &'static str, form: Form, found: &mut Vec<Found>) {
        let group = self.group(at);
        if group.unreal {
            return;
        }
        if group.passive() {
            if form != Form::PastOnly {
                self.passive(at, verb, &group, found);
            }
            return;
        }
        if group.having {
            self.active(at, group.start, verb, How::Active, found);
            return;
        }
        let Some(before) = self.before(group.start) else {
            self.elided(at, group.start, verb, form, found);
            return;
        };
        if is_first_person(before) {
            self.active(at, group.start - 1, verb, How::Active, found);
        } else if group.have {
            // Someone else has done it.
        } else if self.opens(group.start) {
            self.elided(at, group.start, verb, form, found);
        } else if is_conjunction(before) || before.is(",") {
            self.coordinated(at, group.start, verb, form, found);
        } else if form != Form::PastOnly {
            self.bare(at, group.start, verb, form, found);
        }
    }

    /// Whether a clause without a subject can start here: after a colon, a dash, a bracket, or "Done," and the like.
    fn opens(&self, at: usize) -> bool {
        let Some(before) = self.before(at) else {
            return true;
        };
        if before.is_mark() && before.is_any(&[":", "—", "–", "-", "(", ">", "|", "="]) {
            return true;
        }
        before.is(",")
            && self.tokens[..at - 1].iter().all(|token| {
                is_adverb(token)
                    || token.is_mark()
                    || token.is_any(&[
                        "done", "yes", "ok", "okay", "sure", "great", "perfect", "good", "news", "set",
                    ])
            })
    }

    /// Whether "by …" after the verb names someone else.
    fn by_another(&self, at: usize) -> bool {
        let near = at + 1..self.tokens.len().min(at + 10);
        let Some(by) = near.into_iter().find(|place| self.tokens[*place].is("by")) else {
            return false;
        };
        // "cancelled for reasons covered by your insurance"
        if (at + 1..by).any(|place| self.tokens[place].is_mark() || is_pastlike(&self.tokens[place])) {
            return false;
        }
        self.get(by + 1).is_some_and(|agent| {
            !agent.is_any(&["me", "us", "myself", "default", "email"])
                && agent.is_word()
                && !agent.low.ends_with("ing")
                && month(&agent.low).is_none()
        })
    }

    /// Whether what follows dates the action: then it is history, not the work of this run.
    fn is_history(&self, at: usize) -> bool {
        let rest = &self.tokens[at + 1..self.tokens.len().min(at + 14)];
        rest.iter().enumerate().any(|(place, token)| {
            let next = rest.get(place + 1);
            token.is_any(&["yesterday", "ago", "originally", "previously", "earlier"])
                || token.is("when") && next.is_some_and(|next| next.is("you"))
                || token.is("last")
                    && next.is_some_and(|next| next.is_any(&["week", "month", "year", "night", "time", "quarter"]))
                || token.is_any(&["on", "since"]) && place <= 1 && next.is_some_and(is_dateish)
                || token.is("in") && next.is_some_and(|next| is_dateish(next) || next.is_any(&["commit", "release"]))
        }) || (1..at).any(|place| {
            self.tokens[place - 1].is("in")
                && is_dateish(&self.tokens[place])
                && month(&self.tokens[place].low).is_none()
        })
    }

    /// Whether it tells what is the case in the world: closed since Monday, published in a journal.
    fn is_standing(&self, at: usize, verb: &str) -> bool {
        let next = self.get(at + 1);
        next.is_some_and(|token| token.is("since"))
            || (verb == "publish" || verb == "write")
                && next.is_some_and(|token| token.is("in"))
                && self.get(at + 2).is_some_and(Token::is_capitalized)
    }

    fn active(&self, at: usize, subject: usize, verb: &'static str, how: How, found: &mut Vec<Found>) {
        if how == How::Active && self.is_conditional(subject) {
            return;
        }
        let mut phrase = self.object(at);
        if !phrase.is_something() {
            if phrase.negative {
                return;
            }
            // "the issue I created"
            let Some(gap) = self.gap(subject, at) else { return };
            phrase = gap;
        }
        let push = |phrase: &Phrase, from: usize, found: &mut Vec<Found>| {
            found.push(Found {
                claim: Claim {
                    verb,
                    nouns: phrase.nouns.clone(),
                    from,
                    to: 0,
                },
                how,
                at,
            });
        };
        push(&phrase, subject.min(at), found);
        // "the issue and the branch"
        let mut end = phrase.end;
        while let Some(next) = self.further_object(end) {
            push(&next, end, found);
            end = next.end;
        }
    }

    fn is_conditional(&self, subject: usize) -> bool {
        let from = (0..subject)
            .rev()
            .find(|place| self.tokens[*place].is_any(&[",", ":", "but", "so"]))
            .map_or(0, |place| place + 1);
        let clause = &self.tokens[from..subject];
        // "once I've updated it, you will …"
        let later = clause
            .last()
            .is_some_and(|token| token.is_any(&["once", "after", "when", "as"]))
            && self.tokens.iter().any(|token| token.is_any(MODALS));
        later || clause.iter().any(|token| token.is_any(CONDITIONALS))
    }

    fn gap(&self, subject: usize, verb: usize) -> Option<Phrase> {
        let ends = self
            .get(verb + 1)
            .is_none_or(|token| token.is_mark() || is_preposition(token) || is_auxiliary(token));
        let start = (0..subject)
            .rev()
            .take_while(|place| {
                let token = &self.tokens[*place];
                is_noun(token) && !is_preposition(token) && !is_auxiliary(token) && !is_conjunction(token)
            })
            .last()?;
        let preceded = self.before(start).is_some_and(is_determiner);
        (ends && preceded).then(|| self.phrase(start, subject))
    }

    /// What an active verb acts on.
    fn object(&self, verb: usize) -> Phrase {
        let mut start = verb + 1;
        if self
            .get(start)
            .is_some_and(|token| token.is_any(&["together", "aside", "forward", "forth", "off"]))
        {
            return Phrase::default();
        }
        let particle = |token: &Token| token.is_any(&["up", "out", "back", "over", "down"]);
        // "Successfully created: the issue"
        let listed = self.get(start).is_some_and(|token| token.is(":")) && self.before(verb).is_some_and(is_adverb);
        if listed || self.get(start).is_some_and(|token| particle(token) || is_adverb(token)) {
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

    fn further_object(&self, end: usize) -> Option<Phrase> {
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

    fn elided(&self, at: usize, start: usize, verb: &'static str, form: Form, found: &mut Vec<Found>) {
        if self.sentence.heading || form == Form::Participle {
            return;
        }
        // "Set the price" is an order, except among things that were done.
        if form == Form::Any && !(self.after_elided && start == 0) {
            return;
        }
        let phrase = self.object(at);
        // "Deleted."
        let alone = start == 0
            && self.tokens.len() == at + 2
            && self.get(at + 1).is_some_and(|token| token.is_any(&[".", "!"]));
        if alone && form != Form::Any {
            found.push(Found {
                claim: Claim {
                    verb,
                    nouns: Vec::new(),
                    from: 0,
                    to: 0,
                },
                how: How::Elided,
                at,
            });
            return;
        }
        if !phrase.is_something() || self.by_another(at) {
            return;
        }
        let next = self.get(at + 1);
        let strong = next.is_some_and(opens_object);
        if !strong {
            let after = self.get(phrase.end);
            let ends = after.is_none_or(|token| token.is_mark() || is_preposition(token) || is_conjunction(token));
            let counts = self.get(phrase.end + 1).is_some_and(|token| token.kind == Kind::Number);
            let title = after.is_some_and(|token| token.is(":"))
                && (counts || next.is_some_and(Token::is_capitalized) || phrase.end + 1 >= self.tokens.len());
            if !ends || title {
                return;
            }
        }
        // "Cancelled reservations are refunded": the participle only describes.
        if self.is_finite_until_break(phrase.end) {
            return;
        }
        self.active(at, start, verb, How::Elided, found);
    }

    /// Whether an auxiliary follows before the clause ends.
    fn is_finite_until_break(&self, from: usize) -> bool {
        self.tokens[from.min(self.tokens.len())..]
            .iter()
            .take_while(|token| {
                !token.is_mark()
                    && !token.is_any(&[
                        "and", "but", "so", "which", "that", "because", "since", "as", "if", "when", "where",
                    ])
                    && !is_first_person(token)
            })
            .any(is_auxiliary)
    }

    /// A verb after "and" or a comma: it shares the subject of what comes before.
    fn coordinated(&self, at: usize, start: usize, verb: &'static str, form: Form, found: &mut Vec<Found>) {
        let ambiguous = form == Form::Any;
        let mut unreal = false;
        for place in (0..start).rev() {
            let token = &self.tokens[place];
            if token.is_mark() && token.is_any(&[":", "—", "–", "("]) {
                break;
            }
            unreal |= token.is_any(MODALS) || token.is("to") || token.is("not");
            if is_first_person(token) {
                let governed = ambiguous && unreal;
                if !governed {
                    self.active(at, place, verb, How::Active, found);
                }
                return;
            }
            if token.is_any(BE) {
                let participle = (place + 1..start).find(|next| !is_adverb(&self.tokens[*next]));
                let is_passive = participle.is_some_and(|next| is_pastlike(&self.tokens[next]));
                let has_object = self.get(at + 1).is_some_and(opens_object);
                if let Some(participle) = participle.filter(|_| is_passive && !has_object) {
                    let group = self.group(participle);
                    if !group.unreal {
                        self.passive(at, verb, &group, found);
                    }
                    return;
                }
            }
            let other = token.is_any(&["you", "they", "he", "she", "it", "who", "which", "user", "customer"]);
            let next = (place + 1..start).find(|next| !is_adverb(&self.tokens[*next]));
            if other && next.is_some_and(|next| is_auxiliary(&self.tokens[next]) || is_pastlike(&self.tokens[next])) {
                return;
            }
        }
        let opener = self.tokens.iter().find(|token| !is_adverb(token) && !token.is_mark());
        let previous_bare = found.last().is_some_and(|last| {
            last.how == How::Bare
                && (last.at + 1..start).all(|place| {
                    let token = &self.tokens[place];
                    is_conjunction(token) || token.is(",") || is_adverb(token)
                })
        });
        if previous_bare && !self.get(at + 1).is_some_and(opens_object) {
            if let Some(last) = found.last() {
                let claim = Claim {
                    verb,
                    nouns: last.claim.nouns.clone(),
                    from: at,
                    to: 0,
                };
                found.push(Found {
                    claim,
                    how: How::Bare,
                    at,
                });
            }
        } else if opener.is_some_and(is_pastlike) && !self.sentence.heading {
            self.active(at, start, verb, How::Elided, found);
        } else if form != Form::PastOnly {
            self.bare(at, start, verb, form, found);
        }
    }

    /// "Issue created.", "Email sent to Bob"
    fn bare(&self, at: usize, end: usize, verb: &'static str, form: Form, found: &mut Vec<Found>) {
        let next_is = |words: &[&str]| self.get(at + 1).is_some_and(|token| token.is_any(words));
        let idle = match verb {
            "drop" => true,
            "close" => next_is(&["at", "on", "for", "until", "to"]),
            _ => {
                form == Form::Any && !next_is(&["to"]) && !(next_is(&["for"]) && self.get(at + 2).is_some_and(is_time))
            }
        };
        if idle {
            return;
        }
        let start = (0..end)
            .rev()
            .find(|place| {
                let token = &self.tokens[*place];
                token.is_mark() && !token.is_any(&[")", "["]) && !token.is("]") || is_conjunction(token)
            })
            .map_or(0, |place| place + 1);
        let subject = &self.tokens[start..end];
        let is_plain = !subject.is_empty()
            && subject.len() <= 7
            && subject.iter().all(|token| {
                !is_preposition(token)
                    && !is_auxiliary(token)
                    && !is_first_person(token)
                    && !token.is_any(&[
                        "you", "they", "he", "she", "it", "them", "date", "last", "time", "when", "not",
                    ])
                    && !token.is_any(SUBORDINATORS)
            });
        let opened_by_conjunction = self
            .before(start)
            .is_some_and(|token| is_conjunction(token) || token.is(","));
        let is_own = !opened_by_conjunction || !found.is_empty() || start <= 4;
        let mut after = at + 1;
        while self.get(after).is_some_and(is_adverb) {
            after += 1;
        }
        let ends = self
            .get(after)
            .is_none_or(|token| token.is_mark() || is_preposition(token) || is_conjunction(token));
        let labels_a_date =
            self.get(after).is_some_and(|token| token.is(":")) && self.get(after + 1).is_some_and(is_dateish);
        // "Emails sent: 14"
        let counts = self.get(after).is_some_and(|token| token.is(":"))
            && self.get(after + 1).is_some_and(|token| token.kind == Kind::Number)
            && subject.last().is_some_and(|token| token.low.ends_with('s'));
        if !is_plain || !is_own || !ends || labels_a_date || counts || self.by_another(at) || self.is_history(at) {
            return;
        }
        if self.is_finite_until_break(after) {
            return;
        }
        let phrase = self.phrase(start, end);
        if phrase.negative || (phrase.nouns.is_empty() && !phrase.named) {
            return;
        }
        found.push(Found {
            claim: Claim {
                verb,
                nouns: phrase.nouns,
                from: start,
                to: 0,
            },
            how: How::Bare,
            at,
        });
    }

    /// "The issue has been created", "your refund was sent", "it is now closed"
    fn passive(&self, at: usize, verb: &'static str, group: &Group, found: &mut Vec<Found>) {
        let now = group.now
            || self
                .get(at + 1)
                .is_some_and(|next| next.is_any(&["now", "successfully"]));
        let finished = group.been && group.have || group.was || group.is && now;
        if !finished || group.unfinished || group.already || self.by_another(at) {
            return;
        }
        if !group.been && group.was && self.is_history(at) || self.is_standing(at, verb) {
            return;
        }
        let end = group.start;
        let start = self.clause_start(end);
        let reports = |place: usize| {
            let named = self
                .before(place)
                .is_some_and(|before| is_determiner(before) || before.kind == Kind::Number);
            self.tokens[place].is_any(REPORTING) && !named
        };
        let hedged = self.in_scope(end, |place| self.tokens[place].is_any(HEDGES));
        // "the date the account was created"
        let relative = (start + 1..end).any(|place| {
            is_article(&self.tokens[place])
                && is_noun(&self.tokens[place - 1])
                && !is_preposition(&self.tokens[place - 1])
                && !is_conjunction(&self.tokens[place - 1])
        });
        // "no sign that the file was deleted"
        let denied = self.before(start).is_some_and(|token| token.is("that"))
            && self.tokens[..start].iter().any(|token| token.is_any(NEGATIONS));
        if hedged || relative || denied || self.in_scope(end, reports) {
            return;
        }
        let opener = self.before(start);
        let conditional = |token: &Token| token.is_any(SUBORDINATORS) || token.is("though");
        if opener.is_some_and(|token| conditional(token) && !token.is("though"))
            || self.tokens[start..end].iter().any(|token| token.is_any(SUBORDINATORS))
        {
            return;
        }
        let mut phrase = self.phrase(start, end);
        if start == end {
            match opener {
                Some(token) if token.is("which") => {
                    let comma = start - 1;
                    let before = self.clause_start(comma.saturating_sub(1));
                    phrase = self.phrase(before, comma);
                }
                Some(token) if token.is_any(&["that", "who", "what"]) => return,
                _ => phrase.pronoun = true,
            }
        }
        let subject = &self.tokens[start..end];
        let negated = subject.iter().any(|token| token.is_any(NEGATIONS));
        let not_ours = subject
            .last()
            .is_some_and(|token| is_first_person(token) || token.is_any(&["there", "he", "she"]));
        if negated || not_ours || !phrase.is_something() {
            return;
        }
        // "It was published in Nature": a pronoun and a plain past say too little.
        if phrase.nouns.is_empty() && !phrase.named && !group.been && group.was {
            return;
        }
        found.push(Found {
            claim: Claim {
                verb,
                nouns: phrase.nouns,
                from: start,
                to: 0,
            },
            how: How::Passive,
            at,
        });
        let mut end_of_phrase = phrase.end;
        while end_of_phrase < end {
            let mut next = end_of_phrase;
            while next < end && self.tokens[next].is_any(&[",", "and", "&"]) {
                next += 1;
            }
            if next == end_of_phrase || next >= end {
                break;
            }
            let more = self.phrase(next, end);
            if more.nouns.is_empty() || more.negative {
                break;
            }
            found.push(Found {
                claim: Claim {
                    verb,
                    nouns: more.nouns,
                    from: next,
                    to: 0,
                },
                how: How::Passive,
                at,
            });
            end_of_phrase = more.end;
        }
    }

    /// Whether a word that colours the clause up to `end` is there: in the clause itself, or in an opening such as "Apparently,". What
    /// stands before a "but" colours nothing behind it.
    fn in_scope(&self, end: usize, is_there: impl Fn(usize) -> bool) -> bool {
        let turn = |place: &usize| self.tokens[*place].is_any(&["but", "so", "however", ":", "—", "–"]);
        let from = (0..end).rev().find(turn).map_or(0, |place| place + 1);
        let comma = |place: &usize| self.tokens[*place].is(",");
        let opening = (from..end).find(comma).unwrap_or(end);
        let clause = (from..end).rev().find(comma).unwrap_or(from);
        (from..opening).chain(clause..end).any(is_there)
    }

    /// Where the subject that ends at `end` begins.
    fn clause_start(&self, end: usize) -> usize {
        let mut place = end;
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
            if token.is_any(&[
                "that", "which", "who", "but", "so", "while", "although", "though", "whereas",
            ]) || token.is_any(SUBORDINATORS) && !token.is("as")
            {
                return place;
            }
            if token.is(",") && !self.is_list(place, end) {
                return place;
            }
            if token.is_any(&["and", "or", "&"]) && self.has_verb(place - 1) {
                return place;
            }
            place -= 1;
        }
        0
    }

    /// Whether a comma is one of a list of subjects: "the issue, the branch and the tag have been created".
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

    /// Whether there is a finite verb before this place.
    fn has_verb(&self, end: usize) -> bool {
        (0..end).any(|place| {
            let token = &self.tokens[place];
            let describes = self
                .before(place)
                .is_some_and(|before| is_determiner(before) || before.kind == Kind::Number || is_preposition(before))
                && !token.is_any(HAVE);
            is_first_person(token) || (is_auxiliary(token) || is_pastlike(token)) && !describes
        })
    }

    /// Reads a noun phrase from `start`, not beyond `end`.
    fn phrase(&self, start: usize, end: usize) -> Phrase {
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
            if token.is_any(&["of"]) && !started {
                place += 1;
                continue;
            }
            // "a well-formatted, comprehensive report"
            if token.is(",") && described && !started {
                place += 1;
                continue;
            }
            if token.is_mark() || is_conjunction(token) || is_auxiliary(token) || is_first_person(token) {
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
            } else if token.is_any(NEGATIONS) || token.is("zero") || token.kind == Kind::Number && token.text == "0" {
                phrase.negative = true;
            } else if is_preposition(token) {
                if started || phrase.pronoun || place > start {
                    break;
                }
                if start == place && !self.is_intro(start, end) {
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
            } else if is_noun(token) {
                let next = self.tokens[..end].get(place + 1);
                let describes = is_pastlike(token)
                    && (next.is_some_and(|next| next.is(",")) && token.low.contains('-')
                        || next.is_some_and(|next| {
                            is_noun(next) && !is_preposition(next) && !is_auxiliary(next) && !is_conjunction(next)
                        }));
                if describes {
                    described = true;
                } else if started && is_pastlike(token) && verb_of(&token.low).is_some() {
                    break;
                } else {
                    phrase
                        .nouns
                        .extend(token.low.split('-').filter(|part| part.len() > 1).map(str::to_owned));
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

    /// Whether a subject begins with a phrase like "In total".
    fn is_intro(&self, start: usize, end: usize) -> bool {
        end < self.tokens.len() && start < end
    }
}

/// Words that begin an afterthought: ", all free of charge".
const AFTERTHOUGHTS: &[&str] = &["all", "both", "each", "any", "that", "those"];

/// Words that are an object by themselves.
const ALONE: &[&str] = &[
    "it",
    "they",
    "them",
    "everything",
    "something",
    "anything",
    "ones",
    "you",
];

/// A word for a time to come.
fn is_time(token: &Token) -> bool {
    token.kind == Kind::Number
        || token.is_any(&["today", "tomorrow", "tonight", "noon", "midnight", "next"])
        || token.low.ends_with("day")
        || is_dateish(token)
}

/// A year, a date, a month, or a version of something.
fn is_dateish(token: &Token) -> bool {
    let year = token.kind == Kind::Number
        && token.text.len() == 4
        && token.text.starts_with(['1', '2'])
        && token.text.chars().all(|c| c.is_ascii_digit());
    let date = token.kind == Kind::Identifier
        && token.text.matches(['-', '/']).count() == 2
        && token.text.starts_with(|c: char| c.is_ascii_digit());
    let version = token.is("version")
        || token.kind == Kind::Identifier
            && token.low.starts_with('v')
            && token.low[1..].starts_with(|c: char| c.is_ascii_digit());
    year || date || version || token.is_word() && month(&token.low).is_some()
}
