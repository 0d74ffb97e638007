//! The sequences that are compared with each other, each once for all runs that have it.
//!
//! A *member* is a sequence of names with the arguments of its calls. A name or an argument that
//! only one member has never matches anything, so all of these get the same number. Members that
//! are equal after that are one *unit*: comparing two units gives the result of comparing any two
//! of their members.

use super::argument_numbers::{ALONE, ArgumentNumbers, Equality};
use super::groups::{Groups, Members};
use super::lists::Lists;

/// Units, by number.
pub(super) struct Units {
    /// The names of a unit; behind them the numbers of its arguments, if they decide anything.
    lists: Lists<u32>,
    has_arguments: bool,
    /// The number of runs of each unit.
    pub runs: Vec<u64>,
    /// The number of pairs of runs of different members, for each unit.
    pub pairs: Vec<u128>,
    /// Names are below this number.
    pub names: usize,
    /// Numbers of arguments are below this number.
    pub arguments: usize,
    pub equality: Equality,
}

impl Units {
    /// The units of members.
    pub fn of_members(members: &Members<'_>, groups: &Groups) -> Self {
        let numbers = ArgumentNumbers::of(members, groups);
        let names_of = |member: usize| groups.names.get(members.group[member]);
        let shared = shared_names((0..members.len()).map(names_of));
        let mut units = Self {
            lists: Lists::default(),
            has_arguments: numbers.equality == Equality::Depends,
            runs: Vec::new(),
            pairs: Vec::new(),
            names: shared.iter().max().map_or(1, |last| *last as usize + 1),
            arguments: numbers.count,
            equality: numbers.equality,
        };
        for (member, runs) in members.runs.iter().enumerate() {
            let names = names_of(member).iter().map(|name| shared[*name as usize]);
            let unit = if units.has_arguments {
                let arguments = numbers.of_member(member).iter().copied();
                units.lists.number(names.chain(arguments))
            } else {
                units.lists.number(names)
            };
            let unit = unit as usize;
            units.runs.resize(units.lists.len(), 0);
            units.pairs.resize(units.lists.len(), 0);
            units.pairs[unit] += u128::from(units.runs[unit]) * u128::from(*runs);
            units.runs[unit] += runs;
        }
        units
    }

    /// One unit per group, without regard to arguments.
    pub fn of_groups(groups: &Groups) -> Self {
        let mut lists = Lists::default();
        let mut last = ALONE;
        for names in groups.names.iter() {
            last = names.iter().map(|name| name + 1).fold(last, u32::max);
            lists.number(names.iter().map(|name| name + 1));
        }
        Self {
            lists,
            has_arguments: false,
            runs: groups.runs.clone(),
            pairs: vec![0; groups.runs.len()],
            names: last as usize + 1,
            arguments: 0,
            equality: Equality::Never,
        }
    }

    /// The number of units.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// The names of a unit, in the order of the calls.
    pub fn names_of(&self, unit: u32) -> &[u32] {
        let list = self.lists.get(unit);
        &list[..self.call_count(list)]
    }

    /// The numbers of the arguments of a unit's calls; empty if they decide nothing.
    pub fn arguments_of(&self, unit: u32) -> &[u32] {
        let list = self.lists.get(unit);
        &list[self.call_count(list)..]
    }

    /// The number of calls in a list, which has one name for each, and maybe one argument number.
    fn call_count(&self, list: &[u32]) -> usize {
        match self.has_arguments {
            true => list.len() / 2,
            false => list.len(),
        }
    }

    /// The number of calls of a unit whose names other members have, and how many of these have
    /// equal arguments in all members of the unit.
    pub fn shared_calls(&self, unit: u32) -> (usize, usize) {
        let count = |list: &[u32]| list.iter().filter(|number| **number != ALONE).count();
        let names = count(self.names_of(unit));
        let equal = match self.equality {
            Equality::Always => names,
            Equality::Never => 0,
            Equality::Depends => count(self.arguments_of(unit)),
        };
        (names, equal)
    }
}

/// A new number for each name: from 1 for those that several sequences have, else [`ALONE`].
fn shared_names<'a>(sequences: impl Iterator<Item = &'a [u32]>) -> Vec<u32> {
    /// The first sequence with the name, and true if there is another one.
    #[derive(Clone, Copy)]
    struct Found(usize, bool);
    let mut found: Vec<Option<Found>> = Vec::new();
    for (at, names) in sequences.enumerate() {
        for name in names {
            let name = *name as usize;
            if found.len() <= name {
                found.resize(name + 1, None);
            }
            match &mut found[name] {
                Some(Found(first, several)) => *several |= *first != at,
                none => *none = Some(Found(at, false)),
            }
        }
    }
    let mut last = ALONE;
    let number = |found: Option<Found>| match found {
        Some(Found(_, true)) => {
            last += 1;
            last
        }
        _ => ALONE,
    };
    found.into_iter().map(number).collect()
}
