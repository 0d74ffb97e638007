//! A server's process for callers that handle its streams themselves, such as the proxy.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::error::WireError;
use crate::log::{self, ConnectionLog};
use crate::process::{self, ServerCommand, describe_exit};
use crate::reaper::{self, ProcessTree};
use crate::stderr_tail::StderrTail;
use crate::time::Grace;

/// Time for the helpers of an exited server to exit, too.
const HELPER_WAIT: Duration = Duration::from_millis(100);

/// The lines and bytes of a server's stderr that are kept.
const MAX_STDERR_LINES: usize = 40;
const MAX_STDERR_BYTES: usize = 8 * 1024;

/// The last lines that a server wrote to its stderr, in bounded space.
#[derive(Debug, Clone)]
pub struct StderrLines(Arc<Mutex<StderrTail>>);

impl StderrLines {
    /// Reads the stream until it ends.
    fn read(mut stderr: ChildStderr) -> Self {
        let tail = StderrTail::new(MAX_STDERR_LINES, MAX_STDERR_BYTES, ConnectionLog::default());
        let tail = Arc::new(Mutex::new(tail));
        let filled = Arc::clone(&tail);
        tokio::spawn(async move {
            let mut chunk = vec![0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
                let mut tail = filled.lock().unwrap_or_else(PoisonError::into_inner);
                tail.push(&chunk[..read]);
            }
        });
        Self(tail)
    }

    /// The lines so far, safe to print.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .lines()
    }
}

/// A started server whose stdin and stdout belong to the caller. Dropping it kills it with all its
/// descendants.
#[derive(Debug)]
pub struct ServerProcess {
    name: String,
    child: Child,
    tree: ProcessTree,
    exited: bool,
}

impl ServerProcess {
    /// Starts the server in its own process group. Its stderr is ours. Must be called within a
    /// tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// The server cannot be started.
    pub fn start(
        name: &str,
        command: &ServerCommand,
    ) -> Result<(Self, ChildStdin, ChildStdout), WireError> {
        Self::start_with(name, command, Stdio::inherit())
    }

    /// Like [`Self::start`], but keeps the last lines of the server's stderr.
    ///
    /// # Errors
    /// The server cannot be started.
    pub fn start_quiet(
        name: &str,
        command: &ServerCommand,
    ) -> Result<(Self, ChildStdin, ChildStdout, StderrLines), WireError> {
        let (mut process, stdin, stdout) = Self::start_with(name, command, Stdio::piped())?;
        match process.child.stderr.take() {
            Some(stderr) => Ok((process, stdin, stdout, StderrLines::read(stderr))),
            None => Err(process::no_streams(name)),
        }
    }

    fn start_with(
        name: &str,
        command: &ServerCommand,
        stderr: Stdio,
    ) -> Result<(Self, ChildStdin, ChildStdout), WireError> {
        let (mut child, tree) = process::spawn_with(name, command, stderr)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                let process = Self {
                    name: name.to_owned(),
                    child,
                    tree,
                    exited: false,
                };
                Ok((process, stdin, stdout))
            }
            _ => Err(process::no_streams(name)),
        }
    }

    /// Waits for the process to exit.
    ///
    /// # Errors
    /// The system does not report the exit status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        reaper::leader_exited(self.tree.cookie());
        if let Ok(status) = status
            && !std::mem::replace(&mut self.exited, true)
        {
            log::exited(&self.name, &describe_exit(status));
        }
        status
    }

    /// Stops the server without giving it time to exit by itself, for a caller that was interrupted
    /// by a signal and may be killed soon.
    pub async fn stop_now(&mut self) {
        self.tree.terminate();
        let _ = timeout(HELPER_WAIT, self.wait()).await;
        self.tree.kill();
        let _ = timeout(Grace::NORMAL.term, self.wait()).await;
    }

    /// Stops the server after its stdin was closed: waits, sends SIGTERM, waits, and sends SIGKILL
    /// to all its remaining processes.
    pub async fn stop(&mut self) {
        if timeout(Grace::NORMAL.eof, self.wait()).await.is_err() {
            self.tree.terminate();
            let _ = timeout(Grace::NORMAL.term, self.wait()).await;
        } else if self.tree.group_exists() {
            tokio::time::sleep(HELPER_WAIT).await;
        }
        self.tree.kill();
        let _ = timeout(Grace::NORMAL.term, self.wait()).await;
    }
}
