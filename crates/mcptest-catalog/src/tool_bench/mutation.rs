//! Edits of a description.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::lexical::{content_words, word_spans, words};
use mcptest_json::text::one_line;
use mcptest_trace::catalog::Tool;

/// The replacement of `genericize`: words without content, which match no request.
pub const GENERIC: &str = "Does what it should do.";

/// An edit of one tool's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// The name of the tool. All tools with that name are edited.
    pub tool: String,
    /// The kind of edit.
    pub kind: MutationKind,
}

/// Kinds of edits of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MutationKind {
    /// The description is removed.
    Blank,
    /// The description is replaced by [`GENERIC`].
    Genericize,
    /// The description is truncated.
    Truncate {
        /// The number of characters that are kept.
        chars: u64,
    },
    /// All occurrences of a word are removed, in any case.
    DropKeyword {
        /// The word, in lowercase.
        word: String,
    },
}

impl MutationKind {
    /// The name in the spec.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Genericize => "genericize",
            Self::Truncate { .. } => "truncate",
            Self::DropKeyword { .. } => "drop_keyword",
        }
    }

    /// The description after the edit.
    #[must_use]
    pub fn edit(&self, description: Option<&str>) -> Option<String> {
        match self {
            Self::Blank => None,
            Self::Genericize => Some(GENERIC.to_owned()),
            Self::Truncate { chars } => {
                let most = usize::try_from(*chars).unwrap_or(usize::MAX);
                description.map(|text| text.chars().take(most).collect())
            }
            Self::DropKeyword { word } => description.map(|text| without_word(text, word)),
        }
    }
}

impl Mutation {
    /// The tool after the edit; only its description changes.
    #[must_use]
    pub fn apply(&self, tool: &Tool) -> Tool {
        let mut listed = tool.raw().clone();
        match self.kind.edit(tool.description()) {
            Some(text) => {
                listed.insert("description".to_owned(), text.into());
            }
            None => {
                // The other keys keep their order, which is part of the tool's cost.
                listed.shift_remove("description");
            }
        }
        Tool::from_listing(None, &Value::Object(listed)).unwrap_or_else(|| tool.clone())
    }

    /// All mutations of one tool: its description removed, made generic, cut in half, and without
    /// each of its content words in turn (in alphabetical order).
    #[must_use]
    pub fn all_of(tool: &Tool) -> Vec<Self> {
        let Some(description) = tool.description().filter(|text| !text.is_empty()) else {
            return Vec::new();
        };
        let half = description.chars().count() as u64 / 2;
        [
            MutationKind::Blank,
            MutationKind::Genericize,
            MutationKind::Truncate { chars: half },
        ]
        .into_iter()
        .chain(
            content_words(description)
                .into_iter()
                .map(|word| MutationKind::DropKeyword { word }),
        )
        .map(|kind| Self {
            tool: tool.name().to_owned(),
            kind,
        })
        .collect()
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), one_line(&self.tool))?;
        match &self.kind {
            MutationKind::Blank | MutationKind::Genericize => Ok(()),
            MutationKind::Truncate { chars } => write!(f, " to {chars} characters"),
            MutationKind::DropKeyword { word } => write!(f, " `{}`", one_line(word)),
        }
    }
}

impl Serialize for Mutation {
    /// Writes the mutation as in the spec.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut written = serde_json::Map::new();
        written.insert("tool".into(), self.tool.clone().into());
        written.insert("kind".into(), self.kind.name().into());
        match &self.kind {
            MutationKind::Blank | MutationKind::Genericize => {}
            MutationKind::Truncate { chars } => {
                written.insert("chars".into(), (*chars).into());
            }
            MutationKind::DropKeyword { word } => {
                written.insert("word".into(), word.clone().into());
            }
        }
        written.serialize(serializer)
    }
}

/// The text without a word. Other letters of the same token stay; bare punctuation is removed with
/// the word.
fn without_word(text: &str, word: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for token in text.split_inclusive(char::is_whitespace) {
        let dropped: Vec<_> = word_spans(token)
            .into_iter()
            .filter(|span| words(&token[span.clone()]) == [word])
            .collect();
        if dropped.is_empty() {
            out.push_str(token);
            continue;
        }
        let mut left = String::new();
        let mut from = 0;
        for span in dropped {
            left.push_str(&token[from..span.start]);
            from = span.end;
        }
        left.push_str(&token[from..]);
        if left.chars().any(char::is_alphanumeric) {
            out.push_str(&left);
        }
    }
    if out.len() < text.len() {
        out.truncate(out.trim_end().len());
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_generic_phrase_has_no_content() {
        assert!(content_words(GENERIC).is_empty());
    }

    #[test]
    fn edits() {
        let text = Some("Weather forecast, or getWeather (weather).");
        let drop = |word: &str| MutationKind::DropKeyword { word: word.into() }.edit(text);
        assert_eq!(MutationKind::Blank.edit(text), None);
        assert_eq!(
            MutationKind::Genericize.edit(None).as_deref(),
            Some(GENERIC)
        );
        assert_eq!(
            MutationKind::Truncate { chars: 7 }
                .edit(Some("Größe über alles"))
                .as_deref(),
            Some("Größe ü")
        );
        assert_eq!(
            MutationKind::Truncate { chars: 70 }
                .edit(Some("short"))
                .as_deref(),
            Some("short")
        );
        assert_eq!(MutationKind::Truncate { chars: 70 }.edit(None), None);
        assert_eq!(drop("weather").as_deref(), Some("forecast, or get"));
        assert_eq!(
            drop("forecast").as_deref(),
            Some("Weather or getWeather (weather).")
        );
        assert_eq!(drop("cast").as_deref(), text);
    }

    #[test]
    fn an_edit_changes_only_the_description() {
        let tool = Tool::from_listing(
            Some("s"),
            &json!({"name": "a", "description": "x", "inputSchema": {"z": 1, "a": 2}, "annotations": null}),
        )
        .unwrap();
        let blank = Mutation {
            tool: "a".into(),
            kind: MutationKind::Blank,
        };
        assert_eq!(
            serde_json::to_string(&blank.apply(&tool)).unwrap(),
            r#"{"server":"s","name":"a","inputSchema":{"z":1,"a":2},"annotations":null}"#
        );
    }

    #[test]
    fn all_mutations_of_a_tool() {
        let tool = Tool::from_listing(
            None,
            &json!({"name": "a", "description": "Send mail to a person"}),
        )
        .unwrap();
        let all: Vec<String> = Mutation::all_of(&tool)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            all,
            [
                "blank a",
                "genericize a",
                "truncate a to 10 characters",
                "drop_keyword a `mail`",
                "drop_keyword a `person`",
                "drop_keyword a `send`"
            ]
        );
        assert!(
            Mutation::all_of(&Tool::from_listing(None, &json!({"name": "a"})).unwrap()).is_empty()
        );
    }

    proptest! {
        #[test]
        fn a_dropped_word_is_gone_and_the_others_stay(text in "[a-cA-C ,.()_-]{0,40}", word in "[a-c]") {
            let left = without_word(&text, &word);
            let kept: Vec<String> = words(&text).into_iter().filter(|one| *one != word).collect();
            // Two neighbours of a removed word must not become one word.
            prop_assert_eq!(words(&left), kept);
        }
    }
}
