//! Reporters, one file each.

use std::io::{self, Write};

pub(crate) mod json;
mod junit;
mod markdown;
pub(crate) mod pretty;
mod table;

use crate::model::Report;
use mcptest_redact::redact::Redactor;

/// Settings of the display that a reporter writes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Set if colour codes are allowed.
    pub colour: bool,
    /// The number of columns, if there is a display.
    pub width: Option<u16>,
}

type Render = fn(&Report, Style, &mut dyn Write) -> io::Result<()>;

/// Every reporter: its name, its purpose and its function.
pub const REPORTERS: [(&str, &str, Render); 4] = [
    ("pretty", "for people", pretty::render),
    (
        "json",
        "for programs; stable, described by `mcptest schema report`",
        json::render,
    ),
    (
        "junit",
        "XML for CI systems; one `testcase` per test and model, every run an attempt",
        junit::render,
    ),
    (
        "markdown",
        "a summary for a job or a pull request, of bounded size",
        markdown::render,
    ),
];

/// The reporter of this name, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    REPORTERS
        .iter()
        .map(|(known, ..)| *known)
        .find(|known| *known == name)
}

/// A failed attempt to render a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// There is no reporter of this name.
    #[error("unknown reporter `{0}`")]
    UnknownReporter(String),
    /// The reporter has no form for comparisons.
    #[error("the reporter `{name}` cannot show a comparison; these can: {}", known.join(", "))]
    NoComparison {
        /// The reporter.
        name: String,
        /// The reporters that can.
        known: Vec<&'static str>,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Writes the report with the reporter of this name.
///
/// # Errors
/// An unknown reporter, or an output that cannot be written.
pub fn render(
    name: &str,
    report: &Report,
    redactor: &Redactor,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let known = REPORTERS.iter().find(|(known, ..)| *known == name);
    let Some((_, _, render)) = known else {
        return Err(RenderError::UnknownReporter(name.to_owned()));
    };
    // Most reports contain no secret, and checking is cheaper than rebuilding them.
    if redactor.is_clean_in(report) {
        render(report, style, out)?;
    } else {
        render(&redacted(report, redactor), style, out)?;
    }
    Ok(())
}

/// A copy without secrets. Redaction comes before escaping and truncating: afterwards a secret
/// would no longer be recognised.
fn redacted(report: &Report, redactor: &Redactor) -> Report {
    let mut value = serde_json::to_value(report).unwrap_or_default();
    redactor.value(&mut value);
    // Only strings have changed, so the shape still fits. If it did not, an empty report is better
    // than a leak.
    serde_json::from_value(value)
        .unwrap_or_else(|_| Report::conclude(Vec::new(), report.interrupted))
}
