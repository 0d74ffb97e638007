//! The lengths of longest common subsequences, for many pairs of sequences.
//!
//! A row of the usual table is kept as bits, one for each position of the first sequence, in which
//! each step is 0 or 1 (Hyyrö 2004). One symbol of the second sequence changes all positions with
//! an addition and three bitwise operations. Several first sequences are compared with one second
//! sequence together, each in a separate lane, which the compiler turns into vector instructions.
//! The rows after each symbol are kept, so a second sequence that begins as the one before it
//! continues from there.

use super::argument_numbers::ALONE;

/// The bits of one first sequence.
pub(super) trait Word: Copy {
    /// The number of positions.
    const BITS: usize;
    /// No position.
    const NONE: Self;
    /// All positions.
    const ALL: Self;
    /// The word with one more position.
    fn with(self, position: usize) -> Self;
    /// The row after a symbol that is at these positions.
    fn step(self, positions: Self) -> Self;
    /// The word as a count, plus 1 if a position is set in another word.
    fn plus_bit(self, other: Self, position: usize) -> Self;
    /// The word as a count.
    fn count(self) -> u32;
    /// The number of positions that are not set.
    fn zeros(self) -> u32;
}

macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            const BITS: usize = <$word>::BITS as usize;
            const NONE: Self = 0;
            const ALL: Self = <$word>::MAX;

            #[inline(always)]
            fn with(self, position: usize) -> Self {
                self | (1 << position)
            }

            #[inline(always)]
            fn step(self, positions: Self) -> Self {
                self.wrapping_add(self & positions) | (self & !positions)
            }

            #[inline(always)]
            fn plus_bit(self, other: Self, position: usize) -> Self {
                self + ((other >> position) & 1)
            }

            #[inline(always)]
            fn count(self) -> u32 {
                // A count of positions.
                self as u32
            }

            #[inline(always)]
            fn zeros(self) -> u32 {
                self.count_zeros()
            }
        }
    };
}

word!(u8);
word!(u16);
word!(u32);
word!(u64);

/// The comparison of several first sequences with one second sequence.
pub(super) struct Compared<const LANES: usize> {
    /// The lengths of the longest common subsequences.
    pub common: [u32; LANES],
    /// The number of positions at which both sequences have the same symbol.
    pub aligned: [u32; LANES],
}

/// First sequences that are compared with one second sequence after the other.
pub(super) trait Compare<const LANES: usize> {
    /// Compares with a sequence that begins with the first `same` symbols of the one before it.
    fn with(&mut self, other: &[u32], same: usize) -> Compared<LANES>;
}

/// Up to `LANES` first sequences of up to [`Word::BITS`] symbols.
pub(super) struct Lanes<W, const LANES: usize> {
    /// For each symbol, its positions in each sequence.
    positions: Vec<[W; LANES]>,
    /// The row and the aligned positions before the first symbol of the second sequence, after it,
    /// after the second one, and so on.
    states: Vec<([W; LANES], [W; LANES])>,
}

impl<W: Word, const LANES: usize> Lanes<W, LANES> {
    /// Takes sequences of symbols below `symbols`.
    pub fn new<'a>(symbols: usize, sequences: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut positions = vec![[W::NONE; LANES]; symbols];
        for (lane, sequence) in sequences.enumerate().take(LANES) {
            for (at, symbol) in sequence.iter().enumerate().take(W::BITS) {
                if *symbol != ALONE {
                    let word = &mut positions[*symbol as usize][lane];
                    *word = word.with(at);
                }
            }
        }
        Self {
            positions,
            states: vec![([W::ALL; LANES], [W::NONE; LANES])],
        }
    }
}

impl<W: Word, const LANES: usize> Compare<LANES> for Lanes<W, LANES> {
    #[inline]
    fn with(&mut self, other: &[u32], same: usize) -> Compared<LANES> {
        self.states.truncate(same + 1);
        // There is a state before the first symbol.
        let (mut rows, mut aligned) = self.states[self.states.len() - 1];
        for (at, symbol) in other.iter().enumerate().skip(self.states.len() - 1) {
            let positions = &self.positions[*symbol as usize];
            for (row, positions) in rows.iter_mut().zip(positions) {
                *row = row.step(*positions);
            }
            if at < W::BITS {
                for (aligned, positions) in aligned.iter_mut().zip(positions) {
                    *aligned = aligned.plus_bit(*positions, at);
                }
            }
            self.states.push((rows, aligned));
        }
        Compared {
            // Positions after the end of a sequence stay set.
            common: rows.map(Word::zeros),
            aligned: aligned.map(Word::count),
        }
    }
}

/// One first sequence of any length.
pub(super) struct Long {
    /// For each symbol, its positions, in several words.
    positions: Vec<Vec<u64>>,
    sequence: Vec<u32>,
    row: Vec<u64>,
}

impl Long {
    pub fn new(symbols: usize, sequence: &[u32]) -> Self {
        let words = sequence.len().div_ceil(64);
        let mut positions = vec![Vec::new(); symbols];
        for (at, symbol) in sequence.iter().enumerate() {
            if *symbol != ALONE {
                let positions = &mut positions[*symbol as usize];
                positions.resize(words, 0);
                positions[at / 64] |= 1 << (at % 64);
            }
        }
        Self {
            positions,
            sequence: sequence.to_vec(),
            row: vec![0; words],
        }
    }
}

impl Compare<1> for Long {
    fn with(&mut self, other: &[u32], _: usize) -> Compared<1> {
        self.row.fill(u64::MAX);
        for symbol in other {
            let mut carry = false;
            for (word, positions) in self.row.iter_mut().zip(&self.positions[*symbol as usize]) {
                let matches = *word & positions;
                let (sum, over) = word.overflowing_add(matches);
                let (sum, over_again) = sum.overflowing_add(u64::from(carry));
                carry = over || over_again;
                *word = sum | (*word & !positions);
            }
        }
        let both = self.sequence.iter().zip(other);
        let aligned = both.filter(|(one, other)| one == other && **one != ALONE);
        Compared {
            common: [self.row.iter().map(|word| word.count_zeros()).sum()],
            aligned: [aligned.count() as u32],
        }
    }
}

#[cfg(test)]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sequence(longest: usize) -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(0_u32..5, 0..=longest)
    }

    fn reference(a: &[u32], b: &[u32]) -> (u32, u32) {
        // A symbol that matches nothing differs from itself.
        let a: Vec<u32> = a
            .iter()
            .map(|a| if *a == ALONE { 99 } else { *a })
            .collect();
        let aligned = a.iter().zip(b).filter(|(a, b)| a == b).count();
        (longest_common_subsequence(&a, b) as u32, aligned as u32)
    }

    fn check<W: Word>(sequences: &[Vec<u32>], others: &[Vec<u32>]) {
        let mut lanes: Lanes<W, 4> = Lanes::new(5, sequences.iter().map(Vec::as_slice));
        let mut before: &[u32] = &[];
        for other in others {
            let same = before.iter().zip(other).take_while(|(a, b)| a == b);
            let found = lanes.with(other, same.count());
            for (lane, sequence) in sequences.iter().enumerate() {
                let found = (found.common[lane], found.aligned[lane]);
                assert_eq!(found, reference(sequence, other));
            }
            before = other;
        }
    }

    proptest! {
        #[test]
        fn bits_and_table_find_the_same_length(
            shortest in prop::collection::vec(sequence(8), 0..=4),
            short in prop::collection::vec(sequence(16), 0..=4),
            middle in prop::collection::vec(sequence(32), 0..=4),
            long in prop::collection::vec(sequence(64), 0..=4),
            longest in sequence(150),
            mut others in prop::collection::vec(sequence(6), 0..6),
            other in sequence(150),
        ) {
            others.sort();
            others.push(other);
            check::<u8>(&shortest, &others);
            check::<u16>(&short, &others);
            check::<u32>(&middle, &others);
            check::<u64>(&long, &others);
            let mut lane = Long::new(5, &longest);
            for other in &others {
                let found = lane.with(other, 0);
                prop_assert_eq!((found.common[0], found.aligned[0]), reference(&longest, other));
            }
        }
    }
}
