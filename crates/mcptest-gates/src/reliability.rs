//! Pass rates over many runs (`reliability:`).
//!
//! **How likely is the next run to pass?** One green run of an agent proves little. Every run of
//! the test has an outcome, passed or not: its `expect:` assertions all held, or, for a test
//! without any, it made a call and ended without an error. The block turns the row of outcomes into
//! figures between the optimistic end (one pass is enough) and the pessimistic one (all must pass),
//! and shows whether failures come early or late.
//!
//! # The block
//! ```yaml
//! runs: 8
//! expect:
//!   - tool_calls[0].name: get_weather
//! reliability:
//!   k: 4
//!   expect:
//!     - reliability.passhat_k_unbiased: { ">=": 0.8 }
//!     - reliability.decay[3]: { ">=": 90 }
//! ```
//!
//! A run whose `expect:` does not hold fails the test, whatever the figures are. With
//! `tolerate_failed_runs: true` it only counts as an outcome, and the figures decide. Use it
//! together with a floor below 100.
//!
//! # Output
//! ```text
//! FAIL   weather: reliability  7 of 8 runs passed · pass@k 100 · pass^k 34 · unbiased pass^4 0.500 · swing 66 · graceful 80 · failed: run 7 (an expectation did not hold)
//!        reliability.passhat_k_unbiased
//!          expected  >= 0.8
//!          actual    0.5
//! ```
//!
//! # Formula
//! With n runs of which c passed, and c_k passes among the first k:
//!
//! | target | formula |
//! |---|---|
//! | `reliability.runs` | n |
//! | `reliability.pass_at_k` | 100 if c > 0, else 0 |
//! | `reliability.decay` | for k = 1..n the whole percents ⌊100 (c_k / k)^k⌋ |
//! | `reliability.passhat_k` | the last entry of the decay |
//! | `reliability.variance_amplification` | ⌊200 √(p (1-p))⌋ with p = c/n: 0 if all runs agree, 100 for an even split |
//! | `reliability.graceful_degradation` | run i weighs i: ⌊100 · (weights of the passes) / (all weights)⌋, so late failures cost more |
//! | `reliability.pass_at_k_unbiased` | 1 - C(n-c, k) / C(n, k), from 0 to 1 |
//! | `reliability.passhat_k_unbiased` | C(c, k) / C(n, k), from 0 to 1 |
//!
//! Percents are rounded down and computed in integers; the unbiased rates are exact fractions,
//! rounded once. They are the estimators of the code-generation and tau-bench papers: the chance
//! that, of k runs drawn from the n, at least one passed, or all did. `k` is the block's `k:`, or
//! n. The plain (c/n)^n form is what the decay curve shows; for n beyond a few it is far more
//! forgiving than the unbiased pass^k. With fewer runs than k the unbiased rates are undefined.
//!
//! Only the decay and the graceful degradation depend on the order of the runs. When `expect:` is
//! omitted, `passhat_k` must reach 50.
//!
//! # When not to use it
//! With a handful of runs and a bar close to 1: `mcptest plan-runs` computes the number of runs
//! that a claim needs. For a floor under one tool's selection use `tool_selection:`, whose pass^k
//! is the plain fraction of good runs.
//!
//! # In Rust
//! ```
//! use mcptest_gates::reliability::{pass_hat_k_unbiased, summarize};
//! let summary = summarize(&[true, true, true, false]);
//! assert_eq!(summary.decay, [100, 100, 100, 31]);
//! assert_eq!(summary.graceful_degradation, 60);
//! assert_eq!(summarize(&[false, true, true, true]).graceful_degradation, 90);
//! assert_eq!(pass_hat_k_unbiased(4, 3, 2), Some(0.5));
//! ```

mod forecast;

use forecast::Progress;

pub use mcptest_numbers::run_plan::{
    PlanError, RunBand, RunCount, RunPlan, confidence_band, plan_band, plan_runs, recommend_runs,
};

use std::borrow::Cow;

use num_bigint::BigUint;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::first_runs::FirstRuns;
use crate::forecast::{Bounds, BoundsOf, Forecast, HypotheticalRuns};
use crate::packed_runs::PackedRuns;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, Unit};
use mcptest_numbers::percent;
use mcptest_numbers::ratio::{choose, quotient};
use mcptest_numbers::statistics::{Interval, Z_95, clopper_pearson, wilson};
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};

/// Scores the reliability of the test's runs: pass@k, pass^k, and how they decay.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reliability {
    /// The number of runs that the unbiased pass@k and pass^k draw. Default: all of them.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub k: Option<u64>,
    /// If true, a run whose `expect:` does not hold only counts as an outcome here. Default: it
    /// also fails the test.
    #[serde(default)]
    pub tolerate_failed_runs: bool,
    /// Assertions on `reliability.*`. Default: `reliability.passhat_k` is at least 50.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

/// The figures of a row of outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReliabilitySummary {
    /// The number of runs.
    pub runs: u64,
    /// The number of runs that passed.
    pub passes: u64,
    /// 100 if any run passed, else 0.
    pub pass_at_k: u64,
    /// The last entry of the decay; 0 without runs.
    pub passhat_k: u64,
    /// ⌊100 (c_k / k)^k⌋ for k = 1, 2, …
    pub decay: Vec<u64>,
    /// The swing of the outcomes, in percent of its maximum.
    pub variance_amplification: u64,
    /// Passes weighted by position, in percent of all weights; 0 without runs.
    pub graceful_degradation: u64,
}

/// Summarizes the outcomes of one test's runs, in their order.
#[must_use]
pub fn summarize(outcomes: &[bool]) -> ReliabilitySummary {
    let runs = outcomes.len() as u64;
    let mut passes = 0;
    let mut passed_weight = 0;
    let mut decay = Vec::with_capacity(outcomes.len());
    for (outcome, k) in outcomes.iter().zip(1..) {
        if *outcome {
            passes += 1;
            passed_weight += k;
        }
        decay.push(decay_entry(passes, k));
    }
    ReliabilitySummary {
        runs,
        passes,
        pass_at_k: if passes > 0 { 100 } else { 0 },
        passhat_k: decay.last().copied().unwrap_or(0),
        decay,
        variance_amplification: variance_amplification(passes, runs),
        graceful_degradation: percent::down(passed_weight, runs * (runs + 1) / 2).unwrap_or(0),
    }
}

/// ⌊100 (c/k)^k⌋, exactly.
///
/// With f failures the power is (1 - f/k)^k, which rises with k towards e^-f and never reaches it.
/// So five failures or more leave less than one percent, and from some k on the whole percent
/// is constant: 64 is past that point for one to four failures. Below it, the powers are small
/// enough to write out.
fn decay_entry(passes: u64, runs: u64) -> u64 {
    const FROM_64: [u64; 4] = [36, 13, 4, 1];
    match (runs - passes, u32::try_from(runs)) {
        (0, _) => 100,
        (1..=4, Ok(k @ ..64)) => exact_decay_entry(passes, k),
        (failures @ 1..=4, _) => FROM_64[failures as usize - 1],
        _ => 0,
    }
}

fn exact_decay_entry(passes: u64, runs: u32) -> u64 {
    let whole = BigUint::from(passes).pow(runs) * 100_u8 / BigUint::from(runs).pow(runs);
    // (c/k)^k is at most 1.
    u64::try_from(whole).unwrap_or(100)
}

/// ⌊200 √(c (n-c)) / n⌋: the standard deviation of the outcomes in percent of its maximum, one
/// half.
fn variance_amplification(passes: u64, runs: u64) -> u64 {
    if runs == 0 {
        return 0;
    }
    let (c, n) = (u128::from(passes), u128::from(runs));
    // The root of a whole number's fraction falls on the same whole number as the root of its
    // floor.
    ((40_000 * c * (n - c) / (n * n)).isqrt()) as u64
}

/// The chance that at least one of k runs, drawn from the n of which c passed, is a pass: 1 -
/// C(n-c, k) / C(n, k). `None` for k outside 1..=n.
#[must_use]
pub fn pass_at_k_unbiased(runs: u64, passes: u64, k: u64) -> Option<f64> {
    defined(runs, passes, k).then(|| {
        let all = choose(runs, k);
        quotient(&(&all - choose(runs - passes, k)), &all)
    })
}

/// The chance that k runs, drawn from the n of which c passed, are all passes: C(c, k) / C(n, k).
/// Nothing for k outside 1..=n.
#[must_use]
pub fn pass_hat_k_unbiased(runs: u64, passes: u64, k: u64) -> Option<f64> {
    defined(runs, passes, k).then(|| quotient(&choose(passes, k), &choose(runs, k)))
}

fn defined(runs: u64, passes: u64, k: u64) -> bool {
    (1..=runs).contains(&k) && passes <= runs
}

/// The outcome of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    ExpectationsHeld,
    ExpectationFailed,
    EndedInError,
    NoCall,
    CallWithoutError,
}

impl Outcome {
    fn of(run: &Run<'_>) -> Self {
        match run.expectations_held {
            Some(true) => Self::ExpectationsHeld,
            Some(false) => Self::ExpectationFailed,
            None if run.trace.error.is_some() => Self::EndedInError,
            None if run.trace.tool_calls.is_empty() => Self::NoCall,
            None => Self::CallWithoutError,
        }
    }

    /// The letter that represents it in an accumulator.
    fn letter(self) -> u8 {
        match self {
            Self::ExpectationsHeld => b'h',
            Self::ExpectationFailed => b'f',
            Self::EndedInError => b'e',
            Self::NoCall => b'n',
            Self::CallWithoutError => b'c',
        }
    }

    fn of_letter(letter: u8) -> Option<Self> {
        let all = [
            Self::ExpectationsHeld,
            Self::ExpectationFailed,
            Self::EndedInError,
            Self::NoCall,
            Self::CallWithoutError,
        ];
        all.into_iter().find(|outcome| outcome.letter() == letter)
    }

    fn passed(self) -> bool {
        matches!(self, Self::ExpectationsHeld | Self::CallWithoutError)
    }

    fn because(self) -> &'static str {
        match self {
            Self::ExpectationsHeld => "all expectations held",
            Self::ExpectationFailed => "an expectation did not hold",
            Self::EndedInError => "ended in an error",
            Self::NoCall => "made no call",
            Self::CallWithoutError => "made a call and ended without error",
        }
    }
}

/// The failed runs in words: `runs 2, 3 (an expectation did not hold), 5 (made no call)`. A reason
/// follows the last of the listed runs in a row that share it.
fn failed_runs(failed: &FirstRuns<Outcome>) -> String {
    let listed: Vec<(u64, &Outcome)> = failed.iter().collect();
    let mut words: Vec<String> = listed
        .iter()
        .enumerate()
        .map(|(at, (index, outcome))| match listed.get(at + 1) {
            Some((_, next)) if next == outcome => index.to_string(),
            _ => format!("{index} ({})", outcome.because()),
        })
        .collect();
    if failed.more() > 0 {
        words.push(format!("and {} more", failed.more()));
    }
    format!("run{} {}", plural(failed.count()), words.join(", "))
}

/// The outcomes of the observed runs.
#[derive(Debug, Clone, Default)]
pub struct ReliabilityAccumulator {
    /// The letter of each run's outcome.
    outcomes: PackedRuns,
    without_rows: bool,
    /// The progress over the runs, as long as they come in order; it can always be derived from
    /// them.
    progress: Progress,
}

impl Accumulator for ReliabilityAccumulator {
    fn merge(&mut self, other: Self) {
        self.outcomes.merge(other.outcomes);
        self.without_rows |= other.without_rows;
        self.progress = Progress::default();
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.outcomes.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.without_rows = true;
    }
}

impl ReliabilityAccumulator {
    fn push(&mut self, index: u64, outcome: Outcome) {
        self.outcomes.push(index, &[outcome.letter()]);
    }

    fn for_each(&self, outcome: &mut dyn FnMut(u64, Outcome)) {
        self.outcomes.for_each(&mut |index, row| {
            let letter = row.first().copied().unwrap_or_default();
            if let Some(found) = Outcome::of_letter(letter) {
                outcome(index, found);
            }
        });
    }

    fn progress(&self) -> Cow<'_, Progress> {
        if self.progress.runs() == self.outcomes.len() {
            return Cow::Borrowed(&self.progress);
        }
        let mut progress = Progress::default();
        self.for_each(&mut |_, outcome| progress.push(outcome.passed()));
        Cow::Owned(progress)
    }
}

/// The JSON form of the accumulator: the indexes, and a letter for each run.
#[derive(Serialize, Deserialize)]
struct SavedOutcomes {
    indexes: Vec<u64>,
    outcomes: String,
    without_rows: bool,
}

impl Serialize for ReliabilityAccumulator {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut saved = SavedOutcomes {
            indexes: Vec::new(),
            outcomes: String::new(),
            without_rows: self.without_rows,
        };
        self.for_each(&mut |index, outcome| {
            saved.indexes.push(index);
            saved.outcomes.push(char::from(outcome.letter()));
        });
        saved.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReliabilityAccumulator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved = SavedOutcomes::deserialize(deserializer)?;
        let mut accumulator = Self {
            without_rows: saved.without_rows,
            ..Self::default()
        };
        for (index, letter) in saved.indexes.into_iter().zip(saved.outcomes.bytes()) {
            let outcome = Outcome::of_letter(letter);
            let outcome =
                outcome.ok_or_else(|| D::Error::custom("not the letter of an outcome"))?;
            accumulator.push(index, outcome);
        }
        Ok(accumulator)
    }
}

#[derive(Serialize)]
struct Estimators {
    passhat_k: &'static str,
    pass_at_k_unbiased: &'static str,
    passhat_k_unbiased: &'static str,
}

#[derive(Serialize)]
struct PassRate {
    wilson: Interval,
    exact: Interval,
}

/// A row of the report's detail.
#[derive(Serialize)]
struct OutcomeRow {
    index: u64,
    passed: bool,
    because: &'static str,
}

impl Gate for Reliability {
    const BLOCK: &'static str = "reliability";
    const SUMMARY: &'static str =
        "pass@k and pass^k over the outcomes of the runs, their decay and their variance.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "reliability.runs",
            Unit::Count,
            "The number of judged runs.",
        ),
        TargetInfo::new(
            "reliability.pass_at_k",
            Unit::Percent,
            "100 if at least one run passed, else 0.",
        ),
        TargetInfo::new(
            "reliability.passhat_k",
            Unit::Percent,
            "The chance that all runs pass, as the n-th power of the pass rate.",
        ),
        TargetInfo::new(
            "reliability.variance_amplification",
            Unit::Percent,
            "The swing of the outcomes: 0 if all agree, 100 for an even split.",
        ),
        TargetInfo::new(
            "reliability.graceful_degradation",
            Unit::Percent,
            "Passes weighted by position: late failures cost more.",
        ),
        TargetInfo::new(
            "reliability.pass_at_k_unbiased",
            Unit::Fraction,
            "The chance that of k drawn runs at least one passed.",
        ),
        TargetInfo::new(
            "reliability.passhat_k_unbiased",
            Unit::Fraction,
            "The chance that k drawn runs all passed.",
        ),
        TargetInfo::new(
            "reliability.decay",
            Unit::List,
            "pass^k in percent for k from 1 to the number of runs.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "reliability.passhat_k",
            Matcher::at_least(50),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, context: &LoadContext<'_>) -> Vec<Problem> {
        let runs = u64::from(context.runs.unwrap_or(1).max(1));
        match self.k {
            Some(0) => vec![Problem::new("/k", "k counts runs: it is at least 1")],
            // Recorded traces may be more or fewer than `runs:`, so only a suite to run can be
            // refused.
            Some(k) if context.to_run && k > runs => {
                let problem = format!("k is {k}, but the test has only {runs} run{}", plural(runs));
                vec![
                    Problem::new("/k", problem)
                        .help(format!("set `runs:` to at least {k}, or lower `k:`")),
                ]
            }
            _ => Vec::new(),
        }
    }

    type Accumulator = ReliabilityAccumulator;

    fn observe(&self, accumulator: &mut ReliabilityAccumulator, _: &Context<'_>, run: &Run<'_>) {
        let outcome = Outcome::of(run);
        let ReliabilityAccumulator {
            outcomes, progress, ..
        } = accumulator;
        let in_order = outcomes.last_index().is_none_or(|last| last <= run.index);
        if in_order && progress.runs() == outcomes.len() {
            progress.push(outcome.passed());
        } else {
            *progress = Progress::default();
        }
        accumulator.push(run.index, outcome);
    }

    fn finish(&self, accumulator: ReliabilityAccumulator, _: &Context<'_>) -> Score {
        let mut passed: Vec<bool> = Vec::new();
        let mut failed: FirstRuns<Outcome> = FirstRuns::default();
        accumulator.for_each(&mut |index, outcome| {
            passed.push(outcome.passed());
            if !outcome.passed() {
                failed.add(index, || outcome);
            }
        });
        let summary = summarize(&passed);
        let (n, c) = (summary.runs, summary.passes);
        let k = self.k.unwrap_or(n);
        let pass_at_k = pass_at_k_unbiased(n, c, k);
        let pass_hat_k = pass_hat_k_unbiased(n, c, k);

        let mut score = Score::default();
        if pass_hat_k.is_none() {
            let why = format!(
                "k is {k}, but there {} only {n} run{}",
                if n == 1 { "is" } else { "are" },
                plural(n)
            );
            score
                .absent
                .push(("reliability.pass_at_k_unbiased", why.clone()));
            score.absent.push(("reliability.passhat_k_unbiased", why));
        }
        let hat = pass_hat_k.map_or_else(|| "undefined".to_owned(), |rate| format!("{rate:.3}"));
        score.summary = format!(
            "{c} of {n} runs passed · pass@k {} · pass^k {} · unbiased pass^{k} {hat} · swing {} · \
             graceful {}",
            summary.pass_at_k,
            summary.passhat_k,
            summary.variance_amplification,
            summary.graceful_degradation
        );
        if failed.count() > 0 {
            score
                .summary
                .push_str(&format!(" · failed: {}", failed_runs(&failed)));
        }
        score.values = vec![
            ("reliability.runs", n.into()),
            ("reliability.pass_at_k", summary.pass_at_k.into()),
            ("reliability.passhat_k", summary.passhat_k.into()),
            (
                "reliability.variance_amplification",
                summary.variance_amplification.into(),
            ),
            (
                "reliability.graceful_degradation",
                summary.graceful_degradation.into(),
            ),
            ("reliability.pass_at_k_unbiased", pass_at_k.into()),
            ("reliability.passhat_k_unbiased", pass_hat_k.into()),
            ("reliability.decay", summary.decay.into()),
        ];
        let mut detail = DetailBuilder::default();
        detail.entry("runs", &n);
        detail.entry("passes", &c);
        detail.entry("k", &k);
        detail.entry(
            "estimators",
            &Estimators {
                passhat_k: "(c/n)^n, in percent, rounded down",
                pass_at_k_unbiased: "1 - C(n-c,k)/C(n,k)",
                passhat_k_unbiased: "C(c,k)/C(n,k)",
            },
        );
        let pass_rate = (n > 0).then(|| PassRate {
            wilson: wilson(c, n, Z_95),
            exact: clopper_pearson(c, n, 0.05),
        });
        detail.entry("pass_rate_95", &pass_rate);
        if !accumulator.without_rows {
            detail.list("per_run", |each| {
                accumulator.for_each(&mut |index, outcome| {
                    let row = OutcomeRow {
                        index,
                        passed: outcome.passed(),
                        because: outcome.because(),
                    };
                    // A row has only numbers and strings, which always serialise.
                    each(&serde_json::to_vec(&row).unwrap_or_default());
                });
            });
        }
        score.detail = detail.into();
        score
    }

    fn forecast(&self, accumulator: &ReliabilityAccumulator, remaining: u64) -> Option<Forecast> {
        let progress = accumulator.progress();
        let runs = progress.runs();
        let mut bounds = self.monotone_bounds(progress.sums, remaining);
        bounds.push(("reliability.runs", Bounds::between(runs, runs + remaining)));
        bounds.push((
            "reliability.variance_amplification",
            progress.sums.swing(remaining),
        ));
        bounds.push(("reliability.decay", progress.decay()));
        Some(Forecast {
            bounds,
            may_lack_evidence: false,
        })
    }

    fn hypothetical(
        &self,
        accumulator: &ReliabilityAccumulator,
        next: HypotheticalRuns,
        remaining: u64,
    ) -> Option<BoundsOf> {
        let sums = accumulator.progress().sums.after(next);
        Some(self.monotone_bounds(sums, remaining))
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests;
