//! One file per command.

mod cassette;
mod completions;
mod diff;
mod doctor;
mod explain;
mod mock;
mod mutate;
mod plan_runs;
mod proxy;
mod report;
mod run;
mod schema;
mod score;
mod tool_bench;
mod trace;
mod validate;

use mcptest_report::ExitCode;

use crate::cli::{Cli, Colour, Command};
use crate::failure::Failure;
use crate::log;
use crate::output::{self, Output};

/// Carries out what was asked for.
pub fn dispatch(cli: &Cli) -> ExitCode {
    let mut output = Output::new(cli.color, cli.quiet, cli.verbose > 0);
    match log::start(cli.verbose, cli.quiet) {
        Ok(logs) => output.logs = logs,
        Err(message) => return Failure::Message(message).report(&output),
    }
    let outcome = match &cli.command {
        Command::Run(args) => run::run(args, &output),
        Command::Score(args) => score::score(args, &output),
        Command::Report(args) => report::report(args, &output),
        Command::Trace(args) => trace::trace(args, &output),
        Command::Mutate(args) => mutate::mutate(args, &output),
        Command::Validate(args) => validate::validate(args, &output),
        Command::ToolBench(args) => tool_bench::tool_bench(args, &output),
        Command::Diff(args) => diff::diff(args, &output),
        Command::PlanRuns(args) => plan_runs::plan_runs(args, &output),
        Command::Doctor(args) => doctor::doctor(args, &output),
        Command::Explain(args) => explain::explain(args, &output),
        Command::Schema(args) => Ok(schema::schema(args, &output)),
        Command::Mock(args) => mock::mock(args),
        Command::Proxy(args) => proxy::proxy(args),
        Command::Cassette(args) => cassette::cassette(args, &output),
        Command::Completions(args) => Ok(completions::completions(args, &output)),
    };
    finish(outcome, &output)
}

/// Reports a failure, or results that could not be written, and returns the exit code.
fn finish(outcome: Result<ExitCode, Failure>, output: &Output) -> ExitCode {
    let code = match outcome {
        Ok(code) => code,
        Err(failure) => return failure.report(output),
    };
    match output::unwritten() {
        Some(message) => {
            output.error(&message);
            ExitCode::first_of([code, ExitCode::CouldNotRun])
        }
        None => code,
    }
}

/// Prints the help, the version, or an error in the arguments, and returns the exit code.
pub fn print_usage(usage: &clap::Error) -> ExitCode {
    let output = Output::new(Colour::Auto, false, false);
    if usage.use_stderr() {
        // If standard error cannot be written, nothing can be said about it.
        let _ = usage.print();
        return ExitCode::CouldNotRun;
    }
    let text = usage.render();
    if output.result_style().colour {
        output.result(&text.ansi().to_string());
    } else {
        output.result(&text.to_string());
    }
    finish(Ok(ExitCode::Passed), &output)
}
