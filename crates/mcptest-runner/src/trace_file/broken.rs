//! Lines of a trace file that are not traces.

use mcptest_trace::trace::TraceSyntaxError;
use serde::{Deserialize, Serialize};

use super::TraceFileError;

/// The most places of broken lines that are kept. All are counted.
pub const MAX_BROKEN_PLACES: usize = 20;

/// A line of a trace file that was skipped, because it is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BrokenLine {
    /// The file; `-` for standard input.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in bytes; unknown for a line that is not text.
    pub column: Option<usize>,
    /// The problem.
    pub message: String,
}

impl std::fmt::Display for BrokenLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The lines that were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BrokenLines {
    /// The number of all of them.
    pub count: u64,
    /// The first ones, in the order of the files.
    pub first: Vec<BrokenLine>,
}

impl BrokenLines {
    /// A count, and the first lines of these.
    pub(crate) fn new(count: u64, lines: impl Iterator<Item = BrokenLine>) -> Self {
        Self {
            count,
            first: lines.take(MAX_BROKEN_PLACES).collect(),
        }
    }

    /// Counts a line.
    pub fn add(&mut self, line: BrokenLine) {
        self.count += 1;
        if self.first.len() < MAX_BROKEN_PLACES {
            self.first.push(line);
        }
    }
}

/// A flaw of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The line is not UTF-8. It counts from 1.
    NotText { line: usize },
    /// The line is text, but not a trace.
    NotTrace(TraceSyntaxError),
}

impl Flaw {
    /// The same flaw with this number of lines before its text, and this number of bytes on
    /// the last of them.
    pub fn after(self, lines: usize, bytes: usize) -> Self {
        match self {
            Self::NotText { line } => Self::NotText { line: line + lines },
            Self::NotTrace(mut error) => {
                if error.line == 1 {
                    error.column += bytes;
                }
                error.line += lines;
                Self::NotTrace(error)
            }
        }
    }

    /// The flaw as an error of the file.
    pub fn into_error(self, name: &str) -> TraceFileError {
        let name = name.to_owned();
        match self {
            Self::NotText { line } => TraceFileError::NotText { name, line },
            Self::NotTrace(error) => TraceFileError::NotTraces { name, error },
        }
    }

    /// The flaw as a line that is skipped.
    pub fn into_line(self, name: &str) -> BrokenLine {
        let (line, column, message) = match self {
            Self::NotText { line } => (line, None, "not UTF-8".to_owned()),
            Self::NotTrace(error) => (error.line, Some(error.column), error.message),
        };
        BrokenLine {
            file: name.to_owned(),
            line,
            column,
            message,
        }
    }
}
