//! The interface of readers, and detection among them.

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::error::{FormatError, NotClaimed};
use crate::input::{Document, Input};

/// The description of a format, for `--format`, error messages and documentation.
#[derive(Debug)]
pub struct Format {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// The inputs that the reader takes.
    pub reads: &'static str,
    /// The version of the format that the reader was written for, and its source.
    pub versions: &'static str,
    /// The parts of a trace that the format does not record.
    pub unknown: &'static str,
}

/// The answer of a reader to an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detection {
    /// The input has marks that only this format has.
    Match,
    /// The input could be of this format, but has no mark that others do not have.
    Possible,
    /// The input resembles the format. The string names what is missing.
    Close(String),
    /// The input is of another format.
    No,
}

impl Detection {
    /// A detection of a document that resembles the format.
    #[must_use]
    pub fn close(missing: impl Into<String>) -> Self {
        Self::Close(missing.into())
    }

    /// Combines the detections of all documents of an input: one that does not belong to the format
    /// decides, then one that has its marks.
    pub fn of_all(each: impl IntoIterator<Item = Self>) -> Self {
        let mut combined = None;
        for one in each {
            combined = match (combined, one) {
                (_, no @ (Self::No | Self::Close(_))) => return no,
                (Some(Self::Match), _) | (_, Self::Match) => Some(Self::Match),
                (_, Self::Possible) => Some(Self::Possible),
            };
        }
        combined.unwrap_or(Self::No)
    }
}

/// The part of an input that a trace is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// Every document (line) has its own traces, so a file can be read part by part.
    Document,
    /// A trace may need all documents, so a file has to be read as a whole.
    Input,
}

/// A reader of one trace format.
pub trait Reader: Sync {
    /// The description of the format.
    fn format(&self) -> &'static Format;

    /// Decides whether an input belongs to the format. Only the first documents may be given.
    fn detect(&self, input: &Input) -> Detection;

    /// The part of an input that a trace is made of.
    fn grouping(&self, input: &Input) -> Grouping;

    /// Reads all traces of an input.
    ///
    /// # Errors
    /// The first place that is not of this format.
    fn read(&self, input: &Input) -> Result<Vec<Trace>, FormatError>;
}

/// The number of documents that detection inspects.
const PROBED: usize = 64;

/// The detection of an input from that of its first documents.
pub(crate) fn by_document(input: &Input, detect: impl Fn(&Document) -> Detection) -> Detection {
    if input.archive().is_some() {
        return Detection::No;
    }
    Detection::of_all(input.documents().iter().take(PROBED).map(detect))
}

/// The detection of an input from that of its first records: documents, or elements of arrays.
pub(crate) fn by_record(input: &Input, detect: impl Fn(&Value) -> Detection) -> Detection {
    by_document(input, |document| match &document.value {
        Value::Array(items) => Detection::of_all(items.iter().take(PROBED).map(&detect)),
        other => detect(other),
    })
}

/// Finds the one reader of a list that claims an input.
pub(crate) fn detect_among(
    readers: &[&'static dyn Reader],
    input: &Input,
) -> Result<&'static dyn Reader, FormatError> {
    let mut matched = Vec::new();
    let mut possible = Vec::new();
    let mut close = Vec::new();
    for reader in readers {
        match reader.detect(input) {
            Detection::Match => matched.push(*reader),
            Detection::Possible => possible.push(*reader),
            Detection::Close(missing) => close.push((reader.format().name, missing)),
            Detection::No => {}
        }
    }
    let claims = if matched.is_empty() {
        possible
    } else {
        matched
    };
    match claims.as_slice() {
        [one] => Ok(*one),
        [] => Err(FormatError::Unknown(NotClaimed {
            seen: crate::seen::describe(input),
            close,
        })),
        several => Err(FormatError::Ambiguous {
            seen: crate::seen::describe(input),
            names: several.iter().map(|one| one.format().name).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_of_another_format_decides_and_a_mark_beats_none() {
        use Detection::{Match, No, Possible};
        assert_eq!(Detection::of_all([]), No);
        assert_eq!(Detection::of_all([Possible, Match, Possible]), Match);
        assert_eq!(Detection::of_all([Possible, Possible]), Possible);
        assert_eq!(Detection::of_all([Match, No]), No);
        let close = Detection::close("`x`");
        assert_eq!(Detection::of_all([Match, close.clone()]), close);
    }
}
