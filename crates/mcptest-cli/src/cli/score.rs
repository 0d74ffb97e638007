//! The command line of `score`.

use clap::Args;

use super::{FilterArgs, ReportArgs, TraceArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
A trace file is one JSON object, an array of them, JSON Lines, or a cassette; `-` is standard input.

Examples:
  mcptest score suite.yml --trace run1.json run2.json
  mcptest score suite.yml --trace traces.jsonl --reporter json
  other-tool | mcptest score suite.yml --test 'weather selection' --trace -")]
pub struct ScoreArgs {
    #[command(flatten)]
    pub traces: TraceArgs,
    /// Skip assertions with `llm-judge` and `llm-jury`, even if the traces contain judgements.
    #[arg(long)]
    pub no_judges: bool,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Treat warnings about the suite as errors.
    #[arg(long)]
    pub deny_warnings: bool,
    #[command(flatten)]
    pub report: ReportArgs,
}
