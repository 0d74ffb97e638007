//! The sequences of calls that runs made, each distinct one kept once.

use std::collections::BTreeSet;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::per_run::PerRun;
use mcptest_json::canonical;
use mcptest_trace::trace::{ToolCallView, TraceView};

use super::session::{DistinctCalls, SessionFacts, SessionScores};

/// A tool that was called.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct CalledTool {
    server: Option<String>,
    /// The name as canonical JSON: a malformed name differs from any other malformed name.
    pub name: String,
    /// The id for people.
    pub id: String,
}

impl CalledTool {
    fn of(call: &ToolCallView<'_>) -> Self {
        Self {
            server: call.server.clone().map(Into::into),
            name: canonical(&call.raw_name.to_value()),
            id: call.full_id(),
        }
    }
}

/// The calls of a run: the number of its sequence of tools, and that of its list of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Calls {
    pub sequence: u32,
    pub arguments: u32,
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StabilityAccumulator {
    tools: IndexSet<CalledTool>,
    /// Numbers of tools.
    sequences: IndexSet<Box<[u32]>>,
    /// Fingerprints of the arguments of a run, call by call.
    arguments: IndexSet<Box<[Digest]>>,
    pub(super) runs: PerRun<Calls, SessionFacts>,
}

/// The number of a value in a table.
fn number<T: std::hash::Hash + Eq>(table: &mut IndexSet<T>, value: T) -> u32 {
    // A table of four billion distinct values does not fit into memory.
    u32::try_from(table.insert_full(value).0).unwrap_or(u32::MAX)
}

/// Adds the values of another table and returns their numbers in this one.
fn absorb<T: std::hash::Hash + Eq>(table: &mut IndexSet<T>, other: IndexSet<T>) -> Vec<u32> {
    let values = other.into_iter();
    values.map(|value| number(table, value)).collect()
}

/// The number in another table, 0 for one that is not in the map.
fn mapped(map: &[u32], number: u32) -> u32 {
    map.get(number as usize).copied().unwrap_or(0)
}

impl crate::Accumulator for StabilityAccumulator {
    fn merge(&mut self, other: Self) {
        let tools = absorb(&mut self.tools, other.tools);
        let sequences: Vec<u32> = other
            .sequences
            .into_iter()
            .map(|sequence| {
                let renumbered = sequence.iter().map(|tool| mapped(&tools, *tool));
                number(&mut self.sequences, renumbered.collect())
            })
            .collect();
        let arguments = absorb(&mut self.arguments, other.arguments);
        self.runs.merge(other.runs.map_shared(|calls| Calls {
            sequence: mapped(&sequences, calls.sequence),
            arguments: mapped(&arguments, calls.arguments),
        }));
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.runs.renumber(number);
    }
}

impl StabilityAccumulator {
    pub(super) fn observe(&mut self, index: u64, trace: &TraceView<'_>) {
        let calls = &trace.tool_calls;
        let tools: Box<[u32]> = calls
            .iter()
            .map(|call| number(&mut self.tools, CalledTool::of(call)))
            .collect();
        let arguments: Box<[Digest]> = calls.iter().map(args_digest).collect();
        let calls = Calls {
            sequence: number(&mut self.sequences, tools),
            arguments: number(&mut self.arguments, arguments),
        };
        self.runs.insert(index, calls, SessionFacts::of(trace));
    }

    /// The numbers of the tools that were called, in order.
    pub(super) fn sequence(&self, calls: Calls) -> &[u32] {
        let sequence = self.sequences.get_index(calls.sequence as usize);
        sequence.map_or(&[], |sequence| sequence)
    }

    /// The fingerprints of the arguments, in order.
    pub(super) fn arguments(&self, calls: Calls) -> &[Digest] {
        let arguments = self.arguments.get_index(calls.arguments as usize);
        arguments.map_or(&[], |arguments| arguments)
    }

    /// The tool with this number.
    pub(super) fn tool(&self, number: u32) -> Option<&CalledTool> {
        self.tools.get_index(number as usize)
    }

    /// For each tool, the number of its name. Tools of one name on two servers share it.
    pub(super) fn names(&self) -> Vec<u32> {
        let mut names = IndexSet::new();
        let tools = self.tools.iter();
        tools
            .map(|tool| number(&mut names, tool.name.as_str()))
            .collect()
    }

    /// The number of different sequences of tools.
    pub(super) fn sequence_count(&self) -> usize {
        self.sequences.len()
    }

    pub(super) fn distinct(&self, calls: Calls) -> DistinctCalls<'_> {
        let mut seen = BTreeSet::new();
        let mut repeated: Vec<&str> = Vec::new();
        let sequence = self.sequence(calls);
        for call in sequence.iter().zip(self.arguments(calls)) {
            if seen.insert(call) {
                continue;
            }
            if let Some(tool) = self.tool(*call.0)
                && !repeated.contains(&tool.id.as_str())
            {
                repeated.push(&tool.id);
            }
        }
        DistinctCalls {
            calls: sequence.len(),
            tools: sequence.iter().collect::<BTreeSet<_>>().len(),
            distinct: seen.len(),
            repeated,
        }
    }
}

/// Scores one run.
#[must_use]
pub fn score_session(trace: &TraceView<'_>) -> SessionScores {
    let mut accumulator = StabilityAccumulator::default();
    accumulator.observe(1, trace);
    let row = accumulator.runs.iter().next();
    // The run that was just observed is there.
    row.map_or_else(SessionScores::default, |row| {
        row.own.score(&accumulator.distinct(*row.shared))
    })
}

fn args_digest(call: &ToolCallView<'_>) -> Digest {
    match call.args() {
        Some(args) => Digest::of_text(&canonical(args)),
        None => Digest::of_text("null"),
    }
}
