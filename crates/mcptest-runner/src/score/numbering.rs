//! The order and the numbers of recorded runs.

use std::ops::Range;
use std::sync::Arc;

use mcptest_numbers::varint;
use mcptest_trace::packed_runs::PackedRuns;
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
/// The highest recorded number in a provisional index, which represents higher ones too.
const MAX_RUN: u64 = NO_RUN - 1;
/// Stands for a run without a number.
const NO_RUN: u64 = (1 << (64 - PART_BITS - PLACE_BITS)) - 1;

/// A provisional index, in the order of the runs as far as it is known: by recorded number, then by
/// position. Recorded numbers beyond 22 bits count as equal; [`ScoredRuns`] knows their order.
pub(super) fn provisional(run: Option<u64>, part: u64, place: u64) -> u64 {
    let run = run.map_or(NO_RUN, |run| run.min(MAX_RUN));
    (run << (PART_BITS + PLACE_BITS)) | (part << PLACE_BITS) | place
}

/// The recorded number in a provisional index; [`MAX_RUN`] if it is that or higher.
fn run_of(key: u64) -> Option<u64> {
    let run = key >> (PART_BITS + PLACE_BITS);
    (run != NO_RUN).then_some(run)
}

/// The part and the place in it of a provisional index.
pub(super) fn part_and_place(key: u64) -> (u64, u64) {
    let part = (key >> PLACE_BITS) & ((1 << PART_BITS) - 1);
    (part, key & ((1 << PLACE_BITS) - 1))
}

/// The runs of a test and a model while they are scored, in little memory.
#[derive(Debug, Clone, Default)]
pub(super) struct RunTable {
    /// Rows by provisional index.
    rows: PackedRuns,
    /// The row that is being written.
    buffer: Vec<u8>,
}

impl RunTable {
    /// Adds a run of which only the place is needed.
    pub fn push_key(&mut self, key: RunKey) {
        self.buffer.clear();
        write_number(key.run, &mut self.buffer);
        self.rows.push(key.key, &self.buffer);
    }

    /// Adds a run.
    pub fn push(&mut self, run: &ScoredRun) {
        self.buffer.clear();
        write_number(run.key.run, &mut self.buffer);
        run.write(&mut self.buffer);
        self.rows.push(run.key.key, &self.buffer);
    }

    /// Adds other runs.
    pub fn merge(&mut self, other: Self) {
        self.rows.merge(other.rows);
    }

    /// The keys of the runs, in the order in which they were added.
    pub fn keys(&self) -> Vec<RunKey> {
        let mut keys = Vec::new();
        each_key(&self.rows, |key| keys.push(key));
        keys
    }

    /// Puts the runs in order and numbers them: by recorded number, if all runs have one and no two
    /// the same; else from 1, by recorded number and position. Also returns the numbers by
    /// provisional index.
    pub fn number(mut self) -> (ScoredRuns, Numbers) {
        self.sort();
        let mut before = None;
        let (mut are_clear, mut are_in_keys) = (true, true);
        each_key(&self.rows, |RunKey { key, run }| {
            are_clear = are_clear && run.is_some() && before < run;
            are_in_keys = are_in_keys && run_of(key) == run && run < Some(MAX_RUN);
            before = run;
        });
        let numbers = if are_clear && are_in_keys {
            Numbers::InKeys
        } else {
            let mut position = 0;
            let mut table = Vec::new();
            each_key(&self.rows, |RunKey { key, run }| {
                position += 1;
                table.push((key, run.filter(|_| are_clear).unwrap_or(position)));
            });
            table.sort_unstable();
            Numbers::Table(table)
        };
        self.rows.renumber(&|key| numbers.of(key));
        (ScoredRuns(self.rows), numbers)
    }

    /// Puts the runs in the order of their recorded numbers, then of their provisional indexes.
    fn sort(&mut self) {
        if self.is_sorted() {
            return;
        }
        let mut sorted = Self::default();
        self.rows
            .for_each(&mut |key, row| sorted.rows.push(key, row));
        if !sorted.is_sorted() {
            // Provisional indexes do not show the order of very high numbers.
            let mut all: Vec<(u64, u64, Vec<u8>)> = Vec::new();
            sorted.rows.for_each(&mut |key, row| {
                let run = read_number(&mut { row });
                all.push((run.unwrap_or(u64::MAX), key, row.to_vec()));
            });
            all.sort();
            sorted = Self::default();
            for (_, key, row) in &all {
                sorted.rows.push(*key, row);
            }
        }
        *self = sorted;
    }

    fn is_sorted(&self) -> bool {
        let mut before = (0, 0);
        let mut is_sorted = true;
        each_key(&self.rows, |RunKey { key, run }| {
            let next = (run.unwrap_or(u64::MAX), key);
            is_sorted = is_sorted && before <= next;
            before = next;
        });
        is_sorted
    }
}

fn each_key(rows: &PackedRuns, mut take: impl FnMut(RunKey)) {
    let mut cursor = rows.cursor();
    while let Some((key, mut row)) = cursor.next() {
        let run = read_number(&mut row);
        take(RunKey { key, run });
    }
}

/// The final numbers of runs, by their provisional indexes.
pub(super) enum Numbers {
    /// The recorded numbers, which provisional indexes contain.
    InKeys,
    /// Provisional indexes with numbers, sorted.
    Table(Vec<(u64, u64)>),
}

impl Numbers {
    /// The number of the run with this provisional index.
    pub fn of(&self, key: u64) -> u64 {
        match self {
            Self::InKeys => run_of(key).unwrap_or(key),
            Self::Table(table) => {
                let found = table.binary_search_by_key(&key, |(key, _)| *key);
                found.map_or(key, |at| table[at].1)
            }
        }
    }
}

/// The scored runs of a test and a model, in order.
#[derive(Debug, Clone, Default)]
pub struct ScoredRuns(PackedRuns);

impl ScoredRuns {
    /// The number of runs.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns true if there is no run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The runs, in order.
    pub fn iter(&self) -> impl Iterator<Item = ScoredRun> {
        let mut cursor = self.0.cursor();
        let mut stop_reason: Option<Arc<str>> = None;
        std::iter::from_fn(move || {
            let (index, mut row) = cursor.next()?;
            let run = read_number(&mut row);
            ScoredRun::read(index, run, row, &mut stop_reason)
        })
    }
}

/// Appends a number that may be absent.
fn write_number(number: Option<u64>, out: &mut Vec<u8>) {
    match number {
        None => varint::write(0, out),
        Some(number) => match number.checked_add(2) {
            Some(next) => varint::write(next, out),
            None => {
                varint::write(1, out);
                varint::write(number, out);
            }
        },
    }
}

fn read_number(row: &mut &[u8]) -> Option<u64> {
    match varint::read(row)? {
        0 => None,
        1 => varint::read(row),
        number => Some(number - 2),
    }
}

impl ScoredRun {
    /// Appends all but the index and the key.
    fn write(&self, out: &mut Vec<u8>) {
        let error = self.error.map_or(0, |kind| kind as u8 + 1);
        out.extend([
            (self.verdict as u8) << 1 | u8::from(self.has_details),
            error,
        ]);
        varint::write(self.calls.into(), out);
        varint::write(self.errors.into(), out);
        write_number(self.tokens, out);
        let reason = self.stop_reason.as_deref();
        write_number(reason.map(|reason| reason.len() as u64), out);
        out.extend_from_slice(reason.unwrap_or_default().as_bytes());
        if let Some(record) = &self.record {
            varint::write(record.start, out);
            varint::write(record.end.saturating_sub(record.start), out);
        }
    }

    /// Reads what [`Self::write`] wrote. `before` is the reason of the run before it.
    fn read(
        index: u64,
        run: Option<u64>,
        mut row: &[u8],
        before: &mut Option<Arc<str>>,
    ) -> Option<Self> {
        let ([flags, error], rest) = row.split_first_chunk()?;
        row = rest;
        let error = usize::from(*error).checked_sub(1);
        let calls = varint::read(&mut row)?;
        let errors = varint::read(&mut row)?;
        let tokens = read_number(&mut row);
        let reason = match read_number(&mut row) {
            None => None,
            Some(size) => {
                let (text, rest) = row.split_at_checked(usize::try_from(size).ok()?)?;
                row = rest;
                Some(std::str::from_utf8(text).ok()?)
            }
        };
        // Most runs have the same one.
        if before.as_deref() != reason {
            *before = reason.map(Into::into);
        }
        let record = varint::read(&mut row).and_then(|start| {
            let size = varint::read(&mut row)?;
            Some(start..start.saturating_add(size))
        });
        Some(Self {
            index,
            verdict: *Verdict::ALL.get(usize::from(flags >> 1))?,
            error: error.and_then(|at| ErrorKind::ALL.get(at).copied()),
            calls: u32::try_from(calls).unwrap_or(u32::MAX),
            errors: u32::try_from(errors).unwrap_or(u32::MAX),
            tokens,
            stop_reason: before.clone(),
            has_details: flags & 1 == 1,
            record,
            key: RunKey { key: index, run },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(run: Option<u64>, part: u64, place: u64) -> ScoredRun {
        let tokens = run.filter(|run| run % 2 == 0);
        ScoredRun {
            index: 0,
            verdict: Verdict::ALL[run.map_or(0, |run| (run % 4) as usize)],
            error: run.filter(|run| run % 3 == 0).map(|_| ErrorKind::NoEnd),
            calls: place as u32,
            errors: part as u32,
            tokens,
            stop_reason: run.map(|run| format!("reason {}", run % 3).into()),
            has_details: place.is_multiple_of(2),
            record: run.map(|run| run / 2..run / 2 + place),
            key: RunKey {
                key: provisional(run, part, place),
                run,
            },
        }
    }

    fn table(runs: &[ScoredRun]) -> RunTable {
        let mut table = RunTable::default();
        runs.iter().for_each(|run| table.push(run));
        table
    }

    fn runs(recorded: &[Option<u64>]) -> Vec<ScoredRun> {
        let places = (0..).zip(recorded);
        places
            .map(|(at, number)| run(*number, at / 3, at % 3))
            .collect()
    }

    fn numbered(recorded: &[Option<u64>]) -> Vec<(u64, Option<u64>)> {
        let (runs, _) = table(&runs(recorded)).number();
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
        assert_eq!(
            numbered(&[Some(u64::MAX), Some(MAX_RUN), Some(0)]),
            [
                (0, Some(0)),
                (MAX_RUN, Some(MAX_RUN)),
                (u64::MAX, Some(u64::MAX))
            ]
        );
    }

    proptest! {
        #[test]
        fn runs_are_in_order_and_complete(
            recorded in prop::collection::vec(
                prop::option::of(prop_oneof![8 => 0..6_u64, 1 => any::<u64>()]),
                0..12,
            ),
            split in 0..12_usize,
        ) {
            let all = runs(&recorded);
            let (first, second) = all.split_at(split.min(all.len()));
            let mut merged = table(second);
            merged.merge(table(first));
            let mut expected = all.clone();
            expected.sort_by_key(|run| run.key.run.unwrap_or(u64::MAX));
            let mut distinct: Vec<_> = recorded.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let are_clear = distinct.len() == all.len() && !recorded.contains(&None);
            let (found, numbers) = merged.number();
            prop_assert_eq!(found.len() as usize, all.len());
            for ((found, mut expected), position) in found.iter().zip(expected).zip(1..) {
                expected.index = match expected.key.run {
                    Some(run) if are_clear => run,
                    _ => position,
                };
                prop_assert_eq!(numbers.of(expected.key.key), expected.index);
                expected.key.key = expected.index;
                prop_assert_eq!(found, expected);
            }
        }
    }
}
