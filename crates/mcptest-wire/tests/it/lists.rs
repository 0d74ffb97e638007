//! Lists that do not end properly.

use std::time::{Duration, Instant};

use mcptest_wire::{Client, ConnectOptions, Lifecycle, ViolationKind, WireErrorKind, WireLimits};
use serde_json::json;

use crate::support::{bad_server, connect, options, run};

async fn refused(mode: &str, limits: WireLimits) -> String {
    let options = ConnectOptions {
        limits,
        ..options(Lifecycle::Initialize)
    };
    let client = Client::connect_stdio("bad", &bad_server(mode), &options)
        .await
        .unwrap();
    let error = client.list_tools().await.unwrap_err();
    assert_eq!(error.kind, WireErrorKind::Protocol);
    client.shutdown().await;
    error.detail.clone()
}

#[test]
fn a_repeated_cursor_ends_the_list() {
    let detail = run(refused("same-cursor", WireLimits::default()));
    assert!(detail.contains("repeated the cursor `again`"), "{detail}");
}

#[test]
fn endless_pages_are_limited() {
    let detail = run(refused(
        "pages-forever",
        WireLimits {
            max_pages: 20,
            ..WireLimits::default()
        },
    ));
    assert!(detail.contains("more than 20 pages"), "{detail}");
    let detail = run(refused(
        "pages-forever",
        WireLimits {
            max_items: 7,
            ..WireLimits::default()
        },
    ));
    assert!(detail.contains("more than 7 items"), "{detail}");
}

#[test]
fn issue_14_large_pages_have_one_limit_together() {
    let detail = run(refused(
        "large-pages",
        WireLimits {
            max_list_bytes: 2 << 20,
            ..WireLimits::default()
        },
    ));
    assert_eq!(detail, "the list is larger than 2 MiB");
}

#[test]
fn issue_14_slow_pages_have_one_deadline_together() {
    run(async {
        let options = ConnectOptions {
            connect_timeout: Duration::from_millis(1500),
            call_timeout: Duration::from_millis(1500),
            ..options(Lifecycle::Initialize)
        };
        let client = Client::connect_stdio("bad", &bad_server("slow-pages"), &options)
            .await
            .unwrap();
        let began = Instant::now();
        let error = client.list_tools().await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Timeout);
        assert!(
            error.detail.contains("all pages have one timeout"),
            "{error}"
        );
        assert!(began.elapsed() < Duration::from_secs(4));
        client.shutdown().await;
    });
}

#[test]
fn a_result_without_the_list_is_shown() {
    let detail = run(refused("no-tools", WireLimits::default()));
    assert_eq!(detail, r#"the result has no array `tools`: {"tool":[]}"#);
}

#[test]
fn an_empty_cursor_means_the_end() {
    run(async {
        let client = connect("empty-cursor").await;
        assert_eq!(client.list_tools().await.unwrap().len(), 1);
        assert_eq!(client.violations()[0].kind, ViolationKind::MalformedResult);
        client.shutdown().await;
    });
}

#[test]
fn tools_keep_unknown_fields() {
    run(async {
        let client = connect("good").await;
        let tools = client.list_tools().await.unwrap();
        assert_eq!(tools, [json!({"name": "t", "x-odd": 1})]);
        client.shutdown().await;
    });
}
