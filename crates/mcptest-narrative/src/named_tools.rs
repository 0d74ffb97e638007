//! Tools that a message says were used, and that were not called.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::sentences::Sentence;
use crate::tokens::{Kind, Token};
use crate::tool_words::READING;
use crate::verbs::tool_verb;
use crate::words::{MODALS, NEGATIONS, is_adverb, is_determiner};
use mcptest_catalog::lexical;
use mcptest_trace::trace::TraceView;

/// Verbs of using a tool, in the past.
const USED: &[&str] = &[
    "used",
    "called",
    "invoked",
    "ran",
    "executed",
    "triggered",
    "queried",
];
/// Words before a tool that did something.
const BY: &[&str] = &["using", "via", "with", "through", "by"];
/// Nouns for a tool.
const TOOL: &[&str] = &["tool", "function", "api", "endpoint", "command"];

/// A tool that was named and not called: its name, and the sentence.
pub(crate) fn uncalled<'s>(
    trace: &TraceView<'_>,
    sentences: &'s [Sentence],
) -> Vec<(String, &'s Sentence)> {
    let mut found: Vec<(String, &Sentence)> = Vec::new();
    let mut known: Option<Known> = None;
    for sentence in sentences {
        for name in named(sentence) {
            let known = known.get_or_insert_with(|| Known::new(trace));
            if !known.was_called(&name.text, name.certain)
                && found.iter().all(|(other, _)| *other != name.text)
            {
                found.push((name.text, sentence));
            }
        }
    }
    found
}

struct Named {
    text: String,
    /// True if the message calls it a tool.
    certain: bool,
}

/// The tools that a sentence says were used.
fn named(sentence: &Sentence) -> Vec<Named> {
    let tokens = &sentence.tokens;
    let unreal = sentence.question
        || sentence.unreal
        || tokens.iter().any(|token| {
            token.is_any(MODALS) || token.is_any(NEGATIONS) || token.is_any(&["if", "unless"])
        });
    if unreal {
        return Vec::new();
    }
    (0..tokens.len())
        .filter_map(|at| {
            let token = &tokens[at];
            if !is_identifier(token) {
                return None;
            }
            let called = tokens.get(at + 1).is_some_and(|next| next.is_any(TOOL));
            let mut place = at;
            while let Some(before) = place.checked_sub(1).map(|place| &tokens[place]) {
                if is_determiner(before) || is_adverb(before) || before.is_any(TOOL) {
                    place -= 1;
                } else {
                    break;
                }
            }
            // "`send_email` was called"
            let passive = tokens
                .get(at + 1)
                .is_some_and(|next| next.is_any(&["was", "were"]))
                && tokens
                    .get(at + 2)
                    .is_some_and(|next| next.is_any(USED) || next.is("run"));
            if passive && is_tool_shaped(&token.text) {
                return Some(Named {
                    text: token.text.clone(),
                    certain: called,
                });
            }
            let cue = &tokens[place.checked_sub(1)?];
            // "required to add her using the create_event tool"
            let wished = tokens[..place - 1].iter().any(|token| {
                token.is_any(&[
                    "required",
                    "missing",
                    "necessary",
                    "requires",
                    "try",
                    "trying",
                ])
            });
            if wished {
                return None;
            }
            let mine = place
                .checked_sub(2)
                .is_some_and(|place| tokens[place].is_any(&["i", "we", "have", "then", "also"]));
            // "I ran freeze_card to protect the account"
            let purposeful = mine
                && (cue.is_any(&["called", "invoked", "ran", "executed"])
                    || tokens
                        .get(at + 1)
                        .is_some_and(|next| next.is_any(&["to", "for", "on"])));
            if cue.is_any(USED) && purposeful && token.text.contains('_') {
                return Some(Named {
                    text: token.text.clone(),
                    certain: called,
                });
            }
            let used = cue.is_any(USED) && place >= 2 && !tokens[place - 2].is("you");
            let by = cue.is_any(BY);
            let shaped = is_tool_shaped(&token.text);
            (used && (called || shaped) || by && (called || cue.is("using") && shaped)).then(|| {
                Named {
                    text: token.text.clone(),
                    certain: called,
                }
            })
        })
        .collect()
}

/// Returns true if a token is written like the name of a tool: `send_email`, `sendEmail`.
fn is_identifier(token: &Token) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    let snake = token.text.contains('_');
    let camel = token.text.starts_with(|c: char| c.is_ascii_lowercase())
        && token.text.contains(|c: char| c.is_ascii_uppercase());
    matches!(token.kind, Kind::Word | Kind::Identifier)
        && (5..=80).contains(&token.text.len())
        && token.text.chars().all(plain)
        && (snake || camel)
}

/// Returns true if a name starts with what a tool does.
fn is_tool_shaped(name: &str) -> bool {
    let words = lexical::words(name);
    words.len() >= 2
        && words.iter().take(2).any(|word| {
            READING.contains(&word.as_str())
                || tool_verb(word).is_some()
                || matches!(word.as_str(), "run" | "click" | "call")
        })
}

/// The names that a run knows.
struct Known {
    called: BTreeSet<String>,
    /// All text of arguments, in lowercase.
    arguments: String,
}

/// The length of the arguments that are searched for names.
const MAX_LENGTH: usize = 200_000;

impl Known {
    fn new(trace: &TraceView<'_>) -> Self {
        let mut arguments = String::new();
        for call in &trace.tool_calls {
            if let Some(args) = call.args() {
                collect(args, &mut arguments);
            }
        }
        Self {
            called: trace
                .tool_calls
                .iter()
                .map(|call| normal(call.name()))
                .collect(),
            arguments,
        }
    }

    /// Returns true if a tool was called, directly or through another, or if code names it.
    fn was_called(&self, name: &str, certain: bool) -> bool {
        let own = normal(name);
        self.called.iter().any(|called| {
            *called == own
                || own.ends_with(called.as_str()) && !called.is_empty()
                || called.ends_with(&own)
                || !certain && called.contains(&own)
        }) || self.arguments.contains(&name.to_lowercase())
    }
}

fn collect(value: &Value, text: &mut String) {
    if text.len() > MAX_LENGTH {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                text.push_str(&key.to_lowercase());
                text.push(' ');
                collect(value, text);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, text)),
        Value::String(own) => {
            text.extend(own.chars().take(MAX_LENGTH).flat_map(char::to_lowercase));
            text.push(' ');
        }
        _ => {}
    }
}

fn normal(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
