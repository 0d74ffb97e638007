//! The expected calls with their arguments (`trajectory:`).
//!
//! **Did the agent make the right calls, with the right arguments, in the right order?** The
//! recorded calls are compared with the expected ones, structure against structure and without a
//! model, as the Berkeley Function-Calling Leaderboard does for single calls.
//!
//! # The block
//! ```yaml
//! trajectory:
//!   mode: subsequence
//!   calls:
//!     - name: search
//!       args: { subset: { q: { one_of: [tide pools, rock pools] } } }
//!     - name: order
//!       args: { match: { id: { ">=": 1 } } }
//! ```
//!
//! `mode` is how expected and recorded calls line up:
//!
//! | `mode` | the trace passes if |
//! |---|---|
//! | `strict` (also `exact-sequence`; the default) | call by call it is the list, no more and no less |
//! | `subsequence` | the expected calls appear in their order; others may be between them |
//! | `unordered`, `superset` | every expected call has a recorded one of its own, in any order; others may be there |
//! | `subset` | every recorded call has an expected one of its own; expected ones may be left out |
//! | `exact_set` | both: the same calls in any order, none left over on either side |
//!
//! An empty list is met by every trace, except under `subset` and `exact_set`, where it forbids all
//! calls. Under `strict` that is a convention, so the suite loader warns about a list that nothing
//! can fail.
//!
//! An expected call names its tool (`name`, without the wire prefix; `server.tool` or a separate
//! `server:` where two servers have tools of one name) and the shape of its arguments:
//!
//! | `args` | the recorded arguments |
//! |---|---|
//! | `any` (the default), `ignore` | may be anything, or absent |
//! | `exact: v` | equal `v` deeply |
//! | `subset: v` (also `partial`) | have at least the keys of `v` with equal values; lists have at least the elements of `v`'s, each one once; objects and lists inside are compared by the same rule, also inside lists |
//! | `schema: s` | are valid under the JSON Schema `s` |
//! | `match: {key: matcher}` | match, argument by argument; others may be there |
//!
//! Inside `exact` and `subset` leaves are equal or not: strings as a whole, numbers by value (`1`
//! is `1.0`). A value `{one_of: [a, b]}` matches any of its alternatives. For a part of a string
//! write a matcher: `args: { match: { city: { contains: Sac } } }`. A call recorded without
//! arguments is compared as one with `{}`.
//!
//! Two options can be set at the block (for all calls), at a call, or inside `args`:
//!
//! - `ignore_keys: ["*_id"]` leaves out keys on both sides, at any depth. A glob is matched against
//!   the key's name and its dotted path.
//! - `defaults: true` gives an omitted argument the default of the tool's input schema, if the
//!   trace has its catalog stored. In `exact` that holds for both sides, in the other shapes for
//!   the recorded one.
//!
//! # Output
//! ```text
//! FAIL   books: trajectory  1 mismatch (subsequence) in 1 of 2 runs · run 2: arguments of `catalog.search`: …
//!        run 2: arguments of `catalog.search`: /q is "tides", expected {"one_of":["tide pools","rock pools"]}; …
//!        trajectory.passed  (the default)
//!          expected  >= 1
//!          actual    0
//! ```
//!
//! # Formula
//! - `trajectory.mismatch_count`: one per expected call without a recorded one (not under
//!   `subset`), plus one per recorded call too many (`strict`, `subset` and `exact_set`). In
//!   `strict` a wrong call at a position is one mismatch. Otherwise calls are assigned so that as
//!   few as possible are left over: as a largest one-to-one assignment (maximum bipartite
//!   matching), in `subsequence` as a longest common subsequence. So overlapping argument shapes
//!   never cost a match. Several runs: the sum.
//! - `trajectory.passed`: 1 if no run has a mismatch, else 0.
//!
//! When `expect:` is omitted, `trajectory.passed` must be 1. Runs without any call meet `subset`
//! because there is nothing to judge: if no run made a call, the verdict is `no_evidence`. An empty
//! trace is evidence only for a list that is empty too.
//!
//! # When not to use it
//! When the agent may find its own way: then [`trajectory_axes`](super::trajectory_axes) checks
//! only the data flow, and [`equal_function_sets`](super::equal_function_sets) the abilities. To
//! measure detours, use [`golden_path`](super::golden_path).
//!
//! # In Rust
//! ```
//! use mcptest_gates::trajectory::{Trajectory, validate_trace};
//! use mcptest_trace::{tool_id::KnownServers, trace};
//! use serde_json::json;
//!
//! let expected: Trajectory = serde_json::from_value(json!({
//!     "mode": "subsequence",
//!     "calls": [{"name": "get_weather", "args": {"subset": {"city": "Sacramento"}}}]
//! })).unwrap();
//! let run = |city: &str| json!({"tool_calls": [{"name": "locate"}, {"name": "get_weather", "args": {"city": city, "days": 2}}]});
//!
//! let good = &trace::read(&run("Sacramento").to_string()).unwrap()[0];
//! assert!(validate_trace(&expected, good, &KnownServers::default()).unwrap().passed);
//!
//! let bad = &trace::read(&run("Davis").to_string()).unwrap()[0];
//! let validation = validate_trace(&expected, bad, &KnownServers::default()).unwrap();
//! let mismatch = &validation.mismatches[0];
//! assert_eq!((mismatch.expected_index, mismatch.recorded_index), (Some(0), Some(1)));
//! assert_eq!(mismatch.reason, r#"arguments of `get_weather`: /city is "Davis", expected "Sacramento""#);
//! assert_eq!(mismatch.diff[0].pointer, "/city");
//! ```

mod args;
mod assign;
mod pattern;
#[cfg(test)]
mod tests;
mod validate;

pub use args::WrittenArgs;
pub use validate::{TraceMismatch, TraceValidation};

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::first_runs::FirstRuns;
use crate::forecast::{Bounds, Forecast};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, ToolReference, Unit};
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Difference, Matcher, Problem};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::{ToolCall, TraceView};
use validate::Plan;

/// The calls that the agent is expected to make, and how the recorded ones must line up with them.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    /// The way expected and recorded calls line up. Default: `strict`.
    #[serde(default)]
    pub mode: Mode,
    /// The expected calls, in order.
    pub calls: Vec<ExpectedCall>,
    /// Argument keys to leave out on both sides in all calls, at any depth; `*` and `?` are
    /// wildcards.
    #[serde(default)]
    pub ignore_keys: Vec<String>,
    /// If true, an omitted argument equals the default of the tool's input schema, if the catalog
    /// is stored.
    #[serde(default)]
    pub defaults: bool,
    /// Assertions on `trajectory.passed` and `trajectory.mismatch_count`. Default:
    /// `trajectory.passed` is 1.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
    /// Compiled when the suite is loaded.
    #[serde(skip)]
    #[schemars(skip)]
    plan: Option<Plan>,
}

/// One expected call.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    /// The tool's name, without a wire prefix; or `server.tool`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The server that must have been called. Default: any.
    #[serde(default)]
    pub server: Option<String>,
    /// The expected arguments. Default: `any`.
    #[serde(default)]
    pub args: WrittenArgs,
    /// Argument keys to leave out on both sides, in addition to those of the block.
    #[serde(default)]
    pub ignore_keys: Vec<String>,
    /// If true, an omitted argument equals its schema default. Default: the block's value.
    #[serde(default)]
    pub defaults: Option<bool>,
}

/// The ways expected calls line up with recorded ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The same call at every position.
    #[default]
    #[serde(alias = "exact-sequence", alias = "exact_sequence")]
    Strict,
    /// The expected ones in order, others between them.
    Subsequence,
    /// The expected ones in any order, others among them.
    Unordered,
    /// As `unordered`; the name shows that the list is a lower bound.
    Superset,
    /// No call but the expected ones, not all of which need be made.
    Subset,
    /// The expected ones in any order, and no others.
    #[serde(alias = "exact-set")]
    ExactSet,
}

impl Mode {
    /// The name in a suite.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Subsequence => "subsequence",
            Self::Unordered => "unordered",
            Self::Superset => "superset",
            Self::Subset => "subset",
            Self::ExactSet => "exact_set",
        }
    }

    /// Returns true if an empty list of expected calls forbids all calls; else every trace meets
    /// it.
    fn forbids_calls_when_empty(self) -> bool {
        matches!(self, Self::Subset | Self::ExactSet)
    }
}

impl JsonSchema for Mode {
    fn schema_name() -> Cow<'static, str> {
        "TrajectoryMode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How expected and recorded calls line up.",
            "enum": ["strict", "exact-sequence", "exact_sequence", "subsequence", "unordered", "superset", "subset", "exact_set", "exact-set"]
        })
    }
}

impl Trajectory {
    /// The block as it is checked against runs; made when the suite was loaded, if it was.
    fn plan(&self) -> Result<Cow<'_, Plan>, Vec<Problem>> {
        match &self.plan {
            Some(plan) => Ok(Cow::Borrowed(plan)),
            None => Plan::compile(self).map(Cow::Owned),
        }
    }

    /// An expectation without options.
    #[must_use]
    pub fn new(mode: Mode, calls: Vec<ExpectedCall>) -> Self {
        Self {
            mode,
            calls,
            ..Self::default()
        }
    }
}

/// Compares one trace with the expected calls. A trace that is not as expected is a validation that
/// did not pass, not an error.
///
/// # Errors
/// An expected call is invalid, for example because of a malformed JSON Schema.
pub fn validate_trace(
    expected: &Trajectory,
    trace: &TraceView<'_>,
    servers: &KnownServers,
) -> Result<TraceValidation, InvalidExpectation> {
    match Plan::compile(expected) {
        Ok(plan) => Ok(plan.validate(trace, servers)),
        Err(problems) => Err(InvalidExpectation::new(&problems)),
    }
}

/// An expected call that cannot be compared with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments of expected call {call} are invalid: {reason}")]
#[non_exhaustive]
pub struct InvalidExpectation {
    /// The index of the expected call, from 0.
    pub call: usize,
    /// The problem, in one line.
    pub reason: String,
}

impl InvalidExpectation {
    fn new(problems: &[Problem]) -> Self {
        let first = problems.first();
        let pointer = first.map_or("", |problem| problem.pointer.as_str());
        // All problems are below `/calls/<index>/args`.
        let call = pointer.split('/').nth(2).and_then(|call| call.parse().ok());
        Self {
            call: call.unwrap_or(0),
            reason: first.map_or_else(String::new, |problem| problem.message.clone()),
        }
    }
}

/// Reads the calls of a trace given as a JSON value and ignores its other keys.
///
/// Nothing is rejected: without `tool_calls` there are none, and an entry that is not a call is one
/// with a malformed name, so that positions stay correct.
///
/// ```
/// use mcptest_gates::trajectory::tool_calls_from_envelope;
/// let envelope = serde_json::json!({"tool_calls": [{"name": "get", "server": "http", "args": {}}], "cost": 3});
/// assert_eq!(tool_calls_from_envelope(&envelope)[0].full_id(), "http.get");
/// ```
#[must_use]
pub fn tool_calls_from_envelope(envelope: &Value) -> Vec<ToolCall> {
    envelope
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|entry| {
            serde_json::from_value(entry.clone()).unwrap_or_else(|_| ToolCall {
                args: entry.get("args").cloned().map(Into::into),
                extra: [("malformed", entry.clone())].into_iter().collect(),
                ..ToolCall::default()
            })
        })
        .collect()
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TrajectoryAccumulator {
    mismatches: u64,
    /// True if a run made a call.
    called: bool,
    runs: u64,
    /// Runs with a mismatch.
    bad_runs: u64,
    /// Mismatches, in words.
    findings: FirstRuns<String>,
    mismatch_rows: RunRows,
    rows: RunRows,
}

impl Accumulator for TrajectoryAccumulator {
    fn merge(&mut self, other: Self) {
        self.mismatches += other.mismatches;
        self.called |= other.called;
        self.runs += other.runs;
        self.bad_runs += other.bad_runs;
        self.findings.merge(other.findings);
        self.mismatch_rows.merge(other.mismatch_rows);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.findings.renumber(number);
        self.mismatch_rows.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.mismatch_rows.leave_out();
        self.rows.leave_out();
    }
}

/// A row of the report's detail.
#[derive(Serialize)]
struct TrajectoryRow<'a> {
    passed: bool,
    mismatch_count: usize,
    calls: usize,
    assignment: &'a [Option<usize>],
}

impl Gate for Trajectory {
    const BLOCK: &'static str = "trajectory";
    const SUMMARY: &'static str =
        "The expected calls with their arguments, lined up against the recorded ones.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "trajectory.passed",
            Unit::Flag,
            "1 if every run is as expected under the mode.",
        ),
        TargetInfo::new(
            "trajectory.mismatch_count",
            Unit::Count,
            "Expected calls that are missing, and calls too many, over all runs.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "trajectory.passed",
            Matcher::at_least(1),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.calls.is_empty() && !self.mode.forbids_calls_when_empty() {
            problems.push(
                Problem::new(
                    "/calls",
                    format!(
                        "no call is expected, and under `{}` every trace meets that",
                        self.mode.as_str()
                    ),
                )
                .help("write `mode: subset` to forbid all calls")
                .as_warning(),
            );
        }
        match Plan::compile(self) {
            Ok(plan) => self.plan = Some(plan),
            Err(more) => problems.extend(more),
        }
        problems
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        let calls = self.calls.iter().enumerate();
        calls
            .map(|(index, call)| {
                ToolReference::new(format!("/calls/{index}/name"), &call.name)
                    .on_server(call.server.as_deref())
            })
            .collect()
    }

    type Accumulator = TrajectoryAccumulator;

    fn observe(
        &self,
        accumulator: &mut TrajectoryAccumulator,
        context: &Context<'_>,
        run: &Run<'_>,
    ) {
        let Ok(plan) = self.plan() else {
            return;
        };
        let calls = run.trace.tool_calls.len();
        accumulator.runs += 1;
        accumulator.called |= calls > 0;
        if !accumulator.rows.are_kept() {
            // Counting costs less than lining up, and most runs have nothing to explain.
            let count = plan.count_mismatches(run.trace, context.servers) as u64;
            if count == 0 || !accumulator.findings.lists(run.index) {
                accumulator.mismatches += count;
                accumulator.bad_runs += u64::from(count > 0);
                accumulator.findings.add_unlisted(count);
                return;
            }
        }
        let validation = plan.validate(run.trace, context.servers);
        let mismatches = &validation.mismatches;
        accumulator.mismatches += mismatches.len() as u64;
        accumulator.bad_runs += u64::from(!mismatches.is_empty());
        for mismatch in mismatches {
            // A mismatch in one line: what is wrong, and where the arguments differ.
            let words = || format!("{}{}", mismatch.reason, places(&mismatch.diff));
            accumulator.findings.add(run.index, words);
            accumulator.mismatch_rows.push(run.index, mismatch);
        }
        let row = TrajectoryRow {
            passed: mismatches.is_empty(),
            mismatch_count: mismatches.len(),
            calls,
            assignment: &validation.assignment,
        };
        accumulator.rows.push(run.index, &row);
    }

    fn finish(&self, accumulator: TrajectoryAccumulator, _: &Context<'_>) -> Score {
        if let Err(problems) = self.plan() {
            return broken(&problems);
        }
        let TrajectoryAccumulator {
            mismatches: count,
            called,
            runs: total,
            bad_runs,
            findings,
            mismatch_rows,
            rows,
        } = accumulator;
        let more_findings = findings.more();
        let findings = findings.iter();
        let findings: Vec<String> = findings
            .map(|(run, words)| format!("run {run}: {words}"))
            .collect();
        let mode = self.mode.as_str();
        let summary = match findings.first() {
            None => format!("as expected ({mode}) in {total} of {total} runs"),
            Some(first) => {
                let noun = if count == 1 { "mismatch" } else { "mismatches" };
                format!("{count} {noun} ({mode}) in {bad_runs} of {total} runs · {first}")
            }
        };
        let mut detail = DetailBuilder::default();
        detail.entry("mode", &mode);
        mismatch_rows.write("mismatches", "run", &mut detail);
        rows.write("per_run", "index", &mut detail);
        Score {
            values: vec![
                ("trajectory.passed", u8::from(count == 0).into()),
                ("trajectory.mismatch_count", count.into()),
            ],
            detail: detail.into(),
            summary,
            findings,
            more_findings,
            no_evidence: (count == 0 && !called && !self.calls.is_empty())
                .then(|| "no tool was called, so no call could be wrong".to_owned()),
            ..Score::default()
        }
    }

    fn forecast(&self, accumulator: &TrajectoryAccumulator, _: u64) -> Option<Forecast> {
        if self.plan().is_err() {
            return Some(Forecast::default());
        }
        let mismatches = accumulator.mismatches;
        Some(Forecast {
            bounds: vec![
                (
                    "trajectory.passed",
                    Bounds::between(0, u64::from(mismatches == 0)),
                ),
                ("trajectory.mismatch_count", Bounds::at_least(mismatches)),
            ],
            may_lack_evidence: !accumulator.called && !self.calls.is_empty(),
        })
    }
}

/// The first places where the arguments differ.
fn places(diff: &[Difference]) -> String {
    let mut line = String::new();
    for difference in diff.iter().take(5) {
        let side = |side: &Option<Value>| {
            side.as_ref()
                .map_or_else(|| "nothing".to_owned(), Value::to_string)
        };
        line.push_str(&format!(
            "; at {} expected {}, recorded {}",
            difference.pointer,
            side(&difference.expected),
            side(&difference.actual)
        ));
    }
    line
}

/// The score of an invalid block. A suite is not loaded with one, but a block can be built in code.
fn broken(problems: &[Problem]) -> Score {
    let why = problems.first().map_or_else(String::new, |problem| {
        format!(
            "the expectation is broken at {}: {}",
            problem.pointer, problem.message
        )
    });
    let names = <Trajectory as Gate>::TARGETS
        .iter()
        .map(|target| target.name);
    Score {
        values: names.clone().map(|name| (name, Value::Null)).collect(),
        absent: names.map(|name| (name, why.clone())).collect(),
        summary: why,
        ..Score::default()
    }
}
