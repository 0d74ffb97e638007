//! Catalogs of real servers.

use mcptest_mock::{MockServer, load};
use serde_json::{Value, json};

use crate::{INITIALIZE, answer};

/// Unusual entries: unknown keys, a number that loses precision, an invalid schema, no schema, no
/// name, not an object, a duplicate name.
fn tools() -> Value {
    json!([
        {
            "x-first": 1, "name": "a", "inputSchema": {"type": "object", "required": ["q"]},
            "_meta": {"k": [1.0, 1e300]}, "icons": [],
        },
        {"name": "broken", "inputSchema": {"type": 7}},
        {"name": "bare"},
        {"description": "nameless"},
        17,
        {"name": "a", "inputSchema": {}},
    ])
}

#[test]
fn every_form_of_capture_is_served_unchanged() {
    let tools = tools();
    for file in [
        json!({"tools": tools}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools, "nextCursor": "x"}}),
        tools.clone(),
    ] {
        for name in ["real.json", "real.txt"] {
            let manifest = load(name, file.to_string().as_bytes()).expect("a capture");
            let server = MockServer::new(manifest);
            assert_eq!(server.tool_count(), 6);
            let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
            let replies = answer(&server, &[INITIALIZE, list]);
            assert_eq!(replies[0]["result"]["serverInfo"]["name"], "real");
            assert_eq!(
                replies[1]["result"].to_string(),
                json!({"tools": tools}).to_string()
            );
        }
    }
}

#[test]
fn captured_tools_answer_with_their_name_and_arguments() {
    let server =
        MockServer::new(load("x.json", tools().to_string().as_bytes()).expect("a capture"));
    let call = |name: &str, arguments: Value| {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                          "params": {"name": name, "arguments": arguments}});
        answer(&server, &[INITIALIZE, &line.to_string()])[1].clone()
    };
    let text = |reply: &Value| reply["result"]["content"][0]["text"].clone();
    assert_eq!(
        text(&call("a", json!({"q": "\"x\""}))),
        r#"a {"q":"\"x\""}"#
    );
    // The first of two tools with the same name is called; its schema is checked.
    assert_eq!(call("a", json!({}))["result"]["isError"], true);
    assert_eq!(text(&call("broken", json!({"n": 1}))), r#"broken {"n":1}"#);
    assert_eq!(text(&call("bare", json!({}))), "bare {}");
    assert_eq!(call("nameless", json!({}))["error"]["code"], -32602);
}

#[test]
fn an_empty_capture_still_lists() {
    let server = MockServer::new(load("x.json", b"{\"tools\": []}").expect("a capture"));
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let replies = answer(&server, &[INITIALIZE, list]);
    assert_eq!(replies[0]["result"]["capabilities"], json!({"tools": {}}));
    assert_eq!(replies[1]["result"], json!({"tools": []}));
}
