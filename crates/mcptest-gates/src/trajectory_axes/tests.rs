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

/// The block of the documents.
fn block() -> Value {
    json!({
        "dependencies": [{"producer": "search", "consumer": "fetch_page"}],
        "order": [{"first": "authenticate", "second": "search"}]
    })
}

fn judge(block: Value, runs: &[&[&str]]) -> GateOutcome {
    let traces: Vec<Trace> = runs.iter().map(|names| trace(names)).collect();
    testing::judge("trajectory_axes", &block, &traces)
}

fn figures(outcome: &GateOutcome) -> (u64, u64) {
    (
        outcome.values["trajectory.dependency_satisfaction"]
            .as_u64()
            .unwrap(),
        outcome.values["trajectory.order_satisfaction"]
            .as_u64()
            .unwrap(),
    )
}

#[test]
fn the_documents_block() {
    for (calls, dependency, order) in [
        (
            &["authenticate", "search", "fetch_page"] as &[&str],
            100,
            100,
        ),
        // Extra calls, retries and unrelated orders are free.
        (
            &[
                "x",
                "authenticate",
                "search",
                "search",
                "y",
                "fetch_page",
                "authenticate",
            ],
            100,
            100,
        ),
        (&["search", "authenticate", "fetch_page"], 100, 0),
        (&["authenticate", "fetch_page", "search"], 0, 100),
        // The first of each decides: a later producer does not undo an early consumer.
        (
            &["authenticate", "fetch_page", "search", "fetch_page"],
            0,
            100,
        ),
        (&["search", "fetch_page"], 100, 0),
        (&["authenticate", "search"], 0, 100),
        (&[], 0, 0),
    ] {
        let outcome = judge(block(), &[calls]);
        assert_eq!(figures(&outcome), (dependency, order), "{calls:?}");
        let good = (dependency, order) == (100, 100);
        assert_eq!(
            outcome.verdict,
            if good { Verdict::Pass } else { Verdict::Fail }
        );
        assert_eq!(outcome.assertions.len(), 2);
    }
}

#[test]
fn edges_are_pooled_over_runs_and_rounded_down() {
    let good: &[&str] = &["authenticate", "search", "fetch_page"];
    let bad: &[&str] = &["search", "fetch_page"];
    let outcome = judge(block(), &[good, bad, good]);
    assert_eq!(figures(&outcome), (100, 66));
    assert_eq!(
        outcome.detail.to_value()["broken"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(outcome.detail.to_value()["broken"][0]["run"], json!(2));
    assert!(
        outcome.summary.contains("`authenticate` was never called"),
        "{}",
        outcome.summary
    );
}

#[test]
fn an_empty_axis_is_100_and_an_empty_block_no_evidence() {
    let outcome = judge(
        json!({"order": [{"first": "a", "second": "b"}]}),
        &[&["a", "b"]],
    );
    assert_eq!(
        (figures(&outcome), outcome.verdict),
        ((100, 100), Verdict::Pass)
    );
    let outcome = judge(json!({}), &[&["a"]]);
    assert_eq!(
        (figures(&outcome), outcome.verdict),
        ((100, 100), Verdict::NoEvidence)
    );
}

#[test]
fn what_can_never_hold_is_warned_about() {
    let mut axes: TrajectoryAxes = serde_json::from_value(
        json!({"dependencies": [{"producer": "a", "consumer": "b"}, {"producer": "a", "consumer": "a"}]}),
    )
    .unwrap();
    let context = LoadContext {
        to_run: false,
        runs: None,
        siblings: &[],
        attacks: Default::default(),
    };
    let problems = axes.check(&context);
    assert_eq!(problems.len(), 1);
    assert_eq!(
        (problems[0].pointer.as_str(), problems[0].warning),
        ("/dependencies/1", true)
    );
    assert!(TrajectoryAxes::default().check(&context)[0].warning);
    assert_eq!(
        figures(&judge(
            json!({"order": [{"first": "a", "second": "a"}]}),
            &[&["a", "a"]]
        )),
        (100, 0)
    );
}

#[test]
fn every_target_can_fail() {
    for target in TrajectoryAxes::TARGETS {
        let mut block = block();
        block["expect"] = json!([{target.name: {">": 1e18}}]);
        let good: &[&str] = &["authenticate", "search", "fetch_page"];
        assert_eq!(
            judge(block, &[good, good]).verdict,
            Verdict::Fail,
            "{}",
            target.name
        );
    }
}

proptest! {
    #[test]
    fn percents_are_bounded_and_the_order_of_runs_is_free(
        mut runs in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["authenticate", "search", "fetch_page", "x"]), 0..6), 1..5),
    ) {
        let views: Vec<&[&str]> = runs.iter().map(Vec::as_slice).collect();
        let before = judge(block(), &views);
        let (dependency, order) = figures(&before);
        prop_assert!(dependency <= 100 && order <= 100);
        // Unrelated calls change nothing.
        for calls in &mut runs {
            calls.insert(0, "x");
            calls.push("x");
        }
        runs.reverse();
        // Another closing message with the same calls.
        let narrated: Vec<Trace> = runs
            .iter()
            .map(|names| Trace { final_response: Some("I did something else.".into()), ..trace(names) })
            .collect();
        prop_assert_eq!(before.values, testing::judge("trajectory_axes", &block(), &narrated).values);
    }
}
