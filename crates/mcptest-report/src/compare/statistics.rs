//! The statistics of a comparison: rates, means, and whether the reports can be compared at all.
//!
//! A rate is that of a test's runs that passed, or that of the runs that its `tool_selection:`
//! floor counted. Of each, the difference has Newcombe's interval at 95 % and Fisher's exact p,
//! adjusted over all rates of the comparison (Benjamini and Hochberg). Means of tokens and times
//! per run are compared by a bootstrap, and adjusted among themselves.

use std::collections::BTreeSet;

use mcptest_events::{CaseId, Kind};
use mcptest_numbers::comparison::{
    Rate, Z_EXACT_95, benjamini_hochberg, bootstrap, fisher, newcombe, runs_needed,
};
use mcptest_trace::outcome::GateOutcome;
use schemars::JsonSchema;
use serde::Serialize;

use super::Pair;
use crate::report::{Report, TestReport};
use crate::row::RunRow;

/// The level of significance.
const ALPHA: f64 = 0.05;
/// The name of the rate of runs that passed.
pub(super) const PASSED: &str = "runs.pass_rate";
/// The name of the rate of a floor.
pub(super) const SELECTED: &str = "floor.selection_rate";

/// The uncertainty of a difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Statistics {
    /// `newcombe+fisher` for a rate, `bootstrap` for a mean.
    pub method: &'static str,
    /// The current value minus that of the baseline; a rate is a fraction of 1.
    pub difference: f64,
    /// The lower end of its interval at 95 %.
    pub lower: f64,
    /// The upper end of its interval at 95 %.
    pub upper: f64,
    /// The probability of a difference like this, or a larger one, if nothing changed.
    pub p_value: f64,
    /// `p_value`, adjusted for the number of comparisons (Benjamini and Hochberg).
    pub p_adjusted: f64,
    /// True if `p_adjusted` is at most 0.05.
    pub significant: bool,
    /// For a rate that differs and is not significant: the number of runs per side with which the
    /// same rates would be. `null` otherwise, or beyond 10,000.
    pub runs_needed: Option<u64>,
    /// The number of runs of the smaller side.
    #[serde(skip)]
    pub(super) smaller: u64,
}

/// A count of the runs that a rate is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counted {
    /// The runs that passed, or that selected the tool.
    pub passed: u64,
    /// All runs.
    pub runs: u64,
}

/// A rate that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RateChange {
    /// The test and its model.
    #[serde(flatten)]
    pub id: CaseId,
    /// `runs.pass_rate` or `floor.selection_rate`.
    pub rate: &'static str,
    /// The runs on both sides; those of all baselines together.
    #[serde(flatten)]
    pub counts: Pair<Counted>,
    /// The uncertainty of the difference.
    pub statistics: Statistics,
    /// The place of the test in the current report.
    #[serde(skip)]
    pub(super) at: usize,
}

/// A mean that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MeanChange {
    /// The test and its model; absent for a mean over all tests.
    #[serde(flatten)]
    pub id: Option<CaseId>,
    /// `tokens` or `duration_ms` per run of a test, or `usd` per run over all tests.
    pub mean: &'static str,
    /// The means on both sides.
    #[serde(flatten)]
    pub means: Pair<f64>,
    /// The uncertainty of the difference.
    pub statistics: Statistics,
    /// The place of the test in the current report.
    #[serde(skip)]
    pub(super) at: usize,
}

/// The differences between what was measured before and now. A difference does not forbid the
/// comparison, but it may explain one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Population {
    /// True if there are none.
    pub same: bool,
    /// Each of them, one line.
    pub differences: Vec<String>,
}

/// A test of the current report with its counterparts, one per baseline that has it.
pub(super) struct Matched<'a> {
    /// Its place in the current report.
    pub(super) at: usize,
    pub(super) new: &'a TestReport,
    pub(super) old: Vec<&'a TestReport>,
}

fn counted(tests: &[&TestReport]) -> Rate {
    let sum =
        |(passed, runs), test: &&TestReport| (passed + test.passed_runs(), runs + test.run_count());
    tests.iter().fold((0, 0), sum)
}

/// The runs that a floor counted, if all of the tests have one.
fn selected(tests: &[&TestReport]) -> Option<Rate> {
    let of_gate = |gate: &GateOutcome| {
        let detail = gate.detail.to_map();
        let count = |key: &str| detail.get(key)?.as_u64();
        let (selected, runs) = (count("selected")?, count("runs")?);
        (selected <= runs).then_some((selected, runs))
    };
    let mut sum = (0, 0);
    for test in tests {
        let mut gates = test.gates.iter();
        let (selected, runs) = of_gate(gates.find(|gate| gate.block == "tool_selection")?)?;
        sum = (sum.0 + selected, sum.1 + runs);
    }
    Some(sum)
}

/// Compares every rate that both sides have.
pub(super) fn rates(matched: &[Matched<'_>]) -> Vec<RateChange> {
    let mut found: Vec<(&Matched<'_>, &'static str, Rate, Rate)> = Vec::new();
    for pair in matched {
        let (old, new) = (counted(&pair.old), counted(&[pair.new]));
        if old.1 > 0 && new.1 > 0 {
            found.push((pair, PASSED, old, new));
        }
        if let (Some(old), Some(new)) = (selected(&pair.old), selected(&[pair.new]))
            && old.1 > 0
            && new.1 > 0
        {
            found.push((pair, SELECTED, old, new));
        }
    }
    let p_values: Vec<f64> = found
        .iter()
        .map(|(.., old, new)| fisher(*new, *old))
        .collect();
    let adjusted = benjamini_hochberg(&p_values);
    // With this level in a single test, a rate is significant whatever the others are.
    let level = ALPHA / found.len().max(1) as f64;
    let compared = found.iter().zip(p_values).zip(adjusted);
    compared
        .map(|(((pair, rate, old, new), p_value), p_adjusted)| {
            let interval = newcombe(*new, *old, Z_EXACT_95);
            let share = |(passed, runs): Rate| passed as f64 / runs as f64;
            let significant = p_adjusted <= ALPHA;
            let side = |(passed, runs): Rate| Some(Counted { passed, runs });
            RateChange {
                id: pair.new.id.clone(),
                at: pair.at,
                rate,
                counts: Pair {
                    old: side(*old),
                    new: side(*new),
                },
                statistics: Statistics {
                    method: "newcombe+fisher",
                    difference: share(*new) - share(*old),
                    lower: interval.lower,
                    upper: interval.upper,
                    p_value,
                    p_adjusted,
                    significant,
                    runs_needed: match significant {
                        true => None,
                        false => runs_needed(*new, *old, level),
                    },
                    smaller: new.1.min(old.1),
                },
            }
        })
        .collect()
}

/// A figure of a run, if it is known.
type Figure = fn(&RunRow) -> Option<f64>;

/// Compares the means that both sides have and that differ.
pub(super) fn means(matched: &[Matched<'_>], is_timed: bool) -> Vec<MeanChange> {
    let mut found = Vec::new();
    for pair in matched {
        let figures: [(&'static str, Figure); 2] = [
            ("tokens", |run| run.tokens().map(|tokens| tokens as f64)),
            ("duration_ms", |run| Some(run.duration_ms() as f64)),
        ];
        for (mean, figure) in figures {
            if mean == "duration_ms" && !is_timed {
                continue;
            }
            let old = pair.old.iter().flat_map(|test| &test.runs);
            let old: Vec<f64> = old.filter_map(|run| figure(&run)).collect();
            let new: Vec<f64> = pair
                .new
                .runs
                .iter()
                .filter_map(|run| figure(&run))
                .collect();
            let change = mean_change(Some(pair.new.id.clone()), mean, &old, &new);
            found.extend(change.map(|change| MeanChange {
                at: pair.at,
                ..change
            }));
        }
    }
    let cost = |test: &TestReport| {
        let runs = (test.run_count() > 0).then(|| test.run_count() as f64)?;
        Some(test.spend?.usd? / runs)
    };
    let old = matched.iter().flat_map(|pair| &pair.old);
    let old: Vec<f64> = old.filter_map(|test| cost(test)).collect();
    let new: Vec<f64> = matched.iter().filter_map(|pair| cost(pair.new)).collect();
    found.extend(mean_change(None, "usd", &old, &new));
    let p_values: Vec<f64> = found.iter().map(|one| one.statistics.p_value).collect();
    for (one, adjusted) in found.iter_mut().zip(benjamini_hochberg(&p_values)) {
        one.statistics.p_adjusted = adjusted;
        one.statistics.significant = adjusted <= ALPHA;
    }
    // All of them count as comparisons, and those that differ are shown.
    found.retain(|one| one.statistics.difference.abs() > 0.0);
    found
}

fn mean_change(
    id: Option<CaseId>,
    mean: &'static str,
    old: &[f64],
    new: &[f64],
) -> Option<MeanChange> {
    let compared = bootstrap(new, old)?;
    let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    Some(MeanChange {
        id,
        mean,
        means: Pair {
            old: Some(average(old)),
            new: Some(average(new)),
        },
        statistics: Statistics {
            method: "bootstrap",
            difference: compared.difference,
            lower: compared.interval.lower,
            upper: compared.interval.upper,
            p_value: compared.p_value,
            p_adjusted: compared.p_value,
            significant: false,
            runs_needed: None,
            smaller: new.len().min(old.len()) as u64,
        },
        at: usize::MAX,
    })
}

/// Returns true if a regression cannot be noise: a direct test, whose input is the same each time,
/// or an agent test of which every one of several runs passed and now every one of several fails.
pub(super) fn is_deterministic(old: &TestReport, new: &TestReport) -> bool {
    let all = |test: &TestReport| test.run_count() >= 2 && test.passed_runs() == test.run_count();
    let none = |test: &TestReport| test.run_count() >= 2 && test.passed_runs() == 0;
    new.kind != Kind::Agent || (all(old) && none(new))
}

/// Compares what was measured: tests, models, suites, bounds and prices.
pub(super) fn population(
    baselines: &[&Report],
    current: &Report,
    matched: &[Matched<'_>],
) -> Population {
    let mut differences = Vec::new();
    let old = || baselines.iter().flat_map(|report| &report.tests);
    let count = |number: usize, what: &str| {
        let plural = if number == 1 { "test" } else { "tests" };
        format!("{number} {plural} {what}")
    };
    let names =
        |tests: &mut dyn Iterator<Item = &TestReport>| -> BTreeSet<(String, Option<String>)> {
            tests
                .map(|test| (test.id.name.clone(), test.id.model.clone()))
                .collect()
        };
    let (before, now) = (names(&mut old()), names(&mut current.tests.iter()));
    for (left, right, what) in [
        (&before, &now, "only in the baseline"),
        (&now, &before, "only in the current report"),
    ] {
        let number = left.difference(right).count();
        if number > 0 {
            differences.push(count(number, what));
        }
    }
    let models = |names: &BTreeSet<(String, Option<String>)>| -> BTreeSet<Option<String>> {
        names.iter().map(|(_, model)| model.clone()).collect()
    };
    if models(&before) != models(&now) {
        differences.push("the models are not the same".to_owned());
    }
    let suites: BTreeSet<&str> = old().map(|test| test.id.suite.as_str()).collect();
    let suites_now = current.tests.iter().map(|test| test.id.suite.as_str());
    if suites != suites_now.collect::<BTreeSet<&str>>() {
        differences.push("the suites are not the same".to_owned());
    }
    let bounds = |test: &TestReport| -> Vec<String> {
        let assertions = test.gates.iter().flat_map(|gate| &gate.assertions);
        assertions
            .map(|one| format!("{} {}", one.target, one.matcher))
            .collect()
    };
    let differs = |is_other: &dyn Fn(&TestReport, &TestReport) -> bool| {
        let other = |pair: &&Matched<'_>| pair.old.iter().any(|old| is_other(old, pair.new));
        matched.iter().filter(other).count()
    };
    let other = differs(&|old, new| bounds(old) != bounds(new));
    if other > 0 {
        differences.push(count(other, "with other bounds"));
    }
    // The same tokens at another cost.
    let prices = differs(&|old, new| match (old.spend, new.spend) {
        (Some(old), Some(new)) => {
            let tokens = |spend: &mcptest_events::Spend| (spend.input_tokens, spend.output_tokens);
            let known = old.input_tokens.is_some() && old.usd.is_some() && new.usd.is_some();
            known && tokens(&old) == tokens(&new) && old.usd != new.usd
        }
        _ => false,
    });
    if prices > 0 {
        differences.push(count(prices, "with other prices for the same tokens"));
    }
    Population {
        same: differences.is_empty(),
        differences,
    }
}

impl Statistics {
    /// The difference of a rate in words: `-40 points (95 %: -68 to -1), p 0.04, adjusted 0.12; not
    /// enough runs to tell: 9 more per side would do`.
    pub(super) fn rate_words(&self) -> String {
        let points = |share: f64| format!("{:+.0}", share * 100.0 + 0.0);
        let verdict = match (self.significant, self.runs_needed) {
            (true, _) => "significant".to_owned(),
            (false, Some(needed)) => {
                let more = needed.saturating_sub(self.smaller).max(1);
                format!("not enough runs to tell: {more} more per side would do")
            }
            (false, None) => "no significant difference".to_owned(),
        };
        format!(
            "{} points (95 %: {} to {}), p {}, adjusted {}; {verdict}",
            points(self.difference),
            points(self.lower),
            points(self.upper),
            probability(self.p_value),
            probability(self.p_adjusted)
        )
    }

    /// The difference of a mean in words.
    pub(super) fn mean_words(&self) -> String {
        let verdict = match self.significant {
            true => "significant",
            false => "no significant difference",
        };
        format!(
            "{} (95 %: {} to {}), p {}, adjusted {}; {verdict}",
            short(self.difference, true),
            short(self.lower, true),
            short(self.upper, true),
            probability(self.p_value),
            probability(self.p_adjusted)
        )
    }
}

/// A figure with about four digits.
pub(super) fn short(figure: f64, signed: bool) -> String {
    let places = match figure.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 1.0 => 2,
        _ => 6,
    };
    match signed {
        true => format!("{figure:+.places$}"),
        false => format!("{figure:.places$}"),
    }
}

fn probability(p: f64) -> String {
    match p {
        p if p < 0.001 => "< 0.001".to_owned(),
        p => format!("{p:.3}"),
    }
}
