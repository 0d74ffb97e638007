//! Differences between runs.
//!
//! Runs with the same sequence of names form a group. Groups are compared once, however many runs
//! they have: all pairs of two groups have the same similarity and part at the same call, and the
//! arguments that agree are counted position by position. So the cost grows with the number of
//! runs, and with the square of the number of *different* sequences only. Where all n runs differ,
//! n²/2 sequences are compared; each comparison takes a few machine words for up to 64 calls.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::sequences::StabilityAccumulator;
use crate::digest::Digest;
use mcptest_numbers::ratio::{Ratio, mean_of_sums};
use mcptest_trace::trace::TraceView;

/// The splits that a report lists; the others are counted.
const MAX_SPLITS: usize = 20;

/// The result of comparing every run with every other.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The mean similarity of the orders of calls.
    pub tool_sequence_similarity: f64,
    /// The mean share of equal arguments among calls in step with each other.
    pub argument_consistency: f64,
    /// True if most pairs of runs that part do so in the first two calls.
    pub early_divergence: bool,
    /// The number of pairs of runs that part.
    pub diverging_pairs: u64,
    /// The first of these pairs: the positions of the two runs, and the index of the call at which
    /// they part.
    pub(super) splits: Vec<(usize, usize, usize)>,
}

/// Compares every run with every other. Without a pair nothing differs.
#[must_use]
pub fn compare_runs(traces: &[&TraceView<'_>]) -> Comparison {
    let mut accumulator = StabilityAccumulator::default();
    for (trace, index) in traces.iter().zip(1..) {
        accumulator.observe(index, trace);
    }
    compare(&accumulator)
}

/// Runs with the same sequence of names.
struct Group {
    names: Vec<u32>,
    runs: u64,
    /// For each call, how many runs have which arguments.
    arguments: Vec<BTreeMap<Digest, u64>>,
}

pub(super) fn compare(accumulator: &StabilityAccumulator) -> Comparison {
    let (groups, group_of_run) = groups(accumulator);
    let mut similarities = Pooled::default();
    let mut consistencies = Pooled::default();
    let (mut diverging_pairs, mut early_pairs) = (0_u128, 0_u128);
    let symbols = groups.iter().flat_map(|group| &group.names).max();
    let mut lcs = CommonSubsequence::new(symbols.map_or(0, |last| *last as usize + 1));
    for (first, a) in groups.iter().enumerate() {
        let pairs = u128::from(a.runs) * u128::from(a.runs.saturating_sub(1)) / 2;
        similarities.add(pairs, 1, pairs);
        consistencies.add_pairs(a.equal_arguments(), a.names.len(), pairs);
        lcs.prepare(&a.names);
        for b in &groups[first + 1..] {
            let pairs = u128::from(a.runs) * u128::from(b.runs);
            let lengths = a.names.len() + b.names.len();
            let common = lcs.length(&b.names);
            similarities.add(2 * common as u128 * pairs, lengths, pairs);
            diverging_pairs += pairs;
            if split_of(&a.names, &b.names) < 2 {
                early_pairs += pairs;
            }
            let (equal, aligned) = a.equal_arguments_with(b);
            consistencies.add_pairs(equal, aligned, pairs);
        }
    }
    Comparison {
        tool_sequence_similarity: similarities.mean(),
        argument_consistency: consistencies.mean(),
        early_divergence: 2 * early_pairs > diverging_pairs,
        diverging_pairs: u64::try_from(diverging_pairs).unwrap_or(u64::MAX),
        splits: first_splits(&groups, &group_of_run),
    }
}

/// The groups, and the group of each run.
fn groups(accumulator: &StabilityAccumulator) -> (Vec<Group>, Vec<usize>) {
    let name_of = accumulator.names();
    let mut groups: IndexMap<Vec<u32>, Group> = IndexMap::new();
    let mut group_of_sequence: Vec<Option<usize>> = vec![None; accumulator.sequence_count()];
    let mut group_of_run = Vec::with_capacity(accumulator.runs.len());
    for row in accumulator.runs.iter() {
        let known = group_of_sequence.get_mut(row.shared.sequence as usize);
        let Some(known) = known else { continue };
        let group = *known.get_or_insert_with(|| {
            let sequence = accumulator.sequence(*row.shared).iter();
            let names: Vec<u32> = sequence
                .filter_map(|tool| name_of.get(*tool as usize).copied())
                .collect();
            let entry = groups.entry(names);
            let index = entry.index();
            entry.or_insert_with_key(|names| Group {
                arguments: vec![BTreeMap::new(); names.len()],
                names: names.clone(),
                runs: 0,
            });
            index
        });
        group_of_run.push(group);
        let Some((_, group)) = groups.get_index_mut(group) else {
            continue;
        };
        group.runs += 1;
        let arguments = accumulator.arguments(*row.shared).iter();
        for (counts, digest) in group.arguments.iter_mut().zip(arguments) {
            *counts.entry(*digest).or_insert(0) += 1;
        }
    }
    (groups.into_values().collect(), group_of_run)
}

impl Group {
    /// The number of equal arguments over all pairs of its runs.
    fn equal_arguments(&self) -> u128 {
        let counts = self.arguments.iter().flat_map(BTreeMap::values);
        counts
            .map(|count| u128::from(*count) * u128::from(count - 1) / 2)
            .sum()
    }

    /// The number of equal arguments over all pairs of a run of this group and one of another, and
    /// the number of calls at which both have the same name.
    fn equal_arguments_with(&self, other: &Self) -> (u128, usize) {
        let (mut equal, mut aligned) = (0, 0);
        for (at, (one, two)) in self.names.iter().zip(&other.names).enumerate() {
            if one != two {
                continue;
            }
            aligned += 1;
            let (mut few, mut many) = (&self.arguments[at], &other.arguments[at]);
            if few.len() > many.len() {
                std::mem::swap(&mut few, &mut many);
            }
            for (digest, count) in few {
                let others = many.get(digest).copied().unwrap_or(0);
                equal += u128::from(*count) * u128::from(others);
            }
        }
        (equal, aligned)
    }
}

/// The first pairs of runs that part, in the order of the runs.
fn first_splits(groups: &[Group], group_of_run: &[usize]) -> Vec<(usize, usize, usize)> {
    let mut splits = Vec::new();
    for (first, a) in group_of_run.iter().enumerate() {
        let before = splits.len();
        for (second, b) in group_of_run.iter().enumerate().skip(first + 1) {
            if splits.len() == MAX_SPLITS {
                return splits;
            }
            if a != b {
                let at = split_of(&groups[*a].names, &groups[*b].names);
                splits.push((first, second, at));
            }
        }
        // All later runs are alike.
        if splits.len() == before {
            break;
        }
    }
    splits
}

/// The index at which two different sequences part: where one begins the other, the shorter one's
/// end.
fn split_of(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The lengths of longest common subsequences of one sequence with many others.
struct CommonSubsequence {
    /// For each symbol, the positions of the sequence that have it, as bits; for up to 64
    /// positions.
    masks: Vec<u64>,
    sequence: Vec<u32>,
}

impl CommonSubsequence {
    fn new(symbols: usize) -> Self {
        Self {
            masks: vec![0; symbols],
            sequence: Vec::new(),
        }
    }

    fn prepare(&mut self, sequence: &[u32]) {
        for symbol in &self.sequence {
            self.masks[*symbol as usize] = 0;
        }
        self.sequence = sequence.to_vec();
        for (at, symbol) in sequence.iter().enumerate().take(64) {
            self.masks[*symbol as usize] |= 1 << at;
        }
    }

    /// The length of the longest common subsequence with another sequence.
    fn length(&self, other: &[u32]) -> usize {
        if self.sequence.len() > 64 {
            return longest_common_subsequence(&self.sequence, other);
        }
        // One bit per position: a row of the usual table, in which each step is 0 or 1 (Hyyrö
        // 2004).
        let mut row = u64::MAX;
        for symbol in other {
            let matches = row & self.masks[*symbol as usize];
            row = row.wrapping_add(matches) | (row & !matches);
        }
        let used = u64::MAX.checked_shr(64 - self.sequence.len() as u32);
        (!row & used.unwrap_or(0)).count_ones() as usize
    }
}

pub(super) fn longest_common_subsequence(a: &[u32], b: &[u32]) -> usize {
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
    by_denominator: BTreeMap<usize, u128>,
    count: u128,
}

impl Pooled {
    /// Adds `count` fractions of one denominator, given the sum of their numerators.
    fn add(&mut self, numerators: u128, denominator: usize, count: u128) {
        if count > 0 {
            *self.by_denominator.entry(denominator).or_insert(0) += numerators;
            self.count += count;
        }
    }

    /// Adds the shares of `count` pairs; a pair with nothing to compare counts as 1.
    fn add_pairs(&mut self, equal: u128, aligned: usize, count: u128) {
        if aligned == 0 {
            self.add(count, 1, count);
        } else {
            self.add(equal, aligned, count);
        }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_and_table_find_the_same_length(
            a in prop::collection::vec(0_u32..4, 0..70),
            b in prop::collection::vec(0_u32..4, 0..70),
        ) {
            let mut lcs = CommonSubsequence::new(4);
            lcs.prepare(&b);
            lcs.prepare(&a);
            prop_assert_eq!(lcs.length(&b), longest_common_subsequence(&a, &b));
        }
    }
}
