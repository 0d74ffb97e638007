//! The calls that prepare a test and clean up after it, and the sessions it uses for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcptest_suite::suite::{FixtureCall, Isolation};
use mcptest_suite::template::{Args, Saved};
use mcptest_trace::target::Target;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::CallOutcome;
use serde_json::{Value, json};

use crate::sessions::{Session, Sessions, reply};
use crate::tool_call::{fixture_error, observe, unlisted};

/// When a fixture call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Setup,
    Teardown,
}

impl Stage {
    fn word(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Teardown => "teardown",
        }
    }
}

/// One test at its servers: the sessions it has, and what it saved.
pub(crate) struct Visit<'a> {
    sessions: &'a Sessions,
    isolation: Option<Isolation>,
    open: BTreeMap<String, Arc<Session>>,
    saved: Saved,
    /// The fixture calls that were made, as the trace tells them.
    record: Vec<Value>,
}

impl<'a> Visit<'a> {
    pub fn new(sessions: &'a Sessions, isolation: Option<Isolation>) -> Self {
        Self {
            sessions,
            isolation,
            open: BTreeMap::new(),
            saved: Saved::new(),
            record: Vec::new(),
        }
    }

    /// The test's session with a server: all of its calls go over the same one.
    pub async fn session(&mut self, server: &str) -> Result<Arc<Session>, RunError> {
        if let Some(session) = self.open.get(server) {
            return Ok(Arc::clone(session));
        }
        let session = self.sessions.open_as(server, self.isolation).await?;
        self.open.insert(server.to_owned(), Arc::clone(&session));
        Ok(session)
    }

    /// Arguments with the saved values in them.
    pub fn fill(&self, args: &Args) -> Result<Value, RunError> {
        args.fill(&self.saved)
            .map_err(|error| fixture_error(error.to_string()))
    }

    /// Saves values of an answer.
    pub fn save(&mut self, wanted: &[(String, Target)], seen: &Value) -> Result<(), RunError> {
        for (name, target) in wanted {
            let Some(value) = target.select(seen) else {
                let words =
                    format!("there is no `{target}` in the answer, to be saved as `{name}`");
                return Err(fixture_error(words));
            };
            self.saved.insert(name.clone(), value);
        }
        Ok(())
    }

    /// Makes one fixture call. Unlike the call under test, it has to succeed.
    pub async fn fixture(
        &mut self,
        stage: Stage,
        index: usize,
        call: &FixtureCall,
    ) -> Result<(), RunError> {
        let made = self.try_fixture(stage, call).await;
        made.map_err(|error| RunError {
            kind: error.kind,
            message: format!(
                "{} call {}, `{}.{}`: {}",
                stage.word(),
                index + 1,
                call.server,
                call.tool,
                error.message
            ),
        })
    }

    async fn try_fixture(&mut self, stage: Stage, call: &FixtureCall) -> Result<(), RunError> {
        let args = self.fill(&call.args)?;
        let session = self.session(&call.server).await?;
        let outcome = session.call(&call.tool, &args, call.timeout).await?;
        let short = reply(&outcome);
        self.record.push(json!({
            "stage": stage.word(),
            "server": call.server,
            "name": call.tool,
            "args": args,
            "is_error": short.is_error,
        }));
        if short.is_error {
            let said = match &outcome {
                CallOutcome::Result(_) => short.text(),
                CallOutcome::Error(error) => format!("error {}: {}", error.code, error.message),
            };
            let mut words = format!("it failed: {}", mcptest_json::text::shorten(&said, 500));
            if let Some(hint) = unlisted(&session, &call.server, &call.tool).await {
                words = format!("{words}; {hint}");
            }
            return Err(fixture_error(words));
        }
        self.save(&call.save, &observe(outcome, &short))
    }

    /// Makes all teardown calls, also after one of them failed; the first failure is told. A test
    /// that reached no server has nothing to clean up, and a call that needs what was never saved
    /// is left out: what it would remove was never made.
    pub async fn tear_down(&mut self, calls: &[FixtureCall]) -> Result<(), RunError> {
        let mut outcome = Ok(());
        if self.open.is_empty() {
            return outcome;
        }
        for (index, call) in calls.iter().enumerate() {
            if call.args.fill(&self.saved).is_err() {
                continue;
            }
            let made = Box::pin(self.fixture(Stage::Teardown, index, call)).await;
            outcome = outcome.and(made.map_err(|error| RunError {
                kind: ErrorKind::Fixture,
                ..error
            }));
        }
        outcome
    }

    /// The fixture calls that were made.
    pub fn take_record(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.record)
    }

    /// Ends the sessions that belong to this test alone.
    pub async fn release(&self) {
        for session in self.open.values() {
            session.release().await;
        }
    }
}
