//! Waste against an ideal path (`golden_path:`).
//!
//! **How many calls were wasted?** The block lists the shortest good sequence of tools. The gate
//! searches the recorded sequence for three kinds of waste:
//!
//! - *extra steps*: calls beyond the length of the golden path,
//! - *backtracks*: calls of a tool that was used before, but not by the previous call,
//! - *repeated tools*: calls of the tool of the previous call.
//!
//! # The block
//! ```yaml
//! golden_path:
//!   calls: [search, order]
//! ```
//!
//! # Output
//! ```text
//! FAIL   books: golden_path  penalty 0.33 · 2 extra, 1 back, 1 repeated · run 1: search → search → order → search
//!        golden_path.passed  (the default)
//!          expected  >= 1
//!          actual    0
//! ```
//!
//! # Formula
//! With *w* the sum of the three counts, of which any can be left out by `penalize_extra_steps`,
//! `penalize_backtracks` and `penalize_repeated_tools: false`:
//!
//! - `golden_path.penalty` = 1 / (1 + 0.5 *w*), which is 1.0 without waste and falls towards 0
//! - `golden_path.passed` = 1 if *w* is 0
//!
//! A tool is its server and its name. One call can be waste in two ways and then counts twice. The
//! counts are always reported, penalized or not. Several runs: the lowest penalty, `passed` only if
//! all did, counts summed. When `expect:` is omitted, `golden_path.passed` must be 1.
//!
//! The numbers depend on the length of the golden path, not on its tools: to check for the right
//! calls, use [`trajectory`](super::trajectory). Calls off the golden path and golden steps that
//! were never taken are listed in the detail.
//!
//! A golden path that itself returns to a tool or repeats one can never reach 1.0; the suite loader
//! warns about it. Runs without any call waste nothing: if no run made a call, the verdict is
//! `no_evidence`, except for a golden path of no steps, which they meet.
//!
//! # When not to use it
//! When retries or paging are part of good work: switch those dimensions off, or use
//! [`trajectory_axes`](super::trajectory_axes).
//!
//! # In Rust
//! ```
//! use mcptest_gates::golden_path::{GoldenPath, score_golden_path};
//! use mcptest_trace::trace::ToolCall;
//!
//! let golden = GoldenPath::new(["search", "fetch"]);
//! let calls = ["search", "search", "fetch", "search"].map(|name| ToolCall::new(None, name));
//! let waste = score_golden_path(&golden, &calls);
//! assert_eq!((waste.extra_steps, waste.backtracks, waste.repeated_tools), (2, 1, 1));
//! assert_eq!(waste.penalty(), 1.0 / 3.0);
//! ```

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::first_runs::earliest;
use crate::forecast::{Bounds, Forecast};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, ToolReference, Unit};
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::trace::ToolCallView;

/// Scores the recorded calls for waste against an ideal sequence.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenPath {
    /// The ideal sequence of tools.
    pub calls: Vec<String>,
    /// If true, calls beyond the golden path's length count as waste.
    #[serde(default = "yes")]
    pub penalize_extra_steps: bool,
    /// If true, a return to a tool used earlier counts as waste.
    #[serde(default = "yes")]
    pub penalize_backtracks: bool,
    /// If true, calling the same tool twice in a row counts as waste.
    #[serde(default = "yes")]
    pub penalize_repeated_tools: bool,
    /// Assertions on `golden_path.penalty`, `.passed`, `.extra_steps`, `.backtracks` and
    /// `.repeated_tools`. Default: `golden_path.passed` is 1.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

fn yes() -> bool {
    true
}

impl GoldenPath {
    /// A golden path with every kind of waste penalized.
    #[must_use]
    pub fn new<S: Into<String>>(calls: impl IntoIterator<Item = S>) -> Self {
        Self {
            calls: calls.into_iter().map(Into::into).collect(),
            penalize_extra_steps: true,
            penalize_backtracks: true,
            penalize_repeated_tools: true,
            expect: Vec::new(),
        }
    }

    /// Returns true if the block requires that no call is made.
    fn requires_no_calls(&self) -> bool {
        self.calls.is_empty() && self.penalize_extra_steps
    }
}

/// The waste of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GoldenPathReport {
    /// Calls beyond the golden path's length.
    pub extra_steps: u64,
    /// Returns to a tool used earlier.
    pub backtracks: u64,
    /// Calls of the tool called just before.
    pub repeated_tools: u64,
    /// The sum of those that are penalized.
    pub waste: u64,
    /// Indices of the calls that are backtracks, from 0.
    pub backtracks_at: Vec<usize>,
    /// Indices of the calls that are repeats, from 0.
    pub repeats_at: Vec<usize>,
}

impl GoldenPathReport {
    /// The multiplier: 1.0 without waste, falling towards 0.
    #[must_use]
    pub fn penalty(&self) -> f64 {
        penalty(self.waste)
    }

    /// Returns true if nothing that is penalized was wasted.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.waste == 0
    }
}

fn penalty(waste: u64) -> f64 {
    1.0 / (1.0 + 0.5 * waste as f64)
}

/// The number of items that are compared one by one.
const FEW: usize = 16;

/// The positions where a sequence returns to an earlier item, and where it repeats the previous
/// one.
fn detours<T: Ord>(sequence: impl IntoIterator<Item = T>) -> (Vec<usize>, Vec<usize>) {
    // Few items are found faster one by one.
    let mut few: Vec<T> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut before: Option<T> = None;
    let (mut backtracks, mut repeats) = (Vec::new(), Vec::new());
    for (index, item) in sequence.into_iter().enumerate() {
        if before.as_ref() == Some(&item) {
            repeats.push(index);
            continue;
        }
        if few.contains(&item) || seen.contains(&item) {
            backtracks.push(index);
        }
        if let Some(before) = before.replace(item) {
            if few.len() < FEW {
                few.push(before);
            } else {
                seen.insert(before);
            }
        }
    }
    (backtracks, repeats)
}

/// Finds the waste in the calls of one run.
#[must_use]
pub fn score_golden_path(golden: &GoldenPath, calls: &[ToolCallView<'_>]) -> GoldenPathReport {
    let (backtracks_at, repeats_at) = detours(
        calls
            .iter()
            .map(|call| (call.server.as_deref(), call.name())),
    );
    let extra_steps = calls.len().saturating_sub(golden.calls.len()) as u64;
    let backtracks = backtracks_at.len() as u64;
    let repeated_tools = repeats_at.len() as u64;
    let waste = [
        (golden.penalize_extra_steps, extra_steps),
        (golden.penalize_backtracks, backtracks),
        (golden.penalize_repeated_tools, repeated_tools),
    ]
    .iter()
    .filter(|(penalized, _)| *penalized)
    .map(|(_, count)| count)
    .sum();
    GoldenPathReport {
        extra_steps,
        backtracks,
        repeated_tools,
        waste,
        backtracks_at,
        repeats_at,
    }
}

/// The waste of the observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GoldenPathAccumulator {
    extra_steps: u64,
    backtracks: u64,
    repeated_tools: u64,
    /// The waste of the worst run.
    worst: u64,
    /// True if a run made a call.
    called: bool,
    /// The first run with waste, and its path in one line.
    first_wasteful: Option<(u64, String)>,
    rows: RunRows,
}

impl Accumulator for GoldenPathAccumulator {
    fn merge(&mut self, other: Self) {
        self.extra_steps += other.extra_steps;
        self.backtracks += other.backtracks;
        self.repeated_tools += other.repeated_tools;
        self.worst = self.worst.max(other.worst);
        self.called |= other.called;
        self.first_wasteful = earliest(self.first_wasteful.take(), other.first_wasteful);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        if let Some((run, _)) = &mut self.first_wasteful {
            *run = number(*run);
        }
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.rows.leave_out();
    }
}

impl Gate for GoldenPath {
    const BLOCK: &'static str = "golden_path";
    const SUMMARY: &'static str =
        "Extra steps, backtracks and repeats against an ideal sequence of calls.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "golden_path.penalty",
            Unit::Fraction,
            "1 / (1 + 0.5 * waste) of the most wasteful run.",
        ),
        TargetInfo::new(
            "golden_path.passed",
            Unit::Flag,
            "1 if no run has penalized waste.",
        ),
        TargetInfo::new(
            "golden_path.extra_steps",
            Unit::Count,
            "Calls beyond the golden path's length, over all runs.",
        ),
        TargetInfo::new(
            "golden_path.backtracks",
            Unit::Count,
            "Returns to a tool used earlier, over all runs.",
        ),
        TargetInfo::new(
            "golden_path.repeated_tools",
            Unit::Count,
            "Calls of the tool called just before, over all runs.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "golden_path.passed",
            Matcher::at_least(1),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let (backtracks, repeats) = detours(&self.calls);
        for (places, penalized, words, switch) in [
            (
                backtracks,
                self.penalize_backtracks,
                "returns to",
                "penalize_backtracks",
            ),
            (
                repeats,
                self.penalize_repeated_tools,
                "repeats",
                "penalize_repeated_tools",
            ),
        ] {
            if let Some(index) = places.first().filter(|_| penalized) {
                problems.push(
                    Problem::new(
                        format!("/calls/{index}"),
                        format!(
                            "the golden path itself {words} `{}`: a run that follows it can never reach a penalty of 1.0",
                            self.calls[*index]
                        ),
                    )
                    .help(format!("write `{switch}: false`, or shorten the path"))
                    .as_warning(),
                );
            }
        }
        let penalized =
            self.penalize_extra_steps || self.penalize_backtracks || self.penalize_repeated_tools;
        if !penalized && self.expect.is_empty() {
            problems.push(
                Problem::new(
                    "",
                    "no kind of waste is penalized, so this gate cannot fail",
                )
                .help("leave one switched on, or assert a count under `expect:`")
                .as_warning(),
            );
        }
        problems
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        ToolReference::of_list("/calls", &self.calls).collect()
    }

    type Accumulator = GoldenPathAccumulator;

    fn observe(
        &self,
        accumulator: &mut GoldenPathAccumulator,
        context: &Context<'_>,
        run: &Run<'_>,
    ) {
        let calls = &run.trace.tool_calls;
        let report = score_golden_path(self, calls);
        accumulator.extra_steps += report.extra_steps;
        accumulator.backtracks += report.backtracks;
        accumulator.repeated_tools += report.repeated_tools;
        accumulator.worst = accumulator.worst.max(report.waste);
        accumulator.called |= !calls.is_empty();
        let is_first = match &accumulator.first_wasteful {
            Some((first, _)) => run.index < *first,
            None => true,
        };
        if is_first && !report.passed() {
            let names: Vec<String> = calls.iter().map(|call| one_line(call.name())).collect();
            // The longest part of it that a summary shows.
            let path = shorten(&names.join(" → "), 200);
            accumulator.first_wasteful = Some((run.index, path));
        }
        if !accumulator.rows.are_kept() {
            return;
        }
        let is_step = |call: &ToolCallView<'_>, step: &String| call.is(step, context.servers);
        let off_path = |call: &&ToolCallView<'_>| !self.calls.iter().any(|it| is_step(call, it));
        let not_reached = |step: &&String| !calls.iter().any(|call| is_step(call, step));
        let ids: Vec<String> = calls.iter().map(ToolCallView::full_id).collect();
        let row = PathRow {
            penalty: report.penalty(),
            passed: report.passed(),
            extra_steps: report.extra_steps,
            backtracks: report.backtracks,
            repeated_tools: report.repeated_tools,
            backtracks_at: &report.backtracks_at,
            repeats_at: &report.repeats_at,
            off_path: (calls.iter().zip(&ids))
                .filter(|(call, _)| off_path(call))
                .map(|(_, id)| id.as_str())
                .collect(),
            not_reached: self.calls.iter().filter(not_reached).collect(),
            calls: &ids,
        };
        accumulator.rows.push(run.index, &row);
    }

    fn finish(&self, accumulator: GoldenPathAccumulator, _: &Context<'_>) -> Score {
        let GoldenPathAccumulator {
            extra_steps,
            backtracks,
            repeated_tools,
            worst,
            called,
            first_wasteful,
            rows,
        } = accumulator;
        let mut summary = format!(
            "penalty {:.2} · {extra_steps} extra, {backtracks} back, {repeated_tools} repeated",
            penalty(worst),
        );
        if let Some((run, path)) = first_wasteful {
            summary.push_str(&format!(
                " · {}",
                shorten(&format!("run {run}: {path}"), 200)
            ));
        }
        let mut detail = DetailBuilder::default();
        detail.entry("golden_path", &self.calls);
        rows.write("per_run", "index", &mut detail);
        Score {
            values: vec![
                ("golden_path.penalty", penalty(worst).into()),
                ("golden_path.passed", u8::from(worst == 0).into()),
                ("golden_path.extra_steps", extra_steps.into()),
                ("golden_path.backtracks", backtracks.into()),
                ("golden_path.repeated_tools", repeated_tools.into()),
            ],
            detail: detail.into(),
            summary,
            no_evidence: (!called && !self.requires_no_calls())
                .then(|| "no tool was called, so no call could be waste".to_owned()),
            ..Score::default()
        }
    }

    fn forecast(&self, accumulator: &GoldenPathAccumulator, _: u64) -> Option<Forecast> {
        let penalized =
            self.penalize_extra_steps || self.penalize_backtracks || self.penalize_repeated_tools;
        let lowest_flag = u64::from(!penalized);
        let lowest_penalty = if penalized { 0.0 } else { 1.0 };
        let worst = accumulator.worst;
        let count = Bounds::at_least;
        Some(Forecast {
            bounds: vec![
                (
                    "golden_path.penalty",
                    Bounds::fraction(lowest_penalty, penalty(worst)),
                ),
                (
                    "golden_path.passed",
                    Bounds::between(lowest_flag, u64::from(worst == 0)),
                ),
                ("golden_path.extra_steps", count(accumulator.extra_steps)),
                ("golden_path.backtracks", count(accumulator.backtracks)),
                (
                    "golden_path.repeated_tools",
                    count(accumulator.repeated_tools),
                ),
            ],
            may_lack_evidence: !accumulator.called && !self.requires_no_calls(),
        })
    }
}

/// A row of the report's detail.
#[derive(Serialize)]
struct PathRow<'a> {
    penalty: f64,
    passed: bool,
    extra_steps: u64,
    backtracks: u64,
    repeated_tools: u64,
    backtracks_at: &'a [usize],
    repeats_at: &'a [usize],
    calls: &'a [String],
    off_path: Vec<&'a str>,
    not_reached: Vec<&'a String>,
}

#[cfg(test)]
mod tests;
