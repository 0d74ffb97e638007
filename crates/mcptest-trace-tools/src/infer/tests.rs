use serde_json::json;

use super::*;

fn inferred(traces: &[Value], threshold: u64) -> InferredSuite {
    let mut inference = Inference::default();
    for trace in traces {
        let text = trace.to_string();
        inference.observe(&TraceView::parse(&text).unwrap());
    }
    inference.finish(threshold)
}

fn trace(calls: &[(&str, Value)], results: &[&str]) -> Value {
    let call = |(name, args): &(&str, Value)| json!({"name": name, "args": args});
    let result = |text: &&str| json!({"content": [{"type": "text", "text": text}]});
    json!({
        "test": "t",
        "tool_calls": calls.iter().map(call).collect::<Vec<_>>(),
        "tool_results": results.iter().map(result).collect::<Vec<_>>(),
        "conversation": {"turns": [{"role": "user", "content": "Order book BK-1"}], "tokens": {"total": 100}},
    })
}

fn edges(list: &[Supported<Edge>]) -> Vec<(&str, &str)> {
    list.iter()
        .map(|it| (it.part.first.as_str(), it.part.second.as_str()))
        .collect()
}

#[test]
fn equal_sequences_give_a_strict_reference_with_the_constant_arguments() {
    let one = |q: &str| {
        trace(
            &[
                ("find", json!({"q": q, "n": 5})),
                ("buy", json!({"id": "X-99"})),
            ],
            &["id X-99", "ok"],
        )
    };
    let suite = inferred(&[one("a"), one("b")], 100);
    let test = &suite.tests[0];
    let reference = test.trajectory.as_ref().unwrap();
    assert_eq!(reference.mode, Mode::Strict);
    assert_eq!(
        reference.calls[0].args,
        *json!({"n": 5}).as_object().unwrap()
    );
    assert_eq!(reference.calls[0].varying, ["q"]);
    assert_eq!(test.max_tokens, Some(100));
    // The id of the second call comes from the first result; so it is more than an order.
    assert_eq!(edges(&test.dependencies), [("find", "buy")]);
    assert_eq!(edges(&test.order), []);
    let path = test.golden_path.as_ref().unwrap();
    assert_eq!(
        (path.part.join(" "), path.traces),
        ("find buy".to_owned(), 2)
    );
}

#[test]
fn a_value_that_the_user_gave_is_no_dependency() {
    let one = trace(
        &[("find", json!({})), ("buy", json!({"id": "BK-1"}))],
        &["BK-1 found", "ok"],
    );
    let suite = inferred(&[one], 100);
    assert_eq!(edges(&suite.tests[0].dependencies), []);
    assert_eq!(edges(&suite.tests[0].order), [("find", "buy")]);
}

#[test]
fn order_is_reduced_and_must_hold_everywhere() {
    let none = || json!({});
    let abc = trace(&[("a", none()), ("b", none()), ("c", none())], &[]);
    let acb = trace(&[("a", none()), ("c", none()), ("b", none())], &[]);
    let suite = inferred(&[abc.clone(), abc.clone()], 100);
    assert_eq!(edges(&suite.tests[0].order), [("a", "b"), ("b", "c")]);
    let suite = inferred(&[abc, acb], 100);
    assert_eq!(edges(&suite.tests[0].order), [("a", "b"), ("a", "c")]);
    assert_eq!(
        suite.tests[0].trajectory.as_ref().unwrap().mode,
        Mode::ExactSet
    );
}

#[test]
fn tools_that_take_each_others_place_share_a_class() {
    let one = |search: &str, more: &[(&str, Value)]| {
        let mut calls = vec![(search, json!({"k": 1})), ("buy", json!({}))];
        calls.extend(more.iter().cloned());
        trace(&calls, &[])
    };
    let traces = [
        one("web", &[]),
        one("web", &[]),
        one("shop", &[("stray", json!({}))]),
    ];
    let suite = inferred(&traces, 90);
    let classes: Vec<_> = suite.tests[0]
        .classes
        .iter()
        .map(|it| (it.part.members.join(" "), it.traces))
        .collect();
    assert_eq!(classes, [("buy".to_owned(), 3), ("web shop".to_owned(), 3)]);
    let reference = suite.tests[0].trajectory.as_ref().unwrap();
    assert_eq!(reference.mode, Mode::Superset);
    assert_eq!(reference.calls.len(), 1);
}

#[test]
fn arguments_must_be_shared_by_all_calls_where_calls_can_be_exchanged() {
    let first = trace(
        &[
            ("get", json!({"id": 1, "k": 7})),
            ("get", json!({"id": 2, "k": 7})),
            ("x", json!({})),
        ],
        &[],
    );
    let second = trace(
        &[
            ("get", json!({"id": 2, "k": 7})),
            ("x", json!({})),
            ("get", json!({"id": 1, "k": 7})),
        ],
        &[],
    );
    let suite = inferred(&[first, second], 100);
    let reference = suite.tests[0].trajectory.as_ref().unwrap();
    assert_eq!(reference.mode, Mode::ExactSet);
    assert_eq!(reference.calls.len(), 3);
    assert_eq!(
        reference.calls[0].args,
        *json!({"k": 7}).as_object().unwrap()
    );
}

#[test]
fn failed_runs_and_unknown_tokens_are_left_out() {
    let mut failed = trace(&[("a", json!({}))], &[]);
    failed["error"] = json!({"kind": "timeout", "message": "x"});
    let mut unknown = trace(&[("a", json!({}))], &[]);
    unknown["conversation"]["tokens"] = Value::Null;
    let suite = inferred(&[failed, unknown, trace(&[("a", json!({}))], &[])], 100);
    assert_eq!((suite.failed_runs, suite.tests[0].traces), (1, 2));
    assert_eq!(suite.tests[0].max_tokens, None);
}

#[test]
fn the_yaml_has_the_number_of_traces_that_support_each_part() {
    let traces = [
        trace(&[("s.find", json!({"q": "x y"}))], &[]),
        trace(&[("s.find", json!({"q": "x y"}))], &[]),
    ];
    let reach = |_: &str, target: &str| (target == "golden_path.penalty").then_some(2.0 / 3.0);
    let expected = "\
# A starter suite, inferred by `mcptest trace infer` from 2 traces.
# It describes what these traces have in common: review each part before you rely on it.
tests:
  - name: t  # 2 traces
    expect:
      - conversation.tokens.total: { \"<=\": 100 }  # the largest of 2 traces
    equal_function_sets:
      classes:
        - { name: s.find, members: [s.find] }  # 2 of 2 traces
    golden_path:
      calls: [s.find]  # exactly so in 2 of 2 traces
      expect:
        - golden_path.penalty: { \">=\": 0.6666 }  # the most wasteful of these traces
    trajectory:
      mode: strict  # the same calls in the same order in 2 of 2 traces
      calls:
        - name: s.find
          args: { subset: { q: x y } }
";
    assert_eq!(inferred(&traces, 80).to_yaml(&reach), expected);
}

#[test]
fn traces_without_calls_forbid_them() {
    let suite = inferred(&[trace(&[], &[]), trace(&[], &[])], 80);
    let yaml = suite.to_yaml(&|_: &str, _: &str| None);
    let expected = "      mode: exact_set  # no calls in 2 of 2 traces\n      calls: []\n";
    assert!(yaml.contains(expected), "{yaml}");
}
