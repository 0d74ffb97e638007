//! Steadiness between runs.

use std::collections::BTreeMap;

use super::session::{args_key, name_key};
use mcptest_numbers::ratio::{Ratio, mean_of_sums};
use mcptest_trace::trace::Trace;

/// What is seen between runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// How alike the orders of calls are.
    pub tool_sequence_similarity: f64,
    /// How often calls in step with each other have the same arguments.
    pub argument_consistency: f64,
    /// Whether runs that part tend to part at once.
    pub early_divergence: bool,
    /// For each pair of runs that differ, where they part: the index of the call, from 0.
    pub(super) splits: Vec<(usize, usize, usize)>,
}

/// One run as the comparison sees it: names and arguments as numbers, equal if and only if the
/// texts are.
struct Sequence {
    names: Vec<usize>,
    args: Vec<usize>,
}

/// Compares every run with every other. Without a pair there is nothing that differs.
#[must_use]
pub fn compare_runs(traces: &[&Trace]) -> Comparison {
    let mut known = BTreeMap::new();
    let mut number = |key: String| {
        let next = known.len();
        *known.entry(key).or_insert(next)
    };
    let sequences: Vec<Sequence> = traces
        .iter()
        .map(|trace| Sequence {
            names: trace
                .tool_calls
                .iter()
                .map(|call| number(name_key(call)))
                .collect(),
            args: trace
                .tool_calls
                .iter()
                .map(|call| number(args_key(call)))
                .collect(),
        })
        .collect();
    let mut similarities = Pooled::default();
    let mut consistencies = Pooled::default();
    let mut splits = Vec::new();
    let mut lcs_known = BTreeMap::new();
    for (first, a) in sequences.iter().enumerate() {
        for (second, b) in sequences.iter().enumerate().skip(first + 1) {
            let lengths = a.names.len() + b.names.len();
            let split = split_of(&a.names, &b.names);
            match split {
                None => similarities.add(1, 1),
                Some(at) => {
                    // Runs tend to repeat each other: each pair of sequences is worked out once.
                    let lcs = *lcs_known
                        .entry((&a.names, &b.names))
                        .or_insert_with(|| longest_common_subsequence(&a.names, &b.names));
                    similarities.add(2 * lcs, lengths);
                    splits.push((first, second, at));
                }
            }
            let in_step =
                || (0..a.names.len().min(b.names.len())).filter(|at| a.names[*at] == b.names[*at]);
            let aligned = in_step().count();
            if aligned == 0 {
                consistencies.add(1, 1);
            } else {
                consistencies.add(
                    in_step().filter(|at| a.args[*at] == b.args[*at]).count(),
                    aligned,
                );
            }
        }
    }
    let early = splits.iter().filter(|(_, _, at)| *at < 2).count();
    Comparison {
        tool_sequence_similarity: similarities.mean(),
        argument_consistency: consistencies.mean(),
        early_divergence: 2 * early > splits.len(),
        splits,
    }
}

/// Where two sequences part; nothing if they are the same.
fn split_of(a: &[usize], b: &[usize]) -> Option<usize> {
    let shorter = a.len().min(b.len());
    match (0..shorter).find(|at| a[*at] != b[*at]) {
        None if a.len() == b.len() => None,
        None => Some(shorter),
        found => found,
    }
}

pub(super) fn longest_common_subsequence(a: &[usize], b: &[usize]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (at, y) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if x == y {
                diagonal + 1
            } else {
                above.max(row[at])
            };
            diagonal = above;
        }
    }
    row[b.len()]
}

/// Fractions of pairs, summed by denominator: there are many pairs and few denominators.
#[derive(Default)]
struct Pooled {
    by_denominator: BTreeMap<usize, usize>,
    count: usize,
}

impl Pooled {
    fn add(&mut self, numerator: usize, denominator: usize) {
        *self.by_denominator.entry(denominator).or_insert(0) += numerator;
        self.count += 1;
    }

    /// The mean; 1 for no fractions.
    fn mean(&self) -> f64 {
        let parts: Vec<Ratio> = self
            .by_denominator
            .iter()
            .map(|(denominator, numerator)| Ratio::new(*numerator, *denominator))
            .collect();
        mean_of_sums(&parts, self.count).unwrap_or(1.0)
    }
}
