//! One call of a tool: what it may use.

use std::time::Duration;

use mcptest_json::text::one_line;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::child::{Child, ChildError, Finished};
use crate::progress::{Fold, Progress};
use crate::result_size;
use crate::root::Root;

/// The longest time of a child that only reads.
pub(crate) const READING: Duration = Duration::from_secs(600);

/// The longest message of a failed call, in bytes.
const MAX_MESSAGE: usize = 4096;

/// A call that failed, with what the caller can do about it.
#[derive(Debug)]
pub(crate) struct ToolError(pub String);

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<std::io::Error> for ToolError {
    fn from(error: std::io::Error) -> Self {
        Self(format!("cannot use a temporary folder: {error}"))
    }
}

/// The means of a tool.
pub(crate) struct Call<'a> {
    pub options: &'a Options,
    pub root: &'a Root,
    pub cancelled: &'a CancellationToken,
    pub progress: &'a Progress,
    /// A folder of this call.
    pub scratch: TempDir,
}

impl Call<'_> {
    /// Runs mcptest with these arguments, and returns its output.
    pub(crate) async fn mcptest(&self, args: Vec<String>) -> Result<Finished, ToolError> {
        let child = self.child(args, READING);
        let finished = child.run(self.cancelled, None).await;
        finished.map_err(|error| failed(error, READING))
    }

    /// The same for a run, whose standard output has the events. Returns its id in the history,
    /// too.
    pub(crate) async fn run(
        &self,
        args: Vec<String>,
        timeout: Duration,
    ) -> Result<(Finished, Option<String>), ToolError> {
        let mut fold = Fold::default();
        let mut line = |line: &[u8]| {
            if let Some(step) = fold.line(line) {
                self.progress.step(step);
            }
        };
        let child = self.child(args, timeout);
        let finished = child.run(self.cancelled, Some(&mut line)).await;
        let finished = finished.map_err(|error| failed(error, timeout))?;
        Ok((finished, fold.id))
    }

    fn child(&self, mut args: Vec<String>, timeout: Duration) -> Child<'_> {
        let global = ["--color", "never", "--quiet"].map(String::from);
        args.splice(0..0, global);
        Child {
            program: &self.options.program,
            args,
            cwd: self.root.path(),
            scratch: self.scratch.path(),
            timeout,
        }
    }

    /// The error of a child that gave no result, in its own words.
    pub(crate) fn failure(&self, finished: &Finished) -> ToolError {
        let (text, is_cut) = result_size::beginning(finished.stderr.trim(), MAX_MESSAGE);
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        ToolError(match (text.is_empty(), finished.code) {
            (false, _) if is_cut => format!("{text}\n(cut; there is more)"),
            (false, _) => text.to_owned(),
            (true, Some(code)) => format!("mcptest ended with exit code {code} and no message"),
            (true, None) => "mcptest was ended by a signal".to_owned(),
        })
    }

    /// The error for something that has to be allowed.
    pub(crate) fn not_allowed(what: &str) -> ToolError {
        ToolError(format!(
            "{what} is not allowed: this server is read-only. Ask the user to start it with \
             `mcptest mcp --allow-run`, or to run the command in a terminal"
        ))
    }
}

fn failed(error: ChildError, timeout: Duration) -> ToolError {
    ToolError(match error {
        ChildError::NotStarted(why) => format!("cannot start mcptest: {}", one_line(&why)),
        ChildError::Cancelled => {
            "the call was cancelled; everything that it started is ended".to_owned()
        }
        ChildError::TimedOut => format!(
            "it took more than {} seconds; everything that it started is ended",
            timeout.as_secs()
        ),
        ChildError::TooLong => {
            "its output is too large for a tool; use the command line".to_owned()
        }
    })
}
