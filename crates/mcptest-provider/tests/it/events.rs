//! The `tracing` events of a request.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

use crate::sending::{ask, hello, open, settings};
use crate::stand_in::{Answer, StandIn};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Requests a turn that is refused once, and returns the lines of this crate's events.
///
/// It happens twice, and the second log counts: an event that another thread meets first, where no
/// subscriber is, stays disabled for all threads until the cache is rebuilt.
async fn lines_at(level: Level) -> Vec<String> {
    let captured = Captured::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(captured.clone())
        .with_ansi(false)
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    refused_once().await;
    captured.0.lock().unwrap().clear();
    tracing::callsite::rebuild_interest_cache();
    refused_once().await;
    drop(guard);
    let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("sk-secret-1"), "{text}");
    text.lines()
        .filter(|line| line.contains("mcptest::provider"))
        .map(str::to_owned)
        .collect()
}

/// Requests a turn that is refused once.
async fn refused_once() {
    let stand_in = StandIn::start(|seen, number| match number {
        0 => Answer::Json(
            429,
            vec![("retry-after-ms", "1".to_owned())],
            json!("slow down, sk-secret-1"),
        ),
        _ => hello(seen, number),
    });
    let mut settings = settings(&stand_in);
    settings.body = json!({"note": "sk-secret-1"}).as_object().unwrap().clone();
    ask(&open(settings)).await.unwrap();
}

fn has(lines: &[String], parts: &[&str]) -> bool {
    lines
        .iter()
        .any(|line| parts.iter().all(|part| line.contains(part)))
}

#[tokio::test]
async fn info_shows_retries_only() {
    let lines = lines_at(Level::INFO).await;
    assert!(
        has(&lines, &["retrying", "slow down", "attempt=1"]),
        "{lines:?}"
    );
    assert!(!has(&lines, &["request sent"]) && !has(&lines, &["turn received"]));
}

#[tokio::test]
async fn debug_shows_each_request_and_response() {
    let lines = lines_at(Level::DEBUG).await;
    for attempt in ["attempt=1", "attempt=2"] {
        let parts = [
            "request sent",
            "provider=\"acme\"",
            "model=\"m-1\"",
            attempt,
        ];
        assert!(has(&lines, &parts), "{lines:?}");
    }
    assert!(has(&lines, &["response started", "status=429"]));
    assert!(has(&lines, &["turn received", "attempt=2", "ms="]));
    assert!(!has(&lines, &["request body"]), "bodies are for trace");
}

#[tokio::test]
async fn trace_shows_bodies_without_keys() {
    let lines = lines_at(Level::TRACE).await;
    assert!(
        has(&lines, &["request body", "\"note\":\"[redacted]\""]),
        "{lines:?}"
    );
    assert!(has(&lines, &["response body", "hello"]));
}
