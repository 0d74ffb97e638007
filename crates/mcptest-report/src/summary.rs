//! The list of runs in the history, for `mcptest report --list`.

use std::fs::File;
use std::io::{self, BufReader, Write};

use mcptest_events::log::{LogError, LogReader};
use mcptest_events::{CaseId, Event, Replayed, Spend};
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::verdict::Verdict;
use serde::Serialize;

use crate::fold::ReportFold;
use crate::reporter::Style;
use crate::reporter::pretty::{count_parts, duration, spent_usd};
use crate::reporter::terminal::{colour, paint};
use crate::store::RunStore;

/// The longest list of suites in a row, in characters.
const MAX_SUITES: usize = 60;

/// A summary of one log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The id of the run.
    pub id: String,
    /// The time of the start, in milliseconds since 1970 (UTC).
    pub started_ms: u64,
    /// The suites, in their order.
    pub suites: Vec<String>,
    /// The gravest of all verdicts.
    pub verdict: Verdict,
    /// The number of tests per verdict.
    pub tests: VerdictCounts,
    /// The number of finished runs.
    pub runs: u64,
    /// True if the run was interrupted or killed, or is not finished.
    pub interrupted: bool,
    /// The duration in milliseconds; absent for a run that was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The cost of the models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// The part of it that cassettes answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
}

/// The number of tests per verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerdictCounts {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests without evidence.
    pub no_evidence: usize,
    /// Tests with errors.
    pub errors: usize,
    /// Tests that were interrupted before they were decided.
    pub interrupted: usize,
    /// Tests that did not run.
    pub not_run: usize,
}

/// Summarises a log file.
///
/// # Errors
/// A log that cannot be read.
pub fn summarise(file: File) -> Result<RunSummary, LogError> {
    let mut reader = LogReader::new(BufReader::new(file));
    let mut fold = ReportFold::new();
    let (mut id, mut started_ms, mut suites) = (String::new(), 0, Vec::new());
    let mut duration_ms = None;
    while let Some(line) = reader.next_event()? {
        match line.event {
            Event::Begun(begun) => (id, started_ms) = (begun.id, begun.started_ms),
            Event::RunFinished(mut finished) => {
                // The verdicts of runs are enough.
                finished.record = None;
                fold.event(Event::RunFinished(finished), line.text, line.offset);
            }
            event => {
                match &event {
                    Event::Planned { cases, .. } => {
                        suites = suite_names(cases.iter().map(|case| &case.id));
                    }
                    Event::Resumed { .. } => duration_ms = None,
                    Event::Ended(ended) => duration_ms = Some(ended.duration_ms),
                    _ => {}
                }
                fold.event(event, line.text, line.offset);
            }
        }
    }
    let runs = fold.finished_runs();
    let report = fold.finish(RunStore::Memory(Vec::new()));
    Ok(RunSummary {
        id,
        started_ms,
        suites,
        verdict: report.verdict,
        tests: VerdictCounts {
            passed: report.count(Verdict::Pass),
            failed: report.count(Verdict::Fail),
            no_evidence: report.count(Verdict::NoEvidence),
            errors: report.count(Verdict::Error),
            interrupted: report.count_interrupted(),
            not_run: report.not_run.len(),
        },
        runs,
        interrupted: report.interrupted,
        duration_ms,
        spend: report.spend,
        replayed: report.replayed,
    })
}

fn suite_names<'a>(cases: impl Iterator<Item = &'a CaseId>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for case in cases {
        if !names.contains(&case.suite) {
            names.push(case.suite.clone());
        }
    }
    names
}

/// Writes the list for people: a row per run, in the order given.
///
/// # Errors
/// `out` cannot be written.
pub fn write_list(runs: &[RunSummary], style: Style, out: &mut dyn Write) -> io::Result<()> {
    for run in runs {
        let word = match (run.interrupted, run.verdict) {
            (true, _) => "interrupted",
            (false, Verdict::Pass) => "passed",
            (false, Verdict::Fail) => "failed",
            (false, Verdict::NoEvidence) => "no evidence",
            (false, Verdict::Error) => "error",
        };
        let verdict = paint(style, colour(run.verdict).bold(), &format!("{word:<11}"));
        let mut facts = vec![count_parts(&[
            (run.tests.passed, "passed"),
            (run.tests.failed, "failed"),
            (run.tests.no_evidence, "without evidence"),
            (run.tests.errors, "with errors"),
            (run.tests.interrupted, "interrupted"),
            (run.tests.not_run, "not run"),
        ])];
        facts.extend(run.duration_ms.map(duration));
        facts.extend(run.spend.as_ref().map(|spend| {
            let is_live = true;
            spent_usd(spend, run.replayed, is_live)
        }));
        let suites = shorten(&one_line(&run.suites.join(", ")), MAX_SUITES);
        let id = one_line(&run.id);
        writeln!(out, "{id}  {verdict}  {suites}: {}", facts.join(", "))?;
    }
    Ok(())
}

/// Writes the list as a JSON array.
///
/// # Errors
/// `out` cannot be written.
pub fn write_list_json(runs: &[RunSummary], out: &mut dyn Write) -> io::Result<()> {
    crate::reporter::json::write_pretty(&runs, out)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::samples::log;

    fn summary(text: &str) -> RunSummary {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        summarise(file).unwrap()
    }

    #[test]
    fn a_log_is_summarised_and_listed() {
        let text = log::encoded(&log::invocation(2, 3));
        let whole = summary(&text);
        assert_eq!(whole.suites, ["sample"]);
        assert_eq!((whole.runs, whole.interrupted), (6, false));
        assert_eq!((whole.tests.passed, whole.tests.failed), (0, 2));
        assert_eq!(whole.duration_ms, Some(1234));
        // Killed after the third run.
        let end = text.match_indices("\n{\"run_finished\"").nth(3).unwrap().0;
        let killed = summary(&text[..=end]);
        assert_eq!((killed.runs, killed.interrupted), (3, true));
        assert_eq!((killed.tests.failed, killed.tests.interrupted), (1, 1));
        assert_eq!(killed.duration_ms, None);
        let mut out = Vec::new();
        write_list(&[whole, killed], Style::default(), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "20261117T183012Z-3fa9  failed       sample: 0 passed, 2 failed, 1.2 s\n\
             20261117T183012Z-3fa9  interrupted  sample: 0 passed, 1 failed, 1 interrupted\n"
        );
        let mut out = Vec::new();
        write_list_json(&[summary(&text)], &mut out).unwrap();
        let list: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(list[0]["tests"]["failed"], 2);
    }
}
