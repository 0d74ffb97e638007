//! Gates: blocks of a test that turn the traces of its runs into figures and judge them.
//!
//! Score a trace:
//!
//! ```
//! use mcptest_gates::golden_path::{GoldenPath, score_golden_path};
//! use mcptest_trace::trace;
//!
//! let text = r#"{"tool_calls": [{"name": "search"}, {"name": "search"}, {"name": "order"}]}"#;
//! let traces = trace::read(text)?;
//! let golden = GoldenPath::new(["search", "order"]);
//! let report = score_golden_path(&golden, &traces[0].tool_calls);
//! assert_eq!((report.extra_steps, report.repeated_tools), (1, 1));
//! assert_eq!(report.penalty(), 0.5);
//! # Ok::<(), trace::TraceSyntaxError>(())
//! ```
//!
//! # Scoring functions
//! Each gate has a pure function that scores one run, such as
//! [`validate_trace`](trajectory::validate_trace) or
//! [`score_recovery`](recovery::score_recovery). All of them take their arguments in the same
//! order: the reference (what was expected, or the limits), then the evidence (a trace or its
//! calls), then the servers that tool names are resolved with. They return a typed report; where
//! the reference can be invalid, the error is a type of its own.
//!
//! # Gates over many runs
//! A gate observes one run at a time into an accumulator. Accumulators merge in any order and go
//! through JSON, so parts of the runs can be observed on several threads or machines:
//!
//! ```
//! use mcptest_catalog::prices::Prices;
//! use mcptest_gates::{Context, LoadContext, LoadedGate, Run, find};
//! use mcptest_trace::tool_id::KnownServers;
//! use mcptest_trace::trace;
//! use serde_json::json;
//!
//! let written = json!({"restricted": ["shop.refund"]});
//! let loading = LoadContext { to_run: false, runs: None, siblings: &[] };
//! let (gate, _) = LoadedGate::load(find("tool_edges").unwrap(), &written, &loading);
//! let gate = gate.unwrap();
//!
//! let servers = KnownServers::default();
//! let context = Context { label: "books", servers: &servers, model: None, prices: Prices::builtin() };
//! let traces = trace::read(r#"[
//!     {"tool_calls": [{"server": "shop", "name": "order"}]},
//!     {"tool_calls": [{"server": "shop", "name": "refund"}]}
//! ]"#).unwrap();
//! let runs = Run::number(&traces);
//! let mut first = gate.accumulator();
//! first.observe(&context, &runs[0]);
//! let mut second = gate.accumulator();
//! second.observe(&context, &runs[1]);
//! second.merge(gate.accumulator_from_json(&first.to_json()).unwrap());
//! assert_eq!(second.finish(&context).values["edges.restricted_attempts"], 1);
//! ```
//!
//! # Adding a gate
//! One gate is one file, named after its block in the suite. It holds its user page (the module's
//! documentation), the block as written in YAML, its targets, the scoring function, the
//! accumulator, its default expectation, and tests from worked examples. [`GATES`] lists them all;
//! the suite loader, the JSON Schema, the docs, `run` and `score` read that list and nothing else.
//!
//! # Judging
//! 1. Runs that ended with an error are not observed: they are no evidence about the agent.
//! 2. Every figure has a name (a *target*); all of them are reported, asserted or not.
//! 3. The `expect:` list of the block applies, or the gate's default if there is none.
//! 4. An assertion that does not hold is a `fail`. If all hold, but only because there was nothing
//!    to
//!    judge, the verdict is `no_evidence`.

mod accumulate;
mod digest;
pub mod discovery;
pub mod distractors;
pub mod equal_function_sets;
pub mod forecast;
pub mod golden_path;
mod loaded;
pub mod mutate;
mod names;
pub mod narrative;
pub mod orchestration;
mod per_run;
pub mod recovery;
pub mod reliability;
pub mod stability;
pub mod token_efficiency;
pub mod tool_edges;
pub mod tool_selection;
pub mod trajectory;
pub mod trajectory_axes;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use mcptest_catalog::prices::Prices;
use mcptest_json::pointer_join;
use mcptest_trace::detail::Detail;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::Problem;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::TraceView;

pub use accumulate::{AccumulatorError, GateAccumulator};
use accumulate::{AnyBlock, Block};
use forecast::{BoundsOf, Forecast, HypotheticalRuns};
pub use loaded::LoadedGate;
pub use mcptest_trace::outcome::{GateOutcome, TargetInfo, Unit};

/// All gates, in the order in which reports show them.
pub static GATES: &[GateInfo] = &[
    gate::<equal_function_sets::EqualFunctionSets>(),
    gate::<tool_selection::ToolSelection>(),
    gate::<distractors::Distractors>(),
    gate::<orchestration::Orchestration>(),
    gate::<token_efficiency::TokenEfficiency>(),
    gate::<trajectory::Trajectory>(),
    gate::<trajectory_axes::TrajectoryAxes>(),
    gate::<golden_path::GoldenPath>(),
    gate::<stability::Stability>(),
    gate::<reliability::Reliability>(),
    gate::<recovery::Recovery>(),
    gate::<narrative::Narrative>(),
    gate::<tool_edges::ToolEdges>(),
];

/// The facts about a test that its blocks can use when the suite is loaded.
#[derive(Debug, Clone, Copy)]
pub struct LoadContext<'a> {
    /// True if the suite is to be run; else it only scores recorded traces.
    pub to_run: bool,
    /// `runs:` as written.
    pub runs: Option<u32>,
    /// The test's gate blocks as written, this one included.
    pub siblings: &'a [(String, Value)],
}

impl LoadContext<'_> {
    /// Another block of the same test, as written.
    #[must_use]
    pub fn sibling(&self, block: &str) -> Option<&Value> {
        self.siblings
            .iter()
            .find(|(name, _)| name == block)
            .map(|(_, written)| written)
    }
}

/// The facts that a gate needs in addition to the traces.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The name of the test in messages (with the model, if there are several).
    pub label: &'a str,
    /// The suite's servers.
    pub servers: &'a KnownServers,
    /// The model that ran, where known.
    pub model: Option<&'a str>,
    /// The prices of tokens.
    pub prices: &'a Prices,
}

/// One run that ended without an error.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The number of the run, from 1.
    pub index: u64,
    /// The recorded calls and messages.
    pub trace: &'a TraceView<'a>,
    /// True if all of the test's `expect:` assertions held in this run; `None` if it has none.
    pub expectations_held: Option<bool>,
}

impl<'a> Run<'a> {
    /// The runs of a test without `expect:` assertions, numbered from 1.
    #[must_use]
    pub fn number(traces: &'a [TraceView<'a>]) -> Vec<Self> {
        traces
            .iter()
            .zip(1..)
            .map(|(trace, index)| Self {
                index,
                trace,
                expectations_held: None,
            })
            .collect()
    }
}

/// A gate's block as its file defines it.
pub trait Gate: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The block's name in a suite.
    const BLOCK: &'static str;
    /// The subject of its figures, in one line.
    const SUMMARY: &'static str;
    /// Every figure it reports.
    const TARGETS: &'static [TargetInfo];
    /// True if the defaults also hold next to written expectations (for gates whose fields set the
    /// bar).
    const DEFAULTS_ALWAYS: bool = false;

    /// The default expectations.
    fn defaults(&self) -> Vec<Expectation>;

    /// The written `expect:` list.
    fn expect(&self) -> &[WrittenExpectation];

    /// Reads the other blocks of the test that scoring needs, and finds problems that the schema
    /// does not find. Pointers start at the block.
    fn check(&mut self, context: &LoadContext<'_>) -> Vec<Problem> {
        let _ = context;
        Vec::new()
    }

    /// The facts that the gate keeps of the runs it has observed.
    type Accumulator: Accumulator;

    /// Adds the facts of one run.
    fn observe(&self, accumulator: &mut Self::Accumulator, context: &Context<'_>, run: &Run<'_>);

    /// Computes the figures of at least one run.
    fn finish(&self, accumulator: Self::Accumulator, context: &Context<'_>) -> Score;

    /// The bounds of the figures after up to `remaining` further runs, whatever those do. A gate
    /// that needs all runs returns `None`. Before the first run the bounds are not used.
    fn forecast(&self, accumulator: &Self::Accumulator, remaining: u64) -> Option<Forecast> {
        let _ = (accumulator, remaining);
        None
    }

    /// The same bounds if certain runs come first, for figures that good runs only raise and bad
    /// ones only lower. `None` for a gate that a single run may decide.
    fn hypothetical(
        &self,
        accumulator: &Self::Accumulator,
        next: HypotheticalRuns,
        remaining: u64,
    ) -> Option<BoundsOf> {
        let _ = (accumulator, next, remaining);
        None
    }
}

/// Facts about runs: plain data that merges.
///
/// Merging the accumulators of any split of the runs, in any order, gives the accumulator of all of
/// them. Facts that depend on the order of runs are kept by run index.
pub trait Accumulator: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Adds the facts of another accumulator.
    fn merge(&mut self, other: Self);

    /// Gives every run another index. The order of the runs must stay the same.
    fn renumber(&mut self, number: &dyn Fn(u64) -> u64);
}

/// The figures of a gate, before they are judged.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Score {
    /// Every target of the gate; `null` for an undefined figure.
    pub values: Vec<(&'static str, Value)>,
    /// The reasons why figures are undefined.
    pub absent: Vec<(&'static str, String)>,
    /// The facts behind the figures, for the report.
    pub detail: Detail,
    /// A summary in one line.
    pub summary: String,
    /// Set when the figures are good only because nothing was there to judge.
    pub no_evidence: Option<String>,
    /// Targets that are undefined because evidence is missing: an assertion on them cannot be
    /// judged, which is not a failure.
    pub undetermined: Vec<&'static str>,
    /// The problems, one line each, for readers of a failure.
    pub findings: Vec<String>,
    /// Lines that the command prints on standard error with every reporter.
    pub status_lines: Vec<String>,
}

/// The entry of a gate in the registry.
pub struct GateInfo {
    /// The block's name in a suite.
    pub block: &'static str,
    /// The subject of its figures, in one line.
    pub summary: &'static str,
    /// Every figure it reports.
    pub targets: &'static [TargetInfo],
    /// The block's JSON Schema.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// Reads a block.
    load: fn(&Value, &LoadContext<'_>) -> LoadedBlock,
}

/// A block that can score, unless a problem is an error; and all problems.
type LoadedBlock = (Option<Box<dyn AnyBlock>>, Vec<Problem>);

impl std::fmt::Debug for GateInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GateInfo({})", self.block)
    }
}

const fn gate<G: Gate>() -> GateInfo {
    GateInfo {
        block: G::BLOCK,
        summary: G::SUMMARY,
        targets: G::TARGETS,
        schema: |generator| generator.subschema_for::<G>(),
        load: |written, context| {
            let mut gate: G = match serde_json::from_value(written.clone()) {
                Ok(gate) => gate,
                Err(error) => return (None, vec![Problem::new("", error.to_string())]),
            };
            let mut problems = gate.check(context);
            let expectations = expectations(&gate, &mut problems);
            let usable = problems.iter().all(|problem| problem.warning);
            let block: Option<Box<dyn AnyBlock>> = if usable {
                Some(Box::new(Block { gate, expectations }))
            } else {
                None
            };
            (block, problems)
        },
    }
}

/// The gate with this block name.
#[must_use]
pub fn find(block: &str) -> Option<&'static GateInfo> {
    GATES.iter().find(|gate| gate.block == block)
}

fn expectations<G: Gate>(block: &G, problems: &mut Vec<Problem>) -> Vec<Expectation> {
    let mut all = Vec::new();
    if block.expect().is_empty() || G::DEFAULTS_ALWAYS {
        all.extend(block.defaults());
    }
    for (index, written) in block.expect().iter().enumerate() {
        let at = format!("/expect/{index}");
        match Expectation::compile(written, &at) {
            Ok(expectation) => {
                problems.extend(unknown_target::<G>(&expectation, written, &at));
                problems.extend(expectation.refuse_judge(written, &at, &format!("`{}`", G::BLOCK)));
                all.push(expectation);
            }
            Err(more) => problems.extend(more),
        }
    }
    all
}

fn unknown_target<G: Gate>(
    expectation: &Expectation,
    written: &WrittenExpectation,
    at: &str,
) -> Option<Problem> {
    let text = expectation.target.as_str();
    let known = G::TARGETS.iter().any(|target| {
        text.strip_prefix(target.name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
    });
    if known {
        return None;
    }
    let names: Vec<&str> = G::TARGETS.iter().map(|target| target.name).collect();
    let message = format!("`{text}` is not a target of `{}`", G::BLOCK);
    let help = format!("its targets are {}", names.join(", "));
    Some(if written.0.get("target").is_some() {
        Problem::new(pointer_join(at, "target"), message).help(help)
    } else {
        Problem::new(pointer_join(at, text), message)
            .help(help)
            .on_key()
    })
}

/// Helpers of the gates' unit tests.
#[cfg(test)]
pub(crate) mod testing {
    use super::{Context, GateOutcome, LoadContext, LoadedGate, Run, find};
    use mcptest_catalog::prices::Prices;
    use mcptest_trace::matcher::Problem;
    use mcptest_trace::tool_id::KnownServers;
    use mcptest_trace::trace::TraceView;
    use serde_json::Value;

    /// Loads a block for running with `runs: 10` and no siblings.
    pub(crate) fn load(block: &str, written: &Value) -> Result<LoadedGate, Vec<Problem>> {
        let siblings = [(block.to_owned(), written.clone())];
        let context = LoadContext {
            to_run: true,
            runs: Some(10),
            siblings: &siblings,
        };
        match LoadedGate::load(find(block).unwrap(), written, &context) {
            (Some(gate), _) => Ok(gate),
            (None, problems) => Err(problems),
        }
    }

    /// Loads a block and judges traces with it.
    pub(crate) fn judge(block: &str, written: &Value, traces: &[TraceView<'_>]) -> GateOutcome {
        judge_runs(block, written, &Run::number(traces))
    }

    /// Loads a block and judges runs with it.
    pub(crate) fn judge_runs(block: &str, written: &Value, runs: &[Run<'_>]) -> GateOutcome {
        with_context(|context| load(block, written).unwrap().judge(context, runs))
    }

    /// Calls a function with the context of a test without servers and models.
    pub(crate) fn with_context<R>(call: impl FnOnce(&Context<'_>) -> R) -> R {
        call(&Context {
            label: "test",
            servers: &KnownServers::default(),
            model: None,
            prices: Prices::builtin(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_registry_has_no_gaps() {
        let mut blocks = BTreeSet::new();
        let mut targets = BTreeSet::new();
        for gate in GATES {
            assert!(blocks.insert(gate.block), "{} is listed twice", gate.block);
            assert!(!gate.summary.is_empty(), "{} has no summary", gate.block);
            assert!(!gate.targets.is_empty(), "{} has no targets", gate.block);
            for target in gate.targets {
                assert!(!target.doc.is_empty(), "{} has no doc", target.name);
                assert!(
                    targets.insert(target.name),
                    "{} belongs to two gates",
                    target.name
                );
                assert!(
                    mcptest_trace::target::Target::parse(target.name).is_ok(),
                    "{} is not a path",
                    target.name
                );
            }
        }
        for name in &targets {
            let prefix = format!("{name}.");
            assert!(
                !targets.iter().any(|other| other.starts_with(&prefix)),
                "{name} is a prefix of another target"
            );
        }
    }

    #[test]
    fn every_gate_refuses_a_judge() {
        for gate in crate::GATES {
            let written = json!({"llm-judge": {"rubric": "r", "threshold": 0.5, "model": "m"}});
            let target = gate.targets[0].name;
            let written = WrittenExpectation(json!({"target": target, "matcher": written}));
            let expectation = Expectation::compile(&written, "/expect/0").unwrap();
            let problem = expectation
                .refuse_judge(&written, "/expect/0", gate.block)
                .unwrap();
            assert_eq!(problem.pointer, "/expect/0/matcher/llm-judge");
        }
        let block = json!({"calls": [], "expect": [{"golden_path.passed": {"llm-judge": {"rubric": "r", "threshold": 0.5, "model": "m"}}}]});
        let problems = crate::testing::load("golden_path", &block).unwrap_err();
        assert_eq!(
            problems[0].pointer,
            "/expect/0/golden_path.passed/llm-judge"
        );
    }
}
