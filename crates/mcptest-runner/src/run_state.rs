//! The state around a run of an agent: sessions, calls, and their place in trace and cassette.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcptest_agent::Future;
use mcptest_protocol::query;
use mcptest_suite::state::StateCall;
use mcptest_suite::suite::AgentTest;
use mcptest_trace::snapshot::file_stem;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::RunError;
use mcptest_wire::CallOutcome;
use serde_json::{Value, json};

use crate::cassette_plans::RunCassette;
use crate::direct_answer::fixture_error;
use crate::run_context::RunContext;
use crate::run_tools::RunTools;
use crate::sessions::{OpenSession, Session, Sessions, StartupTime};
use crate::state_calls::{AFTER_KEY, FIXTURES_KEY, StateRun, StateSessions};
use crate::stop_signal::{StopSignal, TEARDOWN_GRACE};

/// Opens the sessions that only the calls around a run need, and makes the calls of `setup:`.
pub(crate) async fn set_up(
    test: &AgentTest,
    sessions: &Sessions,
    startup: &StartupTime,
    tools: &mut RunTools<'_>,
    state: &mut StateRun<'_>,
) -> Result<(), RunError> {
    if test.state.is_empty() {
        return Ok(());
    }
    for name in test.all_servers() {
        if !tools.sessions.contains_key(name) {
            let client = tools.client.as_ref();
            let opened = sessions.open_for_test(name, test.isolation(), client, startup);
            let open = OpenSession::new(opened.await?);
            tools.sessions.insert(name.to_owned(), open);
        }
    }
    state.set_up(tools).await
}

/// The environment variable with which all processes of a mock server in one run share their
/// tables, for a run whose agent starts the servers itself. `dir` belongs to the run.
pub(crate) fn shared_state(dir: &Path, server: &str) -> (String, String) {
    let file = dir.join(format!("{}.db", file_stem(server)));
    let file = file.to_string_lossy().into_owned();
    (query::STATE_VARIABLE.to_owned(), file)
}

/// Opens sessions beside those of the agent, which share its state, and makes the calls of
/// `setup:`. The agent's servers need the variable of [`shared_state`].
pub(crate) async fn set_up_beside(
    test: &AgentTest,
    sessions: &Sessions,
    startup: &StartupTime,
    dir: &Path,
    tools: &mut RunTools<'_>,
    state: &mut StateRun<'_>,
) -> Result<(), RunError> {
    let servers: BTreeSet<&str> = test.state.all().map(|call| call.server.as_str()).collect();
    for name in servers {
        let env = vec![shared_state(dir, name)];
        let session = sessions.open_with(name, env, None, startup).await?;
        let open = OpenSession::new(session);
        tools.sessions.insert(name.to_owned(), open);
    }
    state.set_up(tools).await
}

/// The mark of a trace whose run was interrupted. It never leaves the runner.
const INTERRUPTED_KEY: &str = "interrupted";

/// Waits for the end of a run. One with a `teardown:` ends itself when it is stopped, so that it
/// can clean up; others are dropped by the caller.
pub(crate) async fn until_stopped(
    test: &AgentTest,
    stop: StopSignal<'_>,
    running: impl std::future::Future<Output = Trace>,
) -> Trace {
    if test.state.teardown.is_empty() {
        return running.await;
    }
    tokio::select! {
        biased;
        _ = stop.received() => {
            let mut trace = Trace {
                error: Some(fixture_error("interrupted".to_owned())),
                ..Trace::default()
            };
            trace.extra.insert(INTERRUPTED_KEY, true);
            trace
        }
        trace = running => trace,
    }
}

/// Returns true if a run was interrupted: it leaves no evidence.
pub(crate) fn is_interrupted(trace: &Trace) -> bool {
    trace.extra.get(INTERRUPTED_KEY) == Some(&Value::Bool(true))
}

/// Makes the calls of `after:`, or takes their recorded answers, and adds them to the trace. A run
/// that failed has no outcome.
pub(crate) async fn look_after(
    test: &AgentTest,
    cassette: &RunCassette,
    tools: &RunTools<'_>,
    state: &mut StateRun<'_>,
    trace: &mut Trace,
) {
    if test.state.after.is_empty() || trace.error.is_some() {
        return;
    }
    let answers = match cassette.servers() {
        Some(replay) => Ok(replay.after()),
        None => state.after(tools).await,
    };
    if let Some(recorder) = cassette.recorder() {
        match &answers {
            Ok(answers) => recorder.record_after(answers),
            Err(error) => recorder.record_failure(error),
        }
    }
    match answers {
        Ok(answers) => trace.extra.insert(AFTER_KEY, answers),
        Err(error) => trace.error = Some(error),
    }
}

/// Makes the calls of `teardown:`, and adds the fixture calls to the trace. After a stop signal the
/// time is limited.
pub(crate) async fn clean_up(
    context: &RunContext,
    test: &AgentTest,
    stop: StopSignal<'_>,
    tools: &RunTools<'_>,
    state: &mut StateRun<'_>,
    trace: &mut Trace,
) {
    // A run that reached no server has nothing to clean up.
    if !test.state.teardown.is_empty() && !tools.sessions.is_empty() {
        let over = async {
            stop.received().await;
            tokio::time::sleep(TEARDOWN_GRACE).await;
        };
        let torn_down = tokio::select! {
            biased;
            torn_down = Box::pin(state.tear_down(tools)) => torn_down,
            () = over => Err(fixture_error(format!(
                "teardown did not finish within {} seconds after the run was interrupted; what it \
                 removes may still exist",
                TEARDOWN_GRACE.as_secs()
            ))),
        };
        match torn_down {
            // Remains may break the next run, so this must be reported.
            Err(error) if trace.error.is_none() => trace.error = Some(error),
            Err(error) => context.warn(format!("test `{}`: {}", test.name, error.message)),
            Ok(()) => {}
        }
    }
    let fixtures = state.take_fixtures();
    if !fixtures.is_empty() {
        trace.extra.insert(FIXTURES_KEY, fixtures);
    }
}

impl RunTools<'_> {
    fn session_of(&self, call: &StateCall) -> Result<&Arc<Session>, RunError> {
        let open = self.sessions.get(&call.server).map(|open| &open.session);
        open.ok_or_else(|| fixture_error(format!("unknown server `{}`", call.server)))
    }
}

impl StateSessions for RunTools<'_> {
    fn call<'a>(
        &'a self,
        call: &'a StateCall,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<CallOutcome, RunError>> {
        Box::pin(async move { self.session_of(call)?.call(tool, args, call.timeout).await })
    }

    fn query<'a>(
        &'a self,
        call: &'a StateCall,
        sql: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<Value, RunError>> {
        Box::pin(async move { query(self.session_of(call)?, call.timeout, sql, args).await })
    }
}

/// Queries the database of a mock server.
///
/// # Errors
/// The server is no mock with a database, the query is wrong, or there was no answer.
pub(crate) async fn query(
    session: &Session,
    timeout: Option<Duration>,
    sql: &str,
    args: &Value,
) -> Result<Value, RunError> {
    const METHOD_NOT_FOUND: i64 = -32601;
    let params = json!({"token": session.query_token(), "sql": sql, "args": args});
    let outcome = session.request(query::METHOD, params, timeout).await?;
    match outcome {
        CallOutcome::Result(mut result) => Ok(result["rows"].take()),
        CallOutcome::Error(error) if error.code == METHOD_NOT_FOUND => Err(fixture_error(
            "the server is not a mock with a `database`, so it cannot be queried".to_owned(),
        )),
        CallOutcome::Error(error) => Err(fixture_error(error.message)),
    }
}
