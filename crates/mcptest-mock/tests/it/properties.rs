//! Properties of any input.

use std::sync::LazyLock;

use mcptest_mock::{MockServer, Template};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::INITIALIZE;

static SERVER: LazyLock<MockServer> = LazyLock::new(|| crate::server("full.yml"));

/// Any JSON value, including strings that look like templates.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        any_string().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any_string(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_string() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[$]{0,4}[{]?(args)?[.\\[\"a-c0-9\\]]{0,6}[}]?",
        Just("a".to_owned()),
        Just("b".to_owned()),
    ]
}

fn any_method() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![
            "initialize",
            "ping",
            "server/discover",
            "tools/list",
            "tools/call",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "prompts/list",
            "prompts/get",
        ])
        .prop_map(Value::from),
        any_json(),
    ]
}

/// Parameters that sometimes pass the first checks.
fn any_params() -> impl Strategy<Value = Value> {
    let known = prop::sample::select(vec![
        "order",
        "greet",
        "echo",
        "review",
        "test://static",
        "2025-03-26",
        "2026-07-28",
    ]);
    let meta = prop_oneof![
        any_json(),
        Just(
            json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}})
        ),
    ];
    let params = (known, any_json(), meta).prop_map(|(known, arguments, meta)| {
        json!({
            "name": known, "uri": known, "protocolVersion": known,
            "arguments": arguments, "_meta": meta,
        })
    });
    prop_oneof![any_json(), params]
}

fn sessions(server: &MockServer) -> [mcptest_mock::Session; 2] {
    let mut initialized = server.session();
    server.handle_line(&mut initialized, INITIALIZE.as_bytes(), &mut Vec::new());
    [server.session(), initialized]
}

/// Every reply is one line of JSON with an id and either a result or an error.
fn replies(out: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(out).expect("UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines()
        .map(|line| {
            let reply: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(reply["jsonrpc"], "2.0");
            assert_ne!(reply["result"].is_object(), reply["error"].is_object());
            reply
        })
        .collect()
}

proptest! {
    #[test]
    fn any_bytes_get_at_most_one_reply(
        line in prop::collection::vec(
            any::<u8>().prop_filter("no newline", |b| *b != b'\n'),
            0..200,
        ),
    ) {
        for mut session in sessions(&SERVER) {
            let mut out = Vec::new();
            SERVER.handle_line(&mut session, &line, &mut out);
            prop_assert!(replies(&out).len() <= 1);
        }
    }

    #[test]
    fn a_request_gets_exactly_one_reply_with_its_id(
        id in prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ],
        method in any_method(),
        params in any_params(),
    ) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let line = message.to_string();
        for mut session in sessions(&SERVER) {
            let mut out = Vec::new();
            SERVER.handle_line(&mut session, line.as_bytes(), &mut out);
            let replies = replies(&out);
            prop_assert_eq!(replies.len(), 1);
            prop_assert_eq!(&replies[0]["id"], &id);
            // Repeated: the server has no state except the session's revision.
            if method != "initialize" {
                let mut again = Vec::new();
                SERVER.handle_line(&mut session, line.as_bytes(), &mut again);
                prop_assert_eq!(out, again);
            }
        }
    }

    #[test]
    fn notifications_are_never_answered(method in any::<String>(), params in any_params()) {
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        for mut session in sessions(&SERVER) {
            let mut out = Vec::new();
            SERVER.handle_line(&mut session, line.as_bytes(), &mut out);
            prop_assert!(out.is_empty());
        }
    }

    #[test]
    fn a_single_template_gives_the_argument_itself(value in any_json()) {
        let template = Template::compile(&json!({"x": ["${args.v}"]})).expect("a template");
        let mut out = Vec::new();
        template.render(&json!({"v": value}), &mut out);
        let rendered: Value = serde_json::from_slice(&out).expect("JSON");
        prop_assert_eq!(rendered, json!({"x": [value]}));
    }

    #[test]
    fn a_string_takes_any_argument_unchanged(text in any_string(), before in any::<String>()) {
        let literal = before.replace(['$', '{'], "");
        let source = json!(format!("{literal}-${{args.v}}-"));
        let template = Template::compile(&source).expect("a template");
        let mut out = Vec::new();
        template.render(&json!({"v": text}), &mut out);
        let rendered: Value = serde_json::from_slice(&out).expect("JSON");
        prop_assert_eq!(rendered, json!(format!("{literal}-{text}-")));
    }

    #[test]
    fn any_template_compiles_or_is_rejected_and_renders_json(
        template in any_json(),
        args in any_json(),
    ) {
        if let Ok(compiled) = Template::compile(&template) {
            for args in [args, Value::Object(Map::new())] {
                let mut out = Vec::new();
                compiled.render(&args, &mut out);
                prop_assert!(serde_json::from_slice::<Value>(&out).is_ok());
            }
        }
    }
}
