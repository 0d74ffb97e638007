//! A checked manifest with prepared answers.

use std::collections::BTreeMap;

use mcptest_attack::Attack;
use serde_json::{Map, Value};

use crate::database::{Database, SqlTool};
use crate::fault::MockFault;
use crate::manifest::{LogLevel, TaskSpec};
use crate::server_changes::Change;
use crate::template::Template;

/// A checked server.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    /// `None` if the server offers no tools; a captured catalog may offer an empty list.
    pub(crate) tools: Option<Vec<CompiledTool>>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) resource_templates: Vec<ResourceTemplate>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) fault: MockFault,
    pub(crate) page_size: Option<usize>,
    pub(crate) attacks: Vec<Attack>,
    /// The tables and rows at the start of a session.
    pub(crate) database: Option<Database>,
}

#[derive(Debug, Clone)]
pub(crate) struct CompiledTool {
    /// The entry of `tools/list`.
    pub(crate) wire: Value,
    /// `None` for a captured tool without a valid name: it is listed but cannot be called.
    pub(crate) name: Option<String>,
    pub(crate) input_schema: Option<Value>,
    /// The answers by arguments. The first case that matches wins.
    pub(crate) cases: Vec<Case>,
    /// The statements in place of an answer.
    pub(crate) sql: Option<SqlTool>,
    pub(crate) ask: Vec<Vec<Ask>>,
    /// The support for tasks.
    pub(crate) task: Option<TaskSpec>,
    /// True if it is not listed until it is revealed.
    pub(crate) hidden: bool,
    pub(crate) fault: Option<MockFault>,
}

impl CompiledTool {
    /// The changes that its answers cause.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &Change> {
        let responses = self.cases.iter().flat_map(|case| &case.responses);
        let before = responses.flat_map(|response| &response.before);
        before.filter_map(|before| match before {
            Before::Change(change) => Some(change),
            _ => None,
        })
    }

    /// Returns true if any of its answers logs a message.
    pub(crate) fn logs(&self) -> bool {
        let responses = self.cases.iter().flat_map(|case| &case.responses);
        let mut before = responses.flat_map(|response| &response.before);
        before.any(|before| matches!(before, Before::Log(..)))
    }
}

/// A request to the client.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) key: String,
    pub(crate) capability: &'static str,
    /// `"method":…,"params":…`
    pub(crate) members: Template,
}

/// The answers for certain arguments, used in turn.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) when: Option<Map<String, Value>>,
    /// The answers of the client.
    pub(crate) when_answered: Option<Map<String, Value>>,
    pub(crate) responses: Vec<Response>,
}

/// One answer of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) before: Vec<Before>,
    pub(crate) answer: Answer,
}

#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The members of the result.
    Result(Template),
    /// The code, and an object with the message and the data.
    Error(i32, Template),
}

/// A message or wait before an answer.
#[derive(Debug, Clone)]
pub(crate) enum Before {
    Wait(u64),
    /// The members of the notification after the token.
    Progress(Template),
    /// The members of the notification.
    Log(LogLevel, Template),
    Change(Change),
}

#[derive(Debug, Clone)]
pub(crate) struct ResourceTemplate {
    /// The literals around the variables: one more than `names`.
    pub(crate) literals: Vec<String>,
    /// The names of the variables.
    pub(crate) names: Vec<String>,
    /// The pattern as written.
    pub(crate) pattern: String,
    /// The entry of `resources/templates/list`.
    pub(crate) wire: Value,
    /// The members of an entry of `contents` after the URI.
    pub(crate) contents: Template,
    pub(crate) complete: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) uri: String,
    /// The entry of `resources/list`.
    pub(crate) wire: Value,
    /// The entries of `contents`: at first, and after each update.
    pub(crate) contents: Vec<Value>,
    /// True if clients may subscribe to it.
    pub(crate) subscribe: bool,
    /// True if it is not listed until it is revealed.
    pub(crate) hidden: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    pub(crate) name: String,
    /// The entry of `prompts/list`.
    pub(crate) wire: Value,
    pub(crate) required: Vec<String>,
    pub(crate) complete: BTreeMap<String, Vec<String>>,
    pub(crate) ask: Vec<Vec<Ask>>,
    /// True if it is not listed until it is revealed.
    pub(crate) hidden: bool,
    /// The members of the result.
    pub(crate) response: Template,
}
