//! A comparison in the Common Test Report Format: a test per test that differs. A regression has
//! failed, a test that can no longer be judged has the status `other`.

use std::io::Write;

use serde_json::json;

use super::changed::{Outcome, changed};
use super::pretty::totals;
use super::{Comparison, Style};
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::ctrf;
use crate::reporter::entries::name;

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let changed = changed(comparison, current);
    let status = |outcome: Outcome| match outcome {
        Outcome::Failed => "failed",
        Outcome::NotJudged => "other",
        Outcome::Passed => "passed",
    };
    let count = |wanted: Outcome| changed.iter().filter(|it| it.outcome() == wanted).count();
    let summary = json!({
        "tests": changed.len(),
        "passed": count(Outcome::Passed),
        "failed": count(Outcome::Failed),
        "skipped": 0,
        "pending": 0,
        "other": count(Outcome::NotJudged),
        "start": 0,
        "stop": 0,
        "extra": {
            "compared": totals(comparison),
            "exitCode": u8::from(comparison.exit_code),
        },
    });
    let tests = changed.iter().map(|test| {
        let label = name(&test.name());
        let mut entry = json!({
            // A name may not be empty.
            "name": if label.is_empty() { "unnamed" } else { &label },
            "testId": test.fingerprint(),
            "status": status(test.outcome()),
            "rawStatus": test.word(),
            "duration": 0,
            "suite": [test.suite()],
            "message": name(&test.facts()),
            "extra": {"again": test.command()},
        });
        if let Some(file) = test.file() {
            entry["filePath"] = file.into();
            entry["line"] = test.line().into();
        }
        Ok(entry)
    });
    ctrf::write(&summary, tests, out)
}
