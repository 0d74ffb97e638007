//! One file per command.

mod agents;
mod agents_md;
mod auth;
mod call;
mod cassette;
mod catalog;
mod completions;
mod diff;
mod doctor;
mod explain;
mod help;
mod init;
mod list;
mod man;
mod mcp;
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

use mcptest_json::visible::visible;
use mcptest_report::ExitCode;

use crate::cli::{Cli, Colour, Command};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::log;
use crate::output::{self, Output};

/// Executes what was asked for. Suites may use these gates.
pub fn dispatch(cli: &Cli, gates: Gates) -> ExitCode {
    let mut output = Output::new(cli.color, cli.quiet, cli.verbose > 0);
    output.gates = gates;
    match log::start(cli.verbose, cli.quiet) {
        Ok(logs) => output.logs = logs,
        Err(message) => return Failure::Message(message).report(&output),
    }
    let outcome = match &cli.command {
        Command::Init(args) => init::init(args, gates, &output),
        Command::Run(args) => run::run(args, gates, &output),
        Command::Score(args) => score::score(args, gates, &output),
        Command::Report(args) => report::report(args, gates, &output),
        Command::Trace(args) => trace::trace(args, gates, &output),
        Command::Mutate(args) => mutate::mutate(args, gates, &output),
        Command::Validate(args) => validate::validate(args, gates, &output),
        Command::ToolBench(args) => tool_bench::tool_bench(args, gates, &output),
        Command::List(args) => list::list(args, gates, &output),
        Command::Call(args) => call::call(args, gates, &output),
        Command::Catalog(args) => catalog::catalog(args, gates, &output),
        Command::Diff(args) => diff::diff(args, gates, &output),
        Command::PlanRuns(args) => plan_runs::plan_runs(args, &output),
        Command::Doctor(args) => doctor::doctor(args, gates, &output),
        Command::Explain(args) => explain::explain(args, &output),
        Command::Schema(args) => Ok(schema::schema(args, gates, &output)),
        Command::Mock(args) => mock::mock(args),
        Command::Proxy(args) => proxy::proxy(args),
        Command::Auth(args) => auth::auth(args, gates, &output),
        Command::Agents(args) => agents::agents(args, &output),
        Command::Cassette(args) => cassette::cassette(args, gates, &output),
        Command::Mcp(args) => mcp::mcp(args),
        Command::AgentsMd(_) => Ok(agents_md::agents_md(gates, &output)),
        Command::Completions(args) => Ok(completions::completions(args, &output)),
        Command::Man(args) => man::man(args, &output),
        Command::Help(args) => help::help(args, gates, &output),
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
        // The arguments are quoted in it.
        let text = usage.render();
        let text = if output.error_colour() {
            text.ansi().to_string()
        } else {
            text.to_string()
        };
        // Escapes of terminals are removed when it is rendered; C1 controls are not.
        output::status(visible(&text).trim_end());
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
