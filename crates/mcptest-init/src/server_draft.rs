//! The facts about a server that its files are written from.

use mcptest_json::text::{one_line, shorten};
use serde_json::{Map, Value};

use crate::launch::Launch;
use crate::read_only::{NotReadOnly, only_reads};
use crate::synthesis;

/// The number of tools that are called, at most.
pub const MAX_CALLS: usize = 40;

/// The longest quote of a server, in characters.
const MAX_WORDS: usize = 300;

/// Which tools are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallPolicy {
    /// None.
    None,
    /// Those that only read.
    #[default]
    ReadOnly,
    /// All.
    All,
}

/// A server with its tools and what they answered. Secrets are masked in all of it.
#[derive(Debug, Clone, Default)]
pub struct ServerDraft {
    /// Its name in the suite.
    pub name: String,
    /// The name of its mock in the suite.
    pub mock: String,
    /// Its own name and version.
    pub title: Option<String>,
    /// Its own version.
    pub version: Option<String>,
    /// The instructions for clients.
    pub instructions: Option<String>,
    /// The way to reach it.
    pub launch: Launch,
    /// The `startup_timeout`, for a server that starts slowly.
    pub startup_timeout: Option<&'static str>,
    /// The tools, as listed.
    pub tools: Vec<ToolDraft>,
    /// Entries of its list that cannot be used, and why.
    pub unusable: Vec<String>,
    /// A call without its required arguments, and the answer.
    pub refused: Option<RefusedCall>,
}

/// A tool and what became of its call.
#[derive(Debug, Clone)]
pub struct ToolDraft {
    /// Its name.
    pub name: String,
    /// The entry of the list.
    pub listed: Value,
    /// The outcome of its call.
    pub outcome: Outcome,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is to be called.
    Planned {
        /// The arguments.
        args: Map<String, Value>,
    },
    /// It answered.
    Answered {
        /// The arguments.
        args: Map<String, Value>,
        /// The result as sent.
        result: Value,
        /// The reason why it cannot be a snapshot; `None` if it can.
        no_snapshot: Option<&'static str>,
        /// True if the answer describes this machine, so it is not written to any file.
        private: bool,
    },
    /// It answered with an error, or not at all.
    Failed {
        /// The arguments.
        args: Map<String, Value>,
        /// The words of the server, or the reason.
        words: String,
        /// True if the server answered.
        answered: bool,
    },
    /// It may change something.
    NotCalled(NotReadOnly),
    /// No arguments could be made up.
    NoArguments(String),
    /// Others came first.
    NotTried(&'static str),
}

/// A call without its required arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedCall {
    /// The tool.
    pub tool: String,
    /// True if the result reports the error, false if the protocol does.
    pub in_result: bool,
    /// The code of the protocol's error.
    pub code: Option<i64>,
}

impl ToolDraft {
    /// The description; empty if there is none.
    #[must_use]
    pub fn description(&self) -> &str {
        let text = self.listed.get("description").and_then(Value::as_str);
        text.unwrap_or_default()
    }

    /// The schema of the arguments.
    #[must_use]
    pub fn input_schema(&self) -> Option<&Value> {
        self.listed.get("inputSchema")
    }

    /// The arguments of its call.
    #[must_use]
    pub fn args(&self) -> Option<&Map<String, Value>> {
        match &self.outcome {
            Outcome::Planned { args }
            | Outcome::Answered { args, .. }
            | Outcome::Failed { args, .. } => Some(args),
            _ => None,
        }
    }
}

impl ServerDraft {
    /// Takes the tools of a list and decides which of them are called.
    pub fn set_tools(&mut self, listed: Vec<Value>, policy: CallPolicy) {
        let mut names = std::collections::BTreeSet::new();
        let mut calls = 0;
        for (index, entry) in listed.into_iter().enumerate() {
            let name = entry.get("name").and_then(Value::as_str);
            let Some(name) = name.filter(|name| !name.is_empty()).map(str::to_owned) else {
                self.unusable
                    .push(format!("entry {} of the list is not a tool", index + 1));
                continue;
            };
            if !names.insert(name.clone()) {
                let shown = quoted(&name);
                self.unusable
                    .push(format!("{shown} is listed a second time"));
                continue;
            }
            let outcome = plan(&entry, policy, &mut calls);
            self.tools.push(ToolDraft {
                name,
                listed: entry,
                outcome,
            });
        }
    }

    /// The first tool that reads and has required arguments, for a call without them.
    #[must_use]
    pub fn refusable(&self) -> Option<&ToolDraft> {
        let is_called = |tool: &&ToolDraft| {
            matches!(
                tool.outcome,
                Outcome::Planned { .. } | Outcome::Answered { .. } | Outcome::Failed { .. }
            )
        };
        let has_required = |tool: &&ToolDraft| {
            let schema = tool.input_schema();
            let required = schema.and_then(|schema| schema.get("required")?.as_array());
            required.is_some_and(|names| !names.is_empty())
        };
        self.tools.iter().filter(is_called).find(has_required)
    }
}

/// Decides about the call of a tool.
fn plan(tool: &Value, policy: CallPolicy, calls: &mut usize) -> Outcome {
    match (policy, only_reads(tool)) {
        (CallPolicy::None, _) => return Outcome::NotTried("no tool was called, as asked"),
        (CallPolicy::ReadOnly, Err(doubt)) => return Outcome::NotCalled(doubt),
        _ => {}
    }
    if *calls >= MAX_CALLS {
        return Outcome::NotTried("the server has many tools, and others were called first");
    }
    match synthesis::object(tool.get("inputSchema")) {
        Ok(args) => {
            *calls += 1;
            Outcome::Planned { args }
        }
        Err(reason) => Outcome::NoArguments(reason.to_string()),
    }
}

/// Words of a server in one line, of bounded length.
#[must_use]
pub fn words_of(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&one_line(&joined), MAX_WORDS)
}

/// A name in a sentence.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", shorten(&one_line(name), 80))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drafted(listed: Vec<Value>, policy: CallPolicy) -> ServerDraft {
        let mut draft = ServerDraft::default();
        draft.set_tools(listed, policy);
        draft
    }

    #[test]
    fn only_tools_that_read_are_planned() {
        let listed = vec![
            json!({"name": "get_a", "inputSchema": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}}),
            json!({"name": "delete_a"}),
            json!({"name": "get_b", "inputSchema": {"type": 7}}),
            json!({"name": "get_a"}),
            json!(5),
            json!({"name": ""}),
        ];
        let draft = drafted(listed.clone(), CallPolicy::ReadOnly);
        assert_eq!(draft.tools.len(), 3);
        assert_eq!(draft.unusable.len(), 3, "{:?}", draft.unusable);
        assert_eq!(
            draft.tools[0].args().map(|args| json!(args)),
            Some(json!({"city": "Paris"}))
        );
        assert_eq!(
            draft.tools[1].outcome,
            Outcome::NotCalled(NotReadOnly::Unmarked)
        );
        assert!(matches!(draft.tools[2].outcome, Outcome::NoArguments(_)));
        assert_eq!(
            draft.refusable().map(|tool| tool.name.as_str()),
            Some("get_a")
        );
        let all = drafted(listed.clone(), CallPolicy::All);
        assert!(matches!(all.tools[1].outcome, Outcome::Planned { .. }));
        let none = drafted(listed, CallPolicy::None);
        assert!(matches!(none.tools[0].outcome, Outcome::NotTried(_)));
    }

    #[test]
    fn the_number_of_calls_is_bounded() {
        let listed = (0..5000).map(|index| json!({"name": format!("get_{index}")}));
        let draft = drafted(listed.collect(), CallPolicy::ReadOnly);
        let planned = draft.tools.iter().filter(|tool| tool.args().is_some());
        assert_eq!(planned.count(), MAX_CALLS);
        assert_eq!(draft.tools.len(), 5000);
    }
}
