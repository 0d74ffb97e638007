//! The recorded calls that can be the action of a claim.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::claims::{Claim, How};
use crate::evidence::ResultWords;
use crate::verbs::{
    CHANGE, Classes, END, EXECUTING, LISTED, MAKE, SEND, Verb, fold, nominal_of, singular,
    tool_verb, verb,
};
use mcptest_catalog::lexical;
use mcptest_trace::trace::ToolCallView;

/// Nouns that can mean anything that a call did.
#[rustfmt::skip]
const GENERAL: &[&str] = &[
    "change", "detail", "information", "request", "modification", "thing", "correction", "fix", "action", "operation",
    "adjustment", "setting",
];

/// Words of tools that only look.
#[rustfmt::skip]
pub(crate) const READING: &[&str] = &[
    "get", "list", "search", "read", "fetch", "find", "query", "show", "view", "check", "lookup", "look", "count",
    "describe", "retrieve", "browse", "inspect", "validate", "verify", "calculate", "compute", "think", "summarize",
    "extract", "select", "scan", "explain", "compare", "evaluate", "analyze", "status", "preview",
];

/// Words of tools that can be a verb or the thing it is about.
#[rustfmt::skip]
const EITHER: &[&str] = &[
    "order", "file", "record", "message", "text", "email", "mail", "label", "tag", "link", "book", "issue", "copy",
    "log", "store", "invoice", "bill", "post", "commit", "process", "release", "design", "build", "record", "request",
    "place", "include",
];

/// Verbs about money, and the words by which a call shows that money moved.
#[rustfmt::skip]
const PAYING: &[&str] = &["refund", "reimburse", "credit", "compensate", "debit", "charge", "pay", "bill", "invoice"];
#[rustfmt::skip]
const MONEY: &[&str] = &["payment", "price", "amount", "refund", "transaction", "balance", "cost", "fee", "total"];

/// First words of database statements that write.
const STATEMENTS: &[&str] = &[
    "insert", "update", "delete", "create", "drop", "alter", "truncate",
];

/// Words of tools that operate a user interface, which can do anything.
const OPERATING: &[&str] = &["click", "press", "fill", "type", "tap", "drag"];

/// Verbs for what writing a file can do to anything.
#[rustfmt::skip]
const CODING: &[&str] = &["fix", "correct", "implement", "refactor", "optimize", "optimise", "format", "rewrite"];

/// Verbs for any change of a state.
const STATE_CHANGES: &[&str] = &["update", "change", "modify", "mark", "set", "adjust"];

/// Messages that a system sends by itself when something is done.
#[rustfmt::skip]
const CONFIRMATIONS: &[&str] = &["confirmation", "receipt", "instruction", "email", "notification", "invoice", "detail"];

/// Nouns for files.
#[rustfmt::skip]
const DOCUMENTS: &[&str] = &[
    "report", "document", "summary", "analysis", "guide", "article", "essay", "readme", "script", "note", "plan", "draft",
    "template", "letter",
];

/// Nouns for parts of files.
#[rustfmt::skip]
const CONTENTS: &[&str] = &[
    "code", "function", "method", "class", "test", "import", "line", "comment", "variable", "parameter", "argument",
    "type", "check", "handling", "handler", "validation", "section", "paragraph", "heading", "field", "header",
    "dependency", "docstring", "block", "statement", "logging", "error", "typo", "text", "content", "style", "component",
    "module", "route", "endpoint", "logic", "constant", "import", "entry", "value",
];

/// Nouns for messages.
#[rustfmt::skip]
const MESSAGES: &[&str] = &[
    "update", "announcement", "note", "reminder", "notification", "reply", "response", "alert", "summary", "link",
    "confirmation", "instruction", "message",
];

/// Words in the names of tools that work on files, and of those that send messages.
const FILE_TOOLS: &[&str] = &["file", "text", "notebook", "editor", "str"];
const MESSAGE_TOOLS: &[&str] = &[
    "message",
    "email",
    "mail",
    "comment",
    "notification",
    "sms",
    "chat",
    "notify",
    "reply",
];

/// The length of the part of an argument's string that names things; the rest is content.
const NAME_LENGTH: usize = 200;

/// The words of a recorded call.
#[derive(Debug)]
pub(crate) struct CallWords {
    /// The words of the name, in lowercase.
    plain: Vec<String>,
    /// The same, folded.
    name: BTreeSet<String>,
    /// The verbs of the name.
    verbs: Vec<Verb>,
    classes: Classes,
    keys: BTreeSet<String>,
    values: BTreeSet<String>,
    /// Values of one word, such as `closed`.
    states: BTreeSet<String>,
    /// True if the tool counts as a write.
    pub mutating: bool,
    pub effect: Effect,
}

/// The effect of a call, as far as its tool's name shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only looks, so it is never an action.
    Reads,
    Acts,
    /// It runs what it is given.
    Executes,
    Unknown,
}

/// The list of the suite that a tool is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    Mutating,
    Readonly,
    Nowhere,
}

/// The degree to which a call answers a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// By another word for the same deed.
    Related,
    /// The tool's name has the claimed verb.
    Exact,
}

/// Returns true if a name contains a mutating verb as a whole word.
pub(crate) fn is_mutating_name(name: &str) -> bool {
    lexical::words(name)
        .iter()
        .any(|word| LISTED.contains(&word.as_str()))
}

/// The verbs of a tool's name: those that can be nothing else, or the first of the others.
fn verbs_of(words: &[String]) -> Vec<Verb> {
    let verbs = |thing: bool| {
        words
            .iter()
            .filter(move |word| EITHER.contains(&word.as_str()) == thing)
            .filter_map(|word| tool_verb(word))
    };
    let sure: Vec<Verb> = verbs(false).collect();
    if sure.is_empty() {
        verbs(true).take(1).collect()
    } else {
        sure
    }
}

/// The effect of a tool that no list of the suite names.
pub(crate) fn effect_of(words: &[String]) -> Effect {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    if has(&EXECUTING) || has(&["run"]) && has(&["query", "test", "tests"]) {
        return Effect::Executes;
    }
    let mut thing = false;
    for word in words {
        if READING.contains(&word.as_str()) {
            return Effect::Reads;
        }
        if tool_verb(word).is_some_and(|verb| verb.is != 0) {
            if !EITHER.contains(&word.as_str()) {
                return Effect::Acts;
            }
            thing = true;
        }
    }
    // `book_room`, but not `text_to_speech`.
    let first = words
        .windows(2)
        .any(|pair| EITHER.contains(&pair[0].as_str()) && pair[1] != "to");
    if thing && first {
        Effect::Acts
    } else {
        Effect::Unknown
    }
}

impl CallWords {
    pub(crate) fn new(call: &ToolCallView<'_>, listed: Listed) -> Self {
        let plain = lexical::words(call.name());
        let verbs = verbs_of(&plain);
        Self {
            name: plain.iter().map(|word| fold(word)).collect(),
            classes: verbs.iter().fold(0, |all, verb| all | verb.is),
            verbs,
            keys: BTreeSet::new(),
            values: BTreeSet::new(),
            states: BTreeSet::new(),
            mutating: match listed {
                Listed::Mutating => true,
                Listed::Readonly => false,
                Listed::Nowhere => is_mutating_name(call.name()),
            },
            effect: match (listed, effect_of(&plain)) {
                (Listed::Readonly, _) => Effect::Reads,
                (Listed::Mutating, Effect::Reads) => Effect::Unknown,
                (_, effect) => effect,
            },
            plain,
        }
    }

    /// The words of the tool's name, in lowercase.
    pub(crate) fn words(&self) -> &[String] {
        &self.plain
    }

    /// Returns true if a folded word is in the tool's name.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.name.contains(word)
    }

    /// Adds the words of the arguments, which only claims are compared with.
    pub(crate) fn add_arguments(&mut self, call: &ToolCallView<'_>) {
        if let Some(args) = call.args() {
            self.collect(args);
        }
    }

    fn collect(&mut self, args: &Value) {
        match args {
            Value::Object(map) => {
                for (key, value) in map {
                    self.keys
                        .extend(lexical::words(key).iter().map(|word| fold(word)));
                    self.collect(value);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.collect(value)),
            Value::String(text) => {
                let head: String = text.chars().take(NAME_LENGTH).collect();
                let words = lexical::words(&head);
                // `query` with `DELETE FROM …` does not only look.
                let statement = words.len() > 2
                    && words
                        .first()
                        .is_some_and(|word| STATEMENTS.contains(&word.as_str()));
                if statement && self.is_any(&["query", "sql", "statement", "database", "db"]) {
                    self.effect = Effect::Executes;
                }
                if let [state] = words.as_slice() {
                    self.states.insert(fold(state));
                }
                self.values.extend(words.iter().map(|word| fold(word)));
            }
            _ => {}
        }
    }

    /// Returns true if the text names the call: every word of three or more letters of its name is
    /// there. A name with none so long needs all.
    pub(crate) fn is_mentioned(&self, text: &BTreeSet<String>) -> bool {
        let salient = |word: &&String| word.chars().count() >= 3;
        let any_salient = self.plain.iter().any(|word| salient(&word));
        !self.plain.is_empty()
            && self
                .plain
                .iter()
                .filter(|word| !any_salient || salient(word))
                .all(|word| text.contains(&fold(word)))
    }

    /// Returns true if the call does something.
    pub(crate) fn acts(&self) -> bool {
        self.effect == Effect::Acts || self.is_any(OPERATING)
    }

    /// Returns true if a claim can be other words for the call, whatever thing it names.
    pub(crate) fn could_be(&self, claim: &Claim) -> bool {
        verb(claim.verb).is_some_and(|own| {
            self.classes & own.accepts != 0
                || self.verbs.iter().any(|verb| verb.lemma == own.lemma)
                || self.is_any(OPERATING) && own.accepts & (MAKE | CHANGE | SEND) != 0
        })
    }

    /// Returns the fit if the call can be the claimed action. `results` are the call's own result
    /// and the other results about the things that the call was given.
    pub(crate) fn fits(
        &self,
        claim: &Claim,
        results: &[&ResultWords],
        touched: bool,
    ) -> Option<Fit> {
        // In `get_post` the post is a thing.
        if self.effect == Effect::Reads {
            return None;
        }
        let own = verb(claim.verb)?;
        let other: Vec<String> = claim
            .nouns
            .iter()
            .filter(|noun| nominal_of(noun) != claim.alternative)
            .cloned()
            .collect();
        let best = self.fits_verb(claim, own, &claim.nouns, results, touched);
        let Some(alternative) = claim.alternative.and_then(verb) else {
            return best;
        };
        let named = self
            .verbs
            .iter()
            .any(|verb| verb.lemma == alternative.lemma)
            && self.concerns(&other, results)
            || self.pays(alternative, &other, results);
        best.max(named.then_some(Fit::Related))
    }

    fn fits_verb(
        &self,
        claim: &Claim,
        own: Verb,
        nouns: &[String],
        results: &[&ResultWords],
        touched: bool,
    ) -> Option<Fit> {
        let concerns = touched || self.concerns(nouns, results);
        let says_verb = self.verbs.iter().any(|verb| verb.lemma == own.lemma);
        if says_verb && concerns {
            return Some(Fit::Exact);
        }
        let own_result = results.first();
        let result_says = own_result.is_some_and(|result| result.all.contains(own.lemma));
        let related = self.classes & own.accepts != 0
            || self.states.contains(own.lemma)
            || result_says && !says_verb;
        let named = nouns.iter().any(|noun| self.name.contains(&fold(noun)));
        let unknown = self.effect == Effect::Unknown
            && own.accepts & (MAKE | CHANGE | SEND) != 0
            && (touched || named);
        let placed = || !claim.places.is_empty() && self.concerns(&claim.places, results);
        // "The status of the order was changed": by whatever was done to the order.
        let changed = (claim.how != How::Active || self.classes & !MAKE != 0)
            && self.effect == Effect::Acts
            && STATE_CHANGES.contains(&own.lemma)
            && (touched || concerns);
        let coded =
            CODING.contains(&own.lemma) && self.is_any(FILE_TOOLS) && self.effect != Effect::Reads;
        let fits = related && (concerns || placed())
            || coded
            || changed
            || unknown
            || self.executes(own, nouns, touched)
            || self.pays(own, nouns, results)
            // "You get a refund": the consequence of a cancellation or a return.
            || claim.how != How::Active
                && PAYING.contains(&own.lemma)
                && nouns.is_empty()
                && self.classes & (END | SEND) != 0
                && self.effect == Effect::Acts
            || self.confirms(claim, own);
        fits.then_some(Fit::Related)
    }

    fn is_any(&self, words: &[&str]) -> bool {
        self.plain.iter().any(|word| words.contains(&word.as_str()))
    }

    /// Code can do anything; it is enough that it mentions the thing.
    fn executes(&self, own: Verb, nouns: &[String], touched: bool) -> bool {
        self.effect == Effect::Executes
            && (touched
                || self.values.contains(own.lemma)
                || nouns.iter().any(|noun| self.values.contains(&fold(noun))))
    }

    /// Returns true if money moved with the call, as its arguments or its result show.
    fn pays(&self, own: Verb, nouns: &[String], results: &[&ResultWords]) -> bool {
        let is_money = |noun: &String| MONEY.contains(&singular(noun).as_str());
        PAYING.contains(&own.lemma)
            && self.effect == Effect::Acts
            && (nouns.iter().any(is_money) || self.concerns(nouns, results) || nouns.is_empty())
            && MONEY.iter().any(|word| {
                let word = fold(word);
                self.keys.contains(&word)
                    || results
                        .first()
                        .is_some_and(|result| !result.recorded || result.all.contains(&word))
            })
    }

    /// "A confirmation email has been sent": by the system that the call changed.
    fn confirms(&self, claim: &Claim, own: Verb) -> bool {
        claim.how != How::Active
            && self.effect == Effect::Acts
            && own.is & SEND != 0
            && claim.nouns.iter().any(|noun| {
                let noun = fold(noun);
                CONFIRMATIONS.iter().any(|known| fold(known) == noun)
            })
            && claim
                .nouns
                .iter()
                .any(|noun| noun.starts_with("confirm") || fold(noun) == fold("instructions"))
    }

    fn concerns(&self, nouns: &[String], results: &[&ResultWords]) -> bool {
        // A tool named just `send` does not name what it sends.
        let verb_only = self.plain.len() == self.verbs.len();
        // "mind map" is `mindmap`.
        let joined = nouns
            .windows(2)
            .any(|pair| self.name.contains(&fold(&pair.concat())));
        verb_only
            || joined
            || nouns.is_empty()
            || nouns.iter().any(|noun| {
                let noun = fold(noun);
                self.concerns_noun(&noun) || results.iter().any(|result| result.all.contains(&noun))
            })
    }

    fn concerns_noun(&self, noun: &str) -> bool {
        let one_of = |nouns: &[&str]| nouns.iter().any(|known| fold(known) == noun);
        self.name.contains(noun)
            || self.keys.contains(noun)
            || self.values.contains(noun)
            || one_of(GENERAL)
            || self.is_any(FILE_TOOLS) && (one_of(DOCUMENTS) || one_of(CONTENTS))
            || self.is_any(MESSAGE_TOOLS) && one_of(MESSAGES)
            || noun == "pr" && self.name.contains("pull") && self.name.contains("request")
    }
}

/// A call with its results, first its own.
pub(crate) struct Candidate<'a> {
    pub call: &'a CallWords,
    pub results: Vec<&'a ResultWords>,
}

/// The number of words of a call and its result up to which they do not describe the thing.
const TERSE: usize = 25;

impl Candidate<'_> {
    /// Returns true if the call and its result show little about the thing that it was for.
    pub(crate) fn is_terse(&self) -> bool {
        let own = self.results.first().map_or(0, |result| result.all.len());
        self.call.keys.len() + self.call.values.len() + own <= TERSE
    }
}

/// The calls that answer a claim best: those with its verb, or else those with a related one.
/// `touched` are the calls that were given a value that the claim names.
pub(crate) fn matching(
    claim: &Claim,
    calls: &[Candidate<'_>],
    touched: &[bool],
) -> Option<(Fit, Vec<usize>)> {
    let fits: Vec<(usize, Fit)> = calls
        .iter()
        .enumerate()
        .filter_map(|(index, call)| {
            let touched = touched.get(index).copied().unwrap_or_default();
            Some((index, call.call.fits(claim, &call.results, touched)?))
        })
        .collect();
    let best = fits.iter().map(|(_, fit)| *fit).max()?;
    let indices = fits
        .iter()
        .filter(|(_, fit)| *fit == best)
        .map(|(index, _)| *index)
        .collect();
    Some((best, indices))
}

/// Returns true if an action is one of a tool that the suite lists as read-only.
pub(crate) fn is_of_tool(claim: &Claim, tool: &str) -> bool {
    let tool: BTreeSet<String> = lexical::words(tool).iter().map(|word| fold(word)).collect();
    tool.contains(claim.verb)
        && claim
            .nouns
            .first()
            .is_none_or(|noun| tool.contains(&fold(noun)))
}

#[cfg(test)]
mod tests;
