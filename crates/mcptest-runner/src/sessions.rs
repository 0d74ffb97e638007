//! The servers of a suite: started when first needed, shared or one per run, all ended at the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mcptest_agent::{Future, ToolReply, Tools};
use mcptest_attack::AttackRun;
use mcptest_protocol::query;
use mcptest_proxy::ProxiedServer;
use mcptest_suite::suite::{Isolation, Lifecycle, Server};
use mcptest_trace::fault::{FaultState, Strike, timeout_text};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{
    CallOptions, CallOutcome, Client, ConnectOptions, HttpServer, ServerCommand, WireError,
    WireErrorKind,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::query_token::{is_mock, new_token};
use crate::server_locks::ServerLocks;

/// The number of times that a shared server is started again after it crashed. A run that crashes
/// the server must not fail all later runs, and a server that always crashes must not be started
/// forever.
const MAX_RESTARTS: u32 = 5;

/// The bounds of the time for the answer to a `ping` after a call timed out; within them it is the
/// timeout of a call.
const MIN_PING_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The stderr lines that a failed call shows.
const MAX_STDERR_LINES: usize = 10;

/// The first line where some of the lines may belong to another run.
const SHARED_STDERR: &str = "(other tests used this server at the same time: lines may be theirs)";

/// The time for stderr lines to arrive after a failed call.
const STDERR_WAIT: Duration = Duration::from_millis(20);

/// The settings for all servers of an invocation.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    /// `--timeout`; overrides the suite.
    pub timeout: Option<Duration>,
    /// The suite's timeout.
    pub suite_timeout: Duration,
    /// The program that `mcptest` means as a server's command.
    pub this_program: PathBuf,
}

pub(crate) struct Sessions {
    settings: SessionSettings,
    /// Access to the servers.
    pub locks: ServerLocks,
    /// The token for queries of mock servers that this program starts.
    query_token: Arc<str>,
    slots: BTreeMap<String, Slot>,
}

struct Slot {
    server: Server,
    shared: Mutex<Shared>,
    /// The tools that it lists, for agents that start it themselves.
    listing: Mutex<Option<Result<Vec<Value>, RunError>>>,
}

#[derive(Default)]
struct Shared {
    session: Option<Arc<Session>>,
    /// The error of a server that could not be started; it is not tried again for every run.
    failed: Option<RunError>,
    starts: u32,
}

/// The time that a run waited for servers to start, and for the rest of their stderr: it is not the
/// time of the run.
#[derive(Debug, Default)]
pub(crate) struct StartupTime(AtomicU64);

impl StartupTime {
    fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }

    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// A connected server.
pub(crate) struct Session {
    pub(crate) client: Client,
    call_timeout: Duration,
    /// True if that is `--timeout`, which overrides the timeout of a test.
    timeout_is_final: bool,
    listed: Mutex<Option<Vec<Value>>>,
    fresh: bool,
    query_token: Arc<str>,
    users: Users,
}

/// The runs that use a session.
#[derive(Debug, Default)]
struct Users {
    /// The runs that use it now.
    now: AtomicU64,
    /// All runs so far.
    total: AtomicU64,
}

impl Sessions {
    pub fn new(servers: &BTreeMap<String, Server>, settings: SessionSettings) -> Self {
        let slots = servers
            .iter()
            .map(|(name, server)| {
                let slot = Slot {
                    server: server.clone(),
                    shared: Mutex::default(),
                    listing: Mutex::default(),
                };
                (name.clone(), slot)
            })
            .collect();
        Self {
            settings,
            locks: ServerLocks::new(servers),
            query_token: new_token().into(),
            slots,
        }
    }

    /// Opens a session with a server: the shared one, or a new one where the suite asks for
    /// isolation.
    pub async fn open(&self, name: &str) -> Result<Arc<Session>, RunError> {
        self.open_as(name, None).await
    }

    /// Like [`Self::open`], for a run that may set its own isolation. The time that the server
    /// takes to start is not the time of the run.
    pub async fn open_for(
        &self,
        name: &str,
        isolation: Option<Isolation>,
        startup: &StartupTime,
    ) -> Result<Arc<Session>, RunError> {
        let began = Instant::now();
        let session = self.open_as(name, isolation).await;
        startup.add(began.elapsed());
        session
    }

    async fn open_as(
        &self,
        name: &str,
        isolation: Option<Isolation>,
    ) -> Result<Arc<Session>, RunError> {
        let Some(slot) = self.slots.get(name) else {
            return Err(unknown_server(name));
        };
        if isolation.unwrap_or(slot.server.isolation) == Isolation::Run {
            let session = Box::pin(self.connect(name, &slot.server, true)).await;
            return session.map(Arc::new);
        }
        // Held while connecting: other runs wait for this session instead of starting another.
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
        if shared.starts > MAX_RESTARTS {
            return Err(RunError {
                kind: ErrorKind::ServerCrash,
                message: format!(
                    "server `{name}` crashed {MAX_RESTARTS} times; it is not started again"
                ),
            });
        }
        shared.starts += 1;
        // In a box: connecting is the largest future, and only one of the runs polls it. Without
        // it, every run of a direct test copies it (see the test of sizes in `one_run.rs`).
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

    /// Opens a session of its own, with further environment variables for a server that is a
    /// program.
    pub async fn open_with(
        &self,
        name: &str,
        env: Vec<(String, String)>,
        startup: &StartupTime,
    ) -> Result<Arc<Session>, RunError> {
        let Some(slot) = self.slots.get(name) else {
            return Err(unknown_server(name));
        };
        let mut server = slot.server.clone();
        server.env.extend(env);
        let began = Instant::now();
        let session = Box::pin(self.connect(name, &server, true)).await;
        startup.add(began.elapsed());
        session.map(Arc::new)
    }

    async fn connect(&self, name: &str, server: &Server, fresh: bool) -> Result<Session, RunError> {
        let command = self.command(server);
        let call_timeout = self.call_timeout(server);
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
            users: Users::default(),
            query_token: Arc::clone(&self.query_token),
        })
    }

    /// The program that `mcptest` means as a server's command.
    pub fn this_program(&self) -> &std::path::Path {
        &self.settings.this_program
    }

    /// The tools that a server lists, requested once. A server that does not list them is not
    /// asked again.
    pub async fn listing_of(&self, name: &str) -> Result<Vec<Value>, RunError> {
        let Some(slot) = self.slots.get(name) else {
            return Err(unknown_server(name));
        };
        let mut listing = slot.listing.lock().await;
        if let Some(listing) = &*listing {
            return listing.clone();
        }
        let listed = match Box::pin(self.connect(name, &slot.server, true)).await {
            Ok(session) => {
                let listed = session.listing().await;
                session.release().await;
                listed
            }
            Err(error) => Err(error),
        };
        listing.insert(listed).clone()
    }

    /// A server for the proxies of a run, and the timeout of its calls.
    pub fn proxied(&self, name: &str) -> Option<(ProxiedServer, Duration)> {
        let server = &self.slots.get(name)?.server;
        let target = match &server.http {
            Some(http) => ProxiedServer::Http(HttpServer {
                url: http.url.clone(),
                headers: http.headers.clone(),
            }),
            None => ProxiedServer::Command(self.command(server)),
        };
        Some((target, self.call_timeout(server)))
    }

    fn command(&self, server: &Server) -> ServerCommand {
        let mut argv = server.argv.clone();
        // This executable, even if it is not on PATH.
        if let Some(first) = argv.first_mut().filter(|first| first.as_str() == "mcptest") {
            *first = self.settings.this_program.to_string_lossy().into_owned();
        }
        let mut env = server.env.clone();
        if is_mock(&server.argv) {
            let token = self.query_token.to_string();
            env.push((query::TOKEN_VARIABLE.to_owned(), token));
        }
        ServerCommand {
            argv,
            env,
            cwd: Some(server.cwd.clone()),
        }
    }

    fn call_timeout(&self, server: &Server) -> Duration {
        self.settings
            .timeout
            .or(server.timeout)
            .unwrap_or(self.settings.suite_timeout)
    }

    /// Ends all shared servers.
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
    /// The tools that the server lists, each entry as sent. They are requested once per session.
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

    /// The token for queries of a mock server.
    pub fn query_token(&self) -> &str {
        &self.query_token
    }

    /// Sends a request. `timeout` overrides the server's and the suite's.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        timeout: Option<Duration>,
    ) -> Result<CallOutcome, RunError> {
        let timeout = timeout
            .filter(|_| !self.timeout_is_final)
            .unwrap_or(self.call_timeout);
        let answer = self.client.request(method, Some(params), timeout).await;
        answer
            .map(|response| response.outcome)
            .map_err(|error| run_error(&error))
    }

    /// Calls a tool. `timeout` overrides the server's and the suite's.
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

    /// Returns true if the server answers a `ping`, with whatever answer.
    ///
    /// This separates two kinds of timeouts. A call that hangs in a server which still answers
    /// (`mcptest mock --fault hang`, a tool that waits for something) is evidence: the agent could
    /// have noticed it and continued. A server that answers nothing any more, or whose process is
    /// gone, is an infrastructure error, and no judgement of the agent is possible. A server that
    /// works on one request at a time cannot answer during a hung call, and counts as the latter.
    async fn answers(&self) -> bool {
        let timeout = self.call_timeout.clamp(MIN_PING_TIMEOUT, MAX_PING_TIMEOUT);
        let pong = self.client.request("ping", None, timeout);
        self.client.is_alive() && Box::pin(pong).await.is_ok()
    }

    /// Ends a session that belongs to one run.
    pub async fn release(&self) {
        if self.fresh {
            Box::pin(self.client.shutdown()).await;
        }
    }
}

/// A session as one run uses it.
pub(crate) struct OpenSession {
    pub session: Arc<Session>,
    /// The stderr lines before the run.
    mark: u64,
    /// The number of runs that had used the session, with this one; `None` if another one used it
    /// when this one began.
    alone_since: Option<u64>,
}

impl OpenSession {
    pub fn new(session: Arc<Session>) -> Self {
        let mark = session.client.stderr_mark();
        let others = session.users.now.fetch_add(1, Ordering::Relaxed);
        let total = session.users.total.fetch_add(1, Ordering::Relaxed) + 1;
        Self {
            session,
            mark,
            alone_since: (others == 0).then_some(total),
        }
    }

    /// The last lines that the server wrote to stderr since the run opened the session. If other
    /// runs used it at the same time, a first line states that some may be theirs. `waited` gets
    /// the time that this takes.
    pub async fn stderr(&self, waited: &StartupTime) -> Vec<String> {
        let began = Instant::now();
        // The answer and stderr are two pipes: a line written before the answer may come after it.
        tokio::time::sleep(STDERR_WAIT).await;
        waited.add(began.elapsed());
        let total = self.session.users.total.load(Ordering::Relaxed);
        let mut lines = self.session.client.stderr_after(self.mark);
        lines.drain(..lines.len().saturating_sub(MAX_STDERR_LINES));
        if !lines.is_empty() && self.alone_since != Some(total) {
            lines.insert(0, SHARED_STDERR.to_owned());
        }
        lines
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.session.users.now.fetch_sub(1, Ordering::Relaxed);
    }
}

fn unknown_server(name: &str) -> RunError {
    RunError {
        kind: ErrorKind::Transport,
        message: format!("unknown server `{name}`"),
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

/// The sessions of one run, by server, through which the agent loop calls tools. Injected faults
/// are applied here, in virtual time: nothing waits.
pub(crate) struct RunTools<'a> {
    pub sessions: BTreeMap<String, OpenSession>,
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

    fn strike(&self, server: &str, tool: &str) -> Option<Strike> {
        // A panic elsewhere leaves the counts correct.
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
            let mut reply = match session.call(tool, args, None).await {
                Ok(outcome) => reply(&outcome),
                Err(error) if error.kind == ErrorKind::Timeout && session.answers().await => {
                    hung(tool, session.call_timeout)
                }
                Err(error) => return Err(error),
            };
            let hung = reply.marks.contains_key("error_kind");
            reply
                .marks
                .extend(strike.map(|strike| strike.marks()).unwrap_or_default());
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

/// The answer of a server, as the agent receives it and the trace keeps it. A protocol error
/// becomes an error result with its message.
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
