//! The rows of a test's runs, in little memory: a test may have a million of them.

use mcptest_events::RunTotals;
use mcptest_numbers::varint;
use mcptest_trace::packed_runs::{Cursor, PackedRuns};
use mcptest_trace::verdict::{ErrorKind, Verdict};

use crate::row::{EarlyEnd, RowName, RunRow};
use crate::store::RecordRange;

/// The rows of a test's runs, in order.
#[derive(Debug, Clone, Default)]
pub struct PackedRows {
    rows: PackedRuns,
    /// The end of the last record in its store: most records follow each other.
    end: u64,
    totals: RunTotals,
    /// The number of rows that have nothing to add to a pass.
    plain: u64,
    /// The row that is being written.
    buffer: Vec<u8>,
}

impl PackedRows {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows.len()
    }

    /// Returns true if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The memory that the rows take, in bytes.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.rows.held_bytes()
    }

    /// Sums over all rows.
    #[must_use]
    pub fn totals(&self) -> &RunTotals {
        &self.totals
    }

    /// Returns true if all runs passed without anything to add.
    pub(crate) fn are_plain(&self) -> bool {
        self.plain == self.len()
    }

    /// The rows, in order.
    #[must_use]
    pub fn iter(&self) -> Rows<'_> {
        Rows {
            cursor: self.rows.cursor(),
            end: 0,
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &RunRow) {
        let calls = (row.calls, row.errors);
        self.totals.add(row.verdict, row.error, calls, row.tokens);
        let is_plain = row.verdict == Verdict::Pass && !row.has_details && row.early_end.is_none();
        self.plain += u64::from(is_plain);
        let out = &mut self.buffer;
        out.clear();
        let (name, own) = match &row.name {
            RowName::Label => (0, ""),
            RowName::Numbered => (1, ""),
            RowName::Own(name) => (2, name.as_ref()),
        };
        let flags = (row.verdict as u8) << 5
            | name << 3
            | u8::from(row.tokens.is_some()) << 2
            | u8::from(row.has_details) << 1
            | u8::from(row.headless);
        let error = row.error.map_or(0, |kind| kind as u8 + 1);
        let early_end = row.early_end.map_or(0, |end| end as u8 + 1);
        out.extend([flags, error << 3 | early_end]);
        if let Some(tokens) = row.tokens {
            varint::write(tokens, out);
        }
        varint::write(row.duration, out);
        varint::write(row.calls.into(), out);
        varint::write(row.errors.into(), out);
        varint::write(row.record.len.into(), out);
        varint::write_distance(self.end, row.record.offset, out);
        self.end = row.record.offset.saturating_add(row.record.len.into());
        out.extend_from_slice(own.as_bytes());
        self.rows.push(row.index, out);
    }
}

impl FromIterator<RunRow> for PackedRows {
    fn from_iter<I: IntoIterator<Item = RunRow>>(rows: I) -> Self {
        let mut packed = Self::default();
        rows.into_iter().for_each(|row| packed.push(&row));
        packed.buffer = Vec::new();
        packed
    }
}

impl<'a> IntoIterator for &'a PackedRows {
    type Item = RunRow;
    type IntoIter = Rows<'a>;

    fn into_iter(self) -> Rows<'a> {
        self.iter()
    }
}

/// Rows, one after the other.
#[derive(Debug)]
pub struct Rows<'a> {
    cursor: Cursor<'a>,
    /// The end of the record before.
    end: u64,
}

impl Iterator for Rows<'_> {
    type Item = RunRow;

    fn next(&mut self) -> Option<RunRow> {
        let (index, row) = self.cursor.next()?;
        let row = read(index, self.end, row)?;
        self.end = row.record.offset.saturating_add(row.record.len.into());
        Some(row)
    }
}

/// Reads what [`PackedRows::push`] wrote. `end` is the end of the record before.
fn read(index: u64, end: u64, mut row: &[u8]) -> Option<RunRow> {
    let ([flags, kinds], rest) = row.split_first_chunk()?;
    row = rest;
    let tokens = match flags & 4 {
        0 => None,
        _ => Some(varint::read(&mut row)?),
    };
    let duration = varint::read(&mut row)?;
    let mut count = || u32::try_from(varint::read(&mut row)?).ok();
    let (calls, errors, len) = (count()?, count()?, count()?);
    let offset = varint::read_distance(end, &mut row)?;
    let error = usize::from(kinds >> 3).checked_sub(1);
    let early_end = usize::from(kinds & 7).checked_sub(1);
    Some(RunRow {
        record: RecordRange { offset, len },
        tokens,
        duration,
        index,
        name: match (flags >> 3) & 3 {
            0 => RowName::Label,
            1 => RowName::Numbered,
            _ => RowName::Own(std::str::from_utf8(row).ok()?.into()),
        },
        calls,
        errors,
        verdict: *Verdict::ALL.get(usize::from(flags >> 5))?,
        error: error.and_then(|at| ErrorKind::ALL.get(at).copied()),
        early_end: early_end.and_then(|at| EarlyEnd::ALL.get(at).copied()),
        has_details: flags & 2 != 0,
        headless: flags & 1 != 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row() -> impl Strategy<Value = RunRow> {
        let name = prop_oneof![
            Just(RowName::Label),
            Just(RowName::Numbered),
            "\\PC{0,5}".prop_map(|name| RowName::Own(name.into())),
        ];
        let facts = (
            0..Verdict::ALL.len(),
            prop::option::of(0..ErrorKind::ALL.len()),
            prop::option::of(0..EarlyEnd::ALL.len()),
            any::<(bool, bool)>(),
        );
        let numbers = any::<(u64, Option<u64>, u64, u32, u32)>();
        let record = any::<(u64, u32)>();
        (name, facts, numbers, record).prop_map(|(name, facts, numbers, (offset, len))| {
            let (verdict, error, early_end, (has_details, headless)) = facts;
            let (index, tokens, duration, calls, errors) = numbers;
            RunRow {
                record: RecordRange { offset, len },
                tokens,
                duration,
                index,
                name,
                calls,
                errors,
                verdict: Verdict::ALL[verdict],
                error: error.map(|at| ErrorKind::ALL[at]),
                early_end: early_end.map(|at| EarlyEnd::ALL[at]),
                has_details,
                headless,
            }
        })
    }

    #[test]
    fn numbers_are_places() {
        let is_place = |(at, number): (usize, usize)| at == number;
        let verdicts = Verdict::ALL.iter().map(|it| *it as usize);
        assert!(verdicts.enumerate().all(is_place));
        let kinds = ErrorKind::ALL.iter().map(|it| *it as usize);
        assert!(kinds.enumerate().all(is_place));
        let ends = EarlyEnd::ALL.iter().map(|it| *it as usize);
        assert!(ends.enumerate().all(is_place));
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(rows in prop::collection::vec(row(), 0..20)) {
            let packed: PackedRows = rows.iter().cloned().collect();
            prop_assert_eq!(packed.len(), rows.len() as u64);
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), rows);
        }
    }
}
