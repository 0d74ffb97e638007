//! The calls that set a test up and tear it down, and the sessions for them.

use std::borrow::Cow;
use std::sync::Arc;

use mcptest_suite::suite::{FixtureCall, Isolation};
use mcptest_suite::template::{Args, Saved};
use mcptest_trace::target::Target;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::CallOutcome;
use serde_json::{Value, json};

use crate::direct_answer::{fixture_error, observe, unlisted};
use crate::sessions::{OpenSession, Session, Sessions, StartupTime, reply};
use crate::test_client::TestClient;

/// The phase in which a fixture call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixturePhase {
    Setup,
    Trigger,
    Teardown,
}

impl FixturePhase {
    fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Trigger => "trigger",
            Self::Teardown => "teardown",
        }
    }
}

/// The sessions of one test, and the values that it saved.
pub(crate) struct FixtureSession<'a> {
    sessions: &'a Sessions,
    isolation: Option<Isolation>,
    startup: &'a StartupTime,
    /// The sessions by the names of their servers. Most tests have one.
    open: Vec<(String, OpenSession)>,
    /// The client of the test, if it may be asked something or listens.
    pub client: Option<Arc<TestClient>>,
    saved: Saved,
    /// The fixture calls that were made, as the trace records them.
    record: Vec<Value>,
}

impl<'a> FixtureSession<'a> {
    pub fn new(
        sessions: &'a Sessions,
        isolation: Option<Isolation>,
        startup: &'a StartupTime,
    ) -> Self {
        Self {
            sessions,
            isolation,
            startup,
            open: Vec::new(),
            client: None,
            saved: Saved::new(),
            record: Vec::new(),
        }
    }

    /// The test's session with a server. All of its calls use the same one.
    pub async fn session(&mut self, server: &str) -> Result<Arc<Session>, RunError> {
        if let Some(open) = self.open_session(server) {
            return Ok(Arc::clone(&open.session));
        }
        let client = self.client.as_ref();
        let opened = self
            .sessions
            .open_for_test(server, self.isolation, client, self.startup);
        let session = opened.await?;
        let open = OpenSession::new(Arc::clone(&session));
        self.open.push((server.to_owned(), open));
        Ok(session)
    }

    fn open_session(&self, server: &str) -> Option<&OpenSession> {
        let found = self.open.iter().find(|(name, _)| name == server);
        found.map(|(_, open)| open)
    }

    /// The lines that a server wrote to stderr since the test opened its session.
    pub async fn stderr(&self, server: &str) -> Vec<String> {
        match self.open_session(server) {
            Some(open) => open.stderr(self.startup).await,
            None => Vec::new(),
        }
    }

    /// Inserts the saved values into arguments.
    pub fn fill<'v>(&self, args: &'v Args) -> Result<Cow<'v, Value>, RunError> {
        args.fill(&self.saved)
            .map_err(|error| fixture_error(error.to_string()))
    }

    /// Saves values from an answer.
    pub fn save(&mut self, wanted: &[(String, Target)], seen: &Value) -> Result<(), RunError> {
        for (name, target) in wanted {
            let Some(value) = target.select(seen) else {
                return Err(fixture_error(format!(
                    "there is no `{target}` in the answer, to be saved as `{name}`"
                )));
            };
            self.saved.insert(name.clone(), value);
        }
        Ok(())
    }

    /// Makes one fixture call. Unlike the call under test, it must succeed.
    pub async fn fixture(
        &mut self,
        phase: FixturePhase,
        index: usize,
        call: &FixtureCall,
    ) -> Result<(), RunError> {
        let made = self.try_fixture(phase, call).await;
        made.map_err(|error| RunError {
            kind: error.kind,
            message: format!(
                "{} call {}, `{}.{}`: {}",
                phase.name(),
                index + 1,
                call.server,
                call.tool,
                error.message
            ),
        })
    }

    async fn try_fixture(
        &mut self,
        phase: FixturePhase,
        call: &FixtureCall,
    ) -> Result<(), RunError> {
        let args = self.fill(&call.args)?;
        let session = self.session(&call.server).await?;
        let outcome = session.call(&call.tool, &args, call.timeout).await?;
        let short = reply(&outcome);
        self.record.push(json!({
            "stage": phase.name(),
            "server": call.server,
            "name": call.tool,
            "args": args,
            "is_error": short.is_error,
        }));
        if short.is_error {
            let answer = match &outcome {
                CallOutcome::Result(_) => short.text(),
                CallOutcome::Error(error) => format!("error {}: {}", error.code, error.message),
            };
            let mut message = format!("it failed: {}", mcptest_json::text::shorten(&answer, 500));
            if let Some(hint) = unlisted(&session, &call.server, &call.tool).await {
                message = format!("{message}; {hint}");
            }
            return Err(fixture_error(message));
        }
        self.save(&call.save, &observe(outcome))
    }

    /// Makes all teardown calls, even after one of them failed, and returns the first failure. A
    /// test that reached no server has nothing to clean up. A call that needs a value that was
    /// never saved is skipped: the thing that it would remove was never created.
    pub async fn tear_down(&mut self, calls: &[FixtureCall]) -> Result<(), RunError> {
        let mut outcome = Ok(());
        if self.open.is_empty() {
            return outcome;
        }
        for (index, call) in calls.iter().enumerate() {
            if call.args.fill(&self.saved).is_err() {
                continue;
            }
            let made = self.fixture(FixturePhase::Teardown, index, call).await;
            outcome = outcome.and(made.map_err(|error| RunError {
                kind: ErrorKind::Fixture,
                ..error
            }));
        }
        outcome
    }

    /// Takes the fixture calls that were made.
    pub fn take_record(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.record)
    }

    /// Ends the sessions that belong to this test.
    pub async fn release(&self) {
        for (_, open) in &self.open {
            open.session.release().await;
        }
    }
}
