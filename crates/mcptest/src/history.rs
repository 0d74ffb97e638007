//! The history of runs in the current directory: finding, reading and listing their logs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use mcptest_events::history::{Entry, History};
use mcptest_events::log::{LogError, LogReader};
use mcptest_events::{CaseId, Event};
use mcptest_json::text::one_line;
use mcptest_report::{Report, ReportFold, RunStore};
use mcptest_trace::verdict::Verdict;

/// The history of the current directory.
pub fn here() -> History {
    History::of(Path::new(""))
}

/// The newest run of the history, or the one with an id.
///
/// # Errors
/// An empty history, an unknown id, a folder that cannot be read.
pub fn find(id: Option<&str>) -> Result<Entry, String> {
    let history = here();
    let unreadable =
        |error: std::io::Error| format!("cannot read `{}`: {error}", history.folder().display());
    let found = match id {
        Some(id) => history.find(id).map_err(unreadable)?,
        None => history.latest().map_err(unreadable)?,
    };
    found.ok_or_else(|| match id {
        Some(id) => format!(
            "there is no run `{}` in the history; `mcptest report --list` lists the runs",
            one_line(id)
        ),
        None => format!(
            "there is no history in this folder (`{}`); `mcptest run` keeps one",
            history.folder().display()
        ),
    })
}

/// Reads the report of a run of the history.
///
/// # Errors
/// A log that cannot be read.
pub fn report(entry: &Entry) -> Result<Report, String> {
    read(entry).map(|(report, _)| report)
}

/// The settings and the state of a run, beside its report.
#[derive(Default)]
struct Facts {
    command_line: Vec<String>,
    has_ended: bool,
}

fn read(entry: &Entry) -> Result<(Report, Facts), String> {
    fold(&entry.path).map_err(|error| format!("{}: {error}", entry.path.display()))
}

fn fold(path: &Path) -> Result<(Report, Facts), LogError> {
    let file = File::open(path)?;
    let mut fold = ReportFold::new();
    let mut facts = Facts::default();
    let mut reader = LogReader::new(BufReader::new(file.try_clone()?));
    while let Some(line) = reader.next_event()? {
        match &line.event {
            Event::Begun(begun) => facts.command_line.clone_from(&begun.command_line),
            Event::Resumed { .. } => facts.has_ended = false,
            Event::Ended(_) => facts.has_ended = true,
            _ => {}
        }
        fold.event(line.event, line.text, line.offset);
    }
    Ok((fold.finish(RunStore::File(file)), facts))
}

/// A line for each run of the history, the newest first.
///
/// # Errors
/// A folder that cannot be read.
pub fn list() -> Result<String, String> {
    let history = here();
    let entries = history
        .list()
        .map_err(|error| format!("cannot read `{}`: {error}", history.folder().display()))?;
    if entries.is_empty() {
        return Err(find(None).err().unwrap_or_default());
    }
    let mut out = String::new();
    for entry in entries {
        let line = match read(&entry) {
            Ok((report, facts)) => summary(&report, &facts),
            // Other runs can still be listed.
            Err(error) => format!("cannot be read: {error}"),
        };
        out.push_str(&format!("{}  {}\n", entry.id, one_line(&line)));
    }
    Ok(out)
}

fn summary(report: &Report, facts: &Facts) -> String {
    let state = match (facts.has_ended, report.interrupted) {
        (true, false) => report.verdict.word(),
        (true, true) => "interrupted",
        (false, _) => "killed or running",
    };
    let planned = report.tests.len() + report.not_run.len();
    let passed = report.count(Verdict::Pass);
    let command = facts.command_line.join(" ");
    format!("{state:<17}  {passed} of {planned} tests passed  mcptest {command}")
}

/// The tests that did not pass when they were run last, over all runs of the history; `None`
/// without a history.
///
/// # Errors
/// A log that cannot be read.
pub fn failed() -> Result<Option<BTreeSet<CaseId>>, String> {
    let entries = here()
        .list()
        .map_err(|error| format!("cannot read the history: {error}"))?;
    if entries.is_empty() {
        return Ok(None);
    }
    let mut passed: BTreeMap<CaseId, bool> = BTreeMap::new();
    for entry in entries {
        // The newest run is first, and its result holds.
        let report = report(&entry)?;
        for test in &report.tests {
            let test_passed = test.verdict == Verdict::Pass;
            passed.entry(test.id.clone()).or_insert(test_passed);
        }
        for id in &report.not_run {
            passed.entry(id.clone()).or_insert(false);
        }
    }
    let failed = passed.into_iter().filter(|(_, passed)| !passed);
    Ok(Some(failed.map(|(id, _)| id).collect()))
}

/// Returns true if a name can only be that of a file: it has a folder or an ending.
pub fn is_path(name: &Path) -> bool {
    name == Path::new("-") || name.extension().is_some() || name.components().count() != 1
}
