//! The row of a run.

use std::ops::Range;

use mcptest_events::RunRecord;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, Verdict};

use crate::store::RecordRange;

/// The facts about a run that reporters need of every run.
///
/// A row has no trace, and no name where it follows from the label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub(crate) record: RecordRange,
    /// The reported total of tokens.
    pub(crate) tokens: Option<u64>,
    pub(crate) duration: u64,
    pub(crate) index: u64,
    pub(crate) name: RowName,
    pub(crate) calls: u32,
    /// The number of calls whose result is an error.
    pub(crate) errors: u32,
    pub(crate) verdict: Verdict,
    pub(crate) error: Option<ErrorKind>,
    pub(crate) early_end: Option<EarlyEnd>,
    pub(crate) has_details: bool,
    /// True if the record is stored without its index and name.
    pub(crate) headless: bool,
}

/// A run of a scored trace. Its record is stored without its beginning (`{"index":…,"name":…,`),
/// because the number of a recorded run is known only after all of them were read.
#[derive(Debug, Clone)]
pub struct ScoredRow<'a> {
    /// The number of the run, from 1.
    pub index: u64,
    /// True if the name of the row has the number.
    pub numbered: bool,
    /// The verdict on the run's own assertions.
    pub verdict: Verdict,
    /// The kind of error of a run that could not be completed.
    pub error: Option<ErrorKind>,
    /// The number of tool calls.
    pub calls: u32,
    /// The number of tool results that are errors.
    pub errors: u32,
    /// The reported total of tokens.
    pub tokens: Option<u64>,
    /// The recorded reason why the agent stopped.
    pub stop_reason: Option<&'a str>,
    /// True if there is an error, or an assertion that failed or was skipped.
    pub has_details: bool,
    /// The place of the record in the store. Without one, only its row can be shown.
    pub record: Option<Range<u64>>,
}

impl From<ScoredRow<'_>> for RunRow {
    fn from(run: ScoredRow<'_>) -> Self {
        let record = run.record.unwrap_or_default();
        Self {
            record: RecordRange {
                offset: record.start,
                // A record of 4 GiB cannot be shown.
                len: u32::try_from(record.end.saturating_sub(record.start)).unwrap_or(0),
            },
            tokens: run.tokens,
            duration: 0,
            index: run.index,
            name: if run.numbered {
                RowName::Numbered
            } else {
                RowName::Label
            },
            calls: run.calls,
            errors: run.errors,
            verdict: run.verdict,
            error: run.error,
            early_end: run.stop_reason.and_then(EarlyEnd::of_stop_reason),
            has_details: run.has_details,
            headless: true,
        }
    }
}

/// The name of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowName {
    /// The label of the test.
    Label,
    /// The label and the number of the run.
    Numbered,
    /// Any other name.
    Own(Box<str>),
}

/// The reason why a run ended without an answer, if the agent did not end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlyEnd {
    MaxTurns,
    MaxTokens,
    Withheld,
    MalformedCall,
}

impl EarlyEnd {
    /// All of them: each is at the place of its number.
    pub(crate) const ALL: [Self; 4] = [
        Self::MaxTurns,
        Self::MaxTokens,
        Self::Withheld,
        Self::MalformedCall,
    ];

    /// The early end with this `stop_reason` in a trace.
    pub(crate) fn of_stop_reason(reason: &str) -> Option<Self> {
        match reason {
            "max_turns" => Some(Self::MaxTurns),
            "max_tokens" => Some(Self::MaxTokens),
            "withheld" => Some(Self::Withheld),
            "malformed_call" => Some(Self::MalformedCall),
            _ => None,
        }
    }

    fn of_trace(trace: &Trace) -> Option<Self> {
        Self::of_stop_reason(trace.extra("stop_reason")?.as_str()?)
    }
}

/// The facts about a run that do not need its record.
pub(crate) struct RowFacts {
    pub index: u64,
    pub verdict: Verdict,
    pub error: Option<ErrorKind>,
    pub calls: u64,
    pub errors: u64,
    pub tokens: Option<u64>,
    pub duration_ms: u64,
    pub early_end: Option<EarlyEnd>,
    /// Set if the record may have an error, or assertions that failed or were skipped.
    pub has_details: bool,
}

impl RunRow {
    /// A row for a record at `range` of a store.
    pub(crate) fn new(label: &str, name: &str, facts: &RowFacts, range: RecordRange) -> Self {
        let name = if name == label {
            RowName::Label
        } else if is_numbered(name, label, facts.index) {
            RowName::Numbered
        } else {
            RowName::Own(name.into())
        };
        Self {
            record: range,
            tokens: facts.tokens,
            duration: facts.duration_ms,
            index: facts.index,
            name,
            calls: u32::try_from(facts.calls).unwrap_or(u32::MAX),
            errors: u32::try_from(facts.errors).unwrap_or(u32::MAX),
            verdict: facts.verdict,
            error: facts.error,
            early_end: facts.early_end,
            has_details: facts.has_details,
            headless: false,
        }
    }

    /// The row of a parsed record.
    pub(crate) fn of_record(
        label: &str,
        record: &RunRecord,
        duration_ms: u64,
        range: RecordRange,
    ) -> Self {
        let noteworthy = |assertion: &mcptest_trace::expect::Assertion| {
            assertion.failed() || assertion.skipped.is_some()
        };
        let facts = RowFacts {
            index: record.index,
            verdict: record.verdict,
            error: record.error.as_ref().map(|error| error.kind),
            calls: record.trace.tool_calls.len() as u64,
            errors: record.trace.failed_results() as u64,
            tokens: record.trace.total_tokens(),
            duration_ms,
            early_end: EarlyEnd::of_trace(&record.trace),
            has_details: record.error.is_some() || record.assertions.iter().any(noteworthy),
        };
        Self::new(label, &record.name, &facts, range)
    }

    /// The number of the run, from 1.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The verdict on the run's own assertions.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The kind of error of a run that could not be completed.
    #[must_use]
    pub fn error(&self) -> Option<ErrorKind> {
        self.error
    }

    /// The number of tool calls.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// The number of tool results that are errors.
    #[must_use]
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// The reported total of tokens.
    #[must_use]
    pub fn tokens(&self) -> Option<u64> {
        self.tokens
    }

    /// The duration in milliseconds.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        self.duration
    }

    /// The size of the record in the store, in bytes; 0 if there is no record.
    pub(crate) fn record_len(&self) -> u64 {
        self.record.len.into()
    }

    pub(crate) fn early_end(&self) -> Option<EarlyEnd> {
        self.early_end
    }

    /// False if the record has neither an error nor assertions that failed or were skipped.
    pub(crate) fn has_details(&self) -> bool {
        self.has_details
    }

    pub(crate) fn set_duration(&mut self, duration_ms: u64) {
        self.duration = duration_ms;
    }
}

/// Returns true if a name is the label and the number of the run: `weather #3`.
fn is_numbered(name: &str, label: &str, index: u64) -> bool {
    name.strip_prefix(label)
        .and_then(|rest| rest.strip_prefix(" #"))
        .is_some_and(|number| number == index.to_string())
}
