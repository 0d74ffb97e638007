//! The calls that all traces make, with the arguments that are always the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Call, Run, same};

/// The way in which the reference is compared: the strictest that all traces pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// All traces make the same calls in the same order.
    Strict,
    /// All traces make the same calls.
    ExactSet,
    /// All traces make at least these calls.
    Superset,
}

impl Mode {
    /// The value of `mode:`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::ExactSet => "exact_set",
            Self::Superset => "superset",
        }
    }
}

/// A call of the reference.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReferenceCall {
    /// The tool.
    pub tool: String,
    /// The arguments that are the same in all traces.
    pub args: Map<String, Value>,
    /// Arguments that all traces have, with different values.
    pub varying: Vec<String>,
}

/// The reference of a trajectory.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reference {
    /// The mode.
    pub mode: Mode,
    /// The calls.
    pub calls: Vec<ReferenceCall>,
}

/// The reference that all runs pass; `None` if they have no call in common.
pub(super) fn reference(runs: &[Run]) -> Option<Reference> {
    let (first, others) = runs.split_first()?;
    if runs.iter().all(|run| run.calls.is_empty()) {
        // A strict list of no calls is met by every trace; this mode forbids all calls.
        let mode = Mode::ExactSet;
        return Some(Reference {
            mode,
            calls: Vec::new(),
        });
    }
    let names = |run: &Run| run.tools().map(ToOwned::to_owned).collect::<Vec<_>>();
    let sequence = names(first);
    if others.iter().all(|run| names(run) == sequence) {
        let calls = (0..sequence.len()).map(|at| {
            let calls: Vec<&Call> = runs.iter().map(|run| &run.calls[at]).collect();
            reference_call(&calls)
        });
        let calls: Vec<ReferenceCall> = calls.collect();
        return (!calls.is_empty()).then_some(Reference {
            mode: Mode::Strict,
            calls,
        });
    }
    // The calls of a tool can stand for each other in these modes. So only arguments that all
    // calls of the tool share can be required.
    let counts: Vec<BTreeMap<&str, usize>> = runs.iter().map(counts).collect();
    let mode = if counts.windows(2).all(|pair| pair[0] == pair[1]) {
        Mode::ExactSet
    } else {
        Mode::Superset
    };
    let mut calls = Vec::new();
    let mut listed = BTreeMap::new();
    for tool in first.tools() {
        let most = counts
            .iter()
            .map(|counts| counts.get(tool).copied().unwrap_or(0))
            .min();
        let listed = listed.entry(tool).or_insert(0);
        if *listed < most.unwrap_or(0) {
            *listed += 1;
            let all = runs.iter().flat_map(|run| &run.calls);
            let all: Vec<&Call> = all.filter(|call| call.tool == tool).collect();
            calls.push(reference_call(&all));
        }
    }
    (!calls.is_empty()).then_some(Reference { mode, calls })
}

fn counts(run: &Run) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for tool in run.tools() {
        *counts.entry(tool).or_insert(0) += 1;
    }
    counts
}

/// The common part of some calls of one tool.
fn reference_call(calls: &[&Call]) -> ReferenceCall {
    let mut reference = ReferenceCall {
        tool: String::new(),
        args: Map::new(),
        varying: Vec::new(),
    };
    let Some((first, others)) = calls.split_first() else {
        return reference;
    };
    reference.tool.clone_from(&first.tool);
    for (key, value) in &first.args {
        if others.iter().any(|call| !call.args.contains_key(key)) {
            continue;
        }
        // In a suite, an object with `one_of` is a list of alternatives, and `${` a variable.
        let is_plain = !value.to_string().contains("\"one_of\"") && !key.contains("${");
        if is_plain && others.iter().all(|call| same(&call.args[key], value)) {
            reference.args.insert(key.clone(), value.clone());
        } else {
            reference.varying.push(key.clone());
        }
    }
    reference
}
