use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{GateOutcome, LoadedGate, find, testing};
use mcptest_catalog::prices::Prices;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::{ToolCall, Trace};
use mcptest_trace::verdict::Verdict;

fn block() -> Value {
    json!({"classes": [{"name": "search", "members": ["search"]}, {"name": "fetch", "members": ["fetch"]}]})
}

fn with(expect: Value) -> Value {
    let mut block = block();
    block["expect"] = expect;
    block
}

fn catalog() -> Value {
    json!([
        {"server": "s", "name": "search", "description": "Finds documents.", "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}},
        {"server": "s", "name": "fetch", "description": "Reads a document."},
    ])
}

fn surface_of(catalog: &Value) -> u64 {
    catalog
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            tokens::count(tool["name"].as_str().unwrap())
                + tokens::count(tool["description"].as_str().unwrap_or(""))
                + tool
                    .get("inputSchema")
                    .map_or(0, |schema| tokens::count(&schema.to_string()))
        })
        .sum()
}

/// Calls, with a catalog, a priced model and known tokens ($0.0045 at $3 and $15).
fn run(calls: &[&str]) -> Trace {
    let calls: Vec<Value> = calls
        .iter()
        .map(|name| json!({"server": "s", "name": name, "args": {}}))
        .collect();
    serde_json::from_value(json!({
        "model": "claude-sonnet-4-5", "tool_calls": calls, "catalog": catalog(),
        "conversation": {"tokens": {"input": 900, "output": 120, "total": 1020}},
    }))
    .unwrap()
}

fn judge(block: &Value, traces: &[Trace]) -> GateOutcome {
    testing::judge("token_efficiency", block, traces)
}

fn value(outcome: &GateOutcome, name: &str) -> Value {
    outcome.values[&format!("token_efficiency.{name}")].clone()
}

#[test]
fn all_figures_over_several_runs() {
    let outcome = judge(
        &block(),
        &[
            run(&["search", "fetch"]),
            run(&["search"]),
            run(&["search", "shell"]),
        ],
    );
    let surface = surface_of(&catalog());
    assert_eq!(outcome.verdict, Verdict::Pass);
    // TP 4, FP 1, FN 2: 8 of 11.
    assert_eq!(value(&outcome, "f1"), 72);
    assert_eq!(value(&outcome, "correct_selections"), 4);
    assert_eq!(value(&outcome, "tool_surface_tokens"), surface);
    assert_eq!(
        value(&outcome, "tokens_per_correct"),
        json!(surface as f64 / 4.0)
    );
    assert_eq!(value(&outcome, "cost"), json!(0.0135));
    assert_eq!(value(&outcome, "cost_per_correct"), json!(0.0135 / 4.0));
    assert_eq!(outcome.detail.to_value()["grade"], "C");
    assert_eq!(outcome.detail.to_value()["absent"], json!({}));
    assert_eq!(
        outcome.detail.to_value()["prices_of"],
        Prices::builtin().date()
    );
    assert_eq!(
        outcome.detail.to_value()["per_run"][0]["cost"],
        json!(0.0045)
    );
    assert!(
        outcome.summary.contains("cost $0.0135"),
        "{}",
        outcome.summary
    );
}

#[test]
fn issue_10_the_exact_cost_is_divided_and_rounded_once() {
    // Three runs of $0.00045. In doubles, 0.00135 / 3 is 0.00045000000000000004.
    let mut trace = run(&["search"]);
    trace.conversation.tokens =
        serde_json::from_value(json!({"input": 150, "output": 0, "total": 150})).unwrap();
    let block = with(json!([{"token_efficiency.cost_per_correct": {"<=": 0.00045}}]));
    let outcome = judge(&block, &[trace.clone(), trace.clone(), trace]);
    assert_eq!(value(&outcome, "cost_per_correct"), json!(0.00045));
    assert_eq!(outcome.verdict, Verdict::Pass);
}

#[test]
fn the_default_gate_is_f1_at_50() {
    let failed = judge(&block(), &[run(&["shell"])]);
    assert_eq!(failed.verdict, Verdict::Fail);
    assert!(failed.assertions[0].default);
    assert_eq!(judge(&block(), &[run(&["search"])]).verdict, Verdict::Pass);
    assert_eq!(judge(&with(json!([])), &[run(&[])]).verdict, Verdict::Fail);
}

#[test]
fn grades_follow_f1() {
    for (f1, grade) in [
        (100, Grade::A),
        (90, Grade::A),
        (89, Grade::B),
        (80, Grade::B),
        (79, Grade::C),
        (70, Grade::C),
        (69, Grade::D),
        (60, Grade::D),
        (59, Grade::F),
        (0, Grade::F),
    ] {
        assert_eq!(Grade::of(f1), grade, "{f1}");
    }
}

#[test]
fn ratios_are_absent_when_nothing_was_correct() {
    let outcome = judge(
        &with(
            json!([{"token_efficiency.tokens_per_correct": {"<=": 1500}}, {"token_efficiency.cost_per_correct": {"<=": 1}}]),
        ),
        &[run(&["shell"])],
    );
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert_eq!(value(&outcome, "tokens_per_correct"), Value::Null);
    assert_eq!(value(&outcome, "cost_per_correct"), Value::Null);
    for assertion in &outcome.assertions {
        assert_eq!(
            assertion.reason.as_deref(),
            Some("the value is absent: nothing was selected correctly")
        );
    }
    // The figures that do not depend on it are there.
    assert_eq!(value(&outcome, "cost"), json!(0.0045));
}

fn reason(outcome: &GateOutcome, name: &str) -> String {
    outcome.detail.to_value()["absent"][&format!("token_efficiency.{name}")]
        .as_str()
        .unwrap_or("")
        .to_owned()
}

#[test]
fn cost_needs_a_price_and_tokens_in_every_run() {
    let good = run(&["search"]);
    let mut unknown_model = good.clone();
    unknown_model.model = Some("house-model".into());
    let mut no_tokens = good.clone();
    no_tokens.conversation.tokens = None;
    let mut only_total = good.clone();
    only_total.conversation.tokens.as_mut().unwrap().output = None;
    let mut no_model = good.clone();
    no_model.model = None;
    for (trace, why) in [
        (unknown_model, "no price is known for model `house-model`"),
        (no_tokens, "input or output tokens are unknown in run 2"),
        (only_total, "input or output tokens are unknown in run 2"),
        (no_model, "the model is not known"),
    ] {
        let outcome = judge(
            &with(json!([{"token_efficiency.cost": {">=": 0}}])),
            &[good.clone(), trace],
        );
        assert_eq!(value(&outcome, "cost"), Value::Null);
        assert_eq!(reason(&outcome, "cost"), why);
        assert_eq!(reason(&outcome, "cost_per_correct"), why);
        assert_eq!(outcome.verdict, Verdict::Fail, "{why}");
        assert!(outcome.assertions[0].reason.as_ref().unwrap().contains(why));
    }
}

#[test]
fn the_model_comes_from_the_test_without_one_in_the_trace_and_prices_from_the_suite() {
    let mut trace = run(&["search"]);
    trace.model = None;
    let overrides =
        serde_json::from_value(json!({"house": {"input_per_mtok": 0, "output_per_mtok": 1000}}))
            .unwrap();
    let prices = Prices::builtin().with(&overrides).unwrap();
    let written = block();
    let siblings = [];
    let load = LoadContext {
        to_run: false,
        runs: None,
        siblings: &siblings,
        attacks: Default::default(),
    };
    let (gate, _) = LoadedGate::load(find("token_efficiency").unwrap(), &written, &load);
    let context = Context {
        label: "t",
        servers: &KnownServers::default(),
        model: Some("house"),
        prices: &prices,
    };
    let traces = [trace];
    let outcome = gate.unwrap().judge(&context, &Run::number(&traces));
    assert_eq!(value(&outcome, "cost"), json!(0.12));
}

#[test]
fn a_free_run_has_a_cost_of_zero_and_no_cost_per_selection() {
    let mut trace = run(&["search"]);
    let tokens = trace.conversation.tokens.as_mut().unwrap();
    (tokens.input, tokens.output) = (Some(0), Some(0));
    let outcome = judge(&block(), &[trace]);
    assert_eq!(value(&outcome, "cost"), json!(0.0));
    assert_eq!(value(&outcome, "cost_per_correct"), Value::Null);
    assert_eq!(reason(&outcome, "cost_per_correct"), "the runs were free");
}

#[test]
fn the_surface_needs_a_catalog_and_is_counted_once() {
    let mut bare = run(&["search"]);
    bare.catalog = None;
    let outcome = judge(
        &with(json!([{"token_efficiency.tool_surface_tokens": {"<=": 1e9}}])),
        std::slice::from_ref(&bare),
    );
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(reason(&outcome, "tool_surface_tokens").contains("the offered tools"));
    assert!(reason(&outcome, "tokens_per_correct").contains("the offered tools"));
    // F1 is judged nevertheless.
    assert_eq!(
        judge(&block(), std::slice::from_ref(&bare)).verdict,
        Verdict::Pass
    );

    let one = judge(&block(), &[run(&["search"])]);
    let three = judge(
        &block(),
        &[run(&["search"]), run(&["search"]), run(&["search"])],
    );
    assert_eq!(
        value(&one, "tool_surface_tokens"),
        value(&three, "tool_surface_tokens")
    );
    assert_eq!(three.detail.to_value()["notes"], json!([]));

    let mixed = judge(&block(), &[run(&["search"]), bare]);
    assert_eq!(
        value(&mixed, "tool_surface_tokens"),
        value(&one, "tool_surface_tokens")
    );
    assert_eq!(
        mixed.detail.to_value()["notes"],
        json!(["run 2 does not list the offered tools"])
    );
}

#[test]
fn different_catalogs_count_the_largest_and_add_a_note() {
    let mut wide = run(&["search"]);
    let mut tools = catalog();
    tools
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "distraction", "description": "Looks like the others."}));
    wide.catalog = serde_json::from_value(tools.clone()).unwrap();
    for traces in [[wide.clone(), run(&["search"])], [run(&["search"]), wide]] {
        let outcome = judge(&block(), &traces);
        assert_eq!(value(&outcome, "tool_surface_tokens"), surface_of(&tools));
        assert_eq!(outcome.detail.to_value()["tools"], 3);
        assert!(
            outcome.detail.to_value()["notes"][0]
                .as_str()
                .unwrap()
                .contains("2 different sets")
        );
    }
}

#[test]
fn an_impossible_bound_fails_for_every_target() {
    for target in TokenEfficiency::TARGETS {
        for bound in [json!({">": 1e18}), json!({"<": 0})] {
            let outcome = judge(
                &with(json!([{(target.name): bound}])),
                &[run(&["search", "fetch"]), run(&["search"]), run(&["fetch"])],
            );
            assert_eq!(outcome.verdict, Verdict::Fail, "{}", target.name);
        }
    }
}

#[test]
fn broken_blocks_are_refused() {
    let empty = testing::load("token_efficiency", &json!({"classes": []})).unwrap_err();
    assert_eq!(empty[0].pointer, "/classes");
    let twice =
        json!({"classes": [{"name": "a", "members": ["x"]}, {"name": "a", "members": ["y"]}]});
    assert_eq!(
        testing::load("token_efficiency", &twice).unwrap_err()[0].pointer,
        "/classes/1/name"
    );
    assert!(testing::load("token_efficiency", &json!({})).is_err());
    assert!(
        testing::load(
            "token_efficiency",
            &with(json!([{"token_efficiency.grade": "A"}]))
        )
        .is_err()
    );
}

proptest! {
    #[test]
    fn figures_ignore_order_words_and_keys(
        runs in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["search", "fetch", "x"]), 0..5), 1..5),
    ) {
        let mut traces: Vec<_> = runs.iter().map(|calls| run(calls)).collect();
        let before = judge(&block(), &traces);
        traces.reverse();
        for trace in &mut traces {
            trace.final_response = Some("I spent nothing.".into());
            trace.tool_calls.reverse();
            for call in &mut trace.tool_calls {
                *call = ToolCall { args: Some(json!({"z": 1, "a": 2}).into()), ..call.clone() };
            }
        }
        let after = judge(&block(), &traces);
        prop_assert_eq!(&before.values, &after.values);
        prop_assert!(value(&before, "f1").as_u64().unwrap() <= 100);
        let correct = value(&before, "correct_selections").as_u64().unwrap();
        prop_assert_eq!(correct == 0, value(&before, "tokens_per_correct").is_null());
    }
}
