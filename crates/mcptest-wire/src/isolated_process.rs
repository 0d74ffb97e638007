//! The process of an agent under test: its own environment, and an ordered end that leaves
//! nothing behind.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{WireError, WireErrorKind};
use crate::log;
use crate::process::{describe_error, describe_exit, no_streams};
use crate::reaper::{self, ProcessTree};

/// Time to exit after stdin was closed.
const EOF_GRACE: Duration = Duration::from_secs(2);

/// Time for the servers of an agent to exit after it, before they are asked to.
const SERVER_GRACE: Duration = Duration::from_millis(400);

/// Time to exit after SIGTERM. opencode needs up to 5 s while it waits for its model.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// The pauses between two scans of the processes: short at first, because most end immediately.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// A command with its own environment.
#[derive(Debug, Clone, Default)]
pub struct IsolatedCommand {
    /// The program and its arguments, without a shell.
    pub argv: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The folder of the run. Every process that refers to it is killed in the end.
    pub folder: PathBuf,
    /// True if its stdin is written to; otherwise it is closed.
    pub stdin: bool,
}

/// The standard streams of a process.
#[derive(Debug)]
pub struct IsolatedStreams {
    /// Its stdin, if the command asked for it.
    pub stdin: Option<ChildStdin>,
    /// Its stdout.
    pub stdout: ChildStdout,
    /// Its stderr.
    pub stderr: ChildStderr,
}

/// A process that runs in its own folder. Dropping it kills everything that it started.
#[derive(Debug)]
pub struct IsolatedProcess {
    name: String,
    child: Child,
    tree: ProcessTree,
    /// True if it had a stdin, whose end asks it to exit.
    had_stdin: bool,
    exited: Option<ExitStatus>,
}

impl IsolatedProcess {
    /// Starts the process in its own process group. Must be called within a tokio runtime with
    /// I/O enabled.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(
        name: &str,
        command: &IsolatedCommand,
    ) -> Result<(Self, IsolatedStreams), WireError> {
        let failed =
            |detail: String| WireError::new(WireErrorKind::Spawn, name, "starting it", detail);
        let Some((program, args)) = command.argv.split_first() else {
            return Err(failed("its command is empty".to_owned()));
        };
        reaper::become_subreaper();
        let cookie = reaper::new_cookie();
        let stdin = if command.stdin {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let mut builder = Command::new(program);
        mcptest_stdio::end_with_parent(builder.as_std_mut());
        let mut child = builder
            .args(args)
            .env_clear()
            .envs(command.env.iter().map(|(key, value)| (key, value)))
            .env(reaper::COOKIE_VARIABLE, cookie.chained())
            .current_dir(&command.cwd)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(describe_error(program, None, &error)))?;
        let Some(pid) = child.id() else {
            return Err(failed("its process has no id".to_owned()));
        };
        log::started(name, pid, &command.argv);
        let tree = ProcessTree::register_in(cookie, pid, Some(command.folder.clone()));
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(no_streams(name));
        };
        let streams = IsolatedStreams {
            stdin: child.stdin.take(),
            stdout,
            stderr,
        };
        let process = Self {
            name: name.to_owned(),
            child,
            tree,
            had_stdin: command.stdin,
            exited: None,
        };
        Ok((process, streams))
    }

    /// Waits for the process to exit.
    ///
    /// # Errors
    /// The system does not report the exit status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.exited {
            return Ok(status);
        }
        let status = self.child.wait().await?;
        self.exited = Some(status);
        reaper::leader_exited(self.tree.cookie());
        log::exited(&self.name, &describe_exit(status));
        Ok(status)
    }

    /// The exit of the process, if it has exited by itself or by a signal.
    #[must_use]
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.exited
    }

    /// Ends the process and everything that it started: waits if it had a stdin, which the caller
    /// has closed, sends SIGTERM to all, waits, and kills the rest.
    pub async fn end(&mut self) {
        if self.had_stdin {
            let _ = timeout(EOF_GRACE, self.wait()).await;
        }
        if !(self.exited.is_some() && self.all_gone_within(SERVER_GRACE).await) {
            self.tree.terminate_all();
            let _ = timeout(TERM_GRACE, async {
                let _ = self.wait().await;
                self.all_gone_within(TERM_GRACE).await
            })
            .await;
        }
        self.tree.kill();
        let _ = timeout(EOF_GRACE, self.wait()).await;
    }

    /// Waits until no process of the run is left. Two scans in a row must agree that a process
    /// whose marks are not known yet is none of ours.
    async fn all_gone_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut pause = FIRST_PAUSE;
        loop {
            let found = self.tree.survivors();
            if found.is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                return found.processes.is_empty();
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}
