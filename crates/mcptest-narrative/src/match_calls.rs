//! The recorded calls that can be the action of a claim.

mod answering;
mod settling;

pub(crate) use self::answering::{Candidate, answering, candidates, is_of_tool};
use crate::agreement::Touch;
use crate::call_words::{CallWords, Effect};
use crate::claims::{Claim, How};
use crate::nouns::is_same_thing;
use crate::run_evidence::CallResults;
use crate::tool_words::{
    ANY_CHANGE, CODING, CONTENTS, DOCUMENTS, FILE_TOOLS, GENERAL, HOLDERS, MESSAGE_TOOLS, MESSAGES,
    NAVIGATING, OPERATING, PEOPLE, RECORDED, STATE_CHANGES, STATE_KEYS, TARGETS, UNITS, UTTERANCES,
};
use crate::verbs::{
    ADD, ASSIGN, BOOK, CHANGE, CONVERT, COPY, DELETE, ENDING, EXECUTING, JOIN, LOAD, MAKE, MOVE,
    OPEN, PAY, POST, SEND, SWITCH, Use, Verb, WRITE, fold, nominal_of, singular, verb,
};

/// The degree to which a call answers a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// By another word for the same action.
    Related,
    /// The tool's name has the claimed verb.
    Exact,
}

impl CallWords {
    /// Returns the fit if the call can be the claimed action. `results` are the call's own result
    /// and the other results about the things that the call was given; `touch` shows whether the
    /// call has the values that the claim names.
    pub(crate) fn fits(
        &self,
        claim: &Claim,
        results: CallResults<'_>,
        touch: Touch,
    ) -> Option<Fit> {
        // In `get_post` the post is a thing.
        if self.effect == Effect::Reads {
            return None;
        }
        let own = verb(claim.verb)?;
        let best = self.fits_verb(claim, own, &claim.nouns, results, touch);
        let Some(alternative) = claim.alternative.and_then(verb) else {
            return best;
        };
        let other: Vec<String> = claim
            .nouns
            .iter()
            .filter(|noun| nominal_of(noun) != claim.alternative)
            .cloned()
            .collect();
        // `add_note` invites nobody.
        let invites = [
            "attendee",
            "invitee",
            "guest",
            "participant",
            "email",
            "member",
            "user",
        ];
        let uninvited = alternative.lemma == "invite"
            && own.is & SEND != 0
            && self.classes & (SEND | POST | BOOK) == 0
            && !self.says(alternative)
            && !self.keys.is_empty()
            && !invites
                .iter()
                .any(|key| self.keys.contains(&fold(key)) || self.name.contains(&fold(key)));
        if uninvited {
            return best;
        }
        let named = self.fits_verb(claim, alternative, &other, results, touch);
        // "submitted your application" is not any other word for applying something.
        let named =
            named.filter(|fit| *fit == Fit::Exact || !other.is_empty() || claim.how != How::Active);
        best.max(named.map(|_| Fit::Related))
    }

    fn fits_verb(
        &self,
        claim: &Claim,
        own: Verb,
        nouns: &[String],
        results: CallResults<'_>,
        touch: Touch,
    ) -> Option<Fit> {
        if self.pays(claim, own, nouns, results) || self.confirms(claim, own) {
            return Some(Fit::Related);
        }
        // "entered 2 as the number", by `type` with that text
        let local = own.is & (BOOK | PAY | SEND | POST | ENDING) == 0;
        let entered =
            touch.is_given() || touch != Touch::Contradicted && claim.named && nouns.is_empty();
        if self.is_any(OPERATING) && entered && local {
            return Some(Fit::Related);
        }
        if self.is_any(NAVIGATING) && self.effect == Effect::Unknown && !local {
            return None;
        }
        // "raised the budget to 4,200", by a call that wrote that figure
        let sets = touch == Touch::Set
            && own.is & CHANGE != 0
            && own.is & ENDING == 0
            && self.effect == Effect::Acts
            && self.classes & (CHANGE | WRITE | SWITCH | MOVE) != 0;
        if sets {
            return Some(Fit::Related);
        }
        let relation = self.relation(claim, own, results)?;
        let object = self.object(claim, own, nouns, results, touch);
        // "the rent and the electricity bill": the call that is the first need not be the other,
        // of which nothing in the run speaks.
        let invented = claim.joined
            && !nouns.is_empty()
            && nouns.iter().all(|noun| results.is_novel(&fold(noun)));
        let own_thing = matches!(object, Object::Thing | Object::Named)
            || object == Object::Open && claim.pronoun;
        // "upgraded to business class", where nothing in the run is about business
        let elsewhere = matches!(own.lemma, "upgrade" | "downgrade" | "promote" | "demote")
            && claim.targets.len() > 1
            && results.is_novel(&fold(&claim.targets[0]));
        // A commit is more than an edit.
        let uncommitted = own.lemma == "commit"
            && !self.keys.is_empty()
            && !["message", "branch", "commit", "sha", "repo", "repository"]
                .iter()
                .any(|key| self.keys.contains(&fold(key)) || self.name.contains(&fold(key)));
        let strange = relation != Relation::Same
            && (elsewhere
                || uncommitted && relation == Relation::Kin
                || touch == Touch::Contradicted
                || self.is_strange_target(claim, own, own_thing, results)
                || relation == Relation::Generic
                    && own.lemma == OPEN
                    && !claim.shown
                    && claim
                        .places
                        .iter()
                        .any(|noun| results.is_novel(&fold(noun))));
        let mentioned = nouns.iter().any(|noun| self.values.contains(&fold(noun)));
        let fits = match relation {
            Relation::Same => {
                object != Object::Other
                    || touch == Touch::Known
                    || claim.chosen
                        && nouns
                            .last()
                            .is_some_and(|noun| results.is_known(&fold(noun)))
                    || self.operates && self.keys.len() == 1
                    || self.concludes(own, &nouns.last().map(|noun| fold(noun)), results)
                    || self.is_bare(own, claim)
                    || self.is_any(&EXECUTING) && (own.is & LOAD != 0 || mentioned)
                    || nouns
                        .last()
                        .is_some_and(|noun| results.is_users_word(&fold(noun)))
            }
            _ if strange || invented => false,
            // Code does anything to a file, `checkout` buys whatever is in the cart, and a click
            // does what its button says.
            Relation::Kin if self.codes(own) || self.is_any(&EXECUTING) && mentioned => true,
            // `move_file` to `archive/old.css` archives it.
            Relation::Kin if claim.how != How::Active && self.values.contains(own.lemma) => true,
            Relation::Kin if own.lemma == "open" && self.is_any(NAVIGATING) => true,
            Relation::Kin if self.plain.len() == 1 && own.is & self.classes & BOOK != 0 => true,
            Relation::Generic if self.effect == Effect::Executes && mentioned => true,
            Relation::Generic
                if self.is_any(OPERATING)
                    && (self.keys.is_empty() || self.values.contains(own.lemma)) =>
            {
                true
            }
            // `attachments` among the arguments attach whatever it is called.
            Relation::State if self.key_verbs.contains(own.lemma) => true,
            Relation::State if self.effect == Effect::Executes => touch != Touch::Contradicted,
            Relation::State => {
                !matches!(object, Object::Other | Object::Content | Object::Elsewhere)
            }
            Relation::Kin => match object {
                Object::Named | Object::Thing | Object::Value => true,
                Object::Alias => {
                    self.is_mentioned_in(claim, results)
                        && !(own.is & SEND != 0 && self.is_any(MESSAGE_TOOLS))
                }
                Object::Open => {
                    claim.pronoun
                        || claim.named
                        || !nouns.is_empty()
                        || !claim.places.is_empty()
                        || own.is & JOIN != 0 && self.classes & JOIN != 0
                        // "The purchase is complete", by `buy_item`
                        || claim.how != How::Active && own.is & self.classes != 0
                }
                // `docker_rm` with nothing but a `container` removes one.
                Object::Key if own.is & ENDING != 0 && self.keys.len() == 1 => true,
                Object::Key | Object::Result => {
                    !(self.makes(own) || own.is & ENDING != 0) || self.things().is_empty()
                }
                Object::Content => {
                    own.is & (WRITE | SEND | POST | ADD | CHANGE) != 0
                        || own.is & ENDING != 0 && self.is_any(FILE_TOOLS)
                }
                // `scheduler_move` names no thing.
                Object::Other => self.is_agents() && own.is & !self.classes == 0,
                Object::Elsewhere => false,
            },
            Relation::Generic => match object {
                Object::Thing if self.only_makes() => claim.shown || own.lemma != OPEN,
                Object::Named | Object::Thing => true,
                Object::Alias => claim.how == How::State,
                Object::Value | Object::Key if own.lemma == OPEN && self.only_makes() => true,
                Object::Value | Object::Key => {
                    claim.shown
                        || !self.makes(own)
                            && (self.effect != Effect::Unknown || self.is_any(OPERATING))
                            && (own.lemma != OPEN || object == Object::Value)
                }
                Object::Result => {
                    claim.shown
                        || own.lemma != OPEN && !self.makes(own) && self.effect != Effect::Unknown
                }
                Object::Content => {
                    self.effect == Effect::Executes || claim.shown && self.is_any(FILE_TOOLS)
                }
                Object::Open => claim.how != How::Active && self.effect != Effect::Unknown,
                Object::Other | Object::Elsewhere => false,
            },
        };
        fits.then_some(match relation {
            Relation::Same => Fit::Exact,
            _ => Fit::Related,
        })
    }

    /// Returns true if a claim mentions what the tool is for, or if that is what the thing is: a
    /// budget of a campaign is changed by `set_budget`, its name is not.
    fn is_mentioned_in(&self, claim: &Claim, results: CallResults<'_>) -> bool {
        let things = self.things();
        let said = |thing: &String| {
            let words = claim
                .nouns
                .iter()
                .chain(&claim.places)
                .chain(&claim.targets);
            results.is_kind(thing)
                || words
                    .map(|noun| fold(noun))
                    .any(|noun| noun == *thing || is_same_thing(&noun, thing))
        };
        things.is_empty() || things.iter().any(said)
    }

    /// Returns true if a claim brings something to a place or a person that the call knows nothing
    /// of: "added to your calendar".
    fn is_strange_target(
        &self,
        claim: &Claim,
        own: Verb,
        own_thing: bool,
        results: CallResults<'_>,
    ) -> bool {
        let brings =
            own.is & (ADD | SEND | POST | MOVE | LOAD | COPY | JOIN) != 0 && own.lemma != "reply";
        brings
            && claim.targets.last().is_some_and(|noun| {
                let noun = fold(noun);
                let known = self.name.contains(&noun)
                    || self.keys.contains(&noun)
                    || self.values.contains(&noun)
                    || self
                        .name
                        .iter()
                        .chain(&self.keys)
                        .any(|word| is_same_thing(word, &noun))
                    || [GENERAL, UNITS, PEOPLE, TARGETS]
                        .iter()
                        .any(|words| words.iter().any(|own| fold(own) == noun))
                    || own_thing && HOLDERS.iter().any(|own| fold(own) == noun)
                    // "sent it to charge", to `charger-B`
                    || noun.len() >= 5
                        && self.values.iter().any(|word| word.starts_with(noun.as_str()))
                    || results.any(true, |own| own.all.contains(&noun))
                    || self.is_any(OPERATING) && results.is_known(&noun)
                    || results.is_said_by_user(&noun);
                !known
            })
    }

    /// The relation of a claimed verb to what the call does.
    fn relation(&self, claim: &Claim, own: Verb, results: CallResults<'_>) -> Option<Relation> {
        let stem = match &claim.open {
            Some((_, stem)) if own.lemma == OPEN => stem.as_str(),
            _ => own.lemma,
        };
        if self.says(own) || self.name.contains(stem) {
            return Some(Relation::Same);
        }
        let executed = self.effect == Effect::Executes && self.values.contains(stem)
            || own.lemma != OPEN && self.codes_any(own.accepts & !MAKE);
        let stated = self.states.contains(stem)
            || executed
            || self.key_verbs.contains(stem)
            || results.any(false, |own_result| own_result.said.contains(stem))
            || matches!(own.lemma, "close" | "resolve" | "complete" | "finish")
                && FINISHED
                    .iter()
                    .any(|word| self.states.contains(&fold(word)));
        if stated {
            return Some(Relation::State);
        }
        if self.checks {
            return None;
        }
        // `format_cells` renames nothing.
        let one_change = self.classes == CHANGE && self.effect == Effect::Acts;
        let lacks = self.only_changes() && self.lacks_aspect(own, results)
            || one_change && own.is & ENDING == 0 && self.lacks_aspect(own, results);
        let labels = own.is & ASSIGN != 0 && self.name.iter().any(|word| word.starts_with(stem));
        let saves = own.lemma == "save" && self.is_any(FILE_TOOLS);
        let navigates = own.lemma == "open" && self.is_any(NAVIGATING);
        let codes = self.codes(own) || navigates || saves && self.effect != Effect::Reads;
        if own.lemma != OPEN && self.classes & own.accepts != 0 && !lacks || labels || codes {
            return Some(Relation::Kin);
        }
        let replaces = matches!(
            own.lemma,
            "replace" | "migrate" | "swap" | "switch" | "exchange"
        ) && self.classes & (MAKE | DELETE | CHANGE | MOVE) != 0;
        let changes = STATE_CHANGES.contains(&own.lemma)
            && self.effect == Effect::Acts
            && !self.is_any(MESSAGE_TOOLS)
            && !self.only_sends()
            && (claim.how != How::Active || self.classes & !MAKE != 0);
        let loose = own.is & ENDING == 0;
        let runs = self.effect == Effect::Executes || self.is_any(OPERATING);
        let mentions = || {
            self.values.contains(stem)
                || self.keys.is_empty() && self.is_any(OPERATING)
                || claim
                    .nouns
                    .iter()
                    .any(|noun| self.values.contains(&fold(noun)))
        };
        // "web now runs with 4 replicas"
        let shown = claim.shown && own.lemma == OPEN;
        let any = shown
            || self.effect == Effect::Unknown && loose
            || runs && mentions()
            || own.lemma == OPEN
                && (self.classes & (CHANGE | ADD | WRITE | MOVE | SWITCH | PAY) != 0
                    || self.only_makes());
        (replaces || changes || any && !lacks).then_some(Relation::Generic)
    }

    /// Returns true if a tool for any change was not given what a verb is about: a name to rename,
    /// a state to close.
    fn lacks_aspect(&self, own: Verb, results: CallResults<'_>) -> bool {
        if own.is & ENDING != 0 {
            return !self.shows_state(results);
        }
        let Some((_, keys)) = ASPECTS.iter().find(|(verbs, _)| verbs.contains(&own.lemma)) else {
            return false;
        };
        !self.keys.is_empty()
            && !self.is_any(FILE_TOOLS)
            && !keys.iter().any(|key| {
                let key = fold(key);
                self.keys.contains(&key) || self.name.contains(&key)
            })
    }

    /// The relation of what a claim names to what the call was about.
    fn object(
        &self,
        claim: &Claim,
        own: Verb,
        nouns: &[String],
        results: CallResults<'_>,
        touch: Touch,
    ) -> Object {
        let one_of = |known: &[&str], noun: &str| known.iter().any(|own| fold(own) == noun);
        if own.lemma == "reply" && self.is_any(MESSAGE_TOOLS) {
            return Object::Thing;
        }
        let Some(head) = nouns.last().map(|noun| fold(noun)) else {
            return if touch.is_given() {
                Object::Named
            } else if !claim.places.is_empty() && !self.is_placed(&claim.places, results) {
                // "I've added it to your reservation"
                Object::Elsewhere
            } else {
                Object::Open
            };
        };
        let people = own.usage == Use::Telling && one_of(PEOPLE, &head);
        if people {
            return Object::Open;
        }
        let all: Vec<String> = nouns.iter().map(|noun| fold(noun)).collect();
        let makes = self.makes(own);
        let things = self.things();
        // `add_user_to_channel` makes no channel.
        let placed: Vec<String> = self
            .plain
            .iter()
            .skip_while(|word| {
                !matches!(word.as_str(), "to" | "from" | "in" | "on" | "into" | "for")
            })
            .map(|word| fold(word))
            .collect();
        // `convert_markdown_to_mindmap` makes one.
        let becomes_it = self.classes & CONVERT != 0;
        let in_name = |noun: &String| {
            // A request made for a branch makes no branch.
            if makes && !becomes_it && (placed.contains(noun) || noun == "branch") {
                return self.name.contains(noun) && !placed.contains(noun);
            }
            self.name.contains(noun)
                || things.iter().any(|word| is_same_thing(word, noun))
                || self.name.iter().any(|word| {
                    // `rent_bike` makes a rental.
                    word.len() >= 4 && noun.starts_with(word.as_str())
                })
                || nominal_of(noun)
                    .is_some_and(|lemma| self.verbs.iter().any(|verb| verb.lemma == lemma))
        };
        let joined = nouns
            .windows(2)
            .any(|pair| self.name.contains(&fold(&pair.concat())));
        // "the customer record", of `create_customer`
        let record =
            one_of(RECORDED, &head) && nouns.len() > 1 && in_name(&fold(&nouns[nouns.len() - 2]));
        if in_name(&head) || joined || record || head == "pr" && self.name.contains("pull") {
            return Object::Thing;
        }
        let documents = self.is_any(FILE_TOOLS)
            && (self.classes & (WRITE | MAKE | CHANGE | ADD | DELETE) != 0
                || self.effect == Effect::Executes)
            && (one_of(DOCUMENTS, &head) || one_of(CONTENTS, &head));
        let comments = self.keys.contains(&fold("body"))
            && own.is & (ADD | SEND | POST | WRITE) != 0
            && matches!(
                nouns.last().map(|noun| singular(noun)).as_deref(),
                Some("comment" | "note")
            );
        let saves = own.lemma == "save"
            && self.says(own)
            && (one_of(DOCUMENTS, &head) || matches!(head.as_str(), "version" | "copy"));
        let messages = self.is_any(MESSAGE_TOOLS)
            && own.is & (SEND | POST | WRITE) != 0
            && (one_of(MESSAGES, &head) || one_of(UTTERANCES, &head));
        if documents || messages || comments || saves {
            return Object::Thing;
        }
        if touch.is_given() && !self.is_of_another(own, &all, results) {
            return Object::Named;
        }
        // "the new version", of `set_image` with `web:1.9.0`
        if self.versioned && one_of(&["version", "release", "build", "image"], &head) {
            return Object::Value;
        }
        if one_of(UNITS, &head) && all.iter().all(|noun| one_of(UNITS, noun)) {
            return Object::Open;
        }
        let similar = |noun: &String| {
            let alike = |word: &String| {
                noun.len() >= 5 && word.starts_with(noun.as_str())
                    || !makes && is_same_thing(word, noun)
            };
            self.short.iter().any(alike)
        };
        if all.iter().any(|noun| self.short.contains(noun)) || similar(&head) {
            return Object::Value;
        }
        if all.iter().any(|noun| self.name.contains(noun)) && !self.makes(own) {
            return Object::Thing;
        }
        if all.iter().any(|noun| results.is_alias(noun)) && !self.is_of_another(own, &all, results)
        {
            // The one who gets a message need not be named in it.
            return if own.usage == Use::Telling {
                Object::Named
            } else {
                Object::Alias
            };
        }
        if one_of(GENERAL, &head) || one_of(UNITS, &head) {
            let mut rest = all[..all.len() - 1].to_vec();
            rest.retain(|noun| !one_of(UNITS, noun) && !one_of(GENERAL, noun) && noun != "on");
            let known = |noun: &String| {
                in_name(noun) || self.keys.contains(noun) || self.values.contains(noun)
            };
            return if rest.is_empty() || rest.iter().any(known) {
                Object::Open
            } else {
                Object::Other
            };
        }
        if self
            .lists
            .iter()
            .any(|word| *word == head || is_same_thing(word, &head))
        {
            return Object::Value;
        }
        let keyed = |noun: &String| self.keys.contains(noun);
        if keyed(&head) || !self.makes(own) && all.iter().any(keyed) {
            return Object::Key;
        }
        // "I added the ingredients to the file", "upgraded to business class"
        let holds = own.is & (ADD | WRITE) != 0 && self.classes & (ADD | WRITE | MAKE) != 0;
        let becomes = own.is & (CHANGE | ASSIGN | MOVE | SWITCH) != 0;
        let is_target = |noun: &String| {
            let noun = fold(noun);
            holds && in_name(&noun) || (holds || becomes) && self.short.contains(&noun)
        };
        if claim.targets.iter().any(is_target) {
            return Object::Value;
        }
        let wide = self.classes & (CHANGE | ENDING | PAY) != 0;
        let terse = results
            .own()
            .is_some_and(|own| own.all.len() <= TERSE && own.all.contains(&head));
        if terse || results.any(wide, |result| result.is_valued(&head)) {
            return Object::Result;
        }
        if self.values.contains(&head) {
            return Object::Content;
        }
        Object::Other
    }

    /// Returns true if the tool makes things, and does nothing else.
    fn only_makes(&self) -> bool {
        self.classes == MAKE
    }

    /// Returns true if the tool sends words to someone, and does nothing else.
    fn only_sends(&self) -> bool {
        self.classes == SEND
            && !self
                .verbs
                .iter()
                .any(|verb| matches!(verb.lemma, "ship" | "deliver" | "return" | "dispatch"))
    }

    /// Returns true if a verb is one for what writing a file can do to anything.
    fn codes(&self, own: Verb) -> bool {
        CODING.contains(&own.lemma) && self.is_any(FILE_TOOLS) && self.effect != Effect::Reads
    }

    /// Returns true if the tool is one for any change, and for nothing else.
    fn only_changes(&self) -> bool {
        self.classes == CHANGE && self.is_any(ANY_CHANGE)
    }

    /// Returns true if the arguments or the result have a state, so that the call can have ended
    /// something: `status`, `closed: true`.
    fn shows_state(&self, results: CallResults<'_>) -> bool {
        let ends = |word: &str| verb(word).is_some_and(|verb| verb.is & ENDING != 0);
        STATE_KEYS.iter().any(|key| self.keys.contains(*key))
            || self.keys.iter().chain(&self.short).any(|word| ends(word))
            || self.keys.is_empty()
            || self.is_any(FILE_TOOLS)
            || results.own().is_some_and(|own| !own.recorded)
    }

    /// Returns true if the call was about a place of a claim: "posted them to the website", by
    /// `post_webpage`.
    fn is_placed(&self, places: &[String], results: CallResults<'_>) -> bool {
        places.iter().any(|noun| {
            let noun = fold(noun);
            self.name.contains(&noun)
                || self.short.contains(&noun)
                || self.keys.contains(&noun)
                || self.name.iter().any(|word| is_same_thing(word, &noun))
                || results.is_alias(&noun)
                || results.is_known(&noun)
                || self.classes & (MAKE | ADD | BOOK | WRITE) != 0
                    && HOLDERS.iter().any(|own| fold(own) == noun)
        })
    }

    /// Returns true if a claim is about something new, and the tool names what it works on.
    fn makes(&self, own: Verb) -> bool {
        own.is & (MAKE | BOOK | SEND) != 0
            && own.is & (POST | CHANGE | PAY) == 0
            && !(own.is & SEND != 0 && self.says(own))
    }

    /// Returns true if something new is claimed, of another kind than what the tool makes. An
    /// argument's key is only where the thing belongs: `add_comment` with a `card` makes no card.
    fn is_of_another(&self, own: Verb, nouns: &[String], results: CallResults<'_>) -> bool {
        self.makes(own)
            && self.effect != Effect::Unknown
            && !self.things().is_empty()
            && nouns.iter().all(|noun| {
                !self.short.contains(noun)
                    && !results.is_alias(noun)
                    && !GENERAL.iter().any(|known| fold(known) == *noun)
                    && !results.any(false, |own| own.all.contains(noun))
            })
    }

    /// Returns true if the tool's name says nothing but its verb, or the claim names its place.
    fn is_bare(&self, own: Verb, claim: &Claim) -> bool {
        self.plain.len() == 1
            || own.lemma != OPEN && self.is_agents()
            || own.lemma != OPEN
                && claim.places.iter().any(|noun| {
                    let noun = fold(noun);
                    self.name.contains(&noun)
                        || self.name.iter().any(|word| is_same_thing(word, &noun))
                })
    }

    /// Returns true if the tool's name has the verb.
    fn says(&self, own: Verb) -> bool {
        self.verbs.iter().any(|verb| verb.lemma == own.lemma)
    }
}

/// Verbs with the arguments that a tool for any change needs for them.
#[rustfmt::skip]
const ASPECTS: &[(&[&str], &[&str])] = &[
    (&["rename"], &["name", "title", "filename", "slug", "label", "path", "subject", "to"]),
    (&["reschedule", "postpone", "shift", "schedule"], &["date", "time", "start", "end", "when", "day", "due", "deadline", "at"]),
    (&["assign", "reassign"], &["assignee", "assignees", "owner", "user", "agent", "team", "group", "to", "member", "reviewer", "person", "staff", "responsible"]),
    (&["tag", "label"], &["tag", "tags", "label", "labels", "category"]),
    (&["pause", "resume", "reopen", "block", "unblock", "activate", "enable", "disable", "deactivate", "suspend", "lock", "unlock", "mute", "publish", "approve", "reject"],
     &["status", "state", "active", "enabled", "paused", "blocked", "locked", "mode", "published", "value", "data", "action", "stage", "visibility", "muted", "setting", "access"]),
    (&["resize", "scale"], &["size", "replicas", "count", "capacity", "width", "height", "instances", "scale", "type"]),
    (&["promote", "demote"], &["role", "level", "rank", "stage", "status", "grade", "version"]),
    (&["restore", "revert", "reverse"], &["status", "state", "version", "content", "body", "text", "data", "value"]),
];

/// The relation of a claimed verb to what a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// The tool's name has the verb.
    Same,
    /// An argument or the result states it: `status: closed`.
    State,
    /// Another verb for the same kind of action.
    Kin,
    /// The tool can do anything.
    Generic,
}

/// The place where a call has what a claim names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    /// The call was given the very value.
    Named,
    /// Another word for a thing that the call was given.
    Alias,
    /// The tool's name has it.
    Thing,
    /// A short argument has it.
    Value,
    Key,
    Result,
    /// A long argument has it.
    Content,
    /// The claim names nothing.
    Open,
    /// The claim names nothing but a place that the call does not have.
    Elsewhere,
    /// The call has nothing of it.
    Other,
}

/// States of what is closed, resolved or finished.
const FINISHED: [&str; 6] = [
    "done",
    "closed",
    "resolved",
    "completed",
    "finished",
    "fixed",
];

/// The number of words of a result up to which its keys describe what was done.
const TERSE: usize = 25;

#[cfg(test)]
mod tests;
