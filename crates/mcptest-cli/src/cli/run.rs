//! The command line of `run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mcptest_catalog::prices::Usd;

use super::shared::{EXECUTION, HISTORY, OUTPUT, RECORDING, SELECTION, duration};
use super::{FilterArgs, ManyArgs, RecordingArgs, ReportArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest run                                    the suite in mcptest.yaml (or mcptest.yml)
  mcptest run suites/                            every suite in a folder
  mcptest run suite.yml --reporter json          the report on standard output, for programs
  mcptest run suite.yml --reporter pretty --reporter json=report.json
  mcptest run suite.yml --filter weather --timeout 5s
  mcptest run suite.yml --update-snapshots       rewrite snapshots that differ
  mcptest run suite.yml --model claude-haiku-4-5 --model ollama/qwen3:4b
  mcptest run suite.yml --traces traces.jsonl    save the traces for `mcptest score`
  mcptest run suite.yml --record                 run live, and record every run in a cassette
  mcptest run suite.yml --replay-only            in CI: no request to a model, no cost
  mcptest run suite.yml --reporter pretty --reporter junit=report.xml
  mcptest run suites/ --shard 2/5 --timings last.json --reporter json=shard-2.json
  mcptest run suite.yml --rerun-failed           only the tests that did not pass the last time
  mcptest run suite.yml --watch                  run again whenever a file changes
  mcptest run suite.yml --ui                     follow the run in a browser
  mcptest run suite.yml --max-usd 2.50 --max-duration 10m
  mcptest run suite.yml --events /dev/stderr     follow the run by another program
  mcptest run suite.yml --only-mocks             start no server but mocks
  mcptest run suite.yml --no-judges              skip assertions that ask a model
  mcptest run --resume                           continue the last run, also a killed one")]
pub struct RunArgs {
    /// Suite files or folders; default: mcptest.yaml, then mcptest.yml.
    #[arg(value_name = "SUITE")]
    pub suites: Vec<PathBuf>,
    /// A suite file; the same as SUITE.
    #[arg(long, value_name = "FILE", help_heading = SELECTION)]
    pub config: Vec<PathBuf>,
    /// Model of all agent tests, instead of their own; repeatable.
    #[arg(long, value_name = "ID", help_heading = EXECUTION)]
    pub model: Vec<String>,
    /// Timeout for each server call; overrides the suite: `5s`, `2m`.
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = EXECUTION)]
    pub timeout: Option<Duration>,
    /// Number of concurrent runs; overrides the suite.
    #[arg(short, long, value_name = "N", help_heading = EXECUTION,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Rewrite snapshots that differ and list unused ones.
    #[arg(long, help_heading = RECORDING)]
    pub update_snapshots: bool,
    /// Allow `--update-snapshots` where the variable CI is set.
    #[arg(long, requires = "update_snapshots", help_heading = RECORDING)]
    pub allow_ci_updates: bool,
    /// Write the traces of all runs to a file, as JSON Lines.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub traces: Option<PathBuf>,
    /// Write the events to this file or pipe, while the run lasts.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, conflicts_with = "watch")]
    pub events: Option<PathBuf>,
    /// Refuse suites that start any other program than `mcptest mock`.
    #[arg(long, help_heading = EXECUTION)]
    pub only_mocks: bool,
    #[command(flatten)]
    pub budget: BudgetArgs,
    /// Skip assertions with `llm-judge` and `llm-jury`.
    #[arg(long, help_heading = EXECUTION)]
    pub no_judges: bool,
    #[command(flatten)]
    pub recording: RecordingArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub many: ManyArgs,
    #[command(flatten)]
    pub history: HistoryArgs,
    /// Treat warnings about the suite as errors.
    #[arg(long, help_heading = EXECUTION)]
    pub deny_warnings: bool,
    /// Show the run as a page on this port of 127.0.0.1, or on a free one.
    #[arg(
        long,
        help_heading = OUTPUT,
        value_name = "PORT",
        value_parser = super::port,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0",
        conflicts_with_all = ["no_history", "watch"]
    )]
    pub ui: Option<u16>,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// The flags that cannot be combined with `--resume`, because its settings come from the log.
pub const RESUME_CONFLICTS: [&str; 24] = [
    "config",
    "model",
    "timeout",
    "jobs",
    "update_snapshots",
    "allow_ci_updates",
    "max_usd",
    "max_tokens",
    "max_duration",
    "no_judges",
    "deny_warnings",
    "only_mocks",
    "record",
    "live",
    "replay_only",
    "replay",
    "cassettes",
    "filter",
    "tag",
    "shard",
    "fail_fast",
    "rerun_failed",
    "watch",
    "no_history",
];

/// The log of a run in the history.
#[derive(Debug, Args)]
#[command(next_help_heading = HISTORY)]
pub struct HistoryArgs {
    /// Keep no log of this run in `.mcptest/history`.
    #[arg(long)]
    pub no_history: bool,
    /// Continue an interrupted or killed run: the last one, or the one with this id.
    #[arg(
        long,
        value_name = "ID",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = RESUME_CONFLICTS
    )]
    pub resume: Option<String>,
}

/// Limits on the cost of an invocation. Each overrides the suites' limit of the same kind.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct BudgetArgs {
    /// Maximum cost of all suites together, in US dollars: `2.50`.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub max_usd: Option<Usd>,
    /// Maximum number of tokens of all suites together, read and written.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Maximum duration of all suites together: `90s`, `10m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_duration: Option<Duration>,
}

fn dollars(text: &str) -> Result<Usd, String> {
    let number: Option<serde_json::Number> = serde_json::from_str(text).ok();
    number
        .and_then(|number| Usd::from_number(&number))
        .ok_or_else(|| "expected an amount of dollars, for example 2.50".to_owned())
}
