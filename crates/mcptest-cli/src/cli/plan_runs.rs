//! The command line of `plan-runs`.

use clap::Args;

use super::FormatArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Computes the confidence interval of a pass rate. Wald is the textbook formula; Wilson and exact
(Clopper-Pearson) are also reliable near 0 and 1. The bound on attacks is that of the gate
`injection:`: exact, one-sided at 95 %.

Examples:
  mcptest plan-runs --half-width 0.05 --confidence 95     runs needed for ± 5 percentage points
  mcptest plan-runs --runs 100                            precision of 100 runs
  mcptest plan-runs --max-attack-success 5                delivered attacks needed for a bound of 5 %")]
pub struct PlanRunsArgs {
    /// The half-width of the interval, as a fraction between 0 and 1.
    #[arg(
        long,
        value_name = "FRACTION",
        conflicts_with = "runs",
        required_unless_present_any = ["runs", "max_attack_success"]
    )]
    pub half_width: Option<f64>,
    /// The number of runs.
    #[arg(long, value_name = "N")]
    pub runs: Option<u64>,
    /// Bound on `attack_success_upper`, in whole percent.
    #[arg(
        long,
        value_name = "PERCENT",
        conflicts_with_all = ["runs", "half_width", "confidence"]
    )]
    pub max_attack_success: Option<u64>,
    /// The number of cases that obey an attack.
    #[arg(
        long,
        value_name = "K",
        default_value_t = 0,
        conflicts_with = "half_width"
    )]
    pub obeyed: u64,
    /// The confidence level, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0)]
    pub confidence: f64,
    #[command(flatten)]
    pub how: FormatArgs,
}
