//! The command line of `cassette`, and of recording in `run`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::FormatArgs;
use super::shared::RECORDING;

/// Recording and replaying in `run`.
#[derive(Debug, Args)]
#[command(next_help_heading = RECORDING)]
pub struct RecordingArgs {
    /// Run live, and record every run of every agent test in a cassette.
    #[arg(long, conflicts_with_all = ["live", "replay_only", "replay"])]
    pub record: bool,
    /// Run live even if there is a cassette.
    #[arg(long, conflicts_with_all = ["replay_only", "replay"])]
    pub live: bool,
    /// Send no request to a paid model; a missing cassette is an error.
    #[arg(long)]
    pub replay_only: bool,
    /// The replayed side, the other one is live: `model`, `tools` or `both`.
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub replay: Option<ReplayedPart>,
    /// The folder of the cassettes; default: `cassettes` beside each suite.
    #[arg(long, value_name = "DIR")]
    pub cassettes: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReplayedPart {
    Model,
    Tools,
    Both,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A cassette holds all runs of one agent test with one model. `mcptest run --record` makes them.

Examples:
  mcptest cassette show cassettes/mcptest.yml/weather.json --run 2
  mcptest cassette verify --suite mcptest.yml      before a commit
  mcptest cassette prune mcptest.yml --dry-run
  mcptest cassette merge monday.json tuesday.json --output week.json
  mcptest cassette diff old.json new.json")]
pub struct CassetteArgs {
    #[command(subcommand)]
    pub command: CassetteCommand,
}

#[derive(Debug, Subcommand)]
pub enum CassetteCommand {
    /// Show the contents of a cassette.
    Show(ShowArgs),
    /// Check that cassettes load, replay, contain no secrets and match their suite.
    Verify(VerifyArgs),
    /// Remove cassettes that no test of a suite uses.
    Prune(PruneArgs),
    /// Combine the runs of two cassettes of the same test.
    Merge(CassetteMergeArgs),
    /// Show the differences between two cassettes. The exit code is 1 if there are any.
    Diff(CassetteDiffArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest cassette show cassettes/mcptest.yml/weather.json --run 2")]
pub struct ShowArgs {
    /// The cassette.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only this run, with the values of its placeholders.
    #[arg(long, value_name = "N")]
    pub run: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest cassette verify --suite mcptest.yml      before a commit")]
pub struct VerifyArgs {
    /// Cassettes, or folders; default: those of the suite, or `cassettes`.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Compare them with this suite: report stale and unused ones.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// The folder of the suite's cassettes; overrides the suite.
    #[arg(long, value_name = "DIR", requires = "suite")]
    pub cassettes: Option<PathBuf>,
    #[command(flatten)]
    pub how: FormatArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest cassette prune mcptest.yml --dry-run")]
pub struct PruneArgs {
    /// The suite.
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// The folder of the suite's cassettes; overrides the suite.
    #[arg(long, value_name = "DIR")]
    pub cassettes: Option<PathBuf>,
    /// List the cassettes without removing them.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest cassette merge monday.json tuesday.json --output week.json")]
pub struct CassetteMergeArgs {
    /// The cassette whose runs come first.
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// The cassette whose runs come after them.
    #[arg(value_name = "B")]
    pub second: PathBuf,
    /// File for the merged cassette.
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest cassette diff old.json new.json")]
pub struct CassetteDiffArgs {
    /// The first cassette.
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// The second cassette.
    #[arg(value_name = "B")]
    pub second: PathBuf,
    #[command(flatten)]
    pub how: FormatArgs,
}
