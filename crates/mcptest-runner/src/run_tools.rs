//! The tools of one run of an agent: its sessions, with injected faults and attacks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcptest_agent::{Future, ToolReply, Tools};
use mcptest_attack::AttackRun;
use mcptest_trace::fault::{AppliedFault, FaultState, timeout_text};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value};

use crate::infra_errors::unknown_server;
use crate::sessions::{OpenSession, StartupTime, reply};
use crate::test_client::TestClient;

/// The sessions of one run, by server, through which the agent loop calls tools. Injected faults
/// are applied here, in virtual time: nothing waits.
pub(crate) struct RunTools<'a> {
    pub sessions: BTreeMap<String, OpenSession>,
    /// The client of the run, if servers may ask it something.
    pub client: Option<Arc<TestClient>>,
    faults: std::sync::Mutex<FaultState<'a>>,
    attacks: std::sync::Mutex<AttackRun>,
    detection_budget_ms: Option<u64>,
}

impl<'a> RunTools<'a> {
    pub fn new(
        faults: FaultState<'a>,
        detection_budget_ms: Option<u64>,
        attacks: AttackRun,
    ) -> Self {
        Self {
            sessions: BTreeMap::new(),
            client: None,
            faults: std::sync::Mutex::new(faults),
            attacks: std::sync::Mutex::new(attacks),
            detection_budget_ms,
        }
    }

    /// Ends the sessions that belong to this run.
    pub async fn release(&self) {
        for open in self.sessions.values() {
            open.session.release().await;
        }
    }

    /// The last stderr lines of the servers with a failed call in the trace, by server.
    pub async fn stderr(&self, trace: &Trace, waited: &StartupTime) -> Map<String, Value> {
        let mut found = Map::new();
        let results = trace.results_by_call();
        for (call, result) in trace.tool_calls.iter().zip(results) {
            // An injected fault is ours: the server knows nothing of it.
            let failed = result.is_some_and(|result| {
                result.is_error == Some(true) && result.extra("fault").is_none()
            });
            let Some(server) = call.server.as_deref().filter(|_| failed) else {
                continue;
            };
            if let Some(open) = self.sessions.get(server)
                && !found.contains_key(server)
            {
                found.insert(server.to_owned(), open.stderr(waited).await.into());
            }
        }
        found.retain(|_, lines| lines.as_array().is_some_and(|lines| !lines.is_empty()));
        found
    }

    /// The attacks of the run.
    pub fn attacks(&self) -> std::sync::MutexGuard<'_, AttackRun> {
        // A panic elsewhere leaves the counts correct.
        self.attacks
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn apply(&self, server: &str, tool: &str) -> Option<AppliedFault> {
        // A panic elsewhere leaves the counts correct.
        let mut faults = self
            .faults
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        faults.apply(server, tool)
    }
}

impl Tools for RunTools<'_> {
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<ToolReply, RunError>> {
        Box::pin(async move {
            let applied = self.apply(server, tool);
            if let Some(AppliedFault::Timeout { .. }) = &applied {
                let mut reply = ToolReply::refusal(timeout_text(tool, self.detection_budget_ms));
                reply.marks = applied.map(|applied| applied.marks()).unwrap_or_default();
                return Ok(reply);
            }
            let contained = self.attacks().on_call(Some(server), tool, Some(args));
            if let Some(answer) = contained {
                let mut reply = ToolReply::refusal(answer.text);
                reply.is_error = answer.is_error;
                reply.marks = answer.marks;
                return Ok(reply);
            }
            let Some(OpenSession { session, .. }) = self.sessions.get(server) else {
                return Err(unknown_server(server));
            };
            let mut reply = match session.call_for_agent(tool, args).await {
                Ok(outcome) => reply(&outcome),
                Err(error) if error.kind == ErrorKind::Timeout && session.answers().await => {
                    hung(tool, session.call_timeout())
                }
                Err(error) => return Err(error),
            };
            let hung = reply.marks.contains_key("error_kind");
            reply
                .marks
                .extend(applied.map(|applied| applied.marks()).unwrap_or_default());
            if !hung {
                poison(&mut self.attacks(), server, tool, &mut reply);
            }
            Ok(reply)
        })
    }
}

/// Writes the texts of attacks into an answer.
fn poison(attacks: &mut AttackRun, server: &str, tool: &str, reply: &mut ToolReply) {
    if attacks.is_empty() {
        return;
    }
    let mut result = Map::from_iter([("content".to_owned(), reply.content.take())]);
    if let Some(structured) = reply.structured.take() {
        result.insert("structuredContent".to_owned(), structured);
    }
    let mut result = Value::Object(result);
    let changes = attacks.on_result(server, tool, &result);
    changes.apply(&mut result);
    reply.content = result["content"].take();
    reply.structured = result.get_mut("structuredContent").map(Value::take);
    reply.marks.extend(changes.marks);
}

/// The error result in place of an answer that did not come within the timeout, from a server that
/// is otherwise responsive. The agent sees it and can continue another way, as with an injected
/// fault; `timeout_ms` is the time that it really took.
fn hung(tool: &str, timeout: Duration) -> ToolReply {
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let mut reply = ToolReply::refusal(timeout_text(tool, Some(timeout_ms)));
    reply.marks = Map::from_iter([
        ("error_kind".to_owned(), "timeout".into()),
        ("timeout_ms".to_owned(), timeout_ms.into()),
    ]);
    reply
}
