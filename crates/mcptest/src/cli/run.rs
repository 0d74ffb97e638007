//! The command line of `run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mcptest_catalog::prices::Usd;

use super::shared::duration;
use super::{FilterArgs, ManyArgs, RecordingArgs, ReportArgs};

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
    /// The time allowed for every call to a server, before whatever the suite says: `5s`, `500ms`,
    /// `2m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// How many runs go on at once, before whatever the suite says.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
    /// Write the snapshots of direct tool tests anew where the answers differ, and tell which are
    /// of no use any more.
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

fn dollars(text: &str) -> Result<Usd, String> {
    let number: Option<serde_json::Number> = serde_json::from_str(text).ok();
    number
        .and_then(|number| Usd::from_number(&number))
        .ok_or_else(|| "expected an amount of dollars, for example 2.50".to_owned())
}
