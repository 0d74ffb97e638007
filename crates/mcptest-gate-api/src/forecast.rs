//! The bounds that a gate's figures can still reach while runs are outstanding.
//!
//! A gate that knows how its figures move gives, for the runs observed so far and the number of
//! runs that may follow, the bounds of every figure at the end ([`Forecast`]). The outcome of an
//! assertion is certain when every value within the bounds gives the same one. A gate is decided
//! when one of its assertions is certain to fail, or when all are certain to hold and the gate is
//! certain to have evidence. This is exact curtailment: no probability is estimated, and the
//! verdict is the one that all runs would have given, whatever the outstanding ones do. Outstanding
//! runs that end with an error are no evidence, so the bounds also hold if only some of them, or
//! none, can be judged.

use std::sync::Arc;

use serde_json::{Number, Value};

use mcptest_numbers::percent;
use mcptest_trace::expect::Expectation;
use mcptest_trace::verdict::Verdict;

/// The values that a figure can have at the end.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Bounds {
    /// A number within these bounds, both included.
    Between {
        /// The lowest value.
        low: Number,
        /// The highest value; `None` if there is none.
        high: Option<Number>,
        /// True if the figure may be undefined instead.
        or_absent: bool,
    },
    /// Undefined, whatever follows.
    Absent,
    /// A list that only grows at its end: these items stay as they are.
    Grows(Arc<Vec<Value>>),
}

impl Bounds {
    /// A whole number within bounds.
    #[must_use]
    pub fn between(low: u64, high: u64) -> Self {
        Self::Between {
            low: low.into(),
            high: Some(high.into()),
            or_absent: false,
        }
    }

    /// A fraction within bounds, both of them finite.
    #[must_use]
    pub fn fraction(low: f64, high: f64) -> Self {
        Self::Between {
            low: number(low),
            high: Some(number(high)),
            or_absent: false,
        }
    }

    /// A count that never falls.
    #[must_use]
    pub fn at_least(low: u64) -> Self {
        Self::Between {
            low: low.into(),
            high: None,
            or_absent: false,
        }
    }

    /// A fraction that never falls below this.
    #[must_use]
    pub fn fraction_at_least(low: f64) -> Self {
        Self::Between {
            low: number(low),
            high: None,
            or_absent: false,
        }
    }

    /// The same bounds for a figure that may also be undefined at the end.
    #[must_use]
    pub fn or_absent(self) -> Self {
        match self {
            Self::Between { low, high, .. } => Self::Between {
                low,
                high,
                or_absent: true,
            },
            other => other,
        }
    }
}

fn number(value: f64) -> Number {
    Number::from_f64(value).unwrap_or_else(|| 0.into())
}

/// Bounds by target.
pub type BoundsOf = Vec<(&'static str, Bounds)>;

/// The bounds of all figures of a gate at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The bounds by target. A target that is not listed can have any value.
    pub bounds: BoundsOf,
    /// True if the gate may still find that there was nothing to judge.
    pub may_lack_evidence: bool,
}

impl Default for Forecast {
    /// Any figure can have any value.
    fn default() -> Self {
        Self {
            bounds: Vec::new(),
            may_lack_evidence: true,
        }
    }
}

/// Further runs that are all alike: as good as a run can be, or as bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HypotheticalRuns {
    /// The number of runs.
    pub runs: u64,
    /// True if the runs are good.
    pub good: bool,
}

/// The bounds of the figure that an assertion is about, and the rest of its path.
fn find<'a>(
    expectation: &'a Expectation,
    bounds: &'a [(&'static str, Bounds)],
) -> Option<(&'a str, &'a Bounds)> {
    bounds.iter().find_map(|(name, bounds)| {
        let rest = expectation.target.as_str().strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with('[')).then_some((rest, bounds))
    })
}

impl Default for PooledPercent {
    /// A percent over no runs so far, to which each run adds one.
    fn default() -> Self {
        Self {
            part: 0,
            whole: 0,
            per_run: 1,
        }
    }
}

/// A percent over all runs, rounded down, to which each run adds the same number below the line and
/// at most that number above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PooledPercent {
    /// The sum above the line so far.
    pub part: u64,
    /// The sum below the line so far.
    pub whole: u64,
    /// The number that each run adds below the line.
    pub per_run: u64,
}

impl PooledPercent {
    /// The bounds after up to `remaining` further runs.
    #[must_use]
    pub fn bounds(self, remaining: u64) -> Bounds {
        let more = self.per_run.saturating_mul(remaining);
        let whole = self.whole.saturating_add(more);
        // Without anything to count it is 100 and stays 100.
        let percent = |part: u64| percent::down(part, whole).unwrap_or(100);
        Bounds::between(percent(self.part), percent(self.part.saturating_add(more)))
    }

    /// The percent after these runs.
    #[must_use]
    pub fn after(self, next: HypotheticalRuns) -> Self {
        let more = self.per_run.saturating_mul(next.runs);
        Self {
            part: self.part.saturating_add(if next.good { more } else { 0 }),
            whole: self.whole.saturating_add(more),
            ..self
        }
    }
}

/// The certain outcome of an assertion; `None` if it depends on further runs.
fn certain_outcome(expectation: &Expectation, bounds: &[(&'static str, Bounds)]) -> Option<bool> {
    let (rest, bounds) = find(expectation, bounds)?;
    let matcher = &expectation.matcher;
    let if_absent = || matcher.check(None).is_ok();
    match bounds {
        Bounds::Between {
            low,
            high,
            or_absent,
        } if rest.is_empty() => {
            let holds = matcher.holds_over(low, high.as_ref())?;
            (!or_absent || holds == if_absent()).then_some(holds)
        }
        Bounds::Absent => Some(if_absent()),
        Bounds::Grows(items) => {
            let index: usize = rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
            items
                .get(index)
                .map(|item| matcher.check(Some(item)).is_ok())
        }
        Bounds::Between { .. } => None,
    }
}

/// The verdict that a gate is certain to reach.
pub(crate) fn decide(expectations: &[Expectation], forecast: &Forecast) -> Option<Verdict> {
    let mut certain = !forecast.may_lack_evidence;
    for expectation in expectations {
        match certain_outcome(expectation, &forecast.bounds) {
            Some(false) => return Some(Verdict::Fail),
            Some(true) => {}
            None => certain = false,
        }
    }
    certain.then_some(Verdict::Pass)
}

/// A lower bound of the further runs that are needed before a gate can be decided.
///
/// `hypothetical` gives the bounds of figures that good runs only raise and bad runs only lower, as
/// if such runs came first.
pub(crate) fn least_further_runs(
    expectations: &[Expectation],
    remaining: u64,
    hypothetical: &dyn Fn(HypotheticalRuns, u64) -> Option<BoundsOf>,
) -> u64 {
    // One failed assertion decides, and for a pass all must hold.
    let (mut to_fail, mut to_pass) = (u64::MAX, 1);
    for expectation in expectations {
        if !expectation.matcher.is_bound() {
            return 1.min(remaining);
        }
        let mut passes = u64::MAX;
        for good in [true, false] {
            let outcome_after = |runs: u64| {
                let next = HypotheticalRuns { runs, good };
                let bounds = hypothetical(next, remaining - runs)?;
                find(expectation, &bounds)?;
                Some(certain_outcome(expectation, &bounds))
            };
            let Some((needed, held)) = first_certain(remaining, outcome_after) else {
                return 1.min(remaining);
            };
            match held {
                Some(true) => passes = passes.min(needed),
                Some(false) => to_fail = to_fail.min(needed),
                None => {}
            }
        }
        to_pass = to_pass.max(passes);
    }
    to_fail.min(to_pass).clamp(1.min(remaining), remaining)
}

/// The smallest number of further runs, all alike, after which the outcome of an assertion is
/// certain, and that outcome. It stays certain from there on, so a binary search finds it. `None`
/// if the gate gives no bounds.
fn first_certain(
    remaining: u64,
    outcome_after: impl Fn(u64) -> Option<Option<bool>>,
) -> Option<(u64, Option<bool>)> {
    let (mut open, mut certain) = (0, remaining);
    while certain - open > 1 {
        let middle = open + (certain - open) / 2;
        if outcome_after(middle)?.is_some() {
            certain = middle;
        } else {
            open = middle;
        }
    }
    Some((certain, outcome_after(certain)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use mcptest_trace::expect::WrittenExpectation;

    fn expect(written: Value) -> Expectation {
        Expectation::compile(&WrittenExpectation(written), "").unwrap()
    }

    #[test]
    fn an_outcome_is_certain_only_when_all_values_agree() {
        let bounds = [
            ("a.rate", Bounds::between(60, 80)),
            ("a.cost", Bounds::at_least(5).or_absent()),
            ("a.time", Bounds::Absent),
            (
                "a.list",
                Bounds::Grows(Arc::new(vec![json!(100), json!(50)])),
            ),
        ];
        for (written, outcome) in [
            (json!({"a.rate": {">=": 60}}), Some(true)),
            (json!({"a.rate": {">=": 81}}), Some(false)),
            (json!({"a.rate": {">=": 70}}), None),
            // A larger value and an undefined one both fail.
            (json!({"a.cost": {"<=": 4}}), Some(false)),
            (json!({"a.cost": {">=": 5}}), None),
            (json!({"a.time": {"<=": 4}}), Some(false)),
            (json!({"a.time": {"exists": false}}), Some(true)),
            (json!({"a.list[1]": {">=": 50}}), Some(true)),
            (json!({"a.list[2]": {">=": 50}}), None),
            (json!({"a.list[-1]": {">=": 50}}), None),
            (json!({"a.list": {"length": 2}}), None),
            (json!({"a.other": 1}), None),
        ] {
            assert_eq!(
                certain_outcome(&expect(written.clone()), &bounds),
                outcome,
                "{written}"
            );
        }
    }

    #[test]
    fn one_certain_failure_decides_and_a_pass_needs_all_and_evidence() {
        let forecast = |may_lack_evidence| Forecast {
            bounds: vec![("a", Bounds::between(60, 80))],
            may_lack_evidence,
        };
        let (holds, fails, open) = (
            expect(json!({"a": {">=": 50}})),
            expect(json!({"a": {">=": 90}})),
            expect(json!({"a": {">=": 70}})),
        );
        let decide = |list: &[&Expectation], lacking| {
            let list: Vec<Expectation> = list.iter().map(|one| (*one).clone()).collect();
            decide(&list, &forecast(lacking))
        };
        assert_eq!(decide(&[&holds], false), Some(Verdict::Pass));
        assert_eq!(decide(&[&holds], true), None);
        assert_eq!(decide(&[&holds, &open], false), None);
        assert_eq!(decide(&[&open, &fails], true), Some(Verdict::Fail));
    }

    #[test]
    fn the_search_finds_the_first_certain_number() {
        for (remaining, first) in [(1, 1), (2, 1), (10, 7), (10, 10), (100_000, 99_999)] {
            let found = first_certain(remaining, |runs| Some((runs >= first).then_some(true)));
            assert_eq!(found, Some((first, Some(true))));
        }
        assert_eq!(first_certain(5, |_| None), None);
    }
}
