//! A server's process for callers that handle its streams themselves, such as the proxy.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::error::WireError;
use crate::log;
use crate::process::{self, ServerCommand, describe_exit};
use crate::reaper::{self, ProcessTree};
use crate::time::Grace;

/// Time for the helpers of an exited server to exit, too.
const HELPER_WAIT: Duration = Duration::from_millis(100);

/// A started server whose stdin and stdout belong to the caller; its stderr is ours. Dropping it
/// kills it with all its descendants.
#[derive(Debug)]
pub struct ServerProcess {
    name: String,
    child: Child,
    tree: ProcessTree,
    exited: bool,
}

impl ServerProcess {
    /// Starts the server in a process group of its own. Must be called within a tokio runtime with
    /// I/O enabled.
    ///
    /// # Errors
    /// The server cannot be started.
    pub fn start(
        name: &str,
        command: &ServerCommand,
    ) -> Result<(Self, ChildStdin, ChildStdout), WireError> {
        let (mut child, tree) = process::spawn_with(name, command, Stdio::inherit())?;
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
