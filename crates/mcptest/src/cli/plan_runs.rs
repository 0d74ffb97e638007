//! The command line of `plan-runs`.

use clap::Args;

use super::FormatArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
The question is how well a pass rate is known after so many runs. Wald is the textbook figure; Wilson and exact
(Clopper-Pearson) are trustworthy near 0 and 1 too.

Examples:
  mcptest plan-runs --half-width 0.05 --confidence 95     runs for a rate that is known to 5 points
  mcptest plan-runs --runs 100                            how well 100 runs know a rate")]
pub struct PlanRunsArgs {
    /// The half-width of the interval that is wanted, as a fraction.
    #[arg(
        long,
        value_name = "FRACTION",
        conflicts_with = "runs",
        required_unless_present = "runs"
    )]
    pub half_width: Option<f64>,
    /// The number of runs that is given.
    #[arg(long, value_name = "N")]
    pub runs: Option<u64>,
    /// The confidence, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0)]
    pub confidence: f64,
    #[command(flatten)]
    pub how: FormatArgs,
}
