//! The four tasks behind a connection: read stdout, write stdin, drain stderr,
//! wait for the end of the process. None of them ever waits for a caller.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::error::WireErrorKind;
use crate::options::ConnectOptions;
use crate::reaper::{self, Cookie};
use crate::state::{Closed, Outgoing, State};
use crate::stderr_tail::StderrTail;

/// After stdout ends: time for the exit status to follow, so errors can name it.
const EXIT_STATUS_WAIT: Duration = Duration::from_millis(300);

/// After the exit: time for the rest of stderr to be read.
const STDERR_WAIT: Duration = Duration::from_millis(200);

/// After a failed write: time for stdout to end by itself, with its last replies.
const BROKEN_PIPE_WAIT: Duration = Duration::from_millis(500);

/// After a crash: time for stdout to end. It may not, if a helper holds it open.
const HELD_STDOUT_WAIT: Duration = Duration::from_secs(1);

/// Beginning of an overlong line that is kept to show it.
const SHOWN_OF_LONG_LINE: usize = 2048;

/// Lines are gathered up to this many bytes: a pipe takes that at once, so that none of them waits
/// half written for another.
const WRITTEN_TOGETHER: usize = 8 * 1024;

/// What the tasks and the callers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) stderr: Mutex<StderrTail>,
    /// The process we started has ended and was waited for.
    pub(crate) exited: CancellationToken,
    /// Stdout has ended, or will not be waited for any more.
    pub(crate) stdout_done: CancellationToken,
    pub(crate) stderr_done: CancellationToken,
    pub(crate) max_line_bytes: usize,
}

impl Shared {
    pub(crate) fn new(options: &ConnectOptions, outgoing: mpsc::Sender<Outgoing>) -> Self {
        let limits = &options.limits;
        Self {
            state: Mutex::new(State::new(limits, &options.answers, outgoing)),
            stderr: Mutex::new(StderrTail::new(
                limits.max_stderr_lines,
                limits.max_stderr_bytes,
            )),
            exited: CancellationToken::new(),
            stdout_done: CancellationToken::new(),
            stderr_done: CancellationToken::new(),
            max_line_bytes: limits.max_line_bytes,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stderr(&self) -> MutexGuard<'_, StderrTail> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection once the evidence is in, as far as it comes soon.
    async fn close_with_evidence(&self, otherwise: &str) {
        // Both may stay open if the server lives on; then we say that instead.
        let _ = timeout(EXIT_STATUS_WAIT, self.exited.cancelled()).await;
        if self.exited.is_cancelled() {
            let _ = timeout(STDERR_WAIT, self.stderr_done.cancelled()).await;
        }
        let mut state = self.state();
        let closed = match state.exit_text() {
            Some(exit) => Closed {
                kind: WireErrorKind::ServerCrash,
                detail: format!("the server {exit}"),
            },
            None => Closed {
                kind: WireErrorKind::Transport,
                detail: otherwise.to_owned(),
            },
        };
        state.close(closed);
    }
}

/// Reads lines until stdout ends, whatever is in them.
pub(crate) async fn read_stdout(shared: Arc<Shared>, stdout: ChildStdout) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    let mut skipping = false;
    loop {
        let chunk = match reader.fill_buf().await {
            Ok([]) => break,
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(chunk.len());
        if !skipping {
            if line.len() + taken > shared.max_line_bytes {
                let mut beginning = std::mem::take(&mut line);
                beginning.extend_from_slice(&chunk[..taken.min(SHOWN_OF_LONG_LINE)]);
                beginning.truncate(SHOWN_OF_LONG_LINE);
                shared.state().line_too_long(&beginning);
                skipping = true;
            } else {
                line.extend_from_slice(&chunk[..taken]);
            }
        }
        if end.is_some() {
            if !skipping {
                shared.state().line(std::mem::take(&mut line), true);
            }
            skipping = false;
        }
        let used = end.map_or(taken, |end| end + 1);
        reader.consume(used);
    }
    if !line.is_empty() {
        shared.state().line(line, false);
    }
    shared
        .close_with_evidence("the server closed its stdout, though its process keeps running")
        .await;
    shared.stdout_done.cancel();
}

/// Writes what is queued; closes stdin when the queue is given up.
///
/// Short lines that wait together leave together: one write wakes the server once, and it has its
/// next request at hand.
pub(crate) async fn write_stdin(
    shared: Arc<Shared>,
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<Outgoing>,
) {
    let mut ids = Vec::new();
    while let Some(first) = queue.recv().await {
        let mut bytes = first.line;
        ids.extend(first.id);
        while bytes.len() < WRITTEN_TOGETHER
            && let Ok(next) = queue.try_recv()
        {
            bytes.extend_from_slice(&next.line);
            ids.extend(next.id);
        }
        if let Err(error) = stdin.write_all(&bytes).await {
            // The server may have answered and left: its replies come first.
            let _ = timeout(BROKEN_PIPE_WAIT, shared.stdout_done.cancelled()).await;
            let detail = format!("the server does not accept input any more ({error})");
            shared.close_with_evidence(&detail).await;
            return;
        }
        let mut state = shared.state();
        for id in ids.drain(..) {
            state.mark_written(id);
        }
    }
}

/// Drains stderr, so that a talkative server never blocks on it.
pub(crate) async fn read_stderr(shared: Arc<Shared>, mut stderr: ChildStderr) {
    let mut buffer = [0; 8 * 1024];
    loop {
        match stderr.read(&mut buffer).await {
            Ok(0) => break,
            Ok(n) => shared.stderr().push(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    shared.stderr_done.cancel();
}

/// Waits for the process, which also keeps it from becoming a zombie.
pub(crate) async fn wait_for_exit(shared: Arc<Shared>, mut child: Child, cookie: Cookie) {
    let status = child.wait().await;
    reaper::leader_gone(cookie);
    if let Ok(status) = status {
        shared.state().exit = Some(status);
    }
    shared.exited.cancel();
    // A launcher that ends well may have left the real server behind. One that
    // failed has not, even if some helper still holds its stdout open.
    if status.is_ok_and(|status| !status.success())
        && timeout(HELD_STDOUT_WAIT, shared.stdout_done.cancelled())
            .await
            .is_err()
    {
        shared
            .close_with_evidence("the server's process ended")
            .await;
    }
}
