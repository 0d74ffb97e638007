//! Errors of readers and of detection.

use mcptest_json::text::{one_line, shorten};

use crate::READERS;

/// An error from reading a foreign trace format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The input is not UTF-8.
    #[error("line {line}: not UTF-8 text")]
    NotText {
        /// From 1.
        line: usize,
    },
    /// The input is not JSON.
    #[error("line {line}, column {column}: not valid JSON: {message}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The problem.
        message: String,
    },
    /// The input is empty.
    #[error("the input is empty: expected JSON or JSON Lines")]
    Empty,
    /// The input is larger than a reader takes as a whole.
    #[error(
        "the input has {bytes} bytes, more than the {max} that can be read as a whole: split it, \
         or convert it to JSON Lines"
    )]
    TooLarge {
        /// The size of the input.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// No reader claims the input.
    #[error("unknown trace format: {0}")]
    Unknown(NotClaimed),
    /// Several readers claim the input.
    #[error(
        "ambiguous trace format: {seen}; this can be {}: choose with `--format NAME`",
        alternatives(names)
    )]
    Ambiguous {
        /// The description of the input.
        seen: String,
        /// The names of the formats.
        names: Vec<&'static str>,
    },
    /// `--format` names no format.
    #[error("unknown format `{}`: expected one of {}", shown(.0), names())]
    NoSuchFormat(String),
    /// The input is not of the format that it is read as.
    #[error("line {line}{}: not {format}: {message}", at(pointer))]
    NotThisFormat {
        /// The name of the format.
        format: &'static str,
        /// The line on which the JSON document starts, from 1.
        line: usize,
        /// The JSON pointer of the place in its document; empty for the whole.
        pointer: String,
        /// The expectation and what was found.
        message: String,
    },
    /// A native trace is wrong.
    #[error("line {line}, column {column}: not a trace: {message}")]
    Native {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The problem.
        message: String,
    },
    /// A key of a map (`--map`) does not find what it describes.
    #[error("{}: `{key}` is `{written}`: {}", place.position(), place.message())]
    Map {
        /// The key of the map.
        key: &'static str,
        /// The pointer as the map has it.
        written: String,
        /// The place in the input, and what was found there.
        place: Box<FormatError>,
    },
    /// The input is a damaged archive.
    #[error("not a readable {format} archive: {message}")]
    Archive {
        /// The name of the format.
        format: &'static str,
        /// The problem.
        message: String,
    },
}

impl FormatError {
    /// The line of the error, from 1, where there is one.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::NotText { line }
            | Self::Syntax { line, .. }
            | Self::NotThisFormat { line, .. }
            | Self::Native { line, .. } => Some(*line),
            Self::Map { place, .. } => place.line(),
            _ => None,
        }
    }

    /// The line and the pointer of an error in a document.
    fn position(&self) -> String {
        match self {
            Self::NotThisFormat { line, pointer, .. } => format!("line {line}{}", at(pointer)),
            other => other.to_string(),
        }
    }

    fn message(&self) -> &str {
        match self {
            Self::NotThisFormat { message, .. } => message,
            _ => "",
        }
    }
}

/// An input that no reader claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotClaimed {
    /// The description of the input.
    pub seen: String,
    /// The formats that the input resembles, each with what it lacks.
    pub close: Vec<(&'static str, String)>,
}

impl std::fmt::Display for NotClaimed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.seen)?;
        for (name, missing) in &self.close {
            write!(f, "\n  not {name}: {missing}")?;
        }
        if self.close.is_empty() {
            write!(f, "\n  known formats: {}", names())?;
        }
        write!(
            f,
            "\n  choose with `--format NAME`, or describe the format with `--map FILE`"
        )
    }
}

/// A string of the input as it may be shown: one line, escaped, not long.
pub(crate) fn shown(text: &str) -> String {
    one_line(&shorten(text, 60))
}

/// The names of all formats.
fn names() -> String {
    let names: Vec<&str> = READERS.iter().map(|one| one.format().name).collect();
    names.join(", ")
}

fn alternatives(names: &[&str]) -> String {
    match names {
        [first, last] => format!("{first} or {last}"),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
        [] => String::new(),
    }
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() {
        String::new()
    } else {
        format!(", at {}", one_line(&shorten(pointer, 200)))
    }
}
