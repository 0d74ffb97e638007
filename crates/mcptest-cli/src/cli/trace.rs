//! The command line of `trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::TraceFormatArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest trace show session.jsonl                  read one run like a story
  mcptest trace stats traces/                       calls, errors, tokens, cost, repeated work
  mcptest trace convert session.jsonl --out native.jsonl
  mcptest trace convert native.jsonl --to otlp --out spans.jsonl
  mcptest trace infer good-runs.jsonl --out mcptest.yml
  mcptest trace anonymise traces.jsonl --out shared.jsonl")]
pub struct TraceCommandArgs {
    #[command(subcommand)]
    pub command: TraceCommand,
}

#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Convert traces of other tools to native JSON Lines, or native ones to OpenTelemetry.
    Convert(ConvertArgs),
    /// Show each run as a timeline: turns, calls, results, the answer, tokens.
    Show(TraceShowArgs),
    /// Print figures over all traces: calls, tools, errors, tokens, cost, repeated work.
    Stats(StatsArgs),
    /// Write a starter suite from good traces, with the support of each part.
    Infer(InferArgs),
    /// Replace personal data by consistent placeholders.
    Anonymise(AnonymiseArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest trace convert session.jsonl --out native.jsonl
  mcptest trace convert native.jsonl --to otlp --out spans.jsonl")]
pub struct ConvertArgs {
    #[command(flatten)]
    pub input: TraceInputArgs,
    /// The format to write.
    #[arg(long, value_enum, default_value_t = ConvertTo::Native, value_name = "FORMAT")]
    pub to: ConvertTo,
    /// File to write; default: standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConvertTo {
    /// One trace per line.
    Native,
    /// One OTLP JSON object (`resourceSpans`) per line.
    Otlp,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest trace show session.jsonl
  mcptest trace show traces.jsonl --test weather --run 2 --full")]
pub struct TraceShowArgs {
    #[command(flatten)]
    pub input: TraceInputArgs,
    /// Only traces of this test.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// Only the run of this number.
    #[arg(long, value_name = "N")]
    pub run: Option<u64>,
    /// Show whole messages and results.
    #[arg(long)]
    pub full: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest trace stats traces/
  mcptest trace stats traces/ --json")]
pub struct StatsArgs {
    #[command(flatten)]
    pub input: TraceInputArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest trace infer good-runs.jsonl --out mcptest.yml")]
pub struct InferArgs {
    #[command(flatten)]
    pub input: TraceInputArgs,
    /// Percent of a test's traces that must use a capability.
    #[arg(long, value_name = "PERCENT", default_value_t = 80,
          value_parser = clap::value_parser!(u64).range(1..=100))]
    pub min_support: u64,
    /// File to write; default: standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest trace anonymise traces.jsonl --out shared.jsonl
  mcptest trace anonymise traces.jsonl --key employee --out shared.jsonl")]
pub struct AnonymiseArgs {
    #[command(flatten)]
    pub input: TraceInputArgs,
    /// A further key whose values are personal; repeatable.
    #[arg(long, value_name = "NAME")]
    pub key: Vec<String>,
    /// File to write; default: standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The traces to read.
#[derive(Debug, Args)]
pub struct TraceInputArgs {
    /// Files, folders, patterns (`'runs/**/*.jsonl'`), or `-`: standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub format: TraceFormatArgs,
    /// Treat a broken line as an error.
    #[arg(long)]
    pub strict: bool,
}
