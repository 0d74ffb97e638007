//! The command line of `mutate`.

use std::path::PathBuf;

use clap::Args;

use super::shared::TRACES;
use super::{FilterArgs, FormatArgs, TraceArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Each mutation is one mistake an agent could make: omit a call, repeat it, reorder calls, change an
argument or the tool, get an error, claim work it did not do, use twice the tokens. It is applied to
all runs of a test. A mutant that no assertion detects survives: it shows a gap in the suite.

Examples:
  mcptest run suite.yml --traces traces.jsonl && mcptest mutate suite.yml --trace traces.jsonl
  mcptest mutate suite.yml --trace traces.jsonl --min-score 80     fail below 80 %
  mcptest mutate suite.yml --trace traces.jsonl --format json")]
pub struct MutateArgs {
    #[command(flatten)]
    pub traces: TraceArgs,
    /// Format of all trace files; default: detected; see `mcptest help traces`.
    #[arg(long, help_heading = TRACES, value_name = "NAME", conflicts_with = "map")]
    pub trace_format: Option<String>,
    /// A file that describes a home-made format by JSON pointers.
    #[arg(long, help_heading = TRACES, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Exit with 1 if a test kills fewer than this percent of its mutants.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    pub min_score: Option<u64>,
    /// Show killed mutants, too.
    #[arg(long)]
    pub killed: bool,
    #[command(flatten)]
    pub how: FormatArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
}
