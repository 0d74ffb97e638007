//! The command line as people type it.

mod many;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use mcptest_core::percent::Rate;
use mcptest_core::prices::Usd;

use crate::cassette_args::{CassetteArgs, RecordingArgs};
pub use many::ManyArgs;
pub use report::{MergeArgs, RenderArgs, ReportCommand};

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
    /// Show a JSON report again, compare it with another, or merge several.
    Report(RenderArgs),
    /// Change recorded traces a little, and see whether the suite's gates notice.
    Mutate(MutateArgs),
    /// Check suites without running them.
    Validate(ValidateArgs),
    /// Whether tool descriptions carry the choice of a tool: a benchmark without a model.
    ToolBench(ToolBenchArgs),
    /// What changed between two catalogs, and what of it breaks callers.
    Diff(DiffArgs),
    /// How many runs to make, or what a number of runs is worth.
    PlanRuns(PlanRunsArgs),
    /// Examine servers and their tool catalogs: start, protocol, token price, lint.
    Doctor(DoctorArgs),
    /// Explain a lint rule, with a good and a bad example.
    Explain(ExplainArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Serve a mock MCP server over standard input and output, or HTTP.
    Mock(MockArgs),
    /// Stand between any MCP client and a server: pass everything on, record the calls, inject faults.
    Proxy(ProxyArgs),
    /// Look at recorded runs, check them, and keep them tidy.
    Cassette(CassetteArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
}

/// How results are shown. `run`, `score` and `report` share it.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[arg(long, value_name = "NAME[=FILE]", default_value = "pretty", help = report::reporter_help())]
    pub reporter: Vec<String>,
    /// Leave times out of the report, so that equal runs give equal bytes.
    #[arg(long)]
    pub no_timing: bool,
}

/// What everything may cost, before whatever the suites say.
#[derive(Debug, Args)]
pub struct BudgetArgs {
    /// The most US dollars that all suites may cost together: `2.50`.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub max_usd: Option<Usd>,
    /// The most tokens that models may read and write in all suites together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// The longest that all suites may take together: `90s`, `10m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_duration: Option<Duration>,
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
  mcptest run suite.yml --update-snapshots       keep the answers that differ; look at the diff before committing
  mcptest run suite.yml --model claude-haiku-4-5 --model ollama/qwen3:4b
  mcptest run suite.yml --traces traces.jsonl    keep the evidence for `mcptest score`
  mcptest run suite.yml --record                 run live, and keep every run in a cassette
  mcptest run suite.yml --replay-only            in CI: no model is asked, no money is spent
  mcptest run suite.yml --reporter pretty --reporter junit=report.xml
  mcptest run suites/ --shard 2/5 --timings last.json --reporter json=shard-2.json
  mcptest run suite.yml --rerun-failed           only what did not pass the last time
  mcptest run suite.yml --watch                  again whenever a file changes
  mcptest run suite.yml --max-usd 2.50 --max-duration 10m
  mcptest run suite.yml --no-judges              evidence only")]
pub struct RunArgs {
    /// Suite files or folders. Default: mcptest.yaml, then mcptest.yml.
    #[arg(value_name = "SUITE")]
    pub suites: Vec<PathBuf>,
    /// Another way to name a suite file.
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Run all agent tests with this model in place of their own. May be given several times.
    #[arg(long, value_name = "ID")]
    pub model: Vec<String>,
    /// The time allowed for every call to a server, before whatever the suite says: `5s`, `500ms`, `2m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// How many runs go on at once, before whatever the suite says.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Write the snapshots of direct tool tests anew where the answers differ, and tell which are of no use any more.
    #[arg(long)]
    pub update_snapshots: bool,
    /// Let `--update-snapshots` write where the environment variable CI is set.
    #[arg(long, requires = "update_snapshots")]
    pub allow_ci_updates: bool,
    /// Write the traces of all runs to a file, as JSON Lines.
    #[arg(long, value_name = "FILE")]
    pub traces: Option<PathBuf>,
    #[command(flatten)]
    pub budget: BudgetArgs,
    /// Ask no judge: assertions with `llm-judge` and `llm-jury` are skipped.
    #[arg(long)]
    pub no_judges: bool,
    #[command(flatten)]
    pub recording: RecordingArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub many: ManyArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A trace file is one JSON object, an array of them, JSON Lines, or a cassette; `-` is standard input.

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
    /// Skip assertions with `llm-judge` and `llm-jury`, whatever the traces keep of them.
    #[arg(long)]
    pub no_judges: bool,
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
Examples:
  mcptest tool-bench run bench.yml
  mcptest tool-bench run bench.yml --min-drop 0.2     fail if no edit costs a fifth of the right picks")]
pub struct ToolBenchArgs {
    #[command(subcommand)]
    pub command: ToolBenchCommand,
}

#[derive(Debug, Subcommand)]
pub enum ToolBenchCommand {
    /// Pick a tool for every intent, then edit descriptions one at a time and pick again.
    Run(ToolBenchRunArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A spec has a catalog (`catalog` or `catalog_path`), `intents` (each a `query` with the `gold` tools that would be right)
and `mutations` (each a `tool` and a `kind`: blank, genericize, truncate with `chars`, drop_keyword with `word`).
A catalog named on the command line comes before the spec's.
The picks are made by shared words, not by a model: the same spec always gives the same figures.

Examples:
  mcptest tool-bench run bench.yml
  mcptest tool-bench run bench.yml --min-drop 0.2     fail if no edit costs a fifth of the right picks
  mcptest tool-bench run bench.yml --all-mutations    try every edit of every description
  mcptest tool-bench run bench.yml --url http://127.0.0.1:3000/mcp    the intents on a live server's catalog
  mcptest tool-bench run bench.yml --json")]
pub struct ToolBenchRunArgs {
    /// The spec.
    #[arg(value_name = "SPEC")]
    pub spec: PathBuf,
    #[command(flatten)]
    pub catalog: CatalogArgs,
    /// Exit with 1 if the largest drop in accuracy is below this, 0 to 1: the descriptions do not carry the choice.
    #[arg(long, value_name = "FRACTION", value_parser = rate)]
    pub min_drop: Option<Rate>,
    /// Beside the spec's mutations, try every single one: each description blanked, made generic, cut in half, and without each of its words.
    #[arg(long)]
    pub all_mutations: bool,
    /// The same as `--format json`.
    #[arg(long)]
    pub json: bool,
    /// How to tell.
    #[arg(long, value_enum, default_value_t = Format::Pretty, value_name = "FORMAT")]
    pub format: Format,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each side is a file (a captured `tools/list` answer as JSON, or a mock manifest), an http:// or https:// address, or
`server:NAME` of the suite that --suite names; in place of NEW, a command after `--` is started. Callers write arguments and
read results: an input schema that accepts less breaks them, and so does an output schema that allows more. Exits with 1 if
anything breaks callers, with 2 if a side cannot be had.

Examples:
  mcptest diff released.json current.json
  mcptest diff released.json -- npx -y my-server
  mcptest diff https://example.com/mcp http://127.0.0.1:3000/mcp --header 'Authorization: Bearer …'
  mcptest diff released.json server:weather --suite mcptest.yml
  mcptest diff released.json current.json --format markdown    for a pull request
  mcptest diff released.json current.json --format json")]
pub struct DiffArgs {
    /// The catalog before: a file, an address, or `server:NAME`.
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The catalog after: a file, an address, or `server:NAME`.
    #[arg(value_name = "NEW", required_unless_present = "command", conflicts_with = "command")]
    pub new: Option<String>,
    /// The suite whose servers `server:NAME` means.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// A header for every address. Its value is shown nowhere. May be given several times.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header)]
    pub header: Vec<HttpHeader>,
    /// The time allowed for the start of a server and for each of its answers: `5s`, `500ms`, `2m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// The server whose catalog is NEW, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// How to tell.
    #[arg(long, value_enum, default_value_t = DiffFormat::Pretty, value_name = "FORMAT")]
    pub format: DiffFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    Pretty,
    Json,
    Markdown,
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

/// A header as it is typed.
#[derive(Clone)]
pub struct HttpHeader {
    pub name: String,
    pub value: String,
}

impl std::fmt::Debug for HttpHeader {
    /// The value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpHeader")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Where tool catalogs come from, the same for every command that looks at them.
#[derive(Debug, Args)]
pub struct CatalogArgs {
    /// A file: a mock manifest, or a captured `tools/list` answer as JSON. May be given several times.
    #[arg(long, value_name = "FILE")]
    pub tools_from: Vec<PathBuf>,
    /// A suite whose servers are started.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// Only this server of the suite. May be given several times. Default: all of them.
    #[arg(long, value_name = "NAME", requires = "suite")]
    pub server: Vec<String>,
    /// The address of a server over streamable HTTP. May be given several times.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub url: Vec<String>,
    /// A header for every `--url`. Its value is shown nowhere. May be given several times.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header, requires = "url")]
    pub header: Vec<HttpHeader>,
    /// A server to start, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// The time allowed for the start of a server and for each of its answers: `5s`, `500ms`, `2m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A token is one of cl100k_base: of a tool's name, its description, and its input schema as compact JSON.

Exits with 1 if something is critical: a capability that is advertised and not answered, a name twice on one server, a
critical finding of the lint; with --deny warning also for warnings. Exits with 2 if a server does not start.

Examples:
  mcptest doctor -- npx -y @modelcontextprotocol/server-everything
  mcptest doctor --suite mcptest.yml --server weather --lint-descriptions
  mcptest doctor --url https://example.com/mcp --header 'Authorization: Bearer …'
  mcptest doctor --tools-from tools.json --lint-descriptions --deny warning
  mcptest doctor --tools-from tools.json --lint-descriptions --format sarif > mcptest.sarif
  mcptest doctor --tools-from tools.json --fix fixed.json      write the safe fixes, show them as a diff")]
pub struct DoctorArgs {
    #[command(flatten)]
    pub catalog: CatalogArgs,
    /// The context window that shares are of, in tokens.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub context_window: u64,
    /// Apply the rules DESC-001 to DESC-013, SCH-001 to SCH-004, TOOL-001 and TOOL-002 (see `mcptest explain`).
    #[arg(long)]
    pub lint_descriptions: bool,
    /// What else fails besides what is critical.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub deny: Option<Deny>,
    /// A YAML file of accepted findings, each with a reason. Default: mcptest-lint.yml, if it is there.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// Write the catalog with all safe fixes to a file, and show them as a diff. Takes one catalog.
    #[arg(long, value_name = "FILE")]
    pub fix: Option<PathBuf>,
    /// How to tell. `sarif` and `github` show the findings of the lint and nothing else.
    #[arg(long, value_enum, default_value_t = DoctorFormat::Pretty, value_name = "FORMAT")]
    pub format: DoctorFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    Warning,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    Pretty,
    Json,
    Sarif,
    Github,
    Markdown,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest explain              all rules, a line each
  mcptest explain DESC-009")]
pub struct ExplainArgs {
    /// The rule's id.
    #[arg(value_name = "RULE")]
    pub rule: Option<String>,
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
    /// What `mcptest report --compare` gives as JSON.
    Comparison,
    /// Specs of `mcptest tool-bench`.
    ToolBench,
    /// A recorded trace.
    Trace,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest mock --tools-from servers/weather.yml     the manifest with responses
  mcptest mock --tools-from captured-tools.json     a saved answer to tools/list; calls are echoed
  mcptest mock --preset tidy --fault recover-after:2
  mcptest mock --preset hostile --record sent.jsonl
  mcptest mock --tools-from servers/weather.yml --http 0")]
pub struct MockArgs {
    /// A manifest (`mock_server:`), or a captured `tools/list` answer as JSON.
    #[arg(long, value_name = "FILE")]
    pub tools_from: Option<PathBuf>,
    /// A bundled catalog in place of a file.
    #[arg(long, value_name = "NAME", conflicts_with = "tools_from")]
    pub preset: Option<MockPreset>,
    /// What goes wrong with every call, whatever the manifest says: `none`, `hang`, `wedged`, `slow:<ms>`, `recover-after:<n>` or
    /// `reply-after-cancel:<ms>`.
    #[arg(long, value_name = "KIND")]
    pub fault: Option<mcptest_mock::Fault>,
    /// Serve streamable HTTP on this port of 127.0.0.1, path /mcp, in place of standard input and output. With 0 a free port is taken; the
    /// address is told on stderr.
    #[arg(long, value_name = "PORT")]
    pub http: Option<u16>,
    /// Write every message that clients send to this file, as JSON Lines.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

/// The bundled catalogs of `mock`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum MockPreset {
    /// A help desk with clear, strict, well documented tools.
    Tidy,
    /// The same with vague descriptions, look-alikes and schemas that allow anything.
    Smelly,
    /// Several hundred tools.
    Overloaded,
    /// Terminal escapes, markup and instructions in all texts.
    Hostile,
}

impl From<MockPreset> for mcptest_mock::Preset {
    fn from(preset: MockPreset) -> Self {
        match preset {
            MockPreset::Tidy => Self::Tidy,
            MockPreset::Smelly => Self::Smelly,
            MockPreset::Overloaded => Self::Overloaded,
            MockPreset::Hostile => Self::Hostile,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # as the server command of any agent:
  mcptest proxy --server files --record run.json -- npx -y some-server
  # afterwards:
  mcptest score suite.yml --trace run.json
  # connecting and listing work, the first two searches are lost:
  mcptest proxy --fault recover-after:2 --fault-tool search -- some-server
  # an agent that only speaks stdio, in front of a server over HTTP:
  mcptest proxy --record run.json --url https://example.com/mcp --header 'Authorization: Bearer …'
  # eight more tools to choose from, which nobody has:
  mcptest proxy --distractors 8 --server files --record run.json -- some-server")]
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
    /// Put tools into the lists that the server does not have, and refuse their calls: so many, or those of a file that says
    /// what a `distractors:` block says.
    #[arg(long, value_name = "N|FILE")]
    pub distractors: Option<DistractorsFrom>,
    /// Fixes which distractors come and in which order tools are listed, before what the file says. Default: a seed made of `--test`.
    #[arg(long, value_name = "N", requires = "distractors")]
    pub seed: Option<u64>,
    /// What the trace calls the server.
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// The test that the trace belongs to.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// The number of the run that the trace is of, from 1. Each has distractors of its own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub run: Option<u32>,
    /// The address of a server over streamable HTTP, in place of a command. The client still speaks over stdio.
    #[arg(long, value_name = "URL", value_parser = http_url, conflicts_with = "command", required_unless_present = "command")]
    pub url: Option<String>,
    /// A header for `--url`. Its value is in no trace and no message. May be given several times.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header, requires = "url")]
    pub header: Vec<HttpHeader>,
    /// The server's program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Where distractors come from: a number of bundled tools, or a file with the block.
#[derive(Debug, Clone)]
pub enum DistractorsFrom {
    Count(u32),
    File(PathBuf),
}

impl std::str::FromStr for DistractorsFrom {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::File(text.into()), Self::Count))
    }
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

fn http_header(text: &str) -> Result<HttpHeader, String> {
    // What was typed is not repeated: it may be a secret.
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| "expected a name, a colon and a value, as in `Authorization: Bearer …`".to_owned())?;
    Ok(HttpHeader {
        name: name.trim().to_owned(),
        value: value.trim().to_owned(),
    })
}

fn http_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(text.to_owned()),
        _ => Err("an address begins with http:// or https:// and names a host".to_owned()),
    }
}

fn dollars(text: &str) -> Result<Usd, String> {
    let number: Option<serde_json::Number> = serde_json::from_str(text).ok();
    number
        .and_then(|number| Usd::from_number(&number))
        .ok_or_else(|| "expected an amount of dollars, for example 2.50".to_owned())
}

fn rate(text: &str) -> Result<Rate, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .and_then(Rate::from_f64)
        .ok_or_else(|| "expected a fraction from 0 to 1, for example 0.2".to_owned())
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
