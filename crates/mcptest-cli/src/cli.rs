//! Definition of the command line: a file for each command.

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
mod many;
mod mcp;
mod mock;
mod mutate;
mod overview;
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

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub use agents::{AgentsArgs, AgentsCheckArgs, AgentsCommand, AgentsListArgs, AgentsShowArgs};
pub use agents_md::AgentsMdArgs;
pub use auth::{AuthArgs, AuthCommand, LoginArgs, LogoutArgs, StatusArgs};
pub use call::CallArgs;
pub use cassette::{
    CassetteArgs, CassetteCommand, CassetteDiffArgs, CassetteMergeArgs, PruneArgs, RecordingArgs,
    ReplayedPart, ShowArgs, VerifyArgs,
};
pub use catalog::{CatalogCommand, CatalogCommandArgs, CatalogSaveArgs, CatalogShowArgs};
pub use completions::CompletionsArgs;
pub use diff::{DiffArgs, DiffFormat};
pub use doctor::{Deny, DoctorArgs, DoctorFormat};
pub use explain::ExplainArgs;
pub use help::HelpArgs;
pub use init::{CallArg, CiArg, InitArgs};
pub use list::ListArgs;
pub use man::ManArgs;
pub use many::ManyArgs;
pub use mcp::McpArgs;
pub use mock::MockArgs;
pub use mutate::MutateArgs;
pub use overview::{TOPICS, command_line, exit_codes};
pub use plan_runs::PlanRunsArgs;
pub use proxy::{DistractorsFrom, ProxyArgs};
pub use report::{FailOnArg, MergeArgs, RenderArgs, ReportCommand, TrendArgs};
pub use run::RunArgs;
pub use schema::{SchemaArgs, SchemaOf};
pub use score::ScoreArgs;
pub use shared::{
    AttackArgs, AuthType, CatalogArgs, FilterArgs, Format, FormatArgs, HttpHeader, OneServerArgs,
    ReportArgs, ServerTimeoutArgs, TraceArgs, TraceFormatArgs, UrlAuthArgs,
};
pub use tool_bench::{ToolBenchArgs, ToolBenchCommand, ToolBenchRunArgs};
pub use trace::{
    AnonymiseArgs, ConvertArgs, ConvertTo, InferArgs, StatsArgs, TraceCommand, TraceCommandArgs,
    TraceInputArgs, TraceShowArgs,
};
pub use validate::{Purpose, ValidateArgs};

/// The heading of flags that all commands have.
const GLOBAL: &str = "Global options";

/// Test MCP servers and the agents that use them.
#[derive(Debug, Parser)]
#[command(name = "mcptest", version, disable_help_subcommand = true)]
pub struct Cli {
    /// Use colours: `always`, `never`, or `auto`: only on a terminal.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN",
          hide_possible_values = true, hide_default_value = true, help_heading = GLOBAL)]
    pub color: Colour,
    /// Show every run and log messages; `-vv` in full; MCPTEST_LOG selects parts.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = GLOBAL)]
    pub verbose: u8,
    /// Print only errors and the requested results.
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// The help, the version, or an error in the arguments.
    pub fn read() -> Result<Self, clap::Error> {
        Self::of(&std::env::args_os().collect::<Vec<_>>())
    }

    /// Reads arguments, the first of which is the name of the program.
    fn of(arguments: &[OsString]) -> Result<Self, clap::Error> {
        // Laying out the help of all commands takes longer than reading the arguments, so it is
        // done only for arguments that end with a help or an error.
        let plain = Self::command();
        let matches = match plain.try_get_matches_from(arguments) {
            Ok(matches) => matches,
            Err(version) if version.kind() == ErrorKind::DisplayVersion => return Err(version),
            Err(_) => command_line().try_get_matches_from(arguments)?,
        };
        Self::from_arg_matches(&matches)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a starter suite for a server: tests, a mock, an editor schema, a CI workflow.
    Init(InitArgs),
    /// Run suites: start the servers, run agents and tool calls, judge the results.
    Run(RunArgs),
    /// Apply a suite's gates to recorded traces, without servers and models.
    Score(ScoreArgs),
    /// Show the report of a run, also of a killed one; compare and merge reports.
    Report(RenderArgs),
    /// Convert, show, summarise and anonymise traces; write a suite from them.
    Trace(TraceCommandArgs),
    /// Change recorded traces slightly and check that the suite's gates notice.
    Mutate(MutateArgs),
    /// Check suites without running them.
    Validate(ValidateArgs),
    /// Benchmark tool descriptions without a model: do they lead to the right tool?
    ToolBench(ToolBenchArgs),
    /// List the servers of a suite or a client's configuration, and what they offer.
    List(ListArgs),
    /// Call one tool of a server and print the result.
    Call(CallArgs),
    /// Save or show everything that a server lists.
    Catalog(CatalogCommandArgs),
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
    /// Log in to servers that require authorization, list and end logins.
    Auth(AuthArgs),
    /// List, show and check the agents that a suite can test.
    Agents(AgentsArgs),
    /// Show, verify, prune, merge and compare recorded runs.
    Cassette(CassetteArgs),
    /// Serve mcptest itself over MCP, for coding agents.
    Mcp(McpArgs),
    /// Print instructions for a coding agent: how to write and repair suites.
    AgentsMd(AgentsMdArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the manual pages to a folder.
    Man(ManArgs),
    /// Explain a topic, a gate or a command.
    Help(HelpArgs),
}

/// A port of the command line.
fn port(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| "expected a port only, a number from 0 (a free one) to 65535".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_the_same_with_and_without_the_help() {
        let lines = [
            "",
            "-h",
            "--help",
            "--version",
            "run",
            "run -h",
            "run --help",
            "run --hel",
            "run suite.yml --no-history -v",
            "run suite.yml --reporter json --reporter html=a.html --jobs 3 --timeout 3s",
            "run --jobs many",
            "rum",
            "-q -v run",
            "help",
            "help run",
            "report merge a.json b.json",
            "report",
            "score suite.yml traces.jsonl --color never",
            "trace",
            "trace convert --help",
            "list -- server --help",
            "call -- server -h",
        ];
        for line in lines {
            let arguments = || std::iter::once("mcptest").chain(line.split_whitespace());
            let whole = command_line().try_get_matches_from(arguments());
            let whole = whole.and_then(|matches| Cli::from_arg_matches(&matches));
            let quick = Cli::of(&arguments().map(OsString::from).collect::<Vec<_>>());
            match (whole, quick) {
                (Ok(whole), Ok(quick)) => assert_eq!(format!("{whole:?}"), format!("{quick:?}")),
                (Err(whole), Err(quick)) => {
                    assert_eq!(whole.kind(), quick.kind(), "{line}");
                    let shown = |error: clap::Error| error.render().ansi().to_string();
                    assert_eq!(shown(whole), shown(quick), "{line}");
                }
                (whole, quick) => panic!("{line}: {whole:?} {quick:?}"),
            }
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_setting_of_a_run_conflicts_with_resume() {
        // Output, and flags that need another one which conflicts.
        let allowed = [
            "suites",
            "traces",
            "events",
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
}
