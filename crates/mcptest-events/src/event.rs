//! The events of an invocation.

use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::{ErrorKind, Verdict};
use serde::{Deserialize, Serialize};

use crate::case::{PlannedCase, ShardPlan};
use crate::record::RunRecord;
use crate::spend::{Replayed, RunSpend, Spend};

/// One event. `case` is an index into the planned cases of the whole invocation.
///
/// A run that was repeated, because a resumed invocation could not use it, has several events of a
/// kind: the last one of each case and run holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event<R = RunRecord> {
    /// The invocation began. The first event of a log.
    Begun(Begun),
    /// The cases are known.
    Planned {
        /// All cases, in the order of the suites.
        cases: Vec<PlannedCase>,
        /// The part of the whole, for a run with `--shard`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shard: Option<ShardPlan>,
    },
    /// An interrupted or killed invocation continues.
    Resumed {
        /// The time, in milliseconds since 1970 (UTC).
        started_ms: u64,
    },
    /// A run or direct call began.
    RunStarted {
        /// Its case.
        case: usize,
        /// Its number, from 1.
        run: u32,
    },
    /// A model answered a request.
    ModelAnswered {
        /// The case of the run.
        case: usize,
        /// The run's number, from 1.
        run: u32,
        /// The model's id.
        model: String,
        /// The number of the judge, from 1; `None` for another model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judge: Option<u32>,
        /// True for the model that reads the claims in the closing message.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reader: bool,
        /// The tokens, where the provider reported them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<AnswerTokens>,
    },
    /// An agent's tool call was answered.
    ToolCalled {
        /// The case of the run.
        case: usize,
        /// The run's number, from 1.
        run: u32,
        /// The full id of the tool, such as `weather.get_weather`.
        tool: String,
        /// True if the result is an error.
        is_error: bool,
    },
    /// A run or direct call ended and was judged.
    RunFinished(RunFinished<R>),
    /// Some planned runs of a case will not be made: its verdict is decided, or it cannot run.
    RunsSaved {
        /// The case.
        case: usize,
        /// The number of runs.
        runs: u32,
    },
    /// A case was judged: all runs are finished, or no more will be.
    CaseJudged(CaseJudged),
    /// The spend of a suite, after its last case.
    Spend {
        /// The sum over the cases of the suite that report a spend.
        total: Spend,
    },
    /// Something is suspicious and was found only while running.
    Warning {
        /// One line.
        text: String,
    },
    /// Something was done in addition to running, such as writing a cassette or a snapshot.
    Note {
        /// One line.
        text: String,
    },
    /// The invocation ended. Without it, the invocation was killed or is still running.
    Ended(Ended),
}

/// The start of an invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The version of the event format.
    pub version: u32,
    /// The id of the log.
    pub id: String,
    /// The version of mcptest.
    pub mcptest: String,
    /// The time, in milliseconds since 1970 (UTC).
    pub started_ms: u64,
    /// The arguments of the command, without the program.
    pub command_line: Vec<String>,
    /// The files that decide what is run: suites and the files they import.
    pub inputs: Vec<InputFile>,
}

/// A file that an invocation read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Its path, as it was opened.
    pub path: String,
    /// Its SHA-256, in hexadecimal (see [`crate::digest::sha256`]).
    pub sha256: String,
}

/// The tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerTokens {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
}

/// The end of a run or direct call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFinished<R = RunRecord> {
    /// Its case.
    pub case: usize,
    /// Its number, from 1.
    pub run: u32,
    /// The number of tool calls.
    pub calls: u64,
    /// The number of tool results that are errors.
    pub errors: u64,
    /// The reported total of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Its duration.
    pub duration_ms: u64,
    /// The judgement on the run.
    pub facts: RunFacts,
    /// The cost of its models, if any was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<RunSpend>,
    /// The row of the report. A `tool_quality` test has one only if its catalog could not be read.
    // The last key: a reader can find it in the line without parsing it.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub record: Option<R>,
}

/// The default of a missing record, without asking `R` for one.
fn none<R>() -> Option<R> {
    None
}

/// The judgement on a run, as far as the judgement on its case needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The verdict on the run, as its row shows it.
    pub verdict: Verdict,
    /// The verdict that it adds to the case: a pass where the case tolerates a failed run.
    pub counted: Verdict,
    /// True if the run's own assertions fail the case, whatever other runs do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails_case: bool,
    /// True if all assertions that evidence decides held; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expectations_held: Option<bool>,
    /// The kind of error, for a run that could not be completed or judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
}

/// The judgement on a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseJudged {
    /// The case.
    pub case: usize,
    /// Its verdict.
    pub verdict: Verdict,
    /// True if the case has all the runs that it needs; false if it was interrupted.
    pub complete: bool,
    /// Each gate.
    pub gates: Vec<GateOutcome>,
    /// The reason why there was nothing to judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_evidence: Option<String>,
    /// For a test that stops when it is decided: the number of runs that were not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_runs: Option<u64>,
    /// The cost of its finished runs, judges included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// The part of it that a cassette answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// The time from the start of its first run to the end of its last one, without the start-up
    /// of servers; absent if no run was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Lines that gates print on standard error, whatever the reporter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_lines: Vec<String>,
}

/// The end of an invocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// True if the user interrupted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// True if a part of mcptest panicked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub panicked: bool,
    /// The time that suites took, over all parts of a resumed invocation.
    pub duration_ms: u64,
}
