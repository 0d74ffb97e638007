//! `run --resume`: continues a run of the history.
//!
//! Suites and settings come from the log. The input files and the planned tests must be those of
//! the log, because its finished runs are used as they are.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Parser as _;
use mcptest_events::history::LogWriter;
use mcptest_events::log::{self, LogReader};
use mcptest_events::{Begun, Event, InputFile, PlannedCase, ShardPlan, digest};
use mcptest_json::text::one_line;
use mcptest_redact::redact::Redactor;
use mcptest_report::ReportFold;
use mcptest_runner::Resume;

use super::select::Planned;
use crate::cli::{Cli, Command, RunArgs};
use crate::history;

/// A run of the history that is to be continued. Its log is locked.
pub struct Earlier {
    pub log: LogWriter,
    pub length: u64,
    pub begun: Begun,
    /// The plan; `None` if the run was killed before there was one.
    pub planned: Option<Vec<PlannedCase>>,
    pub shard: Option<ShardPlan>,
    /// The finished runs.
    pub resume: Resume,
    /// The events of the log, folded.
    pub fold: ReportFold,
    /// The number of finished runs.
    pub finished_runs: u32,
    /// The time that the run took so far.
    pub duration_ms: u64,
}

/// Opens the newest run, or the one with an id, to continue it.
///
/// # Errors
/// A run that is unknown, complete, still running, or of another version; a log that cannot be
/// read or written.
pub fn open(id: Option<&str>) -> Result<Earlier, String> {
    let entry = history::find(id)?;
    let log = history::here()
        .resume(&entry.id)
        .map_err(|error| format!("cannot resume the run {}: {error}", entry.id))?;
    read(log).map_err(|error| format!("cannot resume the run {}: {error}", entry.id))
}

fn read(log: LogWriter) -> Result<Earlier, String> {
    let file = File::open(log.path()).map_err(|error| error.to_string())?;
    let about = file.metadata().map_err(|error| error.to_string())?;
    let mut fold = ReportFold::new();
    let mut resume = Resume::default();
    let (mut begun, mut planned, mut shard, mut ended) = (None, None, None, None);
    // The start of the part that is read, and the time of the parts before it.
    let (mut started_ms, mut duration_ms, mut finished_runs) = (0, 0, 0);
    let mut reader = LogReader::new(BufReader::new(file));
    while let Some(line) = reader.next_event().map_err(|error| error.to_string())? {
        match &line.event {
            Event::Begun(found) => {
                started_ms = found.started_ms;
                begun = Some(found.clone());
            }
            Event::Planned { cases, shard: part } => {
                planned = Some(cases.clone());
                shard = *part;
            }
            Event::Resumed { started_ms: again } => {
                started_ms = *again;
                ended = None;
            }
            Event::RunFinished(_) => finished_runs += 1,
            Event::Ended(found) => {
                duration_ms = found.duration_ms;
                ended = Some(*found);
            }
            _ => {}
        }
        resume
            .add(&line.event)
            .map_err(|error| format!("line {}: {error}", line.number))?;
        fold.event(line.event, line.text, line.offset);
    }
    if ended.is_some_and(|ended| !ended.interrupted && !ended.panicked) {
        return Err(
            "it is complete; `mcptest report --list` lists the runs of the history".to_owned(),
        );
    }
    if ended.is_none() {
        // A killed run has no end: the last write to its log is the best that is known of it.
        duration_ms += about
            .modified()
            .ok()
            .map_or(0, |end| milliseconds(end).saturating_sub(started_ms));
    }
    Ok(Earlier {
        log,
        length: about.len(),
        begun: begun.ok_or("its log has no beginning")?,
        planned,
        shard,
        resume,
        fold,
        finished_runs,
        duration_ms,
    })
}

/// Milliseconds since 1970 (UTC).
pub fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

impl Earlier {
    /// The arguments of the run that is continued. The reporters and the file of traces are those
    /// of the new command line, if it has any.
    ///
    /// # Errors
    /// Arguments that this version does not understand, or suites that are not those of the log.
    pub fn args(&self, now: &RunArgs) -> Result<RunArgs, String> {
        let written = &self.begun.command_line;
        let program = std::iter::once("mcptest".to_owned());
        let cli = Cli::try_parse_from(program.chain(written.iter().cloned()))
            .map_err(|error| format!("its command line is no longer valid: {error}"))?;
        let Command::Run(mut args) = cli.command else {
            return Err("it is not a run".to_owned());
        };
        let named: Vec<&PathBuf> = now.suites.iter().collect();
        if !named.is_empty() && named != args.suites.iter().collect::<Vec<_>>() {
            return Err(format!(
                "its suites come from the log (`mcptest {}`); do not name others",
                one_line(&written.join(" "))
            ));
        }
        if !now.report.reporter.is_empty() {
            args.report.reporter.clone_from(&now.report.reporter);
        }
        args.report.no_timing |= now.report.no_timing;
        if now.traces.is_some() {
            args.traces.clone_from(&now.traces);
        }
        args.events.clone_from(&now.events);
        args.ui = now.ui;
        args.history.resume = None;
        Ok(args)
    }

    /// Checks that the input files are those of the log.
    ///
    /// # Errors
    /// The first file that is changed, new or gone.
    pub fn check_inputs(&self, now: &[InputFile]) -> Result<(), String> {
        let known = |file: &InputFile, list: &[InputFile]| {
            list.iter().find(|other| other.path == file.path).cloned()
        };
        for file in &self.begun.inputs {
            match known(file, now) {
                Some(other) if other.sha256 == file.sha256 => {}
                Some(_) => return Err(changed(&file.path, "has changed since the run began")),
                None => return Err(changed(&file.path, "is no longer used")),
            }
        }
        match now
            .iter()
            .find(|file| known(file, &self.begun.inputs).is_none())
        {
            Some(file) => Err(changed(&file.path, "was not there when the run began")),
            None => Ok(()),
        }
    }

    /// Keeps the cases of the log's plan, and returns their positions in the whole.
    ///
    /// # Errors
    /// The first case of the log that is no longer there, or is different.
    pub fn select(&self, planned: &mut [Planned], redactor: &Redactor) -> Result<Vec<u64>, String> {
        let logged = self.planned.as_deref().unwrap_or_default();
        // Both lists have the order of the suites.
        let mut expected = logged.iter().peekable();
        for Planned { suite, cases } in planned {
            cases.retain(|case| {
                let Some(next) = expected.peek() else {
                    return false;
                };
                let found = redacted(case.planned(suite, next.position), redactor);
                expected
                    .next_if(|next| Some(*next) == found.as_ref())
                    .is_some()
            });
        }
        match expected.next() {
            Some(case) => Err(format!(
                "the test `{}` is not planned as it was when the run began; start a new run",
                one_line(&case.id.to_string())
            )),
            None => Ok(logged.iter().map(|case| case.position).collect()),
        }
    }
}

fn changed(path: &str, what: &str) -> String {
    format!("`{}` {what}; start a new run", one_line(path))
}

/// A case as the log has it, without secrets.
fn redacted(case: PlannedCase, redactor: &Redactor) -> Option<PlannedCase> {
    let event = Event::Planned {
        cases: vec![case],
        shard: None,
    };
    let line = log::encode(&event, redactor);
    match log::decode(&line) {
        Ok(Some(Event::Planned { cases, .. })) => cases.into_iter().next(),
        _ => None,
    }
}

/// The input files with their digests.
///
/// # Errors
/// A file that can no longer be read.
pub fn digests(files: &[PathBuf]) -> Result<Vec<InputFile>, String> {
    let mut paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    paths.sort_unstable();
    paths.dedup();
    let digest = |path: &Path| {
        let bytes = crate::files::read(path)?;
        Ok(InputFile {
            path: path.display().to_string(),
            sha256: digest::sha256(&bytes),
        })
    };
    paths.into_iter().map(digest).collect()
}
