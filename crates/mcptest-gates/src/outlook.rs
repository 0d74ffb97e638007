//! What the figures of a gate can still become while runs are outstanding: the ground on which a
//! test stops early.
//!
//! A gate that knows how its figures move tells, for the runs so far and the number of runs that
//! may still come, the bounds of every figure at the end ([`Outlook`]). An assertion is foreseen
//! when every value within the bounds gives the same outcome; a gate is decided when one of its
//! assertions is certain to fail, or all are certain to hold and the evidence is certain to be
//! there. This is exact curtailment: no chance is estimated, and the verdict is the one that all
//! runs would have given, whatever the outstanding ones do. Outstanding runs that break are no
//! evidence, so the bounds also hold if only some of them, or none, can be judged.

use std::sync::Arc;

use serde_json::{Number, Value};

use super::{Context, LoadedGate, Run};
use mcptest_numbers::percent;
use mcptest_trace::expect::Expectation;
use mcptest_trace::verdict::Verdict;

/// What a figure can be in the end.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// A number within these bounds, both included.
    Between {
        /// The least.
        low: Number,
        /// The most; nothing if there is no end to it.
        high: Option<Number>,
        /// Whether it may be undefined instead.
        or_absent: bool,
    },
    /// Undefined, whatever comes.
    Absent,
    /// A list that only grows at its end: these items stay.
    Grows(Arc<Vec<Value>>),
}

impl Reach {
    /// A whole number within bounds.
    #[must_use]
    pub fn between(low: u64, high: u64) -> Self {
        Self::Between {
            low: low.into(),
            high: Some(high.into()),
            or_absent: false,
        }
    }

    /// A fraction within bounds. Both are finite.
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

    /// The same, but it may be undefined in the end.
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

/// What figures can be in the end, by target.
pub type Reaches = Vec<(&'static str, Reach)>;

/// What a gate's figures can be in the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// By target. One that is not listed can become anything.
    pub reach: Reaches,
    /// Whether the gate may find in the end that there was nothing to judge.
    pub may_lack_evidence: bool,
}

impl Default for Outlook {
    /// Nothing is known.
    fn default() -> Self {
        Self {
            reach: Vec::new(),
            may_lack_evidence: true,
        }
    }
}

/// Runs to come that are all alike, as good as a run can be or as bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imagined {
    /// How many.
    pub runs: u64,
    /// Whether they are good.
    pub good: bool,
}

/// The reach of the figure that an assertion is about, and the rest of its path.
fn find<'a>(
    expectation: &'a Expectation,
    reach: &'a [(&'static str, Reach)],
) -> Option<(&'a str, &'a Reach)> {
    reach.iter().find_map(|(name, reach)| {
        let rest = expectation.target.as_str().strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with('[')).then_some((rest, reach))
    })
}

impl Default for Steady {
    /// No run so far, and each counts once.
    fn default() -> Self {
        Self {
            part: 0,
            whole: 0,
            per_run: 1,
        }
    }
}

/// A pooled percent, rounded down, of which every run adds the same number below the line and up to
/// that many above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steady {
    /// Above the line so far.
    pub part: u64,
    /// Below the line so far.
    pub whole: u64,
    /// What a run adds below the line.
    pub per_run: u64,
}

impl Steady {
    /// The share of runs of which something holds, one more.
    pub fn count_run(&mut self, holds: bool) {
        self.part += u64::from(holds);
        self.whole += 1;
    }

    /// Where it can be after up to `remaining` more runs.
    #[must_use]
    pub fn reach(self, remaining: u64) -> Reach {
        let more = self.per_run.saturating_mul(remaining);
        let whole = self.whole.saturating_add(more);
        // Without anything to count it is 100, and stays so.
        let percent = |part: u64| percent::down(part, whole).unwrap_or(100);
        Reach::between(percent(self.part), percent(self.part.saturating_add(more)))
    }

    /// As if these runs had been made.
    #[must_use]
    pub fn after(self, next: Imagined) -> Self {
        let more = self.per_run.saturating_mul(next.runs);
        Self {
            part: self.part.saturating_add(if next.good { more } else { 0 }),
            whole: self.whole.saturating_add(more),
            ..self
        }
    }
}

/// What an assertion is certain to come to; nothing if that is open.
fn foresee(expectation: &Expectation, reach: &[(&'static str, Reach)]) -> Option<bool> {
    let (rest, reach) = find(expectation, reach)?;
    let matcher = &expectation.matcher;
    let if_absent = || matcher.check(None).is_ok();
    match reach {
        Reach::Between {
            low,
            high,
            or_absent,
        } if rest.is_empty() => {
            let settled = matcher.settle(low, high.as_ref())?;
            (!or_absent || settled == if_absent()).then_some(settled)
        }
        Reach::Absent => Some(if_absent()),
        Reach::Grows(items) => {
            let index: usize = rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
            items
                .get(index)
                .map(|item| matcher.check(Some(item)).is_ok())
        }
        Reach::Between { .. } => None,
    }
}

/// The verdict that a gate is certain to come to.
fn decide(expectations: &[Expectation], outlook: &Outlook) -> Option<Verdict> {
    let mut certain = !outlook.may_lack_evidence;
    for expectation in expectations {
        match foresee(expectation, &outlook.reach) {
            Some(false) => return Some(Verdict::Fail),
            Some(true) => {}
            None => certain = false,
        }
    }
    certain.then_some(Verdict::Pass)
}

/// A gate that looks on while the runs of a test are made. It counts each run once, so a run costs
/// the same however many came before.
pub struct Watch<'a> {
    decides_early: bool,
    lookout: Box<dyn Lookout + 'a>,
    runs: u64,
    /// Once the gate is decided it stays so, whatever comes.
    decided: Option<Verdict>,
}

/// A block together with what it counted.
pub(super) trait Lookout: Send + Sync {
    fn count(&mut self, context: &Context<'_>, run: &Run<'_>);
    fn expectations(&self) -> &[Expectation];
    fn outlook(&self, remaining: u64) -> Outlook;
    fn imagine(&self, next: Imagined, remaining: u64) -> Option<Reaches>;
}

impl LoadedGate {
    /// Begins to look on.
    #[must_use]
    pub fn watch(&self) -> Watch<'_> {
        Watch {
            decides_early: self.info.decides_early,
            lookout: self.scorer.lookout(),
            runs: 0,
            decided: None,
        }
    }
}

impl Watch<'_> {
    /// Takes note of the next run that was carried through, in the order of the runs' numbers.
    pub fn count(&mut self, context: &Context<'_>, run: &Run<'_>) {
        self.runs += 1;
        if self.decides_early && self.decided.is_none() {
            self.lookout.count(context, run);
        }
    }

    /// The verdict that the gate comes to whatever the outstanding runs do; nothing as long as it
    /// depends on them. Runs that break are not judged, so fewer than `remaining` may come.
    pub fn decided(&mut self, remaining: u64) -> Option<Verdict> {
        if self.decided.is_none() && self.decides_early && self.runs > 0 {
            self.decided = decide(
                self.lookout.expectations(),
                &self.lookout.outlook(remaining),
            );
        }
        self.decided
    }

    /// A number of further runs that is needed at least before the gate can be decided: from 1 to
    /// `remaining`, and never more than really needed. So this many can be started at once and none
    /// is made in vain.
    #[must_use]
    pub fn least_further_runs(&self, remaining: u64) -> u64 {
        if !self.decides_early {
            return remaining;
        }
        // One failed assertion decides, and for a pass all must hold.
        let (mut to_fail, mut to_pass) = (u64::MAX, 1);
        for expectation in self.lookout.expectations() {
            if !expectation.matcher.is_bound() {
                return 1.min(remaining);
            }
            let mut passes = u64::MAX;
            for good in [true, false] {
                let foreseen = |runs_to_come: u64| {
                    let imagined = Imagined {
                        runs: runs_to_come,
                        good,
                    };
                    let reach = self.lookout.imagine(imagined, remaining - runs_to_come)?;
                    find(expectation, &reach)?;
                    Some(foresee(expectation, &reach))
                };
                let Some((needed, held)) = first_settled(remaining, foreseen) else {
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

    /// The bounds of every figure, for tests that hold them against what really comes.
    #[must_use]
    pub fn outlook(&self, remaining: u64) -> Outlook {
        if self.runs == 0 {
            return Outlook::default();
        }
        self.lookout.outlook(remaining)
    }
}

/// The least number of runs, all alike, after which an assertion is settled, and how. Once settled
/// it stays so, which makes it a search in a sorted row. Nothing if the gate cannot tell.
fn first_settled(
    remaining: u64,
    foreseen: impl Fn(u64) -> Option<Option<bool>>,
) -> Option<(u64, Option<bool>)> {
    let (mut open, mut settled) = (0, remaining);
    while settled - open > 1 {
        let middle = open + (settled - open) / 2;
        if foreseen(middle)?.is_some() {
            settled = middle;
        } else {
            open = middle;
        }
    }
    Some((settled, foreseen(settled)?))
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
    fn an_assertion_is_foreseen_only_when_every_end_agrees() {
        let reach = [
            ("a.rate", Reach::between(60, 80)),
            ("a.cost", Reach::at_least(5).or_absent()),
            ("a.time", Reach::Absent),
            (
                "a.list",
                Reach::Grows(Arc::new(vec![json!(100), json!(50)])),
            ),
        ];
        for (written, foreseen) in [
            (json!({"a.rate": {">=": 60}}), Some(true)),
            (json!({"a.rate": {">=": 81}}), Some(false)),
            (json!({"a.rate": {">=": 70}}), None),
            // Larger or undefined: both fail.
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
                foresee(&expect(written.clone()), &reach),
                foreseen,
                "{written}"
            );
        }
    }

    #[test]
    fn one_certain_failure_decides_and_a_pass_needs_all_and_evidence() {
        let outlook = |may_lack_evidence| Outlook {
            reach: vec![("a", Reach::between(60, 80))],
            may_lack_evidence,
        };
        let (holds, fails, open) = (
            expect(json!({"a": {">=": 50}})),
            expect(json!({"a": {">=": 90}})),
            expect(json!({"a": {">=": 70}})),
        );
        let decide = |list: &[&Expectation], lacking| {
            let list: Vec<Expectation> = list.iter().map(|one| (*one).clone()).collect();
            decide(&list, &outlook(lacking))
        };
        assert_eq!(decide(&[&holds], false), Some(Verdict::Pass));
        assert_eq!(decide(&[&holds], true), None);
        assert_eq!(decide(&[&holds, &open], false), None);
        assert_eq!(decide(&[&open, &fails], true), Some(Verdict::Fail));
    }

    #[test]
    fn the_search_finds_the_first() {
        for (remaining, first) in [(1, 1), (2, 1), (10, 7), (10, 10), (100_000, 99_999)] {
            let found = first_settled(remaining, |runs| Some((runs >= first).then_some(true)));
            assert_eq!(found, Some((first, Some(true))));
        }
        assert_eq!(first_settled(5, |_| None), None);
    }
}
