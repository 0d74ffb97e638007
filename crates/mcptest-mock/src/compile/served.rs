//! What a checked manifest holds: answers, ready to be given.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::manifest::LogLevel;
use crate::template::Template;

/// A checked server: everything that requests can ask for.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    /// Nothing if the server offers no tools at all; a captured catalog may offer an empty list.
    pub(crate) tools: Option<Vec<Tool>>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) resource_templates: Vec<ResourceTemplate>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) fault: Fault,
    pub(crate) page_size: Option<usize>,
    pub(crate) subscribe: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Tool {
    /// The entry of `tools/list`.
    pub(crate) wire: Value,
    /// Nothing for a captured tool without a usable name: it is listed but cannot be called.
    pub(crate) name: Option<String>,
    pub(crate) input_schema: Option<Value>,
    /// Which answers it has for which arguments. The first that fits wins.
    pub(crate) cases: Vec<Case>,
    pub(crate) ask: Vec<Vec<Ask>>,
    pub(crate) fault: Option<Fault>,
}

impl Tool {
    /// Whether any of its answers logs something.
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

/// Answers for certain arguments, given one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) when: Option<Map<String, Value>>,
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

/// What is sent before an answer.
#[derive(Debug, Clone)]
pub(crate) enum Before {
    Wait(u64),
    /// The members of the notification after the token.
    Progress(Template),
    /// The members of the notification.
    Log(LogLevel, Template),
}

#[derive(Debug, Clone)]
pub(crate) struct ResourceTemplate {
    /// The text between the parts that vary, and their names: one more text than names.
    pub(crate) texts: Vec<String>,
    pub(crate) names: Vec<String>,
    /// The pattern as written.
    pub(crate) pattern: String,
    /// The entry of `resources/templates/list`.
    pub(crate) wire: Value,
    /// The members of an entry of `contents` after the address.
    pub(crate) contents: Template,
    pub(crate) complete: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) uri: String,
    /// The entry of `resources/list`.
    pub(crate) wire: Value,
    /// The entry of `contents`.
    pub(crate) contents: Value,
}

#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    pub(crate) name: String,
    /// The entry of `prompts/list`.
    pub(crate) wire: Value,
    pub(crate) required: Vec<String>,
    pub(crate) complete: BTreeMap<String, Vec<String>>,
    pub(crate) ask: Vec<Vec<Ask>>,
    /// The members of the result.
    pub(crate) response: Template,
}
