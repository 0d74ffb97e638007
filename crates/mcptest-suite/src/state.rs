//! Checked calls around an agent's run.

use std::fmt;
use std::time::Duration;

use mcptest_trace::expect::Expectation;
use mcptest_trace::target::Target;

use crate::template::Args;

/// The calls around each run of an agent test.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct StateCalls {
    /// Calls before the run.
    pub setup: Vec<StateCall>,
    /// Calls after the run, whose answers are asserted.
    pub after: Vec<StateCall>,
    /// Calls at the end, whatever the outcome.
    pub teardown: Vec<StateCall>,
}

impl StateCalls {
    /// Returns true if there is no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// All calls, in the order in which they are made.
    pub fn all(&self) -> impl Iterator<Item = &StateCall> {
        self.setup.iter().chain(&self.after).chain(&self.teardown)
    }
}

/// A direct call before or after a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct StateCall {
    /// The server.
    pub server: String,
    /// The tool or the query.
    pub action: StateAction,
    /// The arguments of the tool, or the parameters of the query.
    pub args: Args,
    /// Assertions over the answer.
    pub expect: Vec<Expectation>,
    /// Values of the answer to save, by name.
    pub save: Vec<(String, Target)>,
    /// The timeout for the call, if it has its own.
    pub timeout: Option<Duration>,
}

/// The kind of a direct call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateAction {
    /// A tool.
    Tool(String),
    /// A query of the database of a mock server.
    Query(String),
}

impl fmt::Display for StateCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            StateAction::Tool(tool) => write!(f, "`{}.{tool}`", self.server),
            StateAction::Query(sql) => {
                let sql = mcptest_json::text::one_line(sql);
                let sql = mcptest_json::text::shorten(&sql, 100);
                write!(f, "`{sql}` on `{}`", self.server)
            }
        }
    }
}
