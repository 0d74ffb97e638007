//! A server's process for whoever speaks to it in their own way, such as a proxy.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::connection::Grace;
use crate::error::WireError;
use crate::process::{self, ServerCommand};
use crate::reaper::{self, Tree};

/// Time for helpers of a server that has left to leave too.
const HELPER_WAIT: Duration = Duration::from_millis(100);

/// A started server whose stdin and stdout are the caller's; its stderr is ours. Dropping it kills
/// it with all its descendants.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    tree: Tree,
}

impl ServerProcess {
    /// Starts it in a process group of its own. Must be called within a tokio runtime with I/O
    /// enabled.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        name: &str,
        command: &ServerCommand,
    ) -> Result<(Self, ChildStdin, ChildStdout), WireError> {
        let (mut child, tree) = process::spawn_with(name, command, Stdio::inherit())?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((Self { child, tree }, stdin, stdout)),
            _ => Err(process::no_streams(name)),
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The system does not say how it ended.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        reaper::leader_gone(self.tree.cookie());
        status
    }

    /// Ends it without waiting for it to end by itself: whoever sent us a signal may not wait for
    /// us either.
    pub async fn end_at_once(&mut self) {
        self.tree.terminate();
        let _ = timeout(HELPER_WAIT, self.wait()).await;
        self.tree.kill();
        let _ = timeout(Grace::NORMAL.term, self.wait()).await;
    }

    /// Ends it, once its stdin is closed: waits a moment, then SIGTERM, another moment, then
    /// SIGKILL for all that is left of it.
    pub async fn end(&mut self) {
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
