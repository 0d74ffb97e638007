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
//! [`validate_trace`](trajectory::validate_trace) or [`score_recovery`](recovery::score_recovery).
//! (`reliability:` is about several runs: [`summarize`](reliability::summarize) takes one outcome
//! per run, and [`compare_runs`](stability::compare_runs) compares traces.) All of them take their
//! arguments in the same order: the reference (what was expected, or the limits), then the evidence
//! (a trace, its calls, or figures of it), then the servers that tool names are resolved with. They
//! return a typed report; where the reference can be invalid, the error has a separate type.
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
//! let loading = LoadContext { to_run: false, runs: None, siblings: &[], attacks: Default::default() };
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
//! One gate is one file, named after its block in the suite (`narrative:` is a separate crate,
//! [`mcptest_narrative`]). It holds its user page (the module's documentation), the block as
//! written in YAML, its targets, the scoring function, the accumulator, its default expectation,
//! and tests from worked examples. [`GATES`] lists them all; the suite loader, the JSON Schema, the
//! docs, `run` and `score` read that list and nothing else.
//!
//! # Judging
//! 1. Runs that ended with an error are not observed: they are no evidence about the agent.
//! 2. Every figure has a name (a *target*); all of them are reported, asserted or not.
//! 3. The `expect:` list of the block applies, or the gate's default if there is none.
//! 4. An assertion that does not hold is a `fail`. If all hold, but only because there was nothing
//!    to judge, the verdict is `no_evidence`.

pub mod distractors;
pub mod equal_function_sets;
pub mod golden_path;
pub mod injection;
pub mod orchestration;
pub mod recovery;
pub mod reliability;
pub mod stability;
pub mod token_efficiency;
pub mod tool_edges;
pub mod tool_selection;
pub mod trajectory;
pub mod trajectory_axes;

pub use mcptest_catalog::discovery;
pub use mcptest_gate_api::{
    Accumulator, AccumulatorError, AttackContext, Context, Gate, GateAccumulator, GateInfo,
    GateOutcome, LoadContext, LoadedGate, ReadingRequest, Run, Score, TargetInfo, ToolReference,
    Unit, find_in, forecast, mutate,
};
use mcptest_gate_api::{digest, first_runs, packed_runs, run_rows};
pub use mcptest_narrative as narrative;

/// All gates, in the order in which reports show them.
pub static GATES: &[GateInfo] = &[
    GateInfo::of::<equal_function_sets::EqualFunctionSets>(),
    GateInfo::of::<tool_selection::ToolSelection>(),
    GateInfo::of::<distractors::DistractorsGate>(),
    GateInfo::of::<orchestration::Orchestration>(),
    GateInfo::of::<token_efficiency::TokenEfficiency>(),
    GateInfo::of::<trajectory::Trajectory>(),
    GateInfo::of::<trajectory_axes::TrajectoryAxes>(),
    GateInfo::of::<golden_path::GoldenPath>(),
    GateInfo::of::<stability::Stability>(),
    GateInfo::of::<reliability::Reliability>(),
    GateInfo::of::<recovery::Recovery>(),
    GateInfo::of::<injection::Injection>(),
    GateInfo::of::<narrative::Narrative>(),
    GateInfo::of::<tool_edges::ToolEdges>(),
];

/// The gate with this block name.
#[must_use]
pub fn find(block: &str) -> Option<&'static GateInfo> {
    find_in(GATES, block)
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
            attacks: Default::default(),
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

    use mcptest_trace::expect::{Expectation, WrittenExpectation};
    use mcptest_trace::trace::Trace;
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

    /// Only `narrative:` reads the closing message.
    #[test]
    fn a_rewritten_message_changes_only_the_narrative() {
        let told = |text: &str| -> [Trace; 1] {
            let trace = json!({"tool_calls": [{"name": "create_issue"}], "final_response": text});
            [serde_json::from_value(trace).unwrap()]
        };
        let (before, after) = (told("I created the issue."), told("I deleted the moon."));
        let values = |block: &str, written: &serde_json::Value, traces: &[Trace]| {
            testing::judge(block, written, traces).values
        };
        for (block, written) in [
            (
                "equal_function_sets",
                json!({"classes": [{"name": "create", "members": ["create_issue"]}]}),
            ),
            (
                "tool_selection",
                json!({"expected_tool": "create_issue", "min_selection_rate": 0.5}),
            ),
        ] {
            let (before, after) = (
                values(block, &written, &before),
                values(block, &written, &after),
            );
            assert_eq!(before, after, "{block}");
        }
        let block = json!({});
        assert_ne!(
            values("narrative", &block, &before),
            values("narrative", &block, &after)
        );
    }

    #[test]
    fn parts_merge_into_the_whole() {
        let gate = testing::load("golden_path", &json!({"calls": ["a"]})).unwrap();
        let traces: Vec<Trace> = ["a", "b", "a"]
            .iter()
            .map(|name| serde_json::from_value(json!({"tool_calls": [{"name": name}]})).unwrap())
            .collect();
        let runs = Run::number(&traces);
        testing::with_context(|context| {
            let mut last = gate.accumulator();
            last.observe(context, &runs[2]);
            let mut parts = gate.accumulator();
            runs[..2]
                .iter()
                .rev()
                .for_each(|run| parts.observe(context, run));
            last.merge(gate.accumulator_from_json(&parts.to_json()).unwrap());
            assert_eq!(last.runs(), 3);
            assert_eq!(last.finish(context), gate.judge(context, &runs));
            assert!(gate.accumulator_from_json("7").is_err());
        });
    }

    #[test]
    #[should_panic(expected = "accumulators of two gates")]
    fn accumulators_of_two_gates_do_not_merge() {
        let golden = testing::load("golden_path", &json!({"calls": ["a"]})).unwrap();
        let edges = testing::load("tool_edges", &json!({"restricted": ["a"]})).unwrap();
        golden.accumulator().merge(edges.accumulator());
    }
}
