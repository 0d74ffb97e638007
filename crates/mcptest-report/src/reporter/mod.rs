//! The reporters, one file each.

pub(crate) mod json;
mod junit;
mod markdown;
pub(crate) mod pretty;
mod table;

use crate::model::Report;
use mcptest_redact::redact::Redactor;

/// How a reporter may write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Colour codes are welcome.
    pub colour: bool,
    /// How many columns the display has, where there is one.
    pub width: Option<u16>,
}

type Render = fn(&Report, Style) -> String;

/// Name, what it is for, and how it renders.
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

/// Whether there is such a reporter.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    REPORTERS
        .iter()
        .map(|(known, ..)| *known)
        .find(|known| *known == name)
}

/// Renders with the reporter of this name; nothing if there is none.
#[must_use]
pub fn render(name: &str, report: &Report, redactor: &Redactor, style: Style) -> Option<String> {
    REPORTERS
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|(_, _, render)| {
            // Most reports have nothing to hide, and looking is cheaper than building them anew.
            if redactor.is_clean_in(report) {
                render(report, style)
            } else {
                render(&redacted(report, redactor), style)
            }
        })
}

/// Cleaned before anything is escaped or cut: a secret that was changed on the way out would no
/// longer be recognised.
fn redacted(report: &Report, redactor: &Redactor) -> Report {
    let mut value = serde_json::to_value(report).unwrap_or_default();
    redactor.value(&mut value);
    // Only texts were changed, so the shape still fits; were it not so, an empty report beats a
    // leak.
    serde_json::from_value(value)
        .unwrap_or_else(|_| Report::conclude(Vec::new(), report.interrupted))
}
