//! A running server and requests to it, below MCP: ids, deadlines, cancellation
//! and the end of the process.

use std::future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::{WireError, WireErrorKind};
use crate::http::{self, Endpoint, HttpServer};
use crate::jsonrpc::{self, Response};
use crate::options::ConnectOptions;
use crate::process::{self, ServerCommand};
use crate::reaper::Tree;
use crate::state::{Closed, Outgoing, PendingEvent, State};
use crate::tasks::{self, Shared};
use mcptest_http::text::sanitize;

/// Lines waiting to be written. Enough for any burst, small enough to notice a
/// server that does not read.
const QUEUE: usize = 256;

/// After a broken reply: time for a good one to follow.
const BROKEN_REPLY_GRACE: Duration = Duration::from_millis(500);

/// Violations shown in a timeout message.
const SHOWN_VIOLATIONS: usize = 3;

/// Time for the last queued lines to be written before stdin closes.
const DRAIN_WAIT: Duration = Duration::from_millis(250);

/// Time for helpers of a server that has left to leave too.
const HELPER_WAIT: Duration = Duration::from_millis(300);

/// Time between SIGKILL and giving up on the end of it all.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// How much time a server gets to leave by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grace {
    /// After its stdin closed.
    pub(crate) eof: Duration,
    /// After SIGTERM.
    pub(crate) term: Duration,
}

impl Grace {
    /// For a server that worked. The slowest of 64 real ones needed 2.4 s on a
    /// busy machine, and ended at once on SIGTERM.
    pub(crate) const NORMAL: Self = Self {
        eof: Duration::from_secs(2),
        term: Duration::from_secs(2),
    };
    /// For a server that failed us already.
    pub(crate) const SHORT: Self = Self {
        eof: Duration::from_millis(100),
        term: Duration::from_millis(500),
    };
}

/// One request, ready to go.
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<Value>,
    pub(crate) timeout: Duration,
    pub(crate) cancel: Option<&'a CancellationToken>,
    /// Whether the server is told when we stop waiting. Not during the opening:
    /// the protocol forbids it for `initialize`, and some servers die of any
    /// notification before it.
    pub(crate) tell_cancelled: bool,
    /// What this is for, as it will stand in an error.
    pub(crate) action: &'a str,
}

/// What is at the other end.
#[derive(Debug)]
enum FarEnd {
    /// A process that we started.
    Process(Tree),
    /// An address.
    Http(Arc<Endpoint>),
}

/// A server that we talk to. Dropping it kills a server that we started, with all its descendants.
#[derive(Debug)]
pub(crate) struct Connection {
    name: String,
    shared: Arc<Shared>,
    far_end: FarEnd,
    /// The task that carries our messages.
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Held while shutting down; true when that is done.
    shut_down: tokio::sync::Mutex<bool>,
}

impl Connection {
    /// Starts the process and the tasks that serve its pipes.
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
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::new(options, outgoing));
        let writer = tokio::spawn(tasks::write_stdin(shared.clone(), stdin, queue));
        tokio::spawn(tasks::read_stdout(shared.clone(), stdout));
        tokio::spawn(tasks::read_stderr(shared.clone(), stderr));
        tokio::spawn(tasks::wait_for_exit(shared.clone(), child, tree.cookie()));
        Ok(Self {
            name: name.to_owned(),
            shared,
            far_end: FarEnd::Process(tree),
            writer: Mutex::new(Some(writer)),
            shut_down: tokio::sync::Mutex::new(false),
        })
    }

    /// Gets ready to speak over HTTP; nothing is sent yet.
    pub(crate) fn open_http(
        name: &str,
        server: &HttpServer,
        options: &ConnectOptions,
    ) -> Result<Self, WireError> {
        let endpoint = Arc::new(Endpoint::new(name, server, &options.limits)?);
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::new(options, outgoing));
        let writer = tokio::spawn(http::serve(endpoint.clone(), shared.clone(), queue));
        Ok(Self {
            name: name.to_owned(),
            shared,
            far_end: FarEnd::Http(endpoint),
            writer: Mutex::new(Some(writer)),
            shut_down: tokio::sync::Mutex::new(false),
        })
    }

    /// The address spoken to, if it is one.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        match &self.far_end {
            FarEnd::Process(_) => None,
            FarEnd::Http(endpoint) => Some(endpoint),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state()
    }

    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        self.shared.stderr().lines()
    }

    /// An error with all the evidence there is by now.
    pub(crate) fn failure(
        &self,
        kind: WireErrorKind,
        action: &str,
        detail: impl Into<String>,
    ) -> WireError {
        let (exit, last_line) = {
            let state = self.state();
            (state.exit_text(), state.last_line.as_deref().map(sanitize))
        };
        let error = WireError::new(kind, &self.name, action, detail).with_evidence(
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
        let action = call.action;
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
                tell_cancelled: call.tell_cancelled,
                reason: "the caller stopped waiting",
            };
            (pending, events, outgoing, mark)
        };
        let line = jsonrpc::encode_call(Some(pending.id), call.method, call.params);
        let sending = outgoing.send(Outgoing {
            id: Some(pending.id),
            line,
        });
        tokio::pin!(sending);
        let cancelled = async {
            match call.cancel {
                Some(token) => token.cancelled().await,
                None => future::pending().await,
            }
        };
        tokio::pin!(cancelled);
        let mut queued = false;
        let mut broken: Option<String> = None;
        loop {
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(PendingEvent::Reply(response)) => return Ok(response),
                    Some(PendingEvent::Suspect(what)) => {
                        deadline = deadline.min(Instant::now() + BROKEN_REPLY_GRACE);
                        broken = Some(what);
                    }
                    Some(PendingEvent::Fail(kind, what)) => {
                        pending.tell_cancelled = false;
                        let what = match broken {
                            Some(broken) if kind == WireErrorKind::Protocol => format!("{broken}; {what}"),
                            _ => what,
                        };
                        return Err(self.failure(kind, action, what));
                    }
                    None => return Err(self.closed(action)),
                },
                () = &mut cancelled => {
                    pending.reason = "cancelled by the user";
                    let detail = "it was cancelled before the reply came";
                    return Err(self.failure(WireErrorKind::Cancelled, action, detail));
                }
                () = sleep_until(deadline) => {
                    if let Some(what) = broken {
                        pending.tell_cancelled = false;
                        return Err(self.failure(WireErrorKind::Protocol, action, what));
                    }
                    pending.reason = "timeout";
                    return Err(self.timed_out(pending.id, mark, call.timeout, action));
                }
                // A failed send means that the writer gave up; it closes the
                // connection, which ends this loop through `events`.
                _ = &mut sending, if !queued => queued = true,
            }
        }
    }

    fn timed_out(&self, id: u64, mark: u64, allowed: Duration, action: &str) -> WireError {
        let (written, printed) = {
            let state = self.state();
            let printed = state.violations.since(mark, SHOWN_VIOLATIONS);
            (state.was_written(id), printed)
        };
        let allowed = show_duration(allowed);
        let mut detail = if written {
            format!("no reply within {allowed}")
        } else if let Some(endpoint) = self.endpoint() {
            format!("no connection to {} within {allowed}", endpoint.shown)
        } else {
            format!(
                "the server does not read its stdin: the request could not be written within {allowed}"
            )
        };
        if let Some(printed) = printed {
            detail.push_str("; the server did print: ");
            detail.push_str(&printed);
        }
        self.failure(WireErrorKind::Timeout, action, detail)
    }

    /// The error for a connection that has ended.
    fn closed(&self, action: &str) -> WireError {
        let closed = self.state().closed.clone();
        let Closed { kind, detail } = closed.unwrap_or_else(Closed::by_us);
        self.failure(kind, action, detail)
    }

    /// Ends the server: close stdin, wait, SIGTERM, wait, SIGKILL, stragglers.
    /// Later calls wait for the first one and do nothing.
    pub(crate) async fn shutdown(&self, grace: Grace) {
        let mut done = self.shut_down.lock().await;
        if *done {
            return;
        }
        {
            // First, so that the exit we cause is not taken for a crash.
            let mut state = self.state();
            state.close(Closed::by_us());
            state.outgoing = None;
        }
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let tree = match &self.far_end {
            FarEnd::Process(tree) => tree,
            FarEnd::Http(endpoint) => {
                if let Some(writer) = writer {
                    let _ = timeout(DRAIN_WAIT, writer).await;
                }
                endpoint.end_session().await;
                *done = true;
                return;
            }
        };
        if let Some(mut writer) = writer
            && timeout(DRAIN_WAIT, &mut writer).await.is_err()
        {
            // It is stuck in a write; giving it up closes stdin too.
            writer.abort();
        }
        if !self.ends_within(tree, grace.eof).await {
            tree.terminate();
            self.ends_within(tree, grace.term).await;
        }
        tree.kill();
        // Being killed takes a moment. This also reaps the process, so that no
        // zombie stays.
        self.ends_within(tree, KILL_WAIT).await;
        *done = true;
    }

    /// Waits for the process and then for what else is in its group. Says
    /// whether all of that is gone.
    async fn ends_within(&self, tree: &Tree, limit: Duration) -> bool {
        let ended = async {
            self.shared.exited.cancelled().await;
            let since = Instant::now();
            let mut pause = Duration::from_millis(1);
            while tree.group_exists() {
                // With stdout closed there is no server any more, only helpers.
                if self.shared.stdout_done.is_cancelled() && since.elapsed() > HELPER_WAIT {
                    return false;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            true
        };
        timeout(limit, ended).await.unwrap_or(false)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Lets the writer task end; `Tree` kills the processes.
        self.state().outgoing = None;
    }
}

/// Forgets the request when nobody waits for it any more, whichever way that
/// happens, including a caller that drops the future.
struct PendingCall<'a> {
    shared: &'a Shared,
    id: u64,
    tell_cancelled: bool,
    reason: &'static str,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        // Before it was written, a notice about it would only pile up behind it.
        if state.forget_call(self.id) && self.tell_cancelled && state.sends_cancelled {
            let params = json!({"requestId": self.id, "reason": self.reason});
            state.notify("notifications/cancelled", Some(params));
        }
    }
}

/// A point in time from now; "forever" for a duration beyond the clock.
pub(crate) fn after(duration: Duration) -> Instant {
    const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
    Instant::now() + duration.min(FOREVER)
}

/// A duration as people write it: "30s", "2.5s", "250ms".
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = (duration.as_secs_f64() * 1000.0).round();
    if millis < 1000.0 {
        return format!("{millis:.0}ms");
    }
    let seconds = format!("{:.1}", millis / 1000.0);
    format!("{}s", seconds.strip_suffix(".0").unwrap_or(&seconds))
}
