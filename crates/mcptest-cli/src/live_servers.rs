//! Work with servers outside of a run: a runtime, signals, and messages for people who wait.

use std::time::Duration;

use mcptest_runner::{InspectSettings, ServerCredentials};
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::failure::Failure;
use crate::output::Output;
use crate::signals::shutdown_signal;

/// Shows a user at a terminal which server is being asked.
pub fn show_asking(name: &str, output: &Output) {
    if output.is_watched() {
        output.status(&format!("asking {}", mcptest_json::text::one_line(name)));
    }
}

/// Some servers load for a minute before they say a word.
pub fn advise(error: &RunError, output: &Output) {
    if error.kind == ErrorKind::Timeout {
        output.status("note: `--timeout 2m` gives a server that is only slow more time");
    }
}

/// Does the work with a runtime and an eye on signals. Every server that was started is gone
/// afterwards.
///
/// # Errors
/// The error of the work, or that it was interrupted.
pub fn with_servers<T>(
    timeout: Option<Duration>,
    work: impl AsyncFnOnce(&InspectSettings) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let settings = InspectSettings {
        timeout,
        this_program: std::env::current_exe()
            .map_err(|error| format!("cannot find the path of this program: {error}"))?,
        credentials: ServerCredentials::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let ended = shutdown_signal();
        tokio::select! {
            done = work(&settings) => done,
            () = ended => {
                mcptest_runner::kill_all();
                Err(Failure::Interrupted)
            }
        }
    })
}
