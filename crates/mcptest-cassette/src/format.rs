//! The file: one agent test with one model, and all its runs.

use std::collections::BTreeMap;

use mcptest_agent::{AssistantTurn, ToolReply};
use mcptest_json::canonical;
use mcptest_trace::catalog::Tool;
use mcptest_trace::verdict::RunError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::digest::digest;
use mcptest_redact::volatile::Rule;

/// What the file says it is.
pub const FORMAT: &str = "mcptest-cassette";

/// A version of the format. Every version ever written is here and keeps loading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    /// The first.
    #[default]
    V1,
}

impl Version {
    const ALL: [Self; 1] = [Self::V1];

    fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
        }
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.number())
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        Self::ALL
            .into_iter()
            .find(|version| version.number() == number)
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "this is version {number} of the format, which a newer mcptest has written; this one reads version 1"
                ))
            })
    }
}

/// The mark in the first line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marker;

impl Serialize for Marker {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(FORMAT)
    }
}

impl<'de> Deserialize<'de> for Marker {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == FORMAT {
            Ok(Self)
        } else {
            Err(serde::de::Error::custom(format!("expected `{FORMAT}`")))
        }
    }
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    /// What the file is.
    pub format: Marker,
    /// The version of the format.
    pub version: Version,
    /// The suite's name.
    pub suite: String,
    /// A digest of the subject.
    pub fingerprint: String,
    /// What was asked of whom.
    pub subject: Subject,
    /// How many runs were to be recorded.
    pub planned: u32,
    /// How volatile values were found, in the order of precedence.
    pub rules: Vec<Rule>,
    /// What each server listed, entry by entry as sent.
    pub catalogs: Vec<Catalog>,
    /// The runs, by number.
    pub runs: Vec<RecordedRun>,
    /// What is different in every recording: durations, and the values that placeholders stand for.
    pub volatile: Vec<VolatileOfRun>,
}

/// Everything that decides what the model sees, but for the tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The test.
    pub test: String,
    /// The model.
    pub model: String,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The task.
    pub prompt: String,
    /// The servers whose tools are offered, in order.
    pub servers: Vec<String>,
    /// Settings that change what the model or the agent meets: `max_tokens`, `distractors`,
    /// `faults`, `script`, …
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
}

impl Subject {
    /// A digest of all of it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        digest(&canonical(&serde_json::to_value(self).unwrap_or_default()))
    }
}

/// What a server listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// The server.
    pub server: String,
    /// Its tools, as sent.
    pub tools: Vec<Value>,
}

impl Catalog {
    /// The tools as the agent knows them.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        self.tools
            .iter()
            .filter_map(|listed| Tool::from_listing(Some(&self.server), listed))
            .collect()
    }
}

/// One run. The model's side and the servers' side are apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedRun {
    /// From 1.
    pub run: u32,
    /// What kept the run from beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// What the servers listed in this run, if that was not what the cassette says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalogs: Option<Vec<Catalog>>,
    /// The tools in the offer that no server has, and the order of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distractors: Option<Distractors>,
    /// What models were asked and answered, by role: `agent`, `judge:1`, …
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Vec<ModelExchange>>,
    /// What tools were called with and answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallExchange>,
}

/// Tools in the offer that no server has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distractors {
    /// The tools, with what a call to each is answered with.
    pub tools: Vec<Distractor>,
    /// The wire names of all offered tools, in the order in which the model saw them.
    pub order: Vec<String>,
}

/// One tool that no server has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distractor {
    /// As it was offered.
    pub tool: Tool,
    /// What a call to it is answered with.
    pub refusal: String,
}

/// A model was asked for a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelExchange {
    /// What it was asked.
    pub request: Asked,
    /// What it answered.
    pub answer: Answer,
}

/// A request, by what is new in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asked {
    /// A digest of everything that the model was told.
    pub digest: String,
    /// A digest of the tools that it was offered.
    pub tools: String,
    /// The system prompt, where it is not the subject's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The task, where it is not the subject's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What the calls of the turn before came back with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Fed>,
}

/// A result that was fed back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fed {
    /// The reply of this one of the run's calls, from 0.
    Call(usize),
    /// A reply that no server gave: the call could not be dispatched.
    Reply(Box<ToolReply>),
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A turn.
    Turn(AssistantTurn),
    /// Why there is none.
    Error(RunError),
}

/// A tool was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallExchange {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub args: Value,
    /// What came back.
    pub answer: CallAnswer,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAnswer {
    /// A result, which may be an error result.
    Reply(Box<ToolReply>),
    /// Why there is none.
    Error(RunError),
}

/// What is different in every recording of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VolatileOfRun {
    /// The run.
    pub run: u32,
    /// How long it took.
    pub duration_ms: u64,
    /// What placeholders stand for, in the order in which they came up.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

impl Cassette {
    /// Whether all runs that were to be recorded are there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        (1..=self.planned).eq(self.runs.iter().map(|run| run.run))
    }

    /// The run of this number.
    #[must_use]
    pub fn run(&self, number: u32) -> Option<&RecordedRun> {
        self.runs.iter().find(|run| run.run == number)
    }

    /// What is different in every recording of this run.
    #[must_use]
    pub fn volatile_of(&self, number: u32) -> Option<&VolatileOfRun> {
        self.volatile.iter().find(|of| of.run == number)
    }

    /// What the servers listed in a run.
    #[must_use]
    pub fn catalogs_of<'a>(&'a self, run: &'a RecordedRun) -> &'a [Catalog] {
        run.catalogs.as_deref().unwrap_or(&self.catalogs)
    }

    /// How many runs ended with an error that is not the agent's.
    #[must_use]
    pub fn broken_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.broke().is_some()).count()
    }

    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        format!("{text}\n")
    }
}

impl RecordedRun {
    /// What broke the run, if something did.
    #[must_use]
    pub fn broke(&self) -> Option<&RunError> {
        let asked = self
            .models
            .values()
            .flatten()
            .filter_map(|exchange| match &exchange.answer {
                Answer::Error(error) => Some(error),
                Answer::Turn(_) => None,
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
