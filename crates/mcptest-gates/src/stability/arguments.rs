//! Arguments that runs of different groups share.

use std::collections::HashMap;

use super::groups::Groups;
use super::sequences::StabilityAccumulator;
use crate::digest::Digest;

/// Equal arguments at the same position of calls of the same name.
pub(super) struct SharedArguments {
    /// For each group, the number of equal arguments over all pairs of its runs.
    pub within: Vec<u128>,
    /// Arguments that several groups have: for each, the groups and the number of their runs.
    shared: Vec<(u32, u64)>,
    /// The end of each of these in `shared`.
    ends: Vec<usize>,
    /// For each group, the arguments that it shares, by number.
    of_group: Vec<Vec<u32>>,
}

/// The equal arguments of some groups with other groups, over all pairs of runs.
pub(super) enum EqualArguments {
    /// By group, if few share arguments.
    Sparse(HashMap<u32, Vec<u64>>),
    /// A row for every group.
    Dense { counts: Vec<u64>, width: usize },
}

impl EqualArguments {
    /// The counts of a group with each of the given ones; `None` if all are 0.
    pub fn with(&self, group: u32) -> Option<&[u64]> {
        match self {
            Self::Sparse(rows) => rows.get(&group).map(Vec::as_slice),
            Self::Dense { counts, width } => {
                let start = group as usize * width;
                counts.get(start..start + width)
            }
        }
    }

    fn row(&mut self, group: u32, width: usize) -> &mut [u64] {
        match self {
            Self::Sparse(rows) => rows.entry(group).or_insert_with(|| vec![0; width]),
            Self::Dense { counts, width } => {
                let start = group as usize * *width;
                &mut counts[start..start + *width]
            }
        }
    }
}

impl SharedArguments {
    pub fn of(accumulator: &StabilityAccumulator, groups: &Groups) -> Self {
        let mut found = Self {
            within: vec![0; groups.names.len()],
            shared: Vec::new(),
            ends: Vec::new(),
            of_group: vec![Vec::new(); groups.names.len()],
        };
        let longest = groups.names.iter().map(<[u32]>::len).max().unwrap_or(0);
        let mut calls: Vec<(u32, Digest, u32)> = Vec::new();
        for position in 0..longest {
            calls.clear();
            let runs = accumulator.runs.iter().zip(&groups.of_run);
            calls.extend(runs.filter_map(|(run, group)| {
                let name = groups.names.get(*group).get(position)?;
                let digest = accumulator.arguments(run).get(position)?;
                Some((*name, *digest, *group))
            }));
            calls.sort_unstable();
            for equal in calls.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
                found.add(equal);
            }
        }
        found
    }

    /// Adds the calls that have one name and equal arguments.
    fn add(&mut self, equal: &[(u32, Digest, u32)]) {
        let (Some(first), Some(last)) = (equal.first(), equal.last()) else {
            return;
        };
        let is_shared = first.2 != last.2;
        // Four billion lists do not fit into memory.
        let number = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        for of_group in equal.chunk_by(|one, other| one.2 == other.2) {
            let (group, runs) = (of_group[0].2, of_group.len() as u64);
            self.within[group as usize] += u128::from(runs) * u128::from(runs - 1) / 2;
            if is_shared {
                self.shared.push((group, runs));
                self.of_group[group as usize].push(number);
            }
        }
        if is_shared {
            self.ends.push(self.shared.len());
        }
    }

    /// The equal arguments of some groups with every group that shares some, in the order of the
    /// given groups. `None` if there are none.
    pub fn with_others(&self, groups: &[u32]) -> Option<EqualArguments> {
        let numbers = |group: &u32| self.of_group[*group as usize].iter();
        let all = groups.iter().flat_map(numbers);
        let size: usize = all.map(|number| self.members(*number).len()).sum();
        let width = groups.len();
        let mut equal = match size {
            0 => return None,
            few if few < self.of_group.len() => EqualArguments::Sparse(HashMap::new()),
            _ => EqualArguments::Dense {
                counts: vec![0; self.of_group.len() * width],
                width,
            },
        };
        for (lane, group) in groups.iter().enumerate() {
            for number in numbers(group) {
                let members = self.members(*number);
                let own = members.binary_search_by_key(group, |(member, _)| *member);
                let own = own.map_or(0, |at| members[at].1);
                for (member, runs) in members {
                    equal.row(*member, width)[lane] += own * runs;
                }
            }
        }
        Some(equal)
    }

    fn members(&self, number: u32) -> &[(u32, u64)] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.shared[start..self.ends[number]]
    }
}
