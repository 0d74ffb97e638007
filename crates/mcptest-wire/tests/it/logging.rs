//! The log events of a session.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use mcptest_wire::{Client, HttpServer, Lifecycle};

use crate::http_support::{RawServer, answer};
use crate::support::{bad_server, call, options, result, run};

/// Collects the log.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a session and returns its log at a level.
///
/// It runs twice, and the second log counts: an event that another thread meets first, where no
/// subscriber is, stays disabled for all threads until the cache is rebuilt.
fn logged<F: Future<Output = ()>>(level: &str, session: impl Fn() -> F) -> String {
    let captured = Captured::default();
    let writer = captured.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(
            level
                .parse::<tracing_subscriber::filter::LevelFilter>()
                .unwrap(),
        )
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    run(session());
    captured.0.lock().unwrap().clear();
    tracing::callsite::rebuild_interest_cache();
    run(session());
    drop(guard);
    let log = captured.0.lock().unwrap().clone();
    String::from_utf8(log).unwrap()
}

async fn session() {
    let client = Client::connect_stdio("bad", &bad_server("good"), &options(Lifecycle::Initialize))
        .await
        .unwrap();
    result(call(&client, "fine").await.unwrap());
    client.shutdown().await;
}

/// The first line with all of these parts.
fn line<'a>(log: &'a str, parts: &[&str]) -> &'a str {
    log.lines()
        .find(|line| parts.iter().all(|part| line.contains(part)))
        .unwrap_or_else(|| panic!("no line with {parts:?} in\n{log}"))
}

#[test]
fn each_level_adds_detail() {
    let info = logged("info", session);
    for message in [
        "process started",
        "connected",
        "process exited",
        "server stopped",
    ] {
        line(&info, &["mcptest::wire", message, "server=\"bad\""]);
    }
    assert!(!info.contains("tools/call"), "{info}");

    let debug = logged("debug", session);
    line(
        &debug,
        &["request server", "method=\"tools/call\"", "id=2", "bytes="],
    );
    line(
        &debug,
        &["result server", "method=\"tools/call\"", "id=2", "ms="],
    );
    line(
        &debug,
        &[
            "notification server",
            "method=\"notifications/initialized\"",
        ],
    );
    assert!(!debug.contains("jsonrpc"), "{debug}");

    let trace = logged("trace", session);
    line(&trace, &["sent", "\"method\":\"tools/call\""]);
    line(&trace, &["received", "jsonrpc"]);
}

#[test]
fn failures_and_stderr_are_logged() {
    let log = logged("debug", || async {
        let client =
            Client::connect_stdio("bad", &bad_server("good"), &options(Lifecycle::Initialize))
                .await
                .unwrap();
        call(&client, "crash").await.unwrap_err();
        client.shutdown().await;
    });
    line(&log, &["INFO", "process exited", "exited with code 7"]);
    line(&log, &["INFO", "connection closed", "exited with code 7"]);
    line(
        &log,
        &["INFO", "request failed", "kind=server crash", "ms="],
    );
    line(&log, &["DEBUG", "stderr", "panic: index out of range"]);
}

#[test]
fn credentials_are_not_logged() {
    // The server repeats the credential in a message.
    let server = RawServer::start(|seen, stream| {
        let secret = seen.header("authorization").unwrap_or_default();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"got":"{secret}"}}}}"#,
            seen.id()
        );
        answer(
            stream,
            "200 OK",
            &[("content-type", "application/json")],
            body.as_bytes(),
        );
    });
    let log = logged("trace", || async {
        let http = HttpServer {
            headers: vec![("Authorization".into(), "Bearer tok-123456".into())],
            ..server.server()
        };
        let client = Client::connect_http("raw", &http, &options(Lifecycle::Initialize))
            .await
            .unwrap();
        result(call(&client, "echo").await.unwrap());
        client.shutdown().await;
    });
    line(
        &log,
        &[
            "mcptest::http",
            "response",
            "method=POST",
            "status=200",
            "ms=",
        ],
    );
    line(&log, &["mcptest::http", "request", "authorization: ***"]);
    line(&log, &["mcptest::wire", "received", "***"]);
    assert!(!log.contains("tok-123456"), "{log}");
}
