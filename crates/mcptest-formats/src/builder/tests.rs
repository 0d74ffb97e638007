use serde_json::json;

use super::*;

fn call(id: &str, name: &str, args: Value) -> Call {
    Call {
        id: Some(id.into()),
        name: name.into(),
        args: Some(args),
        ..Call::default()
    }
}

fn reply(id: &str, text: &str) -> Reply {
    Reply {
        call_id: Some(id.into()),
        content: Some(text.into()),
        ..Reply::default()
    }
}

#[test]
fn a_repeated_call_is_one_and_a_reused_id_is_two() {
    let mut builder = TraceBuilder::new();
    builder.call(call("a", "f", json!({})));
    builder.call(call("a", "f", json!({})));
    builder.result(reply("a", "1"));
    builder.result(reply("a", "1"));
    builder.call(call("a", "f", json!({})));
    builder.result(reply("a", "2"));
    builder.call(call("a", "g", json!({})));
    let trace = builder.finish();
    assert_eq!(trace.tool_calls.len(), 3);
    assert_eq!(trace.tool_results.len(), 2);
    assert_eq!(trace.pair_results(), [Some(0), Some(1), None]);
}

#[test]
fn text_is_added_to_the_latest_turn() {
    let mut builder = TraceBuilder::new();
    builder.say("nowhere");
    builder.turn("assistant", None);
    builder.append_text("It ");
    builder.append_text("is.");
    builder.say("Yes.");
    let trace = builder.finish();
    let turns = trace.conversation.turns.unwrap();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].text(), "It is.\nYes.");
}

#[test]
fn facts_of_several_records_of_one_call_are_combined() {
    let mut builder = TraceBuilder::new();
    builder.call_once(Call {
        args: None,
        ..call("a", "f", json!(null))
    });
    builder.result_once(Reply {
        content: None,
        ..reply("a", "")
    });
    builder.call_once(Call {
        server: Some("s".into()),
        ..call("a", "f", json!({"x": 1}))
    });
    builder.result_once(Reply {
        is_error: Some(true),
        ..reply("a", "no")
    });
    let trace = builder.finish();
    assert_eq!(trace.tool_calls.len(), 1);
    assert_eq!(trace.tool_calls[0].full_id(), "s.f");
    assert_eq!(trace.tool_calls[0].args(), Some(&json!({"x": 1})));
    assert_eq!(trace.tool_results.len(), 1);
    assert_eq!(trace.tool_results[0].is_error, Some(true));
    assert_eq!(trace.tool_results[0].content().unwrap()[0]["text"], "no");
}

#[test]
fn usage_is_counted_once_per_request_and_missing_is_unknown() {
    let usage = |input, output| {
        Some(Usage {
            input: Some(input),
            output: Some(output),
            ..Usage::default()
        })
    };
    let mut builder = TraceBuilder::new();
    builder.usage_of("m1", usage(10, 1));
    builder.usage_of("m1", usage(10, 5));
    builder.usage_of("m1", None);
    builder.usage(usage(20, 7));
    let tokens = builder.finish().conversation.tokens.unwrap();
    assert_eq!(
        (tokens.input, tokens.output, tokens.total),
        (Some(30), Some(12), Some(42))
    );
    let mut builder = TraceBuilder::new();
    builder.usage(usage(20, 7));
    builder.usage(None);
    assert_eq!(builder.finish().conversation.tokens, None);
    assert_eq!(TraceBuilder::new().finish().conversation.tokens, None);
    let mut builder = TraceBuilder::new();
    builder.usage(Some(Usage {
        output: Some(3),
        ..Usage::default()
    }));
    let tokens = builder.finish().conversation.tokens.unwrap();
    assert_eq!(
        (tokens.input, tokens.output, tokens.total),
        (None, Some(3), None)
    );
}

#[test]
fn prefixed_names_are_split_and_kept() {
    let mut builder = TraceBuilder::new();
    builder.server("a__b");
    for name in [
        "mcp__s__t",
        "mcp__a__b__c",
        "mcp__x__y__z",
        "s__t",
        "mcp__s___t",
    ] {
        builder.call(call(name, name, json!({})));
    }
    let trace = builder.finish();
    let found: Vec<_> = trace
        .tool_calls
        .iter()
        .map(|call| (call.full_id(), call.extra("wire_name").cloned()))
        .collect();
    assert_eq!(found[0], ("s.t".into(), Some(json!("mcp__s__t"))));
    assert_eq!(found[1], ("a__b.c".into(), Some(json!("mcp__a__b__c"))));
    for (at, name) in [(2, "mcp__x__y__z"), (3, "s__t"), (4, "mcp__s___t")] {
        assert_eq!(found[at], (name.into(), None));
    }
}

#[test]
fn calls_without_ids_are_answered_by_name_in_order() {
    let mut builder = TraceBuilder::new();
    for (name, x) in [("f", 1), ("g", 2), ("f", 3)] {
        builder.call(Call {
            id: None,
            ..call("", name, json!({"x": x}))
        });
    }
    builder.call(call("c2", "h", json!({})));
    builder.call(call("x", "f", json!({})));
    for (name, text) in [("g", "g"), ("f", "f1"), ("f", "f3")] {
        let call_id = builder.answer_by_name(name);
        assert!(call_id.is_some());
        builder.result(Reply {
            call_id,
            content: Some(text.into()),
            ..Reply::default()
        });
    }
    assert_eq!(builder.answer_by_name("f"), Some(json!("x")));
    assert_eq!(builder.answer_by_name("f"), None);
    let trace = builder.finish();
    let texts: Vec<_> = trace
        .results_by_call()
        .into_iter()
        .map(|one| one.map(|one| one.content().unwrap()[0]["text"].clone()))
        .collect();
    assert_eq!(
        texts[..3],
        [Some(json!("f1")), Some(json!("g")), Some(json!("f3"))]
    );
    assert_eq!(texts[3], None);
}

#[test]
fn null_is_absent() {
    let mut builder = TraceBuilder::new();
    builder.turn("assistant", Some(Value::Null));
    builder.call(Call {
        id: Some(Value::Null),
        name: "f".into(),
        caller: Some(Value::Null),
        ..Call::default()
    });
    builder.result(Reply {
        call_id: Some(Value::Null),
        content: Some(Value::Null),
        ..Reply::default()
    });
    let trace = builder.finish();
    let text = serde_json::to_string(&trace).unwrap();
    assert!(!text.contains("null"), "{text}");
    assert_eq!(mcptest_trace::trace::read(&text).unwrap(), [trace]);
}
