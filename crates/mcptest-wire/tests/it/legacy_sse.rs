//! HTTP+SSE, the transport of revision 2024-11-05.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcptest_wire::{
    Client, ConnectOptions, HttpServer, HttpTransport, Lifecycle, WireError, WireErrorKind,
};
use serde_json::{Value, json};

use crate::http::reply;
use crate::http_support::{RawServer, Seen, answer, close, hang, initialized, raw, stream_head};
use crate::support::{call, options, result, run};

/// The open event stream.
type Stream = Arc<Mutex<Option<TcpStream>>>;

/// A server whose stream begins with this text. `post` may answer a message itself.
fn legacy(
    first: impl Fn() -> String + Send + Sync + 'static,
    post: impl Fn(&Seen, &mut TcpStream, &Stream) -> bool + Send + Sync + 'static,
) -> RawServer {
    let open: Stream = Arc::default();
    RawServer::bare(
        move |seen, stream| match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", "/mcp") => {
                stream_head(stream);
                raw(stream, &first());
                *open.lock().unwrap() = Some(stream.try_clone().unwrap());
                hang();
            }
            ("POST", "/message?session=7") => {
                if post(seen, stream, &open) {
                    return;
                }
                answer(stream, "202 Accepted", &[], b"Accepted");
                match seen.rpc() {
                    "initialize" => send(&open, &initialized(seen)),
                    "tools/call" => send(&open, &reply(seen, "hi")),
                    _ => {}
                }
            }
            _ => answer(stream, "405 Method Not Allowed", &[], b"Method Not Allowed"),
        },
    )
}

fn send(open: &Stream, message: &Value) {
    let mut open = open.lock().unwrap();
    let stream = open.as_mut().unwrap();
    let _ = write!(stream, "event: message\ndata: {message}\n\n");
}

fn endpoint() -> String {
    "event: endpoint\ndata: /message?session=7\n\n".to_owned()
}

fn with(raw: &RawServer, transport: HttpTransport) -> HttpServer {
    HttpServer {
        transport,
        ..raw.server()
    }
}

async fn connect(raw: &RawServer, transport: HttpTransport) -> Result<Client, WireError> {
    Client::connect_http("old", &with(raw, transport), &options(Lifecycle::Auto)).await
}

#[test]
fn the_older_transport_is_found() {
    let raw = legacy(endpoint, |_, _, _| false);
    run(async {
        let client = connect(&raw, HttpTransport::Auto).await.unwrap();
        assert!(client.server().legacy_sse);
        let outcome = call(&client, "echo").await.unwrap();
        assert_eq!(result(outcome)["content"][0]["text"], "hi");
        assert!(client.is_alive());
        client.shutdown().await;
    });
    // The probe, `initialize`, the stream, and everything else over the older transport.
    let seen = raw.seen();
    let first: Vec<_> = seen
        .iter()
        .take(3)
        .map(|seen| seen.method.as_str())
        .collect();
    assert_eq!(first, ["POST", "POST", "GET"]);
    assert!(
        seen[3..]
            .iter()
            .all(|seen| seen.path == "/message?session=7")
    );
    assert_eq!(raw.calls("notifications/initialized").len(), 1);
}

#[test]
fn the_older_transport_can_be_asked_for() {
    let raw = legacy(endpoint, |_, _, _| false);
    run(async {
        let client = connect(&raw, HttpTransport::Sse).await.unwrap();
        result(call(&client, "echo").await.unwrap());
        // Its stream is open, so there is nothing to wait for.
        let listening = client.wait_until_listening();
        let listening = tokio::time::timeout(Duration::ZERO, listening).await;
        assert!(listening.is_ok());
        client.shutdown().await;
    });
    assert_eq!(raw.seen()[0].method, "GET");
    assert!(raw.calls("server/discover").is_empty());
}

#[test]
fn streamable_http_only_does_not_try_the_older_transport() {
    let raw = legacy(endpoint, |_, _, _| false);
    let error = run(async { connect(&raw, HttpTransport::Streamable).await.unwrap_err() });
    assert_eq!(error.kind, WireErrorKind::Protocol);
    assert!(!raw.seen().iter().any(|seen| seen.method == "GET"));
}

#[test]
fn a_server_with_neither_transport_is_explained() {
    let raw = RawServer::bare(|_, stream| answer(stream, "404 Not Found", &[], b"nothing here"));
    let error = run(async { connect(&raw, HttpTransport::Auto).await.unwrap_err() });
    let text = error.to_string();
    assert!(text.contains("HTTP 404 Not Found: nothing here"), "{text}");
    assert!(
        text.contains(
            "it has no HTTP+SSE transport either: GET opens no event stream (HTTP 404 Not Found)"
        ),
        "{text}"
    );
}

#[test]
fn messages_are_posted_to_the_same_host_only() {
    let raw = legacy(
        || "event: endpoint\ndata: http://evil.example/message?session=7\n\n".to_owned(),
        |_, _, _| false,
    );
    let error = run(async { connect(&raw, HttpTransport::Sse).await.unwrap_err() });
    assert_eq!(error.kind, WireErrorKind::Protocol);
    assert!(
        error
            .to_string()
            .contains("does not name an address of the same host: http://evil.example/message?…"),
        "{error}"
    );
}

#[test]
fn a_stream_without_the_first_event_ends_in_bounded_time() {
    for (first, part) in [
        (": nothing\n\n", "sent no `endpoint` event within 300ms"),
        ("data: {}\n\n", "begins with an event ``, not `endpoint`"),
    ] {
        let raw = legacy(move || first.to_owned(), |_, _, _| false);
        let options = ConnectOptions {
            connect_timeout: Duration::from_millis(300),
            ..options(Lifecycle::Auto)
        };
        let error = run(async {
            Client::connect_http("old", &with(&raw, HttpTransport::Sse), &options)
                .await
                .unwrap_err()
        });
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_stream_that_ends_fails_the_calls_that_wait_for_it() {
    let raw = legacy(endpoint, |seen, stream, open| {
        if seen.rpc() != "tools/call" {
            return false;
        }
        answer(stream, "202 Accepted", &[], b"");
        close(open.lock().unwrap().as_ref().unwrap());
        true
    });
    run(async {
        let client = connect(&raw, HttpTransport::Sse).await.unwrap();
        let error = call(&client, "echo").await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Transport);
        assert!(error.detail.contains("the server closed its event stream"));
        assert!(!client.is_alive());
        client.shutdown().await;
    });
}

#[test]
fn a_refused_message_fails_its_call_immediately() {
    let raw = legacy(endpoint, |seen, stream, _| {
        if seen.rpc() != "tools/call" {
            return false;
        }
        answer(stream, "500 Internal Server Error", &[], b"boom");
        true
    });
    run(async {
        let client = connect(&raw, HttpTransport::Sse).await.unwrap();
        let error = call(&client, "echo").await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Protocol);
        assert!(error.detail.contains("HTTP 500"), "{error}");
        client.shutdown().await;
    });
}

#[test]
fn events_that_arrive_with_the_first_one_are_kept() {
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
    let first = format!("{}data: {log}\n\n", endpoint());
    let raw = legacy(move || first.clone(), |_, _, _| false);
    run(async {
        let client = connect(&raw, HttpTransport::Sse).await.unwrap();
        let counts = client.server_message_counts();
        assert_eq!(counts.get("notifications/message"), Some(&1));
        client.shutdown().await;
    });
}
