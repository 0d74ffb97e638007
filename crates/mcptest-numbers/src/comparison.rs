//! Comparison of two samples: intervals and tests for the difference of two rates and of two means.
//!
//! | function | what |
//! |---|---|
//! | [`newcombe`] | interval of a difference of rates (Newcombe 1998, method 10: hybrid score) |
//! | [`fisher`] | Fisher's exact test of a 2×2 table, two-sided |
//! | [`benjamini_hochberg`] | p-values adjusted for many tests (false discovery rate) |
//! | [`bootstrap`] | interval and p-value of a difference of means, resampled with a fixed seed |
//! | [`runs_needed`] | runs per side that would make an observed difference significant |
//!
//! The functions use `libm`, basic arithmetic and a fixed generator only, so they give the same
//! bits on every platform.
//!
//! ```
//! use mcptest_numbers::comparison::{Z_EXACT_95, fisher, newcombe};
//! // 56 of 70 against 48 of 80: the first example in Newcombe's table II.
//! let interval = newcombe((56, 70), (48, 80), Z_EXACT_95);
//! assert!((interval.lower - 0.0524).abs() < 5e-5 && (interval.upper - 0.3339).abs() < 5e-5);
//! assert!(fisher((56, 70), (48, 80)) < 0.05);
//! ```

use crate::random::SplitMix64;
use crate::statistics::{Interval, wilson};

/// The critical value of the standard normal distribution for 95 %, two-sided, in full.
pub const Z_EXACT_95: f64 = 1.959_963_984_540_054;

/// Successes and trials.
pub type Rate = (u64, u64);

/// Newcombe's interval of the difference `first` minus `second`, without continuity correction.
///
/// With Wilson's intervals l₁..u₁ and l₂..u₂ of the rates p₁ and p₂, the bounds are
/// p₁ - p₂ - √((p₁-l₁)² + (u₂-p₂)²) and p₁ - p₂ + √((u₁-p₁)² + (p₂-l₂)²). Without trials on one
/// side it is -1 to 1.
#[must_use]
pub fn newcombe(first: Rate, second: Rate, z: f64) -> Interval {
    let (Some(one), Some(two)) = (rate(first), rate(second)) else {
        return Interval {
            lower: -1.0,
            upper: 1.0,
        };
    };
    let (a, b) = (wilson(first.0, first.1, z), wilson(second.0, second.1, z));
    let difference = one - two;
    Interval {
        lower: (difference - length(one - a.lower, b.upper - two)).max(-1.0),
        upper: (difference + length(a.upper - one, two - b.lower)).min(1.0),
    }
}

fn rate((successes, trials): Rate) -> Option<f64> {
    (trials > 0).then(|| successes as f64 / trials as f64)
}

fn length(one: f64, two: f64) -> f64 {
    (one * one + two * two).sqrt()
}

/// Fisher's exact test, two-sided: the probability, if both rates are the same, of a table that is
/// at most as probable as the observed one. 1 if one side has no trials.
#[must_use]
pub fn fisher(first: Rate, second: Rate) -> f64 {
    let ((a, n), (b, m)) = (first, second);
    if n == 0 || m == 0 {
        return 1.0;
    }
    let successes = a + b;
    let (least, most) = (successes.saturating_sub(m), successes.min(n));
    let scale = log_choose(n + m, successes);
    let log = |k: u64| log_choose(n, k) + log_choose(m, successes - k) - scale;
    // Tables of the same probability may differ in the last bits; as in R, a relative 1e-7 is the
    // same.
    let limit = log(a) + 1e-7;
    let sum = (least..=most)
        .map(log)
        .filter(|probability| *probability <= limit)
        .map(libm::exp)
        .sum::<f64>();
    sum.min(1.0)
}

/// The logarithm of the number of ways to choose `k` of `n`.
fn log_choose(n: u64, k: u64) -> f64 {
    let log_factorial = |n: u64| libm::lgamma(n as f64 + 1.0);
    log_factorial(n) - log_factorial(k) - log_factorial(n - k)
}

/// The p-values adjusted by Benjamini and Hochberg (1995), in the order given.
///
/// With the p-values in rising order, the adjusted i-th of m is the least p·m/j over all j ≥ i, at
/// most 1.
#[must_use]
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, two| p_values[*one].total_cmp(&p_values[*two]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 1.0_f64;
    for (place, at) in order.iter().enumerate().rev() {
        let scaled = p_values[*at] * p_values.len() as f64 / (place + 1) as f64;
        least = least.min(scaled);
        adjusted[*at] = least;
    }
    adjusted
}

/// The smallest sample of a bootstrap.
const MIN_SAMPLE: usize = 5;

/// The number of resamples of a bootstrap.
const RESAMPLES: usize = 2000;
/// The largest sample that is resampled as a whole; of a larger one, evenly spaced values are.
const MAX_SAMPLE: usize = 2000;
/// The seed: the same samples give the same bounds.
const SEED: u64 = 0x6d63_7074_6573_7431;

/// A difference of means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanDifference {
    /// The mean of the first sample minus that of the second.
    pub difference: f64,
    /// The percentile interval at 95 %.
    pub interval: Interval,
    /// The two-sided p-value of no difference: twice the smaller part of the resamples on either
    /// side of 0, never below 1/2000.
    pub p_value: f64,
}

/// Compares the means of two samples by a percentile bootstrap with a fixed seed. `None` unless
/// both samples have at least five finite values: fewer vary too little among resamples.
#[must_use]
pub fn bootstrap(first: &[f64], second: &[f64]) -> Option<MeanDifference> {
    if first.len() < MIN_SAMPLE || second.len() < MIN_SAMPLE {
        return None;
    }
    if !first.iter().chain(second).all(|value| value.is_finite()) {
        return None;
    }
    let mut generator = SplitMix64::new(SEED);
    let (one, two) = (thinned(first), thinned(second));
    let mut differences: Vec<f64> = (0..RESAMPLES)
        .map(|_| resampled(&one, &mut generator) - resampled(&two, &mut generator))
        .collect();
    differences.sort_by(f64::total_cmp);
    let difference = mean(first) - mean(second);
    let quantile = |share: f64| differences[(share * (RESAMPLES - 1) as f64).round() as usize];
    let interval = Interval {
        lower: quantile(0.025).min(difference),
        upper: quantile(0.975).max(difference),
    };
    let part = |count: usize| (count as f64 / RESAMPLES as f64).max(0.5 / RESAMPLES as f64);
    let below = differences.iter().filter(|value| **value <= 0.0).count();
    let above = differences.iter().filter(|value| **value >= 0.0).count();
    Some(MeanDifference {
        difference,
        interval,
        p_value: (2.0 * part(below.min(above))).min(1.0),
    })
}

fn thinned(sample: &[f64]) -> Vec<f64> {
    let size = sample.len().min(MAX_SAMPLE);
    (0..size)
        .map(|at| sample[at * sample.len() / size])
        .collect()
}

fn mean(sample: &[f64]) -> f64 {
    // Relative to the first value, so that equal values have exactly that mean.
    let first = sample[0];
    first + sample.iter().map(|value| value - first).sum::<f64>() / sample.len() as f64
}

fn resampled(sample: &[f64], generator: &mut SplitMix64) -> f64 {
    let first = sample[0];
    let size = sample.len() as u64;
    let sum: f64 = (0..size)
        .map(|_| sample[generator.below(size) as usize] - first)
        .sum();
    first + sum / size as f64
}

/// The most runs that are worth a recommendation.
const MAX_RUNS: u64 = 10_000;

/// The number of runs per side at which the observed rates, if they stay, are significantly
/// different: a number at which Fisher's p is at most `alpha`, and with one run less it is not.
/// `None` if the rates are equal or more than 10,000 runs would be needed.
#[must_use]
pub fn runs_needed(first: Rate, second: Rate, alpha: f64) -> Option<u64> {
    let (one, two) = (rate(first)?, rate(second)?);
    if one.total_cmp(&two).is_eq() {
        return None;
    }
    let decides = |runs: u64| {
        let scaled = |rate: f64| ((rate * runs as f64).round() as u64, runs);
        fisher(scaled(one), scaled(two)) <= alpha
    };
    // Rounding makes the p-value jump a little, so the search doubles first, then halves.
    let mut high = 2;
    while !decides(high) {
        high *= 2;
        if high > MAX_RUNS {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if decides(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The eight examples of Newcombe 1998, table II, method 10.
    #[test]
    fn the_table_of_newcombe() {
        for (first, second, lower, upper) in [
            ((56, 70), (48, 80), 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.1705, 0.8090),
            ((6, 7), (2, 7), 0.0582, 0.8062),
            ((5, 56), (0, 29), -0.0381, 0.1926),
            ((0, 10), (0, 20), -0.1611, 0.2775),
            ((0, 10), (0, 10), -0.2775, 0.2775),
            ((10, 10), (0, 20), 0.6791, 1.0000),
            ((10, 10), (0, 10), 0.6075, 1.0000),
        ] {
            let found = newcombe(first, second, Z_EXACT_95);
            assert!(
                (found.lower - lower).abs() < 6e-5 && (found.upper - upper).abs() < 6e-5,
                "{first:?} {second:?}: {found:?}"
            );
        }
    }

    /// Fisher's lady tasting tea, and tables whose p-values R prints.
    #[test]
    fn the_exact_test_agrees_with_worked_examples() {
        for (first, second, wanted) in [
            ((3, 4), (1, 4), 0.485_714_285_714),
            ((4, 4), (0, 4), 0.028_571_428_571),
            ((1, 10), (11, 14), 0.002_759_456_185),
            ((0, 5), (0, 5), 1.0),
            ((5, 5), (5, 5), 1.0),
        ] {
            let found = fisher(first, second);
            assert!(
                (found - wanted).abs() < 1e-9,
                "{first:?} {second:?}: {found}"
            );
        }
        assert_eq!(fisher((0, 0), (3, 4)), 1.0);
    }

    /// The fifteen p-values of Benjamini and Hochberg 1995: four are rejected at 0.05.
    #[test]
    fn the_example_of_benjamini_and_hochberg() {
        let p_values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let adjusted = benjamini_hochberg(&p_values);
        assert_eq!(adjusted.iter().filter(|p| **p <= 0.05).count(), 4);
        assert!((adjusted[3] - 0.035_625).abs() < 1e-12);
        assert!(benjamini_hochberg(&[]).is_empty());
        assert_eq!(benjamini_hochberg(&[0.04]), [0.04]);
    }

    #[test]
    fn a_bootstrap_finds_a_shift_and_no_other() {
        let low: Vec<f64> = (0..40).map(|at| f64::from(at % 7)).collect();
        let high: Vec<f64> = low.iter().map(|value| value + 5.0).collect();
        let shift = bootstrap(&high, &low).unwrap();
        assert!((shift.difference - 5.0).abs() < 1e-12);
        assert!(
            shift.interval.lower > 0.0 && shift.p_value <= 0.001,
            "{shift:?}"
        );
        let none = bootstrap(&low, &low).unwrap();
        assert!(none.interval.lower < 0.0 && none.interval.upper > 0.0);
        assert!(none.p_value > 0.5, "{none:?}");
        assert_eq!(bootstrap(&high, &low), bootstrap(&high, &low));
        let same = bootstrap(&[3.1; 5], &[3.1; 6]).unwrap();
        assert_eq!((same.difference, same.p_value), (0.0, 1.0));
        assert!(bootstrap(&[1.0; 4], &low).is_none());
        assert!(bootstrap(&[1.0, 2.0, 3.0, 4.0, f64::NAN], &low).is_none());
    }

    #[test]
    fn enough_runs_are_enough_and_fewer_are_not() {
        // scipy 1.17.1: p is 0.0816 for 34 and 27 of 38, and 0.0475 for 35 and 27 of 39.
        assert_eq!(runs_needed((9, 10), (7, 10), 0.05), Some(39));
        assert!(fisher((34, 38), (27, 38)) > 0.05 && fisher((35, 39), (27, 39)) <= 0.05);
        assert_eq!(runs_needed((3, 3), (0, 3), 0.05), Some(4));
        assert_eq!(runs_needed((5, 10), (50, 100), 0.05), None);
        assert_eq!(runs_needed((0, 0), (1, 2), 0.05), None);
    }

    fn sample() -> impl Strategy<Value = Rate> {
        (1_u64..300).prop_flat_map(|trials| (0..=trials, Just(trials)))
    }

    proptest! {
        #[test]
        fn an_interval_holds_the_difference_and_mirrors(one in sample(), two in sample()) {
            let found = newcombe(one, two, Z_EXACT_95);
            let difference = one.0 as f64 / one.1 as f64 - two.0 as f64 / two.1 as f64;
            prop_assert!(found.lower <= difference + 1e-12 && difference <= found.upper + 1e-12);
            prop_assert!(found.lower >= -1.0 && found.upper <= 1.0);
            let mirrored = newcombe(two, one, Z_EXACT_95);
            prop_assert!((mirrored.lower + found.upper).abs() < 1e-12);
        }

        #[test]
        fn the_exact_test_is_symmetric(one in sample(), two in sample()) {
            let p = fisher(one, two);
            prop_assert!(p > 0.0 && p <= 1.0);
            prop_assert!((p - fisher(two, one)).abs() < 1e-9);
            let failures = |(successes, trials): Rate| (trials - successes, trials);
            prop_assert!((p - fisher(failures(one), failures(two))).abs() < 1e-9);
        }

        #[test]
        fn adjusted_values_keep_the_order(values in prop::collection::vec(0.0..=1.0_f64, 0..30)) {
            let adjusted = benjamini_hochberg(&values);
            for (at, p) in values.iter().enumerate() {
                prop_assert!(adjusted[at] >= *p - 1e-15 && adjusted[at] <= 1.0);
                for (other, q) in values.iter().enumerate() {
                    prop_assert!(p > q || adjusted[at] <= adjusted[other] + 1e-15);
                }
            }
        }
    }
}
