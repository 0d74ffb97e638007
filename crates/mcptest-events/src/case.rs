//! The tests of an invocation, as plans and reports name them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The identity of a test with one model.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct CaseId {
    /// The suite it is from.
    pub suite: String,
    /// The test's name.
    pub name: String,
    /// The model, for an agent test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.suite, self.name)?;
        match &self.model {
            Some(model) => write!(f, " [{model}]"),
            None => Ok(()),
        }
    }
}

/// The kinds of test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A model acted.
    Agent,
    /// A tool was called directly, or the tools were listed.
    Tool,
    /// The descriptions of a server's tools were judged.
    ToolQuality,
    /// A resource was read directly, listed or completed.
    Resource,
    /// A prompt was requested directly, listed or completed.
    Prompt,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Agent,
        Self::Tool,
        Self::ToolQuality,
        Self::Resource,
        Self::Prompt,
    ];
}

/// A test with one model that is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCase {
    /// Its identity.
    pub id: CaseId,
    /// The kind of test.
    pub kind: Kind,
    /// The name that its rows have: the test's, with the model when several models run.
    pub label: String,
    /// The number of runs.
    pub runs: u32,
    /// Its position among the cases of all shards, from 0; without shards, its index.
    pub position: u64,
    /// The tags of the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The suite file, as it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the test in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// The part of the whole that a run with `--shard` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardPlan {
    /// The shard's number, from 1.
    pub number: u32,
    /// The number of shards.
    pub of: u32,
    /// The number of cases in all shards together.
    pub total: u64,
}
