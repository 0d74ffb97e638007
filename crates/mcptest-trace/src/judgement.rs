//! Opinions of judges, as a trace records them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::verdict::RunError;

/// One model's opinion on one string, as recorded in a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The path of the judged value.
    pub target: String,
    /// A hash of the rubric and the judged string. An opinion on another string, or by another
    /// rubric, has another one.
    pub digest: String,
    /// The model that judged.
    pub model: String,
    /// From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Number>,
    /// The model's explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason why there is no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}
