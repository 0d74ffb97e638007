//! Capability classes: tools that (almost) every trace uses, and tools that take each other's
//! place.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use mcptest_numbers::percent;

use super::{Run, Supported};

/// Tools of which one is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Class {
    /// The name: that of the most used member.
    pub name: String,
    /// The tools, most used first.
    pub members: Vec<String>,
}

/// The classes that at least `threshold` percent of the runs use, most used first.
///
/// A tool that enough runs use forms a class. Of the others, those that never occur in the
/// same run as another member are alternatives: they are joined, most used first, and kept if the
/// joined class has enough support. What is left stays out: it is not part of the common task.
pub(super) fn classes(runs: &[Run], threshold: u64) -> Vec<Supported<Class>> {
    let mut uses: IndexMap<&str, BTreeSet<usize>> = IndexMap::new();
    for (at, run) in runs.iter().enumerate() {
        for tool in run.tools() {
            uses.entry(tool).or_default().insert(at);
        }
    }
    let mut tools: Vec<(&str, BTreeSet<usize>)> = uses.into_iter().collect();
    // Stable: equally used tools stay in the order of their first calls.
    tools.sort_by_key(|(_, runs)| std::cmp::Reverse(runs.len()));
    let enough = |users: usize| {
        percent::down(users as u64, runs.len() as u64).is_some_and(|share| share >= threshold)
    };
    let (common, mut rest): (Vec<_>, Vec<_>) = tools
        .into_iter()
        .partition(|(_, users)| enough(users.len()));
    let mut classes: Vec<Supported<Class>> = common
        .into_iter()
        .map(|(tool, users)| supported(&[tool], users.len()))
        .collect();
    while !rest.is_empty() {
        let (first, mut users) = rest.remove(0);
        let mut members = vec![first];
        rest.retain(|(tool, more)| {
            let alternative = users.is_disjoint(more);
            if alternative {
                members.push(tool);
                users.extend(more);
            }
            !alternative
        });
        if enough(users.len()) {
            classes.push(supported(&members, users.len()));
        }
    }
    classes
}

fn supported(members: &[&str], traces: usize) -> Supported<Class> {
    let class = Class {
        name: members.first().copied().unwrap_or_default().to_owned(),
        members: members.iter().map(|tool| (*tool).to_owned()).collect(),
    };
    Supported {
        part: class,
        traces,
    }
}
