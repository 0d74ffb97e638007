use indexmap::IndexSet;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::common_subsequence::longest_common_subsequence;
use super::*;
use crate::{GateOutcome, LoadedGate, find, testing};
use mcptest_trace::trace::{Conversation, Tokens, ToolCall, Trace, Turn};
use mcptest_trace::verdict::Verdict;

/// `name` or `name:argument`.
fn call(text: &str) -> ToolCall {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    ToolCall {
        args: Some(json!({"a": argument, "b": 1}).into()),
        ..ToolCall::new(None, name)
    }
}

fn trace(calls: &[&str]) -> Trace {
    Trace {
        tool_calls: calls.iter().map(|text| call(text)).collect(),
        ..Trace::default()
    }
}

fn turns(texts: &[&str]) -> Option<Vec<Turn>> {
    let turn = |text: &&str| Turn {
        role: Some("assistant".into()),
        content: Some((*text).into()),
        ..Turn::default()
    };
    Some(texts.iter().map(turn).collect())
}

fn session(calls: &[&str], texts: &[&str], tokens: Option<u64>) -> Trace {
    Trace {
        conversation: Conversation {
            turns: turns(texts),
            tokens: tokens.map(|total| Tokens {
                total: Some(total),
                ..Tokens::default()
            }),
            ..Conversation::default()
        },
        ..trace(calls)
    }
}

fn scores(trace: &Trace) -> (f64, f64, f64, Option<f64>) {
    let scores = score_session(trace);
    (
        scores.tool_usage_stability(),
        scores.response_consistency(),
        scores.redundancy(),
        scores.cost_per_progress(),
    )
}

#[test]
fn tool_usage() {
    let usage = |calls: &[&str]| score_session(&trace(calls)).tool_usage_stability();
    assert_eq!(usage(&["a", "a", "a"]), 1.0);
    assert_eq!(usage(&["a", "b", "c"]), 0.0);
    assert_eq!(usage(&["a", "b", "a", "b", "a"]), 0.75);
    // 1 - 9/10 is 0.09999999999999998 in doubles.
    let mut calls: Vec<&str> = vec!["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    calls.push("j");
    assert_eq!(usage(&calls), 0.1);
    // Two servers' tools of one name are two tools.
    let two = Trace {
        tool_calls: vec![ToolCall::new(Some("s"), "f"), ToolCall::new(Some("t"), "f")],
        ..Trace::default()
    };
    assert_eq!(scores(&two), (0.0, 1.0, 1.0, None));
}

#[test]
fn lengths_of_turns() {
    let consistency =
        |texts: &[&str]| score_session(&session(&[], texts, Some(0))).response_consistency();
    assert_eq!(consistency(&["abcd", "wxyz"]), 1.0);
    // Lengths 1 and 3: deviation 1, mean 2.
    assert_eq!(consistency(&["a", "abc"]), 0.5);
    // Characters, not bytes.
    assert_eq!(consistency(&["äöü", "abc"]), 1.0);
    // Turns without text do not count.
    assert_eq!(consistency(&["", "abc", "", "a"]), 0.5);
    assert_eq!(consistency(&["", "abc", ""]), 1.0);
    // Lengths 1, 1, 10: cv = √18 / 4 is above 1.
    assert_eq!(consistency(&["a", "a", "aaaaaaaaaa"]), 0.0);
    // Lengths 1, 2, 3: cv = √(2/3) / 2.
    assert!(
        (consistency(&["a", "ab", "abc"]) - (1.0 - (2.0_f64 / 3.0).sqrt() / 2.0)).abs() < 1e-15
    );
    // Only the assistant's turns count.
    let users = Trace {
        conversation: Conversation {
            turns: Some(vec![
                Turn {
                    role: Some("user".into()),
                    content: Some("a long question".into()),
                    ..Turn::default()
                },
                turns(&["ab"]).unwrap().remove(0),
                turns(&["cd"]).unwrap().remove(0),
            ]),
            ..Conversation::default()
        },
        ..Trace::default()
    };
    assert_eq!(score_session(&users).response_consistency(), 1.0);
}

#[test]
fn repeats() {
    let redundancy = |calls: &[&str]| score_session(&trace(calls)).redundancy();
    assert_eq!(redundancy(&["a:1", "a:1", "a:1", "a:1"]), 0.25);
    assert_eq!(redundancy(&["a:1", "a:2"]), 1.0);
    let mut shuffled = trace(&["a:1", "a:1"]);
    shuffled.tool_calls[1].set_args(json!({"b": 1.0, "a": "1"}));
    assert_eq!(score_session(&shuffled).redundancy(), 0.5);
    shuffled.tool_calls[1].server = Some("s".into());
    assert_eq!(score_session(&shuffled).redundancy(), 1.0);
}

#[test]
fn cost() {
    let cost = |calls: &[&str], tokens| {
        score_session(&session(calls, &["x", "y"], tokens)).cost_per_progress()
    };
    assert_eq!(cost(&["a", "b"], Some(4000)), Some(1.0));
    assert_eq!(cost(&["a", "b"], Some(8000)), Some(0.5));
    assert_eq!(cost(&["a", "a"], Some(8000)), Some(0.25));
    assert_eq!(cost(&["a"], Some(0)), Some(1.0));
    assert_eq!(cost(&[], Some(1)), Some(0.0));
    assert_eq!(cost(&[], Some(0)), Some(1.0));
    assert_eq!(cost(&["a"], None), None);
    assert_eq!(cost(&["a"], Some(u64::MAX)), Some(2000.0 / u64::MAX as f64));
}

#[test]
fn a_run_without_a_course_scores_one() {
    let ones = (1.0, 1.0, 1.0, Some(1.0));
    assert_eq!(scores(&Trace::default()), ones);
    assert_eq!(scores(&session(&["a"], &["hello"], Some(1_000_000))), ones);
    assert_eq!(scores(&session(&[], &["hello"], Some(1_000_000))), ones);
    // A second turn, or a second call, is a course.
    assert_eq!(
        scores(&session(&[], &["hello", "there"], Some(5))).3,
        Some(0.0)
    );
    assert_eq!(scores(&session(&[], &["hello", ""], Some(5))).3, Some(0.0));
    assert_eq!(
        scores(&session(&["a", "a"], &["hello"], Some(5000))).3,
        Some(0.4)
    );
}

#[test]
fn unknown_tokens_are_left_out_of_the_weakest_score() {
    let scores = score_session(&session(&["a", "a", "b"], &["ab", "cd"], None));
    assert_eq!(scores.cost_per_progress(), None);
    assert_eq!(scores.weakest_score(), 0.5);
}

fn compare(runs: &[&[&str]]) -> Comparison {
    let traces: Vec<Trace> = runs.iter().map(|calls| trace(calls)).collect();
    compare_runs(&traces.iter().collect::<Vec<_>>())
}

#[test]
fn order_of_calls() {
    let similarity = |runs: &[&[&str]]| compare(runs).tool_sequence_similarity;
    assert_eq!(similarity(&[&["a", "b"], &["a", "b"]]), 1.0);
    assert_eq!(similarity(&[&["a", "b"], &["b", "a"]]), 0.5);
    assert_eq!(similarity(&[&["a", "b", "c"], &["a", "c"]]), 0.8);
    assert_eq!(similarity(&[&[], &[]]), 1.0);
    assert_eq!(similarity(&[&[], &["a"]]), 0.0);
    // Pairs: 1, 0.5, 0.5.
    assert_eq!(
        similarity(&[&["a", "b"], &["a", "b"], &["b", "a"]]),
        2.0 / 3.0
    );
    assert_eq!(similarity(&[&["a"]]), 1.0);
}

#[test]
fn arguments_in_step() {
    let consistency = |runs: &[&[&str]]| compare(runs).argument_consistency;
    assert_eq!(consistency(&[&["a:1", "b:2"], &["a:1", "b:3"]]), 0.5);
    assert_eq!(consistency(&[&["a:1", "b:2"], &["a:1", "c:9", "b:2"]]), 1.0);
    assert_eq!(consistency(&[&["a:1"], &["b:1"]]), 1.0);
    assert_eq!(consistency(&[&[], &["b:1"]]), 1.0);
    assert_eq!(consistency(&[&["a:1"], &["a:2"]]), 0.0);
}

#[test]
fn parting_early() {
    let early = |runs: &[&[&str]]| compare(runs).early_divergence;
    assert!(!early(&[&["a", "b", "c"], &["a", "b", "c"]]));
    assert!(!early(&[&["a", "b", "c"], &["a", "b", "d"]]));
    assert!(early(&[&["a", "b", "c"], &["a", "c", "c"]]));
    // A beginning parts at its end.
    assert!(early(&[&["a", "b", "c"], &["a"]]));
    assert!(!early(&[&["a", "b", "c"], &["a", "b"]]));
    assert!(early(&[&[], &["a"]]));
    // Pairs part at 2, at 0 and at 0: a majority.
    assert!(early(&[&["a", "b", "c"], &["a", "b", "d"], &["x"]]));
    // Exactly half is not a majority: the pairs part at 3, 2, 0, 2, 0 and 0.
    let half: [&[&str]; 4] = [
        &["a", "b", "c", "d"],
        &["a", "b", "c", "e"],
        &["a", "b", "f"],
        &["x"],
    ];
    assert!(!early(&half));
}

fn judge(block: Value, traces: &[Trace]) -> GateOutcome {
    testing::judge("stability", &block, traces)
}

#[test]
fn figures_over_the_runs() {
    let steady = session(&["a", "a:2", "b"], &["ab", "cd"], Some(100)); // usage 0.5
    let looping = session(&["a", "a", "a", "a"], &["ab", "cd"], Some(100)); // redundancy 0.25
    let outcome = judge(json!({}), &[steady, looping]);
    assert_eq!(
        Value::Object(outcome.values),
        json!({
            "stability.score": 0.375,
            "stability.weakest_score": 0.25,
            "stability.variance": 0.015625,
            "stability.tool_sequence_similarity": 4.0 / 7.0,
            "stability.argument_consistency": 0.5,
            "stability.early_divergence": 0,
            "stability.tool_usage_stability": 0.5,
            "stability.response_consistency": 1.0,
            "stability.redundancy": 0.25,
            "stability.cost_per_progress": 1.0,
        })
    );
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(outcome.assertions[0].default);
    assert!(
        outcome.summary.ends_with("worst: redundancy of run 2"),
        "{}",
        outcome.summary
    );
    assert_eq!(
        outcome.detail.to_value()["per_run"][1]["repeated"],
        json!(["a"])
    );
    assert_eq!(
        outcome.detail.to_value()["splits"],
        json!([{"runs": [1, 2], "at": 2, "calls": ["b", "a"]}])
    );
}

#[test]
fn the_default_gate_is_the_weakest_score_at_one_half() {
    let half = session(&["a", "a:2", "b"], &["ab", "cd"], Some(100));
    assert_eq!(
        judge(json!({"expect": []}), &[half.clone(), half]).verdict,
        Verdict::Pass
    );
}

#[test]
fn a_mean_of_equal_scores_is_that_score() {
    // Ten calls of four tools: (10 - 4) / 9 = 2/3; eleven of four: 0.7.
    let calls = [
        "a", "b", "c", "d", "a:1", "a:2", "a:3", "a:4", "a:5", "a:6", "a:7",
    ];
    let runs = vec![trace(&calls); 3];
    let outcome = judge(
        json!({"expect": [{"stability.score": {">=": 0.7}}, {"stability.variance": 0}]}),
        &runs,
    );
    assert_eq!(outcome.values["stability.score"], 0.7);
    assert_eq!(outcome.verdict, Verdict::Pass);
}

#[test]
fn unknown_tokens_leave_the_cost_undefined() {
    let known = session(&["a", "b"], &["x", "y"], Some(10));
    let unknown = session(&["a", "b"], &["x", "y"], None);
    let outcome = judge(
        json!({"expect": [{"stability.cost_per_progress": {">=": 0}}]}),
        &[known, unknown],
    );
    assert_eq!(outcome.values["stability.cost_per_progress"], Value::Null);
    assert_eq!(outcome.verdict, Verdict::Fail);
    let reason = outcome.assertions[0].reason.as_ref().unwrap();
    assert!(
        reason.contains("token usage is unknown (run 2)"),
        "{reason}"
    );
}

#[test]
fn one_trace_or_empty_traces_are_no_evidence() {
    let looping = trace(&["a", "a", "a", "a"]);
    let one = judge(json!({}), std::slice::from_ref(&looping));
    assert_eq!(one.verdict, Verdict::NoEvidence);
    assert_eq!(one.values["stability.weakest_score"], 0.25);
    assert_eq!(one.values["stability.variance"], 0.0);
    assert_eq!(
        judge(json!({}), &[Trace::default(), Trace::default()]).verdict,
        Verdict::NoEvidence
    );
    assert_eq!(
        judge(json!({}), &[Trace::default(), looping]).verdict,
        Verdict::Fail
    );
    assert_eq!(
        judge(json!({}), &[trace(&["a"]), trace(&["a"])]).verdict,
        Verdict::Pass
    );
}

#[test]
fn one_run_is_refused_when_the_suite_is_loaded() {
    let load = |to_run: bool, runs: Option<u32>| {
        let context = LoadContext {
            to_run,
            runs,
            siblings: &[],
            attacks: Default::default(),
        };
        LoadedGate::load(find("stability").unwrap(), &json!({}), &context).1
    };
    for (to_run, runs) in [
        (true, None),
        (true, Some(0)),
        (true, Some(1)),
        (false, Some(1)),
    ] {
        let problems = load(to_run, runs);
        assert_eq!(problems.len(), 1, "{to_run} {runs:?}");
        assert!(problems[0].help.as_ref().unwrap().contains("at least 2"));
    }
    for (to_run, runs) in [(true, Some(2)), (false, Some(2)), (false, None)] {
        assert!(load(to_run, runs).is_empty(), "{to_run} {runs:?}");
    }
}

#[test]
fn no_target_can_be_asserted_in_vain() {
    let runs = [
        session(&["a", "a", "b"], &["ab", "c"], Some(100)),
        session(&["a", "c"], &["ab", "cd"], Some(100)),
        session(&["a"], &["ab", "cd"], Some(9000)),
    ];
    for target in Stability::TARGETS {
        for matcher in [
            json!({">": 1e18}),
            json!({"<": -1e18}),
            json!({"exact": "never"}),
        ] {
            let outcome = judge(json!({"expect": [{target.name: matcher}]}), &runs);
            assert_eq!(outcome.verdict, Verdict::Fail, "{}", target.name);
        }
    }
}

fn any_session() -> impl Strategy<Value = Trace> {
    let calls = prop::collection::vec(prop::sample::select(vec!["a:1", "a:2", "b:1", "c:3"]), 0..8);
    let texts = prop::collection::vec(
        prop::sample::select(vec!["", "x", "hello", "a longer answer"]),
        0..5,
    );
    (calls, texts, prop::option::of(0_u64..20_000))
        .prop_map(|(calls, texts, tokens)| session(&calls, &texts, tokens))
}

proptest! {
    #[test]
    fn figures_are_bounded_and_the_order_of_runs_is_free(mut runs in prop::collection::vec(any_session(), 1..7)) {
        let before = judge(json!({}), &runs).values;
        for (name, value) in &before {
            if let Some(value) = value.as_f64() {
                prop_assert!((0.0..=1.0).contains(&value), "{} {}", name, value);
            } else {
                prop_assert_eq!(name, COST);
            }
        }
        prop_assert!(before["stability.weakest_score"].as_f64() <= before["stability.score"].as_f64());
        prop_assert!(before["stability.variance"].as_f64().unwrap() <= 0.25);
        runs.reverse();
        prop_assert_eq!(before, judge(json!({}), &runs).values);
    }

    #[test]
    fn keys_change_nothing_and_words_only_what_is_about_words(runs in prop::collection::vec(any_session(), 2..5), text in "[a-z]{1,30}") {
        let before = judge(json!({}), &runs).values;
        let mut rewritten = runs.clone();
        for trace in &mut rewritten {
            for turn in trace.conversation.turns.iter_mut().flatten() {
                turn.content = Some(text.clone().into());
            }
            for call in &mut trace.tool_calls {
                let args = call.args.take().unwrap().into_value();
                call.set_args(args.as_object().unwrap().iter().rev().map(|(key, value)| (key.clone(), value.clone())).collect());
            }
        }
        let after = judge(json!({}), &rewritten).values;
        let about_words = [RESPONSES, "stability.score", "stability.weakest_score", "stability.variance"];
        for (name, value) in &before {
            if !about_words.contains(&name.as_str()) {
                prop_assert_eq!(value, &after[name], "{}", name);
            }
        }
        prop_assert_eq!(&after[RESPONSES], &json!(1.0));
    }

    #[test]
    fn the_longest_common_subsequence_is_symmetric_and_bounded(a in prop::collection::vec(0_u32..3, 0..9), b in prop::collection::vec(0_u32..3, 0..9)) {
        let lcs = longest_common_subsequence(&a, &b);
        prop_assert_eq!(lcs, longest_common_subsequence(&b, &a));
        prop_assert!(lcs <= a.len().min(b.len()));
        let prefix = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        prop_assert!(lcs >= prefix);
    }
}

/// The comparison of all pairs of runs, one by one.
fn compare_one_by_one(traces: &[Trace]) -> (f64, f64, bool, u64) {
    let all = traces.iter().flat_map(|trace| &trace.tool_calls);
    let all: IndexSet<&str> = all.map(ToolCall::name).collect();
    let names = |trace: &Trace| -> Vec<u32> {
        let calls = trace.tool_calls.iter();
        let numbers = calls.filter_map(|call| all.get_index_of(call.name()));
        numbers.map(|number| number as u32).collect()
    };
    let (mut similarities, mut shares) = (Vec::new(), Vec::new());
    let (mut diverging, mut early) = (0, 0);
    for (at, a) in traces.iter().enumerate() {
        for b in &traces[at + 1..] {
            let (x, y) = (names(a), names(b));
            let common = 2 * longest_common_subsequence(&x, &y);
            let lengths = x.len() + y.len();
            similarities.push(match lengths {
                0 => Ratio::one(),
                _ => Ratio::new(common, lengths),
            });
            let both = a.tool_calls.iter().zip(&b.tool_calls);
            let aligned: Vec<_> = both.filter(|(a, b)| a.name() == b.name()).collect();
            let equal = aligned.iter().filter(|(a, b)| a.args() == b.args()).count();
            shares.push(match aligned.len() {
                0 => Ratio::one(),
                aligned => Ratio::new(equal, aligned),
            });
            if x != y {
                diverging += 1;
                let split = x.iter().zip(&y).take_while(|(x, y)| x == y).count();
                early += u64::from(split < 2);
            }
        }
    }
    let mean = |values: &[Ratio]| mcptest_numbers::ratio::mean(values).unwrap_or(1.0);
    (
        mean(&similarities),
        mean(&shares),
        2 * early > diverging,
        diverging,
    )
}

proptest! {
    #[test]
    fn groups_and_lanes_give_the_comparison_of_all_pairs(
        runs in prop::collection::vec(
            (
                prop_oneof![
                    4 => prop::collection::vec((0..4_u8, 0..3_u8), 0..6),
                    2 => prop::collection::vec((0..4_u8, 0..3_u8), 7..20),
                    1 => prop::collection::vec((0..4_u8, 0..3_u8), 14..40),
                    1 => prop::collection::vec((0..4_u8, 0..3_u8), 60..70),
                ],
                1..3_usize,
            ),
            0..40,
        ),
        kind in 0..4_u8,
    ) {
        let mut traces: Vec<Trace> = Vec::new();
        for (at, (calls, copies)) in runs.iter().enumerate() {
            let call = |(name, args): &(u8, u8)| {
                // A name that no other run has, and one that few have.
                let name = match name {
                    0 => format!("only in {at}"),
                    1 if kind == 3 => format!("in two: {}", at / 2),
                    name => char::from(b'a' + name).to_string(),
                };
                let mut call = ToolCall::new(None, &name);
                call.set_args(match kind {
                    0 => json!({}),
                    1 => json!({ "n": at, "m": args }),
                    _ => json!({ "n": args }),
                });
                call
            };
            let trace = Trace {
                tool_calls: calls.iter().map(call).collect(),
                ..Trace::default()
            };
            traces.extend(vec![trace; *copies]);
        }
        let found = compare_runs(&traces.iter().collect::<Vec<_>>());
        let found = (
            found.tool_sequence_similarity,
            found.argument_consistency,
            found.early_divergence,
            found.diverging_pairs,
        );
        prop_assert_eq!(found, compare_one_by_one(&traces));
    }
}
