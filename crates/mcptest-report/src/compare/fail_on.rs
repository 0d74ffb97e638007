//! The changes that make a comparison fail.

use super::Comparison;
use crate::exit_code::ExitCode;

/// The changes for which `mcptest report --compare` fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailOn {
    /// Tests that regressed. Lost ones are exit code 3.
    #[default]
    Regression,
    /// Tests that regressed or were lost.
    Flip,
    /// Rates that are significantly worse, after the adjustment for many comparisons.
    Significant,
    /// All of these.
    Any,
}

impl Comparison {
    /// The exit code of the comparison.
    #[must_use]
    pub fn exit_code_for(&self, fail_on: FailOn) -> ExitCode {
        let (regressed, lost) = (self.counts.regressed > 0, self.counts.lost > 0);
        let worse = self
            .rates
            .iter()
            .any(|rate| rate.statistics.significant && rate.statistics.difference < 0.0);
        let fails = match fail_on {
            FailOn::Regression => regressed,
            FailOn::Flip => regressed || lost,
            FailOn::Significant => worse,
            FailOn::Any => regressed || lost || worse,
        };
        match fails {
            true => ExitCode::Failed,
            false if fail_on == FailOn::Regression && lost => ExitCode::NoEvidence,
            false => ExitCode::Passed,
        }
    }
}
