//! What the figures can still become.

use super::{
    Reliability, decay_entry, pass_at_k_unbiased, pass_hat_k_unbiased, percent,
    variance_amplification,
};
use crate::outlook::{Imagined, Reach, Reaches};

/// A row of outcomes, as far as the figures need it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub runs: u64,
    pub passes: u64,
    /// Run i weighs i: the weights of the passes.
    pub passed_weight: u64,
}

impl Tally {
    /// As if these runs had been made.
    pub fn after(self, next: Imagined) -> Self {
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

    /// The swing is largest at an even split and falls towards both ends.
    pub fn swing(self, remaining: u64) -> Reach {
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
        Reach::between(ends[0].min(ends[1]), high)
    }
}

fn triangle(n: u64) -> u64 {
    n * (n + 1) / 2
}

impl Reliability {
    /// The figures that a pass only raises and a failure only lowers: between all outstanding runs
    /// failing and all passing. Fewer of them lie in between.
    pub(super) fn monotone_reach(&self, tally: Tally, remaining: u64) -> Reaches {
        let end = |good| {
            tally.after(Imagined {
                runs: remaining,
                good,
            })
        };
        let (worst, best) = (end(false), end(true));
        let any = |tally: Tally| if tally.passes > 0 { 100 } else { 0 };
        let hat = |tally: Tally| {
            if tally.runs == 0 {
                0
            } else {
                decay_entry(tally.passes, tally.runs)
            }
        };
        let mut reach = vec![
            (
                "reliability.pass_at_k",
                Reach::between(any(worst), any(best)),
            ),
            (
                "reliability.passhat_k",
                Reach::between(hat(worst), hat(best)),
            ),
            (
                "reliability.graceful_degradation",
                Reach::between(worst.graceful_degradation(), best.graceful_degradation()),
            ),
        ];
        for (target, estimator) in [
            (
                "reliability.pass_at_k_unbiased",
                pass_at_k_unbiased as fn(u64, u64, u64) -> Option<f64>,
            ),
            ("reliability.passhat_k_unbiased", pass_hat_k_unbiased),
        ] {
            let rate =
                |tally: Tally| estimator(tally.runs, tally.passes, self.k.unwrap_or(tally.runs));
            if let (Some(low), Some(high)) = (rate(worst), rate(best)) {
                let bounds = Reach::fraction(low, high);
                // If runs break, there may be fewer than k in the end.
                let enough = self.k.is_none_or(|k| k <= tally.runs);
                reach.push((target, if enough { bounds } else { bounds.or_absent() }));
            }
        }
        reach
    }
}
