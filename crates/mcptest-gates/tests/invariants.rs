//! Properties of every gate.
//!
//! - Rewriting the assistant's messages changes `narrative.*`, `stability.response_consistency` and
//!   the stability figures that contain it, and nothing else.
//! - Shuffling the keys of argument objects changes nothing at all.
//! - Shuffling runs changes only figures that are about their order (decay and graceful
//!   degradation).

mod support;

use std::collections::BTreeSet;

use mcptest_catalog::prices::Prices;
use mcptest_gates::{Context, GATES, GateOutcome, LoadContext, LoadedGate, Run};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::Trace;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::trace;

/// A block of every gate, so that each has figures for the traces below.
fn blocks() -> Vec<(String, Value)> {
    let classes = json!([{"name": "search", "members": ["a.search", "find"]}, {"name": "write", "members": ["create_note"]}]);
    GATES
        .iter()
        .map(|gate| {
            let block = match gate.block {
                "equal_function_sets" | "token_efficiency" => json!({"classes": classes}),
                "tool_selection" => json!({"expected_tool": "search", "min_selection_rate": 0.5, "max_total_tokens": 500}),
                "distractors" => json!({"count": 2, "source": {"from": "catalog"}, "correct": ["a.search"]}),
                "trajectory" => json!({"mode": "unordered", "calls": [{"name": "search", "args": {"subset": {"q": 1}}}, {"name": "create_note"}]}),
                "trajectory_axes" => json!({"dependencies": [{"producer": "search", "consumer": "create_note"}], "order": [{"first": "find", "second": "search"}]}),
                "golden_path" => json!({"calls": ["search", "create_note"]}),
                "recovery" => json!({"max_detection_ms": 100}),
                "tool_edges" => json!({"allowed": ["search", "find"], "restricted": ["create_note"], "delegation": [{"from": "find", "to": "search"}]}),
                "injection" => json!({"task": [{"tool_names": {"contains": "find"}}]}),
        "orchestration" | "stability" | "reliability" | "narrative" => json!({}),
                other => panic!("give `{other}` a block here"),
            };
            (gate.block.to_owned(), block)
        })
        .collect()
}

fn judge(traces: &[Trace]) -> Vec<GateOutcome> {
    let blocks = blocks();
    let context = LoadContext {
        to_run: true,
        runs: Some(10),
        siblings: &blocks,
        attacks: support::attacks(),
    };
    let runs = Run::number(traces);
    GATES
        .iter()
        .map(|gate| {
            let written = context.sibling(gate.block).expect("every gate has a block");
            let (loaded, problems) = LoadedGate::load(gate, written, &context);
            let loaded = loaded.unwrap_or_else(|| panic!("{}: {problems:?}", gate.block));
            let context = Context {
                label: "t",
                servers: &KnownServers::default(),
                model: None,
                prices: Prices::builtin(),
            };
            loaded.judge(&context, &runs)
        })
        .collect()
}

/// Names of the figures that differ.
fn changed(before: &[GateOutcome], after: &[GateOutcome]) -> BTreeSet<String> {
    before
        .iter()
        .zip(after)
        .flat_map(|(before, after)| {
            before
                .values
                .iter()
                .filter(|(name, value)| after.values[*name] != **value)
        })
        .map(|(name, _)| name.clone())
        .collect()
}

/// Replaces every message of the assistant, the closing one included.
fn rewritten(trace: &Trace, text: &str) -> Trace {
    let mut trace = trace.clone();
    for turn in trace.conversation.turns.iter_mut().flatten() {
        if turn.role.as_deref() == Some("assistant") {
            turn.content = Some(text.into());
        }
    }
    trace.final_response = Some(text.to_owned().into());
    trace
}

/// The same arguments with their keys in the opposite order.
fn shuffled(trace: &Trace) -> Trace {
    let mut trace = trace.clone();
    for call in &mut trace.tool_calls {
        if let Some(Value::Object(args)) = call.args_mut() {
            *args = std::mem::take(args)
                .into_iter()
                .rev()
                .collect::<Map<_, _>>();
        }
    }
    trace
}

proptest! {
    #[test]
    fn narration_moves_only_what_is_about_narration(traces in prop::collection::vec(trace(), 2..4), text in "[a-z .]{0,40}") {
        let about_text = ["stability.response_consistency", "stability.score", "stability.weakest_score", "stability.variance"];
        let after: Vec<Trace> = traces.iter().map(|trace| rewritten(trace, &text)).collect();
        for name in changed(&judge(&traces), &judge(&after)) {
            prop_assert!(name.starts_with("narrative.") || about_text.contains(&name.as_str()), "{name} follows the narration");
        }
    }

    #[test]
    fn the_order_of_argument_keys_means_nothing(traces in prop::collection::vec(trace(), 2..4)) {
        let after: Vec<Trace> = traces.iter().map(shuffled).collect();
        let (before, after) = (judge(&traces), judge(&after));
        prop_assert_eq!(changed(&before, &after), BTreeSet::new());
        for (before, after) in before.iter().zip(&after) {
            prop_assert_eq!(before.verdict, after.verdict);
        }
    }

    #[test]
    fn the_order_of_runs_matters_only_where_order_is_the_point(traces in prop::collection::vec(trace(), 2..5)) {
        let about_order = ["reliability.decay", "reliability.graceful_degradation"];
        let mut after = traces.clone();
        after.reverse();
        for name in changed(&judge(&traces), &judge(&after)) {
            prop_assert!(about_order.contains(&name.as_str()), "{name} depends on the order of runs");
        }
    }

    #[test]
    fn every_figure_is_finite_and_every_gate_gives_the_same_twice(traces in prop::collection::vec(trace(), 1..4)) {
        let once = judge(&traces);
        prop_assert_eq!(&once, &judge(&traces));
        for gate in &once {
            for (name, value) in &gate.values {
                if let Some(number) = value.as_f64() {
                    prop_assert!(number.is_finite() && number >= 0.0, "{name} is {number}");
                }
            }
        }
    }
}
