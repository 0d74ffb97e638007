//! The number of runs that a claim needs, and the precision that a number of runs gives.

use std::fmt;

use num_bigint::BigUint;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Number;
use serde_json::value::RawValue;

use crate::percent::decimal;
use crate::statistics::{Confidence, clopper_pearson, wilson};

/// Past this many runs the exact interval is the Wald interval for every practical purpose, and
/// slow to find.
const MAX_EXACT_RUNS: u64 = 1_000_000;

/// An error from planning runs.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The half-width is out of range.
    #[error(
        "a half-width of {0} cannot be planned for: it must be between 0 and 1, both excluded \
         (0.05 is ± 5 percentage points)"
    )]
    HalfWidth(f64),
    /// No runs.
    #[error("0 runs have no band: give at least 1")]
    NoRuns,
}

/// A number of runs of any size: a half-width of 10^-12 needs more than 64 bits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(transparent)]
pub struct RunCount(#[schemars(with = "u64")] BigUint);

impl RunCount {
    /// The number, if it has at most 64 bits.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        u64::try_from(&self.0).ok()
    }
}

impl From<u64> for RunCount {
    fn from(runs: u64) -> Self {
        Self(runs.into())
    }
}

impl fmt::Display for RunCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for RunCount {
    /// Writes a JSON integer with all digits.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.to_u64() {
            Some(runs) => serializer.serialize_u64(runs),
            None => RawValue::from_string(self.to_string())
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

/// The number of runs after which the pass rate is known to within ± `half_width`, whatever it is.
///
/// N = ⌈(z / half_width)² · ¼⌉: the normal approximation (Wald) at its widest, a pass rate of one
/// half. The half-width is taken as the decimal that it was written as, and the arithmetic is
/// exact.
///
/// # Errors
/// A half-width that is not between 0 and 1, both excluded.
///
/// ```
/// use mcptest_numbers::run_plan::recommend_runs;
/// use mcptest_numbers::statistics::Confidence;
/// assert_eq!(recommend_runs(0.05, Confidence::percent(95.0).unwrap()), Ok(385.into()));
/// assert_eq!(recommend_runs(0.092, Confidence::percent(99.0).unwrap()), Ok(196.into()));
/// ```
pub fn recommend_runs(half_width: f64, confidence: Confidence) -> Result<RunCount, PlanError> {
    let (above, below) = wald_fraction(half_width, confidence)?;
    Ok(ceiling(&above, &below))
}

/// (z / half_width)² · ¼ as a fraction.
fn wald_fraction(half_width: f64, confidence: Confidence) -> Result<(BigUint, BigUint), PlanError> {
    let refused = PlanError::HalfWidth(half_width);
    let within = half_width > 0.0 && half_width < 1.0;
    let number = Number::from_f64(half_width).filter(|_| within);
    // Below 1, so the exponent is negative.
    let (digits, exponent) = number.as_ref().and_then(decimal).ok_or(refused)?;
    let denominator = BigUint::from(10_u8).pow(exponent.unsigned_abs());
    let above = BigUint::from(confidence.z_thousandths()) * denominator;
    let below = BigUint::from(2000_u32) * digits;
    Ok((above.pow(2), below.pow(2)))
}

/// At least 1, because both are positive.
fn ceiling(above: &BigUint, below: &BigUint) -> RunCount {
    RunCount((above + below - 1_u8) / below)
}

/// The worst half-width of the pass rate's interval after this many runs: z · √(¼ / N). Zero runs
/// have no band.
///
/// ```
/// use mcptest_numbers::run_plan::confidence_band;
/// use mcptest_numbers::statistics::Confidence;
/// assert_eq!(confidence_band(100, Confidence::percent(95.0).unwrap()), Some(0.098));
/// assert_eq!(confidence_band(0, Confidence::percent(95.0).unwrap()), None);
/// ```
#[must_use]
pub fn confidence_band(runs: u64, confidence: Confidence) -> Option<f64> {
    let z = f64::from(confidence.z_thousandths());
    (runs > 0).then(|| z / (2000.0 * (runs as f64).sqrt()))
}

/// The number of runs that a half-width needs, by three intervals.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RunPlan {
    /// The half-width asked for.
    pub half_width: f64,
    /// The confidence asked for, in percent.
    pub confidence: f64,
    /// Its critical value.
    pub z: f64,
    /// By the normal approximation: the documents' figure.
    pub wald_runs: RunCount,
    /// By Wilson's interval.
    pub wilson_runs: RunCount,
    /// By the exact (Clopper-Pearson) interval; `None` past a million runs, where it no longer
    /// differs.
    pub exact_runs: Option<u64>,
}

/// Plans for a half-width: the least number of runs after which no outcome leaves a wider interval.
///
/// # Errors
/// A half-width that is not between 0 and 1, both excluded.
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
        RunCount::from(1)
    };
    let exact_runs = (wald_runs.to_u64())
        .filter(|wald| *wald <= MAX_EXACT_RUNS)
        .map(|wald| exact_runs(half_width, confidence, wald));
    Ok(RunPlan {
        half_width,
        confidence: confidence.as_percent(),
        z: confidence.z(),
        wald_runs,
        wilson_runs,
        exact_runs,
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// The worst half-width of the exact interval; `None` past a million runs.
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
    let wald_half_width = confidence_band(runs, confidence).ok_or(PlanError::NoRuns)?;
    let z = confidence.z();
    Ok(RunBand {
        runs,
        confidence: confidence.as_percent(),
        z,
        wald_half_width,
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
        assert_eq!(recommend_runs(0.05, at(95.0)), Ok(385.into()));
        assert_eq!(confidence_band(100, at(95.0)), Some(0.098));
        // (2.576 / 0.092)² / 4 is exactly 196; through doubles it comes out a hair above and would
        // ask for 197.
        assert_eq!(recommend_runs(0.092, at(99.0)), Ok(196.into()));
        assert_eq!(recommend_runs(0.098, at(95.0)), Ok(100.into()));
        assert_eq!(recommend_runs(0.0329, at(90.0)), Ok(625.into()));
        assert_eq!(recommend_runs(0.5, at(50.0)), Ok(1.into()));
    }

    #[test]
    fn what_cannot_be_planned() {
        for half_width in [0.0, -0.0, -0.1, 1.0, 5.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                recommend_runs(half_width, at(95.0)),
                Err(PlanError::HalfWidth(_))
            ));
        }
        assert_eq!(plan_band(0, at(95.0)), Err(PlanError::NoRuns));
        assert_eq!(confidence_band(0, at(95.0)), None);
        // Long decimals work.
        assert!(recommend_runs(1.0 / 3.0, at(95.0)).is_ok());
        assert_eq!(recommend_runs(1e-6, at(95.0)), Ok(960_400_000_000.into()));
    }

    #[test]
    fn issue_10_any_half_width_between_0_and_1_can_be_planned() {
        for (half_width, wald, wilson, exact) in [
            (0.51, "4", "1", Some(1)),
            (0.9, "2", "1", Some(1)),
            (0.98, "1", "1", Some(1)),
            (1.0 - f64::EPSILON, "1", "1", Some(1)),
            (1e-7, "96040000000000", "96039999999997", None),
            // More than 64 bits, and more than doubles of the square would hold.
            (
                1e-12,
                "960400000000000000000000",
                "960399999999999999999997",
                None,
            ),
        ] {
            let plan = plan_runs(half_width, at(95.0)).unwrap();
            let runs = [&plan.wald_runs, &plan.wilson_runs].map(RunCount::to_string);
            assert_eq!(
                (runs, plan.exact_runs),
                ([wald, wilson].map(String::from), exact)
            );
        }
        let json = serde_json::to_string(&plan_runs(1e-12, at(95.0)).unwrap()).unwrap();
        assert!(
            json.contains(r#""wald_runs":960400000000000000000000,"#),
            "{json}"
        );
        let least = recommend_runs(f64::from_bits(1), at(95.0)).unwrap();
        assert_eq!(least.to_string().len(), 647);
    }

    #[test]
    fn three_intervals_side_by_side() {
        let plan = plan_runs(0.05, at(95.0)).unwrap();
        let runs = (&plan.wald_runs, &plan.wilson_runs);
        assert_eq!(runs, (&385.into(), &381.into()));
        let exact = plan.exact_runs.unwrap();
        assert!(
            exact_half_width(exact, at(95.0)) <= 0.05
                && exact_half_width(exact - 1, at(95.0)) > 0.05
        );
        assert!(RunCount::from(exact) > plan.wald_runs);
        assert_eq!(plan_runs(0.5, at(95.0)).unwrap().wilson_runs, 1.into());
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
        fn the_recommended_number_is_the_least(thousandths in 5_u32..1000, percent in prop::sample::select(vec![90.0, 95.0, 99.0])) {
            let half_width = f64::from(thousandths) / 1000.0;
            let runs = recommend_runs(half_width, at(percent)).unwrap().to_u64().unwrap();
            let band = |runs| confidence_band(runs, at(percent));
            prop_assert!(band(runs).unwrap() <= half_width + 1e-12);
            prop_assert!(band(runs - 1).is_none_or(|band| band > half_width - 1e-12));
        }
    }
}
