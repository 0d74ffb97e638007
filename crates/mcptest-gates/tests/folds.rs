//! A gate is a fold: observing the runs in parts, and merging the parts in any order, gives the
//! bytes of the outcome of all runs. The parts may also go through JSON, as between processes.

mod support;

use std::sync::LazyLock;

use mcptest_catalog::prices::Prices;
use mcptest_gates::{
    Context, GATES, GateAccumulator, GateInfo, GateOutcome, LoadContext, LoadedGate, Run,
};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::Trace;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::trace;

/// A block of every gate, with expectations that can fail.
fn blocks() -> Vec<(String, Value)> {
    let classes = json!([
        {"name": "search", "members": ["a.search", "find"]},
        {"name": "write", "members": ["create_note"]},
    ]);
    let block = |gate: &GateInfo| match gate.block {
        "equal_function_sets" | "token_efficiency" => json!({"classes": classes}),
        "tool_selection" => {
            json!({"expected_tool": "search", "min_selection_rate": 0.5, "max_total_tokens": 500})
        }
        "distractors" => {
            json!({"count": 2, "source": {"from": "catalog"}, "correct": ["a.search"]})
        }
        "trajectory" => json!({
            "mode": "exact_set",
            "calls": [{"name": "search", "args": {"subset": {"q": 1}}}, {"name": "create_note"}],
        }),
        "trajectory_axes" => json!({
            "dependencies": [{"producer": "search", "consumer": "create_note"}],
            "order": [{"first": "find", "second": "search"}],
        }),
        "golden_path" => json!({"calls": ["search", "create_note"]}),
        "recovery" => json!({"max_detection_ms": 100}),
        "tool_edges" => json!({
            "allowed": ["search", "find"],
            "restricted": ["create_note"],
            "delegation": [{"from": "find", "to": "search"}],
        }),
        "narrative" => json!({"max_divergence_score": 0.4, "llm_assisted": true}),
        "injection" => json!({"task": [{"tool_names": {"contains": "find"}}]}),
        "orchestration" | "stability" | "reliability" => json!({}),
        other => panic!("give `{other}` a block here"),
    };
    GATES
        .iter()
        .map(|gate| (gate.block.to_owned(), block(gate)))
        .collect()
}

fn load(gate: &'static GateInfo) -> LoadedGate {
    let siblings = blocks();
    let context = LoadContext {
        to_run: true,
        runs: Some(20),
        siblings: &siblings,
        attacks: support::attacks(),
    };
    let written = context.sibling(gate.block).expect("every gate has a block");
    let (loaded, problems) = LoadedGate::load(gate, written, &context);
    loaded.unwrap_or_else(|| panic!("{}: {problems:?}", gate.block))
}

/// All gates, loaded once for all cases.
static LOADED: LazyLock<Vec<LoadedGate>> = LazyLock::new(|| GATES.iter().map(load).collect());

/// Runs in parts, and the order in which the parts are merged.
#[derive(Debug)]
struct Case {
    /// A trace, whether its expectations held, its part, and a key that orders the runs of a part.
    runs: Vec<(Trace, Option<bool>, usize, u32)>,
    order: Vec<usize>,
    /// The parts that go through JSON.
    saved: Vec<bool>,
}

const PARTS: usize = 4;

fn case() -> impl Strategy<Value = Case> {
    // Runs come in streaks, so that some of them are equal.
    let streak = (trace(), any::<Option<bool>>(), 1_usize..4);
    let places = prop::collection::vec((0..PARTS, any::<u32>()), 20);
    (
        prop::collection::vec(streak, 0..7),
        places,
        Just((0..PARTS).collect::<Vec<_>>()).prop_shuffle(),
        prop::collection::vec(any::<bool>(), PARTS),
    )
        .prop_map(|(streaks, places, order, saved)| {
            let runs = streaks
                .into_iter()
                .flat_map(|(trace, held, times)| std::iter::repeat_n((trace, held), times));
            let placed = runs.zip(places);
            Case {
                runs: placed
                    .map(|((trace, held), (part, key))| (trace, held, part, key))
                    .collect(),
                order,
                saved,
            }
        })
}

fn through_json<'a>(gate: &'a LoadedGate, part: &GateAccumulator<'_>) -> GateAccumulator<'a> {
    let json = part.to_json();
    let read = gate.accumulator_from_json(&json);
    read.unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// An outcome without the rows of single runs in its detail.
fn without_rows(outcome: &GateOutcome) -> GateOutcome {
    let mut detail = outcome.detail.to_map();
    for rows in ["per_run", "mismatches", "broken", "findings"] {
        detail.shift_remove(rows);
    }
    GateOutcome {
        detail: detail.into(),
        ..outcome.clone()
    }
}

proptest! {
    #[test]
    fn any_split_merged_in_any_order_gives_the_bytes_of_the_whole(case in case()) {
        let context = Context {
            label: "t",
            servers: &KnownServers::default(),
            model: Some("gpt-4o"),
            prices: Prices::builtin(),
        };
        let runs: Vec<Run<'_>> = case
            .runs
            .iter()
            .zip(1..)
            .map(|((trace, expectations_held, ..), index)| Run {
                index,
                trace,
                expectations_held: *expectations_held,
            })
            .collect();
        let mut shuffled: Vec<usize> = (0..runs.len()).collect();
        shuffled.sort_by_key(|at| case.runs[*at].3);
        for gate in LOADED.iter() {
            let whole = gate.judge(&context, &runs);
            let mut parts: Vec<GateAccumulator<'_>> =
                (0..PARTS).map(|_| gate.accumulator()).collect();
            for at in &shuffled {
                parts[case.runs[*at].2].observe(&context, &runs[*at]);
            }
            for (part, saved) in parts.iter_mut().zip(&case.saved) {
                if *saved {
                    *part = through_json(gate, part);
                }
            }
            let mut parts: Vec<Option<GateAccumulator<'_>>> = parts.into_iter().map(Some).collect();
            let mut merged = gate.accumulator();
            for part in &case.order {
                merged.merge(parts[*part].take().expect("every part is merged once"));
            }
            let mut lean = gate.accumulator_without_rows();
            for at in shuffled.iter().rev() {
                let mut part = gate.accumulator_without_rows();
                part.observe(&context, &runs[*at]);
                lean.merge(if case.saved[0] { through_json(gate, &part) } else { part });
            }
            let lean = lean.finish(&context);
            prop_assert_eq!(without_rows(&lean), without_rows(&whole), "{}", gate.info().block);
            prop_assert_eq!(&lean.status_lines, &whole.status_lines);
            prop_assert_eq!(merged.runs(), runs.len() as u64);
            let remaining = 3;
            let mut in_order = gate.accumulator();
            runs.iter().for_each(|run| in_order.observe(&context, run));
            prop_assert_eq!(merged.forecast(remaining), in_order.forecast(remaining));
            let again = through_json(gate, &merged);
            let mut numbered_later = gate.accumulator();
            for at in &shuffled {
                let index = runs[*at].index * 1000 + 5;
                numbered_later.observe(&context, &Run { index, ..runs[*at] });
            }
            numbered_later.renumber(&|index| index / 1000);
            for accumulator in [merged, again, numbered_later] {
                let outcome = accumulator.finish(&context);
                prop_assert_eq!(&outcome, &whole, "{}", gate.info().block);
                prop_assert_eq!(
                    serde_json::to_string(&outcome).expect("an outcome"),
                    serde_json::to_string(&whole).expect("an outcome")
                );
                prop_assert_eq!(&outcome.status_lines, &whole.status_lines);
            }
        }
    }
}
