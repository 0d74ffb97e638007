//! Bytes for each run, in little memory.

use std::borrow::Cow;

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use mcptest_numbers::varint;

/// A segment of this size is compressed. In tests it is small.
const SEGMENT: usize = if cfg!(test) { 1 << 10 } else { 64 << 10 };
/// The size of the rows that are sorted at a time, if they are out of order.
const BATCH: usize = SEGMENT * 64;

/// Rows of bytes, in the order of the runs' indexes. Rows of one run keep their order.
///
/// They are kept in segments that are compressed when they are full, so a short row takes one to
/// three bytes.
#[derive(Debug, Clone, Default)]
pub struct PackedRuns {
    full: Vec<Segment>,
    open: Segment,
    rows: u64,
}

/// Rows that follow each other. Each is the distance from the index before it, its size, and its
/// bytes.
#[derive(Debug, Clone, Default)]
struct Segment {
    first: u64,
    last: u64,
    /// True if an index is lower than the one before it.
    unsorted: bool,
    packed: bool,
    bytes: Vec<u8>,
}

impl Segment {
    fn push(&mut self, index: u64, row: &[u8]) {
        if self.bytes.is_empty() {
            self.first = index;
            self.last = index;
        }
        self.unsorted |= index < self.last;
        varint::write_distance(self.last, index, &mut self.bytes);
        self.last = index;
        varint::write(row.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(row);
    }

    /// Adds the rows of another segment that is not packed.
    fn append(&mut self, other: &Self) {
        other.for_each(&mut |index, row| self.push(index, row));
    }

    fn pack(&mut self) {
        self.bytes = compress_prepend_size(&self.bytes);
        self.bytes.shrink_to_fit();
        self.packed = true;
    }

    fn unpacked(&self) -> Cow<'_, [u8]> {
        if self.packed {
            // The bytes are those that `pack` wrote.
            Cow::Owned(decompress_size_prepended(&self.bytes).unwrap_or_default())
        } else {
            Cow::Borrowed(self.bytes.as_slice())
        }
    }

    fn for_each(&self, row: &mut dyn FnMut(u64, &[u8])) {
        let bytes = self.unpacked();
        let (mut rest, mut index) = (bytes.as_ref(), self.first);
        while let Some((next, bytes)) = next_row(index, &mut rest) {
            index = next;
            row(index, bytes);
        }
    }
}

/// Takes a row from the beginning of some bytes. `before` is the index of the row before it.
fn next_row<'a>(before: u64, bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let index = varint::read_distance(before, bytes)?;
    let size = usize::try_from(varint::read(bytes)?).ok()?;
    let (row, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    Some((index, row))
}

impl PackedRuns {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Returns true if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The memory that the rows take, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let bytes: usize = self
            .segments()
            .map(|segment| segment.bytes.capacity())
            .sum();
        bytes + self.full.capacity() * size_of::<Segment>()
    }

    /// The index of the row that was added last, unless rows were merged.
    #[must_use]
    pub fn last_index(&self) -> Option<u64> {
        let last = if self.open.bytes.is_empty() {
            self.full.last()
        } else {
            Some(&self.open)
        };
        last.map(|segment| segment.last)
    }

    /// Adds a row.
    pub fn push(&mut self, index: u64, row: &[u8]) {
        self.rows += 1;
        self.open.push(index, row);
        self.seal_if_full();
    }

    fn seal_if_full(&mut self) {
        if self.open.bytes.len() >= SEGMENT {
            self.seal();
        }
    }

    fn seal(&mut self) {
        if !self.open.bytes.is_empty() {
            let mut full = std::mem::take(&mut self.open);
            full.pack();
            self.full.push(full);
        }
    }

    /// Adds the rows of other runs.
    pub fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        if !other.full.is_empty() {
            self.seal();
            self.full.extend(other.full);
        }
        if self.open.bytes.is_empty() {
            self.open = other.open;
        } else {
            self.open.append(&other.open);
            self.seal_if_full();
        }
    }

    /// Gives every run another index. The order of the runs must stay the same.
    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        for segment in self.full.iter_mut().chain([&mut self.open]) {
            let mut renumbered = Segment::default();
            segment.for_each(&mut |index, row| renumbered.push(number(index), row));
            if segment.packed {
                renumbered.pack();
            }
            *segment = renumbered;
        }
    }

    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.full.iter().chain([&self.open])
    }

    /// Returns true if the rows were added in the order of their indexes.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        let filled = || self.segments().filter(|segment| !segment.bytes.is_empty());
        filled().all(|segment| !segment.unsorted)
            && filled()
                .zip(filled().skip(1))
                .all(|(one, next)| one.last <= next.first)
    }

    /// The rows one by one, in the order in which they were added.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            segments: self.full.iter().chain(std::slice::from_ref(&self.open)),
            bytes: Cow::Borrowed(&[]),
            at: 0,
            index: 0,
        }
    }

    /// Calls a function with the index and the bytes of each row, in order.
    pub fn for_each(&self, row: &mut dyn FnMut(u64, &[u8])) {
        if self.is_sorted() {
            self.segments().for_each(|segment| segment.for_each(row));
            return;
        }
        let mut sizes: Vec<(u64, usize)> = Vec::new();
        for segment in self.segments() {
            segment.for_each(&mut |index, row| sizes.push((index, row.len())));
        }
        sizes.sort_unstable();
        let mut sizes = sizes.into_iter().peekable();
        while let Some((first, mut size)) = sizes.next() {
            let mut last = first;
            while let Some((index, more)) =
                sizes.next_if(|(index, more)| *index == last || size + more <= BATCH)
            {
                (last, size) = (index, size + more);
            }
            let mut batch: Vec<(u64, Vec<u8>)> = Vec::new();
            for segment in self.segments() {
                segment.for_each(&mut |index, row| {
                    if (first..=last).contains(&index) {
                        batch.push((index, row.to_vec()));
                    }
                });
            }
            batch.sort_by_key(|(index, _)| *index);
            batch.iter().for_each(|(index, bytes)| row(*index, bytes));
        }
    }
}

/// A position in rows, which moves forward.
#[derive(Debug)]
pub struct Cursor<'a> {
    segments: std::iter::Chain<std::slice::Iter<'a, Segment>, std::slice::Iter<'a, Segment>>,
    /// The rows of a segment, and the place of the next one.
    bytes: Cow<'a, [u8]>,
    at: usize,
    /// The index of the row before it.
    index: u64,
}

impl Cursor<'_> {
    /// The index and the bytes of the next row.
    #[expect(
        clippy::should_implement_trait,
        reason = "the bytes borrow from the cursor"
    )]
    pub fn next(&mut self) -> Option<(u64, &[u8])> {
        while self.at == self.bytes.len() {
            let segment = self.segments.next()?;
            self.bytes = segment.unpacked();
            self.at = 0;
            self.index = segment.first;
        }
        let mut rest = &self.bytes[self.at..];
        let (index, row) = next_row(self.index, &mut rest)?;
        self.index = index;
        self.at = self.bytes.len() - rest.len();
        Some((index, row))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn segments_and_batches_do_not_show(
            indexes in prop::collection::vec(any::<u64>(), 0..60),
            parts in 1..4_usize,
        ) {
            // Rows that are large enough for several segments and batches.
            let row = vec![b'x'; BATCH / 20];
            let mut tables: Vec<PackedRuns> = vec![PackedRuns::default(); parts];
            for (at, index) in indexes.iter().enumerate() {
                tables[at % parts].push(*index, &row);
            }
            let mut all = PackedRuns::default();
            tables.into_iter().for_each(|table| all.merge(table));
            prop_assert_eq!(all.len(), indexes.len() as u64);
            let mut found = Vec::new();
            all.for_each(&mut |index, text| {
                assert_eq!(text, row);
                found.push(index);
            });
            let (mut cursor, mut read) = (all.cursor(), Vec::new());
            while let Some((index, text)) = cursor.next() {
                prop_assert_eq!(text, &row);
                read.push(index);
            }
            let is_sorted = read.is_sorted();
            prop_assert_eq!(all.is_sorted(), is_sorted);
            read.sort_unstable();
            let mut sorted = indexes;
            sorted.sort_unstable();
            prop_assert_eq!(found, sorted.as_slice());
            prop_assert_eq!(read, sorted);
        }
    }
}
