//! Intervals for a rate that was observed in a number of trials.
//!
//! | interval | property |
//! |---|---|
//! | Wald | the textbook ± figure, suitable for planning; inaccurate near 0 and 1, so it is never shown alone |
//! | Wilson ([`wilson`]) | close to its confidence on average, always within 0..1 |
//! | Clopper-Pearson ([`clopper_pearson`]) | exact: never below its confidence, so wider |
//!
//! The functions use `libm` and basic arithmetic only, so they give the same bits on every
//! platform. A whole percent that a gate compares ([`certified_percent`]) is computed in integers
//! wherever doubles are not exact enough.
//!
//! # Formulas
//! With s successes in n trials and p = s/n, Wilson's bounds are (p + z²/2n ± z √(p(1-p)/n +
//! z²/4n²)) / (1 + z²/n).
//!
//! The one-sided Clopper-Pearson lower bound at level α is the rate at which s or more successes
//! still happen with probability α: the solution of P(X ≥ s) = α for X binomial(n, ·), and 0 for s
//! = 0. The upper bound mirrors it. The two-sided interval takes both at α/2.
//!
//! ```
//! use mcptest_numbers::statistics::{Z_95, certified_percent, wilson};
//! let interval = wilson(9, 10, Z_95);
//! assert!((interval.lower - 0.596).abs() < 0.001 && (interval.upper - 0.982).abs() < 0.001);
//! // One perfect run certifies very little.
//! assert_eq!(certified_percent(1, 1), 5);
//! assert_eq!(certified_percent(59, 59), 95);
//! ```

use num_bigint::BigUint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The critical value of the standard normal distribution for 95 %, rounded as in the
/// specification.
pub const Z_95: f64 = 1.96;

/// Bounds on a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The lower bound, at least 0.
    pub lower: f64,
    /// The upper bound, at most 1.
    pub upper: f64,
}

impl Interval {
    /// The interval without any trial: 0 to 1.
    pub const UNKNOWN: Self = Self {
        lower: 0.0,
        upper: 1.0,
    };

    /// Half of the distance between the bounds.
    #[must_use]
    pub fn half_width(self) -> f64 {
        (self.upper - self.lower) / 2.0
    }
}

/// The confidence level of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    percent: f64,
    z_thousandths: u32,
}

impl Confidence {
    /// A level in percent, from 50 to 99.99.
    ///
    /// The critical value is rounded to three decimals, as tables print it: 1.645 for 90, 1.96 for
    /// 95, 2.576 for 99.
    #[must_use]
    pub fn percent(percent: f64) -> Option<Self> {
        (50.0..=99.99).contains(&percent).then(|| {
            // The first thousandth whose rounding interval reaches up to the level.
            let covers = |thousandths: u32| {
                libm::erf((f64::from(thousandths) + 0.5) / 1000.0 / std::f64::consts::SQRT_2)
                    * 100.0
                    >= percent
            };
            let (mut low, mut high) = (0, 8000);
            while low < high {
                let middle = (low + high) / 2;
                if covers(middle) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            Self {
                percent,
                z_thousandths: low,
            }
        })
    }

    /// The level as given.
    #[must_use]
    pub fn as_percent(self) -> f64 {
        self.percent
    }

    /// The critical value in thousandths: 1960 for 95 %.
    #[must_use]
    pub fn z_thousandths(self) -> u32 {
        self.z_thousandths
    }

    /// The critical value.
    #[must_use]
    pub fn z(self) -> f64 {
        f64::from(self.z_thousandths) / 1000.0
    }

    /// The error probability, both sides together.
    #[must_use]
    pub fn alpha(self) -> f64 {
        (100.0 - self.percent) / 100.0
    }
}

/// Wilson's score interval.
#[must_use]
pub fn wilson(successes: u64, trials: u64, z: f64) -> Interval {
    if trials == 0 {
        return Interval::UNKNOWN;
    }
    let n = trials as f64;
    let rate = successes as f64 / n;
    let square = z * z;
    let middle = rate + square / (2.0 * n);
    let spread = z * (rate * (1.0 - rate) / n + square / (4.0 * n * n)).sqrt();
    let scale = 1.0 + square / n;
    Interval {
        // At the ends the two terms are equal, but doubles may differ in the last bit.
        lower: if successes == 0 {
            0.0
        } else {
            ((middle - spread) / scale).max(0.0)
        },
        upper: if successes == trials {
            1.0
        } else {
            ((middle + spread) / scale).min(1.0)
        },
    }
}

/// The exact interval, two-sided: each bound is off with probability at most half of `alpha`.
#[must_use]
pub fn clopper_pearson(successes: u64, trials: u64, alpha: f64) -> Interval {
    Interval {
        lower: clopper_pearson_lower(successes, trials, alpha / 2.0),
        upper: 1.0 - clopper_pearson_lower(trials.saturating_sub(successes), trials, alpha / 2.0),
    }
}

/// The exact lower bound, one-sided: the true rate is below it with probability at most `alpha`.
#[must_use]
pub fn clopper_pearson_lower(successes: u64, trials: u64, alpha: f64) -> f64 {
    if successes == 0 || trials == 0 {
        return 0.0;
    }
    if successes >= trials {
        return libm::exp(libm::log(alpha) / trials as f64);
    }
    // The tail grows with the rate, and at the observed rate it is far above any alpha.
    let (mut low, mut high) = (0.0, successes as f64 / trials as f64);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return low;
        }
        if upper_tail(successes, trials, middle) <= alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The exact one-sided lower bound at 95 % (α = 0.05) in whole percent, rounded down.
///
/// m percent are certified if and only if `successes` or more of `trials` happen with probability
/// at most 0.05 at a true rate of m/100. Where doubles are not exact enough, the comparison uses
/// integers, so one success in one trial gives 5 and not 4.
#[must_use]
pub fn certified_percent(successes: u64, trials: u64) -> u64 {
    if successes == 0 || trials == 0 {
        return 0;
    }
    let successes = successes.min(trials);
    let (mut certified, mut refuted) = (0, 100);
    while refuted - certified > 1 {
        let percent = (certified + refuted) / 2;
        if is_certified(successes, trials, percent) {
            certified = percent;
        } else {
            refuted = percent;
        }
    }
    certified
}

/// The exact one-sided upper bound at 95 % (α = 0.05) in whole percent, rounded up. Without any
/// trial it is 100.
///
/// It mirrors [`certified_percent`]: a rate of s in n is at most m percent if and only if the rate
/// of the other n - s is at least 100 - m.
///
/// ```
/// use mcptest_numbers::statistics::upper_percent;
/// assert_eq!([10, 20, 30, 59, 299].map(|trials| upper_percent(0, trials)), [26, 14, 10, 5, 1]);
/// assert_eq!([upper_percent(1, 20), upper_percent(1, 59), upper_percent(2, 20)], [22, 8, 29]);
/// assert_eq!([upper_percent(0, 0), upper_percent(5, 5)], [100, 100]);
/// ```
#[must_use]
pub fn upper_percent(successes: u64, trials: u64) -> u64 {
    100 - certified_percent(trials.saturating_sub(successes), trials)
}

fn is_certified(successes: u64, trials: u64, percent: u64) -> bool {
    let tail = upper_tail(successes, trials, percent as f64 / 100.0);
    // The tail is accurate to about 1e-13; this margin is more than a thousand times that.
    match (u32::try_from(successes), u32::try_from(trials)) {
        (Ok(successes), Ok(trials)) if (tail - 0.05).abs() < 1e-9 => {
            is_certified_exactly(successes, trials, percent)
        }
        _ => tail <= 0.05,
    }
}

/// 20 Σ_{i ≥ s} C(n,i) m^i (100-m)^(n-i) ≤ 100^n, for 0 < m < 100 and 0 < s ≤ n.
fn is_certified_exactly(successes: u32, trials: u32, percent: u64) -> bool {
    let mut term = BigUint::from(percent).pow(trials);
    let mut tail = term.clone();
    for i in (successes + 1..=trials).rev() {
        // From the term of i to that of i - 1; both are integers, so the division is exact.
        term = term * i * (100 - percent) / (trials - i + 1) / percent;
        tail += &term;
    }
    tail * 20_u8 <= BigUint::from(100_u8).pow(trials)
}

/// P(X ≥ `least`) for X binomial(`trials`, `rate`).
#[must_use]
pub fn upper_tail(least: u64, trials: u64, rate: f64) -> f64 {
    if least == 0 {
        return 1.0;
    }
    if least > trials || rate <= 0.0 {
        return 0.0;
    }
    if rate >= 1.0 {
        return 1.0;
    }
    // Terms shrink with the distance from the middle, so the sum ends where they are negligible.
    let odds = rate / (1.0 - rate);
    let n = trials as f64;
    if least as f64 > n * rate {
        let mut term = binomial(least, trials, rate);
        let mut sum = term;
        for i in least..trials {
            term *= (n - i as f64) / (i as f64 + 1.0) * odds;
            sum += term;
            if term < sum * 1e-18 {
                break;
            }
        }
        sum.min(1.0)
    } else {
        let mut term = binomial(least - 1, trials, rate);
        let mut sum = term;
        for i in (1..least).rev() {
            term *= i as f64 / (n - i as f64 + 1.0) / odds;
            sum += term;
            if term < sum * 1e-18 {
                break;
            }
        }
        (1.0 - sum).max(0.0)
    }
}

/// P(X = `successes`), by Loader's saddle point method: the large parts of the logarithms cancel
/// algebraically instead of in doubles.
fn binomial(successes: u64, trials: u64, rate: f64) -> f64 {
    let n = trials as f64;
    let x = successes as f64;
    if successes == 0 {
        return libm::exp(n * libm::log1p(-rate));
    }
    if successes == trials {
        return libm::exp(n * libm::log(rate));
    }
    let exponent = stirling_error(trials)
        - stirling_error(successes)
        - stirling_error(trials - successes)
        - deviance(x, n * rate)
        - deviance(n - x, n * (1.0 - rate));
    let spread = libm::log(std::f64::consts::TAU) + libm::log(x) + libm::log1p(-x / n);
    libm::exp(exponent - spread / 2.0)
}

/// ln n! minus Stirling's formula.
fn stirling_error(n: u64) -> f64 {
    const EXACT: [f64; 16] = [
        0.0,
        0.081_061_466_795_327_26,
        0.041_340_695_955_409_3,
        0.027_677_925_684_998_34,
        0.020_790_672_103_765_093,
        0.016_644_691_189_821_193,
        0.013_876_128_823_070_748,
        0.011_896_709_945_891_77,
        0.010_411_265_261_972_096,
        0.009_255_462_182_712_733,
        0.008_330_563_433_362_87,
        0.007_573_675_487_951_841,
        0.006_942_840_107_209_53,
        0.006_408_994_188_004_207,
        0.005_951_370_112_758_848,
        0.005_554_733_551_962_801,
    ];
    if let Some(exact) = usize::try_from(n).ok().and_then(|n| EXACT.get(n)) {
        return *exact;
    }
    let n = n as f64;
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0
            - (1.0 / 1260.0 - (1.0 / 1680.0 - (1.0 / 1188.0) / square) / square) / square)
            / square)
        / n
}

/// x ln(x/m) + m - x, without cancellation where x is close to m.
fn deviance(x: f64, mean: f64) -> f64 {
    if (x - mean).abs() >= 0.1 * (x + mean) {
        return x * libm::log(x / mean) + mean - x;
    }
    let v = (x - mean) / (x + mean);
    let mut sum = (x - mean) * v;
    let mut term = 2.0 * x * v;
    let mut odd = 3.0;
    loop {
        term *= v * v;
        let next = sum + term / odd;
        if next == sum {
            return sum;
        }
        sum = next;
        odd += 2.0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use statrs::distribution::{Beta, ContinuousCDF};

    use super::*;

    #[test]
    fn critical_values_match_the_tables() {
        for (percent, z) in [
            (90.0, 1645),
            (95.0, 1960),
            (99.0, 2576),
            (80.0, 1282),
            (99.9, 3291),
            (50.0, 674),
        ] {
            assert_eq!(
                Confidence::percent(percent).unwrap().z_thousandths(),
                z,
                "{percent}"
            );
        }
        assert!((Confidence::percent(95.0).unwrap().z() - Z_95).abs() < f64::EPSILON);
        assert!((Confidence::percent(95.0).unwrap().alpha() - 0.05).abs() < f64::EPSILON);
        for wrong in [0.95, 49.9, 100.0, f64::NAN, -95.0] {
            assert!(Confidence::percent(wrong).is_none());
        }
    }

    #[test]
    fn wilson_at_the_ends() {
        assert_eq!(wilson(0, 0, Z_95), Interval::UNKNOWN);
        assert_eq!(wilson(0, 7, Z_95).lower, 0.0);
        assert_eq!(wilson(7, 7, Z_95).upper, 1.0);
        // z² / (n + z²) is the upper bound for no success.
        assert!((wilson(0, 10, Z_95).upper - 3.8416 / 13.8416).abs() < 1e-15);
    }

    #[test]
    fn exact_bounds_match_the_literature() {
        // 60-digit arithmetic, rounded.
        for (successes, trials, alpha, lower) in REFERENCE {
            let bound = clopper_pearson_lower(successes, trials, alpha);
            assert!(
                (bound - lower).abs() < 2e-15,
                "{successes} of {trials}: {bound} {lower}"
            );
        }
        let interval = clopper_pearson(0, 10, 0.05);
        assert_eq!(interval.lower, 0.0);
        assert!((interval.upper - 0.308_497_107_8).abs() < 1e-10);
        assert_eq!(clopper_pearson(0, 0, 0.05), Interval::UNKNOWN);
    }

    const REFERENCE: [(u64, u64, f64, f64); 7] = [
        (4, 5, 0.05, 0.342_591_681_998_861_3),
        (1, 10, 0.05, 0.005_116_196_891_823_701),
        (9, 10, 0.025, 0.554_983_882_971_804_6),
        (1, 1000, 0.05, 5.129_197_890_901_781e-5),
        (500, 1000, 0.05, 0.473_517_731_235_691_2),
        (970, 1000, 0.025, 0.957_448_597_529_971),
        (37, 100, 0.005, 0.249_487_066_774_738_05),
    ];

    #[test]
    fn certified_percents() {
        for (successes, trials, percent) in [
            (0, 5, 0),
            (1, 1, 5),
            (5, 5, 54),
            (4, 5, 34),
            (10, 10, 74),
            (59, 59, 95),
            (58, 58, 94),
            (298, 298, 98),
            (299, 299, 99),
            (0, 0, 0),
        ] {
            assert_eq!(
                certified_percent(successes, trials),
                percent,
                "{successes} of {trials}"
            );
        }
    }

    #[test]
    fn every_small_case_agrees_with_integers() {
        for trials in 1..=40_u32 {
            for successes in 1..=trials {
                let exact = (1..100)
                    .take_while(|percent| is_certified_exactly(successes, trials, *percent))
                    .last()
                    .unwrap_or(0);
                assert_eq!(
                    certified_percent(successes.into(), trials.into()),
                    exact,
                    "{successes} of {trials}"
                );
            }
        }
    }

    #[test]
    fn large_counts_are_fast_and_exact() {
        assert_eq!(certified_percent(5_000, 10_000), 49);
        assert_eq!(certified_percent(1_000_000, 1_000_000), 99);
        let bound = clopper_pearson_lower(500_000, 1_000_000, 0.025);
        assert!((bound - 0.499_019).abs() < 1e-5, "{bound}");
    }

    proptest! {
        #[test]
        fn exact_bounds_agree_with_another_implementation(trials in 2_u64..3000, share in 0.0_f64..1.0, alpha in 0.001_f64..0.2) {
            let successes = ((trials as f64 * share) as u64).clamp(1, trials - 1);
            let bound = clopper_pearson_lower(successes, trials, alpha);
            let beta = Beta::new(successes as f64, (trials - successes + 1) as f64).unwrap();
            prop_assert!((beta.cdf(bound) - alpha).abs() < 1e-9, "{} of {}: {}", successes, trials, bound);
        }

        #[test]
        fn bounds_bracket_the_rate(trials in 1_u64..500, share in 0.0_f64..=1.0) {
            let successes = ((trials as f64 * share).round() as u64).min(trials);
            let rate = successes as f64 / trials as f64;
            for interval in [wilson(successes, trials, Z_95), clopper_pearson(successes, trials, 0.05)] {
                prop_assert!(0.0 <= interval.lower && interval.lower <= rate + 1e-12);
                prop_assert!(rate - 1e-12 <= interval.upper && interval.upper <= 1.0);
            }
            let certified = certified_percent(successes, trials);
            prop_assert!(certified as f64 <= 100.0 * clopper_pearson_lower(successes, trials, 0.05) + 1e-9);
            if successes < trials {
                prop_assert!(certified <= certified_percent(successes + 1, trials));
            }
        }
    }
}
