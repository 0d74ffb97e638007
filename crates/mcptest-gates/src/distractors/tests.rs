use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{GateOutcome, testing};
use mcptest_trace::catalog::Tool;
use mcptest_trace::tool_id;
use mcptest_trace::trace::{ToolCall, Trace};
use mcptest_trace::verdict::Verdict;

/// `server.tool` or `tool`.
fn call(id: &str) -> ToolCall {
    match id.split_once('.') {
        Some((server, name)) => ToolCall::new(Some(server), name),
        None => ToolCall::new(None, id),
    }
}

fn ids(list: &[&str]) -> Vec<String> {
    list.iter().map(|id| (*id).to_owned()).collect()
}

fn choose(correct: &[&str], distractors: &[&str], calls: &[&str]) -> Choices {
    let calls: Vec<_> = calls.iter().map(|id| call(id)).collect();
    let servers = ["s", "t"].into_iter().collect();
    score_distractors(&ids(correct), &ids(distractors), &calls, &servers)
}

#[test]
fn the_counting_rule() {
    let choices = choose(&["s.a"], &["s.a_v2"], &["s.a", "s.a", "s.a_v2", "s.other"]);
    assert_eq!(
        choices.counts,
        ChoiceCounts {
            chose_correct: 2,
            chose_distractor: 1
        }
    );
    assert_eq!(choices.counts.accuracy(1), 66);
    assert_eq!(choices.fell_for, ["s.a_v2"]);
    // In both sets: correct, once per choice.
    assert_eq!(choose(&["a"], &["a"], &["s.a"]).counts.accuracy(1), 100);
    // Qualified ids keep servers apart, bare ones do not.
    assert_eq!(choose(&["s.a"], &["t.a"], &["t.a"]).counts.accuracy(1), 0);
    assert_eq!(choose(&["a"], &["t.b"], &["t.a"]).counts.accuracy(1), 100);
    assert_eq!(
        choose(&["s.a"], &["b"], &["t.b", "s.b"])
            .counts
            .chose_distractor,
        2
    );
    // 29 of 100 through doubles would be 28.
    let share = ChoiceCounts {
        chose_correct: 29,
        chose_distractor: 71,
    };
    assert_eq!(share.accuracy(1), 29);
}

#[test]
fn nothing_in_scope() {
    assert_eq!(choose(&["s.a"], &["s.b"], &["s.c"]).counts.accuracy(1), 0);
    assert_eq!(choose(&[], &["s.b"], &["s.c"]).counts.accuracy(0), 100);
    assert_eq!(choose(&[], &["s.b"], &["s.b"]).counts.accuracy(0), 0);
    assert!(!choose(&[], &[], &[]).succeeded());
    assert!(choose(&["a"], &["b"], &["a", "x"]).succeeded());
    assert!(!choose(&["a"], &["b"], &["a", "b"]).succeeded());
}

fn trace(distractors: Option<&[&str]>, calls: &[&str]) -> Trace {
    Trace {
        tool_calls: calls.iter().map(|id| call(id)).collect(),
        distractors: distractors.map(ids),
        ..Trace::default()
    }
}

const NOISE: Option<&[&str]> = Some(&["s.b", "s.c"]);

fn block() -> Value {
    json!({"count": 2, "source": {"from": "catalog"}, "correct": ["s.a"]})
}

fn with(key: &str, value: Value) -> Value {
    let mut block = block();
    block[key] = value;
    block
}

fn judge(block: &Value, traces: &[Trace]) -> GateOutcome {
    testing::judge("distractors", block, traces)
}

#[test]
fn figures_pool_over_the_runs() {
    let outcome = judge(
        &with("complexity", json!("parallel")),
        &[
            trace(NOISE, &["s.a"]),
            trace(NOISE, &["s.a", "s.b"]),
            trace(NOISE, &[]),
            trace(NOISE, &["s.x"]),
        ],
    );
    assert_eq!(
        Value::Object(outcome.values),
        json!({"distractors.accuracy": 66, "distractors.chose_distractor": 1, "distractors.certified_lower": 1})
    );
    // Only the run without a call chose nothing; `s.x` is out of scope.
    assert_eq!(outcome.detail.to_value()["chose_nothing"], 1);
    assert_eq!(outcome.detail.to_value()["chose_only_others"], 1);
    assert_eq!(outcome.detail.to_value()["complexity"], "parallel");
    assert_eq!(outcome.detail.to_value()["fell_for"], json!(["s.b"]));
    assert!(
        outcome
            .summary
            .contains("1 of 4 runs chose nothing · certified 1 · 1 of 4 chose only other tools"),
        "{}",
        outcome.summary
    );
    assert_eq!(outcome.verdict, Verdict::Pass);
}

#[test]
fn the_curve_goes_by_what_was_injected() {
    let outcome = judge(
        &json!({"counts": [0, 2, 4], "source": {"from": "catalog"}, "correct": ["s.a"]}),
        &[
            trace(Some(&[]), &["s.a"]),
            trace(Some(&["s.b", "s.c", "s.d", "s.e"]), &["s.e"]),
            trace(NOISE, &["s.a", "s.b"]),
        ],
    );
    let curve: Vec<_> = outcome.detail.to_value()["curve"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| {
            (
                point["count"].as_u64().unwrap(),
                point["accuracy"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(curve, [(0, 100), (2, 50), (4, 0)]);
    assert!(
        outcome
            .summary
            .contains("accuracy by count 0: 100, 2: 50, 4: 0"),
        "{}",
        outcome.summary
    );
}

#[test]
fn certified_lower_bounds() {
    let certified = |good: usize, all: usize| {
        let traces: Vec<Trace> = (0..all)
            .map(|run| trace(NOISE, if run < good { &["s.a"] } else { &["s.b"] }))
            .collect();
        judge(&block(), &traces).values["distractors.certified_lower"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(certified(1, 1), 5);
    assert_eq!(certified(4, 5), 34);
    assert_eq!(certified(5, 5), 54);
    assert_eq!(certified(10, 10), 74);
    assert_eq!(certified(0, 3), 0);
}

#[test]
fn the_default_gate_is_accuracy_at_50() {
    assert_eq!(
        judge(&block(), &[trace(NOISE, &["s.a", "s.b"])]).verdict,
        Verdict::Pass
    );
    let failed = judge(
        &with("expect", json!([])),
        &[trace(NOISE, &["s.a", "s.b", "s.c"])],
    );
    assert_eq!(failed.verdict, Verdict::Fail);
    assert!(failed.assertions[0].default);
    assert_eq!(judge(&block(), &[trace(NOISE, &[])]).verdict, Verdict::Fail);
}

#[test]
fn what_was_never_met_is_no_evidence() {
    let vacuous = judge(&with("correct", json!([])), &[trace(NOISE, &["s.x"])]);
    assert_eq!(vacuous.verdict, Verdict::NoEvidence);
    assert_eq!(vacuous.values["distractors.accuracy"], 100);
    assert_eq!(
        judge(&with("correct", json!([])), &[trace(NOISE, &["s.b"])]).verdict,
        Verdict::Fail
    );
    for nothing in [None, Some(&[][..])] {
        let unmet = judge(&block(), &[trace(nothing, &["s.a"])]);
        assert_eq!(unmet.verdict, Verdict::NoEvidence);
        assert_eq!(unmet.values["distractors.accuracy"], 100);
        // The baseline asks for none.
        let baseline = judge(&with("count", json!(0)), &[trace(nothing, &["s.a"])]);
        assert_eq!(baseline.verdict, Verdict::Pass);
    }
}

#[test]
fn what_cannot_work_is_refused() {
    for (block, pointer) in [
        (json!({"source": {"from": "catalog"}}), ""),
        (
            json!({"count": 1, "counts": [2], "source": {"from": "catalog"}}),
            "/counts",
        ),
        (
            json!({"counts": [], "source": {"from": "catalog"}}),
            "/counts",
        ),
        (
            json!({"counts": [4, 0, 4], "source": {"from": "catalog"}}),
            "/counts/2",
        ),
        (
            json!({"count": 1001, "source": {"from": "catalog"}}),
            "/count",
        ),
        (
            json!({"count": 1, "source": {"from": "near_duplicate"}}),
            "/source",
        ),
        (
            json!({"count": 1, "source": {"from": "near_duplicate", "of": []}}),
            "/source/of",
        ),
        (
            json!({"count": 1, "source": {"from": "catalog", "of": ["a"]}}),
            "/source/of",
        ),
        (json!({"count": 1, "source": {"from": "elsewhere"}}), ""),
        (json!({"count": 1}), ""),
        (with("complexity", json!("both")), ""),
        (with("cuont", json!(1)), ""),
        (
            with("expect", json!([{"distractors.acuracy": 1}])),
            "/expect/0/distractors.acuracy",
        ),
    ] {
        let problems = testing::load("distractors", &block).unwrap_err();
        assert_eq!(problems.len(), 1, "{block}: {problems:?}");
        assert_eq!(problems[0].pointer, pointer, "{block}: {problems:?}");
    }
}

#[test]
fn no_target_can_be_asserted_in_vain() {
    let traces = [
        trace(NOISE, &["s.a"]),
        trace(NOISE, &["s.b"]),
        trace(NOISE, &[]),
    ];
    for target in DistractorsGate::TARGETS {
        for matcher in [
            json!({">": 1e18}),
            json!({"<": -1e18}),
            json!({"exact": "never"}),
        ] {
            let outcome = judge(&with("expect", json!([{target.name: matcher}])), &traces);
            assert_eq!(outcome.verdict, Verdict::Fail, "{}", target.name);
        }
    }
}

fn loaded(block: Value) -> Distractors {
    serde_json::from_value(block).unwrap()
}

fn near(of: &[&str]) -> Distractors {
    loaded(
        json!({"count": 3, "source": {"from": "near_duplicate", "of": of}, "correct": ["shop.search_products_v2"]}),
    )
}

fn real(server: &str, name: &str) -> Tool {
    let listed =
        json!({"name": name, "description": "Does something.", "inputSchema": {"type": "object"}});
    Tool::from_listing(Some(server), &listed).unwrap()
}

#[test]
fn a_distractor_that_was_called_counts_as_one() {
    let tools = [real("shop", "search_products"), real("mail", "send")];
    let block = near(&["search_products"]);
    let planned = plan_injection(&block, &tools, 3, 1).unwrap();
    let id = tool_id::full_id(planned[0].server(), planned[0].name());
    let calls = [ToolCall::new(planned[0].server(), planned[0].name())];
    let choices = score_distractors(
        &block.correct,
        &[id],
        &calls,
        &["shop", "mail"].into_iter().collect(),
    );
    assert_eq!(choices.counts.chose_distractor, 1);
    assert!(refusal(planned[0].name()).contains(planned[0].name()));
}

proptest! {
    // The catalog's tools are many to copy in an unoptimized build.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn figures_are_bounded_and_the_order_of_runs_and_calls_is_free(
        mut runs in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["s.a", "s.b", "s.c", "t.a", "x"]), 0..6), 1..8),
        text in "\\PC{0,10}",
    ) {
        let traces = |runs: &[Vec<&str>], text: &str, args: &Value| -> Vec<Trace> {
            let trace = |calls: &Vec<&str>| {
                let mut trace = trace(NOISE, calls);
                trace.final_response = Some(text.to_owned().into());
                for call in &mut trace.tool_calls {
                    call.set_args(args.clone());
                }
                trace
            };
            runs.iter().map(trace).collect()
        };
        let before = judge(&block(), &traces(&runs, "", &json!({"x": 1, "y": 2}))).values;
        runs.reverse();
        for calls in &mut runs {
            calls.reverse();
        }
        let after = judge(&block(), &traces(&runs, &text, &json!({"y": 2, "x": 1}))).values;
        prop_assert_eq!(&before, &after);
        prop_assert!(before["distractors.accuracy"].as_u64().unwrap() <= 100);
        prop_assert!(before["distractors.certified_lower"].as_u64().unwrap() < 100);
    }
}
