use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{GateOutcome, testing};
use mcptest_trace::trace::{ToolCall, Trace};
use mcptest_trace::verdict::Verdict;

fn trace(names: &[&str]) -> Trace {
    Trace {
        tool_calls: names
            .iter()
            .map(|name| ToolCall::new(Some("s"), name))
            .collect(),
        ..Trace::default()
    }
}

fn judge(block: Value, runs: &[&[&str]]) -> GateOutcome {
    let traces: Vec<Trace> = runs.iter().map(|names| trace(names)).collect();
    testing::judge("tool_edges", &block, &traces)
}

fn figures(outcome: &GateOutcome) -> [u64; 4] {
    let figures: Vec<u64> = outcome
        .values
        .values()
        .map(|value| value.as_u64().unwrap())
        .collect();
    figures.try_into().unwrap()
}

fn policy() -> Value {
    json!({"allowed": ["a", "s.b"], "restricted": ["drop"], "delegation": [{"from": "a", "to": "b"}]})
}

#[test]
fn the_figures() {
    for (runs, expected) in [
        (&[&["a", "b"] as &[&str]] as &[&[&str]], [100, 0, 100, 1]),
        (&[&["a", "b", "x"]], [66, 0, 100, 1]),
        (&[&["a", "drop", "b", "drop"]], [50, 2, 100, 0]),
        // Any `to` after any `from`.
        (&[&["b", "a"]], [100, 0, 0, 1]),
        (&[&["b", "a", "b"]], [100, 0, 100, 1]),
        (&[&["a"]], [100, 0, 0, 1]),
        (&[&[]], [100, 0, 0, 1]),
        // Pooled: 4 of 5 calls, 2 of 4 pairs.
        (&[&["a", "b"], &["x"], &["a", "b"], &[]], [80, 0, 50, 1]),
    ] {
        assert_eq!(figures(&judge(policy(), runs)), expected, "{runs:?}");
    }
    assert_eq!(
        figures(&judge(json!({"restricted": ["drop"]}), &[&["x"]])),
        [100, 0, 100, 1]
    );
    assert_eq!(
        figures(&judge(json!({"allowed": []}), &[&["x"]])),
        [0, 0, 100, 1]
    );
}

#[test]
fn by_default_only_a_restricted_attempt_fails() {
    assert_eq!(judge(policy(), &[&["x"]]).verdict, Verdict::Pass);
    let failed = judge(policy(), &[&["a", "b"], &["a", "drop"]]);
    assert_eq!(failed.verdict, Verdict::Fail);
    assert!(failed.assertions[0].default);
    assert!(
        failed.summary.contains("run 2: called restricted `s.drop`"),
        "{}",
        failed.summary
    );
    assert_eq!(
        failed.detail.to_value()["findings"][0]["recorded_index"],
        json!(1)
    );
    let mut strict = policy();
    strict["expect"] = json!([{"edges.allowed_pct": 100}]);
    assert_eq!(judge(strict, &[&["x"]]).verdict, Verdict::Fail);
}

#[test]
fn nothing_called_is_no_evidence_unless_that_was_asked_for() {
    assert_eq!(judge(policy(), &[&[], &[]]).verdict, Verdict::NoEvidence);
    assert_eq!(judge(policy(), &[&[], &["a"]]).verdict, Verdict::Pass);
    assert_eq!(
        judge(
            json!({"allowed": [], "expect": [{"edges.allowed_pct": 100}]}),
            &[&[]]
        )
        .verdict,
        Verdict::Pass
    );
    assert_eq!(judge(json!({}), &[&["a"]]).verdict, Verdict::NoEvidence);
}

#[test]
fn policies_that_cannot_bite_are_warned_about() {
    for (block, places) in [
        (json!({}), vec![""]),
        (json!({"allowed": ["a"]}), vec![""]),
        (
            json!({"allowed": ["a"], "expect": [{"edges.allowed_pct": 100}]}),
            vec![],
        ),
        (
            json!({"allowed": ["a"], "restricted": ["b", "a"]}),
            vec!["/restricted/1"],
        ),
    ] {
        let mut policy: ToolEdges = serde_json::from_value(block.clone()).unwrap();
        let context = LoadContext {
            to_run: true,
            runs: None,
            siblings: &[],
            attacks: Default::default(),
        };
        let problems = policy.check(&context);
        assert!(problems.iter().all(|problem| problem.warning));
        let found: Vec<_> = problems
            .iter()
            .map(|problem| problem.pointer.as_str())
            .collect();
        assert_eq!(found, places, "{block}");
    }
}

#[test]
fn every_target_can_fail() {
    for target in ToolEdges::TARGETS {
        let mut block = policy();
        block["expect"] = json!([{target.name: {">": 1e18}}]);
        assert_eq!(
            judge(block, &[&["a", "b"], &["a", "b"]]).verdict,
            Verdict::Fail,
            "{}",
            target.name
        );
    }
}

proptest! {
    #[test]
    fn figures_are_bounded_and_the_order_of_runs_is_free(
        mut runs in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["a", "b", "drop", "x"]), 0..6), 1..5),
    ) {
        let views: Vec<&[&str]> = runs.iter().map(Vec::as_slice).collect();
        let before = judge(policy(), &views);
        let [allowed, attempts, delegation, passed] = figures(&before);
        prop_assert!(allowed <= 100 && delegation <= 100);
        prop_assert_eq!(attempts, runs.iter().flatten().filter(|name| **name == "drop").count() as u64);
        prop_assert_eq!(passed == 1, attempts == 0);
        runs.reverse();
        // Another closing message with the same calls.
        let narrated: Vec<Trace> = runs
            .iter()
            .map(|names| Trace { final_response: Some("I did something else.".into()), ..trace(names) })
            .collect();
        prop_assert_eq!(before.values, testing::judge("tool_edges", &policy(), &narrated).values);
    }
}
