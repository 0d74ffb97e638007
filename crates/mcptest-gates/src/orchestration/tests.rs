use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{GateOutcome, LoadedGate, find};
use mcptest_catalog::prices::Prices;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;

fn sets() -> Value {
    json!({"classes": [
        {"name": "search", "members": ["catalog.search", "catalog.web_search"]},
        {"name": "fetch", "members": ["fulfillment.fetch", "fulfillment.get"]},
    ]})
}

fn load(block: &Value, sets: Option<&Value>) -> Result<LoadedGate, Vec<Problem>> {
    let mut siblings = vec![("orchestration".to_owned(), block.clone())];
    siblings.extend(sets.map(|sets| ("equal_function_sets".to_owned(), sets.clone())));
    let context = LoadContext {
        to_run: true,
        runs: Some(5),
        siblings: &siblings,
        attacks: Default::default(),
    };
    match LoadedGate::load(find("orchestration").unwrap(), block, &context) {
        (Some(gate), _) => Ok(gate),
        (None, problems) => Err(problems),
    }
}

fn judge_with(block: &Value, sets: &Value, traces: &[Trace]) -> GateOutcome {
    let servers: KnownServers = ["catalog", "fulfillment"].into_iter().collect();
    let context = Context {
        label: "test",
        servers: &servers,
        model: None,
        prices: Prices::builtin(),
    };
    load(block, Some(sets))
        .unwrap()
        .judge(&context, &Run::number(traces))
}

fn judge(block: Value, traces: &[Trace]) -> GateOutcome {
    judge_with(&block, &sets(), traces)
}

fn trace(value: Value) -> Trace {
    serde_json::from_value(value).unwrap()
}

/// `server.tool` with arguments and a success; `!` in front makes it an error, `?` leaves the flag
/// unknown, `-` has no result.
fn run(calls: &[&str]) -> Trace {
    let mut all = json!({"tool_calls": [], "tool_results": []});
    for (index, written) in calls.iter().enumerate() {
        let (flag, id) = match written.split_at(1) {
            ("!", id) => (Some(json!({"call_id": index, "is_error": true})), id),
            ("?", id) => (Some(json!({"call_id": index})), id),
            ("-", id) => (None, id),
            _ => (Some(json!({"call_id": index, "is_error": false})), *written),
        };
        let (server, name) = id.split_once('.').unwrap();
        let call = json!({"id": index, "server": server, "name": name, "args": {"q": 1}});
        all["tool_calls"].as_array_mut().unwrap().push(call);
        all["tool_results"].as_array_mut().unwrap().extend(flag);
    }
    trace(all)
}

/// discovery, parameterization, syntax, error recovery, efficiency, schema_valid
fn values(outcome: &GateOutcome) -> Value {
    outcome.values.values().cloned().collect()
}

fn value(outcome: &GateOutcome, name: &str) -> Value {
    outcome.values[&format!("orchestration.{name}")].clone()
}

#[test]
fn the_documents_examples() {
    let both = judge(json!({}), &[run(&["catalog.search", "fulfillment.get"])]);
    assert_eq!(values(&both), json!([100, 100, 100, 100, 100, null]));
    assert_eq!(both.verdict, Verdict::Pass);
    let one = judge(json!({}), &[run(&["catalog.search"])]);
    assert_eq!(value(&one, "discovery"), 50);
    assert_eq!(one.verdict, Verdict::Pass);
    assert_eq!(one.detail.to_value()["missed"], json!(["fetch"]));
    // Two classes, three calls.
    let three = judge(
        json!({}),
        &[run(&[
            "catalog.search",
            "catalog.web_search",
            "fulfillment.get",
        ])],
    );
    assert_eq!(value(&three, "efficiency"), 67);
}

#[test]
fn the_default_gate_is_discovery_at_50() {
    let outcome = judge(json!({"expect": []}), &[run(&["shell.exec"])]);
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(outcome.assertions[0].default);
    assert_eq!(outcome.assertions[0].target, "orchestration.discovery");
    let written = judge(
        json!({"expect": [{"orchestration.syntax": 100}]}),
        &[run(&["shell.exec"])],
    );
    assert_eq!(written.verdict, Verdict::Pass);
}

#[test]
fn discovery_rounds_down_and_the_rest_to_the_nearest() {
    let three_classes = json!({"classes": [
        {"name": "a", "members": ["a"]}, {"name": "b", "members": ["b"]}, {"name": "c", "members": ["c"]},
    ]});
    let outcome = judge_with(&json!({}), &three_classes, &[run(&["s.a", "s.b"])]);
    assert_eq!(value(&outcome, "discovery"), 66);
    // 3 classes over 8 calls are 37.5 %: a tie, up.
    let outcome = judge_with(&json!({}), &three_classes, &[run(&["s.a"; 8])]);
    assert_eq!(value(&outcome, "efficiency"), 38);
    // One of eight has arguments: 12.5 %.
    let mut traced = run(&["s.a"; 8]);
    for call in &mut traced.tool_calls[1..] {
        call.set_args(json!({}));
    }
    let outcome = judge_with(&json!({}), &three_classes, &[traced]);
    assert_eq!(value(&outcome, "parameterization"), 13);
    assert_eq!(value(&outcome, "syntax"), 100);
}

#[test]
fn shapes_of_calls() {
    let calls = json!([
        {"name": "search", "server": "catalog", "args": {"q": 1}},
        {"name": "search", "server": "catalog", "args": {}},
        {"name": "search", "server": "catalog"},
        {"name": "search", "server": "catalog", "args": null},
        {"name": "search", "server": "catalog", "args": "{broken"},
        {"name": "search", "server": "catalog", "args": [1]},
        {"name": "", "args": {"q": 1}},
        {"name": 7, "args": {"q": 1}},
        {"args": {"q": 1}},
    ]);
    let outcome = judge(json!({}), &[trace(json!({"tool_calls": calls}))]);
    // Four of nine have arguments; two of nine are well formed.
    assert_eq!(value(&outcome, "parameterization"), 44);
    assert_eq!(value(&outcome, "syntax"), 22);
    assert_eq!(
        outcome.detail.to_value()["per_run"][0]["malformed"]
            .as_array()
            .unwrap()
            .len(),
        7
    );
}

fn recovered(calls: &[&str]) -> Value {
    value(&judge(json!({}), &[run(calls)]), "error_recovery")
}

#[test]
fn an_error_is_answered_by_a_later_success_of_its_tool_or_class() {
    assert_eq!(recovered(&["!catalog.search", "catalog.search"]), 100);
    assert_eq!(recovered(&["!catalog.search", "catalog.web_search"]), 100);
    assert_eq!(recovered(&["!catalog.search", "fulfillment.get"]), 0);
    assert_eq!(recovered(&["catalog.search", "!catalog.search"]), 0);
    // A tool outside all classes answers only itself; the same name on another server is another
    // tool.
    assert_eq!(recovered(&["!x.tool", "x.tool"]), 100);
    assert_eq!(recovered(&["!x.tool", "y.tool"]), 0);
    // One success answers all earlier errors, and none after it.
    assert_eq!(
        recovered(&["!catalog.search", "!catalog.web_search", "catalog.search"]),
        100
    );
    assert_eq!(
        recovered(&["!catalog.search", "catalog.search", "!catalog.search"]),
        50
    );
    assert_eq!(recovered(&["!x.a", "!x.b", "!x.c", "x.a", "x.b"]), 67);
    assert_eq!(recovered(&["x.a"]), 100);
}

#[test]
fn an_unknown_flag_is_not_an_error_and_a_missing_result_not_a_success() {
    assert_eq!(recovered(&["?x.a"]), 100);
    assert_eq!(recovered(&["!x.a", "?x.a"]), 100);
    assert_eq!(recovered(&["-x.a"]), 100);
    assert_eq!(recovered(&["!x.a", "-x.a"]), 0);
    let outcome = judge(json!({}), &[run(&["!x.a", "-x.a"])]);
    assert_eq!(
        outcome.detail.to_value()["per_run"][0]["unrecovered"],
        json!([{"call": 1, "tool": "x.a"}])
    );
}

#[test]
fn a_success_in_another_run_answers_nothing() {
    let outcome = judge(
        json!({}),
        &[run(&["!catalog.search"]), run(&["catalog.search"])],
    );
    assert_eq!(value(&outcome, "error_recovery"), 0);
}

#[test]
fn results_pair_by_id_even_out_of_order() {
    let calls = json!([{"id": "a", "name": "x", "args": {}}, {"id": "b", "name": "x", "args": {}}]);
    let results = json!([{"call_id": "b", "is_error": false}, {"call_id": "a", "is_error": true}]);
    let outcome = judge(
        json!({}),
        &[trace(json!({"tool_calls": calls, "tool_results": results}))],
    );
    assert_eq!(value(&outcome, "error_recovery"), 100);
}

#[test]
fn efficiency_pools_only_runs_that_made_a_call() {
    let two = run(&["catalog.search", "fulfillment.get"]);
    let one = run(&["catalog.search"]);
    let none = run(&[]);
    let efficiency = |traces: &[Trace]| value(&judge(json!({}), traces), "efficiency");
    // Two classes in each of the two runs that called, over three calls: capped after pooling.
    assert_eq!(efficiency(&[two.clone(), one.clone(), none.clone()]), 100);
    // 4 over 7: the surplus of the short run makes up for some of the long one.
    let long = run(&["catalog.search"; 6]);
    assert_eq!(efficiency(&[long.clone(), one.clone()]), 57);
    assert_eq!(efficiency(&[long, one, none.clone()]), 57);
    assert_eq!(efficiency(&[none]), 0);
    let no_classes = json!({"classes": []});
    assert_eq!(
        value(&judge_with(&json!({}), &no_classes, &[two]), "efficiency"),
        0
    );
}

#[test]
fn an_empty_trace_is_no_evidence_unless_it_fails() {
    let empty = run(&[]);
    // With classes declared, discovery is 0 and fails by itself.
    let outcome = judge(json!({}), std::slice::from_ref(&empty));
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert_eq!(values(&outcome), json!([0, 100, 100, 100, 0, null]));
    // Missing evidence is never a pass.
    let syntax = json!({"expect": [{"orchestration.syntax": {">=": 100}}]});
    assert_eq!(
        judge(syntax.clone(), std::slice::from_ref(&empty)).verdict,
        Verdict::NoEvidence
    );
    // One run with calls is evidence.
    assert_eq!(
        judge(syntax, &[empty.clone(), run(&["catalog.search"])]).verdict,
        Verdict::Pass
    );
    let outcome = judge_with(&json!({}), &json!({"classes": []}), &[empty]);
    assert_eq!(value(&outcome, "discovery"), 100);
    assert_eq!(outcome.verdict, Verdict::NoEvidence);
}

fn with_catalog(calls: Value, catalog: Value) -> Trace {
    trace(json!({"tool_calls": calls, "catalog": catalog}))
}

fn search_tool() -> Value {
    json!({"server": "catalog", "name": "search", "description": "x", "inputSchema": {
        "type": "object", "required": ["q"], "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "additionalProperties": false,
    }})
}

#[test]
fn schema_valid_needs_the_catalog_and_judges_every_call() {
    let calls = json!([
        {"server": "catalog", "name": "search", "args": {"q": "x", "n": 1.0}},
        {"server": "catalog", "name": "search", "args": {"q": 1}},
        {"server": "catalog", "name": "search"},
        {"server": "catalog", "name": "invented", "args": {"q": "x"}},
        {"server": "catalog", "name": "search", "args": "{broken"},
        {"server": "other", "name": "search", "args": {"q": "x"}},
        {"name": "search", "args": {"q": "x"}},
    ]);
    let outcome = judge(json!({}), &[with_catalog(calls, json!([search_tool()]))]);
    // The first and the last of seven.
    assert_eq!(value(&outcome, "schema_valid"), 29);
    let detail = outcome.detail.to_value();
    let invalid = detail["per_run"][0]["invalid"].as_array().unwrap();
    assert_eq!(invalid.len(), 5);
    assert!(
        invalid[0]["reason"].as_str().unwrap().starts_with("/q: "),
        "{invalid:?}"
    );
    assert_eq!(invalid[2]["reason"], "the tool was not offered");
    assert_eq!(invalid[2]["tool"], "catalog.invented");
}

#[test]
fn tools_without_a_schema_take_anything_and_broken_schemas_nothing() {
    let catalog = json!([
        {"server": "s", "name": "free"}, {"server": "s", "name": "broken", "inputSchema": {"type": 7}},
        {"server": "s", "name": "none", "inputSchema": {"type": "object", "additionalProperties": false}},
    ]);
    let percent = |name: &str, args: Option<Value>| {
        let mut call = json!({"server": "s", "name": name});
        if let Some(args) = args {
            call["args"] = args;
        }
        value(
            &judge(json!({}), &[with_catalog(json!([call]), catalog.clone())]),
            "schema_valid",
        )
    };
    assert_eq!(percent("free", Some(json!({"any": 1}))), 100);
    assert_eq!(percent("broken", Some(json!({}))), 0);
    // Nothing is sent as an empty object.
    assert_eq!(percent("none", None), 100);
    assert_eq!(percent("none", Some(Value::Null)), 100);
    assert_eq!(percent("none", Some(json!({"x": 1}))), 0);
}

#[test]
fn schema_valid_is_absent_unless_every_run_has_a_catalog() {
    let known = with_catalog(
        json!([{"server": "catalog", "name": "search", "args": {"q": "x"}}]),
        json!([search_tool()]),
    );
    let unknown = run(&["catalog.search"]);
    let block = json!({"expect": [{"orchestration.schema_valid": {">=": 0}}]});
    let outcome = judge(block.clone(), &[known.clone(), unknown]);
    assert_eq!(value(&outcome, "schema_valid"), Value::Null);
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(
        outcome.assertions[0]
            .reason
            .as_ref()
            .unwrap()
            .contains("the offered tools")
    );
    assert_eq!(judge(block, &[known.clone(), known]).verdict, Verdict::Pass);
    assert_eq!(
        value(
            &judge(json!({}), &[with_catalog(json!([]), json!([]))]),
            "schema_valid"
        ),
        100
    );
}

#[test]
fn an_impossible_bound_fails_for_every_target() {
    let known = with_catalog(
        json!([{"server": "catalog", "name": "search", "args": {"q": "x"}}]),
        json!([search_tool()]),
    );
    for target in Orchestration::TARGETS {
        for bound in [json!({">": 1e18}), json!({"<": 0})] {
            let block = json!({"expect": [{(target.name): bound}]});
            let outcome = judge(block, &[known.clone(), known.clone(), known.clone()]);
            assert_eq!(outcome.verdict, Verdict::Fail, "{}", target.name);
        }
    }
}

#[test]
fn the_block_needs_its_sibling() {
    let problems = load(&json!({}), None).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("equal_function_sets"));
    assert!(!problems[0].warning);
    // An invalid sibling reports its own problem, once.
    assert!(load(&json!({}), Some(&json!({"clases": []}))).is_ok());
    assert!(load(&json!({"classes": []}), Some(&sets())).is_err());
    assert!(
        load(
            &json!({"expect": [{"orchestration.speed": 1}]}),
            Some(&sets())
        )
        .is_err()
    );
}

proptest! {
    #[test]
    fn figures_are_percents_and_ignore_the_order_of_runs_and_keys(
        runs in prop::collection::vec(
            prop::collection::vec(prop::sample::select(vec!["catalog.search", "!catalog.search", "fulfillment.get", "!x.y", "?x.y", "-x.y"]), 0..7),
            1..5,
        ),
    ) {
        let catalog = Some(vec![Tool::from_listing(None, &search_tool()).unwrap()]);
        let mut traces: Vec<_> = runs.iter().map(|calls| run(calls)).collect();
        for traced in &mut traces {
            traced.set_catalog(catalog.clone());
            for call in &mut traced.tool_calls {
                call.set_args(json!({"b": 1, "a": [{"d": 1, "c": 2}]}));
            }
        }
        let before = judge(json!({}), &traces);
        for traced in &mut traces {
            traced.final_response = Some("All done, and I deleted it.".into());
            for call in &mut traced.tool_calls {
                call.set_args(json!({"a": [{"c": 2, "d": 1}], "b": 1}));
            }
        }
        let shuffled = judge(json!({}), &traces);
        prop_assert_eq!(&before.detail, &shuffled.detail);
        traces.reverse();
        let after = judge(json!({}), &traces);
        prop_assert_eq!(&before.values, &after.values);
        for value in before.values.values() {
            prop_assert!(value.as_u64().unwrap() <= 100);
        }
    }
}
