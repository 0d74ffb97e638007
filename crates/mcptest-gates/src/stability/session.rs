//! Steadiness within one run.

use std::collections::BTreeSet;

use num_bigint::BigUint;
use serde_json::Value;

use mcptest_json::canonical;
use mcptest_numbers::ratio::Ratio;
use mcptest_trace::trace::{ToolCall, Trace, Turn};

/// Tokens that one useful call may cost before the score sinks.
pub const TARGET_TOKENS: u64 = 2000;

/// The four sub-scores of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionScores {
    pub(super) tool_usage_stability: Ratio,
    pub(super) response_consistency: Ratio,
    pub(super) redundancy: Ratio,
    pub(super) cost_per_progress: Option<Ratio>,
}

impl SessionScores {
    /// How few different tools the calls use.
    #[must_use]
    pub fn tool_usage_stability(&self) -> f64 {
        self.tool_usage_stability.to_f64()
    }

    /// How alike in length the assistant's turns are.
    #[must_use]
    pub fn response_consistency(&self) -> f64 {
        self.response_consistency.to_f64()
    }

    /// The share of calls that are no repeats.
    #[must_use]
    pub fn redundancy(&self) -> f64 {
        self.redundancy.to_f64()
    }

    /// How little a useful call costs; unknown where nobody counted tokens.
    #[must_use]
    pub fn cost_per_progress(&self) -> Option<f64> {
        self.cost_per_progress.as_ref().map(Ratio::to_f64)
    }

    /// The lowest of what is known.
    #[must_use]
    pub fn weakest_score(&self) -> f64 {
        self.weakest().to_f64()
    }

    pub(super) fn weakest(&self) -> &Ratio {
        [
            &self.tool_usage_stability,
            &self.response_consistency,
            &self.redundancy,
        ]
        .into_iter()
        .chain(&self.cost_per_progress)
        .min()
        .unwrap_or(&self.redundancy)
    }
}

/// Scores one run.
#[must_use]
pub fn score_session(trace: &Trace) -> SessionScores {
    let calls = &trace.tool_calls;
    let turns: Vec<&Turn> = assistant_turns(trace).collect();
    if turns.len() <= 1 && calls.len() <= 1 {
        return SessionScores {
            tool_usage_stability: Ratio::one(),
            response_consistency: Ratio::one(),
            redundancy: Ratio::one(),
            cost_per_progress: Some(Ratio::one()),
        };
    }
    let total = calls.len();
    let tools: BTreeSet<_> = calls
        .iter()
        .map(|call| (&call.server, name_key(call)))
        .collect();
    let distinct: BTreeSet<_> = calls
        .iter()
        .map(|call| (&call.server, name_key(call), args_key(call)))
        .collect();
    let lengths: Vec<u64> = turns
        .iter()
        .map(|turn| turn.text().chars().count() as u64)
        .filter(|length| *length > 0)
        .collect();
    SessionScores {
        tool_usage_stability: if total < 2 {
            Ratio::one()
        } else {
            Ratio::new(total - tools.len(), total - 1)
        },
        response_consistency: evenness(&lengths),
        redundancy: if total == 0 {
            Ratio::one()
        } else {
            Ratio::new(distinct.len(), total)
        },
        cost_per_progress: trace
            .total_tokens()
            .map(|tokens| thrift(tokens, distinct.len() as u64)),
    }
}

pub(super) fn assistant_turns(trace: &Trace) -> impl Iterator<Item = &Turn> {
    trace
        .conversation
        .turns
        .iter()
        .flatten()
        .filter(|turn| turn.role.as_deref() == Some("assistant"))
}

/// A malformed name stays different from another malformed name.
pub(super) fn name_key(call: &ToolCall) -> String {
    canonical(&call.raw_name.to_value())
}

pub(super) fn args_key(call: &ToolCall) -> String {
    canonical(call.args().unwrap_or(&Value::Null))
}

/// 1 - min(1, deviation / mean), over positive lengths.
fn evenness(lengths: &[u64]) -> Ratio {
    if lengths.len() < 2 {
        return Ratio::one();
    }
    // With sum S and sum of squares Q over n lengths: deviation / mean = √(nQ - S²) / S.
    let sum: u128 = lengths.iter().map(|length| u128::from(*length)).sum();
    let squares: u128 = lengths
        .iter()
        .map(|length| u128::from(*length).pow(2))
        .sum();
    let spread = lengths.len() as u128 * squares - sum * sum;
    if spread >= sum * sum {
        return Ratio::new(0_u8, 1_u8);
    }
    // The root with 64 more binary digits than a whole number has: exact for a square, and far past
    // a double's last bit otherwise.
    let root = (BigUint::from(spread) << 128_u8).sqrt();
    let sum = BigUint::from(sum) << 64_u8;
    Ratio::new(&sum - root, sum)
}

fn thrift(tokens: u64, distinct: u64) -> Ratio {
    let allowed = u128::from(TARGET_TOKENS) * u128::from(distinct);
    if u128::from(tokens) <= allowed {
        Ratio::one()
    } else {
        Ratio::new(BigUint::from(allowed), BigUint::from(tokens))
    }
}
