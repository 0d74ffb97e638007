//! Tool selection by capability (`equal_function_sets:`).
//!
//! **Did the agent pick the right kind of tool?** Tools that do the same job form a class, and any
//! member of a class is a right choice. So a test does not break when a second server offers the
//! same ability. The idea is from MSC-Bench (arXiv:2510.19423).
//!
//! # The block
//! ```yaml
//! equal_function_sets:
//!   classes:
//!     - { name: search, members: [catalog.search, catalog.web_search] }
//!     - { name: buy, members: [shop.order] }
//!   expect:
//!     - tool_selection.f1: { ">=": 80 }
//! ```
//!
//! # Output
//! ```text
//! FAIL   books: equal_function_sets  f1 50 · precision 50 · recall 50 · missed: buy · unexpected: shell.exec
//!        tool_selection.f1
//!          expected  >= 80
//!          actual    50
//! ```
//!
//! # Formula
//! Over the calls of one run: a class is a true positive if at least one call is a member of it,
//! else a false negative. A call that is a member of no class is a false positive, each time it is
//! made. A call that is a member of two classes satisfies both, and calling two members of one
//! class changes nothing, so the order of calls never matters. Counts are summed over all runs
//! first (micro-average), then, rounded down to whole percents:
//!
//! - precision = TP / (TP + FP)
//! - recall = TP / (TP + FN)
//! - F1 = 2 TP / (2 TP + FP + FN)
//!
//! A zero denominator gives 0. No classes and no calls give 100 on all three, and the verdict
//! `no_evidence`. When `expect:` is omitted, `tool_selection.f1` must reach 50.
//!
//! # When not to use it
//! When correctness is in the answer's text, or when the order of calls or their arguments matter.
//!
//! # In Rust
//! ```
//! use mcptest_gates::equal_function_sets::{Class, score_selection};
//! use mcptest_trace::tool_id::KnownServers;
//! use mcptest_trace::trace::ToolCall;
//!
//! let classes = [
//!     Class { name: "search".into(), members: vec!["brave.web_search".into(), "google.search".into()] },
//!     Class { name: "fetch".into(), members: vec!["http.get".into()] },
//! ];
//! let calls = [ToolCall::new(Some("google"), "search"), ToolCall::new(Some("shell"), "exec")];
//! let selection = score_selection(&classes, &calls, &KnownServers::default());
//! let counts = selection.counts;
//! assert_eq!((counts.precision(), counts.recall(), counts.f1()), (50, 50, 50));
//! assert_eq!(selection.missed, ["fetch"]);
//! assert_eq!(selection.unexpected, ["shell.exec"]);
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::first_runs::FirstSeen;
use crate::forecast::{Bounds, BoundsOf, Forecast, HypotheticalRuns, PooledPercent};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, ToolReference, Unit};
use mcptest_numbers::percent;
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::ToolCallView;

/// Scores tool selection by capability classes: any member of a class is a right choice.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EqualFunctionSets {
    /// The capabilities that the task needs.
    pub classes: Vec<Class>,
    /// Assertions on `tool_selection.f1`, `.precision` and `.recall`. Default: `tool_selection.f1`
    /// is at least 50.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

/// Tools that do the same job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The name of the capability in messages.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Tool ids: `server.tool`, or a bare tool name that matches on any server.
    #[schemars(length(min = 1))]
    pub members: Vec<String>,
}

impl Class {
    /// Returns true if a call is one of its members.
    #[must_use]
    pub fn has(&self, call: &ToolCallView<'_>, servers: &KnownServers) -> bool {
        self.members.iter().any(|member| call.is(member, servers))
    }
}

/// The counts, before any percent is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SelectionCounts {
    /// Classes that were reached.
    pub true_positives: u64,
    /// Calls that belong to no class.
    pub false_positives: u64,
    /// Classes that were not reached.
    pub false_negatives: u64,
}

impl SelectionCounts {
    /// Sums, as the micro-average does.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            true_positives: self.true_positives + other.true_positives,
            false_positives: self.false_positives + other.false_positives,
            false_negatives: self.false_negatives + other.false_negatives,
        }
    }

    /// Nothing was asked for and nothing was called.
    #[must_use]
    pub fn is_vacuous(self) -> bool {
        self == Self::default()
    }

    /// The percent of chosen tools that were on target.
    #[must_use]
    pub fn precision(self) -> u64 {
        self.percent(
            self.true_positives,
            self.true_positives + self.false_positives,
        )
    }

    /// The percent of needed capabilities that were reached.
    #[must_use]
    pub fn recall(self) -> u64 {
        self.percent(
            self.true_positives,
            self.true_positives + self.false_negatives,
        )
    }

    /// The harmonic mean of the two, from the counts and not from rounded percents.
    #[must_use]
    pub fn f1(self) -> u64 {
        let twice = 2 * self.true_positives;
        self.percent(twice, twice + self.false_positives + self.false_negatives)
    }

    fn percent(self, part: u64, whole: u64) -> u64 {
        if self.is_vacuous() {
            100
        } else {
            percent::down(part, whole).unwrap_or(0)
        }
    }
}

/// One run against the classes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Selection {
    /// The counts.
    pub counts: SelectionCounts,
    /// Names of classes that were not reached, in the order declared.
    pub missed: Vec<String>,
    /// Ids of called tools that belong to no class, each once, in the order of calls.
    pub unexpected: Vec<String>,
}

/// Applies the counting rule to the calls of one run.
#[must_use]
pub fn score_selection(
    classes: &[Class],
    calls: &[ToolCallView<'_>],
    servers: &KnownServers,
) -> Selection {
    let mut selection = Selection::default();
    let mut unexpected = Vec::new();
    selection.counts = count_selection(
        classes,
        calls,
        servers,
        &mut Vec::new(),
        |class| selection.missed.push(class.name.clone()),
        |_, call| push_once(&mut unexpected, call.full_id()),
    );
    selection.unexpected = unexpected;
    selection
}

/// Applies the counting rule. Calls a function with each class that was not reached, and another
/// one with each call that belongs to no class and its index. `reached` is a scratch buffer.
fn count_selection<'t>(
    classes: &[Class],
    calls: &'t [ToolCallView<'t>],
    servers: &KnownServers,
    reached: &mut Vec<bool>,
    mut missed: impl FnMut(&Class),
    mut unexpected: impl FnMut(usize, &'t ToolCallView<'t>),
) -> SelectionCounts {
    let mut counts = SelectionCounts::default();
    reached.clear();
    reached.resize(classes.len(), false);
    for (at, call) in calls.iter().enumerate() {
        let mut is_expected = false;
        for (class, reached) in classes.iter().zip(reached.iter_mut()) {
            let has = class.has(call, servers);
            is_expected |= has;
            *reached |= has;
        }
        if !is_expected {
            counts.false_positives += 1;
            unexpected(at, call);
        }
    }
    for (class, reached) in classes.iter().zip(reached.iter()) {
        if *reached {
            counts.true_positives += 1;
        } else {
            counts.false_negatives += 1;
            missed(class);
        }
    }
    counts
}

/// The classes and tools that selections name, each once, in the order of the runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct NamedTools {
    pub missed: FirstSeen,
    pub unexpected: FirstSeen,
    #[serde(skip)]
    reached: Vec<bool>,
}

impl NamedTools {
    /// Counts the selection of a run, and adds the names. Nothing is built for known names.
    pub fn observe(
        &mut self,
        classes: &[Class],
        run: &Run<'_>,
        servers: &KnownServers,
    ) -> SelectionCounts {
        let Self {
            missed,
            unexpected,
            reached,
        } = self;
        let mut missed_classes = 0;
        count_selection(
            classes,
            &run.trace.tool_calls,
            servers,
            reached,
            |class| {
                missed.add(run.index, missed_classes, &class.name);
                missed_classes += 1;
            },
            |at, call| {
                unexpected.add_tool(run.index, at, call.server.as_deref(), call.name());
            },
        )
    }

    pub fn merge(&mut self, other: Self) {
        self.missed.merge(other.missed);
        self.unexpected.merge(other.unexpected);
    }

    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.missed.renumber(number);
        self.unexpected.renumber(number);
    }
}

/// The selections of the observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SelectionAccumulator {
    counts: SelectionCounts,
    runs: u64,
    named: NamedTools,
    rows: RunRows,
}

impl Accumulator for SelectionAccumulator {
    fn merge(&mut self, other: Self) {
        self.counts = self.counts.plus(other.counts);
        self.runs += other.runs;
        self.named.merge(other.named);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.named.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.rows.leave_out();
    }
}

/// The bounds of the three figures.
pub(crate) struct SelectionBounds {
    pub f1: Bounds,
    pub precision: Bounds,
    pub recall: Bounds,
}

impl SelectionBounds {
    /// A run reaches every class at most, and can make any number of calls that belong to none.
    pub fn new(counts: SelectionCounts, runs: u64, classes: usize, remaining: u64) -> Self {
        let Some(recall) = pooled_recall(counts, runs, classes) else {
            // Without classes all three are 100 until a call is made, and 0 from then on.
            let high = if counts.is_vacuous() { 100 } else { 0 };
            return Self {
                f1: Bounds::between(0, high),
                precision: Bounds::between(0, high),
                recall: Bounds::between(0, high),
            };
        };
        let best = SelectionCounts {
            true_positives: counts
                .true_positives
                .saturating_add((classes as u64).saturating_mul(remaining)),
            ..counts
        };
        let low = |now: u64| if remaining == 0 { now } else { 0 };
        Self {
            f1: Bounds::between(low(counts.f1()), best.f1()),
            precision: Bounds::between(low(counts.precision()), best.precision()),
            recall: recall.bounds(remaining),
        }
    }
}

/// The percent of classes reached; `None` without classes, where a first call changes the figure.
pub(crate) fn pooled_recall(
    counts: SelectionCounts,
    runs: u64,
    classes: usize,
) -> Option<PooledPercent> {
    (classes > 0).then_some(PooledPercent {
        part: counts.true_positives,
        whole: classes as u64 * runs,
        per_run: classes as u64,
    })
}

/// The tools that a block's `classes:` name.
pub(super) fn class_tools(classes: &[Class]) -> Vec<ToolReference> {
    let mut tools = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        let pointer = format!("/classes/{index}/members");
        tools.extend(ToolReference::of_list(&pointer, &class.members));
    }
    tools
}

/// The problems of a block's `classes:` that the schema does not find.
pub(super) fn check_classes(classes: &[Class]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        if classes[..index]
            .iter()
            .any(|other| other.name == class.name)
        {
            problems.push(Problem::new(
                format!("/classes/{index}/name"),
                format!("a second class called `{}`", class.name),
            ));
        }
    }
    problems
}

pub(super) fn push_once(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

impl Gate for EqualFunctionSets {
    const BLOCK: &'static str = "equal_function_sets";
    const SUMMARY: &'static str =
        "Precision, recall and F1 of tool selection against classes of interchangeable tools.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "tool_selection.f1",
            Unit::Percent,
            "Harmonic mean of precision and recall.",
        ),
        TargetInfo::new(
            "tool_selection.precision",
            Unit::Percent,
            "The percent of chosen tools that were on target.",
        ),
        TargetInfo::new(
            "tool_selection.recall",
            Unit::Percent,
            "The percent of needed capabilities that were reached.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "tool_selection.f1",
            Matcher::at_least(50),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        check_classes(&self.classes)
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        class_tools(&self.classes)
    }

    type Accumulator = SelectionAccumulator;

    fn observe(
        &self,
        accumulator: &mut SelectionAccumulator,
        context: &Context<'_>,
        run: &Run<'_>,
    ) {
        let counts = (accumulator.named).observe(&self.classes, run, context.servers);
        accumulator.counts = accumulator.counts.plus(counts);
        accumulator.runs += 1;
        if accumulator.rows.are_kept() {
            let calls = &run.trace.tool_calls;
            let selection = score_selection(&self.classes, calls, context.servers);
            let row = SelectionRow {
                true_positives: counts.true_positives,
                false_positives: counts.false_positives,
                false_negatives: counts.false_negatives,
                missed: &selection.missed,
                unexpected: &selection.unexpected,
            };
            accumulator.rows.push(run.index, &row);
        }
    }

    fn finish(&self, accumulator: SelectionAccumulator, _: &Context<'_>) -> Score {
        let SelectionAccumulator {
            counts,
            named,
            rows,
            ..
        } = accumulator;
        let (missed, unexpected) = (named.missed.names(), named.unexpected.names());
        let mut summary = format!(
            "f1 {} · precision {} · recall {}",
            counts.f1(),
            counts.precision(),
            counts.recall()
        );
        if !missed.is_empty() {
            summary.push_str(&format!(" · missed: {}", missed.join(", ")));
        }
        if !unexpected.is_empty() {
            summary.push_str(&format!(" · unexpected: {}", unexpected.join(", ")));
        }
        let mut detail = DetailBuilder::default();
        detail.entry("missed", &missed);
        detail.entry("unexpected", &unexpected);
        detail.entry("true_positives", &counts.true_positives);
        detail.entry("false_positives", &counts.false_positives);
        detail.entry("false_negatives", &counts.false_negatives);
        rows.write("per_run", "index", &mut detail);
        Score {
            values: vec![
                ("tool_selection.f1", counts.f1().into()),
                ("tool_selection.precision", counts.precision().into()),
                ("tool_selection.recall", counts.recall().into()),
            ],
            detail: detail.into(),
            summary,
            no_evidence: counts
                .is_vacuous()
                .then(|| "no class is declared and no tool was called".to_owned()),
            ..Score::default()
        }
    }

    fn forecast(&self, accumulator: &SelectionAccumulator, remaining: u64) -> Option<Forecast> {
        let SelectionAccumulator { counts, runs, .. } = accumulator;
        let bounds = SelectionBounds::new(*counts, *runs, self.classes.len(), remaining);
        Some(Forecast {
            bounds: vec![
                ("tool_selection.f1", bounds.f1),
                ("tool_selection.precision", bounds.precision),
                ("tool_selection.recall", bounds.recall),
            ],
            may_lack_evidence: counts.is_vacuous() && self.classes.is_empty(),
        })
    }

    fn hypothetical(
        &self,
        accumulator: &SelectionAccumulator,
        next: HypotheticalRuns,
        remaining: u64,
    ) -> Option<BoundsOf> {
        let SelectionAccumulator { counts, runs, .. } = accumulator;
        let recall = pooled_recall(*counts, *runs, self.classes.len())?;
        Some(vec![(
            "tool_selection.recall",
            recall.after(next).bounds(remaining),
        )])
    }
}

/// A row of the report's detail.
#[derive(Serialize)]
struct SelectionRow<'a> {
    true_positives: u64,
    false_positives: u64,
    false_negatives: u64,
    missed: &'a [String],
    unexpected: &'a [String],
}

#[cfg(test)]
mod tests;
