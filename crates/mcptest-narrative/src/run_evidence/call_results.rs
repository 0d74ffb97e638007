//! The results of one call, and what the rest of the run shows about what it was given.

use super::{Evidence, MAX_IDENTIFIERS};
use crate::call_words::Effect;
use crate::evidence::{LazyResult, ResultWords, contains_whole};
use crate::verbs;
use mcptest_catalog::lexical;
use serde_json::Value;

/// A call's own result and the other results about the things that it was given.
#[derive(Clone, Copy)]
pub(crate) struct CallResults<'a> {
    evidence: Option<&'a Evidence<'a>>,
    own: usize,
}

impl<'a> CallResults<'a> {
    /// The results for a call.
    pub(crate) fn new(evidence: &'a Evidence<'a>, own: usize) -> Self {
        Self {
            evidence: Some(evidence),
            own,
        }
    }

    /// The results of a call without any.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            evidence: None,
            own: 0,
        }
    }

    /// The call's own result.
    pub(crate) fn own(&self) -> Option<&'a LazyResult<'a>> {
        self.evidence?.results.get(self.own)
    }

    /// Returns true if a folded word is another one for something that the call was given.
    pub(crate) fn is_alias(&self, noun: &str) -> bool {
        self.evidence
            .is_some_and(|evidence| evidence.aliases(self.own).contains(noun))
    }

    /// Returns true if the user said a folded word, and no tool is named after it: it can be the
    /// user's word for what a tool works on.
    pub(crate) fn is_users_word(&self, noun: &str) -> bool {
        self.evidence.is_some_and(|evidence| {
            let catalog = evidence.trace.catalog().unwrap_or_default();
            evidence.is_said_by_user(noun)
                && !evidence.calls.iter().any(|call| call.name.contains(noun))
                && !catalog.iter().any(|tool| {
                    lexical::words(tool.name())
                        .iter()
                        .any(|word| verbs::fold(word) == noun)
                })
        })
    }

    /// Returns true if nothing in the run has a folded word.
    pub(crate) fn is_novel(&self, noun: &str) -> bool {
        self.evidence
            .is_some_and(|evidence| evidence.is_novel(noun))
    }

    /// Returns true if a lookup of what the call was given is named after a folded word.
    pub(crate) fn is_kind(&self, thing: &str) -> bool {
        self.evidence.is_some_and(|evidence| {
            let args = evidence.trace.tool_calls[self.own].args();
            let mut identifiers = Vec::new();
            args.into_iter()
                .for_each(|args| collect_short(args, &mut identifiers));
            evidence
                .calls
                .iter()
                .zip(&evidence.results)
                .any(|(call, result)| {
                    call.effect == Effect::Reads
                        && call.name.contains(thing)
                        && identifiers
                            .iter()
                            .any(|id| contains_whole(&result.text, id))
                })
        })
    }

    /// Returns true if another call that acts was given a folded word, or if its result has it.
    pub(crate) fn is_prepared(&self, noun: &str) -> bool {
        self.evidence.is_some_and(|evidence| {
            let calls = evidence.calls.iter().zip(&evidence.results).enumerate();
            calls
                .filter(|(index, (call, result))| {
                    *index != self.own && call.effect != Effect::Reads && !result.failed
                })
                .any(|(_, (call, result))| call.values.contains(noun) || result.all.contains(noun))
        })
    }

    /// Returns true if any result of the run has a folded word.
    pub(crate) fn is_known(&self, noun: &str) -> bool {
        self.evidence.is_some_and(|evidence| {
            evidence
                .results
                .iter()
                .any(|result| result.all.contains(noun))
        })
    }

    /// Returns true if the user said a folded word.
    pub(crate) fn is_said_by_user(&self, noun: &str) -> bool {
        self.evidence
            .is_some_and(|evidence| evidence.is_said_by_user(noun))
    }

    /// Returns true if the call's own result is accepted, or, with `all`, one of the others.
    pub(crate) fn any(&self, all: bool, accepts: impl Fn(&ResultWords) -> bool) -> bool {
        self.own().is_some_and(|own| accepts(own))
            || all
                && self.evidence.is_some_and(|evidence| {
                    let others = evidence.about(self.own);
                    others
                        .iter()
                        .filter(|other| evidence.are_about_one(self.own, **other))
                        .any(|other| accepts(&evidence.results[*other]))
                })
    }
}

/// Short values with a digit.
fn collect_short(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| collect_short(value, found)),
        Value::Array(list) => list.iter().for_each(|value| collect_short(value, found)),
        Value::String(text)
            if (2..=64).contains(&text.len())
                && found.len() < MAX_IDENTIFIERS
                && text.contains(|c: char| c.is_ascii_digit())
                && !text.contains(char::is_whitespace) =>
        {
            found.push(text.trim_start_matches('#').to_lowercase());
        }
        Value::Number(number) if found.len() < MAX_IDENTIFIERS => found.push(number.to_string()),
        _ => {}
    }
}
