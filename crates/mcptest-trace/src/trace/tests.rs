use serde_json::json;

use super::schema::WrittenTrace;
use super::*;
use crate::target::Target;
use proptest::prelude::*;

fn trace(value: Value) -> Trace {
    serde_json::from_value(value).unwrap()
}

#[test]
fn reads_one_object_an_array_and_lines() {
    let one = r#"{"tool_calls": []}"#;
    assert_eq!(read(one).unwrap().len(), 1);
    assert_eq!(read(&format!("[{one},{one}]")).unwrap().len(), 2);
    assert_eq!(read(&format!("{one}\n\n{one}\n{one}\n")).unwrap().len(), 3);
    assert_eq!(read("").unwrap().len(), 0);
    assert_eq!(read("{\n \"tool_calls\": []\n}\n").unwrap().len(), 1);
}

#[test]
fn errors_name_their_line() {
    let error = read("{\"tool_calls\": []}\n{\"tool_calls\": [}\n").unwrap_err();
    assert_eq!(error.line, 2);
    let error = read("{\"tool_cals\": []}").unwrap_err();
    assert!(error.message.contains("tool_calls"), "{error}");
    assert!(!error.message.contains("line"), "{error}");
}

#[test]
fn everything_recorded_is_written_back() {
    let value = json!({
        "test": "t", "model": "m", "run": 1,
        "tool_calls": [{"id": "c1", "name": "f", "server": "s", "args": {"b": 1, "a": 2}, "caller": {"type": "code_execution"}, "turn": 1, "x": true}],
        "tool_results": [{"call_id": "c1", "is_error": false, "content": [], "structured_content": {}}],
        "conversation": {"turns": [{"role": "assistant", "content": "hi"}], "tokens": {"input": 1, "output": 2, "total": 3, "cached": 4}},
        "final_response": "hi", "catalog": [{"server": "s", "name": "f"}], "distractors": ["s.g"], "reward": 1.0
    });
    assert_eq!(serde_json::to_value(trace(value.clone())).unwrap(), value);
}

#[test]
fn missing_is_unknown() {
    let trace =
        trace(json!({"tool_calls": [{"name": "f"}], "conversation": null, "tool_results": null}));
    assert_eq!(trace.total_tokens(), None);
    assert_eq!(trace.final_text(), None);
    assert_eq!(trace.results_by_call(), [None]);
    let seen = trace.observable().to_value();
    assert_eq!(seen.get("final_response"), None);
    assert_eq!(seen["conversation"].get("tokens"), None);
    assert_eq!(seen["tool_results"], json!([null]));
    // Known parts of the usage do not make a total.
    let partly = self::trace(
        json!({"tool_calls": [], "conversation": {"tokens": {"input": 5, "output": 6}}}),
    );
    assert_eq!(partly.total_tokens(), None);
}

#[test]
fn results_pair_by_id_then_by_position() {
    let by_id = trace(json!({
        "tool_calls": [{"id": "a", "name": "f"}, {"id": "b", "name": "g"}],
        "tool_results": [{"call_id": "b", "is_error": true}, {"call_id": "a", "is_error": false}]
    }));
    assert_eq!(by_id.pair_results(), [Some(1), Some(0)]);
    let by_position = trace(json!({
        "tool_calls": [{"name": "f"}, {"id": "b", "name": "g"}, {"name": "h"}],
        "tool_results": [{"is_error": true}, {"is_error": false}]
    }));
    assert_eq!(by_position.pair_results(), [Some(0), Some(1), None]);
    let foreign = trace(json!({
        "tool_calls": [{"id": "a", "name": "f"}],
        "tool_results": [{"call_id": "zzz", "is_error": true}]
    }));
    assert_eq!(foreign.pair_results(), [None]);
}

#[test]
fn malformed_names_and_raw_arguments_stay_visible() {
    let trace = trace(json!({"tool_calls": [{"name": 7, "args": "{broken"}, {"args": null}]}));
    assert_eq!(trace.tool_calls[0].name(), "");
    let seen = trace.observable().to_value();
    assert_eq!(seen["tool_calls"][0]["name"], json!(7));
    assert_eq!(seen["tool_calls"][0]["args"], json!("{broken"));
    assert_eq!(trace.tool_calls[1].args(), Some(&Value::Null));
    assert_eq!(trace.tool_calls[0].args(), Some(&json!("{broken")));
}

#[test]
fn the_final_text_may_come_from_the_turns() {
    let trace = trace(json!({"tool_calls": [], "conversation": {"turns": [
        {"role": "assistant", "content": "first"},
        {"role": "assistant", "content": [{"type": "text", "text": "last"}, {"type": "image"}]},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "thanks"}
    ]}}));
    assert_eq!(trace.final_text().as_deref(), Some("last"));
}

#[test]
fn issue_10_names_with_the_prefix_of_other_agents_split_too() {
    let mut trace = trace(json!({
        "tool_calls": [{"name": "mcp__brave__search"}, {"name": "mcp__other__x"},
            {"name": "mcp__cat__y"}, {"name": "mcp__q__z", "server": "q"}, {"name": "mcp__z"}],
        "catalog": [{"server": "cat", "name": "y"}]
    }));
    trace.split_wire_names(&["brave"].into_iter().collect());
    let ids: Vec<_> = trace.tool_calls.iter().map(ToolCall::full_id).collect();
    let split = ["brave.search", "mcp__other__x", "cat.y", "q.z", "mcp__z"];
    assert_eq!(ids, split);
}

#[test]
fn wire_names_split_when_the_server_is_known() {
    let mut trace = trace(json!({
        "tool_calls": [{"name": "brave__search"}, {"name": "other__x"}, {"name": "cat__y"}, {"name": "brave__z", "server": "q"},
            {"name": "q__z", "server": "q"}, {"name": "cat__k", "server": "cat"}],
        "catalog": [{"server": "cat", "name": "y"}, {"server": "cat", "name": "cat__k"}]
    }));
    trace.split_wire_names(&["brave"].into_iter().collect());
    let ids: Vec<_> = trace.tool_calls.iter().map(ToolCall::full_id).collect();
    assert_eq!(
        ids,
        [
            "brave.search",
            "other__x",
            "cat.y",
            "q.brave__z",
            "q.z",
            "cat.cat__k"
        ]
    );
}

#[test]
fn wire_names_leave_the_catalog_alone_where_no_name_needs_it() {
    let text = r#"{"tool_calls": [{"name": "f"}, {"name": "s__g"}], "catalog": [{"name": "f"}]}"#;
    let mut trace = TraceView::parse(text).unwrap();
    trace.split_wire_names(&["s"].into_iter().collect());
    assert_eq!(trace.tool_calls[1].full_id(), "s.g");
    assert!(trace.catalog.as_ref().unwrap().tools.get().is_none());
    assert_eq!(trace.catalog().unwrap()[0].name(), "f");
}

#[test]
fn a_view_borrows_and_parses_on_demand() {
    let text = r#"{"test": "t", "tool_calls": [{"name": "f", "args": {"a": 1}}], "x": [1]}"#;
    let trace = TraceView::parse(text).unwrap();
    assert!(matches!(trace.test, Some(Cow::Borrowed("t"))));
    assert!(matches!(
        &trace.tool_calls[0].raw_name,
        ToolName::Text(Cow::Borrowed("f"))
    ));
    let owned = trace.clone().into_owned();
    assert_eq!(owned, trace);
    assert_eq!(owned.extra("x"), Some(&json!([1])));
}

#[test]
fn the_thorough_reader_decides_where_the_quick_one_rejects() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!("{{\"tool_calls\": [], \"x\": {open}{close}}}")
    };
    assert!(TraceView::parse(&nested(90)).is_ok());
    assert!(TraceView::parse(&nested(120)).is_ok());
    let error = TraceView::parse(&nested(130)).unwrap_err();
    assert_eq!(error.message, "recursion limit exceeded");
    let error = TraceView::parse("{\"tool_calls\": [],\n\"x\": [1, 1e999]}").unwrap_err();
    assert_eq!((error.line, error.column), (2, 14));
    assert_eq!(error.message, "number out of range");
}

/// Pieces of JSON, as text: well-formed ones in odd spellings, and hostile ones.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => prop::sample::select(vec![
            "1", "-0", "0.50", "1e3", "12345678901234567890", "true", "null", "\"a\"", "\"\"",
            "\"\\u0061\\n\"", "\"\\ud83d\\ude00\"", "\"é3e5\"", "{}", "[]",
        ]),
        1 => prop::sample::select(vec![
            "\"\\ud800\"", "1e999", "nul", "\"", "-", "01", "{", "]", "\"\\x\"", "\u{1}", "",
        ]),
    ]
    .prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec(
                (prop::sample::select(vec!["k", "k", "text", "id"]), inner),
                0..4
            )
            .prop_map(|entries| object_text(&entries)),
        ]
    })
}

fn object_text(entries: &[(&'static str, String)]) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("\"{key}\": {value}"))
        .collect();
    format!("{{{}\n}}", entries.join(","))
}

/// An object with some of these keys, each with a fitting value or any value.
fn object(keys: Vec<(&'static str, BoxedStrategy<String>)>) -> BoxedStrategy<String> {
    let entry = prop::sample::select(keys).prop_flat_map(|(key, fitting)| {
        prop_oneof![9 => fitting, 1 => json_text()].prop_map(move |value| (key, value))
    });
    prop::collection::vec(entry, 0..6)
        .prop_map(|entries| object_text(&entries))
        .boxed()
}

fn list(of: BoxedStrategy<String>) -> BoxedStrategy<String> {
    prop::collection::vec(of, 0..4)
        .prop_map(|items| format!("[{}]", items.join(",\n")))
        .boxed()
}

fn trace_text() -> impl Strategy<Value = String> {
    let any = || json_text().boxed();
    let text = || {
        prop::sample::select(vec!["\"a\"", "\"b\\n\"", "\"assistant\"", "null"])
            .prop_map(str::to_owned)
            .boxed()
    };
    let number = || {
        prop::sample::select(vec!["1", "2", "null", "-1", "1.5"])
            .prop_map(str::to_owned)
            .boxed()
    };
    let flag = prop::sample::select(vec!["true", "false", "null"])
        .prop_map(str::to_owned)
        .boxed();
    let call = object(vec![
        ("id", text()),
        ("name", text()),
        ("server", text()),
        ("args", any()),
        ("caller", any()),
        ("turn", number()),
        ("other", any()),
    ]);
    let result = object(vec![
        ("call_id", text()),
        ("is_error", flag),
        ("content", any()),
        ("fault", any()),
    ]);
    let turn = object(vec![("role", text()), ("content", any()), ("other", any())]);
    let tokens = object(vec![
        ("input", number()),
        ("output", number()),
        ("total", number()),
        ("cached", any()),
    ]);
    let conversation = object(vec![
        ("turns", list(turn)),
        ("tokens", tokens),
        ("other", any()),
    ]);
    let tool = object(vec![
        ("server", text()),
        ("name", text()),
        ("inputSchema", any()),
    ]);
    let judgement = object(vec![
        ("target", text()),
        ("digest", text()),
        ("model", text()),
    ]);
    let others = object(vec![
        ("test", text()),
        ("model", text()),
        ("run", number()),
        ("final_response", text()),
        ("tool_results", list(result)),
        ("conversation", conversation),
        ("catalog", list(tool)),
        ("distractors", list(text())),
        ("judgements", list(judgement)),
        ("error", any()),
        ("reward", any()),
        ("reward", any()),
        ("tool_calls", any()),
    ]);
    (list(call), others, 0..20_u8).prop_map(|(calls, others, dice)| {
        if dice == 0 {
            return others;
        }
        let rest = others.trim_start_matches('{').trim_start_matches('\n');
        let comma = if rest == "}" { "" } else { ", " };
        format!("{{\"tool_calls\": {calls}{comma}{rest}")
    })
}

type Read<T> = Result<T, (usize, usize, String)>;

fn place<T>(result: Result<T, TraceSyntaxError>) -> Read<T> {
    result.map_err(|error| {
        (
            error.line,
            error.column,
            error.message.replace("Written", ""),
        )
    })
}

/// The traces as the types of `schema.rs` read and write them.
fn reference(text: &str) -> Read<Vec<[String; 2]>> {
    let stream = serde_json::Deserializer::from_str(text).into_iter::<WrittenTrace>();
    let traces: serde_json::Result<Vec<WrittenTrace>> = stream.collect();
    place(traces.map_err(TraceSyntaxError::from)).map(|traces| traces.iter().map(written).collect())
}

fn written(trace: &impl serde::Serialize) -> [String; 2] {
    [
        serde_json::to_string(trace).unwrap(),
        serde_json::to_string_pretty(trace).unwrap(),
    ]
}

/// The observable root as it was built before there were views.
fn whole_root(trace: &Trace) -> Value {
    let json = |part: &dyn erased::Part| part.json();
    let mut root = serde_json::Map::new();
    root.insert("tool_calls".into(), json(&trace.tool_calls));
    let names = trace.tool_calls.iter().map(|call| Value::from(call.name()));
    root.insert("tool_names".into(), names.collect());
    root.insert("tool_results".into(), json(&trace.results_by_call()));
    if let Some(text) = trace.final_text() {
        root.insert("final_response".into(), text.as_ref().into());
    }
    root.insert("conversation".into(), json(&trace.conversation));
    root.insert("trace".into(), Value::Object(trace.extra.to_map()));
    Value::Object(root)
}

mod erased {
    use serde_json::Value;

    pub trait Part {
        fn json(&self) -> Value;
    }

    impl<T: serde::Serialize> Part for T {
        fn json(&self) -> Value {
            serde_json::to_value(self).unwrap()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn views_read_and_write_as_the_derived_types_do(
        traces in prop::collection::vec(trace_text(), 1..4),
        between in prop::sample::select(vec!["", " ", "\n", "\n\n"]),
    ) {
        let text = traces.join(between);
        let expected = reference(&text);
        let owned = place(read_sequence(&text));
        prop_assert_eq!(owned.map(|all| all.iter().map(written).collect()), expected.clone());
        let viewed: Result<Vec<TraceView<'_>>, _> = views(&text).collect();
        let again = place(viewed).map(|all| all.iter().map(written).collect::<Vec<_>>());
        prop_assert_eq!(again, expected.clone());
        if let ([_], Ok(expected)) = (traces.as_slice(), expected) {
            let parsed = TraceView::parse(&text).unwrap();
            prop_assert_eq!(written(&parsed), expected[0].clone());
            prop_assert_eq!(&parsed.to_json(), &expected[0][0]);
            let [compact, _] = &expected[0];
            let again = TraceView::parse(compact).unwrap();
            prop_assert_eq!(&again.to_json(), compact);
            prop_assert_eq!(&again, &parsed);
            prop_assert_eq!(written(&parsed.into_owned()), expected[0].clone());
        }
    }

    #[test]
    fn damaged_text_gives_the_same_errors(text in trace_text(), cut in 0..300_usize, byte in "\\PC") {
        let mut damaged: String = text.chars().take(cut).collect();
        damaged.push_str(&byte);
        damaged.extend(text.chars().skip(cut + 1));
        let viewed: Result<Vec<TraceView<'_>>, _> = views(&damaged).collect();
        let viewed = place(viewed).map(|all| all.iter().map(written).collect::<Vec<_>>());
        prop_assert_eq!(viewed, reference(&damaged));
    }

    #[test]
    fn targets_select_from_a_view_as_from_the_whole_root(
        text in trace_text(),
        path in "(tool_calls|tool_names|tool_results|final_response|conversation|trace|nope)\
            (\\[(0|1|-1|\\*)\\]|\\.(name|id|args|k|content|turns|tokens|total|role|reward|fault)){0,4}",
    ) {
        let Ok(trace) = TraceView::parse(&text) else { return Ok(()) };
        let root = whole_root(&trace.clone().into_owned());
        prop_assert_eq!(&trace.observable().to_value(), &root);
        let target = Target::parse(&path).unwrap();
        prop_assert_eq!(target.select(trace.observable()), target.select(&root), "{}", path);
    }
}
