//! Recorded traces instead of live runs: no server, no model, the same judgement.
//!
//! Traces are scored as a stream. Each is judged once, where it is read; its gates observe it, and
//! only a row of facts and, if a reporter needs it, the record of the run leave that place. So
//! memory does not grow with the size of the traces.

mod groups;
mod matching;
mod numbering;
mod partial;
mod record;
mod rows;
mod sinks;
mod stream;
mod tool_names;

use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use mcptest_events::{CaseId, Kind, RunTotals};
use mcptest_redact::redact::Redactor;
use mcptest_suite::{Diagnostic, ResolvedSuite, Suite};
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;

pub(crate) use groups::{JudgedGroup, TraceGroup, group_traces};
pub use numbering::{ScoredRun, ScoredRuns};
pub use partial::{PARTIAL_FORMAT, PartOf, Partial, PartialError, merge_partials};
pub use rows::score_row_schema;
pub use sinks::{ScoreProgress, ScoreSinks, Store};

use crate::plan::Filter;
use crate::trace_file::{BrokenLines, FormatSetting, ReadSettings, TraceFileError};

/// The selection and the treatment of traces.
#[derive(Debug, Clone, Default)]
pub struct ScoreSettings {
    /// The test that all traces belong to.
    pub test: Option<String>,
    /// The tests to score.
    pub filter: Filter,
    /// Judged assertions are skipped.
    pub no_judges: bool,
    /// The records of all runs are stored, and the details of gates have rows for all runs.
    /// Otherwise only the records of runs with problems are.
    pub all_records: bool,
    /// There is no row for each run: totals are enough, and gates leave out their rows.
    pub summary: bool,
    /// A broken line of a file is an error. Otherwise it is skipped and counted.
    pub strict: bool,
    /// The format of the files.
    pub format: FormatSetting,
    /// The number of threads that score traces. Default: one for each core.
    pub threads: Option<NonZeroUsize>,
}

impl ScoreSettings {
    fn reading(&self) -> ReadSettings<'_> {
        let default = ReadSettings::default();
        ReadSettings {
            threads: self.threads.map_or(default.threads, NonZeroUsize::get),
            strict: self.strict,
            format: self.format.as_format(),
            ..default
        }
    }
}

/// An error from scoring traces.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// `--test` does not name a test.
    #[error("no agent test is called `{name}`; the suite has {}", list(known))]
    UnknownTest {
        /// The requested name.
        name: String,
        /// The tests of the suite.
        known: Vec<String>,
    },
    /// A trace belongs to no test.
    #[error(
        "trace {position} {}; the suite has {}. \
         Name the test in the trace's `test` field, or use `--test NAME`",
        named.as_ref().map_or_else(
            || "names no test".to_owned(),
            |name| format!("names the test `{name}`, which is not in the suite")
        ),
        list(known)
    )]
    UnmatchedTrace {
        /// The position of the trace, from 1.
        position: u64,
        /// The test it names.
        named: Option<String>,
        /// The tests of the suite.
        known: Vec<String>,
    },
    /// The suite has no test that traces could be scored with.
    #[error(
        "the suite has no agent test to score{}",
        if *filtered { " (with this filter)" } else { "" }
    )]
    NothingToScore {
        /// True if the filter excludes all tests.
        filtered: bool,
    },
    /// A trace file cannot be read.
    #[error(transparent)]
    File(#[from] TraceFileError),
    /// A record cannot be stored.
    #[error("cannot store the record of a run: {0}")]
    Store(io::Error),
    /// A row cannot be written.
    #[error("cannot write the rows of traces: {0}")]
    Rows(io::Error),
}

fn list(known: &[String]) -> String {
    let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() {
        "no agent test".to_owned()
    } else {
        quoted.join(", ")
    }
}

/// The result of scoring.
#[derive(Debug)]
#[non_exhaustive]
pub struct Scored {
    /// Each test with each model, in the order of the suite.
    pub cases: Vec<ScoredCase>,
    /// The lines of the files that were skipped.
    pub broken: BrokenLines,
}

/// One test with one model, scored.
#[derive(Debug)]
#[non_exhaustive]
pub struct ScoredCase {
    /// The suite, the test and the model.
    pub id: CaseId,
    /// The kind of test.
    pub kind: Kind,
    /// The name in rows: that of the test, with the model if there are several.
    pub label: String,
    /// The tags of the test.
    pub tags: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Each gate.
    pub gates: Vec<GateOutcome>,
    /// The reason why there was nothing to judge.
    pub no_evidence: Option<String>,
    /// Sums over the runs.
    pub totals: RunTotals,
    /// Each run, in order; none in a summary.
    pub runs: ScoredRuns,
    /// Problems of the test that its traces show; with the first model only.
    pub warnings: Vec<Diagnostic>,
}

/// Applies a suite's expectations and gates to the traces of some files.
///
/// Records are handed to `store` without secrets. A record is a JSON object without its beginning:
/// the index and the name of a run are known only when all traces were read.
///
/// # Errors
/// A file that cannot be read, with `strict` a line that is broken, a trace that belongs to no
/// test, or nothing to score.
pub fn score(
    suite: &Suite,
    files: &[PathBuf],
    settings: &ScoreSettings,
    redactor: &Redactor,
    store: Store<'_>,
) -> Result<Scored, ScoreError> {
    let inputs = files.iter().cloned().map(TraceInput::File).collect();
    score_inputs(suite, inputs, settings, redactor, store)
}

/// Traces to score.
#[non_exhaustive]
pub enum TraceInput<'a> {
    /// A file; `-` is standard input.
    File(PathBuf),
    /// Any input.
    Stream {
        /// The name in messages. Partial results order their inputs by name, in which numbers
        /// count by value.
        name: String,
        /// The number of traces of the same name before this input.
        first: u64,
        /// The content: what a trace file has.
        input: Box<dyn Read + 'a>,
    },
    /// Rows of another program: each line is one trace, and a line that is none is a broken row,
    /// whatever the lines around it.
    Rows {
        /// The name in messages, which orders inputs like that of a stream.
        name: String,
        /// The lines.
        input: Box<dyn Read + 'a>,
    },
}

/// Does the same as [`score()`] for any inputs.
///
/// # Errors
/// An input that cannot be read, with `strict` a line that is broken, a trace that belongs to no
/// test, or nothing to score.
pub fn score_inputs(
    suite: &Suite,
    inputs: Vec<TraceInput<'_>>,
    settings: &ScoreSettings,
    redactor: &Redactor,
    store: Store<'_>,
) -> Result<Scored, ScoreError> {
    score_to(suite, inputs, settings, redactor, ScoreSinks::new(store))
}

/// Does the same as [`score_inputs`], with more destinations.
///
/// # Errors
/// The same, or a row that cannot be written.
pub fn score_to(
    suite: &Suite,
    inputs: Vec<TraceInput<'_>>,
    settings: &ScoreSettings,
    redactor: &Redactor,
    sinks: ScoreSinks<'_>,
) -> Result<Scored, ScoreError> {
    stream::score(suite, inputs, settings, redactor, sinks)
}

/// Scores a part of all traces. [`merge_partials`] gives the result of all of them.
///
/// # Errors
/// The same as for [`score_inputs`].
pub fn score_partial(
    suite: &Suite,
    resolved: ResolvedSuite,
    inputs: Vec<TraceInput<'_>>,
    settings: &ScoreSettings,
    part: Option<PartOf>,
) -> Result<Partial, ScoreError> {
    partial::score_partial(suite, inputs, settings, resolved, part)
}
