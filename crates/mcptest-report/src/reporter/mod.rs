//! Reporters, one file each.

use std::io::{self, Write};

pub(crate) mod agent;
pub(crate) mod allure;
pub(crate) mod ctrf;
pub(crate) mod entries;
pub(crate) mod github;
pub(crate) mod gitlab;
#[cfg(test)]
mod hostile;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod junit;
mod markdown;
mod ndjson;
pub(crate) mod openmetrics;
mod plots;
pub(crate) mod pr;
pub(crate) mod pretty;
pub(crate) mod sarif;
pub(crate) mod sparkline;
mod table;
pub(crate) mod tap;
pub(crate) mod terminal;

use crate::gate_meaning::GateMeaning;
use crate::report::Report;
use crate::store::StoreError;

/// Settings of a reporter and of the display that it writes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Set if colour codes are allowed.
    pub colour: bool,
    /// The number of columns, if there is a display.
    pub width: Option<u16>,
    /// Set if every run has its own row, also where all runs of a test passed.
    pub verbose: bool,
    /// The meaning of each gate, for reporters that explain figures.
    pub gates: &'static [GateMeaning],
}

type Render = fn(&Report, Style, &mut dyn Write) -> Result<(), RenderError>;

/// Every reporter: its name, its purpose and its function.
pub const REPORTERS: [(&str, &str, Render); 15] = [
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
    (
        "html",
        "one file with every run, figure and plot; works from disk",
        html::render,
    ),
    (
        "github",
        "workflow commands: GitHub shows what did not pass beside the suite file",
        github::render,
    ),
    (
        "tap",
        "TAP 14: a test point per test and model, with YAML diagnostics",
        tap::render,
    ),
    (
        "ndjson",
        "a JSON object per line: every run, every test, the verdict",
        ndjson::render,
    ),
    (
        "sarif",
        "SARIF 2.1.0 for code scanning: what did not pass, at its suite file",
        sarif::render,
    ),
    (
        "gitlab",
        "a code quality report of GitLab: what did not pass",
        gitlab::render,
    ),
    (
        "ctrf",
        "the Common Test Report Format, for dashboards",
        ctrf::render,
    ),
    (
        "allure",
        "a folder with the results of Allure, a file per test",
        allure::render,
    ),
    (
        "openmetrics",
        "the figures as OpenMetrics text",
        openmetrics::render,
    ),
    (
        "agent",
        "for a coding agent: verdict, failures and the commands that reproduce them, at most 4 kB",
        agent::render,
    ),
    (
        "pr",
        "a pull-request comment that is updated in place, with failures folded",
        pr::render,
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
    /// The reporter has no form for trends.
    #[error("the reporter `{name}` cannot show a trend; these can: {}", known.join(", "))]
    NoTrend {
        /// The reporter.
        name: String,
        /// The reporters that can.
        known: Vec<&'static str>,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The record of a run cannot be read.
    #[error("{0}")]
    Record(String),
}

impl From<StoreError> for RenderError {
    fn from(error: StoreError) -> Self {
        Self::Record(error.to_string())
    }
}

/// Writes the report with the reporter of this name.
///
/// Nothing is redacted here: the lines of the log that a report is folded from are redacted when
/// they are written.
///
/// # Errors
/// An unknown reporter, an output that cannot be written, a record that cannot be read.
pub fn render(
    name: &str,
    report: &Report,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let known = REPORTERS.iter().find(|(known, ..)| *known == name);
    match known {
        Some((_, _, render)) => render(report, style, out),
        None => Err(RenderError::UnknownReporter(name.to_owned())),
    }
}
