//! Flags of `run` for many tests.

use std::path::PathBuf;

use clap::Args;
use mcptest_runner::ShardOf;

use super::shared::SELECTION;

/// Selection of tests, and repetition.
#[derive(Debug, Args)]
#[command(next_help_heading = SELECTION)]
pub struct ManyArgs {
    /// One part of the tests: `2/5` is the second of five.
    #[arg(long, value_name = "NUMBER/OF")]
    pub shard: Option<ShardOf>,
    /// Balance shards by the times in this JSON report of an earlier run.
    #[arg(long, value_name = "REPORT", requires = "shard")]
    pub timings: Option<PathBuf>,
    /// Start no further test after the first failure or error.
    #[arg(long)]
    pub fail_fast: bool,
    /// Only tests that did not pass, in this JSON report or the last time.
    #[arg(long, value_name = "REPORT", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "not given, given, given with a file")]
    pub rerun_failed: Option<Option<PathBuf>>,
    /// Run again when a suite or a file beside it changes, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,
}
