//! The command line of `cassette`, and of recording in `run`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::FormatArgs;

/// What `run` records and replays.
#[derive(Debug, Args)]
pub struct RecordingArgs {
    /// Run live and record every run of every agent test in a cassette.
    #[arg(long, conflicts_with_all = ["live", "replay_only", "replay"])]
    pub record: bool,
    /// Run live even where there is a cassette.
    #[arg(long, conflicts_with_all = ["replay_only", "replay"])]
    pub live: bool,
    /// Ask no model that costs: a cassette that is missing or stale is an error.
    #[arg(long)]
    pub replay_only: bool,
    /// Which side of the cassettes is replayed, before whatever the suite says; the other one is
    /// live. With `both`, no server is started and no model is asked.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub replay: Option<WhatToReplay>,
    /// The folder of the cassettes, before whatever the suite says. Default: `cassettes` beside
    /// each suite.
    #[arg(long, value_name = "DIR")]
    pub cassettes: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhatToReplay {
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
    /// Tell what is in a cassette.
    Show(ShowArgs),
    /// Check that cassettes load, are whole, hold no secret, replay, and fit their suite.
    Verify(VerifyArgs),
    /// Remove cassettes that no test of a suite uses.
    Prune(PruneArgs),
    /// Put the runs of two cassettes of the same test into one.
    Merge(CassetteMergeArgs),
    /// Tell what is different in the second of two cassettes. The exit code is 1 if anything is.
    Diff(CassetteDiffArgs),
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The cassette.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// This run only, with what its placeholders stand for.
    #[arg(long, value_name = "N")]
    pub run: Option<u32>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Cassettes, or folders of them. Default: those of the suite, or the folder `cassettes`.
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Hold them against this suite: stale and unused ones are told.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// Where the suite's cassettes are, if not where the suite says.
    #[arg(long, value_name = "DIR", requires = "suite")]
    pub cassettes: Option<PathBuf>,
    #[command(flatten)]
    pub how: FormatArgs,
}

#[derive(Debug, Args)]
pub struct PruneArgs {
    /// The suite.
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// Where the suite's cassettes are, if not where the suite says.
    #[arg(long, value_name = "DIR")]
    pub cassettes: Option<PathBuf>,
    /// Only tell what would be removed.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct CassetteMergeArgs {
    /// The cassette whose runs come first.
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// The cassette whose runs come after them.
    #[arg(value_name = "B")]
    pub second: PathBuf,
    /// Where the merged cassette goes.
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
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
