//! Arguments as numbers, which are faster to compare than fingerprints.

use super::groups::{Groups, Members};
use crate::digest::Digest;

/// A name, or an argument, that no other member has. It matches nothing.
pub(super) const ALONE: u32 = 0;

/// The equality of arguments where two members have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Equality {
    /// They are always equal.
    Always,
    /// They never are.
    Never,
    /// It depends on the pair.
    Depends,
}

/// The arguments of members as numbers: two members have the same number at a position if they have
/// the same name and equal arguments there.
pub(super) struct ArgumentNumbers {
    numbers: Vec<u32>,
    /// The end of each member in `numbers`.
    ends: Vec<usize>,
    /// Numbers are below this.
    pub count: usize,
    pub equality: Equality,
}

impl ArgumentNumbers {
    pub fn of(members: &Members<'_>, groups: &Groups) -> Self {
        let names_of = |member: usize| groups.names.get(members.group[member]);
        let mut ends = Vec::with_capacity(members.len());
        let mut end = 0;
        for member in 0..members.len() {
            end += names_of(member).len();
            ends.push(end);
        }
        let mut found = Self {
            numbers: vec![ALONE; end],
            ends,
            count: 1,
            equality: Equality::Depends,
        };
        let (mut always, mut never) = (true, true);
        let longest = (0..members.len()).map(|member| names_of(member).len());
        let longest = longest.max().unwrap_or(0);
        let mut calls: Vec<(u32, Digest, usize)> = Vec::new();
        for position in 0..longest {
            calls.clear();
            calls.extend((0..members.len()).filter_map(|member| {
                let name = names_of(member).get(position)?;
                let digest = members.arguments[member].get(position)?;
                Some((*name, *digest, member))
            }));
            calls.sort_unstable();
            for equal in calls.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
                if equal.len() < 2 {
                    continue;
                }
                never = false;
                for (.., member) in equal {
                    let start = member.checked_sub(1).map_or(0, |before| found.ends[before]);
                    // More than four billion do not fit into memory.
                    found.numbers[start + position] =
                        u32::try_from(found.count).unwrap_or(u32::MAX);
                }
                found.count += 1;
            }
            let next_differs =
                |pair: &[(u32, Digest, usize)]| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1;
            always = always && !calls.windows(2).any(next_differs);
        }
        if always {
            found.equality = Equality::Always;
        } else if never {
            found.equality = Equality::Never;
        }
        found
    }

    /// The numbers of a member, call by call; [`ALONE`] for arguments that no other member has.
    pub fn of_member(&self, member: usize) -> &[u32] {
        let start = member.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.numbers[start..self.ends[member]]
    }
}
