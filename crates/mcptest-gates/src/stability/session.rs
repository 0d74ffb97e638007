//! The sub-scores of one run.

use num_bigint::BigUint;
use serde::{Deserialize, Serialize};

use mcptest_numbers::ratio::Ratio;
use mcptest_trace::trace::TraceView;

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

impl Default for SessionScores {
    /// The scores of a run without a course.
    fn default() -> Self {
        Self {
            tool_usage_stability: Ratio::one(),
            response_consistency: Ratio::one(),
            redundancy: Ratio::one(),
            cost_per_progress: Some(Ratio::one()),
        }
    }
}

impl SessionScores {
    /// The sub-score of the number of different tools.
    #[must_use]
    pub fn tool_usage_stability(&self) -> f64 {
        self.tool_usage_stability.to_f64()
    }

    /// The sub-score of the lengths of the assistant's turns.
    #[must_use]
    pub fn response_consistency(&self) -> f64 {
        self.response_consistency.to_f64()
    }

    /// The share of calls that are not repeats.
    #[must_use]
    pub fn redundancy(&self) -> f64 {
        self.redundancy.to_f64()
    }

    /// The sub-score of the tokens per useful call; unknown without a token count.
    #[must_use]
    pub fn cost_per_progress(&self) -> Option<f64> {
        self.cost_per_progress.as_ref().map(Ratio::to_f64)
    }

    /// The lowest of what is known.
    #[must_use]
    pub fn weakest_score(&self) -> f64 {
        self.weakest().to_f64()
    }

    /// The lowest of what is known, without the rest.
    pub(super) fn into_weakest(self) -> Ratio {
        let rest = [self.response_consistency, self.redundancy];
        let rest = rest.into_iter().chain(self.cost_per_progress);
        rest.fold(self.tool_usage_stability, Ord::min)
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

/// The calls of a run, counted.
pub(super) struct DistinctCalls<'a> {
    pub calls: usize,
    /// Different tools.
    pub tools: usize,
    /// Different calls.
    pub distinct: usize,
    /// The tools of calls that were made before, each once, in order.
    pub repeated: Vec<&'a str>,
}

/// The facts of one run that the calls do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionFacts {
    /// The number of the assistant's turns.
    pub turns: u32,
    lengths: Lengths,
    tokens: Option<u64>,
}

/// The lengths of the assistant's turns that have text, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Lengths {
    count: u32,
    sum: u64,
    sum_of_squares: u128,
}

impl SessionFacts {
    pub fn of(trace: &TraceView<'_>) -> Self {
        let mut lengths = Lengths::default();
        let mut turns = 0_u32;
        let assistant = trace.conversation.turns.iter().flatten();
        let assistant = assistant.filter(|turn| turn.role.as_deref() == Some("assistant"));
        for turn in assistant {
            turns = turns.saturating_add(1);
            let length = turn.text().chars().count() as u64;
            if length > 0 {
                lengths.count = lengths.count.saturating_add(1);
                lengths.sum += length;
                lengths.sum_of_squares += u128::from(length).pow(2);
            }
        }
        Self {
            turns,
            lengths,
            tokens: trace.total_tokens(),
        }
    }

    /// The sub-scores of a run with these calls.
    pub fn score(&self, calls: &DistinctCalls<'_>) -> SessionScores {
        let DistinctCalls {
            calls,
            tools,
            distinct,
            ..
        } = *calls;
        if self.turns <= 1 && calls <= 1 {
            return SessionScores::default();
        }
        SessionScores {
            tool_usage_stability: if calls < 2 {
                Ratio::one()
            } else {
                Ratio::new(calls - tools, calls - 1)
            },
            response_consistency: evenness(&self.lengths),
            redundancy: if calls == 0 {
                Ratio::one()
            } else {
                Ratio::new(distinct, calls)
            },
            cost_per_progress: self
                .tokens
                .map(|tokens| cost_score(tokens, distinct as u64)),
        }
    }
}

/// 1 - min(1, deviation / mean), over positive lengths.
fn evenness(lengths: &Lengths) -> Ratio {
    if lengths.count < 2 {
        return Ratio::one();
    }
    // With sum S and sum of squares Q over n lengths: deviation / mean = √(nQ - S²) / S.
    let sum = u128::from(lengths.sum);
    let spread = u128::from(lengths.count) * lengths.sum_of_squares - sum * sum;
    if spread >= sum * sum {
        return Ratio::new(0_u8, 1_u8);
    }
    // The root with 64 more binary digits than a whole number has: exact for a square, and far past
    // a double's last bit otherwise.
    let root = (BigUint::from(spread) << 128_u8).sqrt();
    let sum = BigUint::from(sum) << 64_u8;
    Ratio::new(&sum - root, sum)
}

fn cost_score(tokens: u64, distinct: u64) -> Ratio {
    let allowed = u128::from(TARGET_TOKENS) * u128::from(distinct);
    if u128::from(tokens) <= allowed {
        Ratio::one()
    } else {
        Ratio::new(BigUint::from(allowed), BigUint::from(tokens))
    }
}
