use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{GateOutcome, testing};
use mcptest_trace::trace::{ToolCall, Trace};
use mcptest_trace::verdict::Verdict;

fn trace(names: &[&str]) -> Trace {
    Trace {
        tool_calls: names.iter().map(|name| ToolCall::new(None, name)).collect(),
        ..Trace::default()
    }
}

fn counts(golden: &[&str], calls: &[&str]) -> (u64, u64, u64) {
    let report = score_golden_path(
        &GoldenPath::new(golden.iter().copied()),
        &trace(calls).tool_calls,
    );
    (report.extra_steps, report.backtracks, report.repeated_tools)
}

fn judge(block: Value, runs: &[&[&str]]) -> GateOutcome {
    let traces: Vec<Trace> = runs.iter().map(|names| trace(names)).collect();
    testing::judge("golden_path", &block, &traces)
}

#[test]
fn the_three_kinds_of_waste() {
    // (golden path, calls, extra steps, backtracks, repeats)
    for (golden, calls, extra, back, repeated) in [
        (&["a"] as &[&str], &["a"] as &[&str], 0, 0, 0),
        (&["a", "b"], &["a", "b"], 0, 0, 0),
        // Fewer calls, or other ones, are not waste.
        (&["a", "b"], &["a"], 0, 0, 0),
        (&["a", "b"], &["x", "y"], 0, 0, 0),
        (&["a"], &["a", "b"], 1, 0, 0),
        (&["a"], &["a", "a"], 1, 0, 1),
        (&["a", "b"], &["a", "b", "a"], 1, 1, 0),
        (&["a", "b"], &["a", "b", "a", "b"], 2, 2, 0),
        (&["a", "b"], &["a", "b", "b", "a"], 2, 1, 1),
        // The second of two repeats in a row is one too; a return that is repeated is a
        // backtrack and a repeat.
        (&["a"], &["a", "a", "a"], 2, 0, 2),
        (&["a", "b"], &["a", "b", "a", "a"], 2, 1, 1),
        (&[], &["a"], 1, 0, 0),
        (&[], &[], 0, 0, 0),
    ] {
        assert_eq!(
            counts(golden, calls),
            (extra, back, repeated),
            "{golden:?} {calls:?}"
        );
    }
}

#[test]
fn a_tool_is_its_server_and_its_name() {
    let golden = GoldenPath::new(["a", "b"]);
    let calls = [
        ToolCall::new(Some("x"), "search"),
        ToolCall::new(Some("y"), "search"),
    ];
    assert_eq!(score_golden_path(&golden, &calls).waste, 0);
}

#[test]
fn the_penalty_follows_the_formula() {
    for (waste, expected) in [
        (0, 1.0),
        (1, 1.0 / 1.5),
        (2, 0.5),
        (4, 1.0 / 3.0),
        (18, 0.1),
    ] {
        let report = GoldenPathReport {
            waste,
            ..GoldenPathReport::default()
        };
        assert_eq!(report.penalty(), expected);
    }
    let huge = GoldenPathReport {
        waste: u64::MAX,
        ..GoldenPathReport::default()
    };
    assert!(huge.penalty() > 0.0);
}

#[test]
fn switched_off_kinds_are_still_reported() {
    let block =
        json!({"calls": ["a"], "penalize_extra_steps": false, "penalize_repeated_tools": false});
    let outcome = judge(block, &[&["a", "a"]]);
    assert_eq!(outcome.verdict, Verdict::Pass);
    assert_eq!(
        Value::Object(outcome.values),
        json!({"golden_path.penalty": 1.0, "golden_path.passed": 1, "golden_path.extra_steps": 1, "golden_path.backtracks": 0, "golden_path.repeated_tools": 1})
    );
    let back = json!({"calls": ["a", "b", "c"], "penalize_backtracks": false});
    assert_eq!(judge(back, &[&["a", "b", "a"]]).verdict, Verdict::Pass);
}

#[test]
fn several_runs_take_the_lowest_penalty_and_the_sums() {
    let outcome = judge(
        json!({"calls": ["a"]}),
        &[&["a"], &["a", "b"], &["a", "a", "b"]],
    );
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(outcome.assertions[0].default);
    assert_eq!(outcome.values["golden_path.penalty"], json!(0.4));
    assert_eq!(outcome.values["golden_path.passed"], json!(0));
    assert_eq!(outcome.values["golden_path.extra_steps"], json!(3));
    assert_eq!(outcome.values["golden_path.repeated_tools"], json!(1));
    assert_eq!(
        outcome.detail.to_value()["per_run"][1]["off_path"],
        json!(["b"])
    );
    assert!(
        outcome.summary.contains("run 2: a → b"),
        "{}",
        outcome.summary
    );
}

#[test]
fn nothing_called_is_no_evidence_unless_that_was_asked_for() {
    assert_eq!(
        judge(json!({"calls": ["a"]}), &[&[], &[]]).verdict,
        Verdict::NoEvidence
    );
    assert_eq!(
        judge(json!({"calls": ["a"]}), &[&[], &["a"]]).verdict,
        Verdict::Pass
    );
    assert_eq!(judge(json!({"calls": []}), &[&[]]).verdict, Verdict::Pass);
    assert_eq!(
        judge(json!({"calls": []}), &[&["a"]]).verdict,
        Verdict::Fail
    );
}

#[test]
fn an_unreachable_golden_path_is_warned_about() {
    for (block, places) in [
        (json!({"calls": ["a", "b", "a"]}), vec!["/calls/2"]),
        (json!({"calls": ["a", "a"]}), vec!["/calls/1"]),
        (
            json!({"calls": ["a", "a", "b", "a"]}),
            vec!["/calls/3", "/calls/1"],
        ),
        (
            json!({"calls": ["a", "a", "b", "a"], "penalize_backtracks": false}),
            vec!["/calls/1"],
        ),
        (
            json!({"calls": ["a", "a"], "penalize_repeated_tools": false}),
            vec![],
        ),
        (json!({"calls": ["a", "b"]}), vec![]),
        (
            json!({"calls": ["a"], "penalize_repeated_tools": false, "penalize_backtracks": false, "penalize_extra_steps": false}),
            vec![""],
        ),
    ] {
        let mut golden: GoldenPath = serde_json::from_value(block.clone()).unwrap();
        let context = LoadContext {
            to_run: true,
            runs: None,
            siblings: &[],
            attacks: Default::default(),
        };
        let problems = golden.check(&context);
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
    for target in GoldenPath::TARGETS {
        let mut block = json!({"calls": ["a"]});
        block["expect"] = json!([{target.name: {">": 1e18}}]);
        assert_eq!(
            judge(block, &[&["a"], &["a"]]).verdict,
            Verdict::Fail,
            "{}",
            target.name
        );
    }
}

proptest! {
    #[test]
    fn waste_is_bounded_and_the_order_of_runs_is_free(
        mut runs in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..8), 1..4),
        length in 0_usize..4,
    ) {
        let golden: Vec<&str> = ["a", "b", "c"].into_iter().take(length).collect();
        let block = json!({"calls": golden});
        for calls in &runs {
            let (extra, back, repeated) = counts(&golden, calls);
            prop_assert!(back + repeated <= calls.len().saturating_sub(1) as u64);
            prop_assert_eq!(extra, calls.len().saturating_sub(golden.len()) as u64);
            let distinct: BTreeSet<_> = calls.iter().collect();
            // Every call is a first use, a repeat or a return.
            prop_assert_eq!(distinct.len() as u64 + back + repeated, calls.len() as u64);
        }
        let views: Vec<&[&str]> = runs.iter().map(Vec::as_slice).collect();
        let before = judge(block.clone(), &views);
        let penalty = before.values["golden_path.penalty"].as_f64().unwrap();
        prop_assert!(penalty > 0.0 && penalty <= 1.0);
        prop_assert_eq!(before.values["golden_path.passed"] == json!(1), penalty == 1.0);
        runs.reverse();
        // Another closing message with the same calls.
        let narrated: Vec<Trace> = runs
            .iter()
            .map(|names| Trace { final_response: Some("I did something else.".into()), ..trace(names) })
            .collect();
        prop_assert_eq!(before.values, testing::judge("golden_path", &block, &narrated).values);
    }
}
