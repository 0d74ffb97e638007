//! Tool calls as tasks, in both eras.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcptest_wire::{
    Answers, CallOptions, CallOutcome, Client, ConnectOptions, Elicitation, Lifecycle, TaskCall,
    TaskOptions, WireError, WireErrorKind,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::http_support::{RawServer, Seen, answer, json_answer};
use crate::support::run;

fn respond(seen: &Seen, stream: &mut TcpStream, result: &Value) {
    let body = json!({"jsonrpc": "2.0", "id": seen.id(), "result": result});
    json_answer(stream, "200 OK", &[], &body);
}

fn refuse(seen: &Seen, stream: &mut TcpStream, code: i64, message: &str) {
    let error = json!({"code": code, "message": message});
    let body = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error});
    json_answer(stream, "200 OK", &[], &body);
}

fn task(status: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1000, "pollInterval": 10,
    })
}

async fn call(
    server: &RawServer,
    lifecycle: Lifecycle,
    options: &CallOptions,
) -> Result<TaskCall, WireError> {
    let connect = ConnectOptions {
        lifecycle,
        handler: Arc::new(Answers {
            elicitation: Some(Elicitation::Accept),
            ..Answers::default()
        }),
        ..ConnectOptions::default()
    };
    let client = Client::connect_http("raw", &server.server(), &connect).await?;
    let task_options = TaskOptions {
        ttl: Some(Duration::from_secs(60)),
        after_cancel: Duration::from_secs(10),
    };
    let called = client
        .call_tool_as_task("dig", &json!({"depth": 3}), &task_options, options)
        .await;
    client.shutdown().await;
    called
}

fn statuses(called: &TaskCall) -> Vec<&str> {
    let task = called.task.as_ref().unwrap();
    task.statuses.iter().map(String::as_str).collect()
}

/// A server of 2025-11-25 whose task has these statuses, one per poll.
fn older(statuses: &'static [&'static str]) -> RawServer {
    let polls = AtomicUsize::new(0);
    RawServer::start(move |seen, stream| match seen.rpc() {
        "tools/call" => respond(seen, stream, &json!({"task": task("working")})),
        "tasks/get" => {
            let poll = polls.fetch_add(1, Ordering::SeqCst);
            let status = statuses[poll.min(statuses.len() - 1)];
            respond(seen, stream, &task(status));
        }
        "tasks/result" => respond(seen, stream, &json!({"content": []})),
        "tasks/cancel" => respond(seen, stream, &task("cancelled")),
        _ => answer(stream, "405 Method Not Allowed", &[], b""),
    })
}

#[test]
fn a_task_of_2025_is_polled_and_its_result_requested() {
    run(async {
        let server = older(&["working", "input_required", "working", "completed"]);
        let called = call(&server, Lifecycle::Initialize, &CallOptions::default())
            .await
            .unwrap();
        assert_eq!(
            statuses(&called),
            ["working", "input_required", "working", "completed"]
        );
        assert_eq!(
            called.outcome,
            Some(CallOutcome::Result(json!({"content": []})))
        );
        assert_eq!(called.task.unwrap().last["ttl"], 1000);
        let params = &server.calls("tools/call")[0].body["params"];
        assert_eq!(params["task"], json!({"ttl": 60_000}));
        assert_eq!(params["arguments"], json!({"depth": 3}));
        // While input is required, the result is awaited: once.
        assert_eq!(server.calls("tasks/result").len(), 1);
    });
}

#[test]
fn a_task_that_is_cancelled_ends_without_a_result() {
    run(async {
        let server = older(&["working"]);
        // Cancelled when the task exists, not before.
        let token = CancellationToken::new();
        let options = CallOptions {
            cancel: Some(token.clone()),
            ..CallOptions::default()
        };
        let (called, ()) = tokio::join!(call(&server, Lifecycle::Initialize, &options), async {
            while server.calls("tasks/get").is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            token.cancel();
        });
        let called = called.unwrap();
        assert_eq!(statuses(&called), ["working", "cancelled"]);
        assert_eq!(called.outcome, None);
        assert_eq!(server.calls("tasks/cancel").len(), 1);
        assert!(called.task.unwrap().cancel.is_some());
    });
}

#[test]
fn a_task_that_does_not_end_in_time_is_cancelled() {
    run(async {
        let server = older(&["working"]);
        let options = CallOptions {
            timeout: Some(Duration::from_millis(300)),
            ..CallOptions::default()
        };
        let error = call(&server, Lifecycle::Initialize, &options)
            .await
            .unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Timeout, "{error}");
        assert!(error.detail.contains("`working`"), "{error}");
        assert_eq!(server.calls("tasks/cancel").len(), 1);
    });
}

#[test]
fn a_server_may_answer_without_a_task_or_with_a_malformed_one() {
    run(async {
        let plain = json!({"content": [], "structuredContent": {"a": 1}});
        let server = {
            let plain = plain.clone();
            RawServer::start(move |seen, stream| respond(seen, stream, &plain))
        };
        let called = call(&server, Lifecycle::Initialize, &CallOptions::default())
            .await
            .unwrap();
        assert_eq!(called.outcome, Some(CallOutcome::Result(plain)));
        assert_eq!(called.task, None);
        for bad in [
            json!({"task": {"status": "working"}}),
            json!({"task": {"taskId": "t", "status": "busy"}}),
            json!("x"),
        ] {
            let server = {
                let bad = bad.clone();
                RawServer::start(move |seen, stream| respond(seen, stream, &bad))
            };
            let error = call(&server, Lifecycle::Initialize, &CallOptions::default())
                .await
                .unwrap_err();
            assert_eq!(error.kind, WireErrorKind::Protocol, "{bad}: {error}");
            assert!(error.detail.contains("malformed"), "{error}");
        }
    });
}

/// A server of 2026-07-28 whose task goes through these descriptions, one per poll.
fn newer(polls: Vec<Value>) -> RawServer {
    let next = AtomicUsize::new(0);
    RawServer::start(move |seen, stream| match seen.rpc() {
        "server/discover" => respond(
            seen,
            stream,
            &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
            }),
        ),
        "tools/call" => {
            let mut created = task("working");
            created["resultType"] = json!("task");
            respond(seen, stream, &created);
        }
        "tasks/get" => {
            let poll = next.fetch_add(1, Ordering::SeqCst).min(polls.len() - 1);
            let mut now = task(polls[poll]["status"].as_str().unwrap());
            for (key, value) in polls[poll].as_object().unwrap() {
                now[key] = value.clone();
            }
            now["resultType"] = json!("complete");
            respond(seen, stream, &now);
        }
        "tasks/update" | "tasks/cancel" => {
            respond(seen, stream, &json!({"resultType": "complete"}));
        }
        _ => refuse(seen, stream, -32601, "no"),
    })
}

#[test]
fn a_task_of_2026_is_answered_by_updates_and_carries_its_result() {
    run(async {
        let schema = json!({"properties": {"ok": {"type": "boolean", "default": true}}});
        let ask = json!({"sure": {
            "method": "elicitation/create", "params": {"requestedSchema": schema},
        }});
        let waiting = json!({"status": "input_required", "inputRequests": ask});
        let server = newer(vec![
            waiting.clone(),
            // Still the same question: it is not answered twice.
            waiting,
            json!({"status": "working"}),
            json!({"status": "completed", "result": {"content": [], "isError": true}}),
        ]);
        let called = call(&server, Lifecycle::Discover, &CallOptions::default())
            .await
            .unwrap();
        assert_eq!(
            statuses(&called),
            ["working", "input_required", "working", "completed"]
        );
        assert_eq!(
            called.outcome,
            Some(CallOutcome::Result(json!({"content": [], "isError": true})))
        );
        assert_eq!(called.task.unwrap().last.get("result"), None);
        let updates = server.calls("tasks/update");
        assert_eq!(updates.len(), 1);
        assert_eq!(
            updates[0].body["params"]["inputResponses"],
            json!({"sure": {"action": "accept", "content": {"ok": true}}})
        );
        assert_eq!(updates[0].header("mcp-name"), Some("t-1"));
    });
}

#[test]
fn a_failed_task_has_the_error_of_the_call() {
    run(async {
        let error = json!({"code": -32603, "message": "out of paper"});
        let server = newer(vec![json!({"status": "failed", "error": error})]);
        let called = call(&server, Lifecycle::Discover, &CallOptions::default())
            .await
            .unwrap();
        let Some(CallOutcome::Error(error)) = &called.outcome else {
            panic!("{called:?}");
        };
        assert_eq!(
            (error.code, error.message.as_str()),
            (-32603, "out of paper")
        );
        assert_eq!(statuses(&called), ["working", "failed"]);
        let server = newer(vec![json!({"status": "failed"})]);
        let error = call(&server, Lifecycle::Discover, &CallOptions::default()).await;
        assert_eq!(error.unwrap_err().kind, WireErrorKind::Protocol);
    });
}
