//! The meaning of gates, for people who read a report.

use mcptest_trace::outcome::TargetInfo;

/// The meaning of a gate and its figures.
///
/// A report does not know the gates; the program passes their own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateMeaning {
    /// The block's name in a suite.
    pub block: &'static str,
    /// The subject of its figures, in one line.
    pub summary: &'static str,
    /// Every figure that it reports.
    pub targets: &'static [TargetInfo],
}
