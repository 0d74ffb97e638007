//! What failed the last time, for `--rerun-failed`.
//!
//! A run remembers in `.mcptest/last-run.json`, in the folder where it is started, which tests did
//! not pass. A test that a run did not look at keeps what was remembered of it. The file is made
//! only when there is a failure to remember, and not where `CI` is set (nobody comes back there),
//! unless `--rerun-failed` asks for it. The folder tells git to ignore it.

use std::collections::BTreeSet;
use std::path::Path;

use mcptest_report::model::CaseId;
use mcptest_report::{Redactor, Report};
use mcptest_trace::verdict::Verdict;
use serde::{Deserialize, Serialize};

use crate::command::report::read;
use crate::output::{self, Output};

const FOLDER: &str = ".mcptest";
const FILE: &str = ".mcptest/last-run.json";
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct LastRun {
    schema_version: u32,
    failed: BTreeSet<CaseId>,
}

/// What did not pass: in a report, or the last time.
///
/// # Errors
/// A file that cannot be read.
pub fn failed(report: Option<&Path>) -> Result<BTreeSet<CaseId>, String> {
    match report {
        Some(path) => Ok(failed_in(&read(path)?)),
        None => remembered()?.map(|last| last.failed).ok_or_else(|| {
            format!("no failed run is remembered here (`{FILE}`); run the suites first, or name a report: --rerun-failed=report.json")
        }),
    }
}

/// Failed, broke, had no evidence, or never got its turn.
fn failed_in(report: &Report) -> BTreeSet<CaseId> {
    let failed = report
        .tests
        .iter()
        .filter(|test| test.verdict != Verdict::Pass);
    failed
        .map(|test| test.id.clone())
        .chain(report.not_run.iter().cloned())
        .collect()
}

fn remembered() -> Result<Option<LastRun>, String> {
    let text = match std::fs::read_to_string(FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read `{FILE}`: {error}")),
    };
    match serde_json::from_str::<LastRun>(&text) {
        Ok(last) if last.schema_version == VERSION => Ok(Some(last)),
        Ok(last) => Err(format!(
            "`{FILE}` has schema version {}, and this mcptest reads version {VERSION}; remove it",
            last.schema_version
        )),
        Err(error) => Err(format!("`{FILE}` cannot be read: {error}; remove it")),
    }
}

/// Keeps what did not pass. `asked`: the user works with `--rerun-failed`, and wants to know if
/// that cannot go on.
pub fn remember(report: &Report, redactor: &Redactor, asked: bool, output: &Output) {
    let wanted = asked || std::env::var_os("CI").is_none();
    if !wanted {
        return;
    }
    if let Err(words) = try_remember(report, redactor)
        && asked
    {
        output.status(&format!("warning: {words}"));
    }
}

fn try_remember(report: &Report, redactor: &Redactor) -> Result<(), String> {
    let before = remembered()?;
    let known = before.is_some();
    let failed = updated(
        before.map(|last| last.failed).unwrap_or_default(),
        report,
        redactor,
    );
    if failed.is_empty() && !known {
        return Ok(());
    }
    let fail = |error: std::io::Error| format!("cannot write `{FILE}`: {error}");
    std::fs::create_dir_all(FOLDER).map_err(fail)?;
    let ignore = Path::new(FOLDER).join(".gitignore");
    if !ignore.exists() {
        std::fs::write(ignore, "*\n").map_err(fail)?;
    }
    let last = LastRun {
        schema_version: VERSION,
        failed,
    };
    let mut text = serde_json::to_string_pretty(&last)
        .map_err(|error| format!("cannot write `{FILE}`: {error}"))?;
    text.push('\n');
    output::write_file(FILE, &text)
}

/// What was remembered, with what this run found out.
fn updated(mut failed: BTreeSet<CaseId>, report: &Report, redactor: &Redactor) -> BTreeSet<CaseId> {
    for test in &report.tests {
        failed.remove(&redacted(&test.id, redactor));
    }
    let now = failed_in(report);
    failed.extend(now.iter().map(|id| redacted(id, redactor)));
    failed
}

/// As reports write it.
pub fn redacted(id: &CaseId, redactor: &Redactor) -> CaseId {
    CaseId {
        suite: redactor.text(&id.suite),
        name: redactor.text(&id.name),
        model: id.model.as_deref().map(|model| redactor.text(model)),
    }
}

#[cfg(test)]
mod tests {
    use mcptest_report::model::{self, Kind, TestReport};

    use super::*;

    fn test(name: &str, verdict: Verdict) -> TestReport {
        TestReport {
            name: name.to_owned(),
            kind: Kind::Tool,
            model: None,
            label: name.to_owned(),
            suite: "s".to_owned(),
            verdict,
            runs: Vec::new(),
            gates: Vec::new(),
            no_evidence: None,
            saved_runs: None,
            spend: None,
        }
    }

    fn names(ids: &BTreeSet<CaseId>) -> Vec<&str> {
        ids.iter().map(|id| id.name.as_str()).collect()
    }

    #[test]
    fn what_was_not_looked_at_is_kept() {
        let before = failed_in(
            &(&model::Report::conclude(
                vec![
                    test("fixed", Verdict::Fail),
                    test("elsewhere", Verdict::Error),
                ],
                false,
            ))
                .into(),
        );
        let mut report = model::Report::conclude(
            vec![
                test("fixed", Verdict::Pass),
                test("new s3cret", Verdict::Fail),
                test("nothing to judge", Verdict::NoEvidence),
            ],
            false,
        );
        report.not_run = vec![test("waiting", Verdict::Pass).id()];
        let after = updated(
            before,
            &(&report).into(),
            &Redactor::new(["s3cret".to_owned()]),
        );
        assert_eq!(
            names(&after),
            ["elsewhere", "new [redacted]", "nothing to judge", "waiting"]
        );
    }
}
