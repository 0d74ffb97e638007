//! Definition of the command line: a file for each command.

mod agents;
mod cassette;
mod completions;
mod diff;
mod doctor;
mod explain;
mod man;
mod many;
mod mock;
mod mutate;
mod plan_runs;
mod proxy;
mod report;
mod run;
mod schema;
mod score;
mod shared;
mod tool_bench;
mod trace;
mod validate;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

pub use agents::{AgentsArgs, AgentsCheckArgs, AgentsCommand, AgentsListArgs, AgentsShowArgs};
pub use cassette::{
    CassetteArgs, CassetteCommand, CassetteDiffArgs, CassetteMergeArgs, PruneArgs, RecordingArgs,
    ShowArgs, VerifyArgs, WhatToReplay,
};
pub use completions::CompletionsArgs;
pub use diff::{DiffArgs, DiffFormat};
pub use doctor::{Deny, DoctorArgs, DoctorFormat};
pub use explain::ExplainArgs;
pub use man::ManArgs;
pub use many::ManyArgs;
pub use mock::MockArgs;
pub use mutate::MutateArgs;
pub use plan_runs::PlanRunsArgs;
pub use proxy::{DistractorsFrom, ProxyArgs};
pub use report::{FailOnArg, MergeArgs, RenderArgs, ReportCommand, TrendArgs};
pub use run::RunArgs;
pub use schema::{SchemaArgs, SchemaOf};
pub use score::ScoreArgs;
pub use shared::{
    CatalogArgs, FilterArgs, Format, FormatArgs, HttpHeader, ReportArgs, ServerTimeoutArgs,
    TraceArgs, TraceFormatArgs,
};
pub use tool_bench::{ToolBenchArgs, ToolBenchCommand, ToolBenchRunArgs};
pub use trace::{
    AnonymiseArgs, ConvertArgs, ConvertTo, InferArgs, StatsArgs, TraceCommand, TraceCommandArgs,
    TraceInputArgs, TraceShowArgs,
};
pub use validate::{Purpose, ValidateArgs};

const EXIT_CODES: &str = "\
Exit codes:
  0    everything passed
  1    a test, gate or floor failed: the agent or the server fell short
  2    could not run as asked: bad invocation, bad suite, server or provider unreachable, nothing selected
  3    nothing failed, but something had no evidence
  4    stopped by a spend or time cap
  130  interrupted; what was finished is reported";

/// The heading of flags that all commands have.
const GLOBAL: &str = "Global options";

/// Test MCP servers and the agents that use them.
#[derive(Debug, Parser)]
#[command(name = "mcptest", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    /// Use colours: always, never, or only on a terminal.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", help_heading = GLOBAL)]
    pub color: Colour,
    /// Show every run, and log messages to and from servers and providers, timings and retries on
    /// standard error; `-vv` does not truncate them. MCPTEST_LOG selects parts:
    /// `mcptest::wire=debug`.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = GLOBAL)]
    pub verbose: u8,
    /// Print only errors and the requested results.
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run suites: start the servers, run agents and tool calls, judge the results.
    Run(RunArgs),
    /// Apply a suite's gates to recorded traces, without servers and models.
    Score(ScoreArgs),
    /// Show the report of a finished, interrupted or killed run; compare and merge reports.
    Report(RenderArgs),
    /// Convert, show, summarise and anonymise recorded traces; write a starter suite from them.
    Trace(TraceCommandArgs),
    /// Change recorded traces slightly and check that the suite's gates notice.
    Mutate(MutateArgs),
    /// Check suites without running them.
    Validate(ValidateArgs),
    /// Benchmark tool descriptions without a model: do they lead to the right tool?
    ToolBench(ToolBenchArgs),
    /// Compare two tool catalogs and find the changes that break callers.
    Diff(DiffArgs),
    /// Compute the number of runs for a precision, or the precision of a number of runs.
    PlanRuns(PlanRunsArgs),
    /// Inspect servers and their tool catalogs: start, protocol, token cost, lint.
    Doctor(DoctorArgs),
    /// Explain a lint rule, with a good and a bad example.
    Explain(ExplainArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Serve a mock MCP server over standard input and output, or HTTP.
    Mock(MockArgs),
    /// Relay between any MCP client and a server, record the calls, inject faults.
    Proxy(ProxyArgs),
    /// List, show and check the agents that a suite can test.
    Agents(AgentsArgs),
    /// Show, verify, prune, merge and compare recorded runs.
    Cassette(CassetteArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the manual pages to a folder.
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use mcptest_report::ExitCode;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples_and_help() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            let after = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                after.contains("Examples:"),
                "{} has no examples",
                command.get_name()
            );
        }
    }

    #[test]
    fn every_setting_of_a_run_conflicts_with_resume() {
        // Output, and flags that need another one which conflicts.
        let allowed = [
            "suites",
            "traces",
            "resume",
            "reporter",
            "no_timing",
            "timings",
            "ui",
        ];
        let cli = Cli::command();
        let run = cli.find_subcommand("run").unwrap();
        for argument in run.get_arguments() {
            let id = argument.get_id().as_str();
            let conflicts = run::RESUME_CONFLICTS.contains(&id);
            assert_ne!(conflicts, allowed.contains(&id), "{id}");
        }
    }

    #[test]
    fn help_lists_the_exit_codes_of_the_one_table() {
        for (code, meaning) in ExitCode::ALL {
            let line = format!("  {:<3}  {meaning}", u8::from(code));
            assert!(EXIT_CODES.contains(&line), "{line}");
        }
    }
}
