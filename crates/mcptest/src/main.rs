//! mcptest: tests for MCP servers and the agents that use them.
//!
//! This crate is the command line and nothing else: it reads the arguments and the environment, calls the library crates, and turns what
//! comes back into text and exit codes.

mod cassette_args;
mod catalogs;
mod cli;
mod command;
mod failure;
mod output;
mod secrets;
mod signals;
mod suites;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    end_servers_on_panic();
    mcptest_http::use_proxies(secrets::proxies());
    let code = command::dispatch(&cli);
    ExitCode::from(u8::from(code))
}

/// A panic is a bug of ours, and must not leave somebody's server processes behind.
fn end_servers_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        mcptest_runner::kill_all();
        report(info);
    }));
}
