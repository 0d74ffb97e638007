//! The bounds of the figures while runs are outstanding.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Reliability, decay_entry, pass_at_k_unbiased, pass_hat_k_unbiased, percent,
    variance_amplification,
};
use crate::forecast::{Bounds, BoundsOf, HypotheticalRuns};

/// The sums over a row of outcomes, and its decay.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub sums: Sums,
    decay: Arc<Vec<Value>>,
}

impl Progress {
    /// Adds the outcome of the next run.
    pub fn push(&mut self, passed: bool) {
        self.sums = self.sums.after(HypotheticalRuns {
            runs: 1,
            good: passed,
        });
        let entry = decay_entry(self.sums.passes, self.sums.runs);
        Arc::make_mut(&mut self.decay).push(entry.into());
    }

    pub fn runs(&self) -> u64 {
        self.sums.runs
    }

    /// The decay only grows at its end.
    pub fn decay(&self) -> Bounds {
        Bounds::Grows(Arc::clone(&self.decay))
    }
}

/// The sums over a row of outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub runs: u64,
    pub passes: u64,
    /// Run i weighs i: the weights of the passes.
    pub passed_weight: u64,
}

impl Sums {
    /// The sums after these runs.
    pub fn after(self, next: HypotheticalRuns) -> Self {
        let runs = self.runs + next.runs;
        if !next.good {
            return Self { runs, ..self };
        }
        Self {
            runs,
            passes: self.passes + next.runs,
            passed_weight: self.passed_weight + triangle(runs) - triangle(self.runs),
        }
    }

    fn graceful_degradation(self) -> u64 {
        percent::down(self.passed_weight, triangle(self.runs)).unwrap_or(0)
    }

    /// The bounds of the swing, which is largest at an even split and falls towards both ends.
    pub fn swing(self, remaining: u64) -> Bounds {
        let runs = self.runs + remaining;
        let (fewest, most) = (self.passes, self.passes + remaining);
        let ends = [
            variance_amplification(fewest, runs),
            variance_amplification(most, runs),
        ];
        let even_split = 2 * fewest <= runs && runs <= 2 * most;
        let high = if even_split {
            100
        } else {
            ends[0].max(ends[1])
        };
        Bounds::between(ends[0].min(ends[1]), high)
    }
}

fn triangle(n: u64) -> u64 {
    n * (n + 1) / 2
}

impl Reliability {
    /// The bounds of the figures that a pass only raises and a failure only lowers: those of all
    /// outstanding runs failing and of all passing.
    pub(super) fn monotone_bounds(&self, sums: Sums, remaining: u64) -> BoundsOf {
        let end = |good| {
            sums.after(HypotheticalRuns {
                runs: remaining,
                good,
            })
        };
        let (worst, best) = (end(false), end(true));
        let any = |sums: Sums| if sums.passes > 0 { 100 } else { 0 };
        let hat = |sums: Sums| {
            if sums.runs == 0 {
                0
            } else {
                decay_entry(sums.passes, sums.runs)
            }
        };
        let mut bounds = vec![
            (
                "reliability.pass_at_k",
                Bounds::between(any(worst), any(best)),
            ),
            (
                "reliability.passhat_k",
                Bounds::between(hat(worst), hat(best)),
            ),
            (
                "reliability.graceful_degradation",
                Bounds::between(worst.graceful_degradation(), best.graceful_degradation()),
            ),
        ];
        for (target, estimator) in [
            (
                "reliability.pass_at_k_unbiased",
                pass_at_k_unbiased as fn(u64, u64, u64) -> Option<f64>,
            ),
            ("reliability.passhat_k_unbiased", pass_hat_k_unbiased),
        ] {
            let rate = |sums: Sums| estimator(sums.runs, sums.passes, self.k.unwrap_or(sums.runs));
            if let (Some(low), Some(high)) = (rate(worst), rate(best)) {
                let rates = Bounds::fraction(low, high);
                // If runs end with an error, fewer than k may be left.
                let enough = self.k.is_none_or(|k| k <= sums.runs);
                bounds.push((target, if enough { rates } else { rates.or_absent() }));
            }
        }
        bounds
    }
}
