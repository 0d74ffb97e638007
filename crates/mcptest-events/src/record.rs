//! The record of a run, and the same as it is in a line of the log.

use std::ops::Range;

use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{RunError, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One run of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunReport")]
pub struct RunRecord {
    /// The number of the run, from 1.
    pub index: u64,
    /// The row's name, such as `weather #3`.
    pub name: String,
    /// The verdict on the run's own assertions.
    pub verdict: Verdict,
    /// The evidence.
    pub trace: Trace,
    /// The assertions on this run.
    pub assertions: Vec<Assertion>,
    /// The error of a run that could not be completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

/// A [`RunRecord`] that is still a part of its line: JSON that nobody has parsed yet.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawRecord<'a>(#[serde(borrow)] &'a RawValue);

impl<'a> RawRecord<'a> {
    /// The JSON of the record.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.0.get()
    }

    /// The place of the record in the line that it was decoded from; `None` for another line.
    #[must_use]
    pub fn range_in(self, line: &str) -> Option<Range<usize>> {
        let start = (self.text().as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
        let end = start.checked_add(self.text().len())?;
        (end <= line.len()).then_some(start..end)
    }

    /// Parses the record.
    ///
    /// # Errors
    /// JSON that is not a record.
    pub fn parse(self) -> Result<RunRecord, serde_json::Error> {
        parse_deep(self.text())
    }

    /// Parses the trace of the record, and nothing else of it.
    ///
    /// # Errors
    /// JSON that is not a record.
    pub fn trace(self) -> Result<Trace, serde_json::Error> {
        #[derive(Deserialize)]
        struct WithTrace {
            trace: Trace,
        }
        parse_deep::<WithTrace>(self.text()).map(|record| record.trace)
    }
}

/// Parses JSON of any depth. Results of servers are bounded where they are received.
pub(crate) fn parse_deep<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

impl PartialEq for RawRecord<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}
