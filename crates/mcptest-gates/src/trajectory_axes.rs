//! Order and data flow between calls (`trajectory_axes:`).
//!
//! **Did each call come after the calls it depends on?** Only the data flow and the order count,
//! not the exact calls: a consumer ran after the producer whose output it reads, and one call
//! preceded another. Extra calls, retries and other orders of unrelated calls are free.
//!
//! # The block
//! ```yaml
//! trajectory_axes:
//!   dependencies:
//!     - { producer: search, consumer: order }   # order uses the id that search found
//!   order:
//!     - { first: sign_in, second: order }
//! ```
//!
//! # Output
//! ```text
//! FAIL   books: trajectory_axes  dependencies 100 · order 50 · run 2: `order` came before `sign_in`
//!        trajectory.order_satisfaction  (the default)
//!          expected  >= 100
//!          actual    50
//! ```
//!
//! # Formula
//! An edge (`producer` → `consumer` under `dependencies`, `first` → `second` under `order`) holds
//! in a run if both tools were called and the first call of the one came before the first call of
//! the other. Per axis, rounded down to a whole percent:
//!
//! held edges over all runs / (declared edges × runs)
//!
//! An axis without edges is 100. A block without any edge judges nothing: the verdict is
//! `no_evidence`. When `expect:` is omitted, both percents must be 100.
//!
//! # When not to use it
//! When the exact plan is the contract, or arguments matter: that is
//! [`trajectory`](super::trajectory). An edge requires both calls; for "if A is called at all, then
//! after B" it is too strong.
//!
//! # In Rust
//! ```
//! use mcptest_gates::trajectory_axes::{EdgeState, TrajectoryAxes, score_trajectory_axes};
//! use mcptest_trace::{tool_id::KnownServers, trace::ToolCall};
//!
//! let axes: TrajectoryAxes = serde_json::from_value(serde_json::json!({
//!     "dependencies": [{"producer": "search", "consumer": "fetch_page"}],
//!     "order": [{"first": "authenticate", "second": "search"}]
//! })).unwrap();
//! let calls = ["search", "fetch_page", "authenticate"].map(|name| ToolCall::new(None, name));
//! let report = score_trajectory_axes(&axes, &calls, &KnownServers::default());
//! assert_eq!(report.dependencies, [EdgeState::Held]);
//! assert_eq!(report.order, [EdgeState::Reversed]);
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::first_runs::earliest;
use crate::forecast::{BoundsOf, Forecast, HypotheticalRuns, PooledPercent};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, ToolReference, Unit};
use mcptest_numbers::percent;
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::ToolCallView;

/// Constraints on the order of calls, and nothing else about them.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrajectoryAxes {
    /// Consumers that must run after the producers whose output they read.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// Calls that must precede other calls.
    #[serde(default)]
    pub order: Vec<Precedence>,
    /// Assertions on `trajectory.dependency_satisfaction` and `trajectory.order_satisfaction`.
    /// Default: both are 100.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

/// A flow of data from one call to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dependency {
    /// The tool whose output is read: its name, or `server.tool`.
    #[schemars(length(min = 1))]
    pub producer: String,
    /// The tool that reads it.
    #[schemars(length(min = 1))]
    pub consumer: String,
}

/// Two calls of which one comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Precedence {
    /// The tool that is called first: its name, or `server.tool`.
    #[schemars(length(min = 1))]
    pub first: String,
    /// The tool that is called later.
    #[schemars(length(min = 1))]
    pub second: String,
}

/// The state of an edge in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeState {
    /// Both were called, in this order.
    Held,
    /// Both were called, but not in this order.
    Reversed,
    /// The earlier one was never called.
    EarlierMissing,
    /// The later one was never called.
    LaterMissing,
    /// Neither was called.
    BothMissing,
}

impl EdgeState {
    fn words(self, earlier: &str, later: &str) -> String {
        match self {
            Self::Held => format!("`{earlier}` came before `{later}`"),
            Self::Reversed => format!("`{later}` came before `{earlier}`"),
            Self::EarlierMissing => format!("`{earlier}` was never called"),
            Self::LaterMissing => format!("`{later}` was never called"),
            Self::BothMissing => format!("neither `{earlier}` nor `{later}` was called"),
        }
    }
}

/// The edges of one run, in the order declared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AxesReport {
    /// Of `dependencies`.
    pub dependencies: Vec<EdgeState>,
    /// Of `order`.
    pub order: Vec<EdgeState>,
}

/// Finds the state of every declared edge in the calls of one run.
#[must_use]
pub fn score_trajectory_axes(
    axes: &TrajectoryAxes,
    calls: &[ToolCallView<'_>],
    servers: &KnownServers,
) -> AxesReport {
    let first = |tool: &str| calls.iter().position(|call| call.is(tool, servers));
    let state = |earlier: &str, later: &str| match (first(earlier), first(later)) {
        (Some(a), Some(b)) if a < b => EdgeState::Held,
        (Some(_), Some(_)) => EdgeState::Reversed,
        (None, Some(_)) => EdgeState::EarlierMissing,
        (Some(_), None) => EdgeState::LaterMissing,
        (None, None) => EdgeState::BothMissing,
    };
    AxesReport {
        dependencies: axes
            .dependencies
            .iter()
            .map(|edge| state(&edge.producer, &edge.consumer))
            .collect(),
        order: axes
            .order
            .iter()
            .map(|edge| state(&edge.first, &edge.second))
            .collect(),
    }
}

/// The edges of the observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct AxesAccumulator {
    /// Held dependencies.
    dependencies: u64,
    /// Held order constraints.
    order: u64,
    runs: u64,
    /// The first run with a broken edge, and why it is broken.
    first_broken: Option<(u64, String)>,
    broken: RunRows,
    rows: RunRows,
}

impl Accumulator for AxesAccumulator {
    fn merge(&mut self, other: Self) {
        self.dependencies += other.dependencies;
        self.order += other.order;
        self.runs += other.runs;
        self.first_broken = earliest(self.first_broken.take(), other.first_broken);
        self.broken.merge(other.broken);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        if let Some((run, _)) = &mut self.first_broken {
            *run = number(*run);
        }
        self.broken.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.broken.leave_out();
        self.rows.leave_out();
    }
}

fn held(states: &[EdgeState]) -> u64 {
    let held = states.iter().filter(|state| **state == EdgeState::Held);
    held.count() as u64
}

impl TrajectoryAxes {
    /// Both axes as percents to which every run adds the same number of edges.
    fn percents(&self, accumulator: &AxesAccumulator) -> [PooledPercent; 2] {
        let runs = accumulator.runs;
        [
            (accumulator.dependencies, self.dependencies.len()),
            (accumulator.order, self.order.len()),
        ]
        .map(|(held, edges)| PooledPercent {
            part: held,
            whole: edges as u64 * runs,
            per_run: edges as u64,
        })
    }

    /// The declared edges: axis, earlier and later tool.
    fn edges(&self) -> impl Iterator<Item = (&'static str, &str, &str)> {
        let dependencies = self.dependencies.iter();
        let dependencies = dependencies.map(|edge| {
            (
                "dependencies",
                edge.producer.as_str(),
                edge.consumer.as_str(),
            )
        });
        let order = self.order.iter();
        dependencies.chain(order.map(|edge| ("order", edge.first.as_str(), edge.second.as_str())))
    }

    /// The edges that did not hold in a run.
    fn broken<'a>(&'a self, report: &'a AxesReport) -> impl Iterator<Item = BrokenEdge<'a>> {
        let states = report.dependencies.iter().chain(&report.order);
        self.edges()
            .zip(states)
            .filter(|(_, state)| **state != EdgeState::Held)
            .map(move |((axis, earlier, later), state)| BrokenEdge {
                axis,
                earlier,
                later,
                state: *state,
                reason: state.words(earlier, later),
            })
    }
}

/// An edge that did not hold in a run.
#[derive(Serialize)]
struct BrokenEdge<'a> {
    axis: &'static str,
    earlier: &'a str,
    later: &'a str,
    state: EdgeState,
    reason: String,
}

impl Gate for TrajectoryAxes {
    const BLOCK: &'static str = "trajectory_axes";
    const SUMMARY: &'static str =
        "Data-flow and order constraints between calls, and nothing else about them.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "trajectory.dependency_satisfaction",
            Unit::Percent,
            "Declared dependencies that held, over all runs.",
        ),
        TargetInfo::new(
            "trajectory.order_satisfaction",
            Unit::Percent,
            "Declared order constraints that held, over all runs.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        Self::TARGETS
            .iter()
            .map(|target| Expectation::default_of(target.name, Matcher::at_least(100)))
            .collect()
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.dependencies.is_empty() && self.order.is_empty() {
            problems.push(
                Problem::new(
                    "",
                    "neither `dependencies` nor `order` has an edge, so there is nothing to judge",
                )
                .as_warning(),
            );
        }
        let dependencies = self
            .dependencies
            .iter()
            .map(|edge| (&edge.producer, &edge.consumer));
        let order = self.order.iter().map(|edge| (&edge.first, &edge.second));
        let dependencies = dependencies
            .enumerate()
            .map(|(index, edge)| (format!("/dependencies/{index}"), edge));
        let order = order
            .enumerate()
            .map(|(index, edge)| (format!("/order/{index}"), edge));
        for (at, (earlier, later)) in dependencies.chain(order) {
            if earlier == later {
                problems.push(
                    Problem::new(
                        at,
                        format!("the first call of `{earlier}` cannot come before itself"),
                    )
                    .as_warning(),
                );
            }
        }
        problems
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        let mut names = Vec::new();
        for (index, edge) in self.dependencies.iter().enumerate() {
            let at = format!("/dependencies/{index}");
            names.push(ToolReference::new(format!("{at}/producer"), &edge.producer));
            names.push(ToolReference::new(format!("{at}/consumer"), &edge.consumer));
        }
        for (index, edge) in self.order.iter().enumerate() {
            let at = format!("/order/{index}");
            names.push(ToolReference::new(format!("{at}/first"), &edge.first));
            names.push(ToolReference::new(format!("{at}/second"), &edge.second));
        }
        names
    }

    type Accumulator = AxesAccumulator;

    fn observe(&self, accumulator: &mut AxesAccumulator, context: &Context<'_>, run: &Run<'_>) {
        let report = score_trajectory_axes(self, &run.trace.tool_calls, context.servers);
        accumulator.dependencies += held(&report.dependencies);
        accumulator.order += held(&report.order);
        accumulator.runs += 1;
        let is_earlier = |(first, _): &(u64, String)| run.index < *first;
        if accumulator.first_broken.as_ref().is_none_or(is_earlier)
            && let Some(broken) = self.broken(&report).next()
        {
            accumulator.first_broken = Some((run.index, broken.reason));
        }
        if accumulator.rows.are_kept() {
            for broken in self.broken(&report) {
                accumulator.broken.push(run.index, &broken);
            }
            accumulator.rows.push(run.index, &report);
        }
    }

    fn finish(&self, accumulator: AxesAccumulator, _: &Context<'_>) -> Score {
        let [dependencies, order] = self.percents(&accumulator).map(|axis| {
            // Without edges there is nothing that could not hold.
            percent::down(axis.part, axis.whole).unwrap_or(100)
        });
        let mut summary = format!("dependencies {dependencies} · order {order}");
        if let Some((run, reason)) = &accumulator.first_broken {
            summary.push_str(&format!(" · run {run}: {reason}"));
        }
        let mut detail = DetailBuilder::default();
        accumulator.broken.write("broken", "run", &mut detail);
        accumulator.rows.write("per_run", "index", &mut detail);
        Score {
            values: vec![
                ("trajectory.dependency_satisfaction", dependencies.into()),
                ("trajectory.order_satisfaction", order.into()),
            ],
            detail: detail.into(),
            summary,
            no_evidence: (self.edges().next().is_none()).then(|| "no edge is declared".to_owned()),
            ..Score::default()
        }
    }

    fn forecast(&self, accumulator: &AxesAccumulator, remaining: u64) -> Option<Forecast> {
        let [dependencies, order] = self.percents(accumulator);
        Some(Forecast {
            bounds: vec![
                (
                    "trajectory.dependency_satisfaction",
                    dependencies.bounds(remaining),
                ),
                ("trajectory.order_satisfaction", order.bounds(remaining)),
            ],
            may_lack_evidence: self.edges().next().is_none(),
        })
    }

    fn hypothetical(
        &self,
        accumulator: &AxesAccumulator,
        next: HypotheticalRuns,
        remaining: u64,
    ) -> Option<BoundsOf> {
        let [dependencies, order] = self.percents(accumulator);
        Some(vec![
            (
                "trajectory.dependency_satisfaction",
                dependencies.after(next).bounds(remaining),
            ),
            (
                "trajectory.order_satisfaction",
                order.after(next).bounds(remaining),
            ),
        ])
    }
}

#[cfg(test)]
mod tests;
