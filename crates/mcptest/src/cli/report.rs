//! The command line of `report`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ReportArgs;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Shown again, a report is what it was: `--reporter json` gives the bytes that `run` wrote.

With --compare, exits with 1 if something regressed (it passed in the baseline and fails now), else
with 3 if something was lost (it passed, and could not be judged now), else with 0. Without
--compare, exits with 0 whatever the verdict.

Examples:
  mcptest report report.json                                     for people
  mcptest report report.json --reporter junit=report.xml --reporter markdown
  mcptest report current.json --compare baseline.json            what changed, what regressed
  mcptest report current.json --compare baseline.json --reporter markdown
  mcptest report merge shard-*.json --output report.json"
)]
pub struct RenderArgs {
    /// The JSON report; `-` is standard input.
    #[arg(value_name = "CURRENT", required = true)]
    pub current: Option<PathBuf>,
    /// An earlier JSON report to compare with.
    #[arg(long, value_name = "BASELINE")]
    pub compare: Option<PathBuf>,
    #[command(flatten)]
    pub report: ReportArgs,
    #[command(subcommand)]
    pub command: Option<ReportCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ReportCommand {
    /// Join the JSON reports of shards, or of different suites, into one.
    Merge(MergeArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The shards can be named in any order; the tests come out in the order of their suites, and the
verdict, the exit code and the floors are those of the whole. A shard that is missing, or there
twice, is refused. Exits as the whole run would have.

Examples:
  mcptest report merge shard-1.json shard-2.json --output report.json
  mcptest report merge shard-*.json | mcptest report - --reporter junit=report.xml")]
pub struct MergeArgs {
    /// The JSON reports.
    #[arg(value_name = "REPORT", required = true)]
    pub reports: Vec<PathBuf>,
    /// Where the joined JSON report goes. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
