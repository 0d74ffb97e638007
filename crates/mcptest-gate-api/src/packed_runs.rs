//! Bytes for each run, in little memory.

use std::borrow::Cow;

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};

/// A segment of this size is compressed. In tests it is small.
const SEGMENT: usize = if cfg!(test) { 1 << 10 } else { 64 << 10 };
/// The size of the rows that are put in order at a time, if they are out of order.
const BATCH: usize = SEGMENT * 64;

/// Rows of bytes without a line feed, in the order of the runs' indexes. Rows of one run keep their
/// order.
///
/// They are kept in segments that are compressed when they are full, so a short row takes one to
/// three bytes.
#[derive(Debug, Clone, Default)]
pub struct PackedRuns {
    full: Vec<Segment>,
    open: Segment,
    rows: u64,
}

/// Rows that follow each other. Each is the distance from the index before it, its bytes, and a
/// line feed.
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
    fn begin_row(&mut self, index: u64) {
        if self.bytes.is_empty() {
            self.first = index;
            self.last = index;
        }
        self.unsorted |= index < self.last;
        write_distance(self.last, index, &mut self.bytes);
        self.last = index;
    }

    fn push(&mut self, index: u64, text: &[u8]) {
        self.begin_row(index);
        self.bytes.extend_from_slice(text);
        self.bytes.push(b'\n');
    }

    /// Adds the rows of another segment that is not packed.
    fn append(&mut self, other: &Self) {
        other.for_each(&mut |index, text| self.push(index, text));
    }

    fn pack(&mut self) {
        self.bytes = compress_prepend_size(&self.bytes);
        self.bytes.shrink_to_fit();
        self.packed = true;
    }

    fn for_each(&self, row: &mut dyn FnMut(u64, &[u8])) {
        let bytes = if self.packed {
            // The bytes are those that `pack` wrote.
            Cow::Owned(decompress_size_prepended(&self.bytes).unwrap_or_default())
        } else {
            Cow::Borrowed(self.bytes.as_slice())
        };
        let (mut rest, mut index) = (bytes.as_ref(), self.first);
        while let Some(next) = read_distance(index, &mut rest) {
            index = next;
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            row(index, &rest[..end]);
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
}

/// Writes a signed distance, seven bits at a time, the lowest first.
fn write_distance(from: u64, to: u64, out: &mut Vec<u8>) {
    let distance = to.wrapping_sub(from).cast_signed();
    let mut zigzag = ((distance << 1) ^ (distance >> 63)).cast_unsigned();
    while zigzag >= 0x80 {
        out.push((zigzag & 0x7f) as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

fn read_distance(from: u64, bytes: &mut &[u8]) -> Option<u64> {
    let (mut zigzag, mut shift) = (0_u64, 0_u32);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        zigzag |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let distance = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
    Some(from.wrapping_add(distance))
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

    /// Adds a row, which `write` appends. It must not have a line feed.
    pub fn push(&mut self, index: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.rows += 1;
        self.open.begin_row(index);
        write(&mut self.open.bytes);
        self.open.bytes.push(b'\n');
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
            segment.for_each(&mut |index, text| renumbered.push(number(index), text));
            if segment.packed {
                renumbered.pack();
            }
            *segment = renumbered;
        }
    }

    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.full.iter().chain([&self.open])
    }

    fn is_sorted(&self) -> bool {
        let filled = || self.segments().filter(|segment| !segment.bytes.is_empty());
        filled().all(|segment| !segment.unsorted)
            && filled()
                .zip(filled().skip(1))
                .all(|(one, next)| one.last <= next.first)
    }

    /// Calls a function with the index and the bytes of each row, in order.
    pub fn for_each(&self, row: &mut dyn FnMut(u64, &[u8])) {
        if self.is_sorted() {
            self.segments().for_each(|segment| segment.for_each(row));
            return;
        }
        let mut sizes: Vec<(u64, usize)> = Vec::new();
        for segment in self.segments() {
            segment.for_each(&mut |index, text| sizes.push((index, text.len())));
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
                segment.for_each(&mut |index, text| {
                    if (first..=last).contains(&index) {
                        batch.push((index, text.to_vec()));
                    }
                });
            }
            batch.sort_by_key(|(index, _)| *index);
            batch.iter().for_each(|(index, text)| row(*index, text));
        }
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
                tables[at % parts].push(*index, |out| out.extend_from_slice(&row));
            }
            let mut all = PackedRuns::default();
            tables.into_iter().for_each(|table| all.merge(table));
            prop_assert_eq!(all.len(), indexes.len() as u64);
            let mut found = Vec::new();
            all.for_each(&mut |index, text| {
                assert_eq!(text, row);
                found.push(index);
            });
            let mut sorted = indexes;
            sorted.sort_unstable();
            prop_assert_eq!(found, sorted);
        }
    }
}
