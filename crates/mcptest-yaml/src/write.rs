//! Values as YAML text, for files that this program writes and people edit.
//!
//! Strings come from servers and recordings, so they may be hostile: the text always
//! reads back as the same value, and a comment never ends before its line does.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The number of columns up to which a list or mapping is written on one line.
const MAX_COLUMNS: usize = 96;

/// The number of columns of a comment.
const COMMENT_COLUMNS: usize = 96;

/// Words that YAML 1.1 or 1.2 does not read as a string.
const RESERVED: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A string, quoted unless it is made of plain words.
#[must_use]
pub fn string(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Returns true for words that YAML reads as they are, also within brackets.
fn is_plain(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    let is_inner = |c: char| is_word(c) || matches!(c, ' ' | '(' | ')' | '\'' | '@' | '+' | '=');
    // A flag, or a word.
    let first = text.trim_start_matches('-');
    let dashes = text.len() - first.len();
    dashes <= 2
        && first.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(is_word)
        && text.chars().all(is_inner)
        && !text.contains("  ")
        && !RESERVED.contains(&text.to_lowercase().as_str())
}

/// A double-quoted string.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_unprintable(c) => {
                // Writing to a String cannot fail.
                let _ = match u32::from(c) {
                    code @ 0..=0xff => write!(out, "\\x{code:02x}"),
                    code @ 0..=0xffff => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Characters that YAML does not allow as they are, or that a reader cannot see.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(
            c,
            '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

/// Doubles the dollar signs before a brace: suites, and the answers of mock manifests, expand
/// `${…}`.
#[must_use]
pub fn escape_references(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let before = rest[..at].trim_end_matches('$');
        let dollars = at - before.len() + 1;
        out.push_str(before);
        out.extend(std::iter::repeat_n('$', 2 * dollars));
        out.push('{');
        rest = &rest[at + 2..];
    }
    out.push_str(rest);
    out
}

/// A value with the references in its strings escaped; keys are never expanded.
#[must_use]
pub fn escape_all_references(value: &Value) -> Value {
    match value {
        Value::String(text) => escape_references(text).into(),
        Value::Array(items) => items.iter().map(escape_all_references).collect(),
        Value::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), escape_all_references(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// A value in flow style, on one line.
#[must_use]
pub fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", string(key), flow(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// Writes `key: value` with this indentation: on one line where it fits, else in block style.
pub fn entry(out: &mut String, indent: usize, key: &str, value: &Value) {
    let start = format!("{:indent$}{}:", "", string(key));
    out.push_str(&start);
    let line = flow(value);
    if fits(&start, &line) || !is_nested(value) {
        let _ = writeln!(out, " {line}");
        return;
    }
    out.push('\n');
    match value {
        Value::Object(entries) => mapping(out, indent + 2, entries),
        Value::Array(items) => sequence(out, indent + 2, items),
        // Scalars were written above.
        _ => {}
    }
}

/// Writes the entries of a mapping in block style.
pub fn mapping(out: &mut String, indent: usize, entries: &Map<String, Value>) {
    for (key, value) in entries {
        entry(out, indent, key, value);
    }
}

/// Writes the items of a list in block style.
pub fn sequence(out: &mut String, indent: usize, items: &[Value]) {
    for item in items {
        let start = format!("{:indent$}- ", "");
        let line = flow(item);
        match item {
            Value::Object(entries) if !entries.is_empty() && !fits(&start, &line) => {
                let mut inner = String::new();
                mapping(&mut inner, indent + 2, entries);
                // The first line follows the dash.
                out.push_str(&start);
                out.push_str(&inner[indent + 2..]);
            }
            _ => {
                let _ = writeln!(out, "{start}{line}");
            }
        }
    }
}

fn fits(start: &str, line: &str) -> bool {
    start.chars().count() + 1 + line.chars().count() <= MAX_COLUMNS
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(entries) => !entries.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Writes lines of comment, wrapped, each with this indentation. Line breaks of the text stay;
/// characters that end a line or cannot be seen are escaped.
pub fn comment(out: &mut String, indent: usize, text: &str) {
    let columns = COMMENT_COLUMNS.saturating_sub(indent).max(40);
    for line in text.split('\n') {
        let line = visible(line);
        let rest = line.trim_start();
        let inner = line.len() - rest.len();
        let mut written = String::new();
        for word in rest.split(' ').filter(|word| !word.is_empty()) {
            let width = written.chars().count() + 1 + word.chars().count();
            if !written.is_empty() && inner + width > columns {
                let _ = writeln!(out, "{:indent$}# {:inner$}{written}", "", "");
                written.clear();
            }
            if !written.is_empty() {
                written.push(' ');
            }
            written.push_str(word);
        }
        let line = format!("{:indent$}# {:inner$}{written}", "", "");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn visible(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if c == '\t' {
            out.push(' ');
        } else if is_unprintable(c) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{Document, DocumentLimits};

    fn read(text: &str) -> Value {
        Document::parse("t.yml", text.as_bytes(), &DocumentLimits::default())
            .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
            .root()
            .to_json()
    }

    #[test]
    fn strings_are_quoted_where_yaml_would_read_something_else() {
        for (text, expected) in [
            ("weather.get", "weather.get"),
            (
                "Get the weather (of a city) now.",
                "Get the weather (of a city) now.",
            ),
            ("--tools-from", "--tools-from"),
            ("-y", "-y"),
            ("- y", "\"- y\""),
            ("-1", "\"-1\""),
            ("a  b", "\"a  b\""),
            ("a, b", "\"a, b\""),
            ("a ", "\"a \""),
            ("a #b", "\"a #b\""),
            ("No", "\"No\""),
            ("true", "\"true\""),
            ("12", "\"12\""),
            ("a: b", "\"a: b\""),
            ("", "\"\""),
            ("a\u{1}\u{202e}\u{1f600}", "\"a\\x01\\u202e\u{1f600}\""),
            ("\u{e0041}", "\"\\U000e0041\""),
        ] {
            assert_eq!(string(text), expected);
        }
    }

    #[test]
    fn references_are_escaped() {
        assert_eq!(escape_references("${HOME} $${x} $5"), "$${HOME} $$$${x} $5");
        assert_eq!(
            escape_all_references(&json!({"a": ["${b}"], "${k}": 1})),
            json!({"a": ["$${b}"], "${k}": 1})
        );
    }

    #[test]
    fn long_values_are_blocks_and_short_ones_lines() {
        let mut out = String::new();
        let long = "x".repeat(60);
        let value = json!({
            "short": {"type": "string"},
            "list": [{"name": long, "other": long}, [], "plain"],
            "deep": {"a": {"b": [long, long]}}
        });
        entry(&mut out, 0, "top", &value);
        assert_eq!(
            out,
            format!(
                "top:\n  short: {{ type: string }}\n  list:\n    - name: {long}\n      other: {long}\n    - []\n    - plain\n  deep:\n    a:\n      b:\n        - {long}\n        - {long}\n"
            )
        );
        assert_eq!(read(&out), json!({ "top": value }));
    }

    #[test]
    fn a_comment_stays_a_comment() {
        let mut out = String::new();
        let hostile = "one\r\ntools: []\u{85}x: 1\u{2028}y: 2\n  indented \u{202e}\t# more";
        comment(&mut out, 2, hostile);
        assert_eq!(
            out,
            "  # one\\u{d}\n  # tools: []\\u{85}x: 1\\u{2028}y: 2\n  #   indented \\u{202e} # more\n"
        );
        assert!(out.lines().all(|line| line.starts_with("  # ")));
        let mut long = String::new();
        comment(&mut long, 0, &"word ".repeat(50));
        assert_eq!(long.lines().count(), 3, "{long}");
        assert!(long.lines().all(|line| line.len() <= 98), "{long}");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,60}".prop_map(Value::from),
            "[ -~\\n\\t\\u{85}\\u{2028}#:{}\\[\\]&*!|>'\"%@`,?-]{0,80}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ -~]{0,12}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in values(), indent in 0usize..3) {
            let mut out = String::from("first:\n");
            entry(&mut out, 2 + indent, "key", &value);
            comment(&mut out, indent, "the end");
            prop_assert_eq!(read(&out), json!({"first": {"key": value}}), "{}", out);
        }

        #[test]
        fn every_line_of_a_comment_is_one(text in "\\PC*|[\\x00-\\x1f\\x7f-\\u{9f}\\u{2028}\\u{2029}a-z: ]*") {
            let mut out = String::new();
            comment(&mut out, 0, &text);
            let document = format!("key: value\n{out}");
            prop_assert_eq!(read(&document), json!({"key": "value"}), "{}", out);
        }
    }
}
