use super::*;

fn read(text: &str) -> Vec<Trace> {
    let input = Input::parse(text.as_bytes()).unwrap();
    let reader = crate::detect(&input).unwrap();
    assert_eq!(reader.format().name, "mcp-jsonrpc");
    reader.read(&input).unwrap()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn errors(trace: &Trace) -> Vec<Option<bool>> {
    let results = trace.results_by_call().into_iter();
    results
        .map(|one| one.and_then(|one| one.is_error))
        .collect()
}

fn request(id: u64, name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": name, "arguments": {"x": id}}})
}

#[test]
fn responses_are_joined_by_id_and_a_missing_one_stays_missing() {
    let traces = read(&lines(&[
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 0, "result": {"serverInfo": {"name": "calc"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a"}, {"name": "b"}]}}),
        json!([request(2, "a"), request(3, "b")]),
        request(4, "lost"),
        json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "no"}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [], "structuredContent": {"y": 1}}}),
        json!({"jsonrpc": "2.0", "id": 9, "result": {"content": []}}),
        request(2, "a"),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [], "isError": true}}),
    ]));
    let trace = &traces[0];
    let names: Vec<_> = trace.tool_calls.iter().map(|call| call.name()).collect();
    assert_eq!(names, ["a", "b", "lost", "a"]);
    assert_eq!(errors(trace), [Some(false), Some(true), None, Some(true)]);
    assert_eq!(trace.catalog().unwrap().len(), 2);
    assert_eq!(trace.extra("server_info"), Some(&json!({"name": "calc"})));
    assert_eq!(
        trace.tool_calls[1].extra("source"),
        Some(&json!("line 6 /1"))
    );
}

#[test]
fn a_call_that_asks_for_input_is_one_call() {
    let mut again = request(2, "a");
    again["params"]["requestState"] = json!("s");
    let traces = read(&lines(&[
        request(1, "a"),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required"}}),
        again,
        json!({"jsonrpc": "2.0", "id": 2, "result": {"resultType": "complete", "content": []}}),
    ]));
    assert_eq!(traces[0].tool_calls.len(), 1);
    assert_eq!(errors(&traces[0]), [Some(false)]);
}

#[test]
fn ids_of_both_sides_and_of_several_servers_are_kept_apart() {
    let meta = |dir: &str, server: &str, mut message: Value| {
        message["_meta"] = json!({"dir": dir, "server": server, "ts": "t"});
        message
    };
    let traces = read(&lines(&[
        meta("send", "s1", request(1, "a")),
        meta("send", "s2", request(1, "b")),
        meta(
            "recv",
            "s1",
            json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"}),
        ),
        meta(
            "send",
            "s1",
            json!({"jsonrpc": "2.0", "id": 1, "result": {"role": "assistant"}}),
        ),
        meta(
            "recv",
            "s2",
            json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}),
        ),
        meta(
            "recv",
            "s1",
            json!({"jsonrpc": "2.0", "id": 1, "result": {"isError": true}}),
        ),
    ]));
    let ids: Vec<_> = traces[0]
        .tool_calls
        .iter()
        .map(|call| call.full_id())
        .collect();
    assert_eq!(ids, ["s1.a", "s2.b"]);
    assert_eq!(errors(&traces[0]), [Some(true), Some(false)]);
}

#[test]
fn recordings_are_unwrapped() {
    let ok = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}});
    let vcr = json!({"format_version": "1.0.0", "metadata": {}, "session": {
        "initialize_request": {"jsonrpc": "2.0", "id": 0, "method": "initialize"},
        "interactions": [{"sequence": 0, "direction": "client_to_server",
            "request": request(1, "a"), "response": ok}]}});
    let recorder = json!({"version": "1.0", "metadata": {}, "interactions": [
        {"type": "jsonrpc_request", "request": request(1, "a"), "response": ok},
        {"type": "lifecycle", "request": null, "response": null}]});
    let debug = lines(&[
        json!({"start_time": "t", "server_info": "i", "messages": []}),
        json!({"timestamp": "t", "direction": "request", "message_type": "tool_call",
            "tool_name": "a", "server_name": "s", "message":
            {"method": "tools/call", "params": {"name": "a", "arguments": {"x": 1}}}}),
        json!({"timestamp": "t", "direction": "response", "message_type": "tool_call",
            "tool_name": "a", "server_name": "s", "message": {"content": []}}),
    ]);
    let snoop = |direction: &str, raw: Value| {
        json!({"session_id": "1", "server_label": "s", "seq": 1, "ts": "t",
            "direction": direction, "transport": "stdio", "raw": raw})
    };
    let snoop = lines(&[
        snoop("meta", json!({"command": ["x"]})),
        snoop("c2s", request(1, "a")),
        snoop("s2c", ok.clone()),
    ]);
    let debug = format!("# MCP Recording Session\n# Started: t\n{debug}");
    for (text, id) in [
        (vcr.to_string(), "a"),
        (recorder.to_string(), "a"),
        (debug, "s.a"),
        (snoop, "s.a"),
    ] {
        let traces = read(&text);
        assert_eq!(traces.len(), 1, "{text}");
        assert_eq!(traces[0].tool_calls.len(), 1, "{text}");
        assert_eq!(traces[0].tool_calls[0].full_id(), id, "{text}");
        assert_eq!(traces[0].tool_calls[0].args(), Some(&json!({"x": 1})));
        assert_eq!(errors(&traces[0]), [Some(false)], "{text}");
    }
}
