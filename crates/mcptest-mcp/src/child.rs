//! The child process of a call: mcptest itself, with bounded output, ended with everything that it
//! started when the call is cancelled.

use std::path::Path;
use std::time::Duration;

use mcptest_wire::{IsolatedCommand, IsolatedProcess};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::sync::CancellationToken;

/// The longest standard output that is kept, in bytes; also the longest line of events.
const MAX_OUTPUT: usize = 32 << 20;

/// The longest standard error that is kept, in bytes: its beginning.
const MAX_ERRORS: usize = 64 << 10;

/// The time that the streams may stay open after the exit.
const STREAM_GRACE: Duration = Duration::from_secs(2);

/// The variable that asks mcptest to log; the log of a child would be in its errors.
const LOG_VARIABLE: &str = "MCPTEST_LOG";

/// A receiver of lines.
pub(crate) type LineHandler<'a> = &'a mut (dyn FnMut(&[u8]) + Send);

/// A child that has exited.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output; empty if its lines were passed to a handler.
    pub stdout: String,
    /// The beginning of its standard error.
    pub stderr: String,
}

/// The reason why a child gave nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChildError {
    /// It could not be started.
    NotStarted(String),
    /// The call was cancelled, or the client has left.
    Cancelled,
    /// It took too long.
    TimedOut,
    /// Its output is too long.
    TooLong,
}

/// A child to start.
pub(crate) struct Child<'a> {
    pub program: &'a Path,
    pub args: Vec<String>,
    /// Its working directory.
    pub cwd: &'a Path,
    /// Its own folder. Every process that refers to it is ended with the call.
    pub scratch: &'a Path,
    pub timeout: Duration,
}

impl Child<'_> {
    /// Runs the child. `line` gets every line of its standard output, if it is given.
    pub(crate) async fn run(
        self,
        cancelled: &CancellationToken,
        line: Option<LineHandler<'_>>,
    ) -> Result<Finished, ChildError> {
        let mut argv = vec![self.program.to_string_lossy().into_owned()];
        argv.extend(self.args);
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name != LOG_VARIABLE)
            .collect();
        let command = IsolatedCommand {
            argv,
            env,
            cwd: self.cwd.to_owned(),
            folder: self.scratch.to_owned(),
            stdin: false,
        };
        let (mut process, streams) = IsolatedProcess::start("mcptest", &command)
            .map_err(|error| ChildError::NotStarted(error.to_string()))?;
        let mut output = Ok(Vec::new());
        let mut errors = Vec::new();
        let outcome = {
            let mut reading = std::pin::pin!(async {
                let out = async {
                    output = match line {
                        Some(line) => lines(streams.stdout, line).await.map(|()| Vec::new()),
                        None => all(streams.stdout).await,
                    };
                };
                tokio::join!(out, beginning(streams.stderr, &mut errors));
            });
            tokio::select! {
                () = &mut reading => None,
                // It has exited: what it wrote is in the pipes.
                _ = process.wait() => {
                    let _ = tokio::time::timeout(STREAM_GRACE, reading).await;
                    None
                }
                () = cancelled.cancelled() => Some(ChildError::Cancelled),
                () = tokio::time::sleep(self.timeout) => Some(ChildError::TimedOut),
            }
        };
        let status = match outcome {
            None => tokio::time::timeout(STREAM_GRACE, process.wait())
                .await
                .ok(),
            Some(_) => None,
        };
        process.end().await;
        if let Some(error) = outcome {
            return Err(error);
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Finished {
            code: status.and_then(Result::ok).and_then(|status| status.code()),
            stdout: text(output?),
            stderr: text(errors),
        })
    }
}

/// Reads everything, unless it is too long; then the rest is read and forgotten.
async fn all(mut stream: impl AsyncRead + Unpin) -> Result<Vec<u8>, ChildError> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let mut too_long = false;
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        too_long |= kept.len() + length > MAX_OUTPUT;
        if !too_long {
            kept.extend_from_slice(&buffer[..length]);
        }
    }
    match too_long {
        true => Err(ChildError::TooLong),
        false => Ok(kept),
    }
}

/// Reads everything, and keeps the beginning.
async fn beginning(mut stream: impl AsyncRead + Unpin, kept: &mut Vec<u8>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let remaining = MAX_ERRORS.saturating_sub(kept.len()).min(length);
        kept.extend_from_slice(&buffer[..remaining]);
    }
}

/// Passes every line that is not too long to the handler.
async fn lines(
    mut stream: impl AsyncRead + Unpin,
    handle_line: LineHandler<'_>,
) -> Result<(), ChildError> {
    let mut line = Vec::new();
    let mut skipping = false;
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let mut rest = &buffer[..length];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&rest[..end]);
            if !skipping {
                handle_line(&line);
            }
            line.clear();
            skipping = false;
            rest = &rest[end + 1..];
        }
        skipping |= line.len() + rest.len() > MAX_OUTPUT;
        if skipping {
            line.clear();
        } else {
            line.extend_from_slice(rest);
        }
    }
    Ok(())
}
