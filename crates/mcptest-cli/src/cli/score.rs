//! The command line of `score`.

use std::num::NonZeroUsize;

use clap::Args;

use super::{FilterArgs, ReportArgs, TraceArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
A trace file is one JSON object, an array of them, JSON Lines, or a cassette; `-` is standard input.
Files that are compressed with gzip or Zstandard are decompressed. Of a folder, all *.json, *.jsonl
and *.ndjson files are read, also with .gz or .zst, in the order of their names (run-2 comes before
run-10) and without hidden ones.

A line of JSON Lines that is not a trace is reported with its place, counted and skipped; then the
exit code is never 0, and 3 if nothing else failed. With --strict, it is an error (exit code 2).

Examples:
  mcptest score suite.yml --trace run1.json run2.json
  mcptest score suite.yml --trace traces.jsonl --reporter json
  mcptest score suite.yml --trace runs/ 'more/**/*.jsonl.gz' --threads 8
  other-tool | mcptest score suite.yml --test 'weather selection' --trace -")]
pub struct ScoreArgs {
    #[command(flatten)]
    pub traces: TraceArgs,
    /// Skip assertions with `llm-judge` and `llm-jury`, even if the traces contain judgements.
    #[arg(long)]
    pub no_judges: bool,
    /// Treat a broken line in a trace file as an error.
    #[arg(long)]
    pub strict: bool,
    /// Number of threads. The result does not depend on it. Default: one for each core.
    #[arg(long, value_name = "N", visible_alias = "jobs")]
    pub threads: Option<NonZeroUsize>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Treat warnings about the suite as errors.
    #[arg(long)]
    pub deny_warnings: bool,
    #[command(flatten)]
    pub report: ReportArgs,
}
