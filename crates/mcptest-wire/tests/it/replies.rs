//! Replies that are damaged, late, missing or too long.

use std::time::{Duration, Instant};

use mcptest_wire::{
    CallOptions, Client, ConnectOptions, Lifecycle, ViolationKind, WireErrorKind, WireLimits,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{bad_server, call, connect, options, result, run, soon};

#[test]
fn a_damaged_reply_fails_the_call_soon_and_is_shown() {
    run(async {
        let client = connect("good").await;
        for (tool, kind, shown) in [
            ("wrong-id", ViolationKind::UnknownId, "unknown id"),
            ("string-id", ViolationKind::WrongIdType, "a string"),
            ("bool-id", ViolationKind::WrongIdType, "id true"),
            ("null-id", ViolationKind::MissingId, "without id"),
            ("no-id", ViolationKind::MissingId, "without id"),
            ("truncated", ViolationKind::UnparsableJson, "[{\"ty"),
            ("both", ViolationKind::ResultAndError, "\"code\":1"),
            ("neither", ViolationKind::NoResultOrError, "neither"),
            ("no-version", ViolationKind::BadJsonRpcVersion, "missing"),
            ("bad-error", ViolationKind::MalformedError, "boom"),
            ("deep", ViolationKind::TooDeep, "recursion"),
            ("bad-utf8", ViolationKind::InvalidUtf8, "\u{fffd}"),
        ] {
            let before = client.violations().len();
            let started = Instant::now();
            let error = soon(started, call(&client, tool).await.unwrap_err());
            assert_eq!(error.kind, WireErrorKind::Protocol, "{tool}: {error}");
            assert!(error.detail.contains(shown), "{tool}: {error}");
            let violations = client.violations();
            let new: Vec<_> = violations[before..].iter().map(|v| v.kind).collect();
            assert_eq!(new, [kind], "{tool}");
        }
        // None of this ends the session.
        result(call(&client, "fine").await.unwrap());
        // By now it cannot be the answer to a notification.
        let error = call(&client, "null-id-error").await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Protocol, "{error}");
        client.shutdown().await;
    });
}

#[test]
fn an_answer_to_a_notification_fails_no_call() {
    run(async {
        let client = connect("answers-notifications").await;
        // Answered after the grace period of a damaged reply.
        assert!(client.list_tools().await.unwrap().is_empty());
        assert_eq!(client.violations()[0].kind, ViolationKind::MissingId);
        client.shutdown().await;
    });
}

#[test]
fn a_good_reply_after_a_damaged_one_counts() {
    run(async {
        let client = connect("good").await;
        result(call(&client, "broken-then-good").await.unwrap());
        assert_eq!(client.violations()[0].kind, ViolationKind::WrongIdType);
        result(call(&client, "null-error").await.unwrap());
        assert_eq!(client.violations()[1].kind, ViolationKind::ResultAndError);
        result(call(&client, "batch").await.unwrap());
        assert_eq!(client.violations()[2].kind, ViolationKind::Batch);
        result(call(&client, "twice").await.unwrap());
        result(call(&client, "fine").await.unwrap());
        assert_eq!(client.violations()[3].kind, ViolationKind::DuplicateReply);
        client.shutdown().await;
    });
}

#[test]
fn damaged_replies_are_matched_to_their_calls() {
    run(async {
        let client = connect("good").await;
        let silent = call(&client, "silence");
        let truncated = call(&client, "truncated");
        let string_id = call(&client, "string-id");
        let broken = async { tokio::join!(truncated, string_id) };
        tokio::select! {
            (truncated, string_id) = broken => {
                assert_eq!(truncated.unwrap_err().kind, WireErrorKind::Protocol);
                assert_eq!(string_id.unwrap_err().kind, WireErrorKind::Protocol);
            }
            silent = silent => panic!("{silent:?}"),
        }
        client.shutdown().await;
    });
}

#[test]
fn a_timeout_shows_what_was_printed() {
    run(async {
        let client = connect("noisy").await;
        let short = CallOptions {
            timeout: Some(Duration::from_millis(1000)),
            ..CallOptions::default()
        };
        let error = client.call_tool("noise-only", &Value::Null, &short).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Timeout);
        assert_eq!(
            error.detail,
            "no reply within 1s; the server printed: \
             text on stdout that is not a message: I am thinking about it"
        );
        client.shutdown().await;
    });
}

#[test]
fn a_late_reply_is_counted_and_not_a_violation() {
    run(async {
        let client = connect("good").await;
        let short = CallOptions {
            timeout: Some(Duration::from_millis(300)),
            ..CallOptions::default()
        };
        // It answers when it reads the cancellation.
        let error = client.call_tool("slow", &Value::Null, &short).await;
        assert_eq!(error.unwrap_err().kind, WireErrorKind::Timeout);
        result(call(&client, "fine").await.unwrap());
        assert_eq!(client.late_replies(), 1);
        assert_eq!(client.violations(), []);
        client.shutdown().await;
    });
}

#[test]
fn cancelling_and_dropping_both_notify_the_server() {
    run(async {
        let client = connect("good").await;
        let token = CancellationToken::new();
        let cancelling = CallOptions {
            timeout: None,
            cancel: Some(token.clone()),
            ..CallOptions::default()
        };
        let (error, ()) =
            tokio::join!(client.call_tool("slow", &Value::Null, &cancelling), async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                token.cancel();
            });
        assert_eq!(error.unwrap_err().kind, WireErrorKind::Cancelled);
        result(call(&client, "fine").await.unwrap());
        assert_eq!(client.late_replies(), 1);

        let dropped = tokio::time::timeout(Duration::from_millis(300), call(&client, "slow"));
        assert!(dropped.await.is_err());
        result(call(&client, "fine").await.unwrap());
        assert_eq!(client.late_replies(), 2);
        client.shutdown().await;
    });
}

#[test]
fn an_overlong_line_fails_the_call_and_not_the_session() {
    run(async {
        let options = ConnectOptions {
            limits: WireLimits {
                max_line_bytes: 1 << 20,
                ..WireLimits::default()
            },
            ..options(Lifecycle::Initialize)
        };
        let client = Client::connect_stdio("bad", &bad_server("good"), &options)
            .await
            .unwrap();
        let none = CallOptions::default();
        let fits = json!({"bytes": 900 << 10});
        let text = result(client.call_tool("huge", &fits, &none).await.unwrap());
        let text = text["content"][0]["text"].as_str();
        assert_eq!(text.unwrap().len(), 900 << 10);

        let started = Instant::now();
        let too_long = json!({"bytes": 8 << 20});
        let error = client.call_tool("huge", &too_long, &none).await;
        let error = soon(started, error.unwrap_err());
        assert_eq!(error.kind, WireErrorKind::Protocol);
        assert!(error.detail.contains("1048576 bytes"), "{error}");
        assert!(error.to_string().len() < 2000);
        result(call(&client, "fine").await.unwrap());
        client.shutdown().await;
    });
}

#[test]
fn a_server_that_stops_reading_cannot_block_us() {
    run(async {
        let client = connect("good").await;
        let short = CallOptions {
            timeout: Some(Duration::from_millis(1000)),
            ..CallOptions::default()
        };
        let stopped = client.call_tool("stops-reading", &Value::Null, &short);
        assert_eq!(stopped.await.unwrap_err().kind, WireErrorKind::Timeout);
        let big = json!({"text": "x".repeat(4 << 20)});
        for _ in 0..3 {
            let error = client.call_tool("fine", &big, &short).await.unwrap_err();
            assert_eq!(error.kind, WireErrorKind::Timeout);
            assert!(error.detail.contains("does not read its stdin"), "{error}");
        }
        let started = Instant::now();
        client.shutdown().await;
        soon(started, ());
    });
}

#[test]
fn requests_of_the_server_are_answered() {
    run(async {
        let client = connect("good").await;
        let seen = result(call(&client, "asks").await.unwrap());
        assert_eq!(
            seen["answers"][0],
            json!({"jsonrpc": "2.0", "id": "p1", "result": {}})
        );
        assert_eq!(seen["answers"][1]["id"], 2);
        assert_eq!(seen["answers"][1]["error"]["code"], -32601);
        let messages: Vec<(String, bool)> = client
            .server_messages()
            .into_iter()
            .map(|m| (m.method, m.is_request))
            .collect();
        assert_eq!(
            messages,
            [
                ("ping".to_owned(), true),
                ("roots/list".to_owned(), true),
                ("notifications/progress".to_owned(), false),
            ]
        );
        assert_eq!(client.server_message_counts()["ping"], 1);
        assert_eq!(client.violations(), []);
        client.shutdown().await;
    });
}

#[test]
fn issue_14_a_malformed_tool_result_is_a_violation_and_an_error() {
    for (tool, problem) in [
        ("text-result", "it is not an object"),
        ("number-result", "it is not an object"),
        ("text-content", "`content` is not an array"),
        ("text-is-error", "`isError` is neither true nor false"),
    ] {
        run(async {
            let client = connect("good").await;
            let error = call(&client, tool).await.unwrap_err();
            assert_eq!(error.kind, WireErrorKind::Protocol, "{error}");
            assert!(error.detail.contains(problem), "{error}");
            let violations = client.violations();
            assert_eq!(violations[0].kind, ViolationKind::MalformedResult);
            client.shutdown().await;
        });
    }
}
