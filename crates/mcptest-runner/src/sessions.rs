//! The servers of a suite: started when first needed, shared or fresh as the suite says, all ended
//! at the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcptest_agent::{Future, ToolReply, Tools};
use mcptest_suite::suite::{Isolation, Lifecycle, Server};
use mcptest_trace::fault::{FaultState, Strike, timeout_text};
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{
    CallOptions, CallOutcome, Client, ConnectOptions, HttpServer, ServerCommand, WireError,
    WireErrorKind,
};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::turns::Turns;

/// How often a shared server that died is started again: a run that kills it must not take all
/// later ones with it, and a server that always dies must not be started for ever.
const MOST_RESTARTS: u32 = 5;

/// Settings that hold for all servers of an invocation.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    /// `--timeout`: comes before everything the suite says.
    pub timeout: Option<Duration>,
    /// The suite's own.
    pub suite_timeout: Duration,
    /// What `mcptest` as a server's program means.
    pub this_program: PathBuf,
}

pub(crate) struct Sessions {
    settings: SessionSettings,
    /// Who may talk to which of them now.
    pub turns: Turns,
    slots: BTreeMap<String, Slot>,
}

struct Slot {
    server: Server,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    session: Option<Arc<Session>>,
    /// A server that could not be started is not tried again for every run.
    failed: Option<RunError>,
    starts: u32,
}

/// A connected server.
pub(crate) struct Session {
    pub(crate) client: Client,
    call_timeout: Duration,
    /// Whether that is `--timeout`, which no test's own comes before.
    timeout_is_final: bool,
    listed: Mutex<Option<Vec<Value>>>,
    fresh: bool,
}

impl Sessions {
    pub fn new(servers: &BTreeMap<String, Server>, settings: SessionSettings) -> Self {
        let slots = servers
            .iter()
            .map(|(name, server)| {
                let slot = Slot {
                    server: server.clone(),
                    shared: Mutex::default(),
                };
                (name.clone(), slot)
            })
            .collect();
        Self {
            settings,
            turns: Turns::new(servers),
            slots,
        }
    }

    /// A session with the server: the shared one, or a fresh one where the suite asks for
    /// isolation.
    pub async fn open(&self, name: &str) -> Result<Arc<Session>, RunError> {
        self.open_as(name, None).await
    }

    /// As [`Self::open`], for a test that may ask for isolation itself.
    pub async fn open_as(
        &self,
        name: &str,
        isolation: Option<Isolation>,
    ) -> Result<Arc<Session>, RunError> {
        let Some(slot) = self.slots.get(name) else {
            return Err(RunError {
                kind: ErrorKind::Transport,
                message: format!("no server is called `{name}`"),
            });
        };
        if isolation.unwrap_or(slot.server.isolation) == Isolation::Run {
            return Box::pin(self.connect(name, &slot.server, true))
                .await
                .map(Arc::new);
        }
        // Held while connecting: everyone else waits for the same session instead of starting
        // another.
        let mut shared = slot.shared.lock().await;
        if let Some(session) = shared
            .session
            .as_ref()
            .filter(|session| session.client.is_alive())
        {
            return Ok(Arc::clone(session));
        }
        if let Some(error) = &shared.failed {
            return Err(error.clone());
        }
        if shared.starts > MOST_RESTARTS {
            return Err(RunError {
                kind: ErrorKind::ServerCrash,
                message: format!(
                    "server `{name}` died {MOST_RESTARTS} times; it is not started again"
                ),
            });
        }
        shared.starts += 1;
        match Box::pin(self.connect(name, &slot.server, false)).await {
            Ok(session) => {
                let session = Arc::new(session);
                shared.session = Some(Arc::clone(&session));
                Ok(session)
            }
            Err(error) => {
                shared.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    async fn connect(&self, name: &str, server: &Server, fresh: bool) -> Result<Session, RunError> {
        let mut argv = server.argv.clone();
        // This very executable, whether or not it is on PATH.
        if let Some(first) = argv.first_mut().filter(|first| first.as_str() == "mcptest") {
            *first = self.settings.this_program.to_string_lossy().into_owned();
        }
        let command = ServerCommand {
            argv,
            env: server.env.clone(),
            cwd: Some(server.cwd.clone()),
        };
        let call_timeout = self
            .settings
            .timeout
            .or(server.timeout)
            .unwrap_or(self.settings.suite_timeout);
        let options = ConnectOptions {
            lifecycle: match server.lifecycle {
                Lifecycle::Auto => mcptest_wire::Lifecycle::Auto,
                Lifecycle::Initialize => mcptest_wire::Lifecycle::Initialize,
                Lifecycle::Discover => mcptest_wire::Lifecycle::Discover,
            },
            connect_timeout: self.settings.timeout.unwrap_or(server.startup_timeout),
            call_timeout,
            ..ConnectOptions::default()
        };
        let client = match &server.http {
            Some(http) => {
                let http = HttpServer {
                    url: http.url.clone(),
                    headers: http.headers.clone(),
                };
                Client::connect_http(name, &http, &options).await
            }
            None => Client::connect_stdio(name, &command, &options).await,
        };
        let client = client.map_err(|error| run_error(&error))?;
        Ok(Session {
            client,
            call_timeout,
            timeout_is_final: self.settings.timeout.is_some(),
            listed: Mutex::new(None),
            fresh,
        })
    }

    /// Ends every shared server.
    pub async fn shutdown(&self) {
        let mut ends = tokio::task::JoinSet::new();
        for slot in self.slots.values() {
            if let Some(session) = slot.shared.lock().await.session.take() {
                ends.spawn(async move { session.client.shutdown().await });
            }
        }
        while ends.join_next().await.is_some() {}
    }
}

impl Session {
    /// What the server lists, entry by entry as sent, asked for once per session.
    pub async fn listing(&self) -> Result<Vec<Value>, RunError> {
        let mut known = self.listed.lock().await;
        if let Some(listed) = &*known {
            return Ok(listed.clone());
        }
        let listed = self
            .client
            .list_tools()
            .await
            .map_err(|error| run_error(&error))?;
        *known = Some(listed.clone());
        Ok(listed)
    }

    /// Calls a tool. `timeout` comes before the server's and the suite's.
    pub async fn call(
        &self,
        tool: &str,
        args: &Value,
        timeout: Option<Duration>,
    ) -> Result<CallOutcome, RunError> {
        let options = CallOptions {
            timeout: timeout
                .filter(|_| !self.timeout_is_final)
                .or(Some(self.call_timeout)),
            ..CallOptions::default()
        };
        self.client
            .call_tool(tool, args, &options)
            .await
            .map_err(|error| run_error(&error))
    }

    /// Ends a session that belongs to one run alone.
    pub async fn release(&self) {
        if self.fresh {
            self.client.shutdown().await;
        }
    }
}

fn run_error(error: &WireError) -> RunError {
    RunError {
        kind: match error.kind() {
            WireErrorKind::Timeout => ErrorKind::Timeout,
            WireErrorKind::ServerCrash => ErrorKind::ServerCrash,
            WireErrorKind::Protocol => ErrorKind::Protocol,
            WireErrorKind::Auth => ErrorKind::Auth,
            WireErrorKind::RateLimit => ErrorKind::RateLimit,
            _ => ErrorKind::Transport,
        },
        message: error.to_string(),
    }
}

/// The sessions of one run, by server: what the agent loop calls tools through. Injected faults
/// strike here, in virtual time: nothing waits.
pub(crate) struct RunTools<'a> {
    pub sessions: BTreeMap<String, Arc<Session>>,
    faults: std::sync::Mutex<FaultState<'a>>,
    detection_budget_ms: Option<u64>,
}

impl<'a> RunTools<'a> {
    pub fn new(faults: FaultState<'a>, detection_budget_ms: Option<u64>) -> Self {
        Self {
            sessions: BTreeMap::new(),
            faults: std::sync::Mutex::new(faults),
            detection_budget_ms,
        }
    }

    /// Ends the sessions that belong to this run alone.
    pub async fn release(&self) {
        for session in self.sessions.values() {
            session.release().await;
        }
    }

    fn strike(&self, server: &str, tool: &str) -> Option<Strike> {
        // A panic elsewhere does not make the counts wrong.
        let mut faults = self
            .faults
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        faults.strike(server, tool)
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
            let strike = self.strike(server, tool);
            if let Some(Strike::Timeout { .. }) = &strike {
                let mut reply = ToolReply::refusal(timeout_text(tool, self.detection_budget_ms));
                reply.marks = strike.map(|strike| strike.marks()).unwrap_or_default();
                return Ok(reply);
            }
            let Some(session) = self.sessions.get(server) else {
                return Err(RunError {
                    kind: ErrorKind::Transport,
                    message: format!("no server is called `{server}`"),
                });
            };
            let mut reply = session
                .call(tool, args, None)
                .await
                .map(|outcome| reply(&outcome))?;
            reply.marks = strike.map(|strike| strike.marks()).unwrap_or_default();
            Ok(reply)
        })
    }
}

/// A server's answer as the agent gets it and the trace keeps it. A protocol error is an error
/// result that tells the error.
pub(crate) fn reply(outcome: &CallOutcome) -> ToolReply {
    match outcome {
        CallOutcome::Result(result) => ToolReply {
            is_error: result
                .get("isError")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            content: result
                .get("content")
                .cloned()
                .unwrap_or_else(|| Value::Array(Vec::new())),
            structured: result.get("structuredContent").cloned(),
            ..ToolReply::default()
        },
        CallOutcome::Error(error) => {
            let mut reply = ToolReply::refusal(format!("Error {}: {}", error.code, error.message));
            reply.error = serde_json::to_value(error).ok();
            reply
        }
    }
}
