//! The order and the numbers of recorded runs.

use std::ops::Range;
use std::sync::Arc;

use mcptest_trace::verdict::{ErrorKind, Verdict};

/// A scored run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScoredRun {
    /// The number of the run, from 1.
    pub index: u64,
    /// The verdict on the run's own assertions.
    pub verdict: Verdict,
    /// The kind of error of a run that could not be completed.
    pub error: Option<ErrorKind>,
    /// The number of tool calls.
    pub calls: u32,
    /// The number of tool results that are errors.
    pub errors: u32,
    /// The reported total of tokens.
    pub tokens: Option<u64>,
    /// The recorded reason why the agent stopped.
    pub stop_reason: Option<Arc<str>>,
    /// True if there is an error, or an assertion that failed or was skipped.
    pub has_details: bool,
    /// The place of the record in the store, if it was stored.
    pub record: Option<Range<u64>>,
    /// The provisional index and the recorded number.
    pub(super) key: RunKey,
}

/// The place of a run among those of its test and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunKey {
    /// The provisional index.
    pub key: u64,
    /// The recorded number.
    pub run: Option<u64>,
}

/// The bits of a provisional index that have the place in a part of a file, and the part.
const PLACE_BITS: u32 = 20;
const PART_BITS: u32 = 22;

/// A provisional index, in the order of the runs as far as it is known: by recorded number, then by
/// position. Recorded numbers beyond 22 bits count as equal; [`number`] knows their order.
pub(super) fn provisional(run: Option<u64>, part: u64, place: u64) -> u64 {
    let most = (1 << (64 - PART_BITS - PLACE_BITS)) - 1;
    let run = run.map_or(most, |run| run.min(most - 1));
    (run << (PART_BITS + PLACE_BITS)) | (part << PLACE_BITS) | place
}

/// The part and the place in it of a provisional index.
pub(super) fn part_and_place(key: u64) -> (u64, u64) {
    let part = (key >> PLACE_BITS) & ((1 << PART_BITS) - 1);
    (part, key & ((1 << PLACE_BITS) - 1))
}

/// Puts the runs of a test and a model in order and numbers them: by recorded number, if all runs
/// have one and no two the same; else from 1, by recorded number and position.
pub(super) fn number(runs: &mut [ScoredRun]) {
    // Stable, so that runs without a number, or with the same one, stay in file order.
    runs.sort_by_key(|run| run.key.run.unwrap_or(u64::MAX));
    let clear = are_clear(runs.iter().map(|run| run.key.run));
    for (run, position) in runs.iter_mut().zip(1..) {
        run.index = run.key.run.filter(|_| clear).unwrap_or(position);
    }
}

/// The provisional and the final index of runs of which only the keys are known.
pub(super) fn number_keys(mut runs: Vec<RunKey>) -> Vec<(u64, u64)> {
    runs.sort_by_key(|run| run.run.unwrap_or(u64::MAX));
    let clear = are_clear(runs.iter().map(|run| run.run));
    let index = |run: &RunKey, position| run.run.filter(|_| clear).unwrap_or(position);
    (1..)
        .zip(&runs)
        .map(|(position, run)| (run.key, index(run, position)))
        .collect()
}

/// Returns true if all runs, in order, have a number, and no two the same.
fn are_clear(runs: impl Iterator<Item = Option<u64>> + Clone) -> bool {
    runs.clone().all(|run| run.is_some()) && runs.is_sorted_by(|one, next| one < next)
}

/// The function from provisional indexes to those of numbered runs.
pub(super) fn numbers(runs: &[ScoredRun]) -> impl Fn(u64) -> u64 + use<> {
    lookup(runs.iter().map(|run| (run.key.key, run.index)).collect())
}

/// The function with these values.
pub(super) fn lookup(mut indexes: Vec<(u64, u64)>) -> impl Fn(u64) -> u64 {
    indexes.sort_unstable();
    move |key| {
        let found = indexes.binary_search_by_key(&key, |(key, _)| *key);
        found.map_or(key, |at| indexes[at].1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn runs(recorded: &[Option<u64>]) -> Vec<ScoredRun> {
        let run = |(place, run): (u64, &Option<u64>)| ScoredRun {
            index: 0,
            verdict: Verdict::Pass,
            error: None,
            calls: 0,
            errors: 0,
            tokens: None,
            stop_reason: None,
            has_details: false,
            record: None,
            key: RunKey {
                key: provisional(*run, place / 3, place % 3),
                run: *run,
            },
        };
        (0..).zip(recorded).map(run).collect()
    }

    fn numbered(recorded: &[Option<u64>]) -> Vec<(u64, Option<u64>)> {
        let mut runs = runs(recorded);
        number(&mut runs);
        runs.iter().map(|run| (run.index, run.key.run)).collect()
    }

    #[test]
    fn runs_go_by_their_number_else_by_file_order() {
        assert_eq!(numbered(&[Some(3), Some(1)]), [(1, Some(1)), (3, Some(3))]);
        assert_eq!(numbered(&[None, None]), [(1, None), (2, None)]);
        assert_eq!(
            numbered(&[Some(2), Some(2), Some(1)]),
            [(1, Some(1)), (2, Some(2)), (3, Some(2))]
        );
        assert_eq!(numbered(&[None, Some(5)]), [(1, Some(5)), (2, None)]);
    }

    proptest! {
        #[test]
        fn provisional_indexes_are_in_the_final_order(
            recorded in prop::collection::vec(prop::option::of(0..6_u64), 0..12),
        ) {
            let mut runs = runs(&recorded);
            number(&mut runs);
            prop_assert!(runs.is_sorted_by_key(|run| run.key.key));
            let number = numbers(&runs);
            let keys = lookup(number_keys(runs.iter().rev().map(|run| run.key).collect()));
            for run in &runs {
                prop_assert_eq!(number(run.key.key), run.index);
                // Runs of the same number keep the order in which they come.
                if recorded.iter().filter(|it| **it == run.key.run).count() == 1 {
                    prop_assert_eq!(keys(run.key.key), run.index);
                }
            }
        }

        #[test]
        fn huge_numbers_keep_their_order(mut recorded in prop::collection::vec(any::<u64>(), 0..9)) {
            let all: Vec<Option<u64>> = recorded.iter().copied().map(Some).collect();
            let numbered: Vec<u64> = numbered(&all).iter().filter_map(|(_, run)| *run).collect();
            recorded.sort_unstable();
            prop_assert_eq!(numbered, recorded);
        }
    }
}
