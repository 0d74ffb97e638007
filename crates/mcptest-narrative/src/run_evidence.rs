//! The results of a run beside its calls: what was observed, and what a call was about.

mod call_results;

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;

use serde_json::Value;

pub(crate) use self::call_results::CallResults;
use crate::agreement::{Name, Touch, agrees};
use crate::aliases::Records;
use crate::call_words::{CallWords, Effect};
use crate::claims::{Claim, How};
use crate::evidence::{LazyResult, ResultWords, contains_whole};
use crate::provenance::RunValues;
use crate::recorded::{Leaf, has_record_with, leaves};
use crate::sentences::Sentence;
use crate::stated_values::stated;
use crate::tool_words::WORLDLY;
use crate::values::{Stated, ValueKind};
use crate::{tokens, verbs};
use mcptest_catalog::lexical;
use mcptest_trace::trace::TraceView;
use rustc_hash::{FxHashMap, FxHashSet};

/// The results of a run, and which of them are about the same things as a call.
pub(crate) struct Evidence<'a> {
    pub(crate) results: Vec<LazyResult<'a>>,
    /// The values of the whole run.
    pub(crate) values: RunValues<'a>,
    trace: &'a TraceView<'a>,
    calls: &'a [CallWords],
    /// By call, the other results that mention a thing that the call was given.
    about: Vec<OnceCell<Vec<usize>>>,
    /// By identifier, the results that have it.
    mentions: OnceCell<FxHashMap<String, Vec<usize>>>,
    /// True if every call that only looks has a recorded result.
    complete: bool,
    /// True if a call of the run does something.
    acting: bool,
    /// The folded words of the user.
    user: OnceCell<FxHashSet<String>>,
    /// True if a lookup was one of the world.
    worldly: OnceCell<bool>,
    records: OnceCell<Records>,
    /// By call, other words for what it was given.
    aliases: Vec<OnceCell<FxHashSet<String>>>,
    /// The number of identifiers whose records may still be searched.
    record_searches: Cell<usize>,
}

/// The number of identifiers of one message whose records are searched; later ones may name
/// anything.
const MAX_RECORD_SEARCHES: usize = 50;

/// The number of bytes of the longest string that can name a thing.
const MAX_NAME: usize = 64;

/// The number of words from which a string of a result is prose.
const PROSE: usize = 80;

/// Returns true if a part of a result is a string of many words.
fn is_prose(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().any(is_prose),
        Value::Array(list) => list.iter().any(is_prose),
        Value::String(text) => {
            !text.trim_start().starts_with(['{', '['])
                && text.split_whitespace().take(PROSE).count() == PROSE
        }
        _ => false,
    }
}

/// The number of identifiers of a call that are looked up in the results.
const MAX_IDENTIFIERS: usize = 20;

impl<'a> Evidence<'a> {
    pub(crate) fn new(
        trace: &'a TraceView<'a>,
        calls: &'a [CallWords],
        room: &'a Cell<usize>,
    ) -> Self {
        let results: Vec<LazyResult<'a>> = trace
            .results_by_call()
            .into_iter()
            .zip(calls)
            .zip(&trace.tool_calls)
            .map(|((result, words), call)| {
                let looks = words.effect == Effect::Reads;
                let request = call.args().filter(|_| looks);
                let request = request.map(|args| (words.words(), args));
                LazyResult::new(result, request, room)
            })
            .collect();
        let complete = !results.is_empty()
            && results
                .iter()
                .zip(calls)
                .all(|(result, call)| result.recorded || call.effect != Effect::Reads);
        Self {
            about: results.iter().map(|_| OnceCell::new()).collect(),
            mentions: OnceCell::new(),
            results,
            values: RunValues::new(trace),
            trace,
            calls,
            complete,
            acting: calls.iter().any(|call| {
                call.acts()
                    || call.operates
                    || call.effect == Effect::Executes
                    || call.effect == Effect::Unknown && call.words().len() > 1
            }),
            user: OnceCell::new(),
            worldly: OnceCell::new(),
            records: OnceCell::new(),
            aliases: calls.iter().map(|_| OnceCell::new()).collect(),
            record_searches: Cell::new(MAX_RECORD_SEARCHES),
        }
    }

    /// Returns true if a record of a result has a stated identifier and one of the given values:
    /// `api-1` beside `i-0a1`.
    pub(crate) fn is_alias(&self, value: &Stated, given: &[&Leaf]) -> bool {
        let left = self.record_searches.get();
        self.record_searches.set(left.saturating_sub(1));
        let is_stated = |text: &str| text.len() <= MAX_NAME && agrees(value, text);
        let is_given = |text: &str| given.iter().any(|leaf| leaf.text == text);
        left == 0
            || self
                .results
                .iter()
                .any(|result| result.any(|part| has_record_with(part, &is_stated, &is_given)))
    }

    /// Returns true if every call has a recorded result; without calls, if the user's words are
    /// recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        let turns = self.trace.conversation.turns.as_deref().unwrap_or_default();
        let recorded = self.results.iter().all(|result| result.recorded);
        !self.results.is_empty() && recorded
            || self.results.is_empty()
                && turns
                    .iter()
                    .any(|turn| turn.role.as_deref() == Some("user"))
    }

    /// Returns true if the names of two tools have a thing in common: `cancel_order` and
    /// `get_order_details`. A tool that names no thing is about any.
    fn are_about_one(&self, own: usize, other: usize) -> bool {
        let things = self.calls[own].things();
        let others = self.calls[other].things();
        things.is_empty() || others.is_empty() || things.iter().any(|thing| others.contains(thing))
    }

    /// The other results that mention a thing that a call was given.
    fn about(&self, own: usize) -> &[usize] {
        self.about[own].get_or_init(|| {
            let mut identifiers = Vec::new();
            if let Some(args) = self.trace.tool_calls[own].args() {
                collect_identifiers(args, &mut identifiers);
            }
            if identifiers.is_empty() {
                return Vec::new();
            }
            let mentions = self.mentions.get_or_init(|| mentions(&self.results));
            let mut about: BTreeSet<usize> = identifiers
                .iter()
                .filter_map(|id| mentions.get(id.as_str()))
                .flatten()
                .copied()
                .collect();
            about.remove(&own);
            about.into_iter().take(MAX_ABOUT).collect()
        })
    }

    /// Returns true if a call was given one of the values or proper names of a claim.
    pub(crate) fn touches(&self, call: usize, names: &[Name], marks: &[Name]) -> bool {
        self.trace.tool_calls[call]
            .args()
            .is_some_and(|args| names.iter().chain(marks).any(|name| name.is_in(args)))
    }

    /// Other words for the things that a call was given.
    fn aliases(&self, call: usize) -> &FxHashSet<String> {
        self.aliases[call].get_or_init(|| {
            let args = self.trace.tool_calls[call].args();
            let records = self.records.get_or_init(|| Records::new(self.trace));
            args.map(|args| records.of(args)).unwrap_or_default()
        })
    }

    /// Compares the values that a claim names with those of a call.
    pub(crate) fn touch(&self, call: usize, names: &[Name], marks: &[Name]) -> Touch {
        let set = |mark: &Name| {
            let value = &mark.0;
            value.kind == ValueKind::Number && value.measured && value.normal.len() > 1
        };
        let figures: Vec<&Name> = marks.iter().filter(|mark| set(mark)).collect();
        if let Some(args) = self.trace.tool_calls[call].args()
            && figures.iter().any(|figure| figure.is_in(args))
        {
            return Touch::Set;
        }
        if self.touches(call, names, marks) {
            return Touch::Given;
        }
        let known = || {
            marks.iter().any(|mark| {
                mark.is_proper()
                    && self
                        .results
                        .iter()
                        .any(|result| mark.is_written_in(&result.text))
            })
        };
        let unknown = || {
            if known() {
                Touch::Known
            } else {
                Touch::Nothing
            }
        };
        let counted = |mark: &Name| {
            !mark.is_proper()
                && mark.normal().len() > 1
                && contains_whole(&self.results[call].text, mark.normal())
        };
        if !self.results[call].failed && marks.iter().any(counted) {
            return Touch::Given;
        }
        if names.is_empty() {
            return unknown();
        }
        let result = &self.results[call];
        let shown = |name: &Name| contains_whole(&result.text, name.normal());
        if !result.failed && names.iter().any(shown) {
            return Touch::Given;
        }
        let leaves = self.trace.tool_calls[call]
            .args()
            .map(leaves)
            .unwrap_or_default();
        let other = |name: &Name| leaves.iter().any(|leaf| name.is_alike(&leaf.text));
        if names.iter().all(other) {
            Touch::Contradicted
        } else {
            unknown()
        }
    }

    /// Returns true if a lookup was one of the world and not of the records of a service: of a
    /// place for anything, or with a result of prose.
    fn is_worldly(&self) -> bool {
        *self.worldly.get_or_init(|| {
            self.calls.iter().zip(&self.results).any(|(call, result)| {
                call.effect == Effect::Reads && (call.is_any(WORLDLY) || result.any(is_prose))
            })
        })
    }

    /// Returns true if the user said a folded word.
    pub(crate) fn is_said_by_user(&self, noun: &str) -> bool {
        self.user
            .get_or_init(|| {
                let turns = self.trace.conversation.turns.as_deref().unwrap_or_default();
                let said = turns
                    .iter()
                    .filter(|turn| turn.role.as_deref() == Some("user"));
                said.flat_map(|turn| lexical::words(&turn.text()))
                    .map(|word| verbs::fold(&word))
                    .collect()
            })
            .contains(noun)
    }

    /// Returns true if a claim without an actor states what a result or the user already reported,
    /// or what can be news about the world.
    pub(crate) fn observed(&self, claim: &Claim, sentence: &Sentence, names: &[Name]) -> bool {
        // "I changed the subject line" of a record that has a subject is no wording of the message.
        let is_field = |noun: &String| {
            let noun = verbs::fold(noun);
            self.results.iter().any(|result| result.has_key(&noun))
        };
        if !self.acting && is_wording(claim, sentence) && !claim.nouns.iter().any(is_field) {
            return true;
        }
        // "I sorted the results" is talk; of a sheet that a tool works on it is not.
        if claim.talk {
            let is_thing = |noun: &String| {
                let noun = verbs::fold(noun);
                self.calls.iter().any(|call| {
                    call.effect != Effect::Reads
                        && (call.name.contains(&noun) || call.keys.contains(&noun))
                })
            };
            if !claim.nouns.last().is_some_and(is_thing) {
                return true;
            }
        }
        if claim.how == How::Active || sentence.mine {
            return false;
        }
        let state = claim.how == How::State;
        if state && !self.complete {
            return true;
        }
        // "The status is now \"return requested\"", as a result says.
        let mut quoted = claim
            .tokens(sentence)
            .iter()
            .filter(|token| token.kind == tokens::Kind::Quote)
            .peekable();
        let is_shown = |token: &tokens::Token| {
            // American punctuation is inside of the quotation.
            let text = token.text.trim_end_matches(['.', ',']).to_lowercase();
            self.results
                .iter()
                .any(|result| contains_whole(&result.text, &text))
        };
        if state && quoted.peek().is_some() && quoted.all(is_shown) {
            return true;
        }
        // "The taxi is booked for Friday", where nothing in the run is about a taxi.
        let arranged = claim.how == How::Passive && claim.verb == verbs::OPEN;
        if (state || arranged) && claim.weak {
            let novel = !claim.nouns.is_empty()
                && claim
                    .nouns
                    .iter()
                    .all(|noun| self.is_novel(&verbs::fold(noun)));
            let generic = sentence.tokens.iter().any(|token| {
                token.is_any(&[
                    "when",
                    "whenever",
                    "if",
                    "once",
                    "usually",
                    "automatically",
                    "always",
                    "every",
                    "normally",
                    "typically",
                    "generally",
                    "default",
                ])
            });
            return generic || self.is_worldly() || !(novel && (self.acting || claim.own_thing));
        }
        // What was observed has no value that nothing in the run has.
        if self.complete && self.has_invented(claim, sentence) {
            return false;
        }
        if claim.weak {
            return true;
        }
        // "The lithograph was printed in Berlin": a plain past of what was looked up, by a verb
        // that no call of the run has.
        let history = claim.verb == verbs::OPEN
            && claim.past
            && !claim.fresh
            && !claim.own_thing
            && claim.how == How::Passive;
        if history && self.is_looked_up(claim, names) {
            return true;
        }
        // "The request was rejected", by the tool that failed.
        let refused = matches!(
            claim.verb,
            "reject" | "decline" | "deny" | "block" | "cancel" | "abort"
        );
        if refused
            && (claim.past || claim.verb == "deny")
            && self.results.iter().any(|result| result.failed)
        {
            return true;
        }
        // "Three workouts were recorded", of those that a lookup listed.
        let kept = matches!(
            claim.verb,
            "record" | "log" | "register" | "store" | "enter"
        );
        let is_listed = |noun: &String| {
            let folded = verbs::fold(noun);
            noun.ends_with('s') && self.results.iter().any(|result| result.has_key(&folded))
        };
        if kept && claim.past && !claim.fresh && claim.nouns.last().is_some_and(is_listed) {
            return true;
        }
        // What can be news needs results that do not report it. In a run that only looked, it is
        // news unless it is about something of the user's; so is any plain past where the run
        // searched the world.
        let own = claim.own_thing && !claim.indefinite;
        let open = claim.open.is_some() && claim.how == How::Passive;
        let news = claim.news || open;
        if news && !self.complete {
            return true;
        }
        // "A pull request has been opened", where nothing in the run is about one.
        let invented = claim.indefinite
            && !claim.past
            && claim.how == How::Passive
            && !claim.nouns.is_empty()
            && claim
                .nouns
                .iter()
                .all(|noun| self.is_novel(&verbs::fold(noun)));
        if invented && !self.is_worldly() {
            return false;
        }
        let told = claim.past && (news || self.is_worldly());
        if !self.acting
            && !own
            && (told || (state && !claim.listed && !sentence.row || news) && !claim.fresh)
        {
            return true;
        }
        // A state of something that no result is about comes from elsewhere.
        if state && !claim.listed && !claim.own_thing && !claim.fresh && !self.knows(claim, names) {
            return true;
        }
        // "photos.zip was uploaded": a plain past about things that were looked up.
        let is_reported = |name: &Name| {
            self.results
                .iter()
                .any(|result| contains_whole(&result.text, name.normal()))
        };
        if claim.past
            && !self.acting
            && !claim.own_thing
            && !claim.fresh
            && !names.is_empty()
            && names.iter().all(is_reported)
        {
            return true;
        }
        self.is_reported(claim, sentence, names)
    }

    /// Returns true if no call, no result and no user has a folded word.
    fn is_novel(&self, noun: &str) -> bool {
        // "r.mendes", of `r.mendes@acme.example`
        if noun.contains('.') && self.values.has_text(noun) {
            return false;
        }
        let called = |call: &CallWords| {
            call.name
                .iter()
                .any(|word| word == noun || word.len() >= 4 && noun.starts_with(word.as_str()))
                || call.keys.contains(noun)
                || call.values.contains(noun)
        };
        !self.results.iter().any(|result| result.all.contains(noun))
            && !self.calls.iter().any(called)
            && !self.is_said_by_user(noun)
    }

    /// Returns true if a call that only looks was about what a claim is about.
    fn is_looked_up(&self, claim: &Claim, names: &[Name]) -> bool {
        let looks = self.calls.iter().zip(&self.results);
        let mut looks = looks.filter(|(call, _)| call.effect == Effect::Reads);
        looks.any(|(_, result)| {
            let named = |name: &Name| contains_whole(&result.text, name.normal());
            let known = |noun: &String| result.all.contains(&verbs::fold(noun));
            names.iter().any(named) || claim.nouns.last().is_some_and(known)
        })
    }

    /// Returns true if a result mentions what a claim is about.
    fn knows(&self, claim: &Claim, names: &[Name]) -> bool {
        let is_known = |result: &ResultWords| {
            names
                .iter()
                .any(|name| contains_whole(&result.text, name.normal()))
                || claim
                    .nouns
                    .iter()
                    .any(|noun| result.all.contains(&verbs::fold(noun)))
        };
        self.results.iter().any(|result| is_known(result))
    }

    /// Returns true if a result or the user states what a claim states, of the same thing.
    fn is_reported(&self, claim: &Claim, sentence: &Sentence, names: &[Name]) -> bool {
        let dated = claim
            .tokens(sentence)
            .iter()
            .any(|token| token.kind == tokens::Kind::Number);
        let stem = claim.open.as_ref().map(|(_, stem)| stem.as_str());
        let states = [stem.or(Some(claim.verb)), claim.alternative];
        // "The project was dropped", which a result calls cancelled.
        let classes = verbs::verb(claim.verb).map_or(0, |own| {
            if claim.fresh || claim.own_thing && !claim.past {
                0
            } else if own.is & verbs::ENDING != 0 {
                if claim.past {
                    verbs::ENDING
                } else {
                    own.is & verbs::ENDING
                }
            } else if claim.news || claim.past {
                own.is
            } else {
                0
            }
        });
        // "Your account has been created" is not reported by a page about accounts.
        let strict = claim.own_thing && !claim.past || claim.fresh;
        let numbered = numbered_things(claim.tokens(sentence));
        let is_numbered = |result: &ResultWords| {
            numbered.iter().all(|(noun, number)| {
                !has_numbered(&result.text, noun)
                    || contains_whole(&result.text, &format!("{noun} {number}"))
            })
        };
        let nouns: &[String] = if names.is_empty() { &claim.nouns } else { &[] };
        let loose = !self.acting && names.is_empty() && !claim.own_thing;
        let said_by_user = names.is_empty()
            && !claim.nouns.is_empty()
            && !claim.fresh
            && claim.past
            && states
                .iter()
                .flatten()
                .any(|state| self.is_said_by_user(&verbs::fold(state)))
            && claim
                .nouns
                .iter()
                .any(|noun| self.is_said_by_user(&verbs::fold(noun)));
        said_by_user
            || self.results.iter().any(|result| {
                let about = names.is_empty()
                    || names
                        .iter()
                        .any(|name| contains_whole(&result.text, name.normal()));
                let hyphenated = claim.open.as_ref().is_some_and(|(word, _)| {
                    word.contains('-') && contains_whole(&result.text, word)
                });
                about
                    && is_numbered(result)
                    && (hyphenated
                        || states.iter().flatten().any(|state| {
                            let state = match stem {
                                Some(stem) if stem == *state => stem.to_owned(),
                                _ => verbs::fold(state),
                            };
                            let nouns = if loose { &[] } else { nouns };
                            (!strict || result.said.contains(&state))
                                && result.reports(&state, nouns, dated, true)
                        })
                        || classes != 0
                            && result
                                .states_like(classes)
                                .iter()
                                .any(|state| result.reports(state, nouns, dated, false)))
            })
    }
}

impl Evidence<'_> {
    /// Returns true if a claim states a value that nothing in the run has.
    fn has_invented(&self, claim: &Claim, sentence: &Sentence) -> bool {
        stated(claim.tokens(sentence)).iter().any(|value| {
            (value.measured || value.kind != ValueKind::Number)
                && self.values.is_invented(value, &[])
        })
    }
}

/// Returns true if a claim is about the words of the message itself: "I replaced \"moon\" with
/// \"moonlight\"", where no call did anything.
fn is_wording(claim: &Claim, sentence: &Sentence) -> bool {
    let is_word = |noun: &String| WORDINGS.contains(&verbs::singular(noun).as_str());
    let quotes = claim
        .tokens(sentence)
        .iter()
        .any(|token| token.kind == tokens::Kind::Quote);
    let has_file = claim
        .tokens(sentence)
        .iter()
        .any(|token| matches!(token.kind, tokens::Kind::Path | tokens::Kind::Email));
    verbs::verb(claim.verb).is_some_and(|own| {
        own.is & (verbs::MAKE | verbs::WRITE | verbs::ADD | verbs::CHANGE) != 0
            && own.is & (verbs::SENDING | verbs::LOAD) == 0
            && own.lemma != "save"
            && own.lemma != "store"
    }) && !has_file
        && (claim.nouns.last().is_some_and(is_word)
            || claim.places.iter().any(is_word)
            || claim.nouns.is_empty() && quotes)
}

/// Nouns for the parts and forms of prose.
#[rustfmt::skip]
const WORDINGS: &[&str] = &[
    "line", "word", "verse", "sentence", "paragraph", "phrase", "rhyme", "rhythm", "stanza", "poem", "haiku", "limerick",
    "lyric", "song", "joke", "riddle", "version", "variant", "alternative", "slogan", "tagline", "caption", "headline",
    "wording", "tone", "section", "introduction", "conclusion", "ending", "story", "essay", "dialogue", "monologue",
];

/// The things of a claim that a number tells apart: "clause 12".
fn numbered_things(tokens: &[tokens::Token]) -> Vec<(String, String)> {
    tokens
        .windows(2)
        .filter(|pair| {
            pair[0].is_word()
                && pair[1].kind == tokens::Kind::Number
                && pair[1].text.chars().all(|c| c.is_ascii_digit())
        })
        .map(|pair| (pair[0].low.clone(), pair[1].low.clone()))
        .collect()
}

/// Returns true if a string has a thing with any number: "clause 7".
fn has_numbered(text: &str, noun: &str) -> bool {
    text.match_indices(noun).take(1_000).any(|(place, _)| {
        text[place + noun.len()..]
            .strip_prefix(' ')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// The number of other results that are read for a call.
const MAX_ABOUT: usize = 50;

/// By identifier, the results that have it.
fn mentions(results: &[LazyResult<'_>]) -> FxHashMap<String, Vec<usize>> {
    let mut mentions: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (index, result) in results.iter().enumerate() {
        result.any(|value| {
            collect_mentions(value, index, &mut mentions);
            false
        });
    }
    mentions
}

fn collect_mentions(value: &Value, index: usize, mentions: &mut FxHashMap<String, Vec<usize>>) {
    let mut add = |part: &str| {
        let own = mentions.entry(part.to_lowercase()).or_default();
        if own.last() != Some(&index) {
            own.push(index);
        }
    };
    match value {
        Value::Object(map) => map
            .values()
            .for_each(|value| collect_mentions(value, index, mentions)),
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_mentions(value, index, mentions)),
        Value::Number(number) => add(&number.to_string()),
        Value::String(text) => text
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
            .filter(|part| part.len() >= 4 && part.contains(|c: char| c.is_ascii_digit()))
            .for_each(add),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Values with a digit that name things.
fn collect_identifiers(value: &Value, found: &mut Vec<String>) {
    if found.len() >= MAX_IDENTIFIERS {
        return;
    }
    match value {
        Value::Object(map) => map
            .values()
            .for_each(|value| collect_identifiers(value, found)),
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_identifiers(value, found)),
        Value::String(text) => {
            let is_name = (4..=64).contains(&text.len())
                && text.contains(|c: char| c.is_ascii_digit())
                && !text.contains(char::is_whitespace);
            if is_name {
                found.push(text.trim_start_matches('#').to_lowercase());
            }
        }
        Value::Number(number) if number.to_string().len() >= 4 => found.push(number.to_string()),
        _ => {}
    }
}
