//! `mcptest completions`.

use mcptest_report::ExitCode;

use crate::cli::{CompletionsArgs, command_line};
use crate::output::Output;

pub fn completions(args: &CompletionsArgs, output: &Output) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_line(), "mcptest", &mut script);
    output.result(&String::from_utf8_lossy(&script));
    ExitCode::Passed
}
