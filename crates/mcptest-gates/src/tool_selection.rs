//! A floor under the selection of one tool (`tool_selection:`).
//!
//! **How often does the model call the expected tool, and at what cost?** One run is a coin flip.
//! Over N runs of the same prompt the floor requires two things: a minimum rate of runs that call
//! the expected tool, and, where a cap is set, that *every* run stays within it.
//!
//! # The block
//! ```yaml
//! runs: 10
//! tool_selection:
//!   expected_tool: get_weather
//!   min_selection_rate: 0.8
//!   max_total_tokens: 2000
//! ```
//!
//! # Output
//! ```text
//! PASS   weather: tool_selection  selection 9/10 (90%), pass^k 90%, tokens 1590 median / 1680 max
//! ```
//! The same line is printed on standard error, with each run that missed the floor when it fails.
//!
//! # Formula
//! A run *selects* the tool if any of its calls is that tool. A run is *within budget* if its
//! `conversation.tokens.total` is at most `max_total_tokens`.
//!
//! - selection rate = runs that select / runs
//! - pass^k = runs that select **and** are within budget / runs. This is the plain fraction of good
//!   runs, as the line prints it. It is not the estimator of the `reliability:` block.
//! - tokens: median (of an even count, the mean of the middle two, rounded down) and largest
//! - the floor passes if selection rate ≥ `min_selection_rate` and every run is within budget
//!
//! Percents are rounded down. The rate is compared as written, so 7 of 10 meets 0.7. A run of
//! unknown token usage is not a run of zero tokens: under a cap, it leaves the floor without
//! evidence. The floor always applies, also next to a written `expect:`.
//!
//! # When not to use it
//! With one run: a rate over one run shows nothing.
//!
//! # In Rust
//! ```
//! use mcptest_gates::tool_selection::{ToolSelection, score_tool_selection};
//! use mcptest_trace::{tool_id::KnownServers, trace};
//!
//! let floor: ToolSelection = serde_json::from_str(
//!     r#"{"expected_tool": "get_weather", "min_selection_rate": 0.8, "max_total_tokens": 2000}"#,
//! )?;
//! let traces = trace::read(
//!     r#"{"tool_calls": [{"name": "get_weather"}], "conversation": {"tokens": {"total": 1590}}}"#,
//! )?;
//! let run = score_tool_selection(&floor, &traces[0], &KnownServers::default());
//! assert!(run.selected);
//! assert_eq!((run.tokens, run.within_budget), (Some(1590), Some(true)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::first_runs::FirstRuns;
use crate::forecast::{Bounds, BoundsOf, Forecast, HypotheticalRuns, PooledPercent};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, ToolReference, Unit};
use mcptest_json::text::one_line;
use mcptest_numbers::percent::{self, Rate};
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::{ToolCallView, TraceView};

/// A floor under how often the expected tool is selected, and a cap on what each run may cost.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSelection {
    /// The tool that the model is supposed to call.
    #[schemars(length(min = 1))]
    pub expected_tool: String,
    /// The smallest fraction of runs that must call it, 0.0 to 1.0.
    #[schemars(schema_with = "fraction")]
    pub min_selection_rate: Number,
    /// The largest number of tokens that a run may use. Without it there is no cap.
    #[serde(default)]
    pub max_total_tokens: Option<u64>,
    /// More assertions, on `floor.*`. The floor itself always applies.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

fn fraction(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "number", "minimum": 0, "maximum": 1})
}

/// The middle of the values; of an even count, the mean of the middle two, rounded down.
#[must_use]
pub fn median(values: &[u64]) -> Option<u64> {
    median_of(values.to_vec())
}

fn median_of(mut values: Vec<u64>) -> Option<u64> {
    let is_odd = values.len() % 2 == 1;
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let (below, upper, _) = values.select_nth_unstable(middle);
    if is_odd {
        return Some(*upper);
    }
    let lower = below.iter().copied().max()?;
    // The mean is between the two, so it fits.
    Some(lower + (*upper - lower) / 2)
}

/// One run against the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FloorRun {
    /// True if the run called the expected tool.
    pub selected: bool,
    /// True if the run called the expected tool, and every call of it failed.
    pub only_failed: bool,
    /// The total number of tokens, where it is known.
    pub tokens: Option<u64>,
    /// True if the run is within the cap, or there is no cap; `None` if there is one and the tokens
    /// are unknown.
    pub within_budget: Option<bool>,
}

/// Compares one run with the floor.
#[must_use]
pub fn score_tool_selection(
    floor: &ToolSelection,
    trace: &TraceView<'_>,
    servers: &KnownServers,
) -> FloorRun {
    let calls = &trace.tool_calls;
    let is_expected = |call: &ToolCallView<'_>| call.is(&floor.expected_tool, servers);
    let selected = calls.iter().any(is_expected);
    // Only a run with a failed result needs its results paired.
    let only_failed = selected && trace.failed_results() > 0 && {
        let results = trace.results_by_call();
        let answered = calls.iter().zip(results).any(|(call, result)| {
            let failed = result.is_some_and(|result| result.is_error == Some(true));
            !failed && is_expected(call)
        });
        !answered
    };
    let tokens = trace.total_tokens();
    FloorRun {
        selected,
        only_failed,
        tokens,
        within_budget: floor.within_budget(tokens),
    }
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FloorAccumulator {
    /// Runs that selected the tool.
    selected: u64,
    /// Runs that selected the tool, but in which every call of it failed.
    #[serde(default)]
    only_failed: u64,
    /// Runs that selected the tool within the cap.
    good: u64,
    /// Runs over the cap.
    over_budget: u64,
    /// The largest known number of tokens.
    largest: Option<u64>,
    /// Runs of which the tokens are unknown.
    without_tokens: FirstRuns,
    /// The known numbers of tokens.
    tokens: Vec<u64>,
    runs: u64,
    /// Runs that missed the floor, and why.
    misses: FirstRuns<String>,
    rows: RunRows,
}

impl Accumulator for FloorAccumulator {
    fn merge(&mut self, other: Self) {
        self.selected += other.selected;
        self.only_failed += other.only_failed;
        self.good += other.good;
        self.over_budget += other.over_budget;
        self.largest = self.largest.max(other.largest);
        self.without_tokens.merge(other.without_tokens);
        self.tokens.extend(other.tokens);
        self.runs += other.runs;
        self.misses.merge(other.misses);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.without_tokens.renumber(number);
        self.misses.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.rows.leave_out();
    }
}

impl ToolSelection {
    /// Returns true if a run with these tokens is within the cap; `None` if there is a cap and the
    /// tokens are unknown.
    fn within_budget(&self, tokens: Option<u64>) -> Option<bool> {
        match self.max_total_tokens {
            None => Some(true),
            Some(cap) => tokens.map(|tokens| tokens <= cap),
        }
    }

    fn breaches(&self, rate: Option<Rate>, accumulator: &FloorAccumulator) -> Vec<String> {
        let total = accumulator.runs;
        let selected = accumulator.selected;
        let mut breaches = Vec::new();
        if let Some(rate) = rate.filter(|rate| !rate.met_by(selected, total)) {
            breaches.push(format!(
                "selection rate {}% is below the {}% floor ({selected} of {total} runs selected \
                 `{}`)",
                percent::down(selected, total).unwrap_or(0),
                rate.percent_text(),
                self.expected_tool
            ));
        }
        if let (Some(cap), Some(worst), 1..) = (
            self.max_total_tokens,
            accumulator.largest,
            accumulator.over_budget,
        ) {
            breaches.push(format!(
                "{} of {total} runs exceeded the {cap}-token budget (worst run {worst} tokens)",
                accumulator.over_budget
            ));
        }
        breaches
    }

    /// The bounds of the rates and the floor. With a cap, a later run may exceed it or have unknown
    /// tokens, so only a breach is certain.
    fn rate_bounds(&self, selected: PooledPercent, remaining: u64, over_budget: bool) -> BoundsOf {
        let mut bounds = vec![("floor.selection_rate", selected.bounds(remaining))];
        let capped = self.max_total_tokens.is_some();
        if !capped {
            bounds.push(("floor.pass_hat_k", selected.bounds(remaining)));
        }
        let Some(rate) = Rate::from_number(&self.min_selection_rate) else {
            return bounds;
        };
        let total = selected.whole + remaining;
        if over_budget || !rate.met_by(selected.part + remaining, total) {
            bounds.push(("floor.passed", Bounds::between(0, 0)));
        } else if !capped {
            let certain = rate.met_by(selected.part, total);
            bounds.push(("floor.passed", Bounds::between(u64::from(certain), 1)));
        }
        bounds
    }

    /// The reasons why a run missed.
    fn miss(&self, calls: &[ToolCallView<'_>], selected: bool, tokens: Option<u64>) -> String {
        let mut parts = Vec::new();
        if !selected {
            let called: Vec<&str> = calls.iter().map(ToolCallView::name).collect();
            let called = if called.is_empty() {
                "no tool".to_owned()
            } else {
                one_line(&called.join(", "))
            };
            parts.push(format!(
                "did not select `{}`, called {called}",
                self.expected_tool
            ));
        }
        if let (Some(false), Some(tokens)) = (self.within_budget(tokens), tokens) {
            parts.push(format!("{tokens} tokens, over budget"));
        }
        parts.join("; ")
    }
}

impl FloorAccumulator {
    fn selection(&self) -> PooledPercent {
        PooledPercent {
            part: self.selected,
            whole: self.runs,
            per_run: 1,
        }
    }
}

/// A row of the report's detail.
#[derive(Serialize)]
struct FloorRow<'a> {
    selected: bool,
    tokens: Option<u64>,
    within_budget: Option<bool>,
    called: Vec<&'a str>,
}

impl Gate for ToolSelection {
    const BLOCK: &'static str = "tool_selection";
    const SUMMARY: &'static str = "A floor under how often the expected tool is selected across runs, with an optional token cap per run.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "floor.selection_rate",
            Unit::Percent,
            "Runs that selected the tool.",
        ),
        TargetInfo::new(
            "floor.pass_hat_k",
            Unit::Percent,
            "Runs that selected the tool within the token cap (the plain fraction).",
        ),
        TargetInfo::new(
            "floor.tokens_median",
            Unit::Tokens,
            "Median of the runs' total tokens.",
        ),
        TargetInfo::new(
            "floor.tokens_max",
            Unit::Tokens,
            "Largest of the runs' total tokens.",
        ),
        TargetInfo::new(
            "floor.passed",
            Unit::Flag,
            "1 if the rate is met and every run is within the cap.",
        ),
    ];
    const DEFAULTS_ALWAYS: bool = true;

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "floor.passed",
            Matcher::at_least(1),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        if Rate::from_number(&self.min_selection_rate).is_some() {
            Vec::new()
        } else {
            vec![Problem::new(
                "/min_selection_rate",
                format!(
                    "{} is not a fraction from 0.0 to 1.0",
                    self.min_selection_rate
                ),
            )]
        }
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        vec![ToolReference::new("/expected_tool", &self.expected_tool)]
    }

    type Accumulator = FloorAccumulator;

    fn observe(&self, accumulator: &mut FloorAccumulator, context: &Context<'_>, run: &Run<'_>) {
        let calls = &run.trace.tool_calls;
        let FloorRun {
            selected,
            only_failed,
            tokens,
            within_budget,
        } = score_tool_selection(self, run.trace, context.servers);
        accumulator.selected += u64::from(selected);
        accumulator.only_failed += u64::from(only_failed);
        accumulator.good += u64::from(selected && within_budget == Some(true));
        accumulator.over_budget += u64::from(within_budget == Some(false));
        accumulator.largest = accumulator.largest.max(tokens);
        match tokens {
            Some(tokens) => accumulator.tokens.push(tokens),
            None => accumulator.without_tokens.add(run.index, || ()),
        }
        accumulator.runs += 1;
        if !selected || within_budget == Some(false) {
            let miss = || self.miss(calls, selected, tokens);
            accumulator.misses.add(run.index, miss);
        }
        if accumulator.rows.are_kept() {
            let row = FloorRow {
                selected,
                tokens,
                within_budget,
                called: calls.iter().map(ToolCallView::name).collect(),
            };
            accumulator.rows.push(run.index, &row);
        }
    }

    fn finish(&self, mut accumulator: FloorAccumulator, context: &Context<'_>) -> Score {
        let (total, selected) = (accumulator.runs, accumulator.selected);
        // Figures over part of the runs would look like figures over all of them.
        let all_known = accumulator.without_tokens.count() == 0;
        let budget_known = all_known || self.max_total_tokens.is_none();
        let tokens = std::mem::take(&mut accumulator.tokens);
        let tokens_median = median_of(tokens).filter(|_| all_known);
        let tokens_max = accumulator.largest.filter(|_| all_known);

        let rate = Rate::from_number(&self.min_selection_rate);
        let breaches = self.breaches(rate, &accumulator);
        let passed = if !breaches.is_empty() {
            Some(false)
        } else if budget_known {
            Some(true)
        } else {
            None
        };
        let selection_rate = percent::down(selected, total).unwrap_or(0);
        let pass_hat_k = budget_known.then(|| percent::down(accumulator.good, total).unwrap_or(0));

        let mut score = Score::default();
        let why_tokens = "token usage is unknown in some runs";
        for (target, known) in [
            ("floor.tokens_median", all_known),
            ("floor.tokens_max", all_known),
            ("floor.pass_hat_k", pass_hat_k.is_some()),
            ("floor.passed", passed.is_some()),
        ] {
            if !known {
                score.absent.push((target, why_tokens.to_owned()));
            }
        }
        if !budget_known {
            score.undetermined.push("floor.pass_hat_k");
            if passed.is_none() {
                score.undetermined.push("floor.passed");
            }
            score.no_evidence = Some(format!(
                "token usage is unknown under a token cap (run {})",
                accumulator.without_tokens.indexes()
            ));
        }

        let verdict = match passed {
            Some(true) => "PASS",
            Some(false) => "FAIL",
            None => "NO EVIDENCE",
        };
        let spent = match (tokens_median, tokens_max) {
            (Some(median), Some(max)) => format!("tokens {median} median / {max} max"),
            _ => "tokens unknown".to_owned(),
        };
        let hat = pass_hat_k.map_or_else(|| "unknown".to_owned(), |percent| format!("{percent}%"));
        // Selecting a tool is not the same as getting an answer from it.
        let failed = match accumulator.only_failed {
            0 => String::new(),
            all if all == selected => ", but every call of it failed".to_owned(),
            some => format!(", but in {some} of these runs every call of it failed"),
        };
        score.summary = format!(
            "selection {selected}/{total} ({selection_rate}%), pass^k {hat}, {spent}{failed}"
        );
        score.status_lines.push(format!(
            "tool-selection floor [{verdict}] {}: {}",
            context.label, score.summary
        ));
        score.status_lines.extend(
            breaches
                .iter()
                .map(|breach| format!("FLOOR {}: {breach}", context.label)),
        );
        if !breaches.is_empty() {
            let misses = accumulator.misses.iter();
            let misses = misses.map(|(run, miss)| format!("  run {run}: {miss}"));
            score.status_lines.extend(misses);
            if accumulator.misses.more() > 0 {
                let more = format!("  and {} more runs", accumulator.misses.more());
                score.status_lines.push(more);
            }
        }
        score.values = vec![
            ("floor.selection_rate", selection_rate.into()),
            ("floor.pass_hat_k", pass_hat_k.into()),
            ("floor.tokens_median", tokens_median.into()),
            ("floor.tokens_max", tokens_max.into()),
            ("floor.passed", passed.map(u8::from).into()),
        ];
        let mut detail = DetailBuilder::default();
        detail.entry("expected_tool", &self.expected_tool);
        detail.entry("passed", &passed);
        detail.entry("runs", &total);
        detail.entry("selected", &selected);
        detail.entry("selection_rate", &selection_rate);
        detail.entry("pass_hat_k", &pass_hat_k);
        let estimator = "fraction of runs that selected the tool within budget";
        detail.entry("pass_hat_k_estimator", &estimator);
        detail.entry("tokens_median", &tokens_median);
        detail.entry("tokens_max", &tokens_max);
        detail.entry("breaches", &breaches);
        accumulator.rows.write("per_run", "index", &mut detail);
        score.detail = detail.into();
        score
    }

    fn forecast(&self, accumulator: &FloorAccumulator, remaining: u64) -> Option<Forecast> {
        let over_budget = accumulator.over_budget > 0;
        let mut bounds = self.rate_bounds(accumulator.selection(), remaining, over_budget);
        if accumulator.without_tokens.count() > 0 {
            bounds.push(("floor.tokens_median", Bounds::Absent));
            bounds.push(("floor.tokens_max", Bounds::Absent));
        } else {
            // The tokens of a later run may be unknown, and then there is no figure over all runs.
            let largest = accumulator.largest.unwrap_or(0);
            bounds.push(("floor.tokens_max", Bounds::at_least(largest).or_absent()));
        }
        Some(Forecast {
            bounds,
            may_lack_evidence: self.max_total_tokens.is_some(),
        })
    }

    fn hypothetical(
        &self,
        accumulator: &FloorAccumulator,
        next: HypotheticalRuns,
        remaining: u64,
    ) -> Option<BoundsOf> {
        // Under a cap, one run can break the floor.
        if self.max_total_tokens.is_some() {
            return None;
        }
        let selection = accumulator.selection().after(next);
        Some(self.rate_bounds(selection, remaining, false))
    }
}

#[cfg(test)]
mod tests;
