//! The sequences of calls that runs made, each distinct one kept once.

use std::collections::BTreeSet;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use mcptest_json::canonical;
use mcptest_trace::trace::{ToolCallView, TraceView};

use super::lists::Lists;
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

/// One run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct RunFacts {
    pub index: u64,
    /// The number of its sequence of tools.
    pub sequence: u32,
    /// The number of its list of arguments.
    pub arguments: u32,
    pub session: SessionFacts,
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StabilityAccumulator {
    tools: IndexSet<CalledTool>,
    /// Numbers of tools.
    sequences: Lists<u32>,
    /// Fingerprints of the arguments of a run, call by call.
    arguments: Lists<Digest>,
    pub(super) runs: Vec<RunFacts>,
    pub(super) without_rows: bool,
}

/// The number of a value in a table.
fn number<T: std::hash::Hash + Eq>(table: &mut IndexSet<T>, value: T) -> u32 {
    // A table of four billion distinct values does not fit into memory.
    u32::try_from(table.insert_full(value).0).unwrap_or(u32::MAX)
}

/// The number in another table, 0 for one that is not in the map.
fn mapped(map: &[u32], number: u32) -> u32 {
    map.get(number as usize).copied().unwrap_or(0)
}

impl crate::Accumulator for StabilityAccumulator {
    fn merge(&mut self, other: Self) {
        let tools = other.tools.into_iter();
        let tools: Vec<u32> = tools.map(|tool| number(&mut self.tools, tool)).collect();
        let sequences = other.sequences.iter().map(|sequence| {
            let renumbered = sequence.iter().map(|tool| mapped(&tools, *tool));
            self.sequences.number(renumbered)
        });
        let sequences: Vec<u32> = sequences.collect();
        let arguments = other.arguments.iter();
        let arguments = arguments.map(|list| self.arguments.number(list.iter().copied()));
        let arguments: Vec<u32> = arguments.collect();
        self.runs.extend(other.runs.iter().map(|run| RunFacts {
            sequence: mapped(&sequences, run.sequence),
            arguments: mapped(&arguments, run.arguments),
            ..*run
        }));
        self.without_rows |= other.without_rows;
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        for run in &mut self.runs {
            run.index = number(run.index);
        }
    }

    fn leave_out_rows(&mut self) {
        self.without_rows = true;
    }
}

impl StabilityAccumulator {
    pub(super) fn observe(&mut self, index: u64, trace: &TraceView<'_>) {
        let calls = &trace.tool_calls;
        let Self {
            tools,
            sequences,
            arguments,
            ..
        } = self;
        let tools = calls.iter().map(|call| number(tools, CalledTool::of(call)));
        let run = RunFacts {
            index,
            sequence: sequences.number(tools),
            arguments: arguments.number(calls.iter().map(args_digest)),
            session: SessionFacts::of(trace),
        };
        self.runs.push(run);
    }

    /// Puts the runs in order.
    pub(super) fn sort(&mut self) {
        if !self.runs.is_sorted_by_key(|run| run.index) {
            self.runs.sort_by_key(|run| run.index);
        }
    }

    /// The numbers of the tools that were called, in order.
    pub(super) fn sequence(&self, run: &RunFacts) -> &[u32] {
        self.sequences.get(run.sequence)
    }

    /// The fingerprints of the arguments, in order.
    pub(super) fn arguments(&self, run: &RunFacts) -> &[Digest] {
        self.argument_list(run.arguments)
    }

    /// The list of fingerprints with this number.
    pub(super) fn argument_list(&self, number: u32) -> &[Digest] {
        self.arguments.get(number)
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

    pub(super) fn distinct(&self, run: &RunFacts) -> DistinctCalls<'_> {
        let mut seen = BTreeSet::new();
        let mut repeated: Vec<&str> = Vec::new();
        let sequence = self.sequence(run);
        for call in sequence.iter().zip(self.arguments(run)) {
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
    let run = accumulator.runs.first();
    // The run that was just observed is there.
    run.map_or_else(SessionScores::default, |run| {
        run.session.score(&accumulator.distinct(run))
    })
}

fn args_digest(call: &ToolCallView<'_>) -> Digest {
    match call.args() {
        Some(args) => Digest::of_text(&canonical(args)),
        None => Digest::of_text("null"),
    }
}
