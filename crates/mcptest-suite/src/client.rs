//! The client's side of the connections of a test: checked `client:` blocks.

use mcptest_trace::expect::Expectation;
use serde_json::{Map, Value};

pub use crate::client_file::{
    ActionFile as ElicitationAction, ClientErrorFile as ClientError, LogLevelFile as LogLevel,
};
use crate::file::ScriptTurn;

/// The client of a test: its capabilities and its answers. The default offers nothing.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ClientScript {
    /// The answers to `sampling/createMessage`; `None` if it is not offered.
    pub sampling: Option<Vec<AnswerRule<SamplingAnswer>>>,
    /// The answers to `elicitation/create`; `None` if it is not offered.
    pub elicitation: Option<Vec<AnswerRule<ElicitationAnswer>>>,
    /// The answer to `roots/list`; `None` if it is not offered.
    pub roots: Option<Vec<Root>>,
    /// The lowest level of log messages.
    pub log_level: Option<LogLevel>,
    /// True if tools that require a task are called as one.
    pub tasks: bool,
    /// Further capabilities.
    pub capabilities: Map<String, Value>,
    /// All of it as written, for comparing recordings.
    pub written: Map<String, Value>,
}

impl ClientScript {
    /// Returns true if nothing is offered or asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sampling.is_none()
            && self.elicitation.is_none()
            && self.roots.is_none()
            && self.log_level.is_none()
            && !self.tasks
            && self.capabilities.is_empty()
    }

    /// The models that answer, in order.
    pub fn models(&self) -> impl Iterator<Item = &SamplingModel> {
        let rules = self.sampling.iter().flatten();
        rules.filter_map(|rule| match &rule.answer {
            SamplingAnswer::Model(model) => Some(model),
            SamplingAnswer::Result(_) | SamplingAnswer::Error(_) => None,
        })
    }
}

/// An answer, and the requests that it is given to.
#[derive(Debug, Clone)]
pub struct AnswerRule<A> {
    /// Expectations on the parameters of the request, all of which must hold.
    pub when: Vec<Expectation>,
    /// The number of requests that it answers; `None` for all.
    pub times: Option<u32>,
    /// The answer.
    pub answer: A,
}

impl<A> AnswerRule<A> {
    /// Returns true if it answers a request with these parameters.
    #[must_use]
    pub fn applies(&self, params: &Value) -> bool {
        self.when
            .iter()
            .all(|expectation| expectation.holds(params))
    }
}

/// The answer to `sampling/createMessage`.
#[derive(Debug, Clone)]
pub enum SamplingAnswer {
    /// A result.
    Result(Value),
    /// An error.
    Error(ClientError),
    /// The answer of a model.
    Model(SamplingModel),
}

/// A model that answers `sampling/createMessage`.
#[derive(Debug, Clone)]
pub struct SamplingModel {
    /// Its id.
    pub id: String,
    /// The script for `builtin/scripted`: one run per request.
    pub script: Vec<Vec<ScriptTurn>>,
}

/// The answer to `elicitation/create`.
#[derive(Debug, Clone)]
pub enum ElicitationAnswer {
    /// The reaction, and the form if it was filled in by the suite.
    Reply(ElicitationAction, Option<Map<String, Value>>),
    /// An error.
    Error(ClientError),
}

/// A root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}
