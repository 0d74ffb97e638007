//! What the figures of a gate can still become while runs are outstanding: the ground on which a test stops early.
//!
//! A gate that knows how its figures move tells, for the runs so far and the number of runs that may still come, the bounds of every figure at the
//! end ([`Outlook`]). An assertion is foreseen when every value within the bounds gives the same outcome; a gate is decided when one of its
//! assertions is certain to fail, or all are certain to hold and the evidence is certain to be there. This is exact curtailment: no
//! chance is estimated, and the verdict is the one that all runs would have given, whatever the outstanding ones do. Outstanding runs that
//! break are no evidence, so the bounds also hold if only some of them, or none, can be judged.

use serde_json::{Number, Value};

use super::equal_function_sets::{Class, count_runs};
use super::{Context, LoadedGate, Run, Score};
use crate::expect::Expectation;
use crate::percent;
use crate::verdict::Verdict;

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
    Grows(Vec<Value>),
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

/// The runs that were judged so far, and what they amount to.
#[derive(Debug, Clone, Copy)]
pub struct SoFar<'a> {
    /// What scoring needs besides the runs.
    pub context: &'a Context<'a>,
    /// At least one.
    pub runs: &'a [Run<'a>],
    /// Their score.
    pub score: &'a Score,
}

impl SoFar<'_> {
    /// The reach of a count over all runs: further ones only add to it.
    #[must_use]
    pub fn grows(&self, target: &'static str) -> (&'static str, Reach) {
        (target, Reach::at_least(self.count(target)))
    }

    /// The reach of a flag that every run must earn: once lost, it stays lost.
    #[must_use]
    pub fn may_be_lost(&self, target: &'static str) -> (&'static str, Reach) {
        (target, Reach::between(0, self.count(target)))
    }

    /// Whether no run made a call.
    #[must_use]
    pub fn nothing_called(&self) -> bool {
        self.runs.iter().all(|run| run.trace.tool_calls.is_empty())
    }

    /// A whole figure of the score; 0 if it is none.
    #[must_use]
    pub fn count(&self, target: &str) -> u64 {
        self.figure(target).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A figure of the score, if it is defined.
    #[must_use]
    pub fn figure(&self, target: &str) -> Option<&Value> {
        let found = self.score.values.iter().find(|(name, _)| *name == target);
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }
}

/// The runs that were judged so far, certain runs to come, and how many may come after them.
#[derive(Debug, Clone, Copy)]
pub struct Ahead<'a> {
    /// What scoring needs besides the runs.
    pub context: &'a Context<'a>,
    /// Those that were judged.
    pub runs: &'a [Run<'a>],
    /// Those that are certain to come.
    pub next: Imagined,
    /// How many may come after them.
    pub remaining: u64,
}

impl Ahead<'_> {
    /// Where a pooled percent can be in the end.
    #[must_use]
    pub fn reach(&self, so_far: Steady) -> Reach {
        so_far.after(self.next).reach(self.remaining)
    }

    /// The recall so far, if it is one that runs move steadily.
    pub(super) fn recall(&self, classes: &[Class]) -> Option<Steady> {
        let counts = count_runs(classes, self.context, self.runs);
        Steady::recall(counts, classes.len() as u64, self.runs.len() as u64)
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
fn find<'a>(expectation: &'a Expectation, reach: &'a [(&'static str, Reach)]) -> Option<(&'a str, &'a Reach)> {
    reach.iter().find_map(|(name, reach)| {
        let rest = expectation.target.as_str().strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with('[')).then_some((rest, reach))
    })
}

/// A pooled percent, rounded down, of which every run adds the same number below the line and up to that many above it.
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
    /// The share of runs of which something holds.
    #[must_use]
    pub fn of_runs<T>(runs: &[T], holds: impl Fn(&T) -> bool) -> Self {
        Self {
            part: runs.iter().filter(|run| holds(run)).count() as u64,
            whole: runs.len() as u64,
            per_run: 1,
        }
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
        Reach::Between { low, high, or_absent } if rest.is_empty() => {
            let settled = matcher.settle(low, high.as_ref())?;
            (!or_absent || settled == if_absent()).then_some(settled)
        }
        Reach::Absent => Some(if_absent()),
        Reach::Grows(items) => {
            let index: usize = rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
            items.get(index).map(|item| matcher.check(Some(item)).is_ok())
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

impl LoadedGate {
    /// The verdict that the gate comes to whatever the outstanding runs do; nothing as long as it depends on them. Runs that break are
    /// not judged, so fewer than `remaining` may come.
    #[must_use]
    pub fn decided(&self, context: &Context<'_>, runs: &[Run<'_>], remaining: u64) -> Option<Verdict> {
        if runs.is_empty() || !self.info.decides_early {
            return None;
        }
        let score = self.scorer.score(context, runs);
        let so_far = SoFar {
            context,
            runs,
            score: &score,
        };
        decide(self.scorer.expectations(), &self.scorer.outlook(&so_far, remaining))
    }

    /// A number of further runs that is needed at least before the gate can be decided: from 1 to `remaining`, and never more than really
    /// needed. So this many can be started at once and none is made in vain.
    #[must_use]
    pub fn least_further_runs(&self, context: &Context<'_>, runs: &[Run<'_>], remaining: u64) -> u64 {
        if !self.info.decides_early {
            return remaining;
        }
        // One failed assertion decides, and for a pass all must hold.
        let (mut to_fail, mut to_pass) = (u64::MAX, 1);
        for expectation in self.scorer.expectations() {
            if !expectation.matcher.is_bound() {
                return 1.min(remaining);
            }
            let mut passes = u64::MAX;
            for good in [true, false] {
                let foreseen = |runs_to_come: u64| {
                    let reach = self.scorer.imagine(&Ahead {
                        context,
                        runs,
                        next: Imagined {
                            runs: runs_to_come,
                            good,
                        },
                        remaining: remaining - runs_to_come,
                    })?;
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
    pub fn outlook(&self, context: &Context<'_>, runs: &[Run<'_>], remaining: u64) -> Outlook {
        if runs.is_empty() {
            return Outlook::default();
        }
        let score = self.scorer.score(context, runs);
        let so_far = SoFar {
            context,
            runs,
            score: &score,
        };
        self.scorer.outlook(&so_far, remaining)
    }
}

/// The least number of runs, all alike, after which an assertion is settled, and how. Once settled it stays so, which makes it a search in a
/// sorted row. Nothing if the gate cannot tell.
fn first_settled(remaining: u64, foreseen: impl Fn(u64) -> Option<Option<bool>>) -> Option<(u64, Option<bool>)> {
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
    use crate::expect::WrittenExpectation;

    fn expect(written: Value) -> Expectation {
        Expectation::compile(&WrittenExpectation(written), "").unwrap()
    }

    #[test]
    fn an_assertion_is_foreseen_only_when_every_end_agrees() {
        let reach = [
            ("a.rate", Reach::between(60, 80)),
            ("a.cost", Reach::at_least(5).or_absent()),
            ("a.time", Reach::Absent),
            ("a.list", Reach::Grows(vec![json!(100), json!(50)])),
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
            assert_eq!(foresee(&expect(written.clone()), &reach), foreseen, "{written}");
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
