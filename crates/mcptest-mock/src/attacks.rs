//! Attacks: hostile texts in the answers of the server, and calls that it only pretends to make.
//!
//! All sessions of the server share their counts, as with faults.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mcptest_attack::{AttackRun, CallAnswer, Changes};
use serde_json::{Map, Value, json};

use crate::listed::{Outcome, ResultKind, members};

/// The attacks of a server.
#[derive(Debug)]
pub(crate) struct Attacks {
    run: Mutex<AttackRun>,
    /// The name of the server, for targets.
    server: String,
    pub(crate) changes_lists: bool,
}

impl Attacks {
    pub(crate) fn new(run: AttackRun, server: String) -> Self {
        Self {
            changes_lists: run.changes_later_lists(),
            run: Mutex::new(run),
            server,
        }
    }

    fn run(&self) -> MutexGuard<'_, AttackRun> {
        // A panic elsewhere leaves the counts correct.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a call that is not executed.
    pub(crate) fn answer(&self, params: &Map<String, Value>) -> Option<Outcome<'static>> {
        let tool = params.get("name")?.as_str()?;
        let answer = self
            .run()
            .on_call(Some(&self.server), tool, params.get("arguments"))?;
        let CallAnswer { text, is_error, .. } = answer;
        let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
        Some(Outcome::fresh(members(&result)))
    }

    /// Writes texts into the result of a request.
    pub(crate) fn rewrite<'a>(
        &self,
        method: &str,
        params: &Map<String, Value>,
        outcome: Outcome<'a>,
    ) -> Outcome<'a> {
        let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        if !matches!(
            method,
            "initialize"
                | "server/discover"
                | "tools/list"
                | "tools/call"
                | "resources/read"
                | "prompts/get"
        ) || matches!(outcome.kind, ResultKind::InputRequired | ResultKind::Task)
        {
            return outcome;
        }
        let object = [b"{".as_slice(), &outcome.members, b"}"].concat();
        let Ok(mut result) = serde_json::from_slice::<Value>(&object) else {
            return outcome;
        };
        let mut run = self.run();
        let changes: Changes = match method {
            "initialize" | "server/discover" => run.on_instructions(&self.server, &result),
            "tools/list" => {
                let is_first = params.get("cursor").is_none_or(Value::is_null);
                let is_last = result.get("nextCursor").is_none();
                run.on_tools(&self.server, &result, is_first, is_last)
            }
            "tools/call" => run.on_result(&self.server, text("name"), &result),
            "resources/read" => run.on_resource(&self.server, text("uri"), &result),
            _ => run.on_prompt(&self.server, text("name"), &result),
        };
        if changes.is_empty() {
            return outcome;
        }
        changes.apply(&mut result);
        Outcome {
            members: members(&result).into(),
            kind: outcome.kind,
        }
    }

    /// The notification that the list of tools has changed, when a client has to list it again.
    pub(crate) fn list_changed(&self) -> Option<Vec<u8>> {
        let due = self.run().takes_list_changed(&self.server);
        let method = "notifications/tools/list_changed";
        due.then(|| {
            json!({"jsonrpc": "2.0", "method": method})
                .to_string()
                .into_bytes()
        })
    }
}
