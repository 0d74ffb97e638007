//! The history of runs in the current directory: finding, reading and listing their logs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use mcptest_events::CaseId;
use mcptest_events::history::{Entry, History};
use mcptest_events::log::redact_json;
use mcptest_json::text::one_line;
use mcptest_report::{Report, RunSummary, read_log, summarise};
use mcptest_trace::verdict::Verdict;

use crate::output::Output;
use crate::secrets;

/// The history of the current directory.
pub fn here() -> History {
    History::of(Path::new(""))
}

/// All runs of the history, the newest first.
///
/// # Errors
/// A folder that cannot be read.
fn entries() -> Result<Vec<Entry>, String> {
    let history = here();
    history
        .list()
        .map_err(|error| format!("cannot read `{}`: {error}", history.folder().display()))
}

/// The newest run of the history, or the one with an id.
///
/// # Errors
/// An empty history, an unknown id, a folder that cannot be read.
pub fn find(id: Option<&str>) -> Result<Entry, String> {
    let mut entries = entries()?.into_iter();
    match id {
        Some(id) => entries.find(|entry| entry.id == id).ok_or_else(|| {
            format!(
                "there is no run `{}` in the history; `mcptest report --list` lists the runs",
                one_line(id)
            )
        }),
        None => entries.next().ok_or_else(empty),
    }
}

/// The ids of all runs of the history, the oldest first.
///
/// # Errors
/// An empty history, a folder that cannot be read.
pub fn oldest_first() -> Result<Vec<PathBuf>, String> {
    let entries = entries()?;
    if entries.is_empty() {
        return Err(empty());
    }
    let ids = entries.into_iter().rev();
    Ok(ids.map(|entry| PathBuf::from(entry.id)).collect())
}

fn empty() -> String {
    format!(
        "there is no run in the history (`{}`) of this folder; `mcptest run` keeps one",
        here().folder().display()
    )
}

/// Reads the report of a run of the history.
///
/// # Errors
/// A log that cannot be read.
pub fn report(entry: &Entry) -> Result<Report, String> {
    let report = open(entry).map_err(Into::into).and_then(read_log);
    report.map_err(|error| format!("{}: {error}", entry.path.display()))
}

/// Opens the log of a run. Secrets were masked when it was written; a log with one that only this
/// process knows is replaced by a masked copy, which has no name.
fn open(entry: &Entry) -> io::Result<File> {
    let redactor = secrets::redactor([]);
    let mut file = File::open(&entry.path)?;
    let mut lines = BufReader::new(&file);
    let (mut line, mut is_clean) = (String::new(), true);
    while is_clean && lines.read_line(&mut line)? > 0 {
        is_clean = redact_json(line.trim_end(), &redactor).is_none();
        line.clear();
    }
    drop(lines);
    file.rewind()?;
    if is_clean {
        return Ok(file);
    }
    for line in BufReader::new(&file).lines() {
        secrets::keep_listed(&line?);
    }
    file.rewind()?;
    let redactor = secrets::redactor([]);
    let mut copy = BufWriter::new(tempfile::tempfile()?);
    for line in BufReader::new(file).lines() {
        let line = line?;
        let clean = redact_json(&line, &redactor);
        writeln!(copy, "{}", clean.as_deref().unwrap_or(&line))?;
    }
    let mut copy = copy.into_inner().map_err(io::Error::from)?;
    copy.rewind()?;
    Ok(copy)
}

/// A summary of each run of the history, the newest first. Logs that cannot be read are left out,
/// each with a warning.
///
/// # Errors
/// An empty history, a folder that cannot be read.
pub fn summaries(output: &Output) -> Result<Vec<RunSummary>, String> {
    let entries = entries()?;
    if entries.is_empty() {
        return Err(empty());
    }
    let mut summaries = Vec::new();
    for entry in entries {
        match open(&entry).map_err(Into::into).and_then(summarise) {
            Ok(summary) => summaries.push(summary),
            Err(error) => output.status(&format!(
                "warning: the run `{}` is not listed: {}: {error}",
                entry.id,
                entry.path.display()
            )),
        }
    }
    Ok(summaries)
}

/// The tests that did not pass when they were run last, over all runs of the history.
///
/// # Errors
/// An empty history, a log that cannot be read.
pub fn failed() -> Result<BTreeSet<CaseId>, String> {
    let entries = entries()?;
    if entries.is_empty() {
        return Err(empty());
    }
    let mut passed: BTreeMap<CaseId, bool> = BTreeMap::new();
    for entry in entries {
        // The newest run is the first one, and its result holds.
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
    Ok(failed.map(|(id, _)| id).collect())
}
