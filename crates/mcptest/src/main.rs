//! mcptest: tests for MCP servers and the agents that use them.
//!
//! This crate is the command line and nothing else: it reads the arguments and the environment,
//! calls the library crates, and turns what comes back into text and exit codes.

mod catalogs;
mod cli;
mod command;
mod failure;
mod files;
mod history;
mod log;
mod output;
mod panics;
mod recording;
mod secrets;
mod signals;
mod suites;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let code = match cli::Cli::try_parse() {
        Ok(cli) => {
            mcptest_http::use_proxies(secrets::proxies());
            panics::guarded(|| command::dispatch(&cli))
        }
        Err(usage) => command::print_usage(&usage),
    };
    ExitCode::from(u8::from(code))
}
