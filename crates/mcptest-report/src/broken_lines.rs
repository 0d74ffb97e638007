//! The lines of trace files that were skipped, because they are not traces.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most places that a report lists.
pub const MAX_PLACES: usize = 20;

/// The lines of trace files that were skipped, because they are not traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrokenLines {
    /// The number of all of them.
    pub count: u64,
    /// The first ones, in the order of the files.
    pub first: Vec<BrokenLine>,
}

/// A line that is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrokenLine {
    /// The file; `-` for standard input.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The problem.
    pub message: String,
}

impl BrokenLines {
    /// The lines of several reports together, in their order; `None` if there are none.
    #[must_use]
    pub fn total(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let mut total = all.next()?;
        for more in all {
            total.count = total.count.saturating_add(more.count);
            total.first.extend(more.first);
        }
        total.first.truncate(MAX_PLACES);
        Some(total)
    }

    /// The number of lines that are not listed.
    pub(crate) fn unlisted(&self) -> u64 {
        self.count.saturating_sub(self.first.len() as u64)
    }

    /// The number of lines in words.
    pub(crate) fn words(&self) -> String {
        match self.count {
            1 => "1 broken line was skipped".to_owned(),
            count => format!("{count} broken lines were skipped"),
        }
    }
}

impl fmt::Display for BrokenLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;
    use crate::{ExitCode, Style, render, samples};

    fn broken(count: u64) -> BrokenLines {
        let line = |line| BrokenLine {
            file: "t.jsonl".to_owned(),
            line,
            column: Some(7),
            message: "expected `,` or `}`".to_owned(),
        };
        BrokenLines {
            count,
            first: (1..=count.min(MAX_PLACES as u64)).map(line).collect(),
        }
    }

    fn rendered(report: &Report, reporter: &str) -> String {
        let mut out = Vec::new();
        render(reporter, report, Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_reporter_shows_the_count_and_the_first_places() {
        let report = Report::from(&samples::report(1)).with_broken_lines(Some(broken(23)));
        for reporter in ["pretty", "json", "junit", "markdown"] {
            let text = rendered(&report, reporter);
            assert!(text.contains("23"), "{reporter}: {text}");
            assert!(text.contains("t.jsonl"), "{reporter}: {text}");
        }
        assert!(rendered(&report, "pretty").contains("\n  and 3 more\n"));
        assert!(rendered(&report, "junit").contains("skipped=\"1\""));
        let json = rendered(&report, "json");
        let read = crate::read(&json).unwrap();
        assert_eq!(rendered(&read, "json"), json);
    }

    #[test]
    fn skipped_lines_are_never_a_pass() {
        let pass = || Report::conclude(Vec::new(), false);
        assert_eq!(pass().exit_code, ExitCode::Passed);
        let skipped = pass().with_broken_lines(Some(broken(1)));
        assert_eq!(skipped.exit_code, ExitCode::NoEvidence);
        assert_eq!(skipped.verdict, mcptest_trace::verdict::Verdict::NoEvidence);
        assert_eq!(pass().with_broken_lines(None).exit_code, ExitCode::Passed);
        let failed = Report::from(&samples::report(3));
        let code = failed.exit_code;
        assert_ne!(code, ExitCode::Passed);
        assert_eq!(failed.with_broken_lines(Some(broken(1))).exit_code, code);
    }

    #[test]
    fn totals_are_bounded() {
        assert_eq!(BrokenLines::total([]), None);
        let total = BrokenLines::total([broken(30), broken(3)]).unwrap();
        assert_eq!((total.count, total.first.len()), (33, MAX_PLACES));
        assert_eq!(
            BrokenLines::total([broken(2), broken(3)])
                .unwrap()
                .first
                .len(),
            5
        );
    }
}
