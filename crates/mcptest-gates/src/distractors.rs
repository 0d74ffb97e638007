//! Tool selection among distractors (`distractors:`).
//!
//! **Does the agent still pick the right tool when many are offered?** A model that is perfect on
//! the three tools a task needs may fail when thirty are offered. The block adds tools to the offer
//! that the task does not need, in a seeded order, and counts the calls of them. This is the
//! tool-overload setup of MCPAgentBench (arXiv:2512.24565) and MCP-Atlas (arXiv:2602.00933).
//!
//! # The block
//! ```yaml
//! runs: 10
//! distractors:
//!   counts: [0, 4, 16]        # the test's runs at each of these; or one count: 4
//!   source: { from: near_duplicate, of: [search_products] }
//!   correct: [catalog.search_products]
//!   complexity: serial        # or parallel: a dimension of reports, not used in the arithmetic
//!   seed: 7
//!   expect:
//!     - distractors.accuracy: { ">=": 80 }
//!     - distractors.certified_lower: { ">=": 50 }
//! ```
//!
//! | `source` | tools |
//! |---|---|
//! | `{from: catalog}` | a bundled set of complete, plausible tools from many domains; those about the same thing as an offered tool come last |
//! | `{from: near_duplicate, of: [..]}` | near-duplicates of the named tools: another version, an internal twin, other casing, singular for plural; never the name of a real tool |
//!
//! A distractor that is called answers with an error that means "not the tool you want". Its id is
//! kept in the trace (`distractors`), so a recorded trace can be scored without the run.
//!
//! # Output
//! ```text
//! PASS   books: distractors  accuracy 93 · right 14, distractors 1 · 0 of 15 runs chose nothing · certified 72 · accuracy by count 0: 100, 4: 100, 16: 80 · fell for: catalog.search_v2
//! ```
//! The report's `detail.curve` has accuracy against count. If a test states a `complexity`, every
//! reporter also lists the curves by complexity.
//!
//! # Formula
//! Every call is a choice. It is *correct* if it is one of `correct`, else a *distractor* if it is
//! one of the trace's `distractors`, else out of scope and ignored. Ids with a server's name match
//! the full id, bare ones the tool's name on any server. Over all runs:
//!
//! - `distractors.accuracy` = ⌊100 · correct / (correct + distractors)⌋. With nothing in scope it
//!   is 0; only where no id is declared correct either it is 100, with the verdict `no_evidence`.
//! - `distractors.chose_distractor` = the number of choices that were distractors
//! - `distractors.certified_lower` = the exact (Clopper-Pearson) lower bound on the rate of
//!   successful runs, one-sided at 95 %, in whole percent, rounded down. A run succeeds with at
//!   least one correct choice and no distractor. One perfect run certifies 5 percent, ten certify
//!   74.
//!
//! Accuracy does not count runs without any call, so their number ("chose nothing") is always shown
//! next to it, and the number of runs that chose only other tools where there are any. If
//! distractors were requested and no trace lists any, the agent never met one, and the verdict is
//! `no_evidence`. When `expect:` is omitted, accuracy must reach 50.
//!
//! # When not to use it
//! To test whether the right tool is chosen at all: that is `equal_function_sets:`. And with few
//! runs, do not assert `certified_lower`: no result of five runs can certify more than 54 percent.
//!
//! # In Rust
//! ```
//! use mcptest_gates::distractors::score_distractors;
//! use mcptest_trace::tool_id::KnownServers;
//! use mcptest_trace::trace::ToolCall;
//!
//! let correct = ["shop.search".to_owned()];
//! let distractors = ["shop.search_v2".to_owned()];
//! let calls = [
//!     ToolCall::new(Some("shop"), "search"),
//!     ToolCall::new(Some("shop"), "search_v2"),
//!     ToolCall::new(None, "help"),
//! ];
//! let choices = score_distractors(&correct, &distractors, &calls, &KnownServers::default());
//! assert_eq!((choices.counts.chose_correct, choices.counts.chose_distractor), (1, 1));
//! assert_eq!(choices.counts.accuracy(1), 50);
//! assert!(!choices.succeeded());
//! ```

pub use mcptest_catalog::distractors::{
    Bundled, Complexity, Distractors, InjectionError, PlannedRun, Source, SourceKind, bundled,
    offer_order, plan_injection, refusal,
};

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::first_runs::FirstSeen;
use crate::forecast::{Bounds, Forecast};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, ToolReference, Unit};
use mcptest_numbers::percent;
use mcptest_numbers::statistics::certified_percent;
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::ToolCallView;

/// Scores the agent's choices among the tools that its block adds to the offer.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct DistractorsGate(pub Distractors);

/// The schema is that of the block.
impl JsonSchema for DistractorsGate {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Distractors::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Distractors>()
    }
}

/// The counts of choices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChoiceCounts {
    /// Choices of a right tool.
    pub chose_correct: u64,
    /// Choices of a distractor.
    pub chose_distractor: u64,
}

impl ChoiceCounts {
    /// Choices that count.
    #[must_use]
    pub fn in_scope(self) -> u64 {
        self.chose_correct + self.chose_distractor
    }

    /// The share of right choices in whole percent, rounded down, where `declared` ids are declared
    /// correct.
    #[must_use]
    pub fn accuracy(self, declared: usize) -> u64 {
        let vacuous = if declared == 0 { 100 } else { 0 };
        percent::down(self.chose_correct, self.in_scope()).unwrap_or(vacuous)
    }

    /// Sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            chose_correct: self.chose_correct + other.chose_correct,
            chose_distractor: self.chose_distractor + other.chose_distractor,
        }
    }
}

/// One run's choices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Choices {
    /// The counts.
    pub counts: ChoiceCounts,
    /// The distractors that were chosen, each once, in the order of calls.
    pub fell_for: Vec<String>,
}

impl Choices {
    /// At least one right choice and no distractor.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.counts.chose_correct > 0 && self.counts.chose_distractor == 0
    }
}

/// Applies the counting rule to the calls of one run.
#[must_use]
pub fn score_distractors(
    correct: &[String],
    distractors: &[String],
    calls: &[ToolCallView<'_>],
    servers: &KnownServers,
) -> Choices {
    let mut choices = Choices::default();
    for call in calls {
        let is_one_of = |ids: &[String]| ids.iter().any(|id| call.is(id, servers));
        if is_one_of(correct) {
            choices.counts.chose_correct += 1;
        } else if is_one_of(distractors) {
            choices.counts.chose_distractor += 1;
            let id = call.full_id();
            if !choices.fell_for.contains(&id) {
                choices.fell_for.push(id);
            }
        }
    }
    choices
}

/// The sums over several runs.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Pool {
    counts: ChoiceCounts,
    runs: u64,
    succeeded: u64,
    /// Runs without any call.
    chose_nothing: u64,
    /// Runs whose calls were all out of scope.
    #[serde(default)]
    chose_only_others: u64,
}

impl Pool {
    /// The sums of one run.
    fn of(choices: &Choices, calls: usize) -> Self {
        let in_scope = choices.counts.in_scope() > 0;
        Self {
            counts: choices.counts,
            runs: 1,
            succeeded: u64::from(choices.succeeded()),
            chose_nothing: u64::from(calls == 0),
            chose_only_others: u64::from(calls > 0 && !in_scope),
        }
    }

    fn merge(&mut self, other: Self) {
        self.counts = self.counts.plus(other.counts);
        self.runs += other.runs;
        self.succeeded += other.succeeded;
        self.chose_nothing += other.chose_nothing;
        self.chose_only_others += other.chose_only_others;
    }
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DistractorsAccumulator {
    pool: Pool,
    /// True if a run was offered a distractor.
    met: bool,
    /// The runs by the number of distractors in the offer.
    by_count: BTreeMap<usize, Pool>,
    /// The runs of which that number is unknown.
    of_unknown_count: Option<Pool>,
    fell_for: FirstSeen,
    rows: RunRows,
}

impl Accumulator for DistractorsAccumulator {
    fn merge(&mut self, other: Self) {
        self.pool.merge(other.pool);
        self.met |= other.met;
        for (count, pool) in other.by_count {
            self.by_count.entry(count).or_default().merge(pool);
        }
        if let Some(pool) = other.of_unknown_count {
            self.of_unknown_count.get_or_insert_default().merge(pool);
        }
        self.fell_for.merge(other.fell_for);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.fell_for.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.rows.leave_out();
    }
}

/// The figures at one number of distractors.
#[derive(Serialize)]
struct CurvePoint {
    runs: u64,
    accuracy: u64,
    chose_correct: u64,
    chose_distractor: u64,
    succeeded: u64,
    chose_nothing: u64,
    chose_only_others: u64,
    certified_lower: u64,
    count: Option<usize>,
}

/// A row of the report's detail.
#[derive(Serialize)]
struct ChoiceRow<'a> {
    injected: Option<usize>,
    calls: usize,
    chose_correct: u64,
    chose_distractor: u64,
    fell_for: &'a [String],
    succeeded: bool,
}

impl Gate for DistractorsGate {
    const BLOCK: &'static str = "distractors";
    const SUMMARY: &'static str =
        "Accuracy of tool selection among injected distractors, with a certified lower bound.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "distractors.accuracy",
            Unit::Percent,
            "The percent of choices in scope that were right.",
        ),
        TargetInfo::new(
            "distractors.chose_distractor",
            Unit::Count,
            "The number of choices that were distractors.",
        ),
        TargetInfo::new(
            "distractors.certified_lower",
            Unit::Percent,
            "Exact lower bound on the rate of successful runs at 95 % confidence.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "distractors.accuracy",
            Matcher::at_least(50),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.0.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        self.0.problems()
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        let of = self.0.source.of.as_deref().unwrap_or_default();
        ToolReference::of_list("/correct", &self.0.correct)
            .chain(ToolReference::of_list("/source/of", of))
            .collect()
    }

    type Accumulator = DistractorsAccumulator;

    fn observe(
        &self,
        accumulator: &mut DistractorsAccumulator,
        context: &Context<'_>,
        run: &Run<'_>,
    ) {
        let injected = run.trace.distractors.as_deref();
        let choices = score_distractors(
            &self.0.correct,
            injected.unwrap_or_default(),
            &run.trace.tool_calls,
            context.servers,
        );
        accumulator.met |= injected.is_some_and(|list| !list.is_empty());
        let calls = run.trace.tool_calls.len();
        let pool = Pool::of(&choices, calls);
        accumulator.pool.merge(pool);
        let injected = injected.map(<[String]>::len);
        let same_count = match injected {
            Some(count) => accumulator.by_count.entry(count).or_default(),
            None => accumulator.of_unknown_count.get_or_insert_default(),
        };
        same_count.merge(pool);
        for (at, id) in choices.fell_for.iter().enumerate() {
            accumulator.fell_for.add(run.index, at, id);
        }
        accumulator.rows.push(
            run.index,
            &ChoiceRow {
                injected,
                calls,
                chose_correct: choices.counts.chose_correct,
                chose_distractor: choices.counts.chose_distractor,
                fell_for: &choices.fell_for,
                succeeded: choices.succeeded(),
            },
        );
    }

    fn finish(&self, accumulator: DistractorsAccumulator, _: &Context<'_>) -> Score {
        let declared = self.0.correct.len();
        let DistractorsAccumulator {
            pool,
            met,
            by_count,
            of_unknown_count,
            fell_for,
            rows,
        } = accumulator;
        let unknown = of_unknown_count.into_iter().map(|pool| (None, pool));
        let known = by_count.into_iter();
        let known = known.map(|(count, pool)| (Some(count), pool));
        let by_count: Vec<(Option<usize>, Pool)> = unknown.chain(known).collect();
        let fell_for = fell_for.names();
        let accuracy = pool.counts.accuracy(declared);
        let certified = certified_percent(pool.succeeded, pool.runs);

        let mut score = Score::default();
        if declared == 0 && pool.counts.in_scope() == 0 {
            score.no_evidence =
                Some("no tool is declared correct, and no distractor was chosen".to_owned());
        } else if !met && self.0.planned_counts().iter().any(|count| *count > 0) {
            score.no_evidence =
                Some("no trace lists an injected distractor, so none was met".to_owned());
        }
        score.summary = format!(
            "accuracy {accuracy} · right {}, distractors {} · {} of {} runs chose nothing · \
             certified {certified}",
            pool.counts.chose_correct, pool.counts.chose_distractor, pool.chose_nothing, pool.runs
        );
        if pool.chose_only_others > 0 {
            score.summary.push_str(&format!(
                " · {} of {} chose only other tools",
                pool.chose_only_others, pool.runs
            ));
        }
        if by_count.len() > 1 {
            let points: Vec<String> = by_count
                .iter()
                .map(|(count, pool)| {
                    let count = count.map_or_else(|| "?".to_owned(), |count| count.to_string());
                    format!("{count}: {}", pool.counts.accuracy(declared))
                })
                .collect();
            score
                .summary
                .push_str(&format!(" · accuracy by count {}", points.join(", ")));
        }
        if !fell_for.is_empty() {
            score
                .summary
                .push_str(&format!(" · fell for: {}", fell_for.join(", ")));
        }
        score.values = vec![
            ("distractors.accuracy", accuracy.into()),
            (
                "distractors.chose_distractor",
                pool.counts.chose_distractor.into(),
            ),
            ("distractors.certified_lower", certified.into()),
        ];
        let curve = by_count.iter().map(|(count, pool)| CurvePoint {
            runs: pool.runs,
            accuracy: pool.counts.accuracy(declared),
            chose_correct: pool.counts.chose_correct,
            chose_distractor: pool.counts.chose_distractor,
            succeeded: pool.succeeded,
            chose_nothing: pool.chose_nothing,
            chose_only_others: pool.chose_only_others,
            certified_lower: certified_percent(pool.succeeded, pool.runs),
            count: *count,
        });
        let mut detail = DetailBuilder::default();
        detail.entry("runs", &pool.runs);
        detail.entry("accuracy", &accuracy);
        detail.entry("chose_correct", &pool.counts.chose_correct);
        detail.entry("chose_distractor", &pool.counts.chose_distractor);
        detail.entry("succeeded", &pool.succeeded);
        detail.entry("chose_nothing", &pool.chose_nothing);
        detail.entry("chose_only_others", &pool.chose_only_others);
        detail.entry("certified_lower", &certified);
        detail.entry("complexity", &self.0.complexity);
        detail.entry("fell_for", &fell_for);
        detail.entry("curve", &curve.collect::<Vec<_>>());
        rows.write("per_run", "index", &mut detail);
        score.detail = detail.into();
        score
    }

    fn forecast(&self, accumulator: &DistractorsAccumulator, remaining: u64) -> Option<Forecast> {
        let DistractorsAccumulator { pool, met, .. } = accumulator;
        let wrong = pool.counts.chose_distractor;
        // Any number of right or wrong choices may follow: after one wrong choice, 100 is out of
        // reach.
        let best = match (wrong, self.0.correct.is_empty()) {
            (0, _) => 100,
            (_, true) => 0,
            (_, false) => 99,
        };
        let runs = pool.runs + remaining;
        let certified = Bounds::between(
            certified_percent(pool.succeeded, runs),
            certified_percent(pool.succeeded + remaining, runs),
        );
        let planned = self.0.planned_counts().iter().any(|count| *count > 0);
        Some(Forecast {
            bounds: vec![
                ("distractors.accuracy", Bounds::between(0, best)),
                ("distractors.chose_distractor", Bounds::at_least(wrong)),
                ("distractors.certified_lower", certified),
            ],
            may_lack_evidence: (self.0.correct.is_empty() && wrong == 0) || (planned && !met),
        })
    }
}

#[cfg(test)]
mod tests;
