//! The closing message against the recorded calls (`narrative:`).
//!
//! **Is the agent's final report true?** An agent ends with a message about what it did, and that
//! is what people read. This gate compares the closing message (and no other text) with the
//! recorded calls, without any model. Four things can be wrong:
//!
//! - **claimed but absent**: an action is claimed and no call can be it.
//! - **present but unclaimed**: a call that the message never mentions, reads included; `detail`
//!   marks writes, because a silent delete is worse than a silent lookup.
//! - **argument mismatch**: a claim states a number, date, quoted string, identifier, file or
//!   e-mail address that the call did not have.
//! - **claimed after error**: a claim whose calls all failed. It is reported and never counted as a
//!   divergence.
//!
//! # The block
//! ```yaml
//! narrative:
//!   mutating_tools: [shop.order]     # writes, whatever their names are
//!   max_divergence_score: 0.3
//! ```
//!
//! # Output
//! ```text
//! FAIL   tracker: narrative  divergence 0.33 · 1 claimed but absent · 0 unclaimed (0 writes) · 0 argument mismatches · no call for delete_branch: “I created the issue and deleted the branch.”
//!        run 1: claims `delete_branch` without such a call: “I created the issue and deleted the branch.”
//! ```
//!
//! # What a claim is
//! One of the verbs create, update, delete, remove, send, write, post, insert, set, put, patch,
//! publish, destroy, drop, add, edit, upload, merge, close, cancel, approve and revoke, in any
//! inflection, with the noun it acts on; together they name the action, such as `create_issue`. The
//! sentence must state that the agent did it: "I've created the issue", "the issue was created",
//! "Issue created.", or "- Created the issue" in a list. These are not claims: negations ("unable
//! to cancel"), modal verbs ("I can create", "can be cancelled"), infinitives, the future,
//! conditions, questions, requests, actions of the user or someone else ("you cancelled",
//! "cancelled by the airline"), dated history ("was created on 2024-05-01"), reports of findings
//! ("I see that it was closed"), words that only describe ("the updated total", "a post"), code
//! blocks, quotations, unchecked boxes, and items under a heading such as "Next steps:". A claim
//! ends with its sentence; a word with a digit is never the noun; singular and plural are one. The
//! same action claimed twice in one message counts once.
//!
//! # When a call matches
//! A call matches if the verb and the noun are among the words of the tool's name. Other words for
//! the same action count too (`delete_file` is a removal, `update_order` can add to an order,
//! `write_file` creates files), and the noun may be in the names or short values of the arguments
//! (`update_issue` with `state: closed` closes the issue). A related verb never crosses from making
//! to changing: "created" after `update_issue` is absent. A call matches whether or not it
//! succeeded.
//!
//! A call is mentioned if every word of three or more letters of its tool's name is in the message,
//! inflected or not. "Your reservation was updated" matches `update_reservation_flights`, but does
//! not mention it, because the word flights is missing.
//!
//! # Formula
//! Per run, with the three counts above:
//!
//! - score = (claimed but absent + present but unclaimed + argument mismatches) / (calls + claimed
//!   actions), at most 1; 0 without any
//! - the gate passes if no write is claimed but absent, and the score is at most
//!   `max_divergence_score` where that is set
//!
//! Over several runs the counts are summed, the score is taken from the sums, and the gate passes
//! only if it passes in every run. A run without a closing message claims nothing and mentions
//! nothing. If no run has a message or a call, there is no evidence. When `expect:` is omitted,
//! `narrative.gate_passed` must be 1.
//!
//! # When not to use it
//! To judge whether the message is a good summary: the gate compares shapes and words, in English.
//! It cannot find a false claim with other verbs ("booked", "refunded"), nor a true paraphrase
//! ("opened a ticket" after `create_issue` is not a claim, "created a ticket" is absent). Where a
//! suite's tools write without such a verb in their names, list them under `mutating_tools`.
//!
//! # In Rust
//! ```
//! use mcptest_gates::narrative::{Narrative, score_narrative};
//! use mcptest_trace::tool_id::KnownServers;
//! use mcptest_trace::trace::{ToolCall, Trace};
//!
//! let trace = Trace {
//!     tool_calls: vec![ToolCall::new(Some("tracker"), "create_issue")],
//!     final_response: Some("I created the issue and deleted the branch. I could also close it.".into()),
//!     ..Trace::default()
//! };
//! let divergence = score_narrative(&Narrative::default(), &trace, &KnownServers::default());
//! assert_eq!(divergence.actions(), ["create_issue", "delete_branch"]);
//! assert_eq!(divergence.claimed_but_absent[0].action, "delete_branch");
//! assert!(divergence.present_but_unclaimed.is_empty());
//! assert!((divergence.score() - 1.0 / 3.0).abs() < 1e-12);
//! assert!(!divergence.passes(None));
//! ```

mod arguments;
mod claims;
mod compare;
mod match_calls;
mod sentences;
mod tokens;
mod verbs;
mod words;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::compare::{
    ArgMismatch, Claimed, Divergence, Unclaimed, divergence_score, score_narrative,
};
use self::match_calls::{Listed, is_mutating_name};
use crate::forecast::{Bounds, Forecast};
use crate::per_run::{List, PerRun};
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, Unit};
use mcptest_trace::detail::Detail;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::ToolCallView;

/// Compares the agent's closing message with the recorded calls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Narrative {
    /// Tools that always count as writes, whatever their names are: `server.tool` or a bare tool
    /// name.
    #[serde(default)]
    pub mutating_tools: Vec<String>,
    /// Tools that never count as writes. A tool in both lists is read-only.
    #[serde(default)]
    pub readonly_tools: Vec<String>,
    /// The highest divergence score that passes, 0.0 to 1.0. Without it only claimed-but-absent
    /// writes fail the gate.
    #[serde(default)]
    #[schemars(schema_with = "fraction")]
    pub max_divergence_score: Option<f64>,
    /// Requests an advisory reading by a model. The gate never consults one: it only adds a note,
    /// and no figure changes.
    #[serde(default)]
    pub llm_assisted: bool,
    /// Assertions on `narrative.*`. Default: `narrative.gate_passed` is 1. With written ones,
    /// `max_divergence_score` still holds.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

fn fraction(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["number", "null"], "minimum": 0, "maximum": 1})
}

impl Narrative {
    /// Returns true if the tool of a call counts as a write.
    #[must_use]
    pub fn is_mutating(&self, call: &ToolCallView<'_>, servers: &KnownServers) -> bool {
        match self.listed(call, servers) {
            Listed::Mutating => true,
            Listed::Readonly => false,
            Listed::Nowhere => is_mutating_name(call.name()),
        }
    }

    fn listed(&self, call: &ToolCallView<'_>, servers: &KnownServers) -> Listed {
        let listed = |names: &[String]| names.iter().any(|name| call.is(name, servers));
        if listed(&self.readonly_tools) {
            Listed::Readonly
        } else if listed(&self.mutating_tools) {
            Listed::Mutating
        } else {
            Listed::Nowhere
        }
    }
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NarrativeAccumulator {
    claimed_but_absent: u64,
    present_but_unclaimed: u64,
    /// Unmentioned calls of tools that write.
    silent_writes: u64,
    arg_mismatch: u64,
    claimed_after_error: u64,
    /// Recorded calls and claimed actions.
    base: u64,
    /// True if a run did not pass.
    failed: bool,
    /// True if a run has a closing message or a call.
    has_evidence: bool,
    runs: PerRun<Divergence>,
}

impl Accumulator for NarrativeAccumulator {
    fn merge(&mut self, other: Self) {
        self.claimed_but_absent += other.claimed_but_absent;
        self.present_but_unclaimed += other.present_but_unclaimed;
        self.silent_writes += other.silent_writes;
        self.arg_mismatch += other.arg_mismatch;
        self.claimed_after_error += other.claimed_after_error;
        self.base += other.base;
        self.failed |= other.failed;
        self.has_evidence |= other.has_evidence;
        self.runs.merge(other.runs);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.runs.renumber(number);
    }
}

/// The detail of the report.
#[derive(Serialize)]
struct NarrativeDetail<'a, Rows> {
    failed_runs: &'a [u64],
    silent_writes: u64,
    max_divergence_score: Option<f64>,
    per_run: Rows,
    #[serde(skip_serializing_if = "Option::is_none")]
    advisory: Option<&'static str>,
}

#[derive(Serialize)]
struct DivergenceRow<'a> {
    index: u64,
    passed: bool,
    divergence_score: f64,
    recorded_calls: u64,
    claimed: &'a [Claimed],
    claimed_but_absent: &'a [Claimed],
    present_but_unclaimed: &'a [Unclaimed],
    arg_mismatch: &'a [ArgMismatch],
    claimed_after_error: &'a [Claimed],
}

/// The remark of a block with `llm_assisted`.
const ADVISORY: &str = "llm_assisted is on; the gate consulted no model, and no model's reading \
                        can change it";

impl Gate for Narrative {
    const BLOCK: &'static str = "narrative";
    const SUMMARY: &'static str =
        "A closing message that claims only what the calls show, and mentions what they did.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "narrative.divergence_score",
            Unit::Fraction,
            "Flagged items over recorded calls plus claimed actions; higher is worse.",
        ),
        TargetInfo::new(
            "narrative.claimed_but_absent",
            Unit::Count,
            "Claimed actions that no call can be.",
        ),
        TargetInfo::new(
            "narrative.present_but_unclaimed",
            Unit::Count,
            "Calls that the message never mentions.",
        ),
        TargetInfo::new(
            "narrative.arg_mismatch",
            Unit::Count,
            "Stated values that no matching call has.",
        ),
        TargetInfo::new(
            "narrative.gate_passed",
            Unit::Flag,
            "1 if every run passes the gate.",
        ),
        TargetInfo::new(
            "narrative.claimed_after_error",
            Unit::Count,
            "Claimed actions whose calls all failed.",
        ),
    ];
    // The ceiling is a field of the block, so it also holds next to written expectations;
    // `defaults` handles both.
    const DEFAULTS_ALWAYS: bool = true;

    fn defaults(&self) -> Vec<Expectation> {
        if self.expect.is_empty() {
            return vec![Expectation::default_of(
                "narrative.gate_passed",
                Matcher::at_least(1),
            )];
        }
        let Some(max) = self.max_divergence_score else {
            return Vec::new();
        };
        let ceiling = WrittenExpectation(json!({"narrative.divergence_score": {"<=": max}}));
        let ceiling = Expectation::compile(&ceiling, "").map(|ceiling| Expectation {
            default: true,
            ..ceiling
        });
        ceiling.into_iter().collect()
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        match self.max_divergence_score {
            Some(max) if !(0.0..=1.0).contains(&max) => vec![Problem::new(
                "/max_divergence_score",
                format!("{max} is not a number from 0.0 to 1.0"),
            )],
            _ => Vec::new(),
        }
    }

    type Accumulator = NarrativeAccumulator;

    fn observe(
        &self,
        accumulator: &mut NarrativeAccumulator,
        context: &Context<'_>,
        run: &Run<'_>,
    ) {
        let divergence = score_narrative(self, run.trace, context.servers);
        let unclaimed = &divergence.present_but_unclaimed;
        let silent_writes = unclaimed.iter().filter(|call| call.mutating);
        accumulator.claimed_but_absent += divergence.claimed_but_absent.len() as u64;
        accumulator.present_but_unclaimed += unclaimed.len() as u64;
        accumulator.silent_writes += silent_writes.count() as u64;
        accumulator.arg_mismatch += divergence.arg_mismatch.len() as u64;
        accumulator.claimed_after_error += divergence.claimed_after_error.len() as u64;
        accumulator.base += divergence.base();
        accumulator.failed |= !divergence.passes(self.max_divergence_score);
        accumulator.has_evidence |= divergence.has_text || divergence.recorded_calls > 0;
        accumulator.runs.insert(run.index, divergence, ());
    }

    fn finish(&self, accumulator: NarrativeAccumulator, _: &Context<'_>) -> Score {
        let NarrativeAccumulator {
            claimed_but_absent: absent,
            present_but_unclaimed: unclaimed,
            silent_writes,
            arg_mismatch: mismatched,
            claimed_after_error: after_error,
            base,
            failed,
            has_evidence,
            runs,
        } = accumulator;
        let value = divergence_score(absent + unclaimed + mismatched, base);
        let mut summary = format!(
            "divergence {value:.2} · {absent} claimed but absent · {unclaimed} unclaimed \
             ({silent_writes} writes) · {mismatched} argument mismatches"
        );
        if after_error > 0 {
            summary.push_str(&format!(" · {after_error} claimed after an error"));
        }
        let mut claims = runs.iter().flat_map(|row| &row.shared.claimed_but_absent);
        let mut mismatches = runs.iter().flat_map(|row| &row.shared.arg_mismatch);
        if let Some(claim) = claims.next() {
            summary.push_str(&format!(
                " · no call for {}: “{}”",
                claim.action, claim.sentence
            ));
        } else if let Some(mismatch) = mismatches.next() {
            summary.push_str(&format!(
                " · {} says {}, the call has {}",
                mismatch.action,
                mismatch.stated,
                mismatch.recorded.join(", ")
            ));
        }
        let failed_runs: Vec<u64> = runs
            .iter()
            .filter(|row| !row.shared.passes(self.max_divergence_score))
            .map(|row| row.index)
            .collect();
        let per_run = List(|| {
            runs.iter().map(|row| {
                let run = row.shared;
                DivergenceRow {
                    index: row.index,
                    passed: run.passes(self.max_divergence_score),
                    divergence_score: run.score(),
                    recorded_calls: run.recorded_calls,
                    claimed: &run.claimed,
                    claimed_but_absent: &run.claimed_but_absent,
                    present_but_unclaimed: &run.present_but_unclaimed,
                    arg_mismatch: &run.arg_mismatch,
                    claimed_after_error: &run.claimed_after_error,
                }
            })
        });
        Score {
            values: vec![
                ("narrative.divergence_score", value.into()),
                ("narrative.claimed_but_absent", absent.into()),
                ("narrative.present_but_unclaimed", unclaimed.into()),
                ("narrative.arg_mismatch", mismatched.into()),
                ("narrative.gate_passed", u8::from(!failed).into()),
                ("narrative.claimed_after_error", after_error.into()),
            ],
            detail: Detail::new(&NarrativeDetail {
                failed_runs: &failed_runs,
                silent_writes,
                max_divergence_score: self.max_divergence_score,
                per_run,
                advisory: self.llm_assisted.then_some(ADVISORY),
            }),
            summary,
            findings: runs
                .iter()
                .flat_map(|row| row.shared.findings(row.index))
                .collect(),
            no_evidence: (!has_evidence)
                .then(|| "there is no closing message and no call".to_owned()),
            ..Score::default()
        }
    }

    fn forecast(&self, accumulator: &NarrativeAccumulator, _: u64) -> Option<Forecast> {
        let count = Bounds::at_least;
        Some(Forecast {
            bounds: vec![
                (
                    "narrative.claimed_but_absent",
                    count(accumulator.claimed_but_absent),
                ),
                (
                    "narrative.present_but_unclaimed",
                    count(accumulator.present_but_unclaimed),
                ),
                ("narrative.arg_mismatch", count(accumulator.arg_mismatch)),
                (
                    "narrative.claimed_after_error",
                    count(accumulator.claimed_after_error),
                ),
                (
                    "narrative.gate_passed",
                    Bounds::between(0, (!accumulator.failed).into()),
                ),
                // Pooled over calls and claims, of which a run can have any number.
                ("narrative.divergence_score", Bounds::fraction(0.0, 1.0)),
            ],
            may_lack_evidence: !accumulator.has_evidence,
        })
    }
}
