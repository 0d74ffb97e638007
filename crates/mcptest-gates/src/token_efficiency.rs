//! The cost of each correct selection (`token_efficiency:`).
//!
//! **What does each right choice of a tool cost?** Every offered tool costs tokens on every call of
//! the model, chosen or not. F1 alone hides a large catalog that scores well. This gate shows the
//! price next to it: the tokens of the tool surface and the dollars of the runs, per correct
//! selection.
//!
//! # The block
//! ```yaml
//! token_efficiency:
//!   classes:
//!     - { name: search, members: [catalog.search] }
//!     - { name: buy, members: [shop.order] }
//!   expect:
//!     - token_efficiency.f1: { ">=": 80 }
//!     - token_efficiency.cost_per_correct: { "<=": 0.01 }
//! ```
//!
//! # Output
//! ```text
//! PASS   books: token_efficiency  f1 100 (grade A) · surface 51 tokens · 2 correct · 25.5 tokens each · cost $0.0045
//! ```
//!
//! # Formula
//! - `f1`: as in [`equal_function_sets`](super::equal_function_sets), against this block's own
//!   classes, summed over all runs
//! - `tool_surface_tokens`: over the offered tools in the trace (`catalog`, injected distractors
//!   included), tokens of the name + of the description + of the input schema as compact JSON, in
//!   `cl100k_base`. Counted once for all runs; if runs were offered different tools, the largest
//!   surface counts and the detail notes it
//! - `correct_selections`: true positives, summed over all runs
//! - `cost`: dollars of all runs, from their input and output tokens and the model's price
//! - `tokens_per_correct` = `tool_surface_tokens` / `correct_selections`
//! - `cost_per_correct` = `cost` / `correct_selections`, from the exact dollars and rounded once
//!
//! A figure that cannot be known is `null`, and an assertion on it fails with the reason: the
//! surface without a recorded catalog, the cost of a model without a price or of a run with unknown
//! tokens, both ratios with nothing selected correctly, and the cost per selection of runs that
//! were free.
//!
//! The letter grade in the report is for people: A from an F1 of 90, B from 80, C from 70, D from
//! 60, else F. When `expect:` is omitted, `token_efficiency.f1` must reach 50.
//!
//! # When not to use it
//! To compare models: they count tokens differently. `cl100k_base` is a common yardstick for
//! catalogs, not the tokenizer of your model.
//!
//! # In Rust
//! ```
//! use mcptest_catalog::prices::Usd;
//! use mcptest_gates::equal_function_sets::SelectionCounts;
//! use mcptest_gates::token_efficiency::{Grade, score_token_efficiency};
//!
//! let counts = SelectionCounts { true_positives: 4, false_positives: 1, false_negatives: 0 };
//! let cost = Usd::from_f64(0.01);
//! let report = score_token_efficiency(counts, Some(1000), cost);
//! assert_eq!((report.f1, report.grade), (88, Grade::B));
//! assert_eq!(report.tokens_per_correct, Some(250.0));
//! assert_eq!(report.cost_per_correct, Some(0.0025));
//! ```

use std::collections::BTreeSet;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::equal_function_sets::{
    Class, NamedTools, SelectionBounds, SelectionCounts, check_classes, class_tools,
    score_selection,
};
use crate::first_runs::FirstRuns;
use crate::forecast::{Bounds, Forecast};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, ToolReference, Unit};
use mcptest_catalog::prices::Usd;
use mcptest_catalog::tokens;
use mcptest_json::text::one_line;
use mcptest_trace::catalog::Tool;
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};

/// Scores tool selection together with what it costs in tokens and dollars.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenEfficiency {
    /// The capabilities that the task needs.
    #[schemars(length(min = 1))]
    pub classes: Vec<Class>,
    /// Assertions on `token_efficiency.*`. Default: `token_efficiency.f1` is at least 50.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

/// F1 as a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Grade {
    /// From 90.
    A,
    /// From 80.
    B,
    /// From 70.
    C,
    /// From 60.
    D,
    /// Below.
    F,
}

impl Grade {
    /// The letter of an F1.
    #[must_use]
    pub fn of(f1: u64) -> Self {
        match f1 {
            90.. => Self::A,
            80.. => Self::B,
            70.. => Self::C,
            60.. => Self::D,
            _ => Self::F,
        }
    }
}

/// All figures of a test's runs. Undefined figures are `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TokenEfficiencyReport {
    /// Whole percent.
    pub f1: u64,
    /// The letter of it.
    pub grade: Grade,
    /// True positives.
    pub correct_selections: u64,
    /// Tokens of the offered tools.
    pub tool_surface_tokens: Option<u64>,
    /// Dollars.
    pub cost: Option<f64>,
    /// Tokens per true positive.
    pub tokens_per_correct: Option<f64>,
    /// Dollars per true positive.
    pub cost_per_correct: Option<f64>,
}

/// Combines the counts of all runs with their cost, as far as it is known.
#[must_use]
pub fn score_token_efficiency(
    counts: SelectionCounts,
    tool_surface_tokens: Option<u64>,
    cost: Option<Usd>,
) -> TokenEfficiencyReport {
    let correct = counts.true_positives;
    TokenEfficiencyReport {
        f1: counts.f1(),
        grade: Grade::of(counts.f1()),
        correct_selections: correct,
        tool_surface_tokens,
        cost: cost.map(Usd::to_f64),
        tokens_per_correct: tool_surface_tokens
            .filter(|_| correct > 0)
            .map(|tokens| tokens as f64 / correct as f64),
        cost_per_correct: cost
            .filter(|cost| *cost > Usd::ZERO)
            .and_then(|cost| cost.per(correct)),
    }
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EfficiencyAccumulator {
    counts: SelectionCounts,
    /// The different catalogs: runs of one test are mostly offered the same tools.
    catalogs: Vec<CatalogFacts>,
    /// The dollars of the runs whose cost is known.
    cost: Usd,
    /// Runs whose cost is unknown.
    without_cost: u64,
    /// True if the model of a run is unknown.
    without_model: bool,
    /// Runs whose tokens are unknown although the model has a price.
    without_tokens: FirstRuns,
    /// Runs that do not list the offered tools.
    without_catalog: FirstRuns,
    /// The quoted names of models without a price.
    unpriced: BTreeSet<String>,
    runs: u64,
    named: NamedTools,
    rows: RunRows,
}

/// A list of offered tools.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct CatalogFacts {
    digest: Digest,
    /// The lowest index of the runs that have it.
    first_run: u64,
    tokens: u64,
    tools: usize,
}

/// The dollars of a run, or the reason why they are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum RunCost {
    Known(Usd),
    NoModel,
    NoPrice,
    NoTokens,
}

/// The reason why the dollars of all runs are unknown.
#[derive(Debug, thiserror::Error)]
enum UnknownCost {
    #[error("the model is not known")]
    Model,
    #[error("no price is known for model {0}")]
    Price(String),
    #[error("input or output tokens are unknown in run {0}")]
    Tokens(String),
}

impl Accumulator for EfficiencyAccumulator {
    fn merge(&mut self, other: Self) {
        self.counts = self.counts.plus(other.counts);
        for catalog in other.catalogs {
            self.add_catalog(catalog.digest, catalog.first_run, || catalog);
        }
        self.cost = self.cost.plus(other.cost);
        self.without_cost += other.without_cost;
        self.unpriced.extend(other.unpriced);
        self.without_model |= other.without_model;
        self.without_tokens.merge(other.without_tokens);
        self.without_catalog.merge(other.without_catalog);
        self.runs += other.runs;
        self.named.merge(other.named);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        for catalog in &mut self.catalogs {
            catalog.first_run = number(catalog.first_run);
        }
        self.without_tokens.renumber(number);
        self.without_catalog.renumber(number);
        self.named.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.rows.leave_out();
    }
}

impl EfficiencyAccumulator {
    fn add_catalog(&mut self, digest: Digest, run: u64, new: impl FnOnce() -> CatalogFacts) {
        match self.catalogs.iter_mut().find(|one| one.digest == digest) {
            Some(known) => known.first_run = known.first_run.min(run),
            None => self.catalogs.push(new()),
        }
    }

    /// The catalog with the most tokens; of several, the one that was seen last.
    fn surface(&self) -> Option<&CatalogFacts> {
        let key = |catalog: &&CatalogFacts| (catalog.tokens, catalog.first_run);
        self.catalogs.iter().max_by_key(key)
    }

    /// The dollars of all runs, or the reason why they are unknown.
    fn cost(&self) -> Result<Usd, UnknownCost> {
        if self.without_model {
            return Err(UnknownCost::Model);
        }
        if !self.unpriced.is_empty() {
            let models: Vec<&str> = self.unpriced.iter().map(String::as_str).collect();
            return Err(UnknownCost::Price(models.join(", ")));
        }
        if self.without_tokens.count() > 0 {
            return Err(UnknownCost::Tokens(self.without_tokens.indexes()));
        }
        Ok(self.cost)
    }

    /// Remarks on the offered tools.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.catalogs.len() > 1 {
            notes.push(format!(
                "runs were offered {} different sets of tools; the largest is counted",
                self.catalogs.len()
            ));
        }
        if !self.catalogs.is_empty() && self.without_catalog.count() > 0 {
            notes.push(format!(
                "run {} does not list the offered tools",
                self.without_catalog.indexes()
            ));
        }
        notes
    }
}

fn run_cost(context: &Context<'_>, run: &Run<'_>, unpriced: &mut BTreeSet<String>) -> RunCost {
    let Some(model) = run.trace.model.as_deref().or(context.model) else {
        return RunCost::NoModel;
    };
    let Some(price) = context.prices.find(model) else {
        unpriced.insert(format!("`{}`", one_line(model)));
        return RunCost::NoPrice;
    };
    let tokens = run.trace.conversation.tokens.as_ref();
    tokens
        .and_then(|tokens| price.cost(tokens))
        .map_or(RunCost::NoTokens, RunCost::Known)
}

/// A row of the report's detail.
#[derive(Serialize)]
struct EfficiencyRow<'a> {
    f1: u64,
    correct_selections: u64,
    cost: Option<f64>,
    missed: &'a [String],
    unexpected: &'a [String],
}

impl Gate for TokenEfficiency {
    const BLOCK: &'static str = "token_efficiency";
    const SUMMARY: &'static str =
        "Selection F1 with the price of each correct selection in tokens and dollars.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new("token_efficiency.f1", Unit::Percent, "Selection F1."),
        TargetInfo::new(
            "token_efficiency.tool_surface_tokens",
            Unit::Tokens,
            "Tokens that describe the offered tools.",
        ),
        TargetInfo::new(
            "token_efficiency.correct_selections",
            Unit::Count,
            "True positives over all runs.",
        ),
        TargetInfo::new(
            "token_efficiency.cost",
            Unit::Dollars,
            "Dollars of all runs.",
        ),
        TargetInfo::new(
            "token_efficiency.tokens_per_correct",
            Unit::Tokens,
            "Tool-surface tokens per correct selection.",
        ),
        TargetInfo::new(
            "token_efficiency.cost_per_correct",
            Unit::Dollars,
            "Dollars per correct selection.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "token_efficiency.f1",
            Matcher::at_least(50),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        if self.classes.is_empty() {
            return vec![Problem::new("/classes", "at least one class is needed")];
        }
        check_classes(&self.classes)
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        class_tools(&self.classes)
    }

    type Accumulator = EfficiencyAccumulator;

    fn observe(
        &self,
        accumulator: &mut EfficiencyAccumulator,
        context: &Context<'_>,
        run: &Run<'_>,
    ) {
        let counts = (accumulator.named).observe(&self.classes, run, context.servers);
        accumulator.counts = accumulator.counts.plus(counts);
        let catalog = run.trace.catalog();
        if let Some(catalog) = catalog {
            let digest = Digest::of_values(catalog.iter().map(Tool::raw));
            accumulator.add_catalog(digest, run.index, || CatalogFacts {
                digest,
                first_run: run.index,
                tokens: tokens::of_catalog(catalog),
                tools: catalog.len(),
            });
        }
        if catalog.is_none() {
            accumulator.without_catalog.add(run.index, || ());
        }
        let cost = run_cost(context, run, &mut accumulator.unpriced);
        match cost {
            RunCost::Known(cost) => accumulator.cost = accumulator.cost.plus(cost),
            RunCost::NoModel => accumulator.without_model = true,
            RunCost::NoTokens => accumulator.without_tokens.add(run.index, || ()),
            RunCost::NoPrice => {}
        }
        let known = match cost {
            RunCost::Known(cost) => Some(cost.to_f64()),
            RunCost::NoModel | RunCost::NoPrice | RunCost::NoTokens => None,
        };
        accumulator.without_cost += u64::from(known.is_none());
        accumulator.runs += 1;
        if accumulator.rows.are_kept() {
            let calls = &run.trace.tool_calls;
            let selection = score_selection(&self.classes, calls, context.servers);
            let row = EfficiencyRow {
                f1: counts.f1(),
                correct_selections: counts.true_positives,
                cost: known,
                missed: &selection.missed,
                unexpected: &selection.unexpected,
            };
            accumulator.rows.push(run.index, &row);
        }
    }

    fn finish(&self, accumulator: EfficiencyAccumulator, context: &Context<'_>) -> Score {
        let EfficiencyAccumulator { counts, named, .. } = &accumulator;
        let (missed, unexpected) = (named.missed.names(), named.unexpected.names());
        let surface = accumulator.surface();
        let cost = accumulator.cost();
        let report = score_token_efficiency(
            *counts,
            surface.map(|catalog| catalog.tokens),
            cost.as_ref().ok().copied(),
        );
        let absent = absent(&report, cost.as_ref().err());
        let mut detail = DetailBuilder::default();
        detail.entry("grade", &report.grade);
        detail.entry("tools", &surface.map_or(0, |catalog| catalog.tools));
        detail.entry("tokenizer", &"cl100k_base");
        detail.entry("missed", &missed);
        detail.entry("unexpected", &unexpected);
        detail.entry("true_positives", &counts.true_positives);
        detail.entry("false_positives", &counts.false_positives);
        detail.entry("false_negatives", &counts.false_negatives);
        if cost.is_ok() {
            detail.entry("prices_of", &context.prices.date());
        }
        let reasons = absent.iter();
        let reasons: IndexMap<&str, &str> =
            reasons.map(|(name, why)| (*name, why.as_str())).collect();
        detail.entry("absent", &reasons);
        detail.entry("notes", &accumulator.notes());
        accumulator.rows.write("per_run", "index", &mut detail);
        Score {
            values: vec![
                ("token_efficiency.f1", report.f1.into()),
                (
                    "token_efficiency.tool_surface_tokens",
                    report.tool_surface_tokens.into(),
                ),
                (
                    "token_efficiency.correct_selections",
                    report.correct_selections.into(),
                ),
                ("token_efficiency.cost", report.cost.into()),
                (
                    "token_efficiency.tokens_per_correct",
                    report.tokens_per_correct.into(),
                ),
                (
                    "token_efficiency.cost_per_correct",
                    report.cost_per_correct.into(),
                ),
            ],
            detail: detail.into(),
            summary: summary(&report, &missed, &unexpected),
            absent,
            ..Score::default()
        }
    }

    fn forecast(&self, accumulator: &EfficiencyAccumulator, remaining: u64) -> Option<Forecast> {
        let EfficiencyAccumulator { counts, runs, .. } = accumulator;
        let classes = self.classes.len();
        let correct = counts.true_positives;
        let most_correct = correct.saturating_add((classes as u64).saturating_mul(remaining));
        let mut bounds = vec![
            (
                "token_efficiency.f1",
                SelectionBounds::new(*counts, *runs, classes, remaining).f1,
            ),
            (
                "token_efficiency.correct_selections",
                Bounds::between(correct, most_correct),
            ),
        ];
        if let Some(CatalogFacts { tokens, .. }) = accumulator.surface() {
            // A run may be offered more tools, which makes the largest surface larger.
            let each = *tokens as f64 / most_correct.max(1) as f64;
            let each = Bounds::fraction_at_least(each);
            let surface = "token_efficiency.tool_surface_tokens";
            bounds.push((surface, Bounds::at_least(*tokens)));
            // With nothing selected correctly there is nothing to divide by.
            let each = if correct == 0 { each.or_absent() } else { each };
            bounds.push(("token_efficiency.tokens_per_correct", each));
        }
        let (cost, each) = if accumulator.without_cost == 0 {
            // The tokens of a later run may be unknown, and then the sum is.
            let cost = accumulator.cost;
            let each = cost.per(most_correct).unwrap_or(0.0);
            (
                Bounds::fraction_at_least(cost.to_f64()).or_absent(),
                Bounds::fraction_at_least(each).or_absent(),
            )
        } else {
            (Bounds::Absent, Bounds::Absent)
        };
        bounds.push(("token_efficiency.cost", cost));
        bounds.push(("token_efficiency.cost_per_correct", each));
        Some(Forecast {
            bounds,
            may_lack_evidence: false,
        })
    }
}

fn absent(
    report: &TokenEfficiencyReport,
    no_cost: Option<&UnknownCost>,
) -> Vec<(&'static str, String)> {
    let mut absent = Vec::new();
    let none_correct = || "nothing was selected correctly".to_owned();
    let no_surface = || "the trace does not list the offered tools".to_owned();
    if report.tool_surface_tokens.is_none() {
        absent.push(("token_efficiency.tool_surface_tokens", no_surface()));
    }
    if let Some(why) = no_cost {
        absent.push(("token_efficiency.cost", why.to_string()));
    }
    if report.tokens_per_correct.is_none() {
        let why = report
            .tool_surface_tokens
            .map_or_else(no_surface, |_| none_correct());
        absent.push(("token_efficiency.tokens_per_correct", why));
    }
    if report.cost_per_correct.is_none() {
        let why = match no_cost {
            Some(why) => why.to_string(),
            None if report.correct_selections == 0 => none_correct(),
            None => "the runs were free".to_owned(),
        };
        absent.push(("token_efficiency.cost_per_correct", why));
    }
    absent
}

fn summary(report: &TokenEfficiencyReport, missed: &[&str], unexpected: &[&str]) -> String {
    let mut summary = format!("f1 {} (grade {:?})", report.f1, report.grade);
    summary.push_str(&match report.tool_surface_tokens {
        Some(tokens) => format!(" · surface {tokens} tokens"),
        None => " · surface unknown".to_owned(),
    });
    summary.push_str(&format!(" · {} correct", report.correct_selections));
    if let Some(tokens) = report.tokens_per_correct {
        summary.push_str(&format!(" · {tokens:.1} tokens each"));
    }
    summary.push_str(&match report.cost {
        Some(cost) => format!(" · cost ${cost}"),
        None => " · cost unknown".to_owned(),
    });
    if !missed.is_empty() {
        summary.push_str(&format!(" · missed: {}", one_line(&missed.join(", "))));
    }
    if !unexpected.is_empty() {
        summary.push_str(&format!(
            " · unexpected: {}",
            one_line(&unexpected.join(", "))
        ));
    }
    summary
}

#[cfg(test)]
mod tests;
