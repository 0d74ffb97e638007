use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(line: &str) -> Classified {
    classify(line.as_bytes().to_vec())
}

fn kinds(line: &str) -> Vec<ViolationKind> {
    read(line).findings.iter().map(|f| f.kind).collect()
}

fn only_payload(line: &str) -> Payload {
    match read(line).messages.pop() {
        Some(Message::Reply { payload, .. }) => payload,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn tells_the_three_messages_apart() {
    let request = read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
    assert_eq!(
        request.messages,
        [Message::Request {
            id: Id::Text("a".into()),
            method: "ping".into(),
            params: None
        }]
    );
    let notification = read(r#"{"jsonrpc":"2.0","method":"n","params":[1]}"#);
    assert_eq!(
        notification.messages,
        [Message::Notification {
            method: "n".into(),
            params: Some(json!([1]))
        }]
    );
    let reply = read(r#"{"jsonrpc":"2.0","id":3,"result":null}"#);
    assert_eq!(
        reply.messages,
        [Message::Reply {
            id: Id::Number(3),
            payload: Payload::Good(CallOutcome::Result(Value::Null))
        }]
    );
    assert!(request.findings.is_empty());
    assert!(notification.findings.is_empty());
    assert!(reply.findings.is_empty());
}

#[test]
fn names_noise_for_what_it_is() {
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
    assert_eq!(classify(vec![0xff]).findings[0].kind, InvalidUtf8);
}

#[test]
fn names_what_breaks_a_reply() {
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
            Payload::Broken(found, _) => assert_eq!(found, kind, "{line}"),
            good => panic!("{line}: {good:?}"),
        }
    }
}

#[test]
fn takes_a_null_error_beside_a_result_as_a_result() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#;
    assert_eq!(
        only_payload(line),
        Payload::Good(CallOutcome::Result(json!({})))
    );
    assert_eq!(kinds(line), [ViolationKind::ResultAndError]);
}

#[test]
fn keeps_results_as_sent() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"z":1,"a":1.0,"n":null}}"#;
    let Payload::Good(CallOutcome::Result(result)) = only_payload(line) else {
        panic!("not a result");
    };
    assert_eq!(result.to_string(), r#"{"z":1,"a":1.0,"n":null}"#);
    assert_eq!(read(line).raw, line);
}

#[test]
fn reads_the_messages_of_a_batch() {
    let line = r#"[{"jsonrpc":"2.0","method":"n"},7,{"jsonrpc":"2.0","id":1,"result":1}]"#;
    assert_eq!(read(line).messages.len(), 2);
    assert_eq!(
        kinds(line),
        [ViolationKind::Batch, ViolationKind::NotJsonRpc]
    );
}

#[test]
fn finds_whom_a_damaged_reply_was_for() {
    let about = |line: &str| {
        let finding = read(line).findings.remove(0);
        (finding.damaged_reply, finding.about)
    };
    assert_eq!(
        about(r#"{"jsonrpc":"2.0","id":12,"result":{"#),
        (true, Some(12))
    );
    assert_eq!(about(r#"{"jsonrpc":"2.0","id":12"#), (true, None));
    assert_eq!(about(r#"{"jsonrpc":"2.0","result":{"id":9,"#), (true, None));
    assert_eq!(about(r#"{"jsonrpc":"2.0","method":"x","#), (false, None));
}

proptest! {
    #[test]
    fn never_panics_on_bytes(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        classify(line);
    }

    #[test]
    fn never_panics_on_almost_messages(
        line in r#"\{"jsonrpc":"2.0",("id":[0-9a"]{0,4},?)?("(result|error|method)":[{\[0-9"a]{0,3})?[}\]]{0,2}"#
    ) {
        let classified = read(&line);
        // Nothing is dropped: a line gives a message or a finding.
        prop_assert!(!classified.messages.is_empty() || !classified.findings.is_empty());
    }

    #[test]
    fn our_ids_round_trip(id in any::<u64>(), method in ".*") {
        let mut line = encode_call(Some(id), &method, Some(json!({"a": method})));
        prop_assert_eq!(line.pop(), Some(b'\n'));
        prop_assert!(!line.contains(&b'\n'));
        let classified = classify(line);
        prop_assert!(classified.findings.is_empty());
        let expected = Message::Request {
            id: Id::Number(id),
            method: method.clone(),
            params: Some(json!({"a": method})),
        };
        prop_assert_eq!(classified.messages, vec![expected]);
    }

    #[test]
    fn foreign_ids_go_back_as_they_came(id in prop_oneof![
        any::<u64>().prop_map(|n| json!(n)),
        any::<i64>().prop_map(|n| json!(n)),
        ".*".prop_map(|s| json!(s)),
        any::<bool>().prop_map(|b| json!(b)),
    ]) {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        let Some(Message::Request { id: read_id, .. }) = read(&line).messages.pop() else {
            panic!("not a request: {line}");
        };
        let reply = encode_reply(&read_id, Ok(json!({})));
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        prop_assert_eq!(&reply["id"], &id);
    }
}
