//! Order and data flow between calls.

use std::collections::BTreeSet;

use super::{Run, Supported};

/// One call that comes before another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Edge {
    /// The tool of the first call.
    pub first: String,
    /// The tool of the second call.
    pub second: String,
}

/// The most tools whose pairs are compared: what more tools than these have in common in every
/// trace is not a plan that a person would check.
const MAX_TOOLS: usize = 40;

/// The tools that every run calls, in the order of their first calls in the first run.
fn common(runs: &[Run]) -> Vec<&str> {
    let Some((first, others)) = runs.split_first() else {
        return Vec::new();
    };
    let others: Vec<BTreeSet<&str>> = others.iter().map(|run| run.tools().collect()).collect();
    let mut tools: Vec<&str> = Vec::new();
    let mut seen = BTreeSet::new();
    for tool in first.tools() {
        if seen.insert(tool) && others.iter().all(|run| run.contains(tool)) {
            tools.push(tool);
        }
    }
    tools.truncate(MAX_TOOLS);
    tools
}

/// The pairs of common tools of which one comes before the other in every run.
struct Precedence<'r> {
    tools: Vec<&'r str>,
    /// Row by row: the tool of the row comes before the tool of the column.
    before: Vec<bool>,
}

impl<'r> Precedence<'r> {
    fn new(runs: &'r [Run]) -> Self {
        let tools = common(runs);
        let mut before = vec![true; tools.len() * tools.len()];
        for run in runs {
            let places: Vec<Option<usize>> = tools.iter().map(|tool| run.first(tool)).collect();
            for (row, first) in places.iter().enumerate() {
                for (column, second) in places.iter().enumerate() {
                    before[row * tools.len() + column] &= first < second;
                }
            }
        }
        Self { tools, before }
    }

    fn holds(&self, first: usize, second: usize) -> bool {
        self.before[first * self.tools.len() + second]
    }

    /// The pairs that hold, by their positions.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let count = self.tools.len();
        (0..count * count)
            .map(move |at| (at / count, at % count))
            .filter(|(first, second)| self.holds(*first, *second))
    }
}

/// Edges that hold in every run in which the first call of `second` uses a value that the result
/// of the first call of `first` contains and the user never gave.
pub(super) fn dependencies(runs: &[Run]) -> Vec<Supported<Edge>> {
    let precedence = Precedence::new(runs);
    let tools = &precedence.tools;
    precedence
        .pairs()
        .map(|(first, second)| (tools[first], tools[second]))
        .filter(|(first, second)| runs.iter().all(|run| reads_result_of(run, first, second)))
        .map(|(first, second)| edge(first, second, runs.len()))
        .collect()
}

fn reads_result_of(run: &Run, first: &str, second: &str) -> bool {
    let (Some(producer), Some(consumer)) = (run.first(first), run.first(second)) else {
        return false;
    };
    let result = &run.calls[producer].result;
    let mut sources = run.calls[consumer].sources.iter();
    sources.any(|value| contains_whole(result, value) && !contains_whole(&run.request, value))
}

/// Returns true if a text contains a value that is not part of a longer word or number.
fn contains_whole(text: &str, value: &str) -> bool {
    let outside = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
    text.match_indices(value).any(|(at, _)| {
        outside(text[..at].chars().next_back()) && outside(text[at + value.len()..].chars().next())
    })
}

/// Edges that hold in every run, without those that follow from others or are dependencies.
pub(super) fn order(runs: &[Run], dependencies: &[Supported<Edge>]) -> Vec<Supported<Edge>> {
    let precedence = Precedence::new(runs);
    let tools = &precedence.tools;
    let follows = |first: usize, second: usize| {
        let mut between = 0..tools.len();
        between.any(|middle| precedence.holds(first, middle) && precedence.holds(middle, second))
    };
    precedence
        .pairs()
        .filter(|(first, second)| !follows(*first, *second))
        .map(|(first, second)| edge(tools[first], tools[second], runs.len()))
        .filter(|edge| !dependencies.iter().any(|known| known.part == edge.part))
        .collect()
}

fn edge(first: &str, second: &str, traces: usize) -> Supported<Edge> {
    let edge = Edge {
        first: first.to_owned(),
        second: second.to_owned(),
    };
    Supported { part: edge, traces }
}
