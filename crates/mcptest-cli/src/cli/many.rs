//! Flags of `run` for many tests.

use std::path::PathBuf;

use clap::Args;
use mcptest_runner::ShardOf;

/// Selection of tests, and repetition.
#[derive(Debug, Args)]
pub struct ManyArgs {
    /// Run one part of the tests: `2/5` is the second of five. `mcptest report merge` merges the
    /// JSON reports of the parts.
    #[arg(long, value_name = "NUMBER/OF")]
    pub shard: Option<ShardOf>,
    /// Balance shards by the times in this JSON report of an earlier run. Agent tests that are not
    /// in it are weighed by the times in their cassettes, else by their number of runs. All shards
    /// need the same files.
    #[arg(long, value_name = "REPORT", requires = "shard")]
    pub timings: Option<PathBuf>,
    /// Start no further test after the first failure or error. The report lists the tests that were
    /// not run.
    #[arg(long)]
    pub fail_fast: bool,
    /// Run only tests that failed, had an error or no evidence, or were not run: in this JSON
    /// report, or else the last time in this folder (from `.mcptest/history`).
    #[arg(long, value_name = "REPORT", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "not given, given, given with a file")]
    pub rerun_failed: Option<Option<PathBuf>>,
    /// Run again whenever a suite or a file beside it changes, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,
}
