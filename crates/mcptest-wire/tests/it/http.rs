//! Servers over streamable HTTP: a valid one, and invalid ones with one defect each.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use mcptest_wire::{
    CallOptions, CallOutcome, Client, ConnectOptions, HttpServer, Lifecycle, Revision,
    ViolationKind, WireError, WireErrorKind, WireLimits,
};
use serde_json::{Value, json};

use crate::http_support::{RawServer, Seen, answer, close, hang, json_answer, raw, stream_head};
use crate::support::{call, options, result, run, soon};

pub fn reply(seen: &Seen, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    json!({"jsonrpc": "2.0", "id": seen.id(), "result": {"content": content}})
}

async fn open(server: &RawServer) -> Client {
    let options = options(Lifecycle::Initialize);
    Client::connect_http("raw", &server.server(), &options)
        .await
        .unwrap()
}

/// One call to a server that answers it wrongly, and the error it gives.
fn wrong(handler: impl Fn(&Seen, &mut TcpStream) + Send + Sync + 'static) -> WireError {
    let server = RawServer::start(move |seen, stream| match seen.rpc() {
        "tools/call" => handler(seen, stream),
        _ => answer(stream, "405 Method Not Allowed", &[], b""),
    });
    run(async {
        let client = open(&server).await;
        let started = Instant::now();
        let error = soon(started, call(&client, "echo").await.unwrap_err());
        client.shutdown().await;
        error
    })
}

#[test]
fn json_answers_sessions_and_the_end_of_the_session() {
    let server = RawServer::start(|seen, stream| match seen.rpc() {
        "tools/list" => json_answer(
            stream,
            "200 OK",
            &[],
            &json!({"jsonrpc": "2.0", "id": seen.id(), "result": {
                "tools": [{"name": "echo", "x": 1}],
            }}),
        ),
        "tools/call" => json_answer(stream, "200 OK", &[], &reply(seen, "hi")),
        _ => answer(stream, "405 Method Not Allowed", &[], b""),
    });
    run(async {
        let client = open(&server).await;
        assert_eq!(client.server().revision, Revision::V2025_11_25);
        assert_eq!(
            client.list_tools().await.unwrap(),
            [json!({"name": "echo", "x": 1})]
        );
        assert_eq!(
            result(call(&client, "echo").await.unwrap())["content"][0]["text"],
            "hi"
        );
        assert_eq!(client.violations(), []);
        client.shutdown().await;
        assert!(!client.is_alive());
    });
    let seen = server.seen();
    let first = &seen[0];
    assert_eq!((first.rpc(), first.path.as_str()), ("initialize", "/mcp"));
    assert_eq!(
        first.header("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("mcp-session-id"), None);
    assert_eq!(first.header("mcp-protocol-version"), None);
    for later in &seen[1..] {
        assert_eq!(later.header("mcp-session-id"), Some("s-1"), "{later:?}");
        assert_eq!(
            later.header("mcp-protocol-version"),
            Some("2025-11-25"),
            "{later:?}"
        );
        assert_eq!(later.header("mcp-method"), None);
    }
    assert_eq!(seen.last().unwrap().method, "DELETE");
    assert!(
        seen.iter().any(|seen| seen.method == "GET"),
        "a stream of the server's own is asked for"
    );
}

#[test]
fn events_with_requests_of_the_server_in_between() {
    let server = RawServer::start(|seen, stream| match seen.rpc() {
        "tools/call" => {
            stream_head(stream);
            raw(
                stream,
                ": hello\n\nid: 1\ndata:\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\n\
                 data: \"method\":\"notifications/message\"}\n\n",
            );
            raw(
                stream,
                "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}\n\n",
            );
            raw(
                stream,
                "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\r\n\r\n",
            );
            raw(stream, "event: other\ndata: not for us\n\n");
            raw(stream, &format!("data: {}\n\n", reply(seen, "hi")));
            close(stream);
        }
        "" if seen.method == "POST" => answer(stream, "202 Accepted", &[], b""),
        _ => answer(stream, "405 Method Not Allowed", &[], b""),
    });
    run(async {
        let client = open(&server).await;
        result(call(&client, "echo").await.unwrap());
        let answers = || -> Vec<Value> {
            let seen = server.seen().into_iter();
            seen.filter(|seen| seen.method == "POST" && seen.rpc().is_empty())
                .map(|seen| seen.body)
                .collect()
        };
        let started = Instant::now();
        while answers().len() < 2 {
            soon(started, ());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut answers = answers();
        answers.sort_by_key(|answer| answer["id"] == 7);
        assert_eq!(
            answers[0],
            json!({"jsonrpc": "2.0", "id": "q", "result": {}})
        );
        assert_eq!(answers[1]["error"]["code"], -32601);
        let methods: Vec<String> = client
            .server_messages()
            .into_iter()
            .map(|message| message.method)
            .collect();
        assert_eq!(methods, ["notifications/message", "ping", "roots/list"]);
        assert_eq!(client.violations(), []);
        client.shutdown().await;
    });
}

#[test]
fn the_stream_of_a_server_is_read() {
    let server = RawServer::start(|seen, stream| match (seen.method.as_str(), seen.rpc()) {
        ("GET", _) => {
            stream_head(stream);
            raw(
                stream,
                "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
            );
            hang();
        }
        _ => json_answer(stream, "200 OK", &[], &reply(seen, "hi")),
    });
    run(async {
        let client = open(&server).await;
        let started = Instant::now();
        while client.server_messages().is_empty() {
            soon(started, ());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(
            client.server_messages()[0].method,
            "notifications/tools/list_changed"
        );
        client.shutdown().await;
        soon(started, ());
    });
}

#[test]
fn a_stream_that_ends_early_is_resumed_where_it_stopped() {
    let server = RawServer::start(|seen, stream| match (seen.method.as_str(), seen.rpc()) {
        ("POST", "tools/call") => {
            stream_head(stream);
            raw(stream, "id: 41\nretry: 10\ndata:\n\n");
            close(stream);
        }
        ("GET", _) if seen.header("last-event-id") == Some("41") => {
            stream_head(stream);
            let id = 2;
            raw(
                stream,
                &format!("id: 42\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n\n"),
            );
            close(stream);
        }
        _ => answer(stream, "405 Method Not Allowed", &[], b""),
    });
    run(async {
        let client = open(&server).await;
        assert_eq!(result(call(&client, "echo").await.unwrap()), json!({}));
        client.shutdown().await;
    });
}

fn stateless(seen: &Seen, stream: &mut TcpStream) {
    let result = match seen.rpc() {
        "server/discover" => {
            json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
            })
        }
        "tools/call" => json!({"resultType": "complete", "content": []}),
        other => {
            let error = json!({"code": -32601, "message": format!("no {other}")});
            let body = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
            return json_answer(stream, "404 Not Found", &[], &body);
        }
    };
    json_answer(
        stream,
        "200 OK",
        &[],
        &json!({"jsonrpc": "2.0", "id": seen.id(), "result": result}),
    );
}

#[test]
fn the_stateless_revision_repeats_method_and_name_in_headers() {
    let server = RawServer::start(stateless);
    run(async {
        let client = Client::connect_http("raw", &server.server(), &options(Lifecycle::Auto))
            .await
            .unwrap();
        assert_eq!(client.server().revision, Revision::V2026_07_28);
        result(call(&client, "grüße").await.unwrap());
        // An answer of the server, despite the unsuccessful status.
        let refused = client
            .request("nope/nope", None, Duration::from_secs(5))
            .await
            .unwrap();
        assert!(matches!(refused.outcome, CallOutcome::Error(error) if error.code == -32601));
        assert!(client.is_alive());
        client.shutdown().await;
    });
    let seen = server.seen();
    let names: Vec<_> = seen
        .iter()
        .map(|seen| (seen.header("mcp-method"), seen.header("mcp-name")))
        .collect();
    assert_eq!(
        names,
        [
            (Some("server/discover"), None),
            (Some("tools/call"), Some("=?base64?Z3LDvMOfZQ==?=")),
            (Some("nope/nope"), None)
        ]
    );
    for seen in seen {
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-session-id"), None);
        assert_eq!(seen.method, "POST");
    }
}

#[test]
fn a_stateless_call_is_cancelled_by_closing_its_stream() {
    let server = RawServer::start(|seen, stream| match seen.rpc() {
        "tools/call" => hang(),
        _ => stateless(seen, stream),
    });
    run(async {
        let client = Client::connect_http("raw", &server.server(), &options(Lifecycle::Discover))
            .await
            .unwrap();
        let short = CallOptions {
            timeout: Some(Duration::from_millis(100)),
            ..CallOptions::default()
        };
        let error = client
            .call_tool("echo", &json!({}), &short)
            .await
            .unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Timeout);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(server.calls("notifications/cancelled").is_empty());
        client.shutdown().await;
    });
}

#[test]
fn an_old_server_refuses_the_probe_and_is_initialized() {
    let server = RawServer::start(|seen, stream| match seen.rpc() {
        // As the TypeScript SDK does: an error without the id of a request.
        "server/discover" => json_answer(
            stream,
            "400 Bad Request",
            &[],
            &json!({"jsonrpc": "2.0", "id": null, "error": {
                "code": -32000, "message": "Bad Request: Server not initialized",
            }}),
        ),
        "tools/call" => json_answer(stream, "200 OK", &[], &reply(seen, "hi")),
        _ => answer(stream, "405 Method Not Allowed", &[], b""),
    });
    run(async {
        let client = Client::connect_http("raw", &server.server(), &options(Lifecycle::Auto))
            .await
            .unwrap();
        assert_eq!(client.server().revision, Revision::V2025_11_25);
        result(call(&client, "echo").await.unwrap());
        client.shutdown().await;
    });
}

#[test]
fn a_server_that_starts_late_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        RawServer::on(TcpListener::bind(address).unwrap(), |seen, stream| {
            json_answer(stream, "200 OK", &[], &reply(seen, "hi"));
        })
    });
    run(async {
        let server = HttpServer {
            url: format!("http://{address}/mcp"),
            ..HttpServer::default()
        };
        let client = Client::connect_http("late", &server, &options(Lifecycle::Initialize))
            .await
            .unwrap();
        result(call(&client, "echo").await.unwrap());
        client.shutdown().await;
    });
    later.join().unwrap();
}

#[test]
fn a_server_that_never_starts_is_named() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let server = HttpServer {
            url: format!("http://{address}/mcp?key=hidden"),
            ..HttpServer::default()
        };
        let options = ConnectOptions {
            connect_timeout: Duration::from_millis(200),
            ..ConnectOptions::default()
        };
        let error = Client::connect_http("gone", &server, &options)
            .await
            .unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Transport);
        assert_eq!(
            error.to_string(),
            format!(
                "server `gone`: transport error while connecting: \
                 nothing accepted a connection at http://{address}/mcp?… within 200ms"
            )
        );
    });
}

#[test]
fn invalid_addresses_are_rejected() {
    for (url, part) in [
        ("localhost:3000/mcp", "write it as http://"),
        ("ftp://127.0.0.1/", "the scheme `ftp` is not supported"),
        ("http://user:secret@127.0.0.1/", "Authorization header"),
        ("http:// /", "is not a valid URL"),
        ("", "is not a valid URL"),
    ] {
        let server = HttpServer {
            url: url.to_owned(),
            ..HttpServer::default()
        };
        let error = run(async {
            Client::connect_http("x", &server, &ConnectOptions::default())
                .await
                .unwrap_err()
        });
        assert_eq!(error.kind, WireErrorKind::Spawn);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn statuses_keep_their_number_and_the_beginning_of_the_body() {
    let error =
        wrong(|_, stream| answer(stream, "500 Internal Server Error", &[], b"boom \x1b[31m"));
    assert_eq!(error.kind, WireErrorKind::Protocol);
    assert!(
        error
            .detail
            .contains(r"HTTP 500 Internal Server Error: boom \u{1b}[31m"),
        "{error}"
    );

    let error = wrong(|_, stream| {
        answer(
            stream,
            "401 Unauthorized",
            &[("www-authenticate", "Bearer realm=x")],
            b"",
        )
    });
    assert_eq!(error.kind, WireErrorKind::Auth);
    assert!(
        error
            .detail
            .contains("HTTP 401 Unauthorized; it requires: Bearer realm=x"),
        "{error}"
    );

    let error = wrong(|_, stream| answer(stream, "429 Too Many Requests", &[], b""));
    assert_eq!(error.kind, WireErrorKind::RateLimit);

    let error = wrong(|_, stream| answer(stream, "202 Accepted", &[], b""));
    assert!(
        error.detail.contains("HTTP 202 Accepted without a reply"),
        "{error}"
    );
}

#[test]
fn a_lost_session_closes_the_connection() {
    let server =
        RawServer::start(|_, stream| answer(stream, "404 Not Found", &[], b"no such session"));
    run(async {
        let client = open(&server).await;
        let error = call(&client, "echo").await.unwrap_err();
        assert!(
            error.detail.contains("no longer knows the session")
                && error.detail.contains("nor the one opened in its place"),
            "{error}"
        );
        assert_eq!(error.kind, WireErrorKind::Transport);
        assert!(!client.is_alive());
        client.shutdown().await;
    });
}

#[test]
fn issue_14_a_lost_session_is_opened_again_once() {
    // Forgets the session before the first call, and keeps the next one.
    let forgotten = std::sync::atomic::AtomicBool::new(false);
    let server = RawServer::start(move |seen, stream| {
        use std::sync::atomic::Ordering;
        if seen.rpc() == "tools/call" && !forgotten.swap(true, Ordering::Relaxed) {
            let body = json!({"jsonrpc": "2.0", "id": seen.id(),
                "error": {"code": -32001, "message": "Session not found"}});
            return json_answer(stream, "404 Not Found", &[], &body);
        }
        let result = json!({"content": [{"type": "text", "text": "here"}]});
        let body = json!({"jsonrpc": "2.0", "id": seen.id(), "result": result});
        json_answer(stream, "200 OK", &[], &body);
    });
    run(async {
        let client = open(&server).await;
        let outcome = call(&client, "echo").await.unwrap();
        assert!(format!("{outcome:?}").contains("here"), "{outcome:?}");
        assert!(client.is_alive());
        client.shutdown().await;
    });
    assert_eq!(server.calls("initialize").len(), 2);
    assert_eq!(server.calls("notifications/initialized").len(), 2);
    assert_eq!(server.calls("tools/call").len(), 2);
}

#[test]
fn credentials_are_never_shown() {
    let server = RawServer::start(|seen, stream| {
        let echoed = seen.header("authorization").unwrap_or_default().to_owned();
        answer(
            stream,
            "403 Forbidden",
            &[],
            format!("bad {echoed}").as_bytes(),
        );
    });
    run(async {
        let http = HttpServer {
            headers: vec![("Authorization".into(), "Bearer tok-123456".into())],
            ..server.server()
        };
        assert!(!format!("{http:?}").contains("tok-123456"));
        let client = Client::connect_http("raw", &http, &options(Lifecycle::Initialize))
            .await
            .unwrap();
        let error = call(&client, "echo").await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Auth);
        assert!(error.detail.contains("bad ***"), "{error}");
        client.notify("notifications/x", None);
        let started = Instant::now();
        while client.violations().is_empty() {
            soon(started, ());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let all = format!("{error:?}{error}{:?}{client:?}", client.violations());
        assert!(!all.contains("tok-123456"), "{all}");
        client.shutdown().await;
    });
    assert_eq!(
        server.seen()[0].header("authorization"),
        Some("Bearer tok-123456")
    );
}

#[test]
fn bodies_without_a_reply_are_errors() {
    let html: &[(&str, &str)] = &[("content-type", "text/html")];
    let error = wrong(move |_, stream| answer(stream, "200 OK", html, b"<html>login</html>"));
    assert_eq!(error.kind, WireErrorKind::Protocol);
    assert!(error.detail.contains("content type `text/html`"), "{error}");
    assert!(error.detail.contains("<html>login"), "{error}");

    let error = wrong(|_, stream| answer(stream, "200 OK", &[], b"{}"));
    assert!(error.detail.contains("no content type"), "{error}");

    let json: &[(&str, &str)] = &[("content-type", "application/json")];
    let error = wrong(move |_, stream| {
        answer(
            stream,
            "200 OK",
            json,
            b"{\"jsonrpc\":\"2.0\",\"id\":2,\"resu",
        )
    });
    assert!(error.detail.contains("without a reply"), "{error}");

    let error = wrong(move |_, stream| answer(stream, "200 OK", json, b""));
    assert!(error.detail.contains("the body is empty"), "{error}");

    let error = wrong(|_, stream| {
        json_answer(
            stream,
            "200 OK",
            &[],
            &json!({"jsonrpc": "2.0", "id": 999, "result": {}}),
        )
    });
    assert!(error.detail.contains("unknown id"), "{error}");

    let error = wrong(|seen, stream| {
        let id = seen.id().to_string();
        json_answer(
            stream,
            "200 OK",
            &[],
            &json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        );
    });
    assert!(error.detail.contains("wrong type"), "{error}");
}

#[test]
fn interrupted_streams_are_errors() {
    let error = wrong(|seen, stream| {
        stream_head(stream);
        let text = format!("data: {}", reply(seen, "hi"));
        raw(stream, &text[..text.len() - 5]);
        close(stream);
    });
    assert_eq!(error.kind, WireErrorKind::Protocol);
    assert!(
        error
            .detail
            .contains("ended in the middle of an event without the reply"),
        "{error}"
    );

    let error = wrong(|_, stream| {
        raw(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
             content-length: 500\r\n\r\n{\"jsonrpc\"",
        );
        close(stream);
    });
    assert_eq!(error.kind, WireErrorKind::Transport);
    assert!(
        error.detail.contains("was interrupted after 10 bytes"),
        "{error}"
    );

    let error = wrong(|_, stream| close(stream));
    assert_eq!(error.kind, WireErrorKind::Transport);
    assert!(
        error.detail.contains("was lost before a response arrived"),
        "{error}"
    );

    let error = wrong(|_, stream| {
        raw(stream, "SSH-2.0-OpenSSH_9.6\r\n\r\n");
        close(stream);
    });
    assert_eq!(error.kind, WireErrorKind::Transport);
}

#[test]
fn long_bodies_and_long_events_are_rejected() {
    let big = "x".repeat(20_000);
    let limits = WireLimits {
        max_line_bytes: 10_000,
        ..WireLimits::default()
    };
    let body = big.clone();
    let server = RawServer::start(
        move |seen, stream| match seen.body["params"]["name"].as_str() {
            Some("json") => json_answer(stream, "200 OK", &[], &reply(seen, &body)),
            Some("events") => {
                stream_head(stream);
                raw(stream, &format!("data: {}\n\n", reply(seen, &body)));
                hang();
            }
            Some(_) => json_answer(stream, "200 OK", &[], &reply(seen, "short")),
            None => answer(stream, "405 Method Not Allowed", &[], b""),
        },
    );
    run(async {
        let options = ConnectOptions {
            limits,
            ..options(Lifecycle::Initialize)
        };
        let client = Client::connect_http("raw", &server.server(), &options)
            .await
            .unwrap();
        for tool in ["json", "events"] {
            let error = call(&client, tool).await.unwrap_err();
            assert!(error.detail.contains("more than 10000 bytes"), "{error}");
        }
        // Other calls are not affected.
        result(call(&client, "fine").await.unwrap());
        client.shutdown().await;
    });
}

#[test]
fn a_timeout_cancels_the_call_at_the_server() {
    let server = RawServer::start(|seen, stream| match seen.rpc() {
        "tools/call" if seen.body["params"]["name"] == "hang" => hang(),
        "tools/call" => json_answer(stream, "200 OK", &[], &reply(seen, "hi")),
        "notifications/cancelled" => answer(stream, "202 Accepted", &[], b""),
        _ => answer(stream, "405 Method Not Allowed", &[], b""),
    });
    run(async {
        let client = open(&server).await;
        let short = CallOptions {
            timeout: Some(Duration::from_millis(100)),
            ..CallOptions::default()
        };
        let error = client
            .call_tool("hang", &json!({}), &short)
            .await
            .unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Timeout);
        assert!(error.detail.contains("no reply within 100ms"), "{error}");
        result(call(&client, "fine").await.unwrap());
        let started = Instant::now();
        while server.calls("notifications/cancelled").is_empty() {
            soon(started, ());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(
            server.calls("notifications/cancelled")[0].body["params"]["requestId"],
            2
        );
        client.shutdown().await;
        soon(started, ());
    });
}

#[test]
fn redirects_stay_on_the_host() {
    let server = RawServer::start(|seen, stream| match (seen.rpc(), seen.path.as_str()) {
        ("tools/call", "/mcp") => answer(
            stream,
            "307 Temporary Redirect",
            &[("location", "/other?x=1")],
            b"",
        ),
        ("tools/call", "/other?x=1") => json_answer(stream, "200 OK", &[], &reply(seen, "moved")),
        _ => answer(stream, "405 Method Not Allowed", &[], b""),
    });
    run(async {
        let client = open(&server).await;
        assert_eq!(
            result(call(&client, "echo").await.unwrap())["content"][0]["text"],
            "moved"
        );
        client.shutdown().await;
    });
    for (status, target, part) in [
        (
            "307 Temporary Redirect",
            "http://127.0.0.1:9/mcp",
            "another host",
        ),
        (
            "308 Permanent Redirect",
            "//127.0.0.1:9/mcp",
            "another host",
        ),
        ("302 Found", "/elsewhere", "would lose the message"),
        ("307 Temporary Redirect", "/mcp", "more than 3 redirects"),
    ] {
        let error = wrong(move |_, stream| answer(stream, status, &[("location", target)], b""));
        assert_eq!(error.kind, WireErrorKind::Protocol);
        assert!(error.detail.contains(part), "{error}");
    }
}

#[test]
fn a_free_connection_closed_by_the_server_is_replaced() {
    let server = RawServer::start(|seen, stream| {
        json_answer(stream, "200 OK", &[], &reply(seen, "hi"));
        close(stream);
    });
    run(async {
        let client = open(&server).await;
        for _ in 0..5 {
            result(call(&client, "echo").await.unwrap());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        client.shutdown().await;
    });
}

#[test]
fn answers_to_notifications_are_recorded() {
    let server = RawServer::start(|seen, stream| match seen.rpc() {
        "notifications/odd" => answer(stream, "200 OK", &[], b"thanks"),
        _ => json_answer(stream, "200 OK", &[], &reply(seen, "hi")),
    });
    run(async {
        let client = open(&server).await;
        client.notify("notifications/odd", None);
        let started = Instant::now();
        while !client
            .violations()
            .iter()
            .any(|violation| violation.text == "thanks")
        {
            soon(started, ());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(
            client
                .violations()
                .iter()
                .all(|violation| violation.kind == ViolationKind::Http)
        );
        client.shutdown().await;
    });
}
