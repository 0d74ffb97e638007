//! The result of one run of an agent.

use std::time::Instant;

use mcptest_trace::verdict::RunError;
use serde_json::Value;

/// The result of one run, as far as the agent itself reports it. It is evidence only if the run
/// [`ended`](Self::ended) without an [`error`](Self::error), and every server was listed.
#[derive(Debug, Clone, Default)]
pub struct AgentOutcome {
    /// The last answer.
    pub final_response: Option<String>,
    /// The messages of the user and of the agent, in order.
    pub turns: Vec<AgentTurn>,
    /// The tokens, if the agent reports them.
    pub tokens: Option<AgentTokens>,
    /// The cost in US dollars, if the agent reports it.
    pub cost_usd: Option<f64>,
    /// The reason why the model stopped, if the agent reports it.
    pub stop: Option<String>,
    /// The calls of the agent's own tools.
    pub builtin_calls: Vec<BuiltinCall>,
    /// The servers that did not work, as the agent reports them: name and state.
    pub failed_servers: Vec<(String, String)>,
    /// The reason why the run cannot be judged.
    pub error: Option<RunError>,
    /// True if the agent reported the end of its work.
    pub ended: bool,
    /// The exit of the agent's process, if it exited by itself.
    pub exit: Option<AgentExit>,
    /// The agent's version, if it reports it in the run.
    pub version: Option<String>,
    /// The agent's output, bounded.
    pub stream: Vec<u8>,
    /// True if the output was longer than what was kept.
    pub stream_truncated: bool,
    /// The last lines of the agent's standard error.
    pub stderr_tail: Vec<String>,
}

/// A message of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTurn {
    /// The sender.
    pub role: TurnRole,
    /// The text.
    pub content: String,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnRole {
    /// The user.
    User,
    /// The agent.
    Assistant,
}

/// The tokens of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentTokens {
    /// Input tokens, including the cached ones.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Cached input tokens.
    pub cached: Option<u64>,
    /// The total.
    pub total: Option<u64>,
}

/// A call of an agent's own tool.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltinCall {
    /// The tool's name, as the agent gives it.
    pub name: String,
    /// The arguments.
    pub args: Value,
    /// True if the call failed; `None` if there is no result.
    pub is_error: Option<bool>,
    /// The result, as the agent gives it.
    pub result: Option<Value>,
    /// The number of the user's message that it belongs to, from 1.
    pub turn: u32,
    /// The time at which the agent's output showed it.
    pub at: Instant,
}

/// The exit of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentExit {
    /// It exited with a code.
    Code(i32),
    /// It was ended by a signal.
    Signal(i32),
}
