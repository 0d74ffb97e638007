use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(line: &str) -> ParsedLine {
    parse_line(line.as_bytes().to_vec())
}

fn kinds(line: &str) -> Vec<ViolationKind> {
    parse(line).violations.iter().map(|f| f.kind).collect()
}

fn only_payload(line: &str) -> Payload {
    match parse(line).messages.pop() {
        Some(Message::Reply { payload, .. }) => payload,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_three_kinds_of_messages_are_recognised() {
    let request = parse(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
    assert_eq!(
        request.messages,
        [Message::Request {
            id: Id::String("a".into()),
            method: "ping".into(),
            params: None
        }]
    );
    let notification = parse(r#"{"jsonrpc":"2.0","method":"n","params":[1]}"#);
    assert_eq!(
        notification.messages,
        [Message::Notification {
            method: "n".into(),
            params: Some(json!([1]))
        }]
    );
    let reply = parse(r#"{"jsonrpc":"2.0","id":3,"result":null}"#);
    assert_eq!(
        reply.messages,
        [Message::Reply {
            id: Id::Number(3),
            payload: Payload::Valid(CallOutcome::Result(Value::Null))
        }]
    );
    assert!(request.violations.is_empty());
    assert!(notification.violations.is_empty());
    assert!(reply.violations.is_empty());
}

#[test]
fn lines_that_are_not_messages_are_parsed() {
    use ViolationKind::*;
    for (line, expected) in [
        ("Loading...", vec![StdoutNoise]),
        ("{not json", vec![StdoutNoise]),
        ("", vec![BlankLine]),
        ("\r", vec![CrLf, BlankLine]),
        ("42", vec![NotJsonRpc]),
        ("[1,2]", vec![NotJsonRpc]),
        (r#"{"level":"error","error":"x"}"#, vec![NotJsonRpc]),
        (r#"{"method":"log","params":{}}"#, vec![BadJsonRpcVersion]),
        (r#"{"jsonrpc":"2.0","id":1,"res"#, vec![UnparsableJson]),
        (
            "\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\r",
            vec![CrLf, ByteOrderMark],
        ),
    ] {
        assert_eq!(kinds(line), expected, "{line:?}");
    }
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#,
        "[".repeat(1000)
    );
    assert_eq!(kinds(&deep), [TooDeep]);
    assert_eq!(parse_line(vec![0xff]).violations[0].kind, InvalidUtf8);
}

#[test]
fn invalid_replies_are_parsed() {
    for (members, kind) in [
        (r#""jsonrpc":"2.0""#, ViolationKind::NoResultOrError),
        (
            r#""jsonrpc":"2.0","result":1,"error":{"code":1,"message":""}"#,
            ViolationKind::ResultAndError,
        ),
        (r#""result":1"#, ViolationKind::BadJsonRpcVersion),
        (
            r#""jsonrpc":"1.0","result":1"#,
            ViolationKind::BadJsonRpcVersion,
        ),
        (
            r#""jsonrpc":"2.0","error":{"code":"x","message":""}"#,
            ViolationKind::MalformedError,
        ),
        (
            r#""jsonrpc":"2.0","error":{"code":1.5,"message":""}"#,
            ViolationKind::MalformedError,
        ),
        (
            r#""jsonrpc":"2.0","error":{"code":1}"#,
            ViolationKind::MalformedError,
        ),
    ] {
        let line = format!("{{\"id\":1,{members}}}");
        match only_payload(&line) {
            Payload::Invalid(found, _) => assert_eq!(found, kind, "{line}"),
            good => panic!("{line}: {good:?}"),
        }
    }
}

#[test]
fn a_null_error_with_a_result_is_a_result() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#;
    assert_eq!(
        only_payload(line),
        Payload::Valid(CallOutcome::Result(json!({})))
    );
    assert_eq!(kinds(line), [ViolationKind::ResultAndError]);
}

#[test]
fn results_are_kept_as_sent() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"z":1,"a":1.0,"n":null}}"#;
    let Payload::Valid(CallOutcome::Result(result)) = only_payload(line) else {
        panic!("not a result");
    };
    assert_eq!(result.to_string(), r#"{"z":1,"a":1.0,"n":null}"#);
    assert_eq!(parse(line).raw, line);
}

#[test]
fn the_messages_of_a_batch_are_parsed() {
    let line = r#"[{"jsonrpc":"2.0","method":"n"},7,{"jsonrpc":"2.0","id":1,"result":1}]"#;
    assert_eq!(parse(line).messages.len(), 2);
    assert_eq!(
        kinds(line),
        [ViolationKind::Batch, ViolationKind::NotJsonRpc]
    );
}

#[test]
fn the_request_of_a_damaged_reply_is_found() {
    let damage = |line: &str| {
        let violation = parse(line).violations.remove(0);
        (violation.damaged_reply, violation.request_id)
    };
    assert_eq!(
        damage(r#"{"jsonrpc":"2.0","id":12,"result":{"#),
        (true, Some(12))
    );
    assert_eq!(damage(r#"{"jsonrpc":"2.0","id":12"#), (true, None));
    assert_eq!(
        damage(r#"{"jsonrpc":"2.0","result":{"id":9,"#),
        (true, None)
    );
    assert_eq!(damage(r#"{"jsonrpc":"2.0","method":"x","#), (false, None));
}

/// The messages and violations of a line, from the thorough parser alone.
fn thorough(line: &str) -> (Vec<Message>, Vec<LineViolation>) {
    let (mut messages, mut violations) = (Vec::new(), Vec::new());
    let value = serde_json::from_str(line).unwrap();
    parse_message(value, &mut messages, &mut violations);
    (messages, violations)
}

#[test]
fn plain_replies_are_read_without_a_map() {
    let line = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"a\nb"}],"n":1.50}}"#;
    assert!(plain_reply(line).is_some());
    for other in [
        r#"["2.0",7,{}]"#,
        r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"id":8,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{},"more":1}"#,
        r#"{"jsonrpc":"2.0","id":7}"#,
    ] {
        assert_eq!(plain_reply(other), None, "{other}");
    }
}

proptest! {
    #[test]
    fn both_parsers_give_the_same(
        id in "(0|1|12|-1|1\\.0|18446744073709551615|18446744073709551616|\"1\"|null)",
        version in "(2\\.0|1\\.0|2\\\\u002e0)",
        payload in r#"("result":(null|1e2|\{\}|\{"a":1,"a":2\}),?){0,2}("error":null,)?"#,
    ) {
        let line = format!(r#"{{{payload}"jsonrpc":"{version}","id":{id}}}"#);
        prop_assume!(serde_json::from_str::<Value>(&line).is_ok());
        let parsed = parse(&line);
        prop_assert_eq!((parsed.messages, parsed.violations), thorough(&line));
    }

    #[test]
    fn never_panics_on_bytes(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        parse_line(line);
    }

    #[test]
    fn never_panics_on_almost_messages(
        line in r#"\{"jsonrpc":"2.0",("id":[0-9a"]{0,4},?)?("(result|error|method)":[{\[0-9"a]{0,3})?[}\]]{0,2}"#
    ) {
        let parsed = parse(&line);
        // Nothing is dropped: a line gives a message or a violation.
        prop_assert!(!parsed.messages.is_empty() || !parsed.violations.is_empty());
    }

    #[test]
    fn our_ids_round_trip(id in any::<u64>(), method in ".*") {
        let mut line = encode_call(Some(id), &method, &Params::Value(json!({"a": method})));
        prop_assert_eq!(line.pop(), Some(b'\n'));
        prop_assert!(!line.contains(&b'\n'));
        let parsed = parse_line(line);
        prop_assert!(parsed.violations.is_empty());
        let expected = Message::Request {
            id: Id::Number(id),
            method: method.clone(),
            params: Some(json!({"a": method})),
        };
        prop_assert_eq!(parsed.messages, vec![expected]);
    }

    #[test]
    fn ids_of_the_server_are_returned_unchanged(id in prop_oneof![
        any::<u64>().prop_map(|n| json!(n)),
        any::<i64>().prop_map(|n| json!(n)),
        ".*".prop_map(|s| json!(s)),
        any::<bool>().prop_map(|b| json!(b)),
    ]) {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        let Some(Message::Request { id: read_id, .. }) = parse(&line).messages.pop() else {
            panic!("not a request: {line}");
        };
        let reply = encode_reply(&read_id, Ok(json!({})));
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        prop_assert_eq!(&reply["id"], &id);
    }
}

#[test]
fn half_of_a_character_is_replaced() {
    let payload = only_payload(r#"{"jsonrpc":"2.0","id":1,"result":{"text":"cut \ud83d"}}"#);
    let wanted = json!({"text": "cut \u{fffd}"});
    assert_eq!(payload, Payload::Valid(CallOutcome::Result(wanted)));
}
