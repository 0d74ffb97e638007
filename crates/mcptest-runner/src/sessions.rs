//! The servers of a suite: started when first needed, shared or one per run, all ended at the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mcptest_agent::ToolReply;
use mcptest_http::credentials::Credentials;
use mcptest_protocol::query;
use mcptest_proxy::ProxiedServer;
use mcptest_suite::suite::{Isolation, Lifecycle, Server, Test};
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{CallOptions, CallOutcome, Client, ConnectOptions, ServerCommand};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::infra_errors::{run_error, unknown_server};
use crate::query_token::{is_mock, new_token};
use crate::server_credentials::{ServerCredentials, http_server};
use crate::server_locks::ServerLocks;
use crate::test_client::TestClient;

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
    /// The credentials of servers that require authorization.
    pub credentials: ServerCredentials,
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
    /// Shared by all its sessions, so that they share their tokens.
    credentials: Option<Arc<dyn Credentials>>,
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
    /// The client of the test that the session belongs to.
    pub(crate) test_client: Option<Arc<TestClient>>,
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
    /// The servers of tests; none of them is started.
    pub fn new(
        servers: &BTreeMap<String, Server>,
        tests: &[Test],
        settings: SessionSettings,
    ) -> Self {
        let slots = servers
            .iter()
            .map(|(name, server)| {
                let slot = Slot {
                    server: server.clone(),
                    credentials: settings.credentials.of(name, server),
                    shared: Mutex::default(),
                    listing: Mutex::default(),
                };
                (name.clone(), slot)
            })
            .collect();
        Self {
            settings,
            locks: ServerLocks::new(servers, tests),
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
            let session = Box::pin(self.connect(name, &slot.server, true, None)).await;
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
        match Box::pin(self.connect(name, &slot.server, false, None)).await {
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

    /// Opens a session for a test: with its client, if it has one, which no other test shares.
    pub async fn open_for_test(
        &self,
        name: &str,
        isolation: Option<Isolation>,
        client: Option<&Arc<TestClient>>,
        startup: &StartupTime,
    ) -> Result<Arc<Session>, RunError> {
        match client {
            Some(_) => Box::pin(self.open_with(name, Vec::new(), client, startup)).await,
            None => self.open_for(name, isolation, startup).await,
        }
    }

    /// Opens a separate session, with further environment variables for a server that is a
    /// program, and with the client of a test.
    pub async fn open_with(
        &self,
        name: &str,
        env: Vec<(String, String)>,
        client: Option<&Arc<TestClient>>,
        startup: &StartupTime,
    ) -> Result<Arc<Session>, RunError> {
        let Some(slot) = self.slots.get(name) else {
            return Err(unknown_server(name));
        };
        let mut server = slot.server.clone();
        server.env.extend(env);
        let began = Instant::now();
        let session = Box::pin(self.connect(name, &server, true, client)).await;
        startup.add(began.elapsed());
        session.map(Arc::new)
    }

    async fn connect(
        &self,
        name: &str,
        server: &Server,
        fresh: bool,
        test_client: Option<&Arc<TestClient>>,
    ) -> Result<Session, RunError> {
        let command = self.command(server);
        let call_timeout = self.call_timeout(server);
        let mut options = ConnectOptions {
            lifecycle: match server.lifecycle {
                Lifecycle::Auto => mcptest_wire::Lifecycle::Auto,
                Lifecycle::Initialize => mcptest_wire::Lifecycle::Initialize,
                Lifecycle::Discover => mcptest_wire::Lifecycle::Discover,
            },
            connect_timeout: self.settings.timeout.unwrap_or(server.startup_timeout),
            call_timeout,
            ..ConnectOptions::default()
        };
        let credentials = self
            .slots
            .get(name)
            .and_then(|slot| slot.credentials.as_ref());
        if let Some(test_client) = test_client {
            options.handler = test_client.for_server(name);
        }
        let client = match &server.http {
            Some(http) => {
                let http = http_server(http, credentials);
                Client::connect_http(name, &http, &options).await
            }
            None => Client::connect_stdio(name, &command, &options).await,
        };
        let client = client.map_err(|error| {
            let mut error = run_error(&error);
            if error.kind == ErrorKind::Auth && credentials.is_none() {
                error
                    .message
                    .push_str("; `mcptest doctor` explains what the server requires");
            }
            error
        })?;
        if let Some(test_client) = test_client {
            set_log_level(&client, test_client).await?;
        }
        Ok(Session {
            client,
            test_client: test_client.cloned(),
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
        let listed = match Box::pin(self.connect(name, &slot.server, true, None)).await {
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
        let slot = self.slots.get(name)?;
        let server = &slot.server;
        let target = match &server.http {
            Some(http) => ProxiedServer::Http(http_server(http, slot.credentials.as_ref())),
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
        self.client
            .call_tool(tool, args, &self.call_options(timeout))
            .await
            .map_err(|error| run_error(&error))
    }

    /// The settings of a call. `timeout` overrides the server's and the suite's.
    pub fn call_options(&self, timeout: Option<Duration>) -> CallOptions {
        let listening = self.test_client.as_ref().map(|client| client.listening);
        let listening = listening.unwrap_or_default();
        CallOptions {
            timeout: timeout
                .filter(|_| !self.timeout_is_final)
                .or(Some(self.call_timeout)),
            progress: listening.progress,
            log_level: listening.log_level.map(str::to_owned),
            ..CallOptions::default()
        }
    }

    /// Returns true if the server is reached over HTTP.
    pub fn is_over_http(&self) -> bool {
        self.client.is_over_http()
    }

    /// The timeout of a call.
    pub fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// Returns true if the server answers a `ping`, with any answer.
    ///
    /// This separates two kinds of timeouts. A call that hangs in a server which still answers
    /// (`mcptest mock --fault hang`, a tool that waits for something) is evidence: the agent could
    /// have noticed it and continued. A server that answers nothing any more, or whose process is
    /// gone, is an infrastructure error, and no judgement of the agent is possible. A server that
    /// works on one request at a time cannot answer during a hung call, and counts as the latter.
    pub async fn answers(&self) -> bool {
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

/// Asks a server of an older revision for log messages. In the stateless one, every call does.
async fn set_log_level(client: &Client, test_client: &TestClient) -> Result<(), RunError> {
    let info = client.server();
    let Some(level) = test_client
        .listening
        .log_level
        .filter(|_| !info.revision.is_stateless() && info.capabilities.get("logging").is_some())
    else {
        return Ok(());
    };
    match client.set_log_level(level).await {
        Ok(CallOutcome::Result(_)) => Ok(()),
        Ok(CallOutcome::Error(error)) => Err(RunError {
            kind: ErrorKind::Protocol,
            message: format!(
                "server `{}` has the capability `logging`, and refused the level `{level}`: error \
                 {}: {}",
                client.name(),
                error.code,
                error.message
            ),
        }),
        Err(error) => Err(run_error(&error)),
    }
}

/// Returns true if the result of a tool is an error.
pub(crate) fn result_is_error(result: &Value) -> bool {
    let flag = result.get("isError").and_then(Value::as_bool);
    flag.unwrap_or(false)
}

/// The answer of a server, as the agent receives it and the trace keeps it. A protocol error
/// becomes an error result with its message.
pub(crate) fn reply(outcome: &CallOutcome) -> ToolReply {
    match outcome {
        CallOutcome::Result(result) => ToolReply {
            is_error: result_is_error(result),
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
