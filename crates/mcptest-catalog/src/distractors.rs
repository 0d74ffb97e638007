//! Distractors: tools that are added to the offer of a test (`distractors:`).
//!
//! This module has the block as written, and the tools that it adds: from which source, in which
//! order, and what they answer. The gate of the same name counts the calls of them.

mod catalog;
mod inject;
mod near_duplicate;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use mcptest_numbers::random;
use mcptest_trace::expect::WrittenExpectation;
use mcptest_trace::matcher::Problem;

pub use catalog::{Bundled, bundled};
pub use inject::{InjectionError, PlannedRun, offer_order, plan_injection, refusal};

/// The largest accepted number of distractors: no model takes such an offer, and a typo should not
/// request it.
const MAX_COUNT: u32 = 1000;

/// Adds distracting tools to the offer and scores the agent's choices.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distractors {
    /// The number of distractors in the offer; 0 is the baseline.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    pub count: Option<u32>,
    /// Several counts: the test's runs are made at each of them, for the curve of accuracy against
    /// count.
    #[serde(default)]
    #[schemars(length(min = 1), inner(range(max = 1000)))]
    pub counts: Option<Vec<u32>>,
    /// The source of the distractors.
    pub source: Source,
    /// The tools that are right to choose: `server.tool`, or a bare tool name that matches on any
    /// server.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    pub correct: Vec<String>,
    /// The way the right tools are to be called. Reports group by it; the figures do not depend on
    /// it.
    #[serde(default)]
    pub complexity: Option<Complexity>,
    /// The seed of the choice of distractors and of the order of the offer. Default: made from the
    /// test's name.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Assertions on `distractors.*`. Default: `distractors.accuracy` is at least 50.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

/// The source of distractors.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// `catalog` or `near_duplicate`.
    pub from: SourceKind,
    /// With `near_duplicate`: the real tools to make near-duplicates of.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    pub of: Option<Vec<String>>,
}

/// The two sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// The bundled set of plausible tools.
    Catalog,
    /// Near-duplicates of real tools.
    NearDuplicate,
}

/// The way the right tools are to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// One after the other.
    Serial,
    /// Several in one turn.
    Parallel,
}

impl Distractors {
    /// The counts to run at, in the order written.
    #[must_use]
    pub fn planned_counts(&self) -> Vec<u32> {
        match (&self.counts, self.count) {
            (Some(counts), _) => counts.clone(),
            (None, count) => vec![count.unwrap_or(0)],
        }
    }

    /// The distractors of each execution of a test, in order: its `runs` at the first count, then
    /// at the next.
    ///
    /// Run 3 at count 4 has the seed of run 3 at count 16, so its distractors are a part of the
    /// other's and a curve compares like with like.
    #[must_use]
    pub fn schedule(&self, test: &str, runs: u32) -> Vec<PlannedRun> {
        let seed = |run: u64| match self.seed {
            Some(seed) => random::combine(seed, run),
            None => random::seed_of(test, run),
        };
        self.planned_counts()
            .into_iter()
            .flat_map(|count| {
                (1..=u64::from(runs.max(1))).map(move |run| PlannedRun {
                    count,
                    seed: seed(run),
                })
            })
            .collect()
    }

    /// The problems that the schema does not find. Pointers start at the block.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match (self.count, &self.counts) {
            (None, None) => problems.push(
                Problem::new("", "`distractors` has neither `count` nor `counts`")
                    .help("`count: 4` adds four tools to the offer, `counts: [0, 4, 16]` compares several"),
            ),
            (Some(_), Some(_)) => problems.push(Problem::new("/counts", "`count` and `counts` exclude each other")),
            (Some(count), None) => problems.extend(too_many("/count", count)),
            (None, Some(counts)) => {
                if counts.is_empty() {
                    problems.push(Problem::new("/counts", "an empty list of counts asks for no run"));
                }
                for (index, count) in counts.iter().enumerate() {
                    let at = format!("/counts/{index}");
                    problems.extend(too_many(&at, *count));
                    if counts[..index].contains(count) {
                        problems.push(Problem::new(at, format!("the count {count} is listed twice")));
                    }
                }
            }
        }
        match (self.source.from, &self.source.of) {
            (SourceKind::NearDuplicate, None) => problems.push(
                Problem::new("/source", "`near_duplicate` needs `of`")
                    .help("`of: [search_products]` makes near-duplicates of that tool"),
            ),
            (SourceKind::NearDuplicate, Some(of)) if of.is_empty() => {
                problems.push(Problem::new("/source/of", "`of` names no tool"));
            }
            (SourceKind::Catalog, Some(_)) => problems.push(Problem::new(
                "/source/of",
                "`of` belongs to `near_duplicate`; the catalog's tools are fixed",
            )),
            _ => {}
        }
        problems
    }
}

fn too_many(at: &str, count: u32) -> Option<Problem> {
    (count > MAX_COUNT).then(|| {
        Problem::new(
            at,
            format!("{count} distractors are more than the {MAX_COUNT} that can be offered"),
        )
    })
}

#[cfg(test)]
mod tests;
