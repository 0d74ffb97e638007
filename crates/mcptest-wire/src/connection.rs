//! A running server and requests to it, below MCP: ids, deadlines, cancellation and shutdown.

use std::fmt;
use std::future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::{WireError, WireErrorKind};
use crate::http::{self, Endpoint, HttpServer};
use crate::jsonrpc::{self, Params, Response};
use crate::log::ConnectionLog;
use crate::options::ConnectOptions;
use crate::process::{self, ServerCommand};
use crate::reaper::ProcessTree;
use crate::state::{Closed, Outgoing, PendingEvent, State};
use crate::tasks::{self, Shared};
use crate::time::{Grace, after, show_duration};
use mcptest_http::text::sanitize;

/// Lines that wait to be written. Enough for any burst, small enough to notice a server that does
/// not read.
const QUEUE_LEN: usize = 256;

/// After a damaged reply: time for a good one to follow.
const DAMAGED_REPLY_GRACE: Duration = Duration::from_millis(500);

/// The pause between checks of a call whose credential takes longer than its timeout.
const CREDENTIAL_CHECK: Duration = Duration::from_millis(100);

/// Violations shown in a timeout message.
const SHOWN_VIOLATIONS: usize = 3;

/// Time for the last queued lines to be written before stdin closes.
const DRAIN_WAIT: Duration = Duration::from_millis(250);

/// Time for the helpers of an exited server to exit, too.
const HELPER_WAIT: Duration = Duration::from_millis(300);

/// Time for all processes to exit after SIGKILL.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// The purpose of a request, for errors: it is put into words only where there is one.
pub(crate) type Action<'a> = &'a (dyn fmt::Display + Sync);

/// One request.
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    pub(crate) timeout: Duration,
    pub(crate) cancel: Option<&'a CancellationToken>,
    /// True if the server is notified when we stop waiting. Not while connecting: the protocol
    /// forbids it for `initialize`, and some servers crash on any notification before it.
    pub(crate) notify_cancelled: bool,
    pub(crate) action: Action<'a>,
}

/// The way to the server.
#[derive(Debug)]
enum Transport {
    /// The standard streams of a process that we started.
    Stdio(ProcessTree),
    /// Streamable HTTP.
    Http(Arc<Endpoint>),
}

/// A connection to a server. Dropping it kills a server that we started, with all its descendants.
#[derive(Debug)]
pub(crate) struct Connection {
    name: String,
    shared: Arc<Shared>,
    log: ConnectionLog,
    transport: Transport,
    /// The task that sends our messages.
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Locked during shutdown; true when that is done.
    shut_down: tokio::sync::Mutex<bool>,
}

impl Connection {
    /// Starts the process and the tasks that serve its streams.
    pub(crate) fn open(
        name: &str,
        command: &ServerCommand,
        options: &ConnectOptions,
    ) -> Result<Self, WireError> {
        let (mut child, tree) = process::spawn(name, command)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(process::no_streams(name));
        };
        let log = ConnectionLog::new(name, &[]);
        let (outgoing, queue) = mpsc::channel(QUEUE_LEN);
        let shared = Arc::new(Shared::new(options, outgoing, log.clone()));
        let writer = tokio::spawn(tasks::write_stdin(shared.clone(), stdin, queue));
        tokio::spawn(tasks::read_stdout(shared.clone(), stdout));
        tokio::spawn(tasks::read_stderr(shared.clone(), stderr));
        tokio::spawn(tasks::wait_for_exit(shared.clone(), child, tree.cookie()));
        Ok(Self {
            name: name.to_owned(),
            shared,
            log,
            transport: Transport::Stdio(tree),
            writer: Mutex::new(Some(writer)),
            shut_down: tokio::sync::Mutex::new(false),
        })
    }

    /// Prepares a connection over HTTP; nothing is sent yet.
    pub(crate) fn open_http(
        name: &str,
        server: &HttpServer,
        options: &ConnectOptions,
    ) -> Result<Self, WireError> {
        let endpoint = Arc::new(Endpoint::new(name, server, &options.limits)?);
        let log = ConnectionLog::new(name, endpoint.secrets());
        let (outgoing, queue) = mpsc::channel(QUEUE_LEN);
        let shared = Arc::new(Shared::new(options, outgoing, log.clone()));
        let writer = tokio::spawn(http::serve(endpoint.clone(), shared.clone(), queue));
        Ok(Self {
            name: name.to_owned(),
            shared,
            log,
            transport: Transport::Http(endpoint),
            writer: Mutex::new(Some(writer)),
            shut_down: tokio::sync::Mutex::new(false),
        })
    }

    /// The endpoint of a connection over HTTP.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        match &self.transport {
            Transport::Stdio(_) => None,
            Transport::Http(endpoint) => Some(endpoint),
        }
    }

    pub(crate) fn log(&self) -> &ConnectionLog {
        &self.log
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state()
    }

    pub(crate) fn stderr_mark(&self) -> u64 {
        self.shared.stderr().received()
    }

    pub(crate) fn stderr_after(&self, mark: u64) -> Vec<String> {
        self.shared.stderr().lines_after(mark)
    }

    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        self.shared.stderr().lines()
    }

    /// An error with all the evidence so far.
    pub(crate) fn failure(
        &self,
        kind: WireErrorKind,
        action: Action<'_>,
        detail: impl Into<String>,
    ) -> WireError {
        let (exit, last_line) = {
            let state = self.state();
            (state.exit_text(), state.last_line.as_deref().map(sanitize))
        };
        let error = WireError::new(kind, &self.name, action.to_string(), detail).with_evidence(
            self.stderr_tail(),
            exit,
            last_line,
        );
        match self.endpoint() {
            Some(endpoint) => error.masked(|text| endpoint.mask(text)),
            None => error,
        }
    }

    /// Sends a notification without waiting for it to be written.
    pub(crate) fn notify(&self, method: &str, params: Option<Value>) {
        self.state().notify(method, params);
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn request(&self, call: Call<'_>) -> Result<Response, WireError> {
        let (start, method) = (Instant::now(), call.method);
        let result = self.exchange(call).await;
        self.log.answered(method, start.elapsed(), &result);
        result
    }

    async fn exchange(&self, call: Call<'_>) -> Result<Response, WireError> {
        let action = call.action;
        let began = Instant::now();
        let mut deadline = after(call.timeout);
        let (mut pending, mut events, outgoing, mark) = {
            let mut state = self.state();
            let open = state.closed.is_none();
            let Some(outgoing) = state.outgoing.clone().filter(|_| open) else {
                drop(state);
                return Err(self.closed(action));
            };
            let (id, events) = state.open_call();
            let mark = state.violations.total();
            let pending = PendingCall {
                shared: &self.shared,
                id,
                notify_cancelled: call.notify_cancelled,
                reason: "the caller stopped waiting",
            };
            (pending, events, outgoing, mark)
        };
        let line = jsonrpc::encode_call(Some(pending.id), call.method, &call.params);
        self.log.sent(call.method, Some(pending.id), &line);
        let message = Outgoing {
            id: Some(pending.id),
            line,
        };
        // The queue nearly always has room: then there is nothing to wait for but the reply.
        let unsent = match outgoing.try_send(message) {
            Err(TrySendError::Full(message)) => Some(message),
            Ok(()) | Err(TrySendError::Closed(_)) => None,
        };
        let mut queued = unsent.is_none();
        let sending = async {
            match unsent {
                Some(message) => outgoing.send(message).await.is_ok(),
                None => true,
            }
        };
        tokio::pin!(sending);
        let cancelled = async {
            match call.cancel {
                Some(token) => token.cancelled().await,
                None => future::pending().await,
            }
        };
        tokio::pin!(cancelled);
        let mut damage: Option<String> = None;
        let mut waited = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(PendingEvent::Reply(mut response)) => {
                        response.credential_wait = waited;
                        return Ok(response);
                    }
                    Some(PendingEvent::Waited(time)) => {
                        waited += time;
                        let own = began.elapsed().saturating_sub(waited);
                        deadline = after(call.timeout.saturating_sub(own));
                    }
                    Some(PendingEvent::Damaged(detail)) => {
                        deadline = deadline.min(Instant::now() + DAMAGED_REPLY_GRACE);
                        damage = Some(detail);
                    }
                    Some(PendingEvent::Fail(kind, detail)) => {
                        pending.notify_cancelled = false;
                        let detail = match damage {
                            Some(damage) if kind == WireErrorKind::Protocol => {
                                format!("{damage}; {detail}")
                            }
                            _ => detail,
                        };
                        return Err(self.failure(kind, action, detail));
                    }
                    None => return Err(self.closed(action)),
                },
                () = &mut cancelled => {
                    pending.reason = "cancelled by the user";
                    let detail = "it was cancelled before a reply arrived";
                    return Err(self.failure(WireErrorKind::Cancelled, action, detail));
                }
                () = sleep_until(deadline) => {
                    // Credentials have their own timeout; then the call continues or fails.
                    if self.state().waits_for_credential(pending.id) {
                        deadline = after(CREDENTIAL_CHECK);
                        continue;
                    }
                    if let Some(detail) = damage {
                        pending.notify_cancelled = false;
                        return Err(self.failure(WireErrorKind::Protocol, action, detail));
                    }
                    pending.reason = "timeout";
                    return Err(self.timed_out(pending.id, mark, call.timeout, action));
                }
                // If sending fails, the writer has stopped; it closes the connection, which ends
                // this loop through `events`.
                _ = &mut sending, if !queued => queued = true,
            }
        }
    }

    fn timed_out(&self, id: u64, mark: u64, allowed: Duration, action: Action<'_>) -> WireError {
        let (written, violations) = {
            let state = self.state();
            let violations = state.violations.since(mark, SHOWN_VIOLATIONS);
            (state.was_written(id), violations)
        };
        let allowed = show_duration(allowed);
        let mut detail = if written {
            format!("no reply within {allowed}")
        } else if let Some(endpoint) = self.endpoint() {
            format!("no connection to {} within {allowed}", endpoint.shown)
        } else {
            format!(
                "the server does not read its stdin: \
                 the request could not be written within {allowed}"
            )
        };
        if let Some(violations) = violations {
            detail.push_str("; the server printed: ");
            detail.push_str(&violations);
        }
        self.failure(WireErrorKind::Timeout, action, detail)
    }

    /// The error for a closed connection.
    fn closed(&self, action: Action<'_>) -> WireError {
        let closed = self.state().closed.clone();
        let Closed { kind, detail } = closed.unwrap_or_else(Closed::by_us);
        self.failure(kind, action, detail)
    }

    /// Stops the server: closes stdin, waits, sends SIGTERM, waits, and kills what is left. Later
    /// calls wait for the first one and do nothing.
    pub(crate) async fn shutdown(&self, grace: Grace) {
        let mut done = self.shut_down.lock().await;
        if *done {
            return;
        }
        let start = Instant::now();
        {
            // First, so that the exit that we cause does not count as a crash.
            let mut state = self.state();
            state.close(Closed::by_us());
            state.end_sending();
        }
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let tree = match &self.transport {
            Transport::Stdio(tree) => tree,
            Transport::Http(endpoint) => {
                if let Some(writer) = writer {
                    let _ = timeout(DRAIN_WAIT, writer).await;
                }
                endpoint.end_session().await;
                self.log.stopped(start.elapsed());
                *done = true;
                return;
            }
        };
        if let Some(mut writer) = writer
            && timeout(DRAIN_WAIT, &mut writer).await.is_err()
        {
            // It is stuck in a write; aborting it closes stdin, too.
            writer.abort();
        }
        if !self.exits_within(tree, grace.eof).await {
            tree.terminate();
            self.exits_within(tree, grace.term).await;
        }
        tree.kill();
        // Dying takes a moment. This also reaps the process, so that no zombie stays.
        self.exits_within(tree, KILL_WAIT).await;
        self.log.stopped(start.elapsed());
        *done = true;
    }

    /// Waits for the process and the rest of its group. Returns true if all have exited.
    async fn exits_within(&self, tree: &ProcessTree, limit: Duration) -> bool {
        let exited = async {
            self.shared.exited.cancelled().await;
            let since = Instant::now();
            let mut pause = Duration::from_millis(1);
            while tree.group_exists() {
                // With stdout closed, only helpers of the server can be left.
                if self.shared.stdout_done.is_cancelled() && since.elapsed() > HELPER_WAIT {
                    return false;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            true
        };
        timeout(limit, exited).await.unwrap_or(false)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Lets the writer task end; `ProcessTree` kills the processes.
        self.state().end_sending();
    }
}

/// Removes the request when nobody waits for it any more, even if the caller drops the future.
struct PendingCall<'a> {
    shared: &'a Shared,
    id: u64,
    notify_cancelled: bool,
    reason: &'static str,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        // A notification about an unwritten request would only queue up behind it.
        if state.abandon_call(self.id) && self.notify_cancelled && state.sends_cancelled {
            let params = json!({"requestId": self.id, "reason": self.reason});
            state.notify("notifications/cancelled", Some(params));
        }
    }
}
