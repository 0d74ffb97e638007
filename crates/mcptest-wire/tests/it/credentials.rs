//! Requests that a server refuses, and that are sent again with another credential.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcptest_http::credentials::{
    Credential, CredentialError, CredentialFuture, Credentials, Refusal,
};
use mcptest_wire::{CallOptions, Client, HttpServer, Lifecycle, WireErrorKind};
use serde_json::json;

use crate::http::reply;
use crate::http_support::{RawServer, Seen, answer, initialized, json_answer};
use crate::support::{call, options, result, run};

/// Gives out `token-1`, `token-2` … and counts.
#[derive(Debug, Default)]
struct Tokens {
    last: AtomicU64,
    accepted: AtomicU64,
    /// The time that each new token takes.
    takes: Duration,
    fails: bool,
}

impl Tokens {
    fn token(serial: u64) -> Option<Credential> {
        Credential::bearer(&format!("token-{serial}"), serial)
    }
}

impl Credentials for Tokens {
    fn current(&self) -> CredentialFuture<'_, Option<Credential>> {
        let last = self.last.load(Ordering::Relaxed);
        Box::pin(async move { Ok(Some(last).filter(|last| *last > 0).and_then(Self::token)) })
    }

    fn replace(&self, refusal: Refusal) -> CredentialFuture<'_, Option<Credential>> {
        Box::pin(async move {
            if self.fails {
                let challenge = refusal.challenges.join(", ");
                return Err(CredentialError(format!("no token for {challenge}")));
            }
            tokio::time::sleep(self.takes).await;
            Ok(Self::token(self.last.fetch_add(1, Ordering::Relaxed) + 1))
        })
    }

    fn accepted(&self, credential: &Credential) {
        self.accepted.store(credential.serial(), Ordering::Relaxed);
    }

    fn secrets(&self) -> Vec<String> {
        (1..=self.last.load(Ordering::Relaxed))
            .map(|serial| format!("token-{serial}"))
            .collect()
    }
}

/// A server that accepts one token.
fn guarded(token: &'static str) -> RawServer {
    RawServer::bare(move |seen, stream| {
        if seen.header("authorization") != Some(token) {
            let challenge = [("www-authenticate", "Bearer realm=\"x\"")];
            return answer(stream, "401 Unauthorized", &challenge, b"no");
        }
        match (seen.method.as_str(), seen.rpc()) {
            ("POST", "initialize") => json_answer(stream, "200 OK", &[], &initialized(seen)),
            ("POST", "tools/call") => json_answer(stream, "200 OK", &[], &echoed(seen)),
            ("POST", "tools/list") => {
                let page = json!({"jsonrpc": "2.0", "id": seen.id(), "result": {"tools": []}});
                json_answer(stream, "200 OK", &[], &page)
            }
            ("POST", _) => answer(stream, "202 Accepted", &[], b""),
            _ => answer(stream, "405 Method Not Allowed", &[], b""),
        }
    })
}

fn echoed(seen: &Seen) -> serde_json::Value {
    reply(seen, seen.header("authorization").unwrap_or_default())
}

fn server(raw: &RawServer, tokens: &Arc<Tokens>) -> HttpServer {
    HttpServer {
        credentials: Some(Arc::clone(tokens) as Arc<dyn Credentials>),
        ..raw.server()
    }
}

#[test]
fn a_refused_request_is_sent_again_with_another_credential() {
    let raw = guarded("Bearer token-2");
    let tokens = Arc::new(Tokens::default());
    run(async {
        let options = options(Lifecycle::Initialize);
        let client = Client::connect_http("raw", &server(&raw, &tokens), &options)
            .await
            .unwrap();
        let outcome = call(&client, "echo").await.unwrap();
        assert_eq!(result(outcome)["content"][0]["text"], "Bearer token-2");
        client.shutdown().await;
    });
    let tried: Vec<_> = raw.calls("initialize");
    let tried: Vec<_> = tried
        .iter()
        .map(|seen| seen.header("authorization"))
        .collect();
    assert_eq!(
        tried,
        [None, Some("Bearer token-1"), Some("Bearer token-2")]
    );
    assert_eq!(raw.calls("tools/call").len(), 1);
    assert_eq!(tokens.accepted.load(Ordering::Relaxed), 2);
}

#[test]
fn a_server_that_refuses_every_credential_is_not_asked_forever() {
    let raw = guarded("Bearer never");
    let tokens = Arc::new(Tokens::default());
    let error = run(async {
        let options = options(Lifecycle::Initialize);
        Client::connect_http("raw", &server(&raw, &tokens), &options)
            .await
            .unwrap_err()
    });
    assert_eq!(error.kind, WireErrorKind::Auth);
    assert_eq!(raw.calls("initialize").len(), 5);
}

#[test]
fn a_credential_that_cannot_be_obtained_is_the_error_of_the_request() {
    let raw = guarded("Bearer never");
    let tokens = Arc::new(Tokens {
        fails: true,
        ..Tokens::default()
    });
    let error = run(async {
        let options = options(Lifecycle::Initialize);
        Client::connect_http("raw", &server(&raw, &tokens), &options)
            .await
            .unwrap_err()
    });
    assert_eq!(error.kind, WireErrorKind::Auth);
    assert_eq!(
        error.to_string(),
        "server `raw`: not authorized while connecting (initialize): no token for Bearer realm=\"x\""
    );
}

#[test]
fn obtaining_a_credential_is_not_the_time_of_a_call() {
    let raw = guarded("Bearer token-1");
    let tokens = Arc::new(Tokens {
        takes: Duration::from_millis(600),
        ..Tokens::default()
    });
    run(async {
        let mut options = options(Lifecycle::Initialize);
        // Far below the time that the token takes.
        options.connect_timeout = Duration::from_millis(200);
        let client = Client::connect_http("raw", &server(&raw, &tokens), &options)
            .await
            .unwrap();
        // As if it had expired.
        tokens.last.store(0, Ordering::Relaxed);
        let call = CallOptions {
            timeout: Some(Duration::from_millis(200)),
            ..CallOptions::default()
        };
        let response = client.call_tool_raw("echo", &json!({}), &call).await;
        assert!(response.unwrap().credential_wait >= Duration::from_millis(600));
        tokens.last.store(0, Ordering::Relaxed);
        let listed = client.list_pages("tools/list", "tools").await.unwrap();
        assert!(listed.unwrap().credential_wait >= Duration::from_millis(600));
        client.shutdown().await;
    });
}

#[test]
fn tokens_do_not_appear_in_errors() {
    let raw = RawServer::bare(|seen, stream| match seen.header("authorization") {
        None => answer(stream, "401 Unauthorized", &[], b""),
        Some(token) => answer(
            stream,
            "500 Internal Server Error",
            &[],
            format!("bad {token}").as_bytes(),
        ),
    });
    let tokens = Arc::new(Tokens::default());
    let error = run(async {
        let options = options(Lifecycle::Initialize);
        Client::connect_http("raw", &server(&raw, &tokens), &options)
            .await
            .unwrap_err()
    });
    assert!(error.to_string().contains("bad Bearer ***"), "{error}");
}
