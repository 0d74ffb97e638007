//! The number of runs that a claim needs, and the precision that a number of runs gives.

use num_bigint::BigUint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::percent::Rate;
use crate::statistics::{Confidence, clopper_pearson, wilson};

/// The narrowest half-width that can be asked for: a millionth is some 10^12 runs.
const NARROWEST: f64 = 1e-6;
/// Past this many runs the exact interval is the Wald interval for every practical purpose, and
/// slow to find.
const MAX_EXACT_RUNS: u64 = 1_000_000;

/// An error from planning runs.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The half-width is out of range.
    #[error(
        "a half-width of {0} cannot be planned for: it must be between 0.000001 and 0.5 \
         (0.05 is ± 5 percentage points)"
    )]
    HalfWidth(f64),
    /// No runs.
    #[error("0 runs say nothing: give at least 1")]
    NoRuns,
}

/// The number of runs after which the pass rate is known to within ± `half_width`, whatever it is.
///
/// N = ⌈(z / half_width)² · ¼⌉: the normal approximation (Wald) at its widest, a pass rate of one
/// half. The half-width is taken as the decimal that it was written as, and the arithmetic is
/// exact.
///
/// # Errors
/// A half-width outside 0.000001 to 0.5.
///
/// ```
/// use mcptest_numbers::run_plan::recommend_runs;
/// use mcptest_numbers::statistics::Confidence;
/// assert_eq!(recommend_runs(0.05, Confidence::percent(95.0).unwrap()), Ok(385));
/// assert_eq!(recommend_runs(0.092, Confidence::percent(99.0).unwrap()), Ok(196));
/// ```
pub fn recommend_runs(half_width: f64, confidence: Confidence) -> Result<u64, PlanError> {
    let (above, below) = wald_fraction(half_width, confidence)?;
    Ok(ceiling(&above, &below))
}

/// (z / half_width)² · ¼ as a fraction.
fn wald_fraction(half_width: f64, confidence: Confidence) -> Result<(BigUint, BigUint), PlanError> {
    let refused = PlanError::HalfWidth(half_width);
    if !(NARROWEST..=0.5).contains(&half_width) {
        return Err(refused);
    }
    let (numerator, denominator) = Rate::from_f64(half_width).ok_or(refused)?.parts();
    let above = BigUint::from(confidence.z_thousandths()) * denominator;
    let below = BigUint::from(2000_u32) * numerator;
    Ok((above.pow(2), below.pow(2)))
}

fn ceiling(above: &BigUint, below: &BigUint) -> u64 {
    let whole = (above + below - 1_u8) / below;
    u64::try_from(whole).unwrap_or(u64::MAX).max(1)
}

/// The worst half-width of the pass rate's interval after this many runs: z · √(¼ / N). Without a
/// run the rate is anywhere.
///
/// ```
/// use mcptest_numbers::run_plan::confidence_band;
/// use mcptest_numbers::statistics::Confidence;
/// assert_eq!(confidence_band(100, Confidence::percent(95.0).unwrap()), 0.098);
/// ```
#[must_use]
pub fn confidence_band(runs: u64, confidence: Confidence) -> f64 {
    if runs == 0 {
        return 0.5;
    }
    f64::from(confidence.z_thousandths()) / (2000.0 * (runs as f64).sqrt())
}

/// The number of runs that a half-width needs, by three intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RunPlan {
    /// The half-width asked for.
    pub half_width: f64,
    /// The confidence asked for, in percent.
    pub confidence: f64,
    /// Its critical value.
    pub z: f64,
    /// By the normal approximation: the documents' figure.
    pub wald_runs: u64,
    /// By Wilson's interval.
    pub wilson_runs: u64,
    /// By the exact (Clopper-Pearson) interval; nothing past a million runs, where it no longer
    /// differs.
    pub exact_runs: Option<u64>,
}

/// Plans for a half-width: the least number of runs after which no outcome leaves a wider interval.
///
/// # Errors
/// A half-width outside 0.000001 to 0.5.
pub fn plan_runs(half_width: f64, confidence: Confidence) -> Result<RunPlan, PlanError> {
    let (above, below) = wald_fraction(half_width, confidence)?;
    let wald_runs = ceiling(&above, &below);
    // Wilson is widest at one half too, (z/2) / √(n + z²), so it needs z² runs less.
    let z = BigUint::from(confidence.z_thousandths());
    let scale = BigUint::from(1_000_000_u32);
    let (above, less) = (above * &scale, &z * &z * &below);
    let wilson_runs = if above > less {
        ceiling(&(above - less), &(below * scale))
    } else {
        1
    };
    Ok(RunPlan {
        half_width,
        confidence: confidence.as_percent(),
        z: confidence.z(),
        wald_runs,
        wilson_runs,
        exact_runs: (wald_runs <= MAX_EXACT_RUNS)
            .then(|| exact_runs(half_width, confidence, wald_runs)),
    })
}

fn exact_half_width(runs: u64, confidence: Confidence) -> f64 {
    clopper_pearson(runs / 2, runs, confidence.alpha()).half_width()
}

fn exact_runs(half_width: f64, confidence: Confidence, about: u64) -> u64 {
    // The widest interval narrows with every run, so the least number can be bracketed and halved.
    let enough = |runs: u64| exact_half_width(runs, confidence) <= half_width;
    let (mut low, mut high) = (0, about.max(1));
    while !enough(high) {
        low = high;
        high *= 2;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The precision of a number of runs, by three intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RunBand {
    /// The number of runs.
    pub runs: u64,
    /// The confidence asked for, in percent.
    pub confidence: f64,
    /// Its critical value.
    pub z: f64,
    /// The worst half-width by the normal approximation: the documents' figure.
    pub wald_half_width: f64,
    /// The worst half-width by Wilson's interval.
    pub wilson_half_width: f64,
    /// The worst half-width of the exact interval; nothing past a million runs.
    pub exact_half_width: Option<f64>,
    /// If every run passes: the least pass rate that Wilson's interval leaves possible.
    pub all_passed_wilson_lower: f64,
    /// If every run passes: the least pass rate that the exact interval leaves possible.
    pub all_passed_exact_lower: f64,
}

/// The reverse of [`plan_runs`].
///
/// # Errors
/// No runs.
pub fn plan_band(runs: u64, confidence: Confidence) -> Result<RunBand, PlanError> {
    if runs == 0 {
        return Err(PlanError::NoRuns);
    }
    let z = confidence.z();
    Ok(RunBand {
        runs,
        confidence: confidence.as_percent(),
        z,
        wald_half_width: confidence_band(runs, confidence),
        wilson_half_width: z / (2.0 * (runs as f64 + z * z).sqrt()),
        exact_half_width: (runs <= MAX_EXACT_RUNS).then(|| exact_half_width(runs, confidence)),
        all_passed_wilson_lower: wilson(runs, runs, z).lower,
        all_passed_exact_lower: clopper_pearson(runs, runs, confidence.alpha()).lower,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::statistics::Interval;

    fn at(percent: f64) -> Confidence {
        Confidence::percent(percent).unwrap()
    }

    #[test]
    fn the_documents_run_counts() {
        assert_eq!(recommend_runs(0.05, at(95.0)), Ok(385));
        assert_eq!(confidence_band(100, at(95.0)), 0.098);
        // (2.576 / 0.092)² / 4 is exactly 196; through doubles it comes out a hair above and would
        // ask for 197.
        assert_eq!(recommend_runs(0.092, at(99.0)), Ok(196));
        assert_eq!(recommend_runs(0.098, at(95.0)), Ok(100));
        assert_eq!(recommend_runs(0.0329, at(90.0)), Ok(625));
        assert_eq!(recommend_runs(0.5, at(50.0)), Ok(1));
    }

    #[test]
    fn what_cannot_be_planned() {
        for half_width in [0.0, -0.1, 0.51, 1e-7, 5.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                recommend_runs(half_width, at(95.0)),
                Err(PlanError::HalfWidth(_))
            ));
        }
        assert_eq!(plan_band(0, at(95.0)), Err(PlanError::NoRuns));
        assert_eq!(confidence_band(0, at(95.0)), 0.5);
        // Long decimals work.
        assert!(recommend_runs(1.0 / 3.0, at(95.0)).is_ok());
        assert_eq!(recommend_runs(1e-6, at(95.0)), Ok(960_400_000_000));
    }

    #[test]
    fn three_intervals_side_by_side() {
        let plan = plan_runs(0.05, at(95.0)).unwrap();
        assert_eq!((plan.wald_runs, plan.wilson_runs), (385, 381));
        let exact = plan.exact_runs.unwrap();
        assert!(
            exact_half_width(exact, at(95.0)) <= 0.05
                && exact_half_width(exact - 1, at(95.0)) > 0.05
        );
        assert!(exact > plan.wald_runs);
        assert_eq!(plan_runs(0.5, at(95.0)).unwrap().wilson_runs, 1);
        assert_eq!(plan_runs(1e-6, at(95.0)).unwrap().exact_runs, None);

        let band = plan_band(100, at(95.0)).unwrap();
        assert_eq!(band.wald_half_width, 0.098);
        assert!((band.wilson_half_width - 0.0962).abs() < 1e-4);
        assert!((band.exact_half_width.unwrap() - 0.1017).abs() < 1e-4);
        assert!((band.all_passed_wilson_lower - 0.9630).abs() < 1e-4);
        assert!((band.all_passed_exact_lower - 0.9638).abs() < 1e-4);
    }

    #[test]
    fn one_half_is_the_widest_and_every_run_narrows() {
        let mut before = 0.5 + f64::EPSILON;
        for runs in 1..=60 {
            let widest = (0..=runs)
                .map(|passes| clopper_pearson(passes, runs, 0.05).half_width())
                .fold(0.0, f64::max);
            assert!(
                (widest - exact_half_width(runs, at(95.0))).abs() < 1e-12,
                "{runs}"
            );
            assert!(widest < before, "{runs}");
            before = widest;
            let widest = (0..=runs)
                .map(|passes| wilson(passes, runs, 1.96))
                .map(Interval::half_width);
            assert!(
                widest.fold(0.0, f64::max)
                    <= plan_band(runs, at(95.0)).unwrap().wilson_half_width + 1e-12
            );
        }
    }

    proptest! {
        #[test]
        fn the_recommended_number_is_the_least(thousandths in 5_u32..500, percent in prop::sample::select(vec![90.0, 95.0, 99.0])) {
            let half_width = f64::from(thousandths) / 1000.0;
            let runs = recommend_runs(half_width, at(percent)).unwrap();
            prop_assert!(confidence_band(runs, at(percent)) <= half_width + 1e-12);
            prop_assert!(runs == 1 || confidence_band(runs - 1, at(percent)) > half_width - 1e-12);
        }
    }
}
