use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{GateOutcome, testing};
use mcptest_trace::trace::{Conversation, Tokens, ToolCall, Trace};
use mcptest_trace::verdict::Verdict;

fn run(tool: &str, tokens: Option<u64>) -> Trace {
    Trace {
        tool_calls: if tool.is_empty() {
            vec![]
        } else {
            vec![ToolCall::new(Some("weather"), tool)]
        },
        conversation: Conversation {
            tokens: tokens.map(|total| Tokens {
                total: Some(total),
                ..Tokens::default()
            }),
            ..Conversation::default()
        },
        ..Trace::default()
    }
}

fn judge(block: Value, traces: &[Trace]) -> GateOutcome {
    testing::judge("tool_selection", &block, traces)
}

fn floor(rate: f64, cap: Option<u64>) -> Value {
    let mut block = json!({"expected_tool": "get_weather", "min_selection_rate": rate});
    if let Some(cap) = cap {
        block["max_total_tokens"] = cap.into();
    }
    block
}

#[test]
fn the_documented_passing_line() {
    let mut runs: Vec<_> = [1500, 1510, 1520, 1400, 1840, 1520, 1600, 1700, 1300]
        .iter()
        .map(|tokens| run("get_weather", Some(*tokens)))
        .collect();
    runs.push(run("search", Some(1520)));
    let outcome = judge(floor(0.8, Some(2000)), &runs);
    assert_eq!(outcome.verdict, Verdict::Pass);
    assert_eq!(
        outcome.status_lines,
        [
            "tool-selection floor [PASS] test: selection 9/10 (90%), pass^k 90%, tokens 1520 median / 1840 max"
        ]
    );
    assert_eq!(
        outcome.detail.to_value()["per_run"][9],
        json!({"index": 10, "selected": false, "tokens": 1520, "within_budget": true, "called": ["search"]})
    );
}

#[test]
fn the_documented_failing_lines() {
    let runs = [
        run("get_weather", Some(100)),
        run("search", Some(100)),
        run("get_weather", Some(3120)),
        run("get_weather", Some(2400)),
        run("get_weather", Some(100)),
        run("", Some(100)),
        run("search", Some(100)),
        run("get_weather", Some(2100)),
        run("get_weather", Some(100)),
        run("search", Some(100)),
    ];
    let outcome = judge(floor(0.8, Some(2000)), &runs);
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert_eq!(
        outcome.status_lines[1],
        "FLOOR test: selection rate 60% is below the 80% floor (6 of 10 runs selected `get_weather`)"
    );
    assert_eq!(
        outcome.status_lines[2],
        "FLOOR test: 3 of 10 runs exceeded the 2000-token budget (worst run 3120 tokens)"
    );
    assert!(
        outcome
            .status_lines
            .contains(&"  run 4: 2400 tokens, over budget".to_owned())
    );
    assert!(
        outcome
            .status_lines
            .contains(&"  run 7: did not select `get_weather`, called search".to_owned())
    );
    assert!(
        outcome
            .status_lines
            .contains(&"  run 6: did not select `get_weather`, called no tool".to_owned())
    );
    assert_eq!(outcome.values["floor.pass_hat_k"], 30);
}

#[test]
fn the_rate_is_compared_as_written() {
    let runs: Vec<_> = (0..10)
        .map(|index| run(if index < 7 { "get_weather" } else { "x" }, None))
        .collect();
    assert_eq!(judge(floor(0.7, None), &runs).verdict, Verdict::Pass);
    assert_eq!(judge(floor(0.71, None), &runs).verdict, Verdict::Fail);
}

#[test]
fn the_cap_is_all_or_nothing_and_inclusive() {
    assert_eq!(
        judge(floor(0.0, Some(100)), &[run("get_weather", Some(100))]).verdict,
        Verdict::Pass
    );
    let outcome = judge(
        floor(0.0, Some(100)),
        &[run("get_weather", Some(100)), run("get_weather", Some(101))],
    );
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert_eq!(outcome.values["floor.selection_rate"], 100);
}

#[test]
fn unknown_usage_is_not_zero() {
    let outcome = judge(
        floor(0.5, Some(100)),
        &[run("get_weather", Some(50)), run("get_weather", None)],
    );
    assert_eq!(outcome.verdict, Verdict::NoEvidence);
    assert_eq!(outcome.values["floor.passed"], Value::Null);
    assert_eq!(outcome.values["floor.tokens_max"], Value::Null);
    assert!(outcome.no_evidence.unwrap().contains("run 2"));
    // What is certain stays certain: a missed rate, or a known run over the cap.
    assert_eq!(
        judge(floor(1.0, Some(100)), &[run("x", None)]).verdict,
        Verdict::Fail
    );
    assert_eq!(
        judge(
            floor(0.0, Some(100)),
            &[run("x", None), run("x", Some(101))]
        )
        .verdict,
        Verdict::Fail
    );
    // Without a cap nobody asks for tokens.
    assert_eq!(
        judge(floor(0.5, None), &[run("get_weather", None)]).verdict,
        Verdict::Pass
    );
}

#[test]
fn an_assertion_on_unknown_tokens_fails_with_the_reason() {
    let mut block = floor(0.0, None);
    block["expect"] = json!([{"floor.tokens_max": {"<=": 10}}]);
    let outcome = judge(block, &[run("x", None)]);
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(
        outcome.assertions[1]
            .reason
            .as_ref()
            .unwrap()
            .contains("token usage is unknown")
    );
}

#[test]
fn further_expectations_do_not_replace_the_floor() {
    let mut block = floor(1.0, None);
    block["expect"] = json!([{"floor.selection_rate": {">=": 0}}]);
    assert_eq!(judge(block, &[run("x", None)]).verdict, Verdict::Fail);
}

#[test]
fn medians() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[5]), Some(5));
    assert_eq!(median(&[1, 2]), Some(1));
    assert_eq!(median(&[4, 1, 9]), Some(4));
    assert_eq!(median(&[u64::MAX, u64::MAX - 1]), Some(u64::MAX - 1));
}

proptest! {
    #[test]
    fn order_of_runs_changes_no_value(mut runs in prop::collection::vec((any::<bool>(), prop::option::of(0_u64..300)), 1..9)) {
        let traces = |runs: &[(bool, Option<u64>)]| -> Vec<Trace> {
            runs.iter().map(|(hit, tokens)| run(if *hit { "get_weather" } else { "x" }, *tokens)).collect()
        };
        let before = judge(floor(0.5, Some(200)), &traces(&runs));
        runs.reverse();
        let after = judge(floor(0.5, Some(200)), &traces(&runs));
        prop_assert_eq!(&before.values, &after.values);
        prop_assert_eq!(before.verdict, after.verdict);
        if let Some(hat) = before.values["floor.pass_hat_k"].as_u64() {
            prop_assert!(hat <= before.values["floor.selection_rate"].as_u64().unwrap());
        }
    }
}

#[test]
fn a_floor_that_only_failed_calls_met_is_marked() {
    let called = |failed: &[bool]| -> Trace {
        let calls: Vec<_> = failed
            .iter()
            .map(|_| json!({"name": "get_weather"}))
            .collect();
        let results: Vec<_> = failed
            .iter()
            .map(|failed| json!({"is_error": failed}))
            .collect();
        serde_json::from_value(json!({"tool_calls": calls, "tool_results": results})).unwrap()
    };
    let summary = |runs: &[Trace]| judge(floor(0.5, None), runs).summary;
    let all = summary(&[called(&[true]), called(&[true, true])]);
    assert!(all.ends_with(", but every call of it failed"), "{all}");
    let some = summary(&[called(&[true]), called(&[true, false])]);
    let words = ", but in 1 of these runs every call of it failed";
    assert!(some.ends_with(words), "{some}");
    let none = summary(&[called(&[false])]);
    assert!(!none.contains("failed"), "{none}");
}
