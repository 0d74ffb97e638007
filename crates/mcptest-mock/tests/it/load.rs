//! Loading of manifest files.

use mcptest_mock::{MockServer, load, manifest_schema};
use serde_json::{Value, json};

use crate::{INITIALIZE, answer, server};

/// The line, column and message of every problem.
fn problems(text: &str) -> Vec<(usize, usize, String)> {
    let diagnostics = load("servers/catalog.yml", text.as_bytes()).expect_err("a bad manifest");
    let problems = diagnostics.0.iter().map(|diagnostic| {
        let (file, position) = diagnostic.location();
        assert_eq!(file, Some("servers/catalog.yml"));
        let (line, column) = position.unwrap_or_default();
        (line, column, diagnostic.message.clone())
    });
    problems.collect()
}

#[test]
fn the_documented_manifest_loads() {
    let server = server("catalog.yml");
    assert_eq!(server.tool_count(), 2);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_products","arguments":{"query":"notebook"}}}"#;
    let replies = answer(&server, &[INITIALIZE, call]);
    assert_eq!(
        replies[1]["result"],
        json!({"content": [{"type": "text", "text": "Products matching notebook: sku-1, sku-2."}]})
    );
}

#[test]
fn a_manifest_may_be_json() {
    let text = r#"{"mock_server": {"name": "j", "tools": [{"name": "t", "response": "hi"}]}}"#;
    for name in ["m.json", "m.yml"] {
        let server = MockServer::new(load(name, text.as_bytes()).expect("a manifest"));
        assert_eq!(server.tool_count(), 1);
    }
}

#[test]
fn only_what_is_declared_is_advertised() {
    let server = MockServer::new(load("m.yml", b"mock_server: {name: empty}").expect("a manifest"));
    let mut lines = vec![INITIALIZE.to_owned()];
    for method in [
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
    ] {
        lines.push(json!({"jsonrpc": "2.0", "id": method, "method": method}).to_string());
    }
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let replies = answer(&server, &lines);
    assert_eq!(replies[0]["result"]["capabilities"], json!({}));
    assert_eq!(
        replies[0]["result"]["serverInfo"],
        json!({"name": "empty", "version": "0.0.0"})
    );
    assert_eq!(replies.len(), 8);
    for reply in &replies[1..] {
        assert_eq!(reply["error"]["code"], -32601, "{reply}");
    }
}

#[test]
fn unknown_keys_and_wrong_shapes_are_reported_with_their_position() {
    let found = problems(
        "mock_server:\n  name: x\n  tols: []\n  tools:\n    - name: a\n\
         \x20     respons: hi\n    - response: 7\n  version: 1.0\n",
    );
    let positions: Vec<_> = found
        .iter()
        .map(|(line, column, _)| (*line, *column))
        .collect();
    for position in [(3, 3), (6, 7), (7, 17), (8, 12)] {
        assert!(positions.contains(&position), "{position:?} in {found:#?}");
    }
}

#[test]
fn invalid_content_is_reported_with_its_position() {
    let text = r#"mock_server:
  name: x
  tools:
    - name: a
      inputSchema: { type: object, properties: { q: { type: strin } } }
      response: "${query}"
    - name: a
      input_schema: { required: 7 }
      response:
        content:
          - { type: text, text: "${args.x" }
          - { type: image, data: QQ== }
        structuredContent: { deep: ["${args[x]}"] }
    - name: b
      response: {}
  resources:
    - { uri: "test://a", text: x }
    - { uri: "test://a", blob: "!" }
    - { uri: "test://b" }
    - { uri: "test://c", text: x, blob: QQ== }
  prompts:
    - { name: p, messages: [{ role: user, content: "${topic}" }] }
    - { name: p, messages: [] }
"#;
    let found = problems(text);
    let expected = [
        (5, "not a valid JSON Schema"),
        (6, "write `${args.query}`"),
        (8, "not a valid JSON Schema"),
        (11, "the closing `}` is missing"),
        (12, "needs `mimeType`"),
        (13, "a number or a key in quotes"),
        (15, "an empty response"),
        (18, "not base64"),
        (19, "needs `text`"),
        (20, "not both"),
        (22, "write `${args.topic}`"),
        (7, "`a` is used twice"),
        (18, "`test://a` is used twice"),
        (23, "`p` is used twice"),
    ];
    for (line, part) in expected {
        let hit = found
            .iter()
            .any(|(at, _, message)| *at == line && message.contains(part));
        assert!(hit, "line {line}: {part:?} in {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn invalid_json_is_reported_with_its_position() {
    let error = load("x.json", b"{\n  \"tools\": [,]\n}").expect_err("invalid JSON");
    assert_eq!(error.0[0].location(), (Some("x.json"), Some((2, 13))));
    assert_eq!(error.0[0].message, "not valid JSON: expected value");
    for odd in ["7", "{}", "{\"tools\": 7}", "{\"result\": {}}"] {
        let error = load("x.json", odd.as_bytes()).expect_err("no catalog");
        assert!(error.0[0].message.contains("neither"), "{error}");
    }
    assert!(load("x.json", b"[\"\xff\"]").is_err());
    assert!(load("x.yml", b"").is_err());
}

#[test]
fn the_schema_accepts_the_examples_and_rejects_unknown_keys() {
    let validator = jsonschema::validator_for(&manifest_schema()).expect("a valid schema");
    let good: Value = json!({"mock_server": {"name": "x", "tools": [
        {"name": "t", "inputSchema": {}, "response": "hi"},
        {"name": "u", "response": {
            "content": ["a", {"type": "text", "text": "b"}], "is_error": true,
        }},
    ]}});
    assert!(validator.is_valid(&good));
    let bad = json!({"mock_server": {"name": "x", "tools": [{"name": "t", "respons": "hi"}]}});
    assert!(!validator.is_valid(&bad));
}
