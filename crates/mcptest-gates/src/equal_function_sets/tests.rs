use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{GateOutcome, testing};
use mcptest_trace::trace::{ToolCall, Trace};
use mcptest_trace::verdict::Verdict;

fn class(name: &str, members: &[&str]) -> Class {
    Class {
        name: name.into(),
        members: members.iter().map(|member| (*member).to_owned()).collect(),
    }
}

fn documents_classes() -> Vec<Class> {
    vec![
        class("search", &["brave.web_search", "google.search"]),
        class("fetch", &["http.get"]),
    ]
}

/// `server.tool` or `tool`.
fn call(id: &str) -> ToolCall {
    match id.split_once('.') {
        Some((server, name)) => ToolCall::new(Some(server), name),
        None => ToolCall::new(None, id),
    }
}

fn select(classes: &[Class], calls: &[&str]) -> Selection {
    let calls: Vec<_> = calls.iter().map(|id| call(id)).collect();
    score_selection(classes, &calls, &KnownServers::default())
}

fn percents(counts: SelectionCounts) -> (u64, u64, u64) {
    (counts.precision(), counts.recall(), counts.f1())
}

#[test]
fn the_documents_worked_examples() {
    let good = select(&documents_classes(), &["brave.web_search", "http.get"]);
    assert_eq!(percents(good.counts), (100, 100, 100));
    let half = select(&documents_classes(), &["google.search", "shell.exec"]);
    assert_eq!(percents(half.counts), (50, 50, 50));
    assert_eq!(half.missed, ["fetch"]);
    assert_eq!(half.unexpected, ["shell.exec"]);
}

#[test]
fn f1_comes_from_counts() {
    // Precision 1.0 with recall 0.6 is 75; through rounded or binary floats it would be 74.
    let classes: Vec<_> = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|name| class(name, &[name]))
        .collect();
    assert_eq!(
        percents(select(&classes, &["a", "b", "c"]).counts),
        (100, 60, 75)
    );
}

#[test]
fn edges() {
    assert_eq!(percents(select(&[], &[]).counts), (100, 100, 100));
    assert_eq!(percents(select(&[], &["x"]).counts), (0, 0, 0));
    assert_eq!(
        percents(select(&documents_classes(), &[]).counts),
        (0, 0, 0)
    );
    // A repeat within a class is neutral; a stray tool called twice counts twice but is named
    // once.
    assert_eq!(
        percents(
            select(
                &documents_classes(),
                &["google.search", "brave.web_search", "http.get"]
            )
            .counts
        ),
        (100, 100, 100)
    );
    let stray = select(
        &documents_classes(),
        &["google.search", "http.get", "x.y", "x.y"],
    );
    assert_eq!(stray.counts.false_positives, 2);
    assert_eq!(stray.unexpected, ["x.y"]);
    // One call that belongs to two classes satisfies both.
    assert_eq!(
        percents(select(&[class("a", &["t"]), class("b", &["t"])], &["t"]).counts),
        (100, 100, 100)
    );
}

fn judge(block: Value, traces: &[Trace]) -> GateOutcome {
    testing::judge("equal_function_sets", &block, traces)
}

fn trace(calls: &[&str]) -> Trace {
    Trace {
        tool_calls: calls.iter().map(|id| call(id)).collect(),
        ..Trace::default()
    }
}

#[test]
fn the_default_gate_is_f1_at_50() {
    let block = json!({"classes": documents_classes()});
    assert_eq!(
        judge(block.clone(), &[trace(&["google.search", "shell.exec"])]).verdict,
        Verdict::Pass
    );
    let failed = judge(
        block,
        &[trace(&["google.search", "shell.exec", "shell.exec"])],
    );
    assert_eq!(failed.verdict, Verdict::Fail);
    assert!(failed.assertions[0].default);
    assert_eq!(failed.values["tool_selection.f1"], 40);
    // An empty list is as none.
    assert_eq!(
        judge(
            json!({"classes": documents_classes(), "expect": []}),
            &[trace(&[])]
        )
        .verdict,
        Verdict::Fail
    );
}

#[test]
fn written_expectations_replace_the_default() {
    let block = json!({"classes": documents_classes(), "expect": [{"tool_selection.recall": {">=": 50}}, {"tool_selection.precision": {">": 90}}]});
    let outcome = judge(block, &[trace(&["google.search", "x.y", "x.z", "x.w"])]);
    assert_eq!(outcome.verdict, Verdict::Fail);
    let passed: Vec<_> = outcome
        .assertions
        .iter()
        .map(|assertion| assertion.passed)
        .collect();
    assert_eq!(passed, [true, false]);
}

#[test]
fn missing_evidence_is_not_a_pass() {
    let outcome = judge(json!({"classes": []}), &[trace(&[])]);
    assert_eq!(outcome.verdict, Verdict::NoEvidence);
    assert_eq!(outcome.values["tool_selection.f1"], 100);
    assert_eq!(
        judge(json!({"classes": documents_classes()}), &[]).verdict,
        Verdict::NoEvidence
    );
}

#[test]
fn an_unknown_target_or_a_second_class_of_one_name_is_refused() {
    let block = json!({"classes": [{"name": "a", "members": ["x"]}, {"name": "a", "members": ["y"]}], "expect": [{"tool_selection.f2": {">=": 1}}]});
    let problems = testing::load("equal_function_sets", &block).unwrap_err();
    assert_eq!(problems.len(), 2);
    assert_eq!(problems[0].pointer, "/classes/1/name");
    assert_eq!(problems[1].pointer, "/expect/0/tool_selection.f2");
    assert!(
        problems[1]
            .help
            .as_ref()
            .unwrap()
            .contains("tool_selection.recall")
    );
}

proptest! {
    #[test]
    fn pooled_figures_ignore_the_order_of_runs_and_calls(
        mut runs in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["brave.web_search", "google.search", "http.get", "x.y", "z"]), 0..6), 1..5),
    ) {
        let block = json!({"classes": documents_classes()});
        let traces: Vec<_> = runs.iter().map(|calls| trace(calls)).collect();
        let before = judge(block.clone(), &traces);
        runs.reverse();
        for calls in &mut runs {
            calls.reverse();
        }
        let traces: Vec<_> = runs.iter().map(|calls| trace(calls)).collect();
        let after = judge(block, &traces);
        prop_assert_eq!(&before.values, &after.values);
        for value in before.values.values() {
            prop_assert!(value.as_u64().unwrap() <= 100);
        }
    }

    #[test]
    fn f1_is_between_precision_and_recall(tp in 0_u64..50, fp in 0_u64..50, fn_ in 0_u64..50) {
        let counts = SelectionCounts { true_positives: tp, false_positives: fp, false_negatives: fn_ };
        prop_assume!(!counts.is_vacuous());
        let (low, high) = (counts.precision().min(counts.recall()), counts.precision().max(counts.recall()));
        prop_assert!(low <= counts.f1() && counts.f1() <= high);
        prop_assert_eq!(counts.f1() == 100, fp == 0 && fn_ == 0);
    }
}
