//! Requests and notifications of servers, and the client's handler for them.

use std::sync::{Arc, Mutex};

use mcptest_wire::{
    AnswerFuture, Answering, Client, ClientHandler, ConnectOptions, Lifecycle, Revision,
    WireErrorKind, not_offered,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{bad_server, call, options, result, run};

/// Answers `roots/list` when it is released, ends the connection after too many requests, and
/// records everything.
#[derive(Debug, Default)]
struct Recording {
    seen: Mutex<Vec<String>>,
    release: Arc<Notify>,
    limit: usize,
}

impl Recording {
    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl ClientHandler for Recording {
    fn capabilities(&self, _: Revision) -> Value {
        json!({"roots": {}})
    }

    fn asked(&self, method: &str, _: Option<&Value>) -> Answering {
        let mut seen = self.seen.lock().unwrap();
        if seen.len() >= self.limit {
            return Answering::End(format!("more than {} requests", self.limit));
        }
        seen.push(method.to_owned());
        if method != "roots/list" {
            return Answering::Now(Err(not_offered(method)));
        }
        let release = Arc::clone(&self.release);
        let answer: AnswerFuture = Box::pin(async move {
            release.notified().await;
            Ok(json!({"roots": [{"uri": "file:///late"}]}))
        });
        Answering::Later(answer)
    }

    fn notified(&self, method: &str, params: Option<&Value>) {
        let progress = params.and_then(|params| params.get("progress"));
        let mut seen = self.seen.lock().unwrap();
        seen.push(format!("{method} {}", progress.unwrap_or(&Value::Null)));
    }
}

async fn connect(mode: &str, limit: usize) -> (Client, Arc<Recording>) {
    let handler = Arc::new(Recording {
        limit,
        ..Recording::default()
    });
    let options = ConnectOptions {
        handler: handler.clone(),
        ..options(Lifecycle::Initialize)
    };
    let client = Client::connect_stdio("bad", &bad_server(mode), &options)
        .await
        .unwrap();
    (client, handler)
}

#[test]
fn an_answer_may_take_long_while_others_continue() {
    run(async {
        let (client, handler) = connect("good", 10).await;
        let asking = {
            let client = client.clone();
            tokio::spawn(async move { call(&client, "asks").await })
        };
        let mut arrivals = client.arrivals();
        while *arrivals.borrow_and_update() < 3 {
            arrivals.changed().await.unwrap();
        }
        // The request of the server is open; a call of ours is answered meanwhile.
        result(call(&client, "fine").await.unwrap());
        handler.release.notify_one();
        let seen = result(asking.await.unwrap().unwrap());
        let roots = json!({"roots": [{"uri": "file:///late"}]});
        assert_eq!(seen["answers"][1]["result"], roots);
        assert_eq!(handler.seen(), ["roots/list", "notifications/progress 1"]);
        client.shutdown().await;
    });
}

#[test]
fn a_flood_of_requests_ends_the_connection_with_a_reason() {
    run(async {
        let (client, handler) = connect("good", 100).await;
        let error = call(&client, "floods").await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Protocol, "{error}");
        assert!(error.detail.contains("more than 100 requests"), "{error}");
        assert_eq!(handler.seen().len(), 100);
        assert!(!client.is_alive());
        client.shutdown().await;
    });
}

#[test]
fn requests_before_the_handshake_and_after_the_result_are_handled() {
    run(async {
        let (client, handler) = connect("asks-early", 10).await;
        assert_eq!(handler.seen(), ["sampling/createMessage", "no/such/method"]);
        let mut arrivals = client.arrivals();
        result(call(&client, "asks-after").await.unwrap());
        while *arrivals.borrow_and_update() < 3 {
            arrivals.changed().await.unwrap();
        }
        assert_eq!(handler.seen().last().unwrap(), "roots/list");
        // The answer is never released: shutting down does not wait for it.
        client.shutdown().await;
    });
}
