//! The differences between two reports, test by test.
//!
//! A [`Comparison`] holds differences only: a report compared with itself gives an empty one.
//!
//! A *flip* is a verdict, a gate or a single bound that changed sides:
//!
//! | flip | from | to |
//! |---|---|---|
//! | `regressed` | pass | fail |
//! | `fixed` | fail | pass |
//! | `lost` | pass | no evidence, error, or not run |
//! | `regained` | no evidence or error | pass |
//!
//! The bounds of a suite decide whether a higher figure is better. A figure that moved within its
//! bounds is listed, and is not a flip.

mod agent;
mod changed;
mod ctrf;
mod fail_on;
mod github;
mod gitlab;
mod junit;
mod markdown;
mod ndjson;
mod openmetrics;
mod pr;
mod pretty;
mod sarif;
mod statistics;
mod tap;

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;

use mcptest_events::CaseId;
use mcptest_trace::expect::Assertion;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::exit_code::ExitCode;
use crate::model::SCHEMA_VERSION;
use crate::report::{Report, TestReport};
use crate::reporter::{RenderError, Style, html};

pub use self::fail_on::FailOn;
pub(crate) use self::pretty::name as test_name;
use self::statistics::Matched;
pub use self::statistics::{Counted, MeanChange, Population, RateChange, Statistics};

/// The differences between two reports.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The version of the format.
    pub schema_version: u32,
    /// The exit code: 1 if anything regressed, else 3 if anything was lost, else 0. `--fail-on`
    /// decides otherwise.
    pub exit_code: ExitCode,
    /// The number of baselines.
    pub baselines: usize,
    /// The differences between what was measured before and now.
    pub population: Population,
    /// The number of tests per kind of change.
    pub counts: Counts,
    /// The tests that differ: in the order of the current report, then those that it does not have.
    pub cases: Vec<CaseChange>,
    /// Every rate that both sides have, also those that do not differ.
    pub rates: Vec<RateChange>,
    /// The means per run that differ.
    pub means: Vec<MeanChange>,
}

/// The number of tests per kind of change, each test counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Tests of which something passed before and fails now.
    pub regressed: usize,
    /// Those of them that cannot be noise.
    pub deterministic: usize,
    /// Tests of which something passed before and can no longer be judged.
    pub lost: usize,
    /// Tests of which something failed before and passes now.
    pub fixed: usize,
    /// Tests of which something could not be judged before and passes now.
    pub regained: usize,
    /// Tests with other figures.
    pub changed: usize,
    /// Not in the baseline.
    pub added: usize,
    /// Only in the baseline.
    pub removed: usize,
    /// In both, without any difference.
    pub unchanged: usize,
}

/// A change of sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Flip {
    /// It passed and fails.
    Regressed,
    /// It passed and is no longer judged.
    Lost,
    /// It failed and passes.
    Fixed,
    /// It was not judged and passes.
    Regained,
}

/// The kind of change of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// At least one flip of this kind. If there are several kinds, the first of regressed, lost,
    /// fixed, regained wins.
    Regressed,
    /// See `regressed`.
    Lost,
    /// See `regressed`.
    Fixed,
    /// See `regressed`.
    Regained,
    /// No flip, but figures or verdicts differ.
    Changed,
    /// Not in the baseline.
    Added,
    /// Only in the baseline.
    Removed,
}

/// The kind of a regression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// It cannot be noise: a direct test, or a test of which every one of several runs passed and
    /// now every one of several fails.
    Deterministic,
    /// Some runs pass and some do not, or there was only one: it may be noise.
    Noisy,
}

/// A value before and now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pair<T> {
    /// In the baseline; `null` if absent.
    pub old: Option<T>,
    /// In the current report; `null` if absent.
    pub new: Option<T>,
}

/// A test that differs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CaseChange {
    /// The test and its model.
    #[serde(flatten)]
    pub id: CaseId,
    /// The kind of change.
    pub change: Change,
    /// Its verdict.
    pub verdict: Pair<Verdict>,
    /// Set if the verdict changed sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flip: Option<Flip>,
    /// For a regression: if it can be noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nature: Option<Nature>,
    /// Figures over its runs that differ: `runs.total`, `runs.passed`, `tokens.median`,
    /// `tokens.max`, `spend.usd`, `runs.pass_rate`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Delta>,
    /// Its gates that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateChange>,
}

/// A gate that differs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GateChange {
    /// The block's name.
    pub block: String,
    /// Its verdict.
    pub verdict: Pair<Verdict>,
    /// Set if the verdict changed sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flip: Option<Flip>,
    /// Its figures that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Delta>,
    /// Its bounds that changed sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundFlip>,
}

/// A figure that differs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Delta {
    /// Its full name.
    pub name: String,
    /// In the baseline; `null` if undefined or absent.
    pub old: Value,
    /// In the current report; `null` if undefined or absent.
    pub new: Value,
    /// `new` minus `old`, if both are numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<Number>,
    /// For a rate: the uncertainty of the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
}

/// A bound that changed sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BoundFlip {
    /// The figure.
    pub target: String,
    /// The bound on it.
    pub matcher: Value,
    /// The direction.
    pub flip: Flip,
}

impl Comparison {
    /// Returns true if nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }
}

/// Compares two reports.
#[must_use]
pub fn compare(baseline: &Report, current: &Report) -> Comparison {
    compare_pooled(baseline, &[], current)
}

/// Compares a report with several baselines. The verdicts and figures are compared with those of
/// `first`, or of the first baseline that has the test; for statistics, the runs of all baselines
/// are taken together.
#[must_use]
pub fn compare_pooled(first: &Report, more: &[Report], current: &Report) -> Comparison {
    let baselines: Vec<&Report> = std::iter::once(first).chain(more).collect();
    let new = current.tests.iter().enumerate();
    let mut matched: Vec<Matched<'_>> = new
        .map(|(at, new)| Matched {
            at,
            new,
            old: Vec::new(),
        })
        .collect();
    for baseline in &baselines {
        // The tests of the current report come first, in their order.
        for (one, (old, _)) in matched.iter_mut().zip(pairs(baseline, current)) {
            one.old.extend(old);
        }
    }
    let only_old = pairs(first, current).into_iter();
    let only_old = only_old.filter(|(_, new)| new.is_none());
    let rates = statistics::rates(&matched);
    let is_timed = baselines.iter().all(|report| report.is_timed()) && current.is_timed();
    let means = statistics::means(&matched, is_timed);
    let mut counts = Counts::default();
    let mut cases = Vec::new();
    let both = matched
        .iter()
        .map(|one| (one.old.first().copied(), Some(one.new)));
    for (at, (old, new)) in both.chain(only_old).enumerate() {
        let skipped = old.is_some_and(|old| new.is_none() && current.not_run.contains(&old.id));
        let Some(mut change) = change_of(old, new, skipped) else {
            counts.unchanged += 1;
            continue;
        };
        for rate in rates.iter().filter(|rate| rate.at == at) {
            change.add_rate(rate);
        }
        *counts.of(change.change) += 1;
        counts.deterministic += usize::from(change.nature == Some(Nature::Deterministic));
        cases.push(change);
    }
    let mut comparison = Comparison {
        schema_version: SCHEMA_VERSION,
        exit_code: ExitCode::Passed,
        baselines: baselines.len(),
        population: statistics::population(&baselines, current, &matched),
        counts,
        cases,
        rates,
        means,
    };
    comparison.exit_code = comparison.exit_code_for(FailOn::Regression);
    comparison
}

impl CaseChange {
    /// Adds a rate where it is shown: with the figure of its floor, or as a separate figure.
    fn add_rate(&mut self, rate: &RateChange) {
        if rate.rate == statistics::SELECTED {
            let gates = self.gates.iter_mut().flat_map(|gate| &mut gate.values);
            for delta in gates.filter(|delta| delta.name == rate.rate) {
                delta.statistics = Some(rate.statistics.clone());
            }
            return;
        }
        let share = |side: Option<Counted>| {
            let side = side.filter(|side| side.runs > 0);
            side.map_or(Value::Null, |side| {
                (side.passed as f64 / side.runs as f64).into()
            })
        };
        let (old, new) = (share(rate.counts.old), share(rate.counts.new));
        if old != new {
            self.figures.push(Delta {
                name: rate.rate.to_owned(),
                delta: difference(&old, &new),
                old,
                new,
                statistics: Some(rate.statistics.clone()),
            });
        }
    }
}

impl Counts {
    fn of(&mut self, change: Change) -> &mut usize {
        match change {
            Change::Regressed => &mut self.regressed,
            Change::Lost => &mut self.lost,
            Change::Fixed => &mut self.fixed,
            Change::Regained => &mut self.regained,
            Change::Changed => &mut self.changed,
            Change::Added => &mut self.added,
            Change::Removed => &mut self.removed,
        }
    }
}

type Sides<'a> = (Option<&'a TestReport>, Option<&'a TestReport>);

/// Pairs each test with its counterpart of the same suite, name and model, else of the same name
/// and model (for a renamed suite). Several tests with one name are paired in their order.
fn pairs<'a>(baseline: &'a Report, current: &'a Report) -> Vec<Sides<'a>> {
    let mut partner: Vec<Option<&TestReport>> = vec![None; current.tests.len()];
    let mut left: Vec<&TestReport> = baseline.tests.iter().collect();
    for ignore_suite in [false, true] {
        let key = |test: &TestReport| {
            let mut id = test.id.clone();
            if ignore_suite {
                id.suite.clear();
            }
            id
        };
        let mut waiting: BTreeMap<CaseId, VecDeque<usize>> = BTreeMap::new();
        for (at, test) in current.tests.iter().enumerate() {
            if partner[at].is_none() {
                waiting.entry(key(test)).or_default().push_back(at);
            }
        }
        left.retain(
            |old| match waiting.get_mut(&key(old)).and_then(VecDeque::pop_front) {
                Some(at) => {
                    partner[at] = Some(old);
                    false
                }
                None => true,
            },
        );
    }
    let there = current
        .tests
        .iter()
        .zip(partner)
        .map(|(new, old)| (old, Some(new)));
    there
        .chain(left.into_iter().map(|old| (Some(old), None)))
        .collect()
}

/// The change of a test; `None` if nothing differs. `skipped`: the current report lists the test as
/// not run.
fn change_of(
    old: Option<&TestReport>,
    new: Option<&TestReport>,
    skipped: bool,
) -> Option<CaseChange> {
    let id = new.or(old)?.id.clone();
    let verdict = Pair {
        old: old.map(|test| test.verdict),
        new: new.map(|test| test.verdict),
    };
    let flip = match (verdict.old, skipped) {
        (Some(Verdict::Pass), true) => Some(Flip::Lost),
        _ => flip(&verdict),
    };
    // A test in only one of the reports is shown by its verdict.
    let figures = match (old, new) {
        (Some(old), Some(new)) => deltas(&figures(old), &figures(new)),
        _ => Vec::new(),
    };
    let gates = gate_changes(old, new);
    let flips = || {
        let of_gates = gates.iter().flat_map(|gate| {
            let of_bounds = gate.bounds.iter().map(|bound| bound.flip);
            gate.flip.into_iter().chain(of_bounds)
        });
        flip.into_iter().chain(of_gates)
    };
    let is = |wanted: Flip| flips().any(|flip| flip == wanted);
    let change = match (old, new) {
        _ if is(Flip::Regressed) => Change::Regressed,
        _ if is(Flip::Lost) => Change::Lost,
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        _ if is(Flip::Fixed) => Change::Fixed,
        _ if is(Flip::Regained) => Change::Regained,
        _ if verdict.old == verdict.new && figures.is_empty() && gates.is_empty() => return None,
        _ => Change::Changed,
    };
    let nature = match (change, old, new) {
        (Change::Regressed, Some(old), Some(new)) => {
            Some(match statistics::is_deterministic(old, new) {
                true => Nature::Deterministic,
                false => Nature::Noisy,
            })
        }
        _ => None,
    };
    Some(CaseChange {
        id,
        change,
        nature,
        verdict,
        flip,
        figures,
        gates,
    })
}

/// The flip of a verdict; `None` if it is absent on one side.
fn flip(verdict: &Pair<Verdict>) -> Option<Flip> {
    match (verdict.old?, verdict.new?) {
        (Verdict::Pass, Verdict::Fail) => Some(Flip::Regressed),
        (Verdict::Fail, Verdict::Pass) => Some(Flip::Fixed),
        (Verdict::Pass, Verdict::NoEvidence | Verdict::Error) => Some(Flip::Lost),
        (Verdict::NoEvidence | Verdict::Error, Verdict::Pass) => Some(Flip::Regained),
        _ => None,
    }
}

/// The figures of a test that follow from its runs alone.
fn figures(test: &TestReport) -> Map<String, Value> {
    let mut figures = Map::new();
    if test.run_count() == 0 {
        return figures;
    }
    figures.insert("runs.total".to_owned(), test.run_count().into());
    figures.insert("runs.passed".to_owned(), test.passed_runs().into());
    let mut tokens: Vec<u64> = test.runs.iter().filter_map(|run| run.tokens()).collect();
    tokens.sort_unstable();
    if let Some(most) = tokens.last() {
        let (low, high) = (tokens[(tokens.len() - 1) / 2], tokens[tokens.len() / 2]);
        // The mean of the middle two, rounded down, without a sum that could overflow.
        figures.insert("tokens.median".to_owned(), (low + (high - low) / 2).into());
        figures.insert("tokens.max".to_owned(), (*most).into());
    }
    if let Some(usd) = test.spend.and_then(|spend| spend.usd) {
        figures.insert("spend.usd".to_owned(), usd.into());
    }
    figures
}

/// The figures that differ, in the order of the new side, then those that only the old one has.
fn deltas(old: &Map<String, Value>, new: &Map<String, Value>) -> Vec<Delta> {
    let names = new
        .keys()
        .chain(old.keys().filter(|name| !new.contains_key(*name)));
    names
        .filter_map(|name| {
            let side = |side: &Map<String, Value>| side.get(name).cloned().unwrap_or(Value::Null);
            let (old, new) = (side(old), side(new));
            (old != new).then(|| Delta {
                name: name.clone(),
                delta: difference(&old, &new),
                old,
                new,
                statistics: None,
            })
        })
        .collect()
}

/// `new` minus `old`. Whole numbers are exact, fractions are rounded to six decimals.
fn difference(old: &Value, new: &Value) -> Option<Number> {
    let whole = |value: &Value| {
        value
            .as_i64()
            .map(i128::from)
            .or_else(|| value.as_u64().map(i128::from))
    };
    if let (Some(old), Some(new)) = (whole(old), whole(new)) {
        return Number::from_i128(new - old);
    }
    const PLACES: f64 = 1e6;
    let exact = new.as_f64()? - old.as_f64()?;
    let rounded = (exact * PLACES).round() / PLACES;
    // Very large numbers overflow when they are scaled.
    Number::from_f64(if rounded.is_finite() { rounded } else { exact })
}

fn gate_changes(old: Option<&TestReport>, new: Option<&TestReport>) -> Vec<GateChange> {
    let (Some(old), Some(new)) = (old, new) else {
        return Vec::new();
    };
    let find = |test: &TestReport, block: &str| {
        test.gates.iter().find(|gate| gate.block == block).cloned()
    };
    let only_old = old
        .gates
        .iter()
        .filter(|gate| find(new, &gate.block).is_none());
    new.gates
        .iter()
        .chain(only_old)
        .filter_map(|gate| {
            gate_change(
                find(old, &gate.block).as_ref(),
                find(new, &gate.block).as_ref(),
            )
        })
        .collect()
}

fn gate_change(old: Option<&GateOutcome>, new: Option<&GateOutcome>) -> Option<GateChange> {
    let verdict = Pair {
        old: old.map(|gate| gate.verdict),
        new: new.map(|gate| gate.verdict),
    };
    let nothing = Map::new();
    let values = |side: Option<&GateOutcome>| side.map_or(&nothing, |gate| &gate.values).clone();
    let bounds =
        |side: Option<&GateOutcome>| side.map(|gate| gate.assertions.clone()).unwrap_or_default();
    let change = GateChange {
        block: new.or(old)?.block.clone(),
        flip: flip(&verdict),
        values: deltas(&values(old), &values(new)),
        bounds: bound_flips(&bounds(old), &bounds(new)),
        verdict,
    };
    let same = change.verdict.old == change.verdict.new
        && change.values.is_empty()
        && change.bounds.is_empty();
    (!same).then_some(change)
}

/// The flips of bounds that both sides have. A bound with another limit is another bound.
fn bound_flips(old: &[Assertion], new: &[Assertion]) -> Vec<BoundFlip> {
    let mut left: Vec<&Assertion> = old.iter().collect();
    let mut flips = Vec::new();
    for now in new {
        let same = |then: &&Assertion| then.target == now.target && then.matcher == now.matcher;
        let Some(at) = left.iter().position(same) else {
            continue;
        };
        let flip = match (left.remove(at).passed, now.passed) {
            (true, false) => Flip::Regressed,
            (false, true) => Flip::Fixed,
            _ => continue,
        };
        flips.push(BoundFlip {
            target: now.target.clone(),
            matcher: now.matcher.clone(),
            flip,
        });
    }
    flips
}

type Render = fn(&Comparison, &Report, Style, &mut dyn Write) -> Result<(), RenderError>;

/// The reporters that can show a comparison.
const RENDERERS: [(&str, Render); 14] = [
    ("pretty", |comparison, _, style, out| {
        Ok(pretty::render(comparison, style, out)?)
    }),
    ("json", |comparison, _, _, out| {
        Ok(crate::reporter::json::write_pretty(comparison, out)?)
    }),
    ("markdown", |comparison, _, style, out| {
        Ok(markdown::render(comparison, style, out)?)
    }),
    ("pr", pr::render),
    ("html", |comparison, current, style, out| {
        html::render_compared(current, Some(comparison), style, out)
    }),
    ("agent", agent::render),
    ("github", github::render),
    ("junit", junit::render),
    ("tap", tap::render),
    ("ndjson", ndjson::render),
    ("sarif", sarif::render),
    ("gitlab", gitlab::render),
    ("ctrf", ctrf::render),
    ("openmetrics", openmetrics::render),
];

/// Writes a comparison with the reporter of this name. `current` is the report that was compared.
///
/// # Errors
/// A reporter without a form for comparisons, or an output that cannot be written.
pub fn render(
    name: &str,
    comparison: &Comparison,
    current: &Report,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let found = RENDERERS.iter().find(|(known, _)| *known == name);
    let Some((_, render)) = found else {
        return Err(RenderError::NoComparison {
            name: name.to_owned(),
            known: RENDERERS.iter().map(|(known, _)| *known).collect(),
        });
    };
    render(comparison, current, style, out)
}

#[cfg(test)]
mod tests;
