//! The word for a verdict.

use mcptest_trace::verdict::Verdict;

/// The name of a verdict in the JSON report.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::NoEvidence => "no_evidence",
        Verdict::Fail => "fail",
        Verdict::Error => "error",
    }
}
