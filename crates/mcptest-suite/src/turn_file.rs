//! Further messages of the user as written: the entries of `turns:`.

use mcptest_trace::expect::WrittenExpectation;
use schemars::JsonSchema;
use serde::Deserialize;

/// A message that the user sends after an answer of the agent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnFile {
    /// The message.
    #[schemars(length(min = 1))]
    pub say: String,
    /// The condition on the run so far, such as `final_response: { contains: "?" }`. If it does
    /// not hold, the run ends there and fails. Default: the message is always sent.
    #[serde(default)]
    pub when: Option<WrittenExpectation>,
}
