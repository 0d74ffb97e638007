//! What a benchmark comes to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Mutation, Quality};
use mcptest_numbers::percent::Rate;

/// What came of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {
    /// How many tools the catalog has.
    pub tools: u64,
    /// How many requests were tried.
    pub intents: u64,
    /// With the catalog as it is.
    pub baseline: Score,
    /// What was picked for every request.
    pub picks: Vec<Picked>,
    /// Which tools were intended and which picked.
    pub confusion: Vec<Confusion>,
    /// What every edit cost, in the order of the spec.
    pub mutations: Vec<MutationReport>,
    /// The largest drop; nothing without edits.
    pub max_drop: Option<f64>,
}

/// How well tools were picked from one form of the catalog, and what that form costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Correct picks.
    pub correct: u64,
    /// Correct picks ÷ intents.
    pub accuracy: f64,
    /// The 95 % Wilson interval of the accuracy.
    pub wilson: Bounds,
    /// Words of names and descriptions, split at blanks.
    pub whitespace_tokens: u64,
    /// What the descriptions are worth; nothing where that is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
}

/// The ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The pick for one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Picked {
    /// The request.
    pub query: String,
    /// What would be right.
    pub gold: Vec<String>,
    /// The tool that was picked; nothing if no tool shares a word with the request.
    pub picked: Option<String>,
    /// Whether that is right.
    pub correct: bool,
    /// The words that the picked tool shares with the request.
    pub shared: BTreeSet<String>,
}

/// How often one tool was picked where another was intended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// The intended tool.
    pub intended: String,
    /// The picked tool; nothing for no pick.
    pub picked: Option<String>,
    /// Whether the pick is right.
    pub correct: bool,
    /// How often.
    pub count: u64,
    /// The words of those requests that the picked tool has.
    pub picked_words: BTreeSet<String>,
    /// The words of those requests that the intended tool has.
    pub intended_words: BTreeSet<String>,
    /// The requests.
    pub queries: Vec<String>,
}

/// What one edit cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MutationReport {
    /// The edit.
    pub mutation: Mutation,
    /// Whether it changed anything: a word that is not there cannot be dropped.
    pub changed: bool,
    /// With the edited catalog.
    pub score: Score,
    /// Baseline accuracy − accuracy after the edit.
    pub drop: f64,
    /// Words that the edit removed; below 0 if it added some.
    pub tokens_removed: i64,
    /// Smells that there are more of; nothing where they are not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smells_introduced: Option<BTreeMap<String, u64>>,
    /// The requests whose pick changed.
    pub moved: Vec<Moved>,
}

/// A request whose pick changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The request.
    pub query: String,
    /// The pick before.
    pub from: Option<String>,
    /// The pick after.
    pub to: Option<String>,
    /// Whether the pick before was right.
    pub was_correct: bool,
    /// Whether the pick after is right.
    pub is_correct: bool,
}

impl BenchReport {
    /// Whether the largest drop reaches a threshold, decided in whole numbers; nothing without
    /// edits.
    #[must_use]
    pub fn reaches(&self, least: Rate) -> Option<bool> {
        let lowest = self.mutations.iter().map(|one| one.score.correct).min()?;
        // A catalog that no edit hurts has a largest drop of 0 or less.
        let lost = self.baseline.correct.checked_sub(lowest);
        Some(lost.is_some_and(|lost| least.met_by(lost, self.intents)))
    }
}
