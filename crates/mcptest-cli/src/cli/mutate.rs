//! The command line of `mutate`.

use clap::Args;

use super::{FilterArgs, TraceArgs, TraceFormatArgs};

#[derive(Debug, Args)]
#[command(mut_arg("format", |arg| arg.help("Format of all trace files, or of the output: pretty, json; repeatable")))]
#[command(after_help = "\
Each mutation is one mistake an agent could make: omit a call, repeat it, reorder calls, change an
argument or the tool, get an error, claim work it did not do, use twice the tokens, obey an attack
that it met. It is applied to all runs of a test. A mutant that no assertion detects survives: it shows a gap in the suite.

Examples:
  mcptest run suite.yml --traces traces.jsonl && mcptest mutate suite.yml --trace traces.jsonl
  mcptest mutate suite.yml --trace traces.jsonl --min-score 80     fail below 80 %
  mcptest mutate suite.yml --trace traces.jsonl --format json
  mcptest mutate suite.yml --trace runs/ --format openai-chat --format json")]
pub struct MutateArgs {
    #[command(flatten)]
    pub traces: TraceArgs,
    #[command(flatten)]
    pub format: TraceFormatArgs,
    /// Exit with 1 if a test kills fewer than this percent of its mutants.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    pub min_score: Option<u64>,
    /// Show killed mutants, too.
    #[arg(long)]
    pub killed: bool,
    #[command(flatten)]
    pub filter: FilterArgs,
}
