//! The number of equal arguments of one unit and each of several others.

use super::argument_numbers::ALONE;
use super::units::Units;

/// The arguments of several units, one unit per lane, to be compared with those of another unit.
pub(super) struct EqualLanes<const LANES: usize> {
    /// For each number of arguments its row, 0 for those that no lane has.
    rows_of: Vec<u32>,
    /// For each lane, 1 if it has the arguments.
    rows: Vec<[u32; LANES]>,
}

impl<const LANES: usize> EqualLanes<LANES> {
    /// Indexes the arguments of up to `LANES` units.
    pub fn new(units: &Units, lanes: &[u32]) -> Self {
        let mut rows_of = vec![0; units.arguments];
        let mut rows = vec![[0; LANES]];
        for (lane, unit) in lanes.iter().enumerate().take(LANES) {
            for number in units.arguments_of(*unit) {
                if *number == ALONE {
                    continue;
                }
                let row = &mut rows_of[*number as usize];
                if *row == 0 {
                    // There are fewer rows than numbers.
                    *row = u32::try_from(rows.len()).unwrap_or(u32::MAX);
                    rows.push([0; LANES]);
                }
                rows[*row as usize][lane] = 1;
            }
        }
        Self { rows_of, rows }
    }

    /// The number of equal arguments of each lane with those of another unit. Numbers belong to a
    /// position, so equal ones are at the same position.
    #[inline]
    pub fn with(&self, arguments: &[u32]) -> [u32; LANES] {
        let mut equal = [0; LANES];
        for number in arguments {
            let row = self.rows_of[*number as usize];
            if row != 0 {
                let row = &self.rows[row as usize];
                equal
                    .iter_mut()
                    .zip(row)
                    .for_each(|(equal, more)| *equal += more);
            }
        }
        equal
    }
}
