//! The result of a benchmark.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Mutation, Quality};
use mcptest_numbers::percent::Rate;

/// The result of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BenchReport {
    /// The number of tools in the catalog.
    pub tools: u64,
    /// The number of requests.
    pub intents: u64,
    /// The result with the unchanged catalog.
    pub baseline: Score,
    /// The pick for every request.
    pub picks: Vec<Picked>,
    /// Intended versus picked tools.
    pub confusion: Vec<Confusion>,
    /// The cost of every edit, in the order of the spec.
    pub mutations: Vec<MutationReport>,
    /// The largest drop; absent without edits.
    pub max_drop: Option<f64>,
}

/// The accuracy of the picks from one version of the catalog, and the cost of that version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Score {
    /// Correct picks.
    pub correct: u64,
    /// Correct picks ÷ intents.
    pub accuracy: f64,
    /// The 95 % Wilson interval of the accuracy.
    pub wilson: Bounds,
    /// Words of names and descriptions, split at whitespace.
    pub whitespace_tokens: u64,
    /// The quality of the descriptions; absent where it is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
}

/// The ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bounds {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The pick for one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Picked {
    /// The request.
    pub query: String,
    /// The correct tools.
    pub gold: Vec<String>,
    /// The picked tool; absent if no tool shares a word with the request.
    pub picked: Option<String>,
    /// True if the pick is correct.
    pub correct: bool,
    /// The words that the picked tool shares with the request.
    pub shared: BTreeSet<String>,
}

/// A pair of intended and picked tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Confusion {
    /// The intended tool.
    pub intended: String,
    /// The picked tool; absent for no pick.
    pub picked: Option<String>,
    /// True if the pick is correct.
    pub correct: bool,
    /// The number of requests.
    pub count: u64,
    /// The words of those requests that the picked tool has.
    pub picked_words: BTreeSet<String>,
    /// The words of those requests that the intended tool has.
    pub intended_words: BTreeSet<String>,
    /// The requests.
    pub queries: Vec<String>,
}

/// The cost of one edit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MutationReport {
    /// The edit.
    pub mutation: Mutation,
    /// True if it changed anything: a missing word cannot be dropped.
    pub changed: bool,
    /// The result with the edited catalog.
    pub score: Score,
    /// Baseline accuracy − accuracy after the edit.
    pub drop: f64,
    /// Words that the edit removed; below 0 if it added some.
    pub tokens_removed: i64,
    /// Smells that became more frequent; absent where they are not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smells_introduced: Option<BTreeMap<String, u64>>,
    /// The requests whose pick changed.
    pub moved: Vec<Moved>,
}

/// A request whose pick changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Moved {
    /// The request.
    pub query: String,
    /// The pick before.
    pub from: Option<String>,
    /// The pick after.
    pub to: Option<String>,
    /// True if the pick before was correct.
    pub was_correct: bool,
    /// True if the pick after is correct.
    pub is_correct: bool,
}

impl BenchReport {
    /// Returns true if the largest drop reaches a threshold, computed in integers; `None` without
    /// edits.
    #[must_use]
    pub fn reaches(&self, least: Rate) -> Option<bool> {
        let lowest = self.mutations.iter().map(|one| one.score.correct).min()?;
        // A catalog that no edit hurts has a largest drop of 0 or less.
        let lost = self.baseline.correct.checked_sub(lowest);
        Some(lost.is_some_and(|lost| least.met_by(lost, self.intents)))
    }
}
