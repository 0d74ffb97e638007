//! The recorded calls that can be the action of a claim.

use std::collections::BTreeSet;

use serde_json::Value;

use super::claims::Claim;
use super::verbs::{EXECUTING, Form, fold, related, verb_of};
use mcptest_catalog::lexical;
use mcptest_trace::trace::ToolCallView;

/// Nouns that can mean anything that a call did.
#[rustfmt::skip]
const GENERAL: &[&str] = &[
    "change", "detail", "information", "request", "modification", "thing", "correction", "fix", "action", "operation",
    "adjustment", "setting",
];

/// First words of tools that only look.
#[rustfmt::skip]
const READING: &[&str] = &[
    "get", "list", "search", "read", "fetch", "find", "query", "show", "view", "check", "lookup", "count", "describe",
    "retrieve",
];

/// Verbs that can take what a tool is named after as their object: "the refund was sent" after
/// `refund_order`.
const DOING: &[&str] = &[
    "create", "add", "send", "post", "put", "set", "insert", "write",
];

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
    /// The words of the name, in lower case.
    plain: Vec<String>,
    /// The same, folded.
    name: BTreeSet<String>,
    keys: BTreeSet<String>,
    values: BTreeSet<String>,
    /// Values of one word, such as `closed`.
    states: BTreeSet<String>,
    /// True if the tool counts as a write.
    pub mutating: bool,
    /// True if the call cannot be an action: by its first word, unless the suite lists the tool as
    /// mutating.
    only_looks: bool,
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
        .any(|word| verb_of(word).is_some_and(|(lemma, _)| lemma == word))
}

impl CallWords {
    pub(crate) fn new(call: &ToolCallView<'_>, listed: Listed) -> Self {
        let plain = lexical::words(call.name());
        let reads = plain
            .first()
            .is_some_and(|first| READING.contains(&first.as_str()));
        Self {
            name: plain.iter().map(|word| fold(word)).collect(),
            plain,
            keys: BTreeSet::new(),
            values: BTreeSet::new(),
            states: BTreeSet::new(),
            mutating: match listed {
                Listed::Mutating => true,
                Listed::Readonly => false,
                Listed::Nowhere => is_mutating_name(call.name()),
            },
            only_looks: reads && listed != Listed::Mutating,
        }
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

    /// Returns the fit if the call can be the claimed action.
    pub(crate) fn fits(&self, claim: &Claim) -> Option<Fit> {
        // In `get_post` the post is a thing.
        if self.only_looks {
            return None;
        }
        let says_verb = self.plain.iter().any(|word| {
            word == claim.verb
                || verb_of(word).is_some_and(|(own, form)| own == claim.verb && form != Form::Base)
        });
        if says_verb {
            return self.concerns(claim).then_some(Fit::Exact);
        }
        let is_related = self.is_any(related(claim.verb)) || self.states.contains(claim.verb);
        let fits = is_related && self.concerns(claim)
            || self.is_named_after(claim)
            || self.changes_whole(claim)
            || self.executes(claim);
        fits.then_some(Fit::Related)
    }

    fn is_any(&self, words: &[&str]) -> bool {
        self.plain.iter().any(|word| words.contains(&word.as_str()))
    }

    /// `refund_order`, and "the refund was sent".
    fn is_named_after(&self, claim: &Claim) -> bool {
        DOING.contains(&claim.verb)
            && self.plain.len() > 1
            && self.plain.first().is_some_and(|first| {
                let first = fold(first);
                claim.nouns.iter().any(|noun| fold(noun) == first)
            })
    }

    /// `add_to_cart`, and "the cart was updated".
    fn changes_whole(&self, claim: &Claim) -> bool {
        ["update", "edit"].contains(&claim.verb)
            && self.is_any(&["add", "remove", "insert", "append"])
            && self.plain.windows(2).any(|pair| {
                ["to", "from", "into", "in"].contains(&pair[0].as_str())
                    && claim.nouns.iter().any(|noun| fold(noun) == fold(&pair[1]))
            })
    }

    /// Code can do anything; it is enough that it mentions the thing.
    fn executes(&self, claim: &Claim) -> bool {
        self.is_any(&EXECUTING)
            && claim
                .nouns
                .iter()
                .any(|noun| self.values.contains(&fold(noun)))
    }

    fn concerns(&self, claim: &Claim) -> bool {
        // A tool named just `send` does not name what it sends.
        let verb_only = self.plain.iter().all(|word| verb_of(word).is_some());
        verb_only
            || claim.nouns.is_empty()
            || claim
                .nouns
                .iter()
                .any(|noun| self.concerns_noun(&fold(noun)))
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
mod tests {
    use serde_json::json;

    use super::*;
    use mcptest_trace::trace::ToolCall;

    fn fit(verb: &'static str, noun: &str, tool: &str, args: Value) -> Option<Fit> {
        let call = ToolCall {
            args: Some(args.into()),
            ..ToolCall::new(None, tool)
        };
        let nouns = if noun.is_empty() {
            vec![]
        } else {
            vec![noun.to_owned()]
        };
        let claim = Claim {
            verb,
            nouns,
            from: 0,
            to: 0,
        };
        let mut words = CallWords::new(&call, Listed::Nowhere);
        words.add_arguments(&call);
        words.fits(&claim)
    }

    #[test]
    fn every_token_of_the_action_is_in_the_tool() {
        assert_eq!(
            fit("create", "issue", "create_issue", json!({})),
            Some(Fit::Exact)
        );
        assert_eq!(
            fit("create", "issues", "createIssue", json!({})),
            Some(Fit::Exact)
        );
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
        assert_eq!(
            fit("remove", "file", "delete_file", json!({})),
            Some(Fit::Related)
        );
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
        assert_eq!(
            fit("close", "issue", "update_issue", json!({"state": "open"})),
            None
        );
        assert_eq!(
            fit(
                "create",
                "report",
                "write_file",
                json!({"path": "out/report.md"})
            ),
            Some(Fit::Related)
        );
        assert_eq!(
            fit(
                "delete",
                "log",
                "run_shell",
                json!({"command": "rm app.log"})
            ),
            Some(Fit::Related)
        );
        assert_eq!(
            fit("create", "issue", "run_job", json!({"job": "issue"})),
            None
        );
        assert_eq!(
            fit("update", "cart", "add_to_cart", json!({})),
            Some(Fit::Related)
        );
        assert_eq!(fit("update", "item", "add_item_to_cart", json!({})), None);
        assert_eq!(
            fit("send", "refund", "refund_order", json!({})),
            Some(Fit::Related)
        );
        assert_eq!(fit("delete", "refund", "refund_order", json!({})), None);
        assert_eq!(
            fit(
                "delete",
                "record",
                "manage_record",
                json!({"action": "delete"})
            ),
            Some(Fit::Related)
        );
        assert_eq!(
            fit("add", "function", "edit_file", json!({"path": "a.py"})),
            Some(Fit::Related)
        );
        assert_eq!(
            fit("create", "issue", "write_file", json!({"path": "a.py"})),
            None
        );
        assert_eq!(
            fit("update", "address", "modify_user_address", json!({})),
            Some(Fit::Related)
        );
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
        let call = |name: &str| CallWords::new(&ToolCall::new(None, name), Listed::Nowhere);
        assert!(call("create_issue").is_mentioned(&text("I created two issues")));
        assert!(!call("create_issue").is_mentioned(&text("I created it")));
        assert!(call("do_it_now").is_mentioned(&text("now")));
        assert!(!call("ls").is_mentioned(&text("I looked around")));
        assert!(call("ls").is_mentioned(&text("I ran `ls`")));
        assert!(!call("").is_mentioned(&text("anything")));
    }
}
