//! The command line of `report`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ReportArgs;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
`mcptest run` keeps a log of each run in `.mcptest/history`, so there is a report even of a run that
was killed. `--reporter json` gives the bytes that `run` wrote.

With --compare, the exit code is 1 if a test regressed (it passed in the baseline and fails now), 3
if a result was lost (it passed, and could not be judged now), and 0 otherwise; see --fail-on.
Without --compare, the exit code is 0, whatever the verdict.

Examples:
  mcptest report                                                 the last run in this folder
  mcptest report --list                                          all runs of the history; also as JSON
  mcptest report 20261117T183012Z-3fa9                           one run of the history
  mcptest report report.json                                     a JSON report
  mcptest report report.json --reporter junit=report.xml --reporter markdown
  mcptest report current.json --compare baseline.json            changes and regressions
  mcptest report current.json --compare baseline.json --reporter pr
  mcptest report current.json --compare monday.json tuesday.json --fail-on significant
  mcptest report --serve                                         the last run, as a page in a browser
  mcptest report trend                                           figures of all runs over time
  mcptest report merge shard-*.json --output report.json"
)]
pub struct RenderArgs {
    /// A JSON report (`-` is standard input), or the id of a run in the history. Default: the last
    /// run.
    #[arg(value_name = "CURRENT")]
    pub current: Option<PathBuf>,
    /// List the runs of the history, the newest first.
    #[arg(long, conflicts_with_all = ["current", "compare"])]
    pub list: bool,
    /// An earlier JSON report, or the id of a run in the history, to compare with. Of several, the
    /// first is compared test by test, and the runs of all are taken together for statistics.
    #[arg(long, value_name = "BASELINE", num_args = 1..)]
    pub compare: Vec<PathBuf>,
    /// The changes for which a comparison fails with exit code 1.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "CHANGE",
        requires = "compare"
    )]
    pub fail_on: FailOnArg,
    /// Serve the page of the `html` reporter until Ctrl-C, on 127.0.0.1 and this port (default: a
    /// free one). A run that is not finished is followed.
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0",
        conflicts_with_all = ["list", "compare", "reporter"]
    )]
    pub serve: Option<u16>,
    #[command(flatten)]
    pub report: ReportArgs,
    #[command(subcommand)]
    pub command: Option<ReportCommand>,
}

/// The changes for which a comparison fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOnArg {
    /// A test regressed; a lost one is exit code 3.
    #[default]
    Regression,
    /// A test regressed or was lost.
    Flip,
    /// A rate is significantly worse, adjusted for the number of rates.
    Significant,
    /// Any of these.
    Any,
}

#[derive(Debug, Subcommand)]
pub enum ReportCommand {
    /// Merge the JSON reports of shards or of different suites, or the partial results of `score`.
    Merge(MergeArgs),
    /// Show figures over time, and the tests that change their verdict.
    Trend(TrendArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Pass rates, selection F1, flakiness, tokens per run and cost of each report, the oldest first, and
the flaky tests, ranked by how often they flip between passed and failed. Reporters: `pretty`,
`json` (see `mcptest schema trend`) and `html`. The exit code is 0, whatever the verdicts.

Examples:
  mcptest report trend                                           all runs of the history
  mcptest report trend --last 10 --suite checkout
  mcptest report trend monday.json tuesday.json wednesday.json
  mcptest report trend nightly/*.json --reporter html=trend.html")]
pub struct TrendArgs {
    /// JSON reports, or ids of runs in the history, the oldest first. Default: the history.
    #[arg(value_name = "REPORT")]
    pub reports: Vec<PathBuf>,
    /// Only the newest reports, this number of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// Only tests of this suite.
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    #[command(flatten)]
    pub report: ReportArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The shards can be given in any order; the tests are in the order of their suites, and the verdict,
the exit code and the floors are those of the whole run. A shard that is missing or given twice is an
error. The exit code is that of the whole run.

Partial results of `mcptest score --partial` give the bytes of `score --summary --reporter json` over
all traces, in any order. They must be of one suite and of one version of mcptest.

Examples:
  mcptest report merge shard-1.json shard-2.json --output report.json
  mcptest report merge day-*.part --output report.json
  mcptest report merge shard-*.json | mcptest report - --reporter junit=report.xml")]
pub struct MergeArgs {
    /// The JSON reports, or the partial results.
    #[arg(value_name = "REPORT", required = true)]
    pub reports: Vec<PathBuf>,
    /// File for the merged JSON report. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
