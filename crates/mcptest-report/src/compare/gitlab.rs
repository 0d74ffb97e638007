//! A comparison as a code quality report of GitLab: an issue for each test that regressed or can no
//! longer be judged.

use std::io::Write;

use serde_json::{Value, json};

use super::changed::{Outcome, changed};
use super::{Comparison, Nature, Style};
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::entries::{name, write_pretty_json};
use crate::reporter::gitlab::UNKNOWN_FILE;

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let tests = changed(comparison, current);
    let worse = tests
        .iter()
        .filter(|test| test.outcome() != Outcome::Passed);
    let issues: Vec<Value> = worse
        .map(|test| {
            let severity = match (test.outcome(), test.case.nature) {
                (Outcome::Failed, Some(Nature::Deterministic)) => "critical",
                (Outcome::Failed, _) => "major",
                _ => "minor",
            };
            let file = test.file().unwrap_or_else(|| UNKNOWN_FILE.to_owned());
            json!({
                "description": name(&format!("{}: {}", test.name(), test.facts())),
                "check_name": format!("mcptest/{}", test.word()),
                "fingerprint": test.fingerprint(),
                "severity": severity,
                // GitLab needs a line.
                "location": {"path": file, "lines": {"begin": test.line().unwrap_or(1)}},
            })
        })
        .collect();
    Ok(write_pretty_json(&issues, out)?)
}
