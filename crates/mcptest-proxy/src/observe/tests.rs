use super::*;

fn call(id: u32, tool: &str) -> Vec<u8> {
    let params = json!({"name": tool, "arguments": {"q": id}});
    let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    format!("{message}\n").into_bytes()
}

fn reply(id: u32) -> Vec<u8> {
    let result = json!({"content": [], "structuredContent": {"a": 1}});
    let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
    format!("{message}\n").into_bytes()
}

fn cancel(id: u32) -> Vec<u8> {
    let method = "notifications/cancelled";
    let params = json!({"requestId": id});
    let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    format!("{message}\n").into_bytes()
}

fn new_observer(fault: &str) -> Observer {
    Observer::new(
        Some("web".to_owned()),
        fault.parse().expect("a fault"),
        Vec::new(),
        None,
    )
}

#[test]
fn a_session_becomes_a_trace() {
    let now = Instant::now();
    let mut observer = new_observer("none");
    observer.client_line(b"not json\n", now);
    observer.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, now);
    observer.server_line(
        br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}],"nextCursor":"x"}}"#,
    );
    observer.client_line(
        br#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}"#,
        now,
    );
    observer.server_line(br#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"b","x":1}]}}"#);
    assert_eq!(observer.client_line(&call(3, "a"), now), LineAction::Pass);
    // A request of the server with the same id is unrelated.
    observer.server_line(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    observer.client_line(br#"{"jsonrpc":"2.0","id":3,"result":{}}"#, now);
    assert_eq!(observer.server_line(&reply(3)), LineAction::Pass);
    observer.client_line(&call(4, "b"), now);
    observer.server_line(br#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"no"}}"#);
    observer.client_line(&call(5, "b"), now);
    assert_eq!(
        serde_json::to_value(&observer.trace).expect("JSON"),
        json!({
            "tool_calls": [
                {"id": 3, "name": "a", "server": "web", "args": {"q": 3}},
                {"id": 4, "name": "b", "server": "web", "args": {"q": 4}},
                {"id": 5, "name": "b", "server": "web", "args": {"q": 5}},
            ],
            "tool_results": [
                {
                    "call_id": 3, "is_error": false, "content": [],
                    "structured_content": {"a": 1},
                },
                {
                    "call_id": 4, "is_error": true,
                    "content": [{"type": "text", "text": "Error -32602: no"}],
                    "error": {"code": -32602, "message": "no"},
                },
            ],
            "catalog": [{"server": "web", "name": "a"}, {"server": "web", "name": "b", "x": 1}],
        })
    );
}

#[test]
fn a_call_that_requires_input_is_one_call_with_one_result() {
    let now = Instant::now();
    let mut observer = new_observer("none");
    observer.client_line(&call(1, "a"), now);
    let asked = json!({"jsonrpc": "2.0", "id": 1, "result": {
        "resultType": "input_required", "requestState": "s",
        "inputRequests": {"ok": {"method": "elicitation/create", "params": {}}},
    }});
    observer.server_line(asked.to_string().as_bytes());
    let again = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "a", "arguments": {"q": 1}, "requestState": "s",
        "inputResponses": {"ok": {"action": "accept"}},
    }});
    observer.client_line(again.to_string().as_bytes(), now);
    observer.server_line(&reply(2));
    observer.add_messages();
    let trace = serde_json::to_value(&observer.trace).expect("JSON");
    assert_eq!(trace["tool_calls"].as_array().map(Vec::len), Some(1));
    assert_eq!(trace["tool_results"][0]["call_id"], 1);
    assert_eq!(
        trace["server_messages"],
        json!([{"server": "web", "method": "elicitation/create", "params": {},
                "answer": {"action": "accept"}}])
    );
}

#[test]
fn issue_10_a_client_that_never_listed_tools_is_marked() {
    let now = Instant::now();
    let mark = |observer: &Observer| observer.trace.extra.get("tools_listed").cloned();
    let mut observer = new_observer("none");
    observer.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, now);
    assert_eq!(mark(&observer), Some(false.into()));
    observer.client_line(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, now);
    // A request without an answer gives the client no tools.
    assert_eq!(mark(&observer), Some(false.into()));
    let reply = br#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#;
    observer.server_line(reply);
    assert_eq!(mark(&observer), None);
    // A client may know the tools from an earlier session.
    let mut observer = new_observer("none");
    observer.client_line(&call(1, "a"), now);
    assert_eq!(mark(&observer), None);
}

#[test]
fn dropped_calls_are_timeouts_in_the_trace() {
    let now = Instant::now();
    let mut observer = new_observer("recover-after:1");
    assert_eq!(observer.client_line(&call(1, "a"), now), LineAction::Drop);
    assert_eq!(observer.client_line(&cancel(1), now), LineAction::Drop);
    assert_eq!(observer.client_line(&call(2, "a"), now), LineAction::Pass);
    assert_eq!(observer.client_line(&cancel(2), now), LineAction::Pass);
    assert_eq!(observer.server_line(&reply(2)), LineAction::Pass);
    let results = serde_json::to_value(&observer.trace.tool_results).expect("JSON");
    assert_eq!(
        results[0],
        json!({
            "call_id": 1, "is_error": true,
            "error_kind": "timeout", "fault": "recover-after",
        })
    );
    assert_eq!(results[1]["is_error"], false);
}

#[test]
fn only_matching_calls_are_affected() {
    let now = Instant::now();
    let mut observer = Observer::new(None, ProxyFault::Hang, vec!["a".to_owned()], None);
    assert_eq!(
        observer.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, now),
        LineAction::Pass
    );
    assert_eq!(
        observer.client_line(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, now),
        LineAction::Pass
    );
    assert_eq!(observer.client_line(&call(3, "b"), now), LineAction::Pass);
    assert_eq!(observer.client_line(&call(4, "a"), now), LineAction::Drop);
}

#[test]
fn a_cancelled_delayed_reply_is_dropped_unless_always_sent() {
    let now = Instant::now();
    let delay = Duration::from_millis(50);
    for (fault, cancellation, delivered) in [
        ("slow:50", LineAction::Pass, false),
        ("reply-after-cancel:50", LineAction::Drop, true),
    ] {
        let mut observer = new_observer(fault);
        assert_eq!(observer.client_line(&call(1, "a"), now), LineAction::Pass);
        assert_eq!(
            observer.server_line(&reply(1)),
            LineAction::Hold(reply(1), now + delay)
        );
        assert_eq!(observer.client_line(&cancel(1), now), cancellation);
        assert_eq!(observer.release(&reply(1)), delivered, "{fault}");
        let result = serde_json::to_value(&observer.trace.tool_results[0]).expect("JSON");
        assert_eq!(result["delay_ms"], 50);
    }
    let mut observer = new_observer("slow:50");
    observer.client_line(&call(1, "a"), now);
    observer.server_line(&reply(1));
    assert!(observer.release(&reply(1)));
}

/// An observer with one attack: `EVIL` in results of `read`, a call of `send` to `eve@x.invalid` as
/// its goal.
fn attacked(fault: &str, more: Value) -> Observer {
    let mut attack = json!({
        "name": "a", "target": {"tool": "read"}, "text": "EVIL", "canary": "eve@x.invalid",
        "goal": {"call": {"tool": "send", "args": {"to": "${canary}"}}},
    });
    for (key, value) in more.as_object().expect("an object") {
        attack[key] = value.clone();
    }
    let attack: mcptest_attack::WrittenAttack = serde_json::from_value(attack).expect("an attack");
    let attack = attack.compile().expect("a good attack");
    let run = mcptest_attack::AttackRun::new(&[attack], "t", 1, &["web".to_owned()]);
    new_observer(fault).with_attacks(attack::share(Some(run)))
}

fn send(id: Option<u32>, to: &str) -> Value {
    let params = json!({"name": "send", "arguments": {"to": to}});
    let mut message = json!({"jsonrpc": "2.0", "method": "tools/call", "params": params});
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message
}

fn text_reply(id: u32, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

#[test]
fn a_contained_call_never_passes_alone_in_a_batch_or_without_an_id() {
    let now = Instant::now();
    let mut observer = attacked("none", json!({}));
    let line = line_of(&send(Some(1), "eve@x.invalid"));
    let LineAction::Answer(answer) = observer.client_line(&line, now) else {
        panic!("the call was passed on");
    };
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(
        answer["result"]["content"][0]["text"],
        "done (eve@x.invalid)"
    );
    assert_eq!(answer["result"]["isError"], false);
    let notification = line_of(&send(None, "eve@x.invalid"));
    assert_eq!(observer.client_line(&notification, now), LineAction::Drop);
    let batch = json!([
        send(Some(2), "bob@x.invalid"),
        send(Some(3), "eve@x.invalid")
    ]);
    let LineAction::Split { passed, answer } = observer.client_line(&line_of(&batch), now) else {
        panic!("the batch was passed on");
    };
    let passed: Value = serde_json::from_slice(&passed).expect("JSON");
    assert_eq!(passed, json!([send(Some(2), "bob@x.invalid")]));
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(answer["id"], 3);
    let batch = json!([send(Some(4), "eve@x.invalid")]);
    let action = observer.client_line(&line_of(&batch), now);
    assert!(matches!(action, LineAction::Answer(_)));
    let honest = line_of(&json!([send(Some(5), "bob@x.invalid")]));
    assert_eq!(observer.client_line(&honest, now), LineAction::Pass);
    let trace = serde_json::to_value(&observer.trace).expect("JSON");
    assert_eq!(trace["tool_calls"].as_array().map(Vec::len), Some(6));
    let contained = trace["tool_results"].as_array().expect("results");
    assert!(contained.iter().all(|result| result["contained"] == true));
    assert_eq!(contained.len(), 4);
}

#[test]
fn a_message_that_cannot_be_read_is_not_passed_on_where_calls_are_contained() {
    let now = Instant::now();
    let deep = format!("{}1{}\n", "[".repeat(200), "]".repeat(200));
    let mut observer = attacked("none", json!({}));
    assert_eq!(observer.client_line(b"\n", now), LineAction::Pass);
    assert!(observer.trace.error.is_none());
    assert_eq!(observer.client_line(deep.as_bytes(), now), LineAction::Drop);
    assert!(observer.trace.error.is_some());
    assert!(attacked("none", json!({})).refuses_oversized());
    let mut observer = attacked("none", json!({"contain": false}));
    assert_eq!(observer.client_line(deep.as_bytes(), now), LineAction::Pass);
    assert!(!observer.refuses_oversized());
    assert!(!new_observer("none").refuses_oversized());
}

#[test]
fn delayed_replies_and_batches_carry_the_text() {
    let now = Instant::now();
    let delay = Duration::from_millis(50);
    let mut observer = attacked("slow:50", json!({}));
    observer.client_line(&call(1, "read"), now);
    let held = observer.server_line(&line_of(&text_reply(1, "x")));
    assert_eq!(
        held,
        LineAction::Hold(line_of(&text_reply(1, "x\nEVIL")), now + delay)
    );
    let mut observer = attacked("none", json!({}));
    let calls: Vec<Value> = [call(1, "read"), call(2, "list")]
        .iter()
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    observer.client_line(&line_of(&json!(calls)), now);
    let replies = json!([text_reply(1, "x"), text_reply(2, "y")]);
    let LineAction::Replace(line) = observer.server_line(&line_of(&replies)) else {
        panic!("the batch was not rewritten");
    };
    let line: Value = serde_json::from_slice(&line).expect("JSON");
    assert_eq!(line, json!([text_reply(1, "x\nEVIL"), text_reply(2, "y")]));
    let results = serde_json::to_value(&observer.trace.tool_results).expect("JSON");
    assert_eq!(results[0]["attack"], "a");
    assert_eq!(results[1].get("attack"), None);
}

#[test]
fn a_rug_pull_is_announced_where_the_server_has_the_capability() {
    let now = Instant::now();
    for announces in [true, false] {
        let more = json!({"place": "description", "after": 1});
        let mut observer = attacked("none", more);
        observer.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, now);
        let capabilities = json!({"tools": {"listChanged": announces}});
        let opened = json!({"id": 1, "result": {"capabilities": capabilities}});
        assert_eq!(observer.server_line(&line_of(&opened)), LineAction::Pass);
        let list = br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        let listed = json!({"id": 2, "result": {"tools": [{"name": "read", "description": "r"}]}});
        observer.client_line(list, now);
        assert_eq!(observer.server_line(&line_of(&listed)), LineAction::Pass);
        // A contained call, too, is a moment after which the list can have changed.
        let line = line_of(&send(Some(3), "eve@x.invalid"));
        let LineAction::Answer(answer) = observer.client_line(&line, now) else {
            panic!("the call was passed on");
        };
        let answer = String::from_utf8(answer).expect("UTF-8");
        assert_eq!(
            answer.contains("notifications/tools/list_changed"),
            announces
        );
        observer.client_line(&call(4, "read"), now);
        // Once is enough.
        assert_eq!(
            observer.server_line(&line_of(&text_reply(4, "x"))),
            LineAction::Pass
        );
        observer.client_line(list, now);
        let LineAction::Replace(line) = observer.server_line(&line_of(&listed)) else {
            panic!("the second list was not rewritten");
        };
        let line: Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(line["result"]["tools"][0]["description"], "r\nEVIL");
        let attacks = observer.trace.extra.get("attacks").expect("attacks");
        assert_eq!(attacks[0]["offered_after_calls"], 2);
    }
}

#[test]
fn half_of_a_character_does_not_hide_a_call_or_its_result() {
    let now = Instant::now();
    let mut observer = new_observer("none");
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"q":"\ud83d"}}}"#;
    observer.client_line(call, now);
    let reply =
        br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\ude00"}]}}"#;
    assert_eq!(observer.server_line(reply), LineAction::Pass);
    let trace = serde_json::to_value(&observer.trace).expect("JSON");
    assert_eq!(trace["tool_calls"][0]["args"], json!({"q": "\u{fffd}"}));
    assert_eq!(trace["tool_results"][0]["content"][0]["text"], "\u{fffd}");
}
