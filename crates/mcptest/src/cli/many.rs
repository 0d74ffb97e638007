//! Flags of `run` for many tests.

use std::path::PathBuf;

use clap::Args;
use mcptest_runner::ShardOf;

/// Which part of the tests, and how often.
#[derive(Debug, Args)]
pub struct ManyArgs {
    /// Run one part of the tests: `2/5` is the second of five. `mcptest report merge` joins the
    /// parts' JSON reports.
    #[arg(long, value_name = "NUMBER/OF")]
    pub shard: Option<ShardOf>,
    /// A JSON report of an earlier run, whose times balance the shards. For agent tests that are
    /// not in it, the times in their cassettes do; without any times, the number of runs. All
    /// shards need the same files.
    #[arg(long, value_name = "REPORT", requires = "shard")]
    pub timings: Option<PathBuf>,
    /// After the first test that fails or breaks, begin no other. What was not run is named in the
    /// report.
    #[arg(long)]
    pub fail_fast: bool,
    /// Run only what failed, broke, had no evidence or was not run: in this JSON report, else the
    /// last time in this folder (.mcptest/last-run.json).
    #[arg(long, value_name = "REPORT", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "not given, given, given with a file")]
    pub rerun_failed: Option<Option<PathBuf>>,
    /// Stay, and run again whenever a suite or a file beside it changes. Ctrl-C ends it.
    #[arg(long)]
    pub watch: bool,
}
