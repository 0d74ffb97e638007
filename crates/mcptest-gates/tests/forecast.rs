//! A test that stops early must have the verdict of all its runs, whatever the runs that were not
//! made would have done.
//!
//! For every gate: the final figures are within the bounds that were forecast from a part of the
//! runs, a decided verdict is the final one, and no gate is decided by fewer runs than forecast.

mod support;

use std::cmp::Ordering;

use mcptest_catalog::prices::Prices;
use mcptest_gates::forecast::Bounds;
use mcptest_gates::{Context, GATES, GateAccumulator, LoadContext, LoadedGate, Run, find};
use mcptest_json::compare_numbers;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::trace;

/// A block of a gate, in one of several variants.
fn block(gate: &str, variant: u8) -> Value {
    let classes = match variant % 3 {
        0 => {
            json!([{"name": "search", "members": ["search", "find"]}, {"name": "write", "members": ["create_note"]}])
        }
        1 => json!([{"name": "search", "members": ["search"]}]),
        _ => json!([]),
    };
    let some = variant.is_multiple_of(2);
    match gate {
        "equal_function_sets" => json!({"classes": classes}),
        "token_efficiency" => {
            json!({"classes": [{"name": "search", "members": ["search", "find"]}]})
        }
        "tool_selection" if some => {
            json!({"expected_tool": "search", "min_selection_rate": f64::from(variant % 5) / 4.0})
        }
        "tool_selection" => {
            json!({"expected_tool": "search", "min_selection_rate": 0.5, "max_total_tokens": 500})
        }
        "distractors" if some => {
            json!({"count": 2, "source": {"from": "catalog"}, "correct": ["a.search"]})
        }
        "distractors" => json!({"count": variant / 3, "source": {"from": "catalog"}}),
        "trajectory" => {
            json!({"mode": if some { "unordered" } else { "subset" }, "calls": [{"name": "search"}]})
        }
        "trajectory_axes" if some => {
            json!({"dependencies": [{"producer": "search", "consumer": "create_note"}]})
        }
        "trajectory_axes" => {
            json!({"order": [{"first": "find", "second": "search"}, {"first": "search", "second": "create_note"}]})
        }
        "golden_path" if some => json!({"calls": ["search", "create_note"]}),
        "golden_path" => {
            json!({"calls": [], "penalize_backtracks": false, "penalize_repeated_tools": false, "penalize_extra_steps": variant % 4 == 1})
        }
        "recovery" => json!({"max_detection_ms": 100, "require_clean_timeout": some}),
        "tool_edges" if some => {
            json!({"allowed": ["search", "find"], "restricted": ["delete_note"]})
        }
        "tool_edges" => json!({"allowed": [], "delegation": [{"from": "find", "to": "search"}]}),
        "reliability" if some => json!({"k": 1 + u64::from(variant % 4)}),
        "injection" if some => {
            json!({"task": [{"tool_names": {"contains": "find"}}], "mode": "together"})
        }
        "injection" => json!({}),
        "orchestration" | "stability" | "reliability" | "narrative" => json!({}),
        other => panic!("give `{other}` a block here"),
    }
}

/// Assertions: a target by number, a sign by number, a bound in percent.
type Assertions = Vec<(usize, usize, u64)>;

fn load(gate: &str, variant: u8, assertions: &Assertions) -> LoadedGate {
    let info = find(gate).expect("a gate");
    let mut written = block(gate, variant);
    let list: Vec<Value> = assertions
        .iter()
        .map(|(target, sign, bound)| {
            let target = info.targets[target % info.targets.len()].name;
            let sign = [">=", "<=", ">", "<", "==", "!="][sign % 6];
            // Fractions and flags are from 0 to 1, percents to 100.
            let bound = match target {
                "reliability.decay" => {
                    return json!({format!("{target}[{}]", bound % 4): {sign: bound}});
                }
                _ if bound % 2 == 0 => json!(bound),
                _ => json!(*bound as f64 / 100.0),
            };
            json!({target: {sign: bound}})
        })
        .collect();
    if !list.is_empty() {
        written["expect"] = list.into();
    }
    let siblings = [
        (gate.to_owned(), written.clone()),
        (
            "equal_function_sets".to_owned(),
            block("equal_function_sets", variant),
        ),
    ];
    let context = LoadContext {
        to_run: true,
        runs: Some(20),
        siblings: &siblings,
        attacks: support::attacks(),
    };
    let (loaded, problems) = LoadedGate::load(info, &written, &context);
    loaded.unwrap_or_else(|| panic!("{gate}: {problems:?}"))
}

fn within(value: &Value, bounds: &Bounds) -> bool {
    match (bounds, value) {
        (Bounds::Between { low, high, .. }, Value::Number(number)) => {
            compare_numbers(number, low) != Ordering::Less
                && high
                    .as_ref()
                    .is_none_or(|high| compare_numbers(number, high) != Ordering::Greater)
        }
        (Bounds::Between { or_absent, .. }, Value::Null) => *or_absent,
        (Bounds::Absent, Value::Null) => true,
        (Bounds::Grows(items), Value::Array(list)) => list.starts_with(items),
        _ => false,
    }
}

#[derive(Debug)]
struct Case {
    variant: u8,
    assertions: Assertions,
    traces: Vec<(Trace, bool)>,
    with_expectations: bool,
    cut: usize,
    /// Runs that were planned and ended with an error.
    broken: u64,
}

fn case() -> impl Strategy<Value = Case> {
    // Runs come in streaks: gates of rates are decided by many alike.
    let streak = (trace(), any::<bool>(), 1_usize..4);
    (
        any::<u8>(),
        prop::collection::vec((0_usize..8, 0_usize..6, 0_u64..=100), 0..3),
        prop::collection::vec(streak, 2..7),
        any::<bool>(),
        any::<prop::sample::Index>(),
        0_u64..3,
    )
        .prop_map(
            |(variant, assertions, streaks, with_expectations, cut, broken)| {
                let traces: Vec<(Trace, bool)> = streaks
                    .into_iter()
                    .flat_map(|(trace, held, times)| std::iter::repeat_n((trace, held), times))
                    .collect();
                let cut = 1 + cut.index(traces.len());
                Case {
                    variant,
                    assertions,
                    traces,
                    with_expectations,
                    cut,
                    broken,
                }
            },
        )
}

/// The accumulator of these runs.
fn observed<'a>(
    gate: &'a LoadedGate,
    context: &Context<'_>,
    runs: &[Run<'_>],
) -> GateAccumulator<'a> {
    let mut accumulator = gate.accumulator();
    runs.iter()
        .for_each(|run| accumulator.observe(context, run));
    accumulator
}

/// The number of runs after which a gate is decided: asked again after each run, and as the program
/// makes them, in batches.
fn stops(gate: &LoadedGate, context: &Context<'_>, runs: &[Run<'_>]) -> (usize, usize) {
    let outstanding = |made: usize| (runs.len() - made) as u64;
    let naive = (1..runs.len()).find(|made| {
        observed(gate, context, &runs[..*made])
            .decided(outstanding(*made))
            .is_some()
    });
    let (mut accumulator, mut made) = (gate.accumulator(), 0);
    while made < runs.len() && (made == 0 || accumulator.decided(outstanding(made)).is_none()) {
        let batch = accumulator.least_further_runs(outstanding(made));
        for run in &runs[made..made + batch as usize] {
            accumulator.observe(context, run);
        }
        made += batch as usize;
    }
    (naive.unwrap_or(runs.len()), made)
}

fn holds(gate: &str, case: &Case) -> Result<(), TestCaseError> {
    let loaded = load(gate, case.variant, &case.assertions);
    let context = Context {
        label: "t",
        servers: &KnownServers::default(),
        model: Some("gpt-4o"),
        prices: Prices::builtin(),
    };
    let runs: Vec<Run<'_>> = case
        .traces
        .iter()
        .zip(1..)
        .map(|((trace, held), index)| Run {
            index,
            trace,
            expectations_held: case.with_expectations.then_some(*held),
        })
        .collect();
    let outstanding = |made: usize| (runs.len() - made) as u64 + case.broken;
    let (naive, in_batches) = stops(&loaded, &context, &runs);
    prop_assert_eq!(naive, in_batches, "the program stops elsewhere");
    let end = loaded.judge(&context, &runs);
    // A gate that was asked after every run, as the program does, and one that is asked for the
    // first time, must agree.
    let fresh = |made: usize| observed(&loaded, &context, &runs[..made]);
    let forecast = fresh(case.cut).forecast(outstanding(case.cut));
    for (name, bounds) in forecast.iter().flat_map(|forecast| &forecast.bounds) {
        prop_assert!(
            within(&end.values[*name], bounds),
            "{name} became {}, outside {bounds:?}",
            end.values[*name]
        );
    }
    let mut accumulator = loaded.accumulator();
    for (run, made) in runs.iter().zip(1..) {
        accumulator.observe(&context, run);
        if outstanding(made) > 0 {
            let asked_always = accumulator.decided(outstanding(made));
            prop_assert_eq!(
                asked_always,
                fresh(made).decided(outstanding(made)),
                "after {} runs",
                made
            );
        }
    }
    let decided = fresh(case.cut).decided(outstanding(case.cut));
    if let Some(verdict) = decided {
        prop_assert_eq!(
            verdict,
            end.verdict,
            "decided after {} of {}",
            case.cut,
            runs.len()
        );
        prop_assert!(matches!(verdict, Verdict::Pass | Verdict::Fail));
        return Ok(());
    }
    let least = fresh(case.cut).least_further_runs(outstanding(case.cut));
    prop_assert!(least <= outstanding(case.cut));
    for made in case.cut + 1..=runs.len() {
        let further = (made - case.cut) as u64;
        if further < least && outstanding(made) > 0 {
            let early = fresh(made).decided(outstanding(made));
            prop_assert_eq!(early, None, "{} more runs decide, not {}", further, least);
        }
    }
    Ok(())
}

macro_rules! every_gate {
    ($($gate:ident),* $(,)?) => {
        $(proptest! {
            #[test]
            fn $gate(case in case()) {
                holds(stringify!($gate), &case)?;
            }
        })*

        #[test]
        fn no_gate_is_left_out() {
            let tried = [$(stringify!($gate)),*];
            for gate in GATES {
                assert!(tried.contains(&gate.block), "{} has no property here", gate.block);
            }
        }
    };
}

every_gate! {
    equal_function_sets, tool_selection, distractors, orchestration, token_efficiency, trajectory, trajectory_axes, golden_path,
    stability, reliability, recovery, injection, narrative, tool_edges,
}

/// A run that calls these tools.
fn calling(tools: &[&str]) -> Trace {
    let calls: Vec<Value> = tools
        .iter()
        .map(|tool| json!({"name": tool, "server": "a", "args": {}}))
        .collect();
    serde_json::from_value(json!({"tool_calls": calls})).expect("a trace")
}

/// The number of `max` runs after which the gate is decided, and its verdict, for runs with these
/// traces.
fn made(
    gate: &str,
    written: &Value,
    max: usize,
    trace_of: impl Fn(usize) -> Trace,
) -> (usize, Option<Verdict>) {
    let siblings = [
        (gate.to_owned(), written.clone()),
        (
            "equal_function_sets".to_owned(),
            json!({"classes": [{"name": "s", "members": ["search"]}]}),
        ),
    ];
    let load = LoadContext {
        to_run: true,
        runs: Some(max as u32),
        siblings: &siblings,
        attacks: support::attacks(),
    };
    let loaded = LoadedGate::load(find(gate).expect("a gate"), written, &load)
        .0
        .expect("a good block");
    let context = Context {
        label: "t",
        servers: &KnownServers::default(),
        model: None,
        prices: Prices::builtin(),
    };
    let traces: Vec<Trace> = (1..=max).map(trace_of).collect();
    let runs = Run::number(&traces);
    let mut accumulator = loaded.accumulator();
    for made in 1..max {
        accumulator.observe(&context, &runs[made - 1]);
        let decided = accumulator.decided((max - made) as u64);
        if decided.is_some() {
            return (made, decided);
        }
    }
    (max, None)
}

#[test]
fn worked_examples_of_when_a_gate_is_decided() {
    let (good, bad) = (|_| calling(&["search"]), |_| calling(&["delete_note"]));
    let floor = json!({"expected_tool": "search", "min_selection_rate": 0.8});
    // 24 of 30 are enough, and with 7 misses 24 are out of reach.
    assert_eq!(
        made("tool_selection", &floor, 30, good),
        (24, Some(Verdict::Pass))
    );
    assert_eq!(
        made("tool_selection", &floor, 30, bad),
        (7, Some(Verdict::Fail))
    );
    // Under a token cap, any run may still break the floor.
    let capped =
        json!({"expected_tool": "search", "min_selection_rate": 0.8, "max_total_tokens": 10});
    assert_eq!(made("tool_selection", &capped, 30, good), (30, None));
    // The default asks for pass^k of 50: one failure leaves 36 at most.
    assert_eq!(
        made("reliability", &json!({}), 10, |_| calling(&[])),
        (1, Some(Verdict::Fail))
    );
    assert_eq!(made("reliability", &json!({}), 10, good), (10, None));
    let any = json!({"expect": [{"reliability.pass_at_k": 100}]});
    assert_eq!(
        made("reliability", &any, 10, good),
        (1, Some(Verdict::Pass))
    );
    let two_of_three = json!({"k": 1, "expect": [{"reliability.passhat_k_unbiased": {">=": 0.6}}]});
    assert_eq!(
        made("reliability", &two_of_three, 10, good),
        (6, Some(Verdict::Pass))
    );
    let recall = json!({"classes": [{"name": "s", "members": ["search"]}], "expect": [{"tool_selection.recall": {">=": 50}}]});
    assert_eq!(
        made("equal_function_sets", &recall, 10, good),
        (5, Some(Verdict::Pass))
    );
    // F1 falls with every stray call, and no one knows how many are to come.
    let f1 = json!({"classes": [{"name": "s", "members": ["search"]}]});
    assert_eq!(made("equal_function_sets", &f1, 10, good), (10, None));
    // After 6 runs, at best 4 are right, 6 calls stray and 6 classes missed: 8/20 is 40.
    assert_eq!(
        made("equal_function_sets", &f1, 10, bad),
        (6, Some(Verdict::Fail))
    );
    let axes = json!({"order": [{"first": "find", "second": "search"}], "expect": [{"trajectory.order_satisfaction": {">=": 40}}]});
    assert_eq!(
        made("trajectory_axes", &axes, 10, |_| calling(&[
            "find", "search"
        ])),
        (4, Some(Verdict::Pass))
    );
    assert_eq!(
        made("trajectory_axes", &axes, 10, good),
        (7, Some(Verdict::Fail))
    );
    let strict = json!({"mode": "strict", "calls": [{"name": "search"}]});
    assert_eq!(
        made("trajectory", &strict, 10, |run| if run == 4 {
            bad(run)
        } else {
            good(run)
        }),
        (4, Some(Verdict::Fail))
    );
    assert_eq!(
        made("golden_path", &json!({"calls": ["search"]}), 10, |_| {
            calling(&["search", "search"])
        }),
        (1, Some(Verdict::Fail))
    );
    assert_eq!(
        made("orchestration", &json!({}), 10, good),
        (5, Some(Verdict::Pass))
    );
    assert_eq!(
        made("orchestration", &json!({}), 10, bad),
        (6, Some(Verdict::Fail))
    );
    assert_eq!(
        made(
            "tool_edges",
            &json!({"restricted": ["delete_note"]}),
            10,
            bad
        ),
        (1, Some(Verdict::Fail))
    );
    assert_eq!(made("stability", &json!({}), 10, good), (10, None));
}
