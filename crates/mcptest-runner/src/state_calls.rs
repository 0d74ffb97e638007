//! Direct calls around an agent's run: `setup:`, `after:` and `teardown:`.
//!
//! The calls need only [`StateSessions`], so any agent can have them: our own loop passes its
//! sessions, an external agent the sessions behind its proxies.

use mcptest_agent::Future;
use mcptest_suite::state::{StateAction, StateCall, StateCalls};
use mcptest_suite::template::Saved;
use mcptest_trace::expect::Assertion;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::CallOutcome;
use serde_json::{Map, Value, json};

use crate::direct_answer::{fixture_error, observe};

/// The key of a trace for the answers to the calls of `after:`.
pub(crate) const AFTER_KEY: &str = "after";

/// The key of a trace for the calls of `setup:` and `teardown:`.
pub(crate) const FIXTURES_KEY: &str = "fixtures";

/// The sessions of one run, by the names of their servers.
pub(crate) trait StateSessions: Sync {
    /// Calls a tool.
    ///
    /// # Errors
    /// The reason why the call was not answered. A rejection by the server is an answer.
    fn call<'a>(
        &'a self,
        call: &'a StateCall,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<CallOutcome, RunError>>;

    /// Queries the database of a mock server, and returns the rows.
    ///
    /// # Errors
    /// The reason why there are no rows.
    fn query<'a>(
        &'a self,
        call: &'a StateCall,
        sql: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<Value, RunError>>;
}

/// The phase in which a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Setup,
    After,
    Teardown,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::After => "after",
            Self::Teardown => "teardown",
        }
    }
}

/// The calls around one run, and the values that they saved.
pub(crate) struct StateRun<'a> {
    calls: &'a StateCalls,
    saved: Saved,
    fixtures: Vec<Value>,
}

impl<'a> StateRun<'a> {
    /// The calls around a run, before the first one.
    pub fn new(calls: &'a StateCalls) -> Self {
        Self {
            calls,
            saved: Saved::new(),
            fixtures: Vec::new(),
        }
    }

    /// Makes the calls of `setup:`. Each must succeed, and its assertions must hold.
    ///
    /// # Errors
    /// An error of kind `fixture`, or that of a server that did not answer.
    pub async fn set_up(&mut self, sessions: &dyn StateSessions) -> Result<(), RunError> {
        for (index, call) in self.calls.setup.iter().enumerate() {
            self.fixture(sessions, Phase::Setup, index, call).await?;
        }
        Ok(())
    }

    /// Makes the calls of `after:`, and returns their answers for the trace.
    ///
    /// # Errors
    /// The error of a server that did not answer.
    pub async fn after(&mut self, sessions: &dyn StateSessions) -> Result<Vec<Value>, RunError> {
        let mut answers = Vec::new();
        for (index, call) in self.calls.after.iter().enumerate() {
            let made = self.make(sessions, call).await;
            let (args, seen) = made.map_err(|error| at(Phase::After, index, call, error))?;
            let mut entry = describe(call, args);
            if let Value::Object(seen) = &seen {
                entry.extend(seen.clone());
            }
            answers.push(Value::Object(entry));
            // A value that is missing in the answer is the assertions' matter.
            let _ = self.save(call, &seen);
        }
        Ok(answers)
    }

    /// Makes all calls of `teardown:`, even after one of them failed. A call that needs a value
    /// that was never saved is skipped: the thing that it would remove was never created.
    ///
    /// # Errors
    /// The first failure, as an error of kind `fixture`.
    pub async fn tear_down(&mut self, sessions: &dyn StateSessions) -> Result<(), RunError> {
        let mut outcome = Ok(());
        for (index, call) in self.calls.teardown.iter().enumerate() {
            if call.args.fill(&self.saved).is_err() {
                continue;
            }
            let made = self.fixture(sessions, Phase::Teardown, index, call).await;
            outcome = outcome.and(made.map_err(|error| RunError {
                kind: ErrorKind::Fixture,
                ..error
            }));
        }
        outcome
    }

    /// Takes the calls of `setup:` and `teardown:` that were made, for the trace.
    pub fn take_fixtures(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.fixtures)
    }

    async fn fixture(
        &mut self,
        sessions: &dyn StateSessions,
        phase: Phase,
        index: usize,
        call: &StateCall,
    ) -> Result<(), RunError> {
        let made = self.make(sessions, call).await;
        let (args, seen) = made.map_err(|error| at(phase, index, call, error))?;
        let failed = seen["result"]["is_error"] == true || !seen["error"].is_null();
        let mut entry = describe(call, args);
        entry.insert("stage".to_owned(), phase.name().into());
        entry.insert("is_error".to_owned(), failed.into());
        self.fixtures.push(Value::Object(entry));
        let mut assertions = call.expect.iter().map(|expect| expect.apply(&seen, None));
        let wrong = assertions.find(Assertion::failed);
        let checked = match wrong {
            Some(wrong) => Err(fixture_error(failure(&wrong, &seen))),
            None => self.save(call, &seen),
        };
        checked.map_err(|error| at(phase, index, call, error))
    }

    /// Makes a call, and returns its arguments and the value for assertions.
    async fn make(
        &self,
        sessions: &dyn StateSessions,
        call: &StateCall,
    ) -> Result<(Value, Value), RunError> {
        let args = call.args.fill(&self.saved);
        let args = args.map_err(|error| fixture_error(error.to_string()))?;
        let args = args.into_owned();
        let seen = match &call.action {
            StateAction::Tool(tool) => observe(sessions.call(call, tool, &args).await?),
            StateAction::Query(sql) => {
                let rows = sessions.query(call, sql, &args).await?;
                json!({"rows": rows})
            }
        };
        Ok((args, seen))
    }

    fn save(&mut self, call: &StateCall, seen: &Value) -> Result<(), RunError> {
        for (name, target) in &call.save {
            let Some(value) = target.select(seen) else {
                return Err(fixture_error(format!(
                    "there is no `{target}` in the answer, to be saved as `{name}`"
                )));
            };
            self.saved.insert(name.clone(), value);
        }
        Ok(())
    }
}

/// The call as a trace records it.
fn describe(call: &StateCall, args: Value) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("server".to_owned(), call.server.as_str().into());
    let (key, action) = match &call.action {
        StateAction::Tool(tool) => ("tool", tool),
        StateAction::Query(sql) => ("sql", sql),
    };
    entry.insert(key.to_owned(), action.as_str().into());
    if args.as_object().is_some_and(|args| !args.is_empty()) {
        entry.insert("args".to_owned(), args);
    }
    entry
}

/// Returns true if a recorded answer is that of a call.
pub(crate) fn is_answer_to(entry: &Value, call: &StateCall) -> bool {
    let (key, action) = match &call.action {
        StateAction::Tool(tool) => ("tool", tool),
        StateAction::Query(sql) => ("sql", sql),
    };
    // Without `server:`, a suite for scoring leaves it open.
    let same_server = call.server.is_empty() || entry["server"] == call.server.as_str();
    same_server && entry[key] == action.as_str()
}

/// The words for a fixture whose answer is not as expected.
fn failure(wrong: &Assertion, seen: &Value) -> String {
    let text = seen["result"]["text"].as_str();
    let text = text.or_else(|| seen["error"]["message"].as_str());
    match text {
        Some(text) if wrong.default => {
            format!("it failed: {}", mcptest_json::text::shorten(text, 500))
        }
        _ => format!(
            "`{}` does not hold: {}",
            wrong.target,
            wrong.reason.as_deref().unwrap_or("it differs")
        ),
    }
}

fn at(phase: Phase, index: usize, call: &StateCall, error: RunError) -> RunError {
    RunError {
        kind: error.kind,
        message: format!(
            "{} call {}, {call}: {}",
            phase.name(),
            index + 1,
            error.message
        ),
    }
}
