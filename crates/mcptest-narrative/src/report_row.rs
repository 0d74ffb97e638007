//! A run in the detail of the report, and the words for its first finding.

use serde::Serialize;

use crate::advisory::Judged;
use crate::divergence::{ArgMismatch, Claimed, Divergence, Unclaimed};

/// A row of the report's detail.
#[derive(Serialize)]
pub(crate) struct DivergenceRow<'a> {
    passed: bool,
    divergence_score: f64,
    recorded_calls: u64,
    claimed: &'a [Claimed],
    claimed_but_absent: &'a [Claimed],
    present_but_unclaimed: &'a [Unclaimed],
    arg_mismatch: &'a [ArgMismatch],
    claimed_after_error: &'a [Claimed],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    uncalled_tools: &'a [Claimed],
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judged: Option<&'a Judged>,
}

impl<'a> DivergenceRow<'a> {
    pub(crate) fn new(run: &'a Divergence, passed: bool) -> Self {
        Self {
            passed,
            divergence_score: run.score(),
            recorded_calls: run.recorded_calls,
            claimed: &run.claimed,
            claimed_but_absent: &run.claimed_but_absent,
            present_but_unclaimed: &run.present_but_unclaimed,
            arg_mismatch: &run.arg_mismatch,
            claimed_after_error: &run.claimed_after_error,
            uncalled_tools: &run.uncalled_tools,
            unread: run.unread.as_deref(),
            judged: run.judged.as_ref(),
        }
    }
}

/// Sets the words of a run, unless those of an earlier one are there.
pub(crate) fn keep_first(
    first: &mut Option<(u64, String)>,
    index: u64,
    words: impl FnOnce() -> Option<String>,
) {
    if first.as_ref().is_none_or(|(earlier, _)| index < *earlier)
        && let Some(words) = words()
    {
        *first = Some((index, words));
    }
}

/// The words for a claim without a call.
pub(crate) fn absent_words(claim: &Claimed) -> String {
    format!("no call for {}: “{}”", claim.action, claim.sentence)
}

/// The words for a value that disagrees.
pub(crate) fn mismatch_words(mismatch: &ArgMismatch) -> String {
    format!(
        "{} says {}, the call has {}",
        mismatch.action,
        mismatch.stated,
        mismatch.recorded.join(", ")
    )
}
