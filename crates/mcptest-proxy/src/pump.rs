//! Passing lines between a client and its server, with the action of the observer on each.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcptest_http::credentials::WaitClock;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use crate::backend::{Input, Output};
use crate::lines::{LinePart, LineSplitter, MAX_LINE_BYTES};
use crate::log::{self, Direction};
use crate::observe::{LineAction, Observer, called_tool};

/// The number of queued chunks in each direction. A side that does not read blocks the other, like
/// a pipe.
pub(crate) const QUEUE_LEN: usize = 64;
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// After the end of the server: time for the client to read the rest of its output.
pub(crate) const LAST_OUTPUT_WAIT: Duration = Duration::from_secs(5);

/// After the end of stdout: time for the exit status to arrive.
pub(crate) const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// The pause between checks of a call while a credential is obtained.
const WAIT_CHECK: Duration = Duration::from_millis(100);

/// The time for the answer to a `ping` after a call timed out.
const PING_WAIT: Duration = Duration::from_secs(5);

/// The observer of a connection, shared by its two directions.
pub(crate) struct Shared {
    observer: Mutex<Observer>,
    pub(crate) changed: Notify,
}

impl Shared {
    pub(crate) fn new(observer: Observer) -> Arc<Self> {
        Arc::new(Self {
            observer: Mutex::new(observer),
            changed: Notify::new(),
        })
    }

    pub(crate) fn observer(&self) -> MutexGuard<'_, Observer> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Observes a line and wakes the recorder if the trace has changed.
    fn observe<T>(&self, handle: impl FnOnce(&mut Observer) -> T) -> T {
        let mut observer = self.observer();
        let action = handle(&mut observer);
        if observer.changed {
            self.changed.notify_one();
        }
        action
    }
}

/// The limit on the time of each call.
#[derive(Clone)]
pub(crate) struct CallLimit {
    pub(crate) timeout: Duration,
    /// The time in which credentials were obtained: it is not the time of calls.
    pub(crate) clock: Option<Arc<WaitClock>>,
}

impl CallLimit {
    /// Waits until the time of a call that begins now is over.
    async fn wait(&self) {
        let began = Instant::now();
        let (before, _) = self.waited();
        loop {
            let (waited, waits) = self.waited();
            let own = began.elapsed().saturating_sub(waited - before);
            if !waits && own >= self.timeout {
                return;
            }
            let rest = self.timeout.saturating_sub(own);
            sleep(if waits { rest.max(WAIT_CHECK) } else { rest }).await;
        }
    }

    fn waited(&self) -> (Duration, bool) {
        let clock = self.clock.as_ref();
        clock.map_or((Duration::ZERO, false), |clock| clock.read())
    }
}

/// Passes lines to the server until the client closes its side or the server stops reading. With a
/// limit, a call that the server does not answer in time gets an error result.
pub(crate) async fn client_to_server(
    shared: Arc<Shared>,
    mut from_client: mpsc::Receiver<Vec<u8>>,
    mut stdin: Input,
    to_client: mpsc::Sender<Vec<u8>>,
    limit: Option<CallLimit>,
) {
    let mut lines = LineSplitter::new(MAX_LINE_BYTES);
    let mut parts = Vec::new();
    // Messages of the proxy itself.
    let (to_server, mut own_messages) = mpsc::channel(QUEUE_LEN);
    let mut timers = JoinSet::new();
    loop {
        let mut passed = Vec::new();
        let ended = tokio::select! {
            own = own_messages.recv() => {
                passed = own.unwrap_or_default();
                false
            }
            chunk = from_client.recv() => {
                match &chunk {
                    Some(chunk) => lines.push(chunk, &mut parts),
                    None => parts.extend(lines.end()),
                }
                chunk.is_none()
            }
        };
        for part in parts.drain(..) {
            let line = match part {
                LinePart::Oversized(bytes) => {
                    if !shared.observe(Observer::refuses_oversized) {
                        passed.extend(bytes);
                    }
                    continue;
                }
                LinePart::Line(line) => line,
            };
            let action = shared.observe(|observer| observer.client_line(&line, Instant::now()));
            log::line(Direction::FromClient, &line, action.as_str());
            match action {
                LineAction::Pass => {
                    if let Some(limit) = &limit {
                        let timer = CallTimer {
                            shared: Arc::clone(&shared),
                            to_client: to_client.clone(),
                            to_server: to_server.clone(),
                            limit: limit.clone(),
                        };
                        timer.start(&line, &mut timers);
                    }
                    passed.extend(line);
                }
                LineAction::Replace(line) => passed.extend(line),
                LineAction::Answer(answer) => {
                    // The client may be gone.
                    let _ = to_client.send(answer).await;
                }
                LineAction::Split {
                    passed: rest,
                    answer,
                } => {
                    passed.extend(rest);
                    let _ = to_client.send(answer).await;
                }
                LineAction::AnswerAt(answer, at) => {
                    let (shared, to_client) = (Arc::clone(&shared), to_client.clone());
                    timers.spawn(async move {
                        sleep_until(at.into()).await;
                        shared.observer().answered();
                        let _ = to_client.send(answer).await;
                    });
                }
                LineAction::Drop | LineAction::Hold(..) => {}
            }
        }
        while timers.try_join_next().is_some() {}
        if stdin.write_all(&passed).await.is_err() {
            // The end of its stdout, with its last output, ends the session.
            return std::future::pending().await;
        }
        if ended {
            return;
        }
    }
}

/// The limit on the time of one call.
struct CallTimer {
    shared: Arc<Shared>,
    to_client: mpsc::Sender<Vec<u8>>,
    to_server: mpsc::Sender<Vec<u8>>,
    limit: CallLimit,
}

impl CallTimer {
    /// Starts the timer if the line is a call.
    fn start(self, line: &[u8], timers: &mut JoinSet<()>) {
        let message = serde_json::from_slice::<Value>(line).unwrap_or_default();
        if called_tool(&message).is_some() {
            timers.spawn(self.run(message));
        }
    }

    /// Answers the call when its time is over. Then a `ping` separates a call that hangs, which is
    /// evidence, from a server that answers nothing any more, which is an infrastructure error.
    async fn run(self, message: Value) {
        self.limit.wait().await;
        let (shared, timeout) = (&self.shared, self.limit.timeout);
        let Some(answer) = shared.observe(|observer| observer.time_out(&message, timeout)) else {
            return;
        };
        shared.observer().answered();
        // Either side may be gone.
        let _ = self.to_client.send(answer).await;
        let (id, ping) = shared.observer().ping();
        let _ = self.to_server.send(ping).await;
        sleep(PING_WAIT).await;
        shared.observer().end_ping(&id);
    }
}

/// Passes lines to the client until the server's output ends and all delayed replies are sent.
pub(crate) async fn server_to_client(
    shared: Arc<Shared>,
    mut stdout: Output,
    to_client: mpsc::Sender<Vec<u8>>,
) {
    let mut lines = LineSplitter::new(MAX_LINE_BYTES);
    let mut parts = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut delayed = JoinSet::new();
    loop {
        let read = stdout.read(&mut chunk).await.unwrap_or(0);
        lines.push(&chunk[..read], &mut parts);
        if read == 0 {
            parts.extend(lines.end());
        }
        let mut passed = Vec::new();
        for part in parts.drain(..) {
            match part {
                LinePart::Oversized(bytes) => passed.extend(bytes),
                LinePart::Line(line) => {
                    let action = shared.observe(|observer| observer.server_line(&line));
                    log::line(Direction::FromServer, &line, action.as_str());
                    match action {
                        LineAction::Pass => passed.extend(line),
                        LineAction::Replace(line) => passed.extend(line),
                        LineAction::Drop
                        | LineAction::Answer(_)
                        | LineAction::Split { .. }
                        | LineAction::AnswerAt(..) => {}
                        LineAction::Hold(line, until) => {
                            let (shared, to_client) = (shared.clone(), to_client.clone());
                            delayed.spawn(async move {
                                sleep_until(until.into()).await;
                                if shared.observer().release(&line) {
                                    // The client may be gone.
                                    let _ = to_client.send(line).await;
                                }
                            });
                        }
                    }
                }
            }
        }
        if !passed.is_empty() && to_client.send(passed).await.is_err() {
            return;
        }
        if read == 0 {
            break;
        }
        while delayed.try_join_next().is_some() {}
    }
    tokio::select! {
        () = async { while delayed.join_next().await.is_some() {} } => {}
        () = to_client.closed() => {}
    }
}
