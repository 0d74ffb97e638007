//! Which recorded calls can be what a claim speaks of.

use std::collections::BTreeSet;

use serde_json::Value;

use super::claims::Claim;
use super::verbs::{CHANGING, EXECUTING, Form, fold, related, verb_of};
use crate::lexical;
use crate::trace::ToolCall;

/// Nouns that can stand for whatever a call did.
const GENERAL: [&str; 12] = [
    "change",
    "detail",
    "information",
    "request",
    "modification",
    "thing",
    "correction",
    "fix",
    "action",
    "operation",
    "adjustment",
    "setting",
];

/// First words of tools that only look.
const READING: [&str; 14] = [
    "get", "list", "search", "read", "fetch", "find", "query", "show", "view", "check", "lookup", "count", "describe",
    "retrieve",
];

/// What files hold.
const DOCUMENTS: [&str; 14] = [
    "report", "document", "summary", "analysis", "guide", "article", "essay", "readme", "script", "note", "plan",
    "draft", "template", "letter",
];

/// How much of an argument's text names things; what comes later is content.
const NAME_LENGTH: usize = 200;

/// The words of a recorded call.
#[derive(Debug)]
pub(crate) struct CallWords {
    /// The words of the name, in lower case.
    plain: Vec<String>,
    /// The same, folded.
    name: BTreeSet<String>,
    keys: BTreeSet<String>,
    values: BTreeSet<String>,
    /// Whether the tool counts as a write.
    pub mutating: bool,
    /// Whether the suite says that it is one.
    listed: bool,
}

/// How well a call answers a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// By another word for the same deed.
    Related,
    /// The tool's name has the claimed verb.
    Exact,
}

/// Whether a name contains a mutating verb as a whole word.
pub(crate) fn is_mutating_name(name: &str) -> bool {
    lexical::words(name)
        .iter()
        .any(|word| verb_of(word).is_some_and(|(lemma, _)| lemma == word))
}

impl CallWords {
    /// `listed`: the suite says that the tool is a write.
    pub(crate) fn new(call: &ToolCall, mutating: bool, listed: bool) -> Self {
        let plain = lexical::words(call.name());
        let mut keys = BTreeSet::new();
        let mut values = BTreeSet::new();
        if let Some(args) = &call.args {
            collect(args, &mut keys, &mut values);
        }
        Self {
            name: plain.iter().map(|word| fold(word)).collect(),
            plain,
            keys,
            values,
            mutating,
            listed,
        }
    }

    /// Whether the text names the call: every word of three or more letters of its name is there. A name with none so long needs all.
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

    /// Whether the call can be what the claim speaks of.
    pub(crate) fn fits(&self, claim: &Claim) -> Option<Fit> {
        let says = |lemma: &str| {
            self.plain.iter().any(|word| {
                word == lemma || verb_of(word).is_some_and(|(own, form)| own == lemma && form != Form::Base)
            })
        };
        // In `get_post` the post is a thing.
        if self
            .plain
            .first()
            .is_some_and(|first| READING.contains(&first.as_str()))
            && !self.listed
        {
            return None;
        }
        let is_any = |words: &[&str]| self.plain.iter().any(|word| words.contains(&word.as_str()));
        let fit = if says(claim.verb) {
            Fit::Exact
        } else if self.mutating
            && (is_any(related(claim.verb)) || is_any(&CHANGING) && self.values.contains(claim.verb))
        {
            Fit::Related
        } else if is_any(&EXECUTING) && !claim.nouns.is_empty() {
            // Code can do anything; that it speaks of the thing is all that can be seen.
            return claim
                .nouns
                .iter()
                .any(|noun| self.values.contains(&fold(noun)))
                .then_some(Fit::Related);
        } else {
            return None;
        };
        self.concerns(claim).then_some(fit)
    }

    fn concerns(&self, claim: &Claim) -> bool {
        // A tool called just `send` says nothing about what it sends.
        let verb_only = self.plain.iter().all(|word| verb_of(word).is_some());
        verb_only
            || claim.nouns.is_empty()
            || claim.nouns.iter().any(|noun| {
                let noun = fold(noun);
                GENERAL.iter().any(|general| fold(general) == noun)
                    || self.name.contains(&noun)
                    || self.keys.contains(&noun)
                    || self.values.contains(&noun)
                    || self.name.contains(&fold("file")) && DOCUMENTS.iter().any(|document| fold(document) == noun)
                    || noun == "pr" && self.name.contains("pull") && self.name.contains("request")
            })
    }
}

fn collect(args: &Value, keys: &mut BTreeSet<String>, values: &mut BTreeSet<String>) {
    match args {
        Value::Object(map) => {
            for (key, value) in map {
                keys.extend(lexical::words(key).iter().map(|word| fold(word)));
                collect(value, keys, values);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, keys, values)),
        Value::String(text) => {
            let head: String = text.chars().take(NAME_LENGTH).collect();
            values.extend(lexical::words(&head).iter().map(|word| fold(word)));
        }
        _ => {}
    }
}

/// The calls that answer a claim best: those with its verb, or else those with a related one.
pub(crate) fn matching(claim: &Claim, calls: &[CallWords]) -> Option<(Fit, Vec<usize>)> {
    let fits: Vec<(usize, Fit)> = calls
        .iter()
        .enumerate()
        .filter_map(|(index, call)| Some((index, call.fits(claim)?)))
        .collect();
    let best = fits.iter().map(|(_, fit)| *fit).max()?;
    let indices = fits
        .iter()
        .filter(|(_, fit)| *fit == best)
        .map(|(index, _)| *index)
        .collect();
    Some((best, indices))
}

/// Whether an action is one of a tool that the suite calls read-only.
pub(crate) fn is_of_tool(claim: &Claim, tool: &str) -> bool {
    let tool: BTreeSet<String> = lexical::words(tool).iter().map(|word| fold(word)).collect();
    tool.contains(claim.verb) && claim.nouns.first().is_none_or(|noun| tool.contains(&fold(noun)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fit(verb: &'static str, noun: &str, tool: &str, args: Value) -> Option<Fit> {
        let call = ToolCall {
            args: Some(args),
            ..ToolCall::new(None, tool)
        };
        let nouns = if noun.is_empty() { vec![] } else { vec![noun.to_owned()] };
        let claim = Claim {
            verb,
            nouns,
            from: 0,
            to: 0,
        };
        CallWords::new(&call, is_mutating_name(tool), false).fits(&claim)
    }

    #[test]
    fn every_token_of_the_action_is_in_the_tool() {
        assert_eq!(fit("create", "issue", "create_issue", json!({})), Some(Fit::Exact));
        assert_eq!(fit("create", "issues", "createIssue", json!({})), Some(Fit::Exact));
        assert_eq!(
            fit("update", "flight", "update_reservation_flights", json!({})),
            Some(Fit::Exact)
        );
        assert_eq!(fit("create", "branch", "create_issue", json!({})), None);
        assert_eq!(fit("delete", "issue", "create_issue", json!({})), None);
        assert_eq!(fit("create", "issue", "update_issue", json!({})), None);
        assert_eq!(fit("close", "issue", "get_issue", json!({})), None);
        assert_eq!(fit("publish", "post", "get_post", json!({})), None);
    }

    #[test]
    fn another_word_for_the_same_deed() {
        assert_eq!(fit("remove", "file", "delete_file", json!({})), Some(Fit::Related));
        assert_eq!(
            fit("add", "bags", "update_reservation_baggages", json!({})),
            Some(Fit::Related)
        );
        assert_eq!(
            fit("add", "label", "update_issue", json!({"labels": ["x"]})),
            Some(Fit::Related)
        );
        assert_eq!(
            fit("close", "issue", "update_issue", json!({"state": "closed"})),
            Some(Fit::Related)
        );
        assert_eq!(fit("close", "issue", "update_issue", json!({"state": "open"})), None);
        assert_eq!(
            fit("create", "report", "write_file", json!({"path": "out/report.md"})),
            Some(Fit::Related)
        );
        assert_eq!(
            fit("delete", "log", "run_shell", json!({"command": "rm app.log"})),
            Some(Fit::Related)
        );
        assert_eq!(fit("create", "issue", "run_job", json!({"job": "issue"})), None);
        assert_eq!(fit("send", "", "send_mail", json!({})), Some(Fit::Exact));
        assert_eq!(fit("send", "invoice", "send", json!({})), Some(Fit::Exact));
    }

    #[test]
    fn mutating_names_have_a_whole_verb() {
        assert!(is_mutating_name("create_issue"));
        assert!(is_mutating_name("post_search"));
        assert!(is_mutating_name("repoDelete"));
        assert!(!is_mutating_name("list_posts"));
        assert!(!is_mutating_name("get_settings"));
        assert!(!is_mutating_name("run_job"));
        assert!(!is_mutating_name(""));
    }

    #[test]
    fn mention_needs_every_salient_word() {
        let text = |text: &str| {
            lexical::words(text)
                .iter()
                .map(|word| fold(word))
                .collect::<BTreeSet<_>>()
        };
        let call = |name: &str| CallWords::new(&ToolCall::new(None, name), true, false);
        assert!(call("create_issue").is_mentioned(&text("I created two issues")));
        assert!(!call("create_issue").is_mentioned(&text("I created it")));
        assert!(call("do_it_now").is_mentioned(&text("now")));
        assert!(!call("ls").is_mentioned(&text("I looked around")));
        assert!(call("ls").is_mentioned(&text("I ran `ls`")));
        assert!(!call("").is_mentioned(&text("anything")));
    }
}
