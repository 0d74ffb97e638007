//! Options for loading a suite.

use mcptest_gate_api::GateInfo;

use crate::providers::BuiltInProvider;

/// The purpose that a suite is loaded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To run it: servers, models and prompts are required.
    Run,
    /// To apply its gates to recorded traces: a suite may consist of gates only.
    Score,
}

/// Everything that loading needs from outside.
pub struct LoadOptions<'a> {
    /// The purpose.
    pub purpose: Purpose,
    /// The gates that tests may use.
    pub gates: &'static [GateInfo],
    /// Reads an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Checks a model id, apart from the providers that the suite declares.
    pub check_model: &'a dyn Fn(&str) -> Result<(), ModelError>,
    /// The built-in providers.
    pub providers: &'a [BuiltInProvider],
    /// Models that override those of all agent tests; empty to keep theirs.
    pub models: &'a [String],
}

/// A model id that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    message: String,
}

impl ModelError {
    /// An error with a message that names the id and the known ones.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}
