//! The script of `builtin/scripted`, as written.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// One assistant turn of a script.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptTurn {
    /// The text of the turn.
    pub say: Option<String>,
    /// The tools called in this turn, in order.
    pub calls: Vec<ScriptCall>,
    /// The usage reported for this turn. Without it, the run's usage is unknown.
    pub usage: Option<ScriptUsage>,
}

/// One tool call of a script.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// The tool: `server.tool`, the wire name `server__tool`, or the bare name. It need not exist.
    pub tool: String,
    /// The arguments. A string represents arguments that are not valid JSON.
    #[serde(default)]
    pub args: Option<Value>,
    /// The tag of a call made from generated code.
    #[serde(default)]
    pub caller: Option<Value>,
}

/// Token usage of a scripted turn.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptUsage {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
}
