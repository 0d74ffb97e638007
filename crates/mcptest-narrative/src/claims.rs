//! Which sentences claim that the agent did something.
//!
//! A verb of the list is a claim only in a form that means "done, by me": with the agent as its
//! subject ("I've cancelled the order"), in the passive ("the order has been cancelled"), or with
//! both left out as in a list of what was done ("Cancelled the order", "Order cancelled").
//! Everything else (offers, questions, conditions, plans, rules, what the user or a third party
//! did, what was the case before) is not a claim.

mod forms;
mod guards;
mod idioms;
mod named_action;
mod open_verbs;
mod phrases;

use self::guards::{Group, is_dateish, is_time};
use self::named_action::named_action;
use crate::sentences::Sentence;
use crate::tokens::{Kind, Token};
use crate::verbs::{Form, Use, open_past, singular, verb, verb_of};
use crate::words::{
    BE, CONDITIONALS, DISCOURSE, HAVE, MODALS, NEGATIONS, SUBORDINATORS, TEXTS, is_adverb,
    is_article, is_auxiliary, is_conjunction, is_determiner, is_first_person, is_pastlike,
    is_preposition, opens_object,
};

/// One claimed action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The verb's base form, or [`OPEN`].
    pub verb: &'static str,
    /// The past tense as written and its stem, of a verb that is not in the table.
    pub open: Option<(String, String)>,
    /// The nouns of what it was done to, first the one that names the action; none if that is a
    /// pronoun or an identifier.
    pub nouns: Vec<String>,
    /// The nouns of what it was done in, to or from: "reservation" of "added to your reservation".
    pub places: Vec<String>,
    /// The verb of an action that a noun names: "refund" of "issued the refund".
    pub alternative: Option<&'static str>,
    /// The form of the claim.
    pub how: How,
    /// True if it is a passive in the plain past: "was created".
    pub past: bool,
    /// True if it can be news about the world: "the parcel was shipped".
    pub news: bool,
    /// True if it is a claim only where it states a value that the run does not have.
    pub weak: bool,
    /// True if it is an item of a list that nothing leads: "- Refund: issued".
    pub listed: bool,
    /// True if what it was done to is new or the user's own: "a ticket", "your account".
    pub own_thing: bool,
    /// True if the object has a name: an identifier, a path, a quotation.
    pub named: bool,
    /// The tokens of the sentence that belong to the claim.
    pub from: usize,
    pub to: usize,
}

impl Claim {
    /// The tokens that belong to the claim.
    pub(crate) fn tokens<'a>(&self, sentence: &'a Sentence) -> &'a [Token] {
        let all = &sentence.tokens;
        &all[self.from.min(all.len())..self.to.min(all.len())]
    }

    /// `create_issue`, or `create` where the object is not named.
    pub(crate) fn stem(&self) -> String {
        match self.nouns.first() {
            Some(noun) => format!("{}_{}", self.word(), singular(noun)),
            None => self.word().to_owned(),
        }
    }

    /// The verb: its base form, or the past tense if that is not known.
    pub(crate) fn word(&self) -> &str {
        self.open.as_ref().map_or(self.verb, |(word, _)| word)
    }
}

/// The claims of all sentences, each with its sentence's index.
///
/// `has_code` is true if the message has a code block, which can be what was written.
pub(crate) fn claims(sentences: &[Sentence], has_code: bool) -> Vec<(usize, Claim)> {
    let mut all = Vec::new();
    let mut after_elided = false;
    for (index, sentence) in sentences.iter().enumerate() {
        let reader = Reader {
            tokens: &sentence.tokens,
            sentence,
            after_elided,
            has_code,
        };
        let found = reader.claims();
        after_elided = found
            .first()
            .is_some_and(|found| found.claim.how == How::Elided);
        all.extend(found.into_iter().map(|found| (index, found.claim)));
    }
    all
}

/// The shape that a claim was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The agent is the subject.
    Active,
    Passive,
    /// A list item without a subject: "Created the issue."
    Elided,
    /// A passive without its auxiliary: "Issue created."
    Bare,
    /// A state that can also be an observation: "the issue is closed".
    State,
}

struct Found {
    claim: Claim,
    /// The position of the verb.
    at: usize,
}

impl Found {
    /// A claim whose words start at `from`; where they end shows when all claims of the sentence
    /// are known.
    fn new(verb: &'static str, nouns: Vec<String>, from: usize, how: How, at: usize) -> Self {
        let claim = Claim {
            verb,
            open: None,
            nouns,
            places: Vec::new(),
            alternative: None,
            how,
            past: false,
            news: false,
            weak: false,
            listed: false,
            own_thing: false,
            named: false,
            from,
            to: from,
        };
        Self { claim, at }
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    sentence: &'a Sentence,
    /// The sentence before was a list item such as "Created the list".
    after_elided: bool,
    has_code: bool,
}

impl Reader<'_> {
    fn claims(&self) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        if self.sentence.question || self.sentence.unreal {
            return found;
        }
        for at in 0..self.tokens.len() {
            let token = &self.tokens[at];
            if token.is_any(&["took", "taken"]) {
                self.care(at, &mut found);
            }
            let Some((verb, form)) = verb_of(&token.low).filter(|_| token.is_word()) else {
                if token.is_word() && self.before(at).is_some_and(|before| before.is("to")) {
                    self.open_infinitive(at, &mut found);
                } else if token.is_word()
                    && let Some(stem) = open_past(&token.low)
                {
                    let before = found.len();
                    self.open(at, stem, &mut found);
                    let new = found.split_off(before);
                    found.extend(
                        new.into_iter()
                            .filter_map(|found| named_action(found, false, false)),
                    );
                }
                continue;
            };
            // "The release was rolled back."
            if !self.takes_particle(at, verb) {
                continue;
            }
            let before = found.len();
            // "pushed back by an hour"
            let verb = match self.get(at + 1) {
                Some(next) if verb == "push" && next.is_any(&["back", "forward"]) => "reschedule",
                _ => verb,
            };
            match form {
                Form::Base => self.infinitive(at, verb, &mut found),
                Form::Gerund => self.gerund(at, verb, &mut found),
                _ => self.past(at, verb, form, &mut found),
            }
            if found.len() > before && self.is_spoken(verb, &found[before].claim) {
                found.truncate(before);
            }
            let new = found.split_off(before);
            let group = self.group(at);
            // Who else would have opened it in this run?
            let listed = self.sentence.checked
                || self.sentence.item && self.sentence.done
                || group.have && group.been;
            found.extend(
                new.into_iter()
                    .filter_map(|found| named_action(found, listed, self.sentence.checked)),
            );
        }
        self.nominal(&mut found);
        self.idioms(&mut found);
        if found.is_empty() {
            self.cells(&mut found);
        }
        // "If it has been closed (or was moved), …": what follows is supposed, too.
        let supposed = self
            .tokens
            .first()
            .is_some_and(|token| token.is_any(&["if", "unless", "should", "whenever"]));
        if supposed {
            found.retain(|found| found.claim.how == How::Active);
        }
        // Telling is an action beside no other.
        if found.len() > 1 {
            found.retain(|found| {
                verb(found.claim.verb).is_none_or(|verb| verb.usage != Use::Telling)
            });
        }
        // "The following changes were made:" and "Key features added:" lead to what was done.
        if self.sentence.label {
            found.retain(|found| {
                let lead_in = found.claim.nouns.is_empty() && found.claim.verb == "change"
                    || matches!(found.claim.how, How::Bare | How::State);
                !lead_in
            });
        }
        found.sort_by_key(|found| found.claim.from);
        // Inside a request, only a statement of the agent about itself is a claim.
        if self.asks() {
            found.retain(|found| found.claim.how == How::Active);
        }
        let starts: Vec<usize> = found.iter().map(|found| found.claim.from).collect();
        for (index, found) in found.iter_mut().enumerate() {
            // What leads up to the first claim belongs to it.
            if index == 0
                && !self.tokens[..found.claim.from]
                    .iter()
                    .any(|token| is_first_person(token) || is_pastlike(token))
            {
                found.claim.from = 0;
            }
            let next = starts[index + 1..]
                .iter()
                .find(|next| **next > starts[index]);
            found.claim.to = next.copied().unwrap_or(self.tokens.len());
            found.claim.places = self.places(found.at, found.claim.to);
            if matches!(found.claim.how, How::Passive | How::State) {
                let subject = self.places(starts[index], found.at);
                found.claim.places.extend(subject);
            }
        }
        // "I've added your wishes to the comparison"
        found.retain(|found| {
            let talk = |noun: &String| {
                let noun = singular(noun);
                DISCOURSE.contains(&noun.as_str()) || TEXTS.contains(&noun.as_str())
            };
            !(matches!(found.claim.verb, "add" | "put" | "insert")
                && !found.claim.places.is_empty()
                && found.claim.places.iter().all(talk))
        });
        found
    }

    fn get(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at)
    }

    fn before(&self, at: usize) -> Option<&Token> {
        self.tokens.get(at.checked_sub(1)?)
    }

    /// "I fixed it by updating the configuration", "After creating the issue, I …".
    fn gerund(&self, at: usize, verb: &'static str, found: &mut Vec<Found>) {
        let mut place = at;
        while self.before(place).is_some_and(is_adverb) {
            place -= 1;
        }
        let done = self.before(place).is_some_and(|token| {
            token.is_any(&["by", "after", "finished", "completed", "in", "done"])
        }) || place > 1
            && (self.tokens[place - 1].is("of") && self.tokens[place - 2].is("liberty")
                || self.tokens[place - 1].is("up")
                    && self.tokens[place - 2].is_any(&["ended", "wound"]));
        let mine = self.tokens.iter().enumerate().any(|(place, token)| {
            let next = self.tokens[place + 1..]
                .iter()
                .find(|next| !is_adverb(next) && !next.is_any(HAVE));
            is_first_person(token) && next.is_some_and(is_pastlike)
        });
        let real = !self.tokens.iter().any(|token| {
            token.is_any(MODALS) || token.is_any(&CONDITIONALS[..6]) || token.is_any(NEGATIONS)
        });
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
        if form != Form::PastOnly && !group.have && self.caused(at, verb, found) {
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

    fn active(
        &self,
        at: usize,
        subject: usize,
        verb: &'static str,
        how: How,
        found: &mut Vec<Found>,
    ) {
        if how == How::Active && self.is_conditional(subject) {
            return;
        }
        let mut phrase = self.object(at);
        // "I replied to the customer."
        if verb == "reply" && self.get(at + 1).is_some_and(|next| next.is("to")) {
            phrase = self.phrase(at + 2, self.tokens.len());
        }
        if !phrase.is_something() {
            if phrase.negative {
                return;
            }
            // "the issue I created"
            let Some(gap) = self.gap(subject, at) else {
                return;
            };
            phrase = gap;
        }
        let mut end = phrase.end;
        found.push(Found::new(verb, phrase.nouns, subject.min(at), how, at));
        // "the issue and the branch"
        while let Some(next) = self.further_object(end) {
            found.push(Found::new(verb, next.nouns, end, how, at));
            end = next.end;
        }
    }

    fn elided(
        &self,
        at: usize,
        start: usize,
        verb: &'static str,
        form: Form,
        found: &mut Vec<Found>,
    ) {
        if self.sentence.heading || form == Form::Participle {
            return;
        }
        // "Set the price" is an order, except among things that were done.
        if form == Form::Any && !((self.after_elided || self.sentence.done) && start == 0) {
            return;
        }
        let phrase = self.object(at);
        // "created Monday"
        if self
            .get(at + 1)
            .is_some_and(|next| is_time(next) && next.kind != Kind::Number)
        {
            return;
        }
        // "Deleted."
        let alone = start == 0
            && self.tokens.len() == at + 2
            && self
                .get(at + 1)
                .is_some_and(|token| token.is_any(&[".", "!"]));
        if alone && form != Form::Any {
            found.push(Found::new(verb, Vec::new(), 0, How::Elided, at));
            return;
        }
        if !phrase.is_something() || self.by_another(at) {
            return;
        }
        let next = self.get(at + 1);
        let strong = next.is_some_and(opens_object);
        if !strong {
            let after = self.get(phrase.end);
            let ends = after.is_none_or(|token| {
                token.is_mark() || is_preposition(token) || is_conjunction(token)
            });
            let counts = self
                .get(phrase.end + 1)
                .is_some_and(|token| token.kind == Kind::Number);
            // "Pros: - Reduced cost": nothing shows that it was done.
            if self.sentence.led && !self.sentence.done {
                return;
            }
            // "Deleted files stay in the trash": in prose, a bare plural is only described.
            if !self.sentence.item && start == 0 && !phrase.named && self.tokens.len() > 6 {
                return;
            }
            let title = after.is_some_and(|token| token.is(":"))
                && (counts
                    || next.is_some_and(Token::is_capitalized)
                    || phrase.end + 1 >= self.tokens.len());
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

    /// A verb after "and" or a comma: it shares the subject of what comes before.
    fn coordinated(
        &self,
        at: usize,
        start: usize,
        verb: &'static str,
        form: Form,
        found: &mut Vec<Found>,
    ) {
        if crate::verbs::verb(verb).is_some_and(|verb| verb.usage == Use::Telling) {
            return;
        }
        let ambiguous = form == Form::Any;
        let mut unreal = false;
        // "I haven't restarted anything or changed any setting"
        let alternative = self
            .before(start)
            .is_some_and(|token| token.is_any(&["or", "nor"]));
        for place in (0..start).rev() {
            let token = &self.tokens[place];
            if token.is_mark() && token.is_any(&[":", "—", "–", "("]) {
                break;
            }
            unreal |= token.is_any(MODALS) || token.is("to") || token.is("not");
            if is_first_person(token) {
                let governed = (ambiguous || alternative) && unreal;
                if !governed {
                    let own = found.len();
                    self.active(at, place, verb, How::Active, found);
                    if let Some(own) = found.get_mut(own) {
                        own.claim.from = start;
                    }
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
            let other = token.is_any(&[
                "you", "they", "he", "she", "it", "who", "which", "user", "customer",
            ]);
            let next = (place + 1..start).find(|next| !is_adverb(&self.tokens[*next]));
            if other
                && next.is_some_and(|next| {
                    is_auxiliary(&self.tokens[next]) || is_pastlike(&self.tokens[next])
                })
            {
                return;
            }
        }
        let opener = self
            .tokens
            .iter()
            .find(|token| !is_adverb(token) && !token.is_mark());
        let previous_bare = found.last().is_some_and(|last| {
            last.claim.how == How::Bare
                && (last.at + 1..start).all(|place| {
                    let token = &self.tokens[place];
                    is_conjunction(token) || token.is(",") || is_adverb(token)
                })
        });
        if previous_bare && !self.get(at + 1).is_some_and(opens_object) {
            if let Some(last) = found.last() {
                found.push(Found::new(
                    verb,
                    last.claim.nouns.clone(),
                    at,
                    How::Bare,
                    at,
                ));
            }
        } else if opener.is_some_and(is_pastlike)
            && !self.sentence.heading
            && !self.is_finite_until_break(at + 1)
        {
            self.active(at, start, verb, How::Elided, found);
        } else if form != Form::PastOnly {
            self.bare(at, start, verb, form, found);
        }
    }

    /// "I got the deadline extended", "I've had the light switched off".
    fn caused(&self, at: usize, verb: &'static str, found: &mut Vec<Found>) -> bool {
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
    fn bare(&self, at: usize, end: usize, verb: &'static str, form: Form, found: &mut Vec<Found>) {
        let next_is = |words: &[&str]| self.get(at + 1).is_some_and(|token| token.is_any(words));
        let idle = match verb {
            "drop" => true,
            "close" => next_is(&["at", "on", "for", "until", "to"]),
            _ => {
                let timed = next_is(&["for"]) && self.get(at + 2).is_some_and(is_time);
                form == Form::Any && !self.sentence.done && !next_is(&["to"]) && !timed
            }
        };
        if idle {
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
        let start = (0..end)
            .rev()
            .find(|place| {
                let token = &self.tokens[*place];
                token.is_mark() && !token.is_any(&[")", "["]) && !token.is("]")
                    || is_conjunction(token)
            })
            .map_or(0, |place| place + 1);
        let subject = &self.tokens[start..end];
        // "the amount paid for it", "the amount your friend sent"
        let described = subject.iter().skip(1).any(is_article)
            || subject.first().is_some_and(is_article)
                && self
                    .get(at + 1)
                    .is_some_and(|next| is_preposition(next) || is_conjunction(next));
        if described {
            return;
        }
        let is_plain = !subject.is_empty()
            && subject.len() <= 7
            && subject.iter().all(|token| {
                !is_preposition(token)
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
        let is_own = !opened_by_conjunction || !found.is_empty() || start <= 4;
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
    fn passive(&self, at: usize, verb: &'static str, group: &Group, found: &mut Vec<Found>) {
        let after = self.get(at + 1);
        let now = group.now || after.is_some_and(|next| next.is_any(&["now", "successfully"]));
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
        let state = group.is && !finished && self.is_state(at);
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
        if plain_past && phrase.nouns.is_empty() && !phrase.named && !listed {
            return;
        }
        if (state || weak) && !self.is_definite(start, end)
            || weak && !self.is_definite(start, start + 1)
        {
            return;
        }
        let how = if state || weak {
            How::State
        } else {
            How::Passive
        };
        let mut rest = phrase.end;
        let own = found.len();
        found.push(Found::new(verb, phrase.nouns, start, how, at));
        // "The issue and the branch have been created"
        while let Some(next) = self.further_subject(rest, end) {
            found.push(Found::new(verb, next.nouns, rest, how, at));
            rest = next.end;
        }
        let own_thing = self.get(start).is_some_and(|token| {
            token.is("your") || !state && token.is_any(&["a", "an", "both", "all"])
        });
        for found in &mut found[own..] {
            found.claim.past = plain_past;
            found.claim.own_thing = own_thing;
            found.claim.weak = weak;
        }
    }
}
