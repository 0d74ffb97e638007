//! Differences between runs.
//!
//! Runs with the same sequence of names form a group. Groups are compared once, however many runs
//! they have: all pairs of two groups have the same similarity and part at the same call. So the
//! cost grows with the number of runs, and with the square of the number of *different* sequences
//! only. Where all n runs differ, n²/2 pairs of sequences are compared, in lanes of machine words
//! ([`common_subsequence`](super::common_subsequence)) and on all cores.
//!
//! Equal arguments are found by sorting: two runs agree at a call if they have the same name and
//! the same fingerprint of arguments at the same position. Pairs that agree nowhere cost nothing.

use std::collections::BTreeMap;

use super::arguments::SharedArguments;
use super::common_subsequence::{Compared, Lanes, Long, Word};
use super::groups::Groups;
use super::sequences::StabilityAccumulator;
use mcptest_numbers::ratio::{Ratio, mean_of_sums};
use mcptest_trace::parallel;
use mcptest_trace::trace::TraceView;

/// The splits that a report lists; the others are counted.
const MAX_SPLITS: usize = 20;

/// Fewer groups are compared on one thread.
const MIN_PARALLEL: usize = 500;

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

pub(super) fn compare(accumulator: &StabilityAccumulator) -> Comparison {
    let groups = Groups::of(accumulator);
    let arguments = SharedArguments::of(accumulator, &groups);
    let mut sums = Sums::default();
    for ((names, runs), equal) in (groups.names.iter().zip(&groups.runs)).zip(&arguments.within) {
        let pairs = u128::from(*runs) * u128::from(runs.saturating_sub(1)) / 2;
        sums.similarities.add(pairs, 1, pairs);
        sums.consistencies.add_pairs(*equal, names.len(), pairs);
    }
    let between = between_groups(&groups, &arguments);
    between.into_iter().for_each(|more| sums.merge(more));
    let (diverging_pairs, early_pairs) = groups.diverging_pairs();
    Comparison {
        tool_sequence_similarity: sums.similarities.mean(),
        argument_consistency: sums.consistencies.mean(),
        early_divergence: 2 * early_pairs > diverging_pairs,
        diverging_pairs: u64::try_from(diverging_pairs).unwrap_or(u64::MAX),
        splits: first_splits(&groups),
    }
}

/// Compares all pairs of different groups.
fn between_groups(groups: &Groups, arguments: &SharedArguments) -> Vec<Sums> {
    // By length: the shorter sequence of a pair is in a lane, and all lanes have one length.
    let mut order: Vec<u32> = (0..).take(groups.names.len()).collect();
    order.sort_by_key(|group| groups.names.get(*group).len());
    let mut blocks: Vec<std::ops::Range<usize>> = Vec::new();
    let length = |at: usize| groups.names.get(order[at]).len();
    let mut start = 0;
    while start < order.len() {
        let most = start + lanes_for(length(start));
        let same = |at: &usize| *at < most && length(*at) == length(start);
        let end = (start..order.len()).take_while(same).count() + start;
        blocks.push(start..end);
        start = end;
    }
    let symbols = groups.names.iter().flatten().max();
    let pairs = Pairs {
        groups,
        arguments,
        order: &order,
        symbols: symbols.map_or(0, |last| *last as usize + 1),
    };
    let threads = parallel::threads_for(groups.names.len(), MIN_PARALLEL);
    parallel::map(threads, blocks, |block| pairs.of_block(block))
}

/// The number of sequences of this length that are compared at once.
fn lanes_for(length: usize) -> usize {
    match length {
        0..=16 => 16,
        17..=32 => 8,
        33..=64 => 4,
        _ => 1,
    }
}

/// The pairs of groups.
struct Pairs<'a> {
    groups: &'a Groups,
    arguments: &'a SharedArguments,
    /// The groups by length.
    order: &'a [u32],
    symbols: usize,
}

impl Pairs<'_> {
    /// Compares some groups of one length with each other, and with all groups after them.
    fn of_block(&self, block: std::ops::Range<usize>) -> Sums {
        let sequences = || {
            let groups = self.order[block.clone()].iter();
            groups.map(|group| self.groups.names.get(*group))
        };
        let length = sequences().next().map_or(0, <[u32]>::len);
        match lanes_for(length) {
            16 => self.of_lanes(
                Lanes::<u16, 16>::new(self.symbols, sequences()),
                block.clone(),
            ),
            8 => self.of_lanes(
                Lanes::<u32, 8>::new(self.symbols, sequences()),
                block.clone(),
            ),
            4 => self.of_lanes(
                Lanes::<u64, 4>::new(self.symbols, sequences()),
                block.clone(),
            ),
            _ => {
                let long = Long::new(self.symbols, sequences().next().unwrap_or_default());
                self.with_later(length, block.clone(), |other| long.compare(other))
            }
        }
    }

    fn of_lanes<W: Word, const LANES: usize>(
        &self,
        lanes: Lanes<W, LANES>,
        block: std::ops::Range<usize>,
    ) -> Sums {
        let first = self.groups.names.get(self.order[block.start]);
        self.with_later(first.len(), block, |other| lanes.compare(other))
    }

    fn with_later<const LANES: usize>(
        &self,
        length: usize,
        block: std::ops::Range<usize>,
        compare: impl Fn(&[u32]) -> Compared<LANES>,
    ) -> Sums {
        let mut sums = Sums::default();
        // The runs of the groups of the block that come before the other group: each pair once.
        let mut runs = [0_u64; LANES];
        let equal = self.arguments.with_others(&self.order[block.clone()]);
        let mut at = block.start;
        let others = &self.order[at..];
        let length_of = |group: &u32| self.groups.names.get(*group).len();
        for others in others.chunk_by(|one, next| length_of(one) == length_of(next)) {
            let (mut all_common, mut all_apart, mut all_pairs) = (0_u128, 0_u128, 0_u128);
            for group in others {
                let compared = compare(self.groups.names.get(*group));
                let (mut common, mut apart, mut pairs) = (0_u64, 0_u64, 0_u64);
                for (lane, runs) in runs.iter().enumerate() {
                    common += u64::from(compared.common[lane]) * runs;
                    apart += u64::from(compared.aligned[lane] == 0) * runs;
                    pairs += runs;
                }
                let weight = u128::from(self.groups.runs[*group as usize]);
                all_common += u128::from(common) * weight;
                all_apart += u128::from(apart) * weight;
                all_pairs += u128::from(pairs) * weight;
                let equal = equal.as_ref().and_then(|equal| equal.with(*group));
                for (lane, equal) in equal.unwrap_or_default().iter().enumerate() {
                    if *equal > 0 && runs[lane] > 0 {
                        let aligned = compared.aligned[lane] as usize;
                        sums.consistencies.add_numerators((*equal).into(), aligned);
                    }
                }
                if block.contains(&at) {
                    runs[at - block.start] = self.groups.runs[*group as usize];
                }
                at += 1;
            }
            let other_length = others.first().map_or(0, length_of);
            sums.similarities
                .add(2 * all_common, length + other_length, all_pairs);
            // A pair without a common position counts as 1, one without equal arguments as 0.
            sums.consistencies.add(all_apart, 1, all_pairs);
        }
        sums
    }
}

/// The fractions of all pairs.
#[derive(Default)]
struct Sums {
    similarities: Pooled,
    consistencies: Pooled,
}

impl Sums {
    fn merge(&mut self, other: Self) {
        self.similarities.merge(other.similarities);
        self.consistencies.merge(other.consistencies);
    }
}

/// The first pairs of runs that part, in the order of the runs.
fn first_splits(groups: &Groups) -> Vec<(usize, usize, usize)> {
    let mut splits = Vec::new();
    for (first, a) in groups.of_run.iter().enumerate() {
        let before = splits.len();
        for (second, b) in groups.of_run.iter().enumerate().skip(first + 1) {
            if splits.len() == MAX_SPLITS {
                return splits;
            }
            if a != b {
                let at = split_of(groups.names.get(*a), groups.names.get(*b));
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

    /// Adds to the sum of the numerators of fractions that were counted before.
    fn add_numerators(&mut self, numerators: u128, denominator: usize) {
        *self.by_denominator.entry(denominator).or_insert(0) += numerators;
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        for (denominator, numerators) in other.by_denominator {
            self.add_numerators(numerators, denominator);
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
