//! Differences between runs.
//!
//! Runs with the same sequence of names form a group. Groups are compared once, however many runs
//! they have: all pairs of two groups have the same similarity and part at the same call. So the
//! cost grows with the number of runs, and with the square of the number of *different* sequences
//! only. Names and arguments that no other run has do not count as a difference here
//! ([`units`](super::units)). Where n sequences remain, n²/2 pairs are compared, in lanes of
//! machine words ([`common_subsequence`](super::common_subsequence)) and on all cores: about a
//! nanosecond each. No way is known that avoids the square: the pairs that agree at no position
//! would have to be counted, which is the problem of orthogonal vectors.
//!
//! Equal arguments of many runs with few sequences are found by sorting: two runs agree at a call
//! if they have the same name and the same fingerprint of arguments at the same position. Pairs
//! that agree nowhere cost nothing.

use std::collections::BTreeMap;
use std::ops::Range;

use super::argument_numbers::Equality;
use super::arguments::SharedArguments;
use super::common_subsequence::{Compare, Compared, Lanes, Long};
use super::equal_lanes::EqualLanes;
use super::groups::{Groups, Members, pairs};
use super::sequences::StabilityAccumulator;
use super::units::Units;
use mcptest_numbers::ratio::{Ratio, mean_of_sums};
use mcptest_trace::parallel;
use mcptest_trace::trace::TraceView;

/// The splits that a report lists; the others are counted.
const MAX_SPLITS: usize = 20;

/// Fewer units are compared on one thread.
const MIN_PARALLEL: usize = 500;

/// If runs with the same names have more different arguments than this, groups are compared.
const MAX_UNITS_PER_GROUP: usize = 2;

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
    let sums = match units_of_members(accumulator, &groups) {
        Some((units, within)) => {
            let mut sums = between_units(&units, None);
            sums.add_equal_pairs(within);
            sums.add_pairs_of_units(&units);
            sums
        }
        None => {
            let arguments = SharedArguments::of(accumulator, &groups);
            let mut sums = between_units(&Units::of_groups(&groups), Some(&arguments));
            sums.add_pairs_of_groups(&groups, &arguments);
            sums
        }
    };
    let (diverging_pairs, early_pairs) = groups.diverging_pairs();
    Comparison {
        tool_sequence_similarity: sums.similarities.mean(),
        argument_consistency: sums.consistencies.mean(),
        early_divergence: 2 * early_pairs > diverging_pairs,
        diverging_pairs: u64::try_from(diverging_pairs).unwrap_or(u64::MAX),
        splits: first_splits(&groups),
    }
}

/// The units of runs with the same names and arguments, and the number of pairs of equal runs.
/// `None` if there are many more of them than groups: then groups are compared.
fn units_of_members(accumulator: &StabilityAccumulator, groups: &Groups) -> Option<(Units, u128)> {
    let members = Members::of(accumulator, groups);
    let within = members.runs.iter().map(|runs| pairs(*runs)).sum();
    let units = Units::of_members(&members, groups);
    (units.len() <= MAX_UNITS_PER_GROUP * groups.runs.len()).then_some((units, within))
}

/// Compares all pairs of different units. Without `arguments`, units have them.
fn between_units(units: &Units, arguments: Option<&SharedArguments>) -> Sums {
    // By length: the shorter sequence of a pair is in a lane, and all lanes have one length. Then
    // by names, so that neighbours begin with the same ones.
    let mut order: Vec<u32> = (0..).take(units.len()).collect();
    let key = |unit: &u32| {
        let names = units.names_of(*unit);
        (names.len(), names)
    };
    order.sort_by(|one, other| key(one).cmp(&key(other)));
    let same = |pair: &[u32]| split_of(units.names_of(pair[0]), units.names_of(pair[1]));
    let same = std::iter::once(0).chain(order.windows(2).map(same));
    let same: Vec<usize> = same.collect();
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let length = |at: usize| units.names_of(order[at]).len();
    let mut start = 0;
    while start < order.len() {
        let most = start + lanes_for(length(start));
        let in_block = |at: &usize| *at < most && length(*at) == length(start);
        let end = (start..order.len()).take_while(in_block).count() + start;
        blocks.push(start..end);
        start = end;
    }
    let pairs = Pairs {
        units,
        arguments,
        order: &order,
        same: &same,
    };
    let threads = parallel::threads_for(units.len(), MIN_PARALLEL);
    let all = parallel::map(threads, blocks, |block| pairs.of_block(block));
    let mut sums = Sums::default();
    all.into_iter().for_each(|more| sums.merge(more));
    sums
}

/// The number of sequences of this length that are compared together.
fn lanes_for(length: usize) -> usize {
    match length {
        0..=8 => 32,
        9..=16 => 16,
        17..=32 => 8,
        33..=64 => 4,
        _ => 1,
    }
}

/// The pairs of units.
struct Pairs<'a> {
    units: &'a Units,
    arguments: Option<&'a SharedArguments>,
    /// The units by length and names.
    order: &'a [u32],
    /// For each of them, the number of names that it and the one before it begin with.
    same: &'a [usize],
}

impl Pairs<'_> {
    /// Compares some units of one length with each other, and with all units after them.
    fn of_block(&self, block: Range<usize>) -> Sums {
        let sequences = || {
            let units = self.order[block.clone()].iter();
            units.map(|unit| self.units.names_of(*unit))
        };
        let length = sequences().next().map_or(0, <[u32]>::len);
        let names = self.units.names;
        match lanes_for(length) {
            32 => self.with_later(Lanes::<u8, 32>::new(names, sequences()), block.clone()),
            16 => self.with_later(Lanes::<u16, 16>::new(names, sequences()), block.clone()),
            8 => self.with_later(Lanes::<u32, 8>::new(names, sequences()), block.clone()),
            4 => self.with_later(Lanes::<u64, 4>::new(names, sequences()), block.clone()),
            _ => {
                let sequence = sequences().next().unwrap_or_default();
                self.with_later(Long::new(names, sequence), block.clone())
            }
        }
    }

    fn with_later<const LANES: usize>(
        &self,
        mut lanes: impl Compare<LANES>,
        block: Range<usize>,
    ) -> Sums {
        let units = self.units;
        let length_of = |at: usize| units.names_of(self.order[at]).len();
        let mut runs = [0; LANES];
        for (runs, unit) in runs.iter_mut().zip(&self.order[block.clone()]) {
            *runs = units.runs[*unit as usize];
        }
        let shared = self
            .arguments
            .and_then(|arguments| arguments.with_others(&self.order[block.clone()]));
        let mut equal_lanes = match units.equality {
            Equality::Depends => Some(EqualLanes::new(units, &self.order[block.clone()])),
            Equality::Always | Equality::Never => None,
        };
        let mut sums = Sums::default();
        let mut tally = Tally::<LANES>::default();
        let length = length_of(block.start);
        let mut other_length = length;
        for at in block.start..self.order.len() {
            let unit = self.order[at];
            let names = units.names_of(unit);
            if names.len() != other_length {
                tally.add_to(&mut sums, &runs, length + other_length);
                other_length = names.len();
            }
            let same = if at == block.start { 0 } else { self.same[at] };
            let compared = lanes.with(names, same);
            let equal = match (&mut equal_lanes, units.equality) {
                (Some(lanes), _) => lanes.with(units.arguments_of(unit)),
                (None, Equality::Always) => compared.aligned,
                (None, _) => [0; LANES],
            };
            // Each pair once: within the block, a unit is compared with those before it.
            let before = (at - block.start).min(LANES);
            tally.add(units.runs[unit as usize], &compared, &equal, &runs, before);
            let shared = shared.as_ref().and_then(|shared| shared.with(unit));
            let shared = shared.unwrap_or_default().iter().take(before);
            for (equal, aligned) in shared.zip(&compared.aligned) {
                tally.add_equal(*equal, *aligned);
            }
        }
        tally.add_to(&mut sums, &runs, length + other_length);
        sums
    }
}

/// The sums over the pairs of a block with other units of one length.
struct Tally<const LANES: usize> {
    /// The number of runs of the other units, for each lane.
    others: [u64; LANES],
    /// The lengths of common subsequences.
    common: [u64; LANES],
    /// The pairs of which all aligned calls have equal arguments, or that have none.
    all_equal: [u64; LANES],
    /// The equal arguments of all other pairs, by the number of aligned calls.
    equal: Vec<u128>,
}

impl<const LANES: usize> Default for Tally<LANES> {
    fn default() -> Self {
        Self {
            others: [0; LANES],
            common: [0; LANES],
            all_equal: [0; LANES],
            equal: Vec::new(),
        }
    }
}

impl<const LANES: usize> Tally<LANES> {
    /// Adds a unit with this number of runs, compared with the first `before` lanes.
    #[inline]
    fn add(
        &mut self,
        other: u64,
        compared: &Compared<LANES>,
        equal: &[u32; LANES],
        runs: &[u64; LANES],
        before: usize,
    ) {
        let mut some_equal = false;
        // Lanes after the first ones count 0 times, so that all lanes are worked on alike.
        let mut weights = [other; LANES];
        if before < LANES {
            weights[before..].fill(0);
        }
        for lane in 0..LANES {
            let weight = weights[lane];
            self.others[lane] += weight;
            self.common[lane] += u64::from(compared.common[lane]) * weight;
            let all_equal = compared.aligned[lane] == equal[lane];
            self.all_equal[lane] += if all_equal { weight } else { 0 };
            some_equal |= !all_equal & (equal[lane] != 0);
        }
        if some_equal {
            for lane in 0..before {
                if compared.aligned[lane] != equal[lane] {
                    let equal = u64::from(equal[lane]) * other * runs[lane];
                    self.add_equal(equal, compared.aligned[lane]);
                }
            }
        }
    }

    /// Adds equal arguments of pairs with this number of aligned calls.
    fn add_equal(&mut self, equal: u64, aligned: u32) {
        if equal > 0 {
            let aligned = aligned as usize;
            if self.equal.len() <= aligned {
                self.equal.resize(aligned + 1, 0);
            }
            self.equal[aligned] += u128::from(equal);
        }
    }

    /// Adds the sums over all pairs, and begins again.
    fn add_to(&mut self, sums: &mut Sums, runs: &[u64; LANES], lengths: usize) {
        let over_lanes = |counts: &[u64; LANES]| -> u128 {
            let each = counts.iter().zip(runs);
            each.map(|(count, runs)| u128::from(*count) * u128::from(*runs))
                .sum()
        };
        let pairs = over_lanes(&self.others);
        sums.similarities
            .add(2 * over_lanes(&self.common), lengths, pairs);
        sums.consistencies
            .add(over_lanes(&self.all_equal), 1, pairs);
        for (aligned, equal) in self.equal.iter().enumerate() {
            if *equal > 0 {
                sums.consistencies.add_numerators(*equal, aligned);
            }
        }
        *self = Self::default();
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

    /// Adds pairs of equal runs.
    fn add_equal_pairs(&mut self, pairs: u128) {
        self.similarities.add(pairs, 1, pairs);
        self.consistencies.add(pairs, 1, pairs);
    }

    /// Adds the pairs of different members of each unit.
    fn add_pairs_of_units(&mut self, units: &Units) {
        for (unit, pairs) in (0..).zip(&units.pairs) {
            let (common, equal) = units.shared_calls(unit);
            let length = units.names_of(unit).len();
            // All of them have calls: without any, members are equal.
            self.similarities
                .add(common as u128 * pairs, length.max(1), *pairs);
            self.consistencies
                .add_pairs(equal as u128 * pairs, common, *pairs);
        }
    }

    /// Adds the pairs of runs of each group.
    fn add_pairs_of_groups(&mut self, groups: &Groups, arguments: &SharedArguments) {
        let each = groups.names.iter().zip(&groups.runs);
        for ((names, runs), equal) in each.zip(&arguments.within) {
            let pairs = pairs(*runs);
            self.similarities.add(pairs, 1, pairs);
            self.consistencies.add_pairs(*equal, names.len(), pairs);
        }
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
