//! The command line of mcptest: it reads the arguments and the environment, calls the library
//! crates, and turns what comes back into text and exit codes.
//!
//! The program passes in the gates, so that this crate is not compiled again when one of them
//! changes.

mod attacks;
mod authorization;
mod catalog_text;
mod catalogs;
mod cli;
mod columns;
mod command;
mod failure;
mod files;
mod gates;
mod history;
mod live_servers;
mod log;
mod output;
mod panics;
mod recording;
mod secrets;
mod signals;
mod sources;
mod suites;

use std::process::ExitCode;

use mcptest_gate_api::GateInfo;

/// Executes the command of this process's arguments. Suites may use the given gates.
#[must_use]
pub fn main(gates: &'static [GateInfo]) -> ExitCode {
    let code = match cli::Cli::read() {
        Ok(cli) => {
            mcptest_http::use_proxies(secrets::proxies());
            let code = panics::guarded(|| command::dispatch(&cli, gates));
            // All servers have ended; a process that one of them detached from itself may not.
            mcptest_runner::kill_all();
            code
        }
        Err(usage) => command::print_usage(&usage),
    };
    ExitCode::from(u8::from(code))
}

/// A command line that the program rejects, and its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentsError(String);

impl std::fmt::Display for ArgumentsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgumentsError {}

/// Checks a command line, without the program's name, and carries nothing out.
///
/// # Errors
/// The error that the program would print.
pub fn check_arguments<'a>(
    arguments: impl IntoIterator<Item = &'a str>,
) -> Result<(), ArgumentsError> {
    let arguments = std::iter::once("mcptest").chain(arguments);
    match cli::command_line().try_get_matches_from(arguments) {
        Err(error) if error.use_stderr() => Err(ArgumentsError(error.to_string())),
        _ => Ok(()),
    }
}
