//! What each right choice of a tool costs (`token_efficiency:`).
//!
//! # What it measures
//! Every offered tool costs tokens on every call of the model, chosen or not. F1 alone hides a fat
//! catalog that scores well; this gate sets the price beside it: the tokens of the tool surface and
//! the dollars of the runs, per correct selection.
//!
//! # Formula
//! - `f1`: as in `equal_function_sets` ([`super::equal_function_sets`]), against this block's own
//!   classes, summed over all runs
//! - `tool_surface_tokens`: over the offered tools in the trace (`catalog`, injected distractors
//!   included), tokens of the name + of the description + of the input schema as compact JSON, in
//!   `cl100k_base` ([`mcptest_catalog::tokens`]). Counted once, however many runs there are; if runs were
//!   offered different tools, the largest surface counts and the detail says so
//! - `correct_selections`: true positives, summed over all runs
//! - `cost`: dollars of all runs, from their input and output tokens and the model's price
//!   ([`mcptest_catalog::prices`])
//! - `tokens_per_correct` = `tool_surface_tokens` / `correct_selections`
//! - `cost_per_correct` = `cost` / `correct_selections`
//!
//! A figure that cannot be known is `null`, and an assertion on it fails and says why: the surface
//! without a recorded catalog, the cost of a model without a price or of a run with unknown tokens,
//! both ratios with nothing selected correctly, and the cost per selection of runs that were free.
//!
//! The letter grade in the report is for people: A from an F1 of 90, B from 80, C from 70, D from
//! 60, else F. Default: `token_efficiency.f1` is at least 50.
//!
//! # Example
//! ```
//! use mcptest_gates::equal_function_sets::SelectionCounts;
//! use mcptest_gates::token_efficiency::{Grade, score_token_efficiency};
//!
//! let counts = SelectionCounts { true_positives: 4, false_positives: 1, false_negatives: 0 };
//! let report = score_token_efficiency(counts, Some(1000), Some(0.01));
//! assert_eq!((report.f1, report.grade), (88, Grade::B));
//! assert_eq!(report.tokens_per_correct, Some(250.0));
//! assert_eq!(report.cost_per_correct, Some(0.0025));
//! ```
//!
//! # When not to use it
//! To compare models: they count tokens differently, and `cl100k_base` is none of theirs but a
//! common yardstick for catalogs.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::equal_function_sets::{
    Class, Selection, SelectionCounts, SelectionReach, SelectionTally, check_classes,
    score_selection,
};
use super::outlook::{Outlook, Reach};
use super::{Context, Gate, LoadContext, Run, Score, TargetInfo, Unit};
use mcptest_catalog::prices::Usd;
use mcptest_catalog::tokens;
use mcptest_json::text::one_line;
use mcptest_trace::catalog::Tool;
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

/// All figures of a test's runs. What is undefined is nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
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

/// Puts the counts of all runs beside what is known of their cost.
#[must_use]
pub fn score_token_efficiency(
    counts: SelectionCounts,
    tool_surface_tokens: Option<u64>,
    cost: Option<f64>,
) -> TokenEfficiencyReport {
    let correct = counts.true_positives;
    let per_correct = |figure: f64| (correct > 0).then(|| figure / correct as f64);
    TokenEfficiencyReport {
        f1: counts.f1(),
        grade: Grade::of(counts.f1()),
        correct_selections: correct,
        tool_surface_tokens,
        cost,
        tokens_per_correct: tool_surface_tokens.and_then(|tokens| per_correct(tokens as f64)),
        cost_per_correct: cost.filter(|cost| *cost > 0.0).and_then(per_correct),
    }
}

/// The offered tools of all runs.
struct Surface {
    /// The largest; nothing if no run tells.
    tokens: Option<u64>,
    tools: usize,
    /// How many different catalogs there are.
    variants: usize,
    /// Runs that do not tell.
    unknown: Vec<u64>,
}

fn surface(runs: &[Run<'_>]) -> Surface {
    // Runs of one test are mostly offered the same tools: each different catalog is counted once.
    let mut seen: Vec<(&[Tool], u64)> = Vec::new();
    let mut unknown = Vec::new();
    for run in runs {
        match run.trace.catalog() {
            None => unknown.push(run.index),
            Some(catalog) if seen.iter().any(|(other, _)| *other == catalog) => {}
            Some(catalog) => seen.push((catalog, tokens::of_catalog(catalog))),
        }
    }
    let largest = seen.iter().max_by_key(|(_, tokens)| *tokens);
    Surface {
        tokens: largest.map(|(_, tokens)| *tokens),
        tools: largest.map_or(0, |(catalog, _)| catalog.len()),
        variants: seen.len(),
        unknown,
    }
}

/// The dollars of all runs, or why they are not known.
fn cost(context: &Context<'_>, runs: &[Run<'_>]) -> Result<Usd, String> {
    let mut total = Vec::new();
    let mut unpriced = BTreeSet::new();
    let mut untold = Vec::new();
    for run in runs {
        let Some(model) = run.trace.model.as_deref().or(context.model) else {
            return Err("the model is not known".to_owned());
        };
        let Some(price) = context.prices.find(model) else {
            unpriced.insert(format!("`{}`", one_line(model)));
            continue;
        };
        match run
            .trace
            .conversation
            .tokens
            .as_ref()
            .and_then(|tokens| price.cost(tokens))
        {
            Some(cost) => total.push(cost),
            None => untold.push(run.index.to_string()),
        }
    }
    if !unpriced.is_empty() {
        let models: Vec<String> = unpriced.into_iter().collect();
        return Err(format!("no price is known for model {}", models.join(", ")));
    }
    if !untold.is_empty() {
        return Err(format!(
            "input or output tokens are unknown in run {}",
            untold.join(", ")
        ));
    }
    Ok(total.into_iter().sum())
}

/// What the outlook needs of the runs so far.
#[derive(Default)]
pub struct Tally {
    selection: SelectionTally,
    /// The different catalogs: runs of one test are mostly offered the same tools.
    catalogs: Vec<Vec<Tool>>,
    /// The largest, in tokens.
    surface: Option<u64>,
    cost: Usd,
    /// Whether the cost of some run is not known.
    unpriced: bool,
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

    fn score(&self, context: &Context<'_>, runs: &[Run<'_>]) -> Score {
        let mut all = Selection::default();
        let mut per_run = Vec::new();
        for run in runs {
            let selection = score_selection(&self.classes, &run.trace.tool_calls, context.servers);
            per_run.push(json!({
                "index": run.index,
                "f1": selection.counts.f1(),
                "correct_selections": selection.counts.true_positives,
                "cost": cost(context, std::slice::from_ref(run)).ok().map(Usd::to_f64),
                "missed": selection.missed,
                "unexpected": selection.unexpected,
            }));
            all.add(selection);
        }
        let Selection {
            counts,
            missed,
            unexpected,
        } = all;
        let surface = surface(runs);
        let cost = cost(context, runs);
        let report = score_token_efficiency(
            counts,
            surface.tokens,
            cost.as_ref().ok().map(|usd| usd.to_f64()),
        );
        let absent = absent(&report, cost.as_ref().err());
        let notes = notes(&surface);

        let mut detail = Map::from_iter([
            ("grade".to_owned(), json!(report.grade)),
            ("tools".to_owned(), surface.tools.into()),
            ("tokenizer".to_owned(), "cl100k_base".into()),
            ("missed".to_owned(), missed.clone().into()),
            ("unexpected".to_owned(), unexpected.clone().into()),
            ("true_positives".to_owned(), counts.true_positives.into()),
            ("false_positives".to_owned(), counts.false_positives.into()),
            ("false_negatives".to_owned(), counts.false_negatives.into()),
        ]);
        if cost.is_ok() {
            detail.insert("prices_of".to_owned(), context.prices.date().into());
        }
        let why: Map<String, Value> = absent
            .iter()
            .map(|(name, why)| ((*name).to_owned(), why.as_str().into()))
            .collect();
        detail.insert("absent".to_owned(), why.into());
        detail.insert("notes".to_owned(), notes.into());
        detail.insert("per_run".to_owned(), per_run.into());
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
            absent,
            detail,
            summary: summary(&report, &missed, &unexpected),
            ..Score::default()
        }
    }
    const DECIDES_EARLY: bool = true;

    type Tally = Tally;

    fn count(&self, tally: &mut Tally, context: &Context<'_>, run: &Run<'_>) {
        tally.selection.count(&self.classes, context, run);
        if let Some(catalog) = run.trace.catalog()
            && !tally.catalogs.iter().any(|one| one == catalog)
        {
            tally.surface = tally.surface.max(Some(tokens::of_catalog(catalog)));
            tally.catalogs.push(catalog.to_vec());
        }
        match cost(context, std::slice::from_ref(run)) {
            Ok(cost) => tally.cost = [tally.cost, cost].into_iter().sum(),
            Err(_) => tally.unpriced = true,
        }
    }

    fn outlook(&self, tally: &Tally, remaining: u64) -> Outlook {
        let classes = self.classes.len() as u64;
        let correct = tally.selection.counts.true_positives;
        let most_correct = correct.saturating_add(classes.saturating_mul(remaining));
        let per_correct = |figure: f64| figure / most_correct.max(1) as f64;
        let mut reach = vec![
            (
                "token_efficiency.f1",
                SelectionReach::new(&tally.selection, classes, remaining).f1,
            ),
            (
                "token_efficiency.correct_selections",
                Reach::between(correct, most_correct),
            ),
        ];
        let surface = "token_efficiency.tool_surface_tokens";
        if let Some(tokens) = tally.surface {
            // A run may be offered more tools, and so make the largest surface larger.
            let each = Reach::fraction_at_least(per_correct(tokens as f64));
            reach.push((surface, Reach::at_least(tokens)));
            // With nothing selected correctly there is nothing to divide by.
            let each = if correct == 0 { each.or_absent() } else { each };
            reach.push(("token_efficiency.tokens_per_correct", each));
        }
        let (cost, each) = if tally.unpriced {
            (Reach::Absent, Reach::Absent)
        } else {
            // A later run may not tell its tokens, and then nothing is known of the sum.
            let cost = tally.cost.to_f64();
            (
                Reach::fraction_at_least(cost).or_absent(),
                Reach::fraction_at_least(per_correct(cost)).or_absent(),
            )
        };
        reach.push(("token_efficiency.cost", cost));
        reach.push(("token_efficiency.cost_per_correct", each));
        Outlook {
            reach,
            may_lack_evidence: false,
        }
    }
}

fn absent(report: &TokenEfficiencyReport, no_cost: Option<&String>) -> Vec<(&'static str, String)> {
    let mut absent = Vec::new();
    let none_correct = || "nothing was selected correctly".to_owned();
    let no_surface = || "the trace does not tell which tools were offered".to_owned();
    if report.tool_surface_tokens.is_none() {
        absent.push(("token_efficiency.tool_surface_tokens", no_surface()));
    }
    if let Some(why) = no_cost {
        absent.push(("token_efficiency.cost", why.clone()));
    }
    if report.tokens_per_correct.is_none() {
        let why = report
            .tool_surface_tokens
            .map_or_else(no_surface, |_| none_correct());
        absent.push(("token_efficiency.tokens_per_correct", why));
    }
    if report.cost_per_correct.is_none() {
        let why = match no_cost {
            Some(why) => why.clone(),
            None if report.correct_selections == 0 => none_correct(),
            None => "the runs were free".to_owned(),
        };
        absent.push(("token_efficiency.cost_per_correct", why));
    }
    absent
}

fn notes(surface: &Surface) -> Vec<String> {
    let mut notes = Vec::new();
    if surface.variants > 1 {
        notes.push(format!(
            "runs were offered {} different sets of tools; the largest is counted",
            surface.variants
        ));
    }
    if surface.tokens.is_some() && !surface.unknown.is_empty() {
        let list: Vec<String> = surface.unknown.iter().map(u64::to_string).collect();
        notes.push(format!(
            "run {} does not tell which tools were offered",
            list.join(", ")
        ));
    }
    notes
}

fn summary(report: &TokenEfficiencyReport, missed: &[String], unexpected: &[String]) -> String {
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
