use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{GateOutcome, testing};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;

const MODES: [&str; 6] = [
    "strict",
    "subsequence",
    "unordered",
    "superset",
    "subset",
    "exact_set",
];

fn trajectory(block: Value) -> Trajectory {
    serde_json::from_value(block).unwrap()
}

fn trace(calls: Value) -> Trace {
    serde_json::from_value(json!({ "tool_calls": calls })).unwrap()
}

/// A letter is a call without arguments.
fn letters(names: &str) -> Trace {
    trace(names.chars().map(|name| json!({"name": name})).collect())
}

fn expecting(mode: &str, names: &str) -> Value {
    let calls: Vec<Value> = names.chars().map(|name| json!({"name": name})).collect();
    json!({"mode": mode, "calls": calls})
}

fn validate(block: Value, trace: &Trace) -> TraceValidation {
    validate_trace(&trajectory(block), trace, &KnownServers::default()).unwrap()
}

/// Returns true if one call with these arguments is as expected.
fn args_fit(expected: Value, recorded: Value) -> bool {
    let block = json!({"calls": [{"name": "f", "args": expected}]});
    validate(block, &trace(json!([{"name": "f", "args": recorded}]))).passed
}

fn judge(block: Value, traces: &[Trace]) -> GateOutcome {
    testing::judge("trajectory", &block, traces)
}

#[test]
fn the_modes() {
    // (expected, recorded, mismatches in strict, subsequence, unordered and superset, subset,
    // exact_set)
    for (expected, recorded, counts) in [
        ("ab", "ab", [0, 0, 0, 0, 0]),
        ("ab", "abc", [1, 0, 0, 1, 1]),
        ("ab", "acb", [2, 0, 0, 1, 1]),
        ("ab", "ba", [2, 1, 0, 0, 0]),
        ("ab", "a", [1, 1, 1, 0, 1]),
        ("ab", "", [2, 2, 2, 0, 2]),
        ("a", "aa", [1, 0, 0, 1, 1]),
        ("aa", "a", [1, 1, 1, 0, 1]),
        ("a", "b", [1, 1, 1, 1, 2]),
        ("ab", "xyz", [3, 2, 2, 3, 5]),
        ("abc", "ac", [2, 1, 1, 0, 1]),
        // As few as possible are left over: `b` and `c` stay in order without `a`.
        ("abc", "bca", [3, 1, 0, 0, 0]),
        ("", "", [0, 0, 0, 0, 0]),
        ("", "ab", [0, 0, 0, 2, 2]),
    ] {
        let [strict, subsequence, unordered, subset, exact_set] = counts;
        let by_mode = [strict, subsequence, unordered, unordered, subset, exact_set];
        for (mode, count) in MODES.into_iter().zip(by_mode) {
            let validation = validate(expecting(mode, expected), &letters(recorded));
            assert_eq!(
                validation.mismatches.len(),
                count,
                "{mode} {expected} {recorded}: {validation:?}"
            );
            assert_eq!(validation.passed, count == 0);
        }
    }
}

#[test]
fn modes_have_other_spellings_and_a_default() {
    for (written, mode) in [
        (json!("exact-sequence"), Mode::Strict),
        (json!("exact_sequence"), Mode::Strict),
        (json!("exact-set"), Mode::ExactSet),
    ] {
        assert_eq!(serde_json::from_value::<Mode>(written).unwrap(), mode);
    }
    for name in MODES {
        assert_eq!(
            serde_json::from_value::<Mode>(name.into())
                .unwrap()
                .as_str(),
            name
        );
    }
    assert_eq!(trajectory(json!({"calls": []})).mode, Mode::Strict);
    assert!(testing::load("trajectory", &json!({"mode": "loose", "calls": []})).is_err());
    assert!(testing::load("trajectory", &json!({"mode": "strict"})).is_err());
    // The schema, which is checked first, knows the same words.
    let schema = Mode::json_schema(&mut SchemaGenerator::default()).to_value();
    for word in schema["enum"].as_array().unwrap() {
        serde_json::from_value::<Mode>(word.clone()).unwrap();
    }
}

#[test]
fn issue_10_subset_recurses_into_objects_inside_lists() {
    let recorded = json!({"flights": [{"no": "HAT001"}, {"no": "HAT056", "origin": "EWR"}]});
    for (expected, fits) in [
        (json!({"flights": [{"no": "HAT056"}]}), true),
        (json!({"flights": [{"no": "HAT056"}, {}]}), true),
        (
            json!({"flights": [{"no": {"one_of": ["X", "HAT056"]}}]}),
            true,
        ),
        (json!({"flights": [{"no": "HAT05"}]}), false),
        (
            json!({"flights": [{"no": "HAT056"}, {"no": "HAT056"}]}),
            false,
        ),
        (json!({"flights": [{"no": "HAT056", "seat": 1}]}), false),
    ] {
        let shape = json!({"subset": expected});
        assert_eq!(args_fit(shape, recorded.clone()), fits, "{expected}");
    }
    let whole = json!({"exact": {"flights": [{"no": "HAT001"}, {"no": "HAT056"}]}});
    assert!(!args_fit(whole, recorded));
}

#[test]
fn overlapping_shapes_get_a_true_assignment() {
    // The first expectation fits both calls, the second only the first call: first come would fail.
    let calls = json!([{"name": "w"}, {"name": "w", "args": {"exact": {"city": "A"}}}]);
    let recorded =
        trace(json!([{"name": "w", "args": {"city": "A"}}, {"name": "w", "args": {"city": "B"}}]));
    for mode in ["unordered", "superset", "subset", "exact_set"] {
        let validation = validate(json!({"mode": mode, "calls": calls}), &recorded);
        assert!(validation.passed, "{mode}: {validation:?}");
        assert_eq!(validation.assignment, [Some(1), Some(0)], "{mode}");
    }
    // A reference call made twice is once too many.
    let twice = trace(json!([{"name": "w"}, {"name": "w"}]));
    assert!(!validate(json!({"mode": "subset", "calls": [{"name": "w"}]}), &twice).passed);
}

#[test]
fn the_argument_shapes() {
    let args = json!({"city": "Sacramento", "days": 2, "opts": {"unit": "C", "lang": "en"}, "tags": ["a", "b", "a"]});
    for (shape, fits) in [
        (json!("any"), true),
        (json!("ignore"), true),
        (json!({"exact": args}), true),
        (json!({"exact": {"city": "Sacramento"}}), false),
        (json!({"subset": {"city": "Sacramento"}}), true),
        (json!({"subset": {"city": "Sac"}}), false),
        (json!({"partial": {"opts": {"unit": "C"}}}), true),
        (json!({"subset": {"days": 2.0}}), true),
        (json!({"subset": {"tags": ["a", "a"]}}), true),
        (json!({"subset": {"tags": ["b", "b"]}}), false),
        (json!({"subset": {}}), true),
        (
            json!({"subset": {"city": {"one_of": ["Davis", "Sacramento"]}}}),
            true,
        ),
        (json!({"subset": {"city": {"one_of": ["Davis"]}}}), false),
        (
            json!({"subset": {"opts": {"unit": {"one_of": ["C", "F"]}}}}),
            true,
        ),
        (
            json!({"schema": {"required": ["city"], "properties": {"days": {"maximum": 3}}}}),
            true,
        ),
        (json!({"schema": {"required": ["zip"]}}), false),
        (json!({"schema": true}), true),
        (json!({"match": {"city": {"contains": "Sac"}}}), true),
        (json!({"match": {"city": {"contains": "sac"}}}), false),
        (
            json!({"match": {"days": 2, "zip": {"exists": false}}}),
            true,
        ),
        (json!({"match": {"zip": {"not": {"exact": 1}}}}), false),
        (
            json!({"match": {"tags": {"length": 3}, "days": {">": 2}}}),
            false,
        ),
        (
            json!({"exact": {"city": "Sacramento", "days": 2}, "ignore_keys": ["opts", "t*s"]}),
            true,
        ),
        (
            json!({"exact": {"city": "Sacramento", "days": 2, "tags": 0}, "ignore_keys": ["opts", "tag?"]}),
            true,
        ),
        (
            json!({"exact": {"city": "Sacramento", "days": 2}, "ignore_keys": ["opts", "tag"]}),
            false,
        ),
        (
            json!({"subset": {"opts": {"unit": "C", "lang": "de"}}, "ignore_keys": ["opts.lang"]}),
            true,
        ),
        (
            json!({"subset": {"opts": {"unit": "C", "lang": "de"}}, "ignore_keys": ["lang"]}),
            true,
        ),
        (
            json!({"schema": {"additionalProperties": false, "properties": {"city": true, "days": true}}, "ignore_keys": ["opts", "tags"]}),
            true,
        ),
        (
            json!({"match": {"city": "Davis"}, "ignore_keys": ["c*"]}),
            true,
        ),
    ] {
        assert_eq!(args_fit(shape.clone(), args.clone()), fits, "{shape}");
    }
}

#[test]
fn arguments_that_are_no_object_fit_only_what_asks_for_nothing() {
    let broken = json!("{\"city\": \"Sacramento\"");
    for (shape, fits) in [
        (json!("any"), true),
        (json!("ignore"), true),
        (json!({"exact": broken}), true),
        (json!({"subset": {}}), false),
        (json!({"subset": "city"}), false),
        (json!({"schema": {"type": "object"}}), false),
        (json!({"match": {"city": {"exists": false}}}), false),
        (json!({"match": {}}), false),
    ] {
        assert_eq!(args_fit(shape.clone(), broken.clone()), fits, "{shape}");
    }
    // A call without arguments is one with none of them; a recorded null is a null.
    let absent = trace(json!([{"name": "f"}]));
    for (shape, fits) in [
        (json!("any"), true),
        (json!({"exact": {}}), true),
        (json!({"subset": {}}), true),
        (json!({"subset": {"a": null}}), false),
        (json!({"schema": {"type": "object"}}), true),
        (json!({"match": {"a": {"exists": false}}}), true),
    ] {
        let validation = validate(json!({"calls": [{"name": "f", "args": shape}]}), &absent);
        assert_eq!(validation.passed, fits, "{shape}");
    }
    assert!(!args_fit(json!({"exact": {}}), Value::Null));
    assert!(args_fit(json!({"exact": null}), Value::Null));
}

#[test]
fn options_hold_at_the_block_the_call_and_the_arguments() {
    let recorded = trace(json!([{"name": "f", "args": {"a": 1, "x_id": 1, "y": 2, "z": 3}}]));
    let call = json!({"name": "f", "ignore_keys": ["y"], "args": {"exact": {"a": 1}, "ignore_keys": ["z"]}});
    assert!(validate(json!({"ignore_keys": ["*_id"], "calls": [call]}), &recorded).passed);
    assert!(!validate(json!({"calls": [call]}), &recorded).passed);
}

#[test]
fn schema_defaults_replace_omitted_arguments() {
    let catalog = json!([
        {"server": "s", "name": "f", "inputSchema": {"properties": {"unit": {"default": "C"}, "city": {"type": "string"}}}},
        {"server": "t", "name": "f", "inputSchema": {"properties": {"unit": {"default": "F"}}}}
    ]);
    let run = |args: Value, catalog: &Value| -> Trace {
        serde_json::from_value(
            json!({"tool_calls": [{"name": "f", "server": "s", "args": args}], "catalog": catalog}),
        )
        .unwrap()
    };
    let fits = |args: Value, recorded: Value| {
        validate(
            json!({"defaults": true, "calls": [{"name": "f", "args": args}]}),
            &run(recorded, &catalog),
        )
        .passed
    };
    for (shape, recorded, expected) in [
        // Both sides of `exact` are filled in.
        (
            json!({"exact": {"city": "A", "unit": "C"}}),
            json!({"city": "A"}),
            true,
        ),
        (
            json!({"exact": {"city": "A"}}),
            json!({"city": "A", "unit": "C"}),
            true,
        ),
        (json!({"exact": {"city": "A"}}), json!({"city": "A"}), true),
        (
            json!({"exact": {"city": "A"}}),
            json!({"city": "A", "unit": "F"}),
            false,
        ),
        (
            json!({"exact": {"city": "A", "unit": "F"}}),
            json!({"city": "A"}),
            false,
        ),
        // Of `subset` and the others only the recorded side: the expectation asks for nothing it
        // does not say.
        (json!({"subset": {"unit": "C"}}), json!({"city": "A"}), true),
        (
            json!({"subset": {"city": "A"}}),
            json!({"city": "A", "unit": "F"}),
            true,
        ),
        (
            json!({"match": {"unit": {"regex": "^C$"}}}),
            json!({}),
            true,
        ),
        (json!({"schema": {"required": ["unit"]}}), json!({}), true),
        (
            json!({"exact": {"city": "A", "unit": "C"}, "defaults": false}),
            json!({"city": "A"}),
            false,
        ),
        (
            json!({"exact": {"one_of": [{"city": "A"}, {"city": "B"}]}}),
            json!({"city": "B", "unit": "C"}),
            true,
        ),
        (
            json!({"exact": {"city": "A"}, "ignore_keys": ["unit"]}),
            json!({"city": "A", "unit": "F"}),
            true,
        ),
    ] {
        assert_eq!(
            fits(shape.clone(), recorded.clone()),
            expected,
            "{shape} {recorded}"
        );
    }
    let block =
        json!({"calls": [{"name": "f", "args": {"exact": {"unit": "C"}}, "defaults": true}]});
    assert!(validate(block.clone(), &run(json!({}), &catalog)).passed);
    let unknown = validate(block, &run(json!({}), &Value::Null));
    assert!(!unknown.passed);
    assert!(
        unknown.mismatches[0].reason.contains("no stored catalog"),
        "{}",
        unknown.mismatches[0].reason
    );
}

#[test]
fn a_catalog_entry_is_used_only_where_it_is_clear() {
    let catalog = json!([
        {"server": "s", "name": "f", "inputSchema": {"properties": {"u": {"default": 1}}}},
        {"server": "t", "name": "f", "inputSchema": {"properties": {"u": {"default": 2}}}},
        {"server": "t", "name": "g", "inputSchema": {"properties": {"u": {"default": 3}}}}
    ]);
    for (name, server, default) in [
        ("f", Some("s"), Some(1)),
        ("f", Some("t"), Some(2)),
        ("f", None, None),
        ("g", None, Some(3)),
        ("g", Some("s"), None),
    ] {
        let recorded: Trace = serde_json::from_value(
            json!({"tool_calls": [{"name": name, "server": server, "args": {}}], "catalog": catalog}),
        )
        .unwrap();
        for value in 1..=3 {
            let block = json!({"defaults": true, "calls": [{"name": name, "args": {"subset": {"u": value}}}]});
            assert_eq!(
                validate(block, &recorded).passed,
                default == Some(value),
                "{name} {server:?} {value}"
            );
        }
    }
}

#[test]
fn names_follow_the_tool_id_rule() {
    let servers: KnownServers = ["brave", "google"].into_iter().collect();
    let recorded = trace(json!([{"name": "search", "server": "brave"}]));
    for (call, fits) in [
        (json!({"name": "search"}), true),
        (json!({"name": "brave.search"}), true),
        (json!({"name": "google.search"}), false),
        (json!({"name": "search", "server": "brave"}), true),
        (json!({"name": "search", "server": "google"}), false),
        (json!({"name": "brave.search", "server": "brave"}), true),
        (json!({"name": "brave__search"}), false),
        (json!({"name": "Search"}), false),
    ] {
        let expected = trajectory(json!({"calls": [call]}));
        let validation = validate_trace(&expected, &recorded, &servers).unwrap();
        assert_eq!(validation.passed, fits, "{call}");
    }
}

#[test]
fn mismatches_name_both_calls_and_the_difference() {
    let found = |block: Value, recorded: &Trace| -> Vec<(Option<usize>, Option<usize>, String)> {
        validate(block, recorded)
            .mismatches
            .into_iter()
            .map(|mismatch| {
                (
                    mismatch.expected_index,
                    mismatch.recorded_index,
                    mismatch.reason,
                )
            })
            .collect()
    };
    let one = |expected, recorded, reason: &str| vec![(expected, recorded, reason.to_owned())];
    assert_eq!(
        found(expecting("strict", "ab"), &letters("ax")),
        one(Some(1), Some(1), "expected `b`, recorded `x`")
    );
    assert_eq!(
        found(expecting("strict", "ab"), &letters("a")),
        one(Some(1), None, "expected `b`, but the trace ended before it")
    );
    assert_eq!(
        found(expecting("strict", "a"), &letters("ab")),
        one(None, Some(1), "`b` is one call more than the 1 expected")
    );
    assert_eq!(
        found(expecting("subsequence", "ab"), &letters("ba")),
        one(
            Some(1),
            Some(0),
            "`b` was called, but not in the expected order or not often enough"
        )
    );
    assert_eq!(
        found(expecting("unordered", "ab"), &letters("b")),
        one(Some(0), None, "`a` was never called")
    );
    assert_eq!(
        found(expecting("unordered", "aa"), &letters("a")),
        one(
            Some(1),
            None,
            "`a` has no call of its own: every call of it belongs to another expected call"
        )
    );
    assert_eq!(
        found(expecting("subset", "a"), &letters("aa")),
        one(None, Some(1), "`a` was called more often than expected")
    );
    assert_eq!(
        found(expecting("subset", "a"), &letters("x")),
        one(None, Some(0), "`x` was not expected")
    );
    // The call of the right tool that comes nearest is shown.
    let calls = json!([{"name": "w", "args": {"subset": {"city": "A", "days": 1}}}]);
    let recorded = trace(json!([
        {"name": "w", "args": {"city": "B"}},
        {"name": "w", "args": {"city": "A", "days": 2}},
        {"name": "v", "args": {"city": "A", "days": 1}}
    ]));
    for mode in ["subsequence", "unordered", "superset"] {
        let validation = validate(json!({"mode": mode, "calls": calls}), &recorded);
        let mismatch = &validation.mismatches[0];
        assert_eq!(
            (mismatch.expected_index, mismatch.recorded_index),
            (Some(0), Some(1))
        );
        assert_eq!(mismatch.reason, "arguments of `w`: /days is 2, expected 1");
        assert_eq!(
            serde_json::to_value(&mismatch.diff).unwrap(),
            json!([{"pointer": "/days", "expected": 1, "actual": 2}])
        );
    }
    let validation = validate(json!({"mode": "subset", "calls": calls}), &recorded);
    let pairs: Vec<_> = validation
        .mismatches
        .iter()
        .map(|mismatch| (mismatch.expected_index, mismatch.recorded_index))
        .collect();
    assert_eq!(
        pairs,
        [(Some(0), Some(0)), (Some(0), Some(1)), (None, Some(2))]
    );
}

#[test]
fn differences_come_from_every_shape() {
    let diff = |shape: Value, recorded: Value| {
        let block = json!({"calls": [{"name": "f", "args": shape}]});
        let validation = validate(block, &trace(json!([{"name": "f", "args": recorded}])));
        let mismatch = validation.mismatches.into_iter().next().unwrap();
        (
            mismatch.reason,
            serde_json::to_value(mismatch.diff).unwrap(),
        )
    };
    let (reason, found) = diff(
        json!({"exact": {"a": {"one_of": [1, 2]}}}),
        json!({"a": 3, "b": 4}),
    );
    assert_eq!(
        reason,
        "arguments of `f`: /a is 3, expected {\"one_of\":[1,2]}; /b is 4, and should not be there"
    );
    assert_eq!(
        found,
        json!([{"pointer": "/a", "expected": {"one_of": [1, 2]}, "actual": 3}, {"pointer": "/b", "actual": 4}])
    );
    let (reason, found) = diff(
        json!({"schema": {"properties": {"n": {"minimum": 5}}}}),
        json!({"n": 3}),
    );
    assert!(reason.contains("/n: 3 is less than"), "{reason}");
    assert_eq!(
        found,
        json!([{"pointer": "/n", "expected": {"minimum": 5}, "actual": 3}])
    );
    let (reason, found) = diff(json!({"match": {"n": {">": 5}, "m": 1}}), json!({"n": 3}));
    assert_eq!(
        reason,
        "arguments of `f`: /n: 3 is not more than 5; /m: the value is absent"
    );
    assert_eq!(
        found,
        json!([{"pointer": "/n", "expected": {">": 5}, "actual": 3}, {"pointer": "/m", "expected": {"exact": 1}}])
    );
    let (_, found) = diff(
        json!({"match": {"o": {"exact": {"a": 1}}}}),
        json!({"o": {"a": 2}}),
    );
    assert_eq!(
        found,
        json!([{"pointer": "/o/a", "expected": 1, "actual": 2}])
    );
    let (reason, _) = diff(json!({"subset": {"a": 1}}), json!("{broken\u{1b}[31m"));
    assert_eq!(
        reason,
        "arguments of `f`: the arguments are a string: \"{broken\\u001b[31m\""
    );
}

#[test]
fn a_broken_expectation_is_an_error_with_its_place() {
    for (args, place) in [
        (
            json!({"schema": {"type": "strin"}}),
            "/calls/0/args/schema/type",
        ),
        (json!({"schema": 3}), "/calls/0/args/schema"),
        (
            json!({"match": {"city": {"regex": "("}}}),
            "/calls/0/args/match/city/regex",
        ),
        (json!({"match": {"city": {}}}), "/calls/0/args/match/city"),
        (json!({"match": 3}), "/calls/0/args/match"),
        (json!({"city": "Sacramento"}), "/calls/0/args/city"),
        (
            json!({"exact": {"a": {"one_of": []}}}),
            "/calls/0/args/exact/a/one_of",
        ),
        (json!({"exact": {}, "subset": {}}), "/calls/0/args"),
        (json!({"ignore_keys": ["a"]}), "/calls/0/args"),
        (
            json!({"exact": {}, "ignore_keys": "a"}),
            "/calls/0/args/ignore_keys",
        ),
        (
            json!({"exact": {}, "defaults": 1}),
            "/calls/0/args/defaults",
        ),
        (json!("all"), "/calls/0/args"),
        (json!(null), "/calls/0/args"),
        (json!({}), "/calls/0/args"),
    ] {
        let block = json!({"mode": "unordered", "calls": [{"name": "f", "args": args}]});
        // Whatever the trace is, even one without calls.
        let error = validate_trace(
            &trajectory(block.clone()),
            &Trace::default(),
            &KnownServers::default(),
        )
        .unwrap_err();
        let problems = testing::load("trajectory", &block).unwrap_err();
        assert_eq!(problems.len(), 1, "{args}: {problems:?}");
        assert_eq!(problems[0].pointer, place, "{args}");
        assert_eq!((error.call, &error.reason), (0, &problems[0].message));
    }
    // All of them together.
    let block = json!({"calls": [{"name": "f", "args": {"schema": 3}}, {"name": "g", "args": {"nope": 3}}]});
    assert_eq!(testing::load("trajectory", &block).unwrap_err().len(), 2);
    let gate = trajectory(block);
    let unchecked = testing::with_context(|context| {
        let mut accumulator = TrajectoryAccumulator::default();
        let traces = [Trace::default()];
        gate.observe(&mut accumulator, context, &Run::number(&traces)[0]);
        gate.finish(accumulator, context)
    });
    assert!(unchecked.values.iter().all(|(_, value)| value.is_null()));
    assert!(unchecked.absent[0].1.contains("/calls/0/args/schema"));
}

#[test]
fn the_default_gate_asks_every_run() {
    let block = json!({"mode": "subsequence", "calls": [{"name": "get_weather", "args": {"subset": {"city": "Sacramento"}}}]});
    let good = trace(
        json!([{"name": "x"}, {"name": "get_weather", "args": {"city": "Sacramento", "unit": "C"}}]),
    );
    let bad = trace(json!([{"name": "get_weather", "args": {"city": "Davis"}}]));
    let outcome = judge(block.clone(), &[good.clone(), good.clone()]);
    assert_eq!(outcome.verdict, Verdict::Pass);
    assert_eq!(
        Value::Object(outcome.values),
        json!({"trajectory.passed": 1, "trajectory.mismatch_count": 0})
    );
    let outcome = judge(block, &[good, bad, letters("")]);
    assert_eq!(outcome.verdict, Verdict::Fail);
    assert!(outcome.assertions[0].default);
    assert_eq!(
        Value::Object(outcome.values),
        json!({"trajectory.passed": 0, "trajectory.mismatch_count": 2})
    );
    assert_eq!(outcome.detail.to_value()["mismatches"][0]["run"], json!(2));
    assert_eq!(
        outcome.detail.to_value()["mismatches"][1]["recorded_index"],
        Value::Null
    );
    assert_eq!(
        outcome.detail.to_value()["per_run"][0]["assignment"],
        json!([1])
    );
    assert!(
        outcome.summary.starts_with(
            "2 mismatches (subsequence) in 2 of 3 runs · run 2: arguments of `get_weather`"
        ),
        "{}",
        outcome.summary
    );
}

#[test]
fn an_empty_trace_is_evidence_only_for_an_empty_list() {
    for mode in MODES {
        assert_eq!(
            judge(expecting(mode, ""), &[letters("")]).verdict,
            Verdict::Pass,
            "{mode}"
        );
    }
    assert_eq!(
        judge(expecting("strict", ""), &[letters("a")]).verdict,
        Verdict::Pass
    );
    assert_eq!(
        judge(expecting("subset", ""), &[letters("a")]).verdict,
        Verdict::Fail
    );
    let nothing = judge(expecting("subset", "ab"), &[letters(""), letters("")]);
    assert_eq!(nothing.verdict, Verdict::NoEvidence);
    assert_eq!(nothing.values["trajectory.passed"], json!(1));
    assert_eq!(
        judge(expecting("subset", "ab"), &[letters(""), letters("b")]).verdict,
        Verdict::Pass
    );
    for mode in [
        "strict",
        "subsequence",
        "unordered",
        "superset",
        "exact_set",
    ] {
        assert_eq!(
            judge(expecting(mode, "a"), &[letters("")]).verdict,
            Verdict::Fail,
            "{mode}"
        );
    }
}

#[test]
fn a_list_that_nothing_can_fail_is_warned_about() {
    let context = LoadContext {
        to_run: true,
        runs: None,
        siblings: &[],
        attacks: Default::default(),
    };
    for mode in MODES {
        let problems = trajectory(expecting(mode, "")).check(&context);
        assert_eq!(
            problems.is_empty(),
            mode == "subset" || mode == "exact_set",
            "{mode}"
        );
        assert!(problems.iter().all(|problem| problem.warning));
    }
}

#[test]
fn every_target_can_fail() {
    for target in Trajectory::TARGETS {
        let mut block = expecting("strict", "a");
        block["expect"] = json!([{target.name: {">": 1e18}}]);
        let outcome = judge(block, &[letters("a"), letters("a")]);
        assert_eq!(outcome.verdict, Verdict::Fail, "{}", target.name);
    }
}

#[test]
fn calls_are_found_in_an_envelope_with_other_keys() {
    let calls = tool_calls_from_envelope(&json!({"tool_calls": [
        {"id": "c1", "name": "f", "server": "s", "args": {"a": 1}, "caller": null, "turn": 1},
        {"name": 7}, "f", {"name": "g", "turn": "first", "args": {}}
    ]}));
    let names: Vec<_> = calls.iter().map(ToolCall::name).collect();
    assert_eq!(names, ["f", "", "", ""]);
    assert_eq!(calls[0].args(), Some(&json!({"a": 1})));
    assert_eq!(calls[3].extra["malformed"]["name"], json!("g"));
    assert!(tool_calls_from_envelope(&json!({})).is_empty());
    assert!(tool_calls_from_envelope(&json!([])).is_empty());
}

#[test]
fn a_huge_trace_is_lined_up_in_reasonable_time() {
    let expected = expecting("unordered", &"ab".repeat(50));
    let recorded = letters(&"xab".repeat(5000));
    assert!(validate(expected, &recorded).passed);
    let expected = expecting("subsequence", &"abz".repeat(30));
    assert_eq!(validate(expected, &recorded).mismatches.len(), 30);
    let validation = validate(expecting("subset", "a"), &recorded);
    assert_eq!(validation.mismatches.len(), 14_999);
}

fn shuffled(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .rev()
            .map(|(key, value)| (key.clone(), shuffled(value)))
            .collect(),
        Value::Array(items) => items.iter().map(shuffled).collect(),
        other => other.clone(),
    }
}

fn calls() -> impl Strategy<Value = Vec<Value>> {
    let call = (prop::sample::select(vec!["f", "g", "h"]), 0_u8..3, 0_u8..2).prop_map(
        |(name, a, b)| json!({"name": name, "args": {"a": a, "b": {"c": b, "d": [b, a]}}}),
    );
    prop::collection::vec(call, 0..6)
}

fn expected_calls() -> impl Strategy<Value = Vec<Value>> {
    let shape = prop_oneof![
        Just(json!("any")),
        (0_u8..3).prop_map(|a| json!({"subset": {"a": a}})),
        (0_u8..3).prop_map(|a| json!({"match": {"a": {"<=": a}}})),
        (0_u8..3).prop_map(|a| json!({"subset": {"a": {"one_of": [a, 0]}}})),
        (0_u8..3, 0_u8..2)
            .prop_map(|(a, b)| json!({"exact": {"a": a, "b": {"c": b, "d": [b, a]}}})),
    ];
    let call = (prop::sample::select(vec!["f", "g"]), shape)
        .prop_map(|(name, args)| json!({"name": name, "args": args}));
    prop::collection::vec(call, 0..5)
}

proptest! {
    #[test]
    fn only_what_may_matter_matters(expected in expected_calls(), recorded in calls(), mode in prop::sample::select(MODES.to_vec())) {
        let block = json!({"mode": mode, "calls": expected});
        let plain = trace(recorded.clone().into());
        let before = validate(block.clone(), &plain);
        // Keys in another order.
        let other = validate(json!({"mode": mode, "calls": expected.iter().map(shuffled).collect::<Vec<_>>()}), &trace(shuffled(&recorded.clone().into())));
        prop_assert_eq!(before.passed, other.passed);
        prop_assert_eq!(&before.assignment, &other.assignment);
        prop_assert_eq!(before.mismatches.len(), other.mismatches.len());
        // Another closing message.
        let mut narrated = plain.clone();
        narrated.final_response = Some("I did something else".into());
        prop_assert_eq!(&before, &validate(block, &narrated));
    }

    #[test]
    fn modes_imply_each_other(expected in expected_calls(), recorded in calls()) {
        let recorded_trace = trace(recorded.clone().into());
        let count = |mode: &str, expected: &[Value]| {
            validate(json!({"mode": mode, "calls": expected}), &recorded_trace).mismatches.len()
        };
        let [strict, subsequence, unordered, superset, subset, exact_set] = MODES.map(|mode| count(mode, &expected));
        prop_assert_eq!(unordered, superset);
        prop_assert!(unordered <= subsequence);
        if !expected.is_empty() {
            prop_assert!(subsequence <= strict);
            prop_assert_eq!(exact_set, unordered + subset);
            prop_assert!(strict <= expected.len().max(recorded.len()));
        }
        // Without order, the order written does not matter.
        let reversed: Vec<Value> = expected.iter().rev().cloned().collect();
        for mode in ["unordered", "subset", "exact_set"] {
            prop_assert_eq!(count(mode, &expected), count(mode, &reversed), "{}", mode);
        }
    }

    #[test]
    fn a_recording_meets_itself(recorded in calls()) {
        let expected: Vec<Value> = recorded.iter().map(|call| json!({"name": call["name"], "args": {"exact": call["args"]}})).collect();
        for mode in MODES {
            let validation = validate(json!({"mode": mode, "calls": expected}), &trace(recorded.clone().into()));
            prop_assert!(validation.passed, "{mode}");
        }
    }
}
