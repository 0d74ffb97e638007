//! Servers that require input before they answer, and tools with header annotations.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcptest_wire::{
    Answers, CallOptions, CallOutcome, Client, ConnectOptions, Elicitation, Lifecycle,
    ViolationKind, WireErrorKind,
};
use serde_json::{Value, json};

use crate::http_support::{RawServer, Seen, answer, json_answer, raw};
use crate::support::run;

fn options(answers: Answers) -> ConnectOptions {
    ConnectOptions {
        lifecycle: Lifecycle::Discover,
        handler: Arc::new(answers),
        ..ConnectOptions::default()
    }
}

fn accepting() -> Answers {
    Answers {
        roots: Some(vec!["file:///work".to_owned()]),
        elicitation: Some(Elicitation::Accept),
        sampling: None,
    }
}

fn respond(seen: &Seen, stream: &mut TcpStream, result: &Value) {
    let body = json!({"jsonrpc": "2.0", "id": seen.id(), "result": result});
    json_answer(stream, "200 OK", &[], &body);
}

fn discovered(seen: &Seen, stream: &mut TcpStream) {
    let result = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
    });
    respond(seen, stream, &result);
}

fn question(state: Option<&str>) -> Value {
    let mut result = json!({"resultType": "input_required", "inputRequests": {
        "sure": {"method": "elicitation/create", "params": {"requestedSchema": {"properties": {
            "ok": {"type": "boolean", "default": true},
        }}}},
    }});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

#[test]
fn a_call_that_requires_input_is_repeated_with_the_answers() {
    let rounds = AtomicUsize::new(0);
    let server = RawServer::start(move |seen, stream| match seen.rpc() {
        "server/discover" => discovered(seen, stream),
        _ => match rounds.fetch_add(1, Ordering::SeqCst) {
            0 => respond(seen, stream, &question(Some("opaque {\"state\"}"))),
            1 => respond(
                seen,
                stream,
                &json!({
                    "resultType": "input_required",
                    "inputRequests": {"roots": {"method": "roots/list"}},
                }),
            ),
            _ => respond(
                seen,
                stream,
                &json!({"resultType": "complete", "content": []}),
            ),
        },
    });
    run(async {
        let client = Client::connect_http("raw", &server.server(), &options(accepting()))
            .await
            .unwrap();
        let outcome = client
            .call_tool("book", &json!({"seat": 3}), &CallOptions::default())
            .await
            .unwrap();
        assert!(matches!(outcome, CallOutcome::Result(_)));
        client.shutdown().await;
    });
    let calls = server.calls("tools/call");
    let params: Vec<&Value> = calls.iter().map(|seen| &seen.body["params"]).collect();
    assert_eq!(params.len(), 3);
    assert_eq!(params[0].get("inputResponses"), None);
    assert_eq!(
        params[1]["inputResponses"],
        json!({"sure": {"action": "accept", "content": {"ok": true}}})
    );
    assert_eq!(params[1]["requestState"], "opaque {\"state\"}");
    // The input of the first round is not repeated.
    assert_eq!(
        params[2]["inputResponses"],
        json!({"roots": {"roots": [{"uri": "file:///work"}]}})
    );
    assert_eq!(params[2].get("requestState"), None);
    assert!(
        params
            .iter()
            .all(|params| params["arguments"] == json!({"seat": 3}))
    );
    assert_ne!(calls[0].id(), calls[1].id());
    assert_eq!(
        params[0]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({"roots": {}, "elicitation": {}})
    );
}

#[test]
fn endless_and_unanswerable_requests_for_input_fail_the_call() {
    let server = RawServer::start(|seen, stream| match seen.rpc() {
        "server/discover" => discovered(seen, stream),
        _ => respond(seen, stream, &question(None)),
    });
    run(async {
        for (answers, words, calls) in [
            (accepting(), "more than 10 times", 11),
            (
                Answers::default(),
                "the client does not offer elicitation/create",
                1,
            ),
        ] {
            let before = server.calls("tools/call").len();
            let client = Client::connect_http("raw", &server.server(), &options(answers))
                .await
                .unwrap();
            let error = client
                .call_tool("book", &json!({}), &CallOptions::default())
                .await
                .unwrap_err();
            assert_eq!(error.kind, WireErrorKind::Protocol);
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(server.calls("tools/call").len() - before, calls);
            client.shutdown().await;
        }
    });
}

#[test]
fn a_request_in_the_stream_of_a_call_is_answered_while_the_call_waits() {
    let waiting = std::sync::Mutex::new(None::<(TcpStream, Value)>);
    let server = RawServer::start(move |seen, stream| {
        if seen.rpc() == "tools/call" {
            raw(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
            );
            let schema = json!({"properties": {"name": {"type": "string", "default": "Ada"}}});
            let ask = json!({
                "jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create",
                "params": {"requestedSchema": schema},
            });
            // Before the question: its answer may arrive on another connection immediately.
            *waiting.lock().unwrap() = Some((stream.try_clone().unwrap(), seen.id()));
            raw(stream, &format!("data: {ask}\n\n"));
        } else if seen.body["id"] == "q-1" {
            answer(stream, "202 Accepted", &[], b"");
            let (mut stream, id) = waiting.lock().unwrap().take().unwrap();
            let result = json!({"content": [], "structuredContent": seen.body["result"]});
            let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
            raw(&mut stream, &format!("data: {reply}\n\n"));
        } else {
            answer(stream, "405 Method Not Allowed", &[], b"");
        }
    });
    run(async {
        let options = ConnectOptions {
            lifecycle: Lifecycle::Initialize,
            ..options(accepting())
        };
        let client = Client::connect_http("raw", &server.server(), &options)
            .await
            .unwrap();
        let outcome = client
            .call_tool("book", &json!({}), &CallOptions::default())
            .await
            .unwrap();
        let CallOutcome::Result(result) = outcome else {
            panic!("an error: {outcome:?}");
        };
        assert_eq!(
            result["structuredContent"],
            json!({"action": "accept", "content": {"name": "Ada"}})
        );
        client.shutdown().await;
    });
    assert_eq!(
        server.calls("initialize")[0].body["params"]["capabilities"],
        json!({"roots": {}, "elicitation": {}})
    );
}

/// Two tools, one with a good annotation and one with a bad one; calls without the header are
/// refused.
fn with_headers(seen: &Seen, stream: &mut TcpStream) {
    match seen.rpc() {
        "server/discover" => discovered(seen, stream),
        "tools/list" => {
            let tool = |name: &str, header: &str| {
                let region = json!({"type": "string", "x-mcp-header": header});
                let schema = json!({"type": "object", "properties": {"region": region}});
                json!({"name": name, "inputSchema": schema})
            };
            let tools = [tool("good", "Region"), tool("bad", "My Region")];
            respond(
                seen,
                stream,
                &json!({"resultType": "complete", "tools": tools}),
            );
        }
        _ if seen.header("mcp-param-region").is_some() => {
            respond(
                seen,
                stream,
                &json!({"resultType": "complete", "content": []}),
            );
        }
        _ => {
            let error = json!({"code": -32020, "message": "Header mismatch"});
            let body = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
            json_answer(stream, "400 Bad Request", &[], &body);
        }
    }
}

#[test]
fn headers_repeat_the_arguments_that_the_listing_annotates() {
    let server = RawServer::start(with_headers);
    run(async {
        let client = Client::connect_http("raw", &server.server(), &options(Answers::default()))
            .await
            .unwrap();
        // The tools were not listed yet: the refusal makes the client list them.
        let call = client
            .call_tool("good", &json!({"region": "eu"}), &CallOptions::default())
            .await
            .unwrap();
        assert!(matches!(call, CallOutcome::Result(_)), "{call:?}");
        assert_eq!(server.calls("tools/list").len(), 1);
        // A refusal that no header could have prevented is an answer, and not retried.
        let call = client
            .call_tool("good", &json!({}), &CallOptions::default())
            .await
            .unwrap();
        assert!(matches!(call, CallOutcome::Error(_)), "{call:?}");
        assert_eq!(server.calls("tools/list").len(), 1);

        let error = client
            .call_tool("bad", &json!({"region": "eu"}), &CallOptions::default())
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains(
                "`x-mcp-header` of property `region` has characters that a header name cannot have"
            ),
            "{error}"
        );
        let found = client.violations();
        assert!(
            found
                .iter()
                .any(|one| one.kind == ViolationKind::MalformedResult
                    && one.detail.contains("tool `bad`")),
            "{found:?}"
        );
        client.shutdown().await;
    });
    let sent: Vec<Option<String>> = server
        .calls("tools/call")
        .iter()
        .map(|seen| seen.header("mcp-param-region").map(str::to_owned))
        .collect();
    assert_eq!(sent, [None, Some("eu".to_owned()), None]);
}

#[test]
fn a_refusal_that_lists_the_requested_revision_is_retried_once() {
    let refusals = AtomicUsize::new(0);
    let server = RawServer::start(move |seen, stream| {
        if seen.rpc() == "server/discover" && refusals.fetch_add(1, Ordering::SeqCst) > 0 {
            return discovered(seen, stream);
        }
        let data = json!({"supported": ["2026-07-28"]});
        let error = json!({"code": -32022, "message": "Unsupported", "data": data});
        json_answer(
            stream,
            "400 Bad Request",
            &[],
            &json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}),
        );
    });
    run(async {
        let client = Client::connect_http("raw", &server.server(), &options(Answers::default()))
            .await
            .unwrap();
        client.shutdown().await;
    });
    assert_eq!(server.calls("server/discover").len(), 2);
}
