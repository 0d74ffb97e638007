//! `mcptest completions`.

use clap::CommandFactory as _;
use mcptest_report::ExitCode;

use crate::cli::{Cli, CompletionsArgs};
use crate::output::Output;

pub fn completions(args: &CompletionsArgs, output: &Output) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mcptest", &mut script);
    output.result(&String::from_utf8_lossy(&script));
    ExitCode::Passed
}
