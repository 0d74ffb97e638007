//! The four tasks of a connection over stdio: reading stdout, writing stdin, draining stderr, and
//! waiting for the process to exit. None of them ever waits for a caller.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::error::WireErrorKind;
use crate::log::ConnectionLog;
use crate::options::ConnectOptions;
use crate::process::describe_exit;
use crate::reaper::{self, Cookie};
use crate::state::{Closed, Outgoing, State};
use crate::stderr_tail::StderrTail;

/// After the end of stdout: time for the exit status to arrive, so that errors can name it.
const EXIT_STATUS_WAIT: Duration = Duration::from_millis(300);

/// After the exit: time for the rest of stderr to be read.
const STDERR_WAIT: Duration = Duration::from_millis(200);

/// After a failed write: time for the last replies to arrive on stdout.
const BROKEN_PIPE_WAIT: Duration = Duration::from_millis(500);

/// After a crash: time for stdout to end. It does not end if a helper holds it open.
const HELD_STDOUT_WAIT: Duration = Duration::from_secs(1);

/// Bytes kept of a line above the limit, to show its beginning.
const LONG_LINE_EXCERPT: usize = 2048;

/// Lines are combined into writes of up to this number of bytes, which a pipe accepts as a whole.
const MAX_COMBINED_BYTES: usize = 8 * 1024;

/// The data shared by the tasks and the callers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) stderr: Mutex<StderrTail>,
    /// Cancelled when the process has exited and was waited for.
    pub(crate) exited: CancellationToken,
    /// Cancelled when stdout has ended.
    pub(crate) stdout_done: CancellationToken,
    pub(crate) stderr_done: CancellationToken,
    pub(crate) max_line_bytes: usize,
    pub(crate) log: ConnectionLog,
}

impl Shared {
    pub(crate) fn new(
        options: &ConnectOptions,
        outgoing: mpsc::Sender<Outgoing>,
        log: ConnectionLog,
    ) -> Self {
        let limits = &options.limits;
        Self {
            state: Mutex::new(State::new(limits, &options.handler, outgoing, log.clone())),
            stderr: Mutex::new(StderrTail::new(
                limits.max_stderr_lines,
                limits.max_stderr_bytes,
                log.clone(),
            )),
            exited: CancellationToken::new(),
            stdout_done: CancellationToken::new(),
            stderr_done: CancellationToken::new(),
            max_line_bytes: limits.max_line_bytes,
            log,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stderr(&self) -> MutexGuard<'_, StderrTail> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection after a short wait for the evidence. `reason` applies if the process
    /// is still running.
    async fn close_with_evidence(&self, reason: &str) {
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
                detail: reason.to_owned(),
            },
        };
        state.close(closed);
    }
}

/// The number of lines that are handled before other tasks and timers have their turn. A pipe full
/// of line feeds has 65,536 lines, and a server that never stops writing would keep a deadline from
/// being noticed.
const LINES_AT_ONCE: usize = 256;

/// Reads lines until stdout ends.
pub(crate) async fn read_stdout(shared: Arc<Shared>, stdout: ChildStdout) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    let mut skipping = false;
    let mut lines = 0;
    loop {
        if lines >= LINES_AT_ONCE {
            lines = 0;
            // Buffered lines are read without waiting, which alone lets nobody else run.
            tokio::task::yield_now().await;
        }
        let chunk = match reader.fill_buf().await {
            Ok([]) => break,
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let end = memchr::memchr(b'\n', chunk);
        let taken = end.unwrap_or(chunk.len());
        if !skipping {
            if line.len() + taken > shared.max_line_bytes {
                let mut beginning = std::mem::take(&mut line);
                beginning.extend_from_slice(&chunk[..taken.min(LONG_LINE_EXCERPT)]);
                beginning.truncate(LONG_LINE_EXCERPT);
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
            lines += 1;
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

/// Writes the queued lines; closes stdin when the queue is closed.
///
/// Short lines that wait at the same time are written together: one write wakes the server once.
pub(crate) async fn write_stdin(
    shared: Arc<Shared>,
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<Outgoing>,
) {
    let mut ids = Vec::new();
    while let Some(first) = queue.recv().await {
        let mut bytes = first.line;
        ids.extend(first.id);
        while bytes.len() < MAX_COMBINED_BYTES
            && let Ok(next) = queue.try_recv()
        {
            bytes.extend_from_slice(&next.line);
            ids.extend(next.id);
        }
        if let Err(error) = stdin.write_all(&bytes).await {
            // The server may have answered and exited: its replies come first.
            let _ = timeout(BROKEN_PIPE_WAIT, shared.stdout_done.cancelled()).await;
            let detail = format!("the server no longer accepts input ({error})");
            shared.close_with_evidence(&detail).await;
            return;
        }
        let mut state = shared.state();
        for id in ids.drain(..) {
            state.mark_written(id);
        }
    }
}

/// Drains stderr, so that the server never blocks on it.
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

/// Waits for the process to exit, which also keeps it from becoming a zombie.
pub(crate) async fn wait_for_exit(shared: Arc<Shared>, mut child: Child, cookie: Cookie) {
    let status = child.wait().await;
    reaper::leader_exited(cookie);
    if let Ok(status) = status {
        shared.log.exited(&describe_exit(status));
        shared.state().exit = Some(status);
    }
    shared.exited.cancel();
    // A launcher that exits with success may have left the real server running. One that failed has
    // not, even if a helper still holds its stdout open.
    if status.is_ok_and(|status| !status.success())
        && timeout(HELD_STDOUT_WAIT, shared.stdout_done.cancelled())
            .await
            .is_err()
    {
        shared
            .close_with_evidence("the server's process exited")
            .await;
    }
}
