//! A starter suite from good traces.
//!
//! What the traces have in common becomes a test for each name that they carry: capability classes,
//! a golden path, a trajectory, order axes and a token budget. Each part shows how many traces
//! support it. Only what holds in enough traces is written, and bounds are figures that these
//! traces reach, so the suite passes on them. It describes what happened: a person decides whether
//! that is what should happen.

mod axes;
mod classes;
mod reference_calls;
mod yaml;

use std::collections::BTreeMap;

use mcptest_json::canonical;
use mcptest_trace::trace::{ToolCallView, TraceView};
use serde_json::{Map, Value};

pub use axes::Edge;
pub use classes::Class;
pub use reference_calls::{Mode, Reference, ReferenceCall};
pub use yaml::Bounds;

use crate::result_text::result_text;
use crate::tool_names::{RecordedTool, Servers};

/// The facts of one call that inference compares.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    recorded: RecordedTool,
    /// The full id, known when all traces were seen.
    tool: String,
    /// Top-level arguments.
    args: Map<String, Value>,
    /// Strings and numbers of the arguments that could come from elsewhere.
    sources: Vec<String>,
    /// The text of the result.
    result: String,
}

/// One trace as inference sees it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Run {
    calls: Vec<Call>,
    /// The user's messages.
    request: String,
    tokens: Option<u64>,
}

impl Run {
    /// The place of the first call of a tool.
    fn first(&self, tool: &str) -> Option<usize> {
        self.calls.iter().position(|call| call.tool == tool)
    }

    fn tools(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|call| call.tool.as_str())
    }
}

/// The traces that a suite is inferred from, by test.
#[derive(Debug, Default)]
pub struct Inference {
    tests: BTreeMap<Option<String>, Vec<Run>>,
    servers: Servers,
    failed_runs: u64,
}

/// A part that was inferred, with the number of traces that support it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Supported<T> {
    /// The part.
    pub part: T,
    /// The traces in which it holds.
    pub traces: usize,
}

/// The inferred test of the traces of one name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InferredTest {
    /// The name of the test.
    pub name: String,
    /// The number of traces.
    pub traces: usize,
    /// Capabilities that the traces use.
    pub classes: Vec<Supported<Class>>,
    /// The most frequent sequence of calls without a return or a repetition.
    pub golden_path: Option<Supported<Vec<String>>>,
    /// The calls that all traces make.
    pub trajectory: Option<Reference>,
    /// Calls whose arguments come from the result of another call.
    pub dependencies: Vec<Supported<Edge>>,
    /// Calls that precede others in every trace.
    pub order: Vec<Supported<Edge>>,
    /// The largest number of tokens, if all traces report theirs.
    pub max_tokens: Option<u64>,
}

/// The inferred suite.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InferredSuite {
    /// The tests, by name.
    pub tests: Vec<InferredTest>,
    /// Traces that were not used: their runs failed for a reason that is not the agent's.
    pub failed_runs: u64,
}

/// The name of the test whose traces have none.
pub const UNNAMED: &str = "inferred";

impl Inference {
    /// Adds a trace.
    pub fn observe(&mut self, trace: &TraceView<'_>) {
        if trace.error.is_some() {
            self.failed_runs += 1;
            return;
        }
        self.servers.observe(trace);
        let results = trace.results_by_call();
        let calls = trace
            .tool_calls
            .iter()
            .zip(results)
            .map(|(call, result)| Call {
                recorded: RecordedTool::of(call),
                tool: String::new(),
                args: top_level(call),
                sources: call.args().map(sources).unwrap_or_default(),
                result: result.map(result_text).unwrap_or_default(),
            });
        let user_turns = trace.conversation.turns.iter().flatten();
        let user_turns = user_turns.filter(|turn| turn.role.as_deref() == Some("user"));
        let run = Run {
            calls: calls.collect(),
            request: user_turns.map(|turn| turn.text() + "\n").collect(),
            tokens: trace.total_tokens(),
        };
        let test = trace.test.as_deref().map(ToOwned::to_owned);
        self.tests.entry(test).or_default().push(run);
    }

    /// The suite that the observed traces support. A capability needs the support of `threshold`
    /// percent of the traces; order, dependencies and the trajectory need all of them.
    #[must_use]
    pub fn finish(self, threshold: u64) -> InferredSuite {
        let id = self.servers.into_ids();
        let infer = |(name, mut runs): (Option<String>, Vec<Run>)| {
            for call in runs.iter_mut().flat_map(|run| &mut run.calls) {
                call.tool = id(&call.recorded);
            }
            let name = name.unwrap_or_else(|| UNNAMED.to_owned());
            infer_test(name, &runs, threshold)
        };
        InferredSuite {
            tests: self.tests.into_iter().map(infer).collect(),
            failed_runs: self.failed_runs,
        }
    }
}

fn infer_test(name: String, runs: &[Run], threshold: u64) -> InferredTest {
    let dependencies = axes::dependencies(runs);
    InferredTest {
        name,
        traces: runs.len(),
        classes: classes::classes(runs, threshold),
        golden_path: golden_path(runs),
        trajectory: reference_calls::reference(runs),
        order: axes::order(runs, &dependencies),
        dependencies,
        // One trace of unknown usage, and the largest is unknown too.
        max_tokens: runs
            .iter()
            .map(|run| run.tokens)
            .collect::<Option<Vec<_>>>()
            .and_then(|all| all.into_iter().max()),
    }
}

/// The most frequent sequence without a return or a repetition; of equally frequent ones the
/// shortest, then the first.
fn golden_path(runs: &[Run]) -> Option<Supported<Vec<String>>> {
    let mut counts: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for run in runs {
        let sequence: Vec<&str> = run.tools().collect();
        let mut sorted = sequence.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if !sequence.is_empty() && sorted.len() == sequence.len() {
            *counts.entry(sequence).or_default() += 1;
        }
    }
    let best = counts
        .into_iter()
        .min_by_key(|(sequence, count)| (std::cmp::Reverse(*count), sequence.len()));
    best.map(|(sequence, traces)| Supported {
        part: sequence.into_iter().map(ToOwned::to_owned).collect(),
        traces,
    })
}

fn top_level(call: &ToolCallView<'_>) -> Map<String, Value> {
    match call.args() {
        Some(Value::Object(args)) => args.clone(),
        _ => Map::new(),
    }
}

/// The leaves of arguments that are distinctive enough to trace them to a result: strings of at
/// least four characters and numbers of at least four digits.
fn sources(args: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![args];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(entries) => open.extend(entries.values()),
            Value::String(text) if text.chars().count() >= 4 => found.push(text.clone()),
            Value::Number(number) if number.to_string().len() >= 4 => {
                found.push(number.to_string());
            }
            _ => {}
        }
    }
    found
}

/// Returns true if two argument values are equal.
fn same(a: &Value, b: &Value) -> bool {
    a == b || canonical(a) == canonical(b)
}

#[cfg(test)]
mod tests;
