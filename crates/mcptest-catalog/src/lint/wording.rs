//! Sentences for fixes, built from a tool's own name and schema.
//!
//! A fix must not invent facts: everything that only the author knows is a placeholder in angle
//! brackets.

use std::borrow::Cow;

use serde_json::Value;

use super::{chars, description, schema, verbs};
use mcptest_trace::catalog::Tool;

/// The longest description that DESC-002 accepts, in characters.
pub(super) const MAX_DESCRIPTION: usize = 500;
/// A description with more characters is not repeated as a whole in a fix.
const MAX_REPEATED: usize = 2000;

/// The kind of action that a tool's name suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Reads one thing.
    Read,
    /// Reads several things.
    List,
    /// Adds something.
    Create,
    /// Changes something.
    Change,
    /// Removes something.
    Delete,
    /// Anything else.
    Other,
}

const READ: &str = "get read fetch describe show view check count retrieve inspect explain compare calculate \
     compute validate verify lookup analyze analyse preview detect estimate export download";
const LIST: &str = "list search find query browse enumerate scan discover";
const CREATE: &str = "create add insert post generate append build make register book schedule";
const CHANGE: &str = "update edit set modify rename move patch replace write push merge assign \
     toggle enable disable configure upsert";
const DELETE: &str = "delete remove drop clear purge erase uninstall";

/// The words of a name, lowercase: `list`, `pull`, `requests` for `listPullRequests`.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before: Option<char> = None;
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() {
            let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
            let starts = match before {
                Some(before) if before.is_alphanumeric() => {
                    character.is_uppercase()
                        && (before.is_lowercase() || (before.is_uppercase() && next_is_lower))
                }
                _ => true,
            };
            if starts {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(character.to_lowercase());
            }
        }
        before = Some(character);
    }
    words
}

/// The verb of a tool's name, and the words for what it acts on: `list` and `pull requests`. Verbs
/// of a known action come first: `monitor_list` lists monitors.
fn parts(tool: &Tool) -> (Option<String>, String) {
    let words = words(tool.name());
    let has_action = |word: &String| action_of(word) != Action::Other;
    let verb = words
        .iter()
        .position(has_action)
        .or_else(|| words.iter().position(|word| verbs::is_verb(word)));
    let Some(at) = verb else {
        return (None, words.join(" "));
    };
    let mut object = &words[at + 1..];
    // `create_or_update_file` acts on a file.
    if let [link, _, rest @ ..] = object
        && (link == "or" || link == "and")
    {
        object = rest;
    }
    if object.is_empty() && at > 0 {
        object = &words[at - 1..at];
    }
    (Some(words[at].clone()), object.join(" "))
}

/// The kind of action that a tool's name suggests.
pub(super) fn action(tool: &Tool) -> Action {
    action_of(&parts(tool).0.unwrap_or_default())
}

fn action_of(verb: &str) -> Action {
    let has = |list: &str| list.split_whitespace().any(|word| word == verb);
    [
        (LIST, Action::List),
        (READ, Action::Read),
        (CREATE, Action::Create),
        (CHANGE, Action::Change),
        (DELETE, Action::Delete),
    ]
    .into_iter()
    .find(|(list, _)| has(list))
    .map_or(Action::Other, |(_, action)| action)
}

/// The verb of a tool's name with a capital letter; a placeholder if it has none.
pub(super) fn verb(tool: &Tool) -> String {
    parts(tool)
        .0
        .map_or_else(|| "<Verb>".to_owned(), |verb| capitalized(&verb))
}

/// The name as the beginning of a sentence: `List pull requests`.
fn phrase(tool: &Tool) -> String {
    match parts(tool) {
        (Some(verb), object) if object.is_empty() => {
            format!("{} <what>", capitalized(&verb))
        }
        (Some(verb), object) => format!("{} {object}", capitalized(&verb)),
        (None, object) if object.is_empty() => "<Verb and object>".to_owned(),
        (None, object) => format!("<Verb> {object}"),
    }
}

/// A whole description: the author's text if it adds to the name, else the name as a sentence,
/// then what only the author knows.
pub(super) fn whole_description(tool: &Tool, own: Option<&str>) -> String {
    let start = match own {
        Some(own) if !own.is_empty() => {
            let own = own.trim_end_matches(['.', ' ']);
            format!("{own}. Use it <when, and when not>.")
        }
        _ => format!("{} <of what, and when to use it>.", phrase(tool)),
    };
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let declared = schema::properties(root);
    let needs: Vec<String> = schema::required(root)
        .into_iter()
        .filter(|name| declared.iter().any(|(known, _)| known == name))
        .take(3)
        .map(|name| format!("`{name}`"))
        .collect();
    let needs = match needs.as_slice() {
        [] => String::new(),
        needs => format!(" Needs {}.", joined(needs)),
    };
    format!("{start}{needs} {}", returns(tool))
}

/// The sentence about the result.
pub(super) fn returns(tool: &Tool) -> String {
    let output = tool.raw().get("outputSchema").unwrap_or(&Value::Null);
    let fields: Vec<String> = schema::properties(output)
        .into_iter()
        .take(4)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if !fields.is_empty() {
        return format!("Returns {}.", joined(&fields));
    }
    let object = match parts(tool).1 {
        object if object.is_empty() => "results".to_owned(),
        object => object,
    };
    let guess = match action(tool) {
        Action::List => format!("a list of {object}: which fields each has, in what order"),
        Action::Read => format!("the {object}: which fields, in what format"),
        Action::Create => format!("the new {object}: its id and which other fields"),
        Action::Change => format!("the changed {object}, or only a confirmation"),
        Action::Delete => {
            format!("a confirmation, and what happens if the {object} does not exist")
        }
        Action::Other => "what comes back, in what format".to_owned(),
    };
    format!("Returns <{guess}>.")
}

/// The description as a fix repeats it: its first sentences if it is very long.
pub(super) fn repeatable(tool: &Tool) -> Cow<'_, str> {
    let text = description(tool);
    // A byte is at most a character.
    if text.len() > MAX_REPEATED && chars(text) > MAX_REPEATED {
        Cow::Owned(lead(text, MAX_DESCRIPTION))
    } else {
        Cow::Borrowed(text)
    }
}

/// The description with a sentence appended.
pub(super) fn with_sentence(tool: &Tool, sentence: &str) -> String {
    let text = repeatable(tool);
    let stop = if text.ends_with(['.', '!', '?', ':']) {
        ""
    } else {
        "."
    };
    format!("{text}{stop} {sentence}")
}

/// A description of an argument: what its name says, and a placeholder for what it does not.
pub(super) fn argument(name: &str, property: &Value) -> String {
    let words = words(name);
    let subject = match words.is_empty() {
        true => "<What it is>".to_owned(),
        false => capitalized(&words.join(" ")),
    };
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let open = if schema::is_type(property, "array") {
        "what each element is, and how many are allowed"
    } else if has(&["path", "file", "filename", "folder", "directory", "dir"]) {
        "absolute, or relative to what"
    } else if has(&[
        "id", "ids", "key", "uuid", "number", "cursor", "token", "ref",
    ]) {
        "of what, and which tool returns it"
    } else if has(&["query", "q", "filter", "pattern", "expression", "search"]) {
        "what is searched, in what syntax"
    } else if has(&[
        "date",
        "time",
        "start",
        "end",
        "since",
        "until",
        "timestamp",
    ]) {
        "in what format and time zone"
    } else if has(&["url", "uri", "link", "href"]) {
        "of what, with which schemes"
    } else if schema::is_type(property, "boolean") {
        "what is different if it is true"
    } else if schema::is_type(property, "object") {
        "which keys it has"
    } else if schema::is_type(property, "number") || schema::is_type(property, "integer") {
        "of what, in what unit and range"
    } else {
        "of what, in what format"
    };
    format!("{subject}: <{open}>.")
}

/// The annotations that the verb of the name suggests; hints that it does not are placeholders.
pub(super) fn annotations(tool: &Tool) -> &'static str {
    match action(tool) {
        Action::List | Action::Read => r#""annotations": {"readOnlyHint": true}"#,
        Action::Create => {
            r#""annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": <true or false>}"#
        }
        Action::Change => {
            r#""annotations": {"readOnlyHint": false, "destructiveHint": <true or false>, "idempotentHint": <true or false>}"#
        }
        Action::Delete => {
            r#""annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": <true or false>}"#
        }
        Action::Other => {
            r#""annotations": {"readOnlyHint": <true or false>, "destructiveHint": <true or false>}"#
        }
    }
}

/// The beginning of a string, in at most this number of characters and with collapsed whitespace:
/// the first paragraph, the next one too if the first is short, and whole sentences of it.
pub(super) fn lead(text: &str, max: usize) -> String {
    let mut kept = String::new();
    for paragraph in paragraphs(text) {
        if kept.chars().count() >= SHORT_PARAGRAPH {
            break;
        }
        // A heading has no meaning without its text.
        if paragraph.starts_with('#') || paragraph.ends_with([':', '*']) {
            continue;
        }
        let marks = |one: char| one.is_ascii_digit() || "-*•.) ".contains(one);
        let paragraph = match begins_entry(&paragraph) {
            true => paragraph.trim_start_matches(marks),
            false => paragraph.as_str(),
        };
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(paragraph);
    }
    if kept.chars().count() <= max {
        return kept;
    }
    let stops = kept.match_indices(". ").map(|(at, _)| at + 1);
    let fits = |end: &usize| kept[..*end].chars().count() <= max;
    match stops.take_while(fits).last() {
        Some(end) => kept[..end].to_owned(),
        None => mcptest_json::text::shorten(&kept, max),
    }
}

/// A first paragraph below this length is not enough.
const SHORT_PARAGRAPH: usize = 80;

/// Returns true for the beginning of a heading or of an entry of a list.
fn begins_entry(line: &str) -> bool {
    line.starts_with(['-', '*', '#', '•', '<', '`'])
        || line.starts_with(|first: char| first.is_ascii_digit())
}

/// The paragraphs of a string: an empty line, a heading and an entry of a list begin a new one.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut begins = true;
    for line in text.lines() {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_entry = begins_entry(&line);
        match paragraphs.last_mut() {
            Some(last) if !begins && !is_entry && !line.is_empty() => {
                last.push(' ');
                last.push_str(&line);
            }
            _ if line.is_empty() => {}
            _ => paragraphs.push(line.clone()),
        }
        begins = line.is_empty();
    }
    paragraphs
}

/// `a, b and c`.
pub(super) fn joined(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(listed: Value) -> Tool {
        Tool::from_listing(None, &listed).unwrap()
    }

    #[test]
    fn names_are_split_into_words() {
        for (name, wanted) in [
            ("list_pull-requests", vec!["list", "pull", "requests"]),
            ("getHTTPHeaders", vec!["get", "http", "headers"]),
            ("API-post-page", vec!["api", "post", "page"]),
            ("", vec![]),
        ] {
            assert_eq!(words(name), wanted, "{name}");
        }
    }

    #[test]
    fn sentences_say_only_what_the_tool_says() {
        let list = tool(json!({"name": "github_list_issues"}));
        assert_eq!(action(&list), Action::List);
        assert_eq!(
            returns(&tool(json!({"name": "firecrawl_monitor_list"}))),
            "Returns <a list of monitor: which fields each has, in what order>."
        );
        assert_eq!(
            returns(&tool(json!({"name": "create_or_update_file"}))),
            "Returns <the new file: its id and which other fields>."
        );
        assert_eq!(
            whole_description(&list, None),
            "List issues <of what, and when to use it>. \
             Returns <a list of issues: which fields each has, in what order>."
        );
        let typed = tool(
            json!({"name": "weather", "outputSchema": {"properties": {"sky": {}, "wind": {}}},
            "inputSchema": {"properties": {"city": {}}, "required": ["city", "ghost"]}}),
        );
        assert_eq!(
            whole_description(&typed, None),
            "<Verb> weather <of what, and when to use it>. Needs `city`. Returns `sky` and `wind`."
        );
        assert_eq!(verb(&typed), "<Verb>");
        assert_eq!(
            annotations(&list),
            r#""annotations": {"readOnlyHint": true}"#
        );
        assert!(
            annotations(&tool(json!({"name": "drop_table"})))
                .contains(r#""destructiveHint": true"#)
        );
        assert_eq!(
            argument("repo_path", &json!({"type": "string"})),
            "Repo path: <absolute, or relative to what>."
        );
    }

    #[test]
    fn a_lead_is_made_of_whole_sentences() {
        assert_eq!(lead("One.  Two\nthree. Four.", 16), "One. Two three.");
        let long = "Search the web for pages that are about a topic, and read the first of them.";
        let text = format!("{long} Fine.\n\n**Usage:**\n- a\n- b");
        assert_eq!(lead(&text, 500), format!("{long} Fine."));
        assert_eq!(
            lead("Short.\n\nLonger one.\n- a", 500),
            "Short. Longer one. a"
        );
        assert_eq!(
            lead("Purpose:\n  1. Find things.\n# More\n", 500),
            "Find things."
        );
        assert_eq!(lead("Onlyonelongword and more", 9).chars().count(), 9);
    }
}
