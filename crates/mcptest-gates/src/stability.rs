//! The steadiness of sessions (`stability:`).
//!
//! **Does the agent work steadily, within a run and between runs?** A long session can go wrong
//! without any error: the agent hops from tool to tool, repeats a call that failed, alternates
//! between one word and a wall of text, or spends more and more tokens on nothing. Four sub-scores
//! measure that inside each run; three more figures compare the runs with each other. The idea is a
//! deterministic part of the Agent Stability Index (arXiv:2601.04170). It measures the shape of a
//! session, not its meaning, so a low score means "inspect this session".
//!
//! # The block
//! ```yaml
//! runs: 5
//! stability:
//!   expect:
//!     - stability.score: { ">=": 0.7 }
//!     - stability.variance: { "<=": 0.05 }
//!     - stability.redundancy: { ">=": 0.9 }
//! ```
//!
//! # Output
//! ```text
//! FAIL   books: stability  score 0.500 · weakest 0.500 · same order 1.000 · same arguments 0.778 · worst: tool_usage_stability of run 1
//!        stability.score
//!          expected  >= 0.7
//!          actual    0.5
//! ```
//!
//! # Formula
//! Each run has four sub-scores from 0 to 1, higher is steadier:
//!
//! | sub-score | formula |
//! |---|---|
//! | `tool_usage_stability` | 1 - (distinct tools - 1) / (calls - 1); 1 with fewer than two calls. A tool is its server and its name |
//! | `response_consistency` | 1 - min(1, deviation / mean) of the lengths of the assistant's turns, in characters (population deviation; turns without text do not count); 1 with fewer than two |
//! | `redundancy` | distinct calls / calls, a call being server, name and arguments (in any order of keys); 1 without calls |
//! | `cost_per_progress` | 2000 / max(2000, tokens / distinct calls); without any call 0 if tokens were spent and 1 if none were; unknown without a token count |
//!
//! A run of at most one assistant turn and at most one call has nothing to judge: all four are 1. A
//! run's *weakest score* is the lowest of its known sub-scores. Over the runs:
//!
//! | target | formula |
//! |---|---|
//! | `stability.score` | mean of the weakest scores |
//! | `stability.weakest_score` | lowest of the weakest scores |
//! | `stability.variance` | population variance of the weakest scores |
//! | `stability.tool_sequence_similarity` | mean over all pairs of runs of 2 LCS / (length + length) of the sequences of tool names; 1 for two empty ones |
//! | `stability.argument_consistency` | mean over all pairs of the share of equal arguments among the positions where both call the same name; 1 where there is none |
//! | `stability.early_divergence` | 1 if of the pairs that differ in names more than half part at the first or second call, else 0. Where one sequence begins the other, they part at the shorter one's end |
//! | `stability.tool_usage_stability`, `.response_consistency`, `.redundancy`, `.cost_per_progress` | the lowest of that sub-score over the runs; `cost_per_progress` is undefined if any run's is |
//!
//! Means and variances are computed over exact fractions and rounded once. When `expect:` is
//! omitted, `weakest_score` must reach 0.5.
//!
//! The block needs a sample: a test with fewer than two `runs:` is rejected when the suite is
//! loaded, and a single recorded trace is no evidence.
//!
//! Runs with equal sequences are compared once, so the time grows with the number of runs. Only
//! where all n sequences of names differ are n²/2 pairs compared, several together with the bits of
//! a machine word each.
//!
//! # When not to use it
//! On sessions that are meant to differ or to use a new tool at each step. For "the right calls in
//! the right order" there is `trajectory:`. The shape of a session does not show what the answer
//! means.
//!
//! # In Rust
//! ```
//! use mcptest_gates::stability::score_session;
//! use mcptest_trace::trace::{ToolCall, Trace};
//!
//! let trace = Trace {
//!     tool_calls: ["search", "search", "fetch"].map(|name| ToolCall::new(None, name)).to_vec(),
//!     ..Trace::default()
//! };
//! let scores = score_session(&trace);
//! assert_eq!(scores.tool_usage_stability(), 0.5);
//! assert_eq!(scores.redundancy(), 2.0 / 3.0);
//! assert_eq!(scores.cost_per_progress(), None); // nobody counted tokens
//! assert_eq!(scores.weakest_score(), 0.5);
//! ```

mod argument_numbers;
mod arguments;
mod common_subsequence;
mod compare;
mod equal_lanes;
mod groups;
mod lists;
mod sequences;
mod session;
mod units;

pub use compare::{Comparison, compare_runs};
pub use sequences::{StabilityAccumulator, score_session};
pub use session::{SessionScores, TARGET_TOKENS};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::first_runs::FirstRuns;
use crate::{Context, Gate, LoadContext, Run, Score, TargetInfo, Unit};
use mcptest_numbers::ratio::{Ratio, mean_and_variance};
use mcptest_trace::detail::{Detail, DetailBuilder};
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};

/// Scores the steadiness of sessions, within each run and between the runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stability {
    /// Assertions on `stability.*`. Default: `stability.weakest_score` is at least 0.5.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

const TOOL_USAGE: &str = "stability.tool_usage_stability";
const RESPONSES: &str = "stability.response_consistency";
const REDUNDANCY: &str = "stability.redundancy";
const COST: &str = "stability.cost_per_progress";

impl Gate for Stability {
    const BLOCK: &'static str = "stability";
    const SUMMARY: &'static str =
        "The steadiness of sessions, within each run and between the runs.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "stability.score",
            Unit::Fraction,
            "Mean of the runs' weakest scores.",
        ),
        TargetInfo::new(
            "stability.weakest_score",
            Unit::Fraction,
            "Lowest of the runs' weakest scores.",
        ),
        TargetInfo::new(
            "stability.variance",
            Unit::Fraction,
            "Population variance of the runs' weakest scores.",
        ),
        TargetInfo::new(
            "stability.tool_sequence_similarity",
            Unit::Fraction,
            "The similarity of the runs' orders of calls.",
        ),
        TargetInfo::new(
            "stability.argument_consistency",
            Unit::Fraction,
            "The share of equal arguments among calls in step with each other.",
        ),
        TargetInfo::new(
            "stability.early_divergence",
            Unit::Flag,
            "1 if most of the pairs of runs that part do so in the first two calls.",
        ),
        TargetInfo {
            name: TOOL_USAGE,
            unit: Unit::Fraction,
            doc: "The sub-score of the number of different tools, in the worst run.",
        },
        TargetInfo {
            name: RESPONSES,
            unit: Unit::Fraction,
            doc: "The sub-score of the lengths of the assistant's turns, in the worst run.",
        },
        TargetInfo {
            name: REDUNDANCY,
            unit: Unit::Fraction,
            doc: "The share of calls that are not repeats, in the worst run.",
        },
        TargetInfo {
            name: COST,
            unit: Unit::Fraction,
            doc: "The sub-score of the tokens per useful call, in the worst run.",
        },
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "stability.weakest_score",
            Matcher::at_least(0.5),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, context: &LoadContext<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let too_few = match context.runs {
            Some(runs) => runs < 2,
            None => context.to_run,
        };
        if too_few {
            problems.push(
                Problem::new("", "`stability` compares runs, and this test has only one")
                    .help("set `runs:` to at least 2"),
            );
        }
        problems
    }

    type Accumulator = StabilityAccumulator;

    fn observe(&self, accumulator: &mut StabilityAccumulator, _: &Context<'_>, run: &Run<'_>) {
        accumulator.observe(run.index, run.trace);
    }

    fn finish(&self, mut accumulator: StabilityAccumulator, _: &Context<'_>) -> Score {
        accumulator.sort();
        let sessions = Sessions::of(&accumulator);
        let comparison = compare::compare(&accumulator);
        let moments = mean_and_variance(|| scores(&accumulator).map(|(_, one)| one.into_weakest()));
        let (overall, variance) = moments.unzip();
        let worst = sessions.worst.as_ref().map(|worst| worst.score.to_f64());

        let mut score = Score::default();
        if sessions.cost_per_progress.is_none() {
            let mut unknown = FirstRuns::default();
            for (index, one) in scores(&accumulator) {
                if one.cost_per_progress.is_none() {
                    unknown.add(index, || ());
                }
            }
            let why = format!("token usage is unknown (run {})", unknown.indexes());
            score.absent.push((COST, why));
        }
        let runs = &accumulator.runs;
        if runs.len() < 2 {
            score.no_evidence = Some("one run shows nothing about stability".to_owned());
            score.undetermined = Self::TARGETS.iter().map(|target| target.name).collect();
        } else if runs
            .iter()
            .all(|run| accumulator.sequence(run).is_empty() && run.session.turns < 2)
        {
            score.no_evidence = Some("no run made a call or had more than one turn".to_owned());
        }
        score.summary = summary(&sessions, overall, worst, &comparison);
        score.values = vec![
            ("stability.score", overall.into()),
            ("stability.weakest_score", worst.into()),
            ("stability.variance", variance.into()),
            (
                "stability.tool_sequence_similarity",
                comparison.tool_sequence_similarity.into(),
            ),
            (
                "stability.argument_consistency",
                comparison.argument_consistency.into(),
            ),
            (
                "stability.early_divergence",
                u8::from(comparison.early_divergence).into(),
            ),
            (TOOL_USAGE, sessions.tool_usage_stability.into()),
            (RESPONSES, sessions.response_consistency.into()),
            (REDUNDANCY, sessions.redundancy.into()),
            (COST, sessions.cost_per_progress.into()),
        ];
        score.detail = detail(&accumulator, &comparison);
        score
    }
}

/// The sub-scores of the runs, with their indexes.
fn scores(accumulator: &StabilityAccumulator) -> impl Iterator<Item = (u64, SessionScores)> {
    accumulator.runs.iter().map(|run| {
        let calls = accumulator.distinct(run);
        (run.index, run.session.score(&calls))
    })
}

/// The lowest sub-scores over all runs.
#[derive(Default)]
struct Sessions {
    tool_usage_stability: Option<f64>,
    response_consistency: Option<f64>,
    redundancy: Option<f64>,
    /// Undefined if that of a run is.
    cost_per_progress: Option<f64>,
    /// The first of the runs with the lowest weakest score.
    worst: Option<WorstRun>,
}

struct WorstRun {
    index: u64,
    score: Ratio,
    name: &'static str,
}

impl Sessions {
    fn of(accumulator: &StabilityAccumulator) -> Self {
        let mut sessions = Self::default();
        let lower =
            |lowest: Option<f64>, score: f64| Some(lowest.map_or(score, |low| low.min(score)));
        let mut cost_known = true;
        for (index, session) in scores(accumulator) {
            sessions.tool_usage_stability = lower(
                sessions.tool_usage_stability,
                session.tool_usage_stability(),
            );
            sessions.response_consistency = lower(
                sessions.response_consistency,
                session.response_consistency(),
            );
            sessions.redundancy = lower(sessions.redundancy, session.redundancy());
            match session.cost_per_progress() {
                Some(cost) => sessions.cost_per_progress = lower(sessions.cost_per_progress, cost),
                None => cost_known = false,
            }
            let worst = sessions.worst.as_ref();
            if worst.is_none_or(|worst| *session.weakest() < worst.score) {
                sessions.worst = Some(WorstRun {
                    index,
                    name: weakest_name(&session),
                    score: session.into_weakest(),
                });
            }
        }
        sessions.cost_per_progress = sessions.cost_per_progress.filter(|_| cost_known);
        sessions
    }
}

fn summary(
    sessions: &Sessions,
    overall: Option<f64>,
    worst: Option<f64>,
    comparison: &Comparison,
) -> String {
    let mut summary = format!(
        "score {:.3} · weakest {:.3} · same order {:.3} · same arguments {:.3}",
        overall.unwrap_or(0.0),
        worst.unwrap_or(0.0),
        comparison.tool_sequence_similarity,
        comparison.argument_consistency
    );
    if comparison.early_divergence {
        summary.push_str(" · runs part early");
    }
    let worst = sessions.worst.as_ref();
    if let Some(worst) = worst.filter(|worst| worst.score < Ratio::one()) {
        summary.push_str(&format!(" · worst: {} of run {}", worst.name, worst.index));
    }
    summary
}

fn weakest_name(session: &SessionScores) -> &'static str {
    let weakest = session.weakest();
    if session.redundancy == *weakest {
        "redundancy"
    } else if session.tool_usage_stability == *weakest {
        "tool_usage_stability"
    } else if session.response_consistency == *weakest {
        "response_consistency"
    } else {
        "cost_per_progress"
    }
}

/// Two runs and the call at which they part.
#[derive(Serialize)]
struct SplitRow<'a> {
    runs: [u64; 2],
    at: usize,
    calls: [Option<&'a str>; 2],
}

#[derive(Serialize)]
struct SessionRow<'a> {
    index: u64,
    tool_usage_stability: f64,
    response_consistency: f64,
    redundancy: f64,
    cost_per_progress: Option<f64>,
    weakest_score: f64,
    weakest: &'static str,
    repeated: Vec<&'a str>,
}

fn detail(accumulator: &StabilityAccumulator, comparison: &Comparison) -> Detail {
    let runs = &accumulator.runs;
    let splits = comparison.splits.iter().filter_map(|(first, second, at)| {
        let (first, second) = (runs.get(*first)?, runs.get(*second)?);
        let called = |run| {
            let tool = *accumulator.sequence(run).get(*at)?;
            accumulator.tool(tool).map(|tool| tool.id.as_str())
        };
        Some(SplitRow {
            runs: [first.index, second.index],
            at: *at,
            calls: [called(first), called(second)],
        })
    });
    let mut detail = DetailBuilder::default();
    detail.entry("target_tokens", &TARGET_TOKENS);
    detail.entry("diverging_pairs", &comparison.diverging_pairs);
    detail.entry("splits", &splits.collect::<Vec<_>>());
    if accumulator.without_rows {
        return detail.into();
    }
    detail.list("per_run", |each| {
        for run in runs {
            let calls = accumulator.distinct(run);
            let session = run.session.score(&calls);
            let row = SessionRow {
                index: run.index,
                tool_usage_stability: session.tool_usage_stability(),
                response_consistency: session.response_consistency(),
                redundancy: session.redundancy(),
                cost_per_progress: session.cost_per_progress(),
                weakest_score: session.weakest_score(),
                weakest: weakest_name(&session),
                repeated: calls.repeated,
            };
            // A row has only numbers and strings, which always serialise.
            each(&serde_json::to_vec(&row).unwrap_or_default());
        }
    });
    detail.into()
}

#[cfg(test)]
mod tests;
