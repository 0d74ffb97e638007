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
mod passives;
mod phrases;

use self::guards::is_time;
use self::named_action::named_action;
use crate::sentences::Sentence;
use crate::tokens::{Kind, Token};
use crate::verbs::{ADD, Form, POST, Use, WRITE, singular};
use crate::words::{
    BE, CONDITIONALS, DISCOURSE, HAVE, MODALS, NEGATIONS, TEXTS, is_adverb, is_auxiliary,
    is_conjunction, is_determiner, is_first_person, is_pastlike, is_preposition, opens_object,
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
    /// The nouns of what it was brought to: "calendar" of "added to your calendar".
    pub targets: Vec<String>,
    /// The verb of an action that a noun names: "refund" of "issued the refund".
    pub alternative: Option<&'static str>,
    /// The form of the claim.
    pub how: How,
    /// True if it is a passive in the plain past: "was created".
    pub past: bool,
    /// True if it can be news about the world: "the parcel was shipped".
    pub news: bool,
    /// True if its words say that it was done in this run: "now", "also", "as requested".
    pub fresh: bool,
    /// True if it is a claim only where it states a value that the run does not have.
    pub weak: bool,
    /// True if it is an item of a list that nothing leads: "- Refund: issued".
    pub listed: bool,
    /// True if what it was done to is new or the user's own: "a ticket", "your account".
    pub own_thing: bool,
    /// True if what it was done to is any of its kind: "a ticket".
    pub indefinite: bool,
    /// True if what it was done to is someone else's: "her plan".
    pub others: bool,
    /// True if it only shows that something was done: "web now runs with 4 replicas".
    pub shown: bool,
    /// True if it is talk about the message itself, unless a tool works on the thing: "I sorted the
    /// results".
    pub talk: bool,
    /// True if it is a further object of the same verb: "and the branch".
    pub joined: bool,
    /// True if the object is a pronoun: "it".
    pub pronoun: bool,
    /// True if the object is one of several that were looked up: "the lower strength".
    pub chosen: bool,
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
            targets: Vec::new(),
            alternative: None,
            how,
            past: false,
            news: false,
            fresh: false,
            weak: false,
            listed: false,
            own_thing: false,
            indefinite: false,
            others: false,
            joined: false,
            pronoun: false,
            shown: false,
            talk: false,
            chosen: false,
            named: false,
            from,
            to: from,
        };
        Self { claim, at }
    }
}

/// Adjectives that choose one of several things.
#[rustfmt::skip]
const CHOICES: &[&str] = &[
    "lower", "higher", "cheaper", "cheapest", "earlier", "earliest", "later", "latest", "smaller", "smallest", "larger", "largest",
    "bigger", "shorter", "longer", "faster", "fastest", "slower", "closest", "nearest", "lowest", "highest", "better", "best",
];

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
            let Some(action) = self.action(at) else {
                if token.is_word() && self.before(at).is_some_and(|before| before.is("to")) {
                    self.open_infinitive(at, &mut found);
                }
                continue;
            };
            let before = found.len();
            match action.form {
                Form::Base => self.infinitive(at, action.lemma, &mut found),
                Form::Gerund => self.gerund(at, action.lemma, &mut found),
                _ if action.open.is_some() => self.open(at, &action, &mut found),
                form => self.past(at, action.lemma, form, &mut found),
            }
            if found.len() > before && self.is_spoken(action.lemma, &found[before].claim) {
                found.truncate(before);
            }
            let group = self.group(at);
            let fresh = group.now || self.is_fresh(at);
            for found in &mut found[before..] {
                found.claim.others = self.tokens[found.claim.from..]
                    .iter()
                    .take(12)
                    .any(|token| token.is_any(&["her", "his", "their", "customer"]));
                let lasting = self.is_from_now_on();
                found.claim.fresh |=
                    fresh && (found.claim.how != How::State || group.now || lasting);
                if lasting {
                    found.claim.weak = false;
                }
            }
            let new = found.split_off(before);
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
        // "Customer says: cancelled in March"
        let quoted = self.tokens.windows(2).position(|pair| {
            pair[1].is(":")
                && pair[0].is_any(&[
                    "says", "said", "writes", "wrote", "reports", "reported", "claims", "states",
                    "wants", "asked",
                ])
        });
        if let Some(place) = quoted {
            found.retain(|found| found.at < place);
        }
        // "If it has been closed (or was moved), …": what follows is supposed, too.
        let supposed = self
            .tokens
            .first()
            .is_some_and(|token| token.is_any(&["if", "unless", "should", "whenever"]));
        if supposed {
            found.retain(|found| found.claim.how == How::Active);
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
            found.claim.to = self.clause_end(found.at, found.claim.to);
            found.claim.places = self.places(found.at, found.claim.to);
            let wide = crate::verbs::verb(found.claim.verb)
                .is_some_and(|verb| verb.is & (POST | ADD | WRITE) != 0);
            found.claim.targets = self.targets(found.at, found.claim.to, wide);
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

    /// The end of the clause of a verb: before "and the latency dropped".
    fn clause_end(&self, at: usize, end: usize) -> usize {
        (at + 2..end)
            .find(|place| {
                let token = &self.tokens[*place];
                let joins = token.is_any(&["and", "but", "while", "so", "because", "since"]);
                let Some(next) = self.get(place + 1).filter(|_| joins) else {
                    return false;
                };
                let subject = is_determiner(next)
                    || next.is_any(&["you", "it", "they", "there", "he", "she", "everything"]);
                let verb = (place + 2..end.min(place + 9)).find(|verb| {
                    let token = &self.tokens[*verb];
                    is_auxiliary(token) && !self.is_month(*verb) || is_pastlike(token)
                });
                subject
                    && verb.is_some_and(|verb| {
                        (*place + 1..verb).all(|place| {
                            let token = &self.tokens[place];
                            !token.is_mark() && !is_preposition(token)
                        })
                    })
            })
            .unwrap_or(end)
    }

    /// Returns true if a sentence states what holds from now on.
    pub(self) fn is_from_now_on(&self) -> bool {
        self.tokens.windows(2).any(|pair| {
            pair[0].is("from") && pair[1].is_any(&["now", "today"])
                || pair[0].is("as") && pair[1].is("of")
        })
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
        let real = !self.tokens[..at].iter().any(|token| {
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
            // "room Aurora, which I reserved"
            let which = subject > 1
                && self.tokens[subject - 1].is_any(&["which", "that"])
                && self
                    .get(at + 1)
                    .is_none_or(|next| next.is_mark() || is_preposition(next));
            let relative = || {
                let end = subject - 1 - usize::from(self.tokens[subject - 2].is(","));
                let start = (0..end)
                    .rev()
                    .find(|place| {
                        let token = &self.tokens[*place];
                        token.is_mark() || is_preposition(token) || is_auxiliary(token)
                    })
                    .map_or(0, |place| place + 1);
                let phrase = self.phrase(start, end);
                (!phrase.nouns.is_empty()).then_some(phrase)
            };
            // "the issue I created"
            let found = if which { relative() } else { None };
            let Some(gap) = found.or_else(|| self.gap(subject, at)) else {
                return;
            };
            phrase = gap;
        }
        let mut end = phrase.end;
        let pronoun = phrase.pronoun
            && !self
                .get(at + 1)
                .is_some_and(|next| next.is_any(&["you", "me", "us"]));
        found.push(Found::new(verb, phrase.nouns, subject.min(at), how, at));
        if let Some(last) = found.last_mut() {
            last.claim.chosen = self.tokens[at + 1..end.max(at + 1).min(self.tokens.len())]
                .iter()
                .any(|token| token.is_any(CHOICES));
            last.claim.pronoun = pronoun;
            last.claim.named = phrase.named;
        }
        // "the issue and the branch"
        while let Some(next) = self.further_object(end) {
            let mut further = Found::new(verb, next.nouns, end, how, at);
            further.claim.joined = true;
            found.push(further);
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
        let mut phrase = self.object(at);
        if verb == "reply" && self.get(at + 1).is_some_and(|next| next.is("to")) {
            phrase = self.phrase(at + 2, self.tokens.len());
        }
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
        let strong = next.is_some_and(opens_object) || verb == "reply" && self.sentence.done;
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
        // "I created the issue and notified the team": saying so can be the telling.
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
            unreal |= token.is_any(MODALS) && !self.is_month(place)
                || self.is_infinitive(place)
                || token.is("not");
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
                    // "was probably overloaded or restarted"
                    let hedged = self.tokens[place..participle]
                        .iter()
                        .any(|token| token.is_any(crate::words::HEDGES));
                    if !group.unreal && !hedged {
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
}
