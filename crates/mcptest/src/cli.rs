//! The command line as people type it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes:
  0    everything passed
  1    a test, gate or floor failed: the agent or the server fell short
  2    could not run as asked: bad invocation, bad suite, server or provider unreachable, nothing selected
  3    nothing failed, but something had no evidence
  4    stopped by a spend or time cap
  130  interrupted; what was finished is reported";

/// Test MCP servers and the agents that use them, from evidence.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    /// When to use colour.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,
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
    /// Run suites: start servers, let agents act, judge what they did.
    Run(RunArgs),
    /// Apply a suite's gates to recorded traces, with no server and no model.
    Score(ScoreArgs),
    /// Change recorded traces a little, and see whether the suite's gates notice.
    Mutate(MutateArgs),
    /// Check suites without running them.
    Validate(ValidateArgs),
    /// How many runs to make, or what a number of runs is worth.
    PlanRuns(PlanRunsArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Serve a mock MCP server over standard input and output.
    Mock(MockArgs),
    /// Stand between any MCP client and a server: pass everything on, record the calls, inject faults.
    Proxy(ProxyArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
}

/// How results are shown. `run` and `score` share it.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// How to report: `pretty` or `json`, and where to (`json=report.json`). May be given several times.
    #[arg(long, value_name = "NAME[=FILE]", default_value = "pretty")]
    pub reporter: Vec<String>,
    /// Leave times out of the report, so that equal runs give equal bytes.
    #[arg(long)]
    pub no_timing: bool,
}

/// Which tests to take. `run` and `score` share it.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Take only tests whose name contains this text. May be given several times.
    #[arg(long, value_name = "TEXT")]
    pub filter: Vec<String>,
    /// Take only tests with this tag. May be given several times.
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest run                                    the suite in mcptest.yaml (or mcptest.yml)
  mcptest run suites/                            every suite in a folder
  mcptest run suite.yml --reporter json          the report on standard output, for programs
  mcptest run suite.yml --reporter pretty --reporter json=report.json
  mcptest run suite.yml --filter weather --timeout 5s
  mcptest run suite.yml --traces traces.jsonl    keep the evidence for `mcptest score`")]
pub struct RunArgs {
    /// Suite files or folders. Default: mcptest.yaml, then mcptest.yml.
    #[arg(value_name = "SUITE")]
    pub suites: Vec<PathBuf>,
    /// Another way to name a suite file.
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// The time allowed for every call to a server, before whatever the suite says: `5s`, `500ms`, `2m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// How many runs go on at once, before whatever the suite says.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Write the traces of all runs to a file, as JSON Lines.
    #[arg(long, value_name = "FILE")]
    pub traces: Option<PathBuf>,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A trace file is one JSON object, an array of them, or JSON Lines; `-` is standard input.

Examples:
  mcptest score suite.yml --trace run1.json run2.json
  mcptest score suite.yml --trace traces.jsonl --reporter json
  other-tool | mcptest score suite.yml --test 'weather selection' --trace -")]
pub struct ScoreArgs {
    /// The suite whose gates apply.
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// Files with recorded traces.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pub trace: Vec<PathBuf>,
    /// All traces belong to this test.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each mutation is one thing an agent could do wrong: leave out a call, make it twice, in another order, with another
argument, to another tool; have it fail; claim what it did not do; use twice the tokens. It is applied to all runs of
a test alike. A mutant that no assertion notices survives, and shows what the suite does not check.

Examples:
  mcptest run suite.yml --traces traces.jsonl && mcptest mutate suite.yml --trace traces.jsonl
  mcptest mutate suite.yml --trace traces.jsonl --min-score 80     fail below 80 %
  mcptest mutate suite.yml --trace traces.jsonl --format json")]
pub struct MutateArgs {
    /// The suite whose gates are tried.
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// Files with recorded traces that pass.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pub trace: Vec<PathBuf>,
    /// All traces belong to this test.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// Exit with 1 if a test kills fewer than this percent of its mutants.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    pub min_score: Option<u64>,
    /// Show the mutants that were killed too.
    #[arg(long)]
    pub killed: bool,
    /// How to tell.
    #[arg(long, value_enum, default_value_t = Format::Pretty, value_name = "FORMAT")]
    pub format: Format,
    #[command(flatten)]
    pub filter: FilterArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest validate suite.yml
  mcptest validate suites/*.yml --format json
  mcptest validate gates.yml --for score")]
pub struct ValidateArgs {
    /// Suite files or folders.
    #[arg(value_name = "SUITE", required = true)]
    pub suites: Vec<PathBuf>,
    /// What the suites are for: a suite that only scores traces needs no servers, models and prompts.
    #[arg(long = "for", value_enum, default_value_t = Purpose::Run, value_name = "PURPOSE")]
    pub purpose: Purpose,
    /// How to tell what is wrong.
    #[arg(long, value_enum, default_value_t = Format::Pretty, value_name = "FORMAT")]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Purpose {
    Run,
    Score,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Pretty,
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The question is how well a pass rate is known after so many runs. Wald is the textbook figure; Wilson and exact
(Clopper-Pearson) are trustworthy near 0 and 1 too.

Examples:
  mcptest plan-runs --half-width 0.05 --confidence 95     runs for a rate that is known to 5 points
  mcptest plan-runs --runs 100                            how well 100 runs know a rate")]
pub struct PlanRunsArgs {
    /// The half-width of the interval that is wanted, as a fraction.
    #[arg(
        long,
        value_name = "FRACTION",
        conflicts_with = "runs",
        required_unless_present = "runs"
    )]
    pub half_width: Option<f64>,
    /// The number of runs that is given.
    #[arg(long, value_name = "N")]
    pub runs: Option<u64>,
    /// The confidence, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0)]
    pub confidence: f64,
    /// How to tell.
    #[arg(long, value_enum, default_value_t = Format::Pretty, value_name = "FORMAT")]
    pub format: Format,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest schema > mcptest.schema.json
  # first line of a suite, for editors that use yaml-language-server:
  # yaml-language-server: $schema=./mcptest.schema.json")]
pub struct SchemaArgs {
    /// Of what.
    #[arg(value_enum, default_value_t = SchemaOf::Suite, value_name = "WHAT")]
    pub of: SchemaOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// Suite files.
    Suite,
    /// Manifests of `mcptest mock`.
    Mock,
    /// The JSON report.
    Report,
    /// A recorded trace.
    Trace,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest mock --tools-from servers/weather.yml     the manifest with responses
  mcptest mock --tools-from captured-tools.json     a saved answer to tools/list; calls are echoed")]
pub struct MockArgs {
    /// A manifest (`mock_server:`), or a captured `tools/list` answer as JSON.
    #[arg(long, value_name = "FILE")]
    pub tools_from: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # as the server command of any agent:
  mcptest proxy --server files --record run.json -- npx -y some-server
  # afterwards:
  mcptest score suite.yml --trace run.json
  # connecting and listing work, the first two searches are lost:
  mcptest proxy --fault recover-after:2 --fault-tool search -- some-server")]
pub struct ProxyArgs {
    /// Where the calls are recorded, as a trace. The file is whole at every moment, even if the proxy is killed.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// What happens to calls: `none`, `hang`, `wedged`, `slow:<ms>`, `recover-after:<n>` or `reply-after-cancel:<ms>`. Nothing else is touched.
    #[arg(long, value_name = "KIND", default_value = "none", hide_default_value = true)]
    pub fault: mcptest_proxy::ProxyFault,
    /// Only calls of this tool are struck by the fault. May be given several times.
    #[arg(long, value_name = "TOOL")]
    pub fault_tool: Vec<String>,
    /// What the trace calls the server.
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// The test that the trace belongs to.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// The server's program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest completions bash > ~/.local/share/bash-completion/completions/mcptest
  mcptest completions zsh > ~/.zfunc/_mcptest")]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

fn duration(text: &str) -> Result<Duration, String> {
    mcptest_suite::parse_duration(text)
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
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Examples:"), "{} has no examples", command.get_name());
        }
    }

    #[test]
    fn help_tells_the_exit_codes_of_the_one_table() {
        for (code, meaning) in ExitCode::ALL {
            let line = format!("  {:<3}  {meaning}", u8::from(code));
            assert!(EXIT_CODES.contains(&line), "{line}");
        }
    }
}
