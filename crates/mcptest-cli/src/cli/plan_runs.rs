//! The command line of `plan-runs`.

use clap::Args;

use super::FormatArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Computes the confidence interval of a pass rate. Wald is the textbook formula; Wilson and exact
(Clopper-Pearson) are also reliable near 0 and 1.

Examples:
  mcptest plan-runs --half-width 0.05 --confidence 95     runs needed for ± 5 percentage points
  mcptest plan-runs --runs 100                            precision of 100 runs")]
pub struct PlanRunsArgs {
    /// The half-width of the interval, as a fraction between 0 and 1.
    #[arg(
        long,
        value_name = "FRACTION",
        conflicts_with = "runs",
        required_unless_present = "runs"
    )]
    pub half_width: Option<f64>,
    /// The number of runs.
    #[arg(long, value_name = "N")]
    pub runs: Option<u64>,
    /// The confidence level, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0)]
    pub confidence: f64,
    #[command(flatten)]
    pub how: FormatArgs,
}
