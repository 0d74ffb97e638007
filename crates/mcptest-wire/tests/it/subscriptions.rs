//! Subscriptions to changes, in both eras.

use std::net::TcpStream;
use std::sync::Mutex;

use mcptest_wire::{Client, ConnectOptions, Lifecycle, WantedChanges, WireErrorKind};
use serde_json::{Value, json};

use crate::http_support::{RawServer, Seen, answer, json_answer, raw};
use crate::support::run;

fn respond(seen: &Seen, stream: &mut TcpStream, result: &Value) {
    let body = json!({"jsonrpc": "2.0", "id": seen.id(), "result": result});
    json_answer(stream, "200 OK", &[], &body);
}

fn wanted() -> WantedChanges {
    WantedChanges {
        resources: vec!["test://a".to_owned()],
        lists: vec!["tools"],
    }
}

async fn connect(server: &RawServer, lifecycle: Lifecycle) -> Client {
    let options = ConnectOptions {
        lifecycle,
        ..ConnectOptions::default()
    };
    Client::connect_http("raw", &server.server(), &options)
        .await
        .unwrap()
}

#[test]
fn a_resource_is_subscribed_once_the_stream_for_messages_is_open() {
    let listening = Mutex::new(None::<TcpStream>);
    let server = RawServer::start(
        move |seen, stream| match (seen.method.as_str(), seen.rpc()) {
            ("GET", _) => {
                raw(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
                );
                *listening.lock().unwrap() = Some(stream.try_clone().unwrap());
            }
            (_, "resources/subscribe") => {
                respond(seen, stream, &json!({}));
                // Lost if the client does not listen yet.
                let message = json!({
                    "jsonrpc": "2.0", "method": "notifications/resources/updated",
                    "params": {"uri": "test://a"},
                });
                let mut listening = listening.lock().unwrap();
                raw(listening.as_mut().unwrap(), &format!("data: {message}\n\n"));
            }
            _ => respond(seen, stream, &json!({})),
        },
    );
    run(async {
        let client = connect(&server, Lifecycle::Initialize).await;
        let mut arrivals = client.arrivals();
        let subscription = client.subscribe(&wanted()).await.unwrap().unwrap();
        while *arrivals.borrow_and_update() == 0 {
            arrivals.changed().await.unwrap();
        }
        let messages = client.server_messages();
        assert_eq!(messages[0].method, "notifications/resources/updated");
        subscription.end().await;
        client.shutdown().await;
    });
    let ended = server.calls("resources/unsubscribe");
    assert_eq!(ended[0].body["params"], json!({"uri": "test://a"}));
}

fn discovered(seen: &Seen, stream: &mut TcpStream) {
    let result = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
    });
    respond(seen, stream, &result);
}

#[test]
fn the_stateless_revision_opens_a_stream_that_is_acknowledged() {
    let server = RawServer::start(|seen, stream| match seen.rpc() {
        "server/discover" => discovered(seen, stream),
        "subscriptions/listen" => {
            raw(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
            );
            let acknowledged = json!({
                "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {}},
            });
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            raw(
                stream,
                &format!("data: {acknowledged}\n\ndata: {changed}\n\n"),
            );
        }
        _ => answer(stream, "404 Not Found", &[], b""),
    });
    run(async {
        let client = connect(&server, Lifecycle::Discover).await;
        let mut arrivals = client.arrivals();
        let subscription = client.subscribe(&wanted()).await.unwrap().unwrap();
        while *arrivals.borrow_and_update() < 2 {
            arrivals.changed().await.unwrap();
        }
        subscription.end().await;
        client.shutdown().await;
    });
    assert_eq!(
        server.calls("subscriptions/listen")[0].body["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]})
    );
}

#[test]
fn a_refused_or_unacknowledged_stream_is_reported() {
    let refusing = RawServer::start(|seen, stream| match seen.rpc() {
        "server/discover" => discovered(seen, stream),
        _ => {
            let error = json!({"code": -32601, "message": "no"});
            let body = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
            json_answer(stream, "404 Not Found", &[], &body);
        }
    });
    let ending = RawServer::start(|seen, stream| match seen.rpc() {
        "server/discover" => discovered(seen, stream),
        _ => respond(seen, stream, &json!({"resultType": "complete"})),
    });
    run(async {
        let client = connect(&refusing, Lifecycle::Discover).await;
        let refused = client.subscribe(&wanted()).await.unwrap();
        assert_eq!(refused.unwrap_err().code, -32601);
        client.shutdown().await;
        let client = connect(&ending, Lifecycle::Discover).await;
        let error = client.subscribe(&wanted()).await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Protocol);
        client.shutdown().await;
    });
}
