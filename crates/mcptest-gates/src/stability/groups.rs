//! Runs with the same sequence of names.

use std::collections::BTreeMap;

use super::lists::Lists;
use super::sequences::StabilityAccumulator;
use crate::digest::Digest;

/// The groups of runs with the same sequence of names, and the sequences.
pub(super) struct Groups {
    pub names: Lists<u32>,
    /// The number of runs of each group.
    pub runs: Vec<u64>,
    /// The group of each run, in the order of the runs.
    pub of_run: Vec<u32>,
}

impl Groups {
    pub fn of(accumulator: &StabilityAccumulator) -> Self {
        let name_of = accumulator.names();
        let mut groups = Self {
            names: Lists::default(),
            runs: Vec::new(),
            of_run: Vec::with_capacity(accumulator.runs.len()),
        };
        let mut of_sequence: Vec<Option<u32>> = vec![None; accumulator.sequence_count()];
        for run in &accumulator.runs {
            let Some(known) = of_sequence.get_mut(run.sequence as usize) else {
                continue;
            };
            let group = *known.get_or_insert_with(|| {
                let tools = accumulator.sequence(run).iter();
                let names = tools.filter_map(|tool| name_of.get(*tool as usize).copied());
                groups.names.number(names)
            });
            groups.of_run.push(group);
            groups.runs.resize(groups.names.len(), 0);
            groups.runs[group as usize] += 1;
        }
        groups
    }

    /// The number of pairs of runs in different groups, and how many of these part at the first or
    /// second call.
    pub fn diverging_pairs(&self) -> (u128, u128) {
        let all: u64 = self.runs.iter().sum();
        let alike: u128 = self.runs.iter().map(|runs| pairs(*runs)).sum();
        // Pairs that begin with the same two names part later, if at all.
        let mut beginnings: BTreeMap<&[u32], (u64, u128)> = BTreeMap::new();
        for (names, runs) in self.names.iter().zip(&self.runs) {
            if let Some(beginning) = names.get(..2) {
                let (all, alike) = beginnings.entry(beginning).or_default();
                *all += runs;
                *alike += pairs(*runs);
            }
        }
        let beginnings = beginnings.into_values();
        let late: u128 = beginnings.map(|(all, alike)| pairs(all) - alike).sum();
        let diverging = pairs(all) - alike;
        (diverging, diverging - late)
    }
}

/// The number of pairs among some runs.
pub(super) fn pairs(runs: u64) -> u128 {
    let runs = u128::from(runs);
    runs * runs.saturating_sub(1) / 2
}

/// The runs of a group with the same arguments at every call.
pub(super) struct Members<'a> {
    /// The group of each member.
    pub group: Vec<u32>,
    /// The fingerprints of its arguments, call by call.
    pub arguments: Vec<&'a [Digest]>,
    /// The number of its runs.
    pub runs: Vec<u64>,
}

impl<'a> Members<'a> {
    pub fn of(accumulator: &'a StabilityAccumulator, groups: &Groups) -> Self {
        let runs = accumulator.runs.iter().zip(&groups.of_run);
        let mut keys: Vec<(u32, u32)> = runs.map(|(run, group)| (*group, run.arguments)).collect();
        keys.sort_unstable();
        let mut members = Self {
            group: Vec::new(),
            arguments: Vec::new(),
            runs: Vec::new(),
        };
        for same in keys.chunk_by(PartialEq::eq) {
            let (group, arguments) = same[0];
            members.group.push(group);
            members.arguments.push(accumulator.argument_list(arguments));
            members.runs.push(same.len() as u64);
        }
        members
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.runs.len()
    }
}
