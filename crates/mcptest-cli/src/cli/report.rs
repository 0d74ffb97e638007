//! The command line of `report`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ReportArgs;
use super::shared::OUTPUT;

const COMPARISON: &str = "Comparison";

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
`mcptest run` keeps a log of each run in `.mcptest/history`, so there is a report even of a run that
was killed. `--reporter json` gives the bytes that `run` wrote.

With --compare, the exit code is 1 if a test regressed (it passed in the baseline and fails now), 3
if a result was lost (it passed, and could not be judged now), and 0 otherwise; see --fail-on. Of
several baselines, the first is compared test by test; statistics use the runs of all.

A comparison fails on a regression; with `--fail-on flip` also on a lost result, with `significant`
on a rate that is significantly worse (adjusted for the number of rates), with `any` on each of these.
Without --compare, the exit code is 0, whatever the verdict.

Examples:
  mcptest report                                                 the last run in this folder
  mcptest report --list                                          all runs of the history
  mcptest report 20261117T183012Z-3fa9                           one run of the history
  mcptest report report.json                                     a JSON report
  mcptest report report.json --reporter junit=report.xml --reporter markdown
  mcptest report current.json --compare baseline.json            changes and regressions
  mcptest report current.json --compare baseline.json --reporter pr
  mcptest report current.json --compare monday.json tuesday.json --fail-on significant
  mcptest report --serve                                         the last run, as a page
  mcptest report trend                                           figures of all runs over time
  mcptest report merge shard-*.json --output report.json"
)]
pub struct RenderArgs {
    /// A JSON report, `-`, or the id of a run in the history; default: the last run.
    #[arg(value_name = "CURRENT")]
    pub current: Option<PathBuf>,
    /// List the runs of the history, the newest first.
    #[arg(long, conflicts_with_all = ["current", "compare"])]
    pub list: bool,
    /// Earlier JSON reports, or ids of runs in the history, to compare with.
    #[arg(long, help_heading = COMPARISON, value_name = "BASELINE", num_args = 1..)]
    pub compare: Vec<PathBuf>,
    /// Fail on: `regression` (default), `flip`, `significant` or `any`.
    #[arg(
        long,
        help_heading = COMPARISON,
        value_enum,
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true,
        value_name = "CHANGE",
        requires = "compare"
    )]
    pub fail_on: FailOnArg,
    /// Serve the report as a page on this port of 127.0.0.1, or a free one.
    #[arg(
        long,
        help_heading = OUTPUT,
        value_name = "PORT",
        value_parser = super::port,
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
    /// Merge the reports of shards or suites, or the partial results of `score`.
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
    /// JSON reports, or ids of runs, the oldest first; default: the history.
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
    /// File for the merged JSON report; default: standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
