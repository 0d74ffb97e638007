//! The cassette format: all runs of one agent test with one model.

use std::collections::BTreeMap;

use mcptest_agent::{AssistantTurn, ToolReply};
use mcptest_json::canonical;
use mcptest_json::visible::visible;
use mcptest_trace::catalog::Tool;
use mcptest_trace::verdict::RunError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::digest::digest;
use crate::role::ModelRole;
use mcptest_redact::volatile::Rule;

/// The name of the format.
pub const FORMAT: &str = "mcptest-cassette";

/// A version of the format. Every version ever written is here and keeps loading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FormatVersion {
    /// The first.
    #[default]
    V1,
}

impl FormatVersion {
    const ALL: [Self; 1] = [Self::V1];

    fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
        }
    }
}

impl Serialize for FormatVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.number())
    }
}

impl<'de> Deserialize<'de> for FormatVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        Self::ALL
            .into_iter()
            .find(|version| version.number() == number)
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "version {number} of the format was written by a newer mcptest; this one \
                     reads version 1"
                ))
            })
    }
}

/// The value of `format`, always [`FORMAT`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FormatMarker;

impl Serialize for FormatMarker {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(FORMAT)
    }
}

impl<'de> Deserialize<'de> for FormatMarker {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == FORMAT {
            Ok(Self)
        } else {
            Err(serde::de::Error::custom(format!("expected `{FORMAT}`")))
        }
    }
}

/// A recorded agent test with one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    /// The name of the format.
    pub format: FormatMarker,
    /// The version of the format.
    pub version: FormatVersion,
    /// The suite's name.
    pub suite: String,
    /// The digest of the subject.
    pub fingerprint: String,
    /// The test, model, prompts and settings.
    pub subject: Subject,
    /// The planned number of runs.
    pub planned: u32,
    /// The rules for volatile values, in the order of precedence.
    pub rules: Vec<Rule>,
    /// The tools that each server listed.
    pub catalogs: Vec<RecordedCatalog>,
    /// The runs, by number.
    pub runs: Vec<RecordedRun>,
    /// The values that differ in every recording: durations, and the values of placeholders.
    pub volatile: Vec<VolatileValues>,
}

/// Everything that determines what the model sees, except the tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The test's name.
    pub test: String,
    /// The model's id.
    pub model: String,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The prompt.
    pub prompt: String,
    /// The servers whose tools are offered, in order.
    pub servers: Vec<String>,
    /// Settings that change what the model or the agent sees: `max_tokens`, `distractors`,
    /// `faults`, `script`, …
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
}

impl Subject {
    /// Returns the digest of the subject.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        digest(&canonical(&serde_json::to_value(self).unwrap_or_default()))
    }
}

/// The tools that a server listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCatalog {
    /// The server.
    pub server: String,
    /// The tools, as sent.
    pub tools: Vec<Value>,
}

impl RecordedCatalog {
    /// Returns the tools as the agent sees them.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        self.tools
            .iter()
            .filter_map(|listed| Tool::from_listing(Some(&self.server), listed))
            .collect()
    }
}

/// A recorded run, with separate sections for models and servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedRun {
    /// The run's number, from 1.
    pub run: u32,
    /// The error that prevented the run from starting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// The tools that the servers listed in this run, if they differ from the cassette's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalogs: Option<Vec<RecordedCatalog>>,
    /// The offered tools that no server has, and the order of all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distractors: Option<RecordedDistractors>,
    /// The model requests and answers, by role: `agent`, `judge:1`, …
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Vec<ModelExchange>>,
    /// The tool calls and their results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallExchange>,
    /// The messages that servers sent by themselves, as the trace has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Value>,
    /// The answers to the calls after the run, as the trace has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Value>,
}

/// The offered tools that no server has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedDistractors {
    /// The tools with their error results.
    pub tools: Vec<RecordedDistractor>,
    /// The wire names of all offered tools, in the order in which the model saw them.
    pub order: Vec<String>,
}

/// An offered tool that no server has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedDistractor {
    /// The tool as offered.
    pub tool: Tool,
    /// The error result of every call.
    pub refusal: String,
}

/// A request to a model and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelExchange {
    /// The request.
    pub request: RecordedRequest,
    /// The answer.
    pub answer: ModelAnswer,
}

/// A recorded request, reduced to what is new in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedRequest {
    /// The digest of the whole request.
    pub digest: String,
    /// The digest of the offered tools.
    pub tools: String,
    /// The system prompt, if it is not the subject's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The prompt, if it is not the subject's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The results of the previous turn's calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<FedResult>,
}

/// A result that was fed back to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FedResult {
    /// The reply to the run's call with this index, from 0.
    Call(usize),
    /// A reply of the agent loop to a call that could not be dispatched.
    Reply(Box<ToolReply>),
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelAnswer {
    /// A turn.
    Turn(AssistantTurn),
    /// The error that prevented an answer.
    Error(RunError),
}

/// A tool call and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallExchange {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub args: Value,
    /// The result.
    pub answer: CallAnswer,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAnswer {
    /// A reply, which may be an error result.
    Reply(Box<ToolReply>),
    /// The error that prevented an answer.
    Error(RunError),
}

/// The values of a run that differ in every recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VolatileValues {
    /// The run's number.
    pub run: u32,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The values of placeholders, in the order of their first use.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

/// The index of the entry of a run. Usually all runs are there in order, so it is where it should
/// be: a cassette has up to thousands of runs, and each is looked up.
fn numbered<T>(entries: &[T], number: u32, number_of: impl Fn(&T) -> u32) -> Option<usize> {
    let is_it = |entry: &T| number_of(entry) == number;
    let expected = (number as usize).checked_sub(1);
    let expected = expected.filter(|index| entries.get(*index).is_some_and(is_it));
    expected.or_else(|| entries.iter().position(is_it))
}

impl Cassette {
    /// Returns true if all planned runs are recorded.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        (1..=self.planned).eq(self.runs.iter().map(|run| run.run))
    }

    /// Returns the run with this number.
    #[must_use]
    pub fn run(&self, number: u32) -> Option<&RecordedRun> {
        self.index_of_run(number).map(|index| &self.runs[index])
    }

    /// Returns the index of the run with this number.
    pub(crate) fn index_of_run(&self, number: u32) -> Option<usize> {
        numbered(&self.runs, number, |run| run.run)
    }

    /// Returns the volatile values of a run.
    #[must_use]
    pub fn volatile_of(&self, number: u32) -> Option<&VolatileValues> {
        let index = numbered(&self.volatile, number, |of| of.run);
        index.map(|index| &self.volatile[index])
    }

    /// Returns the tools that the servers listed in a run.
    #[must_use]
    pub fn catalogs_of<'a>(&'a self, run: &'a RecordedRun) -> &'a [RecordedCatalog] {
        run.catalogs.as_deref().unwrap_or(&self.catalogs)
    }

    /// Returns the number of runs that ended with an infrastructure error.
    #[must_use]
    pub fn failed_runs(&self) -> usize {
        self.runs
            .iter()
            .filter(|run| run.first_error().is_some())
            .count()
    }

    /// Returns the content of the file. Hidden characters are written as escapes.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{}\n", visible(&text))
    }
}

impl RecordedRun {
    /// Returns the first infrastructure error of the run. A failed advisory reading is not one.
    #[must_use]
    pub fn first_error(&self) -> Option<&RunError> {
        let asked = self
            .models
            .iter()
            .filter(|(role, _)| ModelRole::reader_of(role).is_none())
            .flat_map(|(_, exchanges)| exchanges)
            .filter_map(|exchange| match &exchange.answer {
                ModelAnswer::Error(error) => Some(error),
                ModelAnswer::Turn(_) => None,
            });
        let called = self
            .calls
            .iter()
            .filter_map(|exchange| match &exchange.answer {
                CallAnswer::Error(error) => Some(error),
                CallAnswer::Reply(_) => None,
            });
        self.error.iter().chain(asked).chain(called).next()
    }
}
