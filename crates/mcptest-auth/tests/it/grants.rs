//! Client credentials, refresh tokens, scopes, and tokens that end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcptest_auth::{
    AuthConfig, Grant, OAuth, OAuthOptions, SecretVariable, StepOutcome, Store, StoreOptions,
};
use mcptest_http::credentials::Credentials;
use serde_json::json;

use crate::fake::{Answer, Fake, Seen, first, metadata, oauth, options, refused, run, token};

#[test]
fn client_credentials_are_discovered_and_granted() {
    let fake = Fake::start();
    let source = oauth(fake.client_credentials());
    run(async {
        assert!(source.current().await.unwrap().is_none());
        let challenge = format!(
            "Bearer scope=\"read write\", resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
            fake.url
        );
        let credential = refused(&source, None, 401, &challenge)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(source.current().await.unwrap(), Some(credential.clone()));
        assert!(token(&credential).starts_with("access-"));
        let summary = source.summary().await.unwrap();
        assert_eq!(summary.issuer, fake.url);
        assert_eq!(summary.scopes, ["read", "write"]);
        assert!(!summary.can_refresh);
    });
    let requests = fake.seen("/token");
    assert_eq!(requests.len(), 1);
    let form = requests[0].form();
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!(form["scope"], "read write");
    assert_eq!(form["resource"], fake.server());
    // Name and secret are encoded as a form before they are joined (RFC 6749, 2.3.1).
    assert_eq!(
        requests[0].header("authorization"),
        Some("Basic Y2krY2xpZW50OnMzY3JldCUzQW9mJTJGdGhlK2NsaWVudA==")
    );
    assert!(!form.contains_key("client_secret"));
    let steps = source.steps();
    assert!(steps.iter().all(|step| step.outcome == StepOutcome::Ok));
    assert_eq!(steps.len(), 4, "{steps:?}");
}

#[test]
fn the_secret_is_posted_where_the_server_wants_that() {
    let fake = Fake::with(|seen, own| {
        let mut metadata = metadata(own);
        metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
        (seen.path == "/.well-known/oauth-authorization-server")
            .then_some(Answer::Json(200, metadata))
    });
    run(async { first(&oauth(fake.client_credentials())).await.unwrap() });
    let request = &fake.seen("/token")[0];
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.form()["client_id"], "ci client");
    assert_eq!(request.form()["client_secret"], "s3cret:of/the client");
}

#[test]
fn a_private_key_signs_an_assertion() {
    use base64::Engine as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key.pem");
    let random = ring::rand::SystemRandom::new();
    let pkcs8 = ring::signature::EcdsaKeyPair::generate_pkcs8(
        &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        &random,
    )
    .unwrap();
    let encoded = base64::engine::general_purpose::STANDARD.encode(pkcs8.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{encoded}\n-----END PRIVATE KEY-----\n");
    std::fs::write(&file, pem).unwrap();
    let fake = Fake::start();
    let config = AuthConfig {
        client_secret: None,
        private_key_file: Some(file),
        ..fake.client_credentials()
    };
    run(async { first(&oauth(config)).await.unwrap() });
    let form = fake.seen("/token")[0].form();
    assert_eq!(
        form["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    let claims = form["client_assertion"].split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(claims)
        .unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["aud"], fake.url);
    assert_eq!(claims["sub"], "ci client");
    assert!(!form.contains_key("client_secret"));
}

#[test]
fn with_an_issuer_a_token_is_requested_before_the_first_request() {
    let fake = Fake::start();
    let config = AuthConfig {
        issuer: Some(fake.url.clone()),
        ..fake.client_credentials()
    };
    let source = oauth(config);
    run(async { assert!(source.current().await.unwrap().is_some()) });
    let well_known = "/.well-known/oauth-protected-resource/mcp";
    assert_eq!(fake.seen(well_known).len(), 1);
    assert_eq!(fake.seen("/token").len(), 1);
}

/// A server whose tokens expire immediately.
fn short_lived(answers: impl Fn(&Seen, &str) -> Option<Answer> + Send + Sync + 'static) -> Fake {
    let count = AtomicUsize::new(0);
    Fake::with(move |seen, own| {
        if let Some(answer) = answers(seen, own) {
            return Some(answer);
        }
        if seen.path != "/token" {
            return None;
        }
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        Answer::json(json!({
            "access_token": format!("short-{number}"),
            "token_type": "Bearer",
            "expires_in": 0,
        }))
    })
}

#[test]
fn a_token_is_replaced_before_the_next_request_when_it_ends() {
    let fake = short_lived(|_, _| None);
    let source = oauth(fake.client_credentials());
    run(async {
        assert_eq!(token(&first(&source).await.unwrap()), "short-1");
        let second = source.current().await.unwrap().unwrap();
        assert_eq!(token(&second), "short-2");
    });
    // The authorization server is known by then.
    assert_eq!(
        fake.seen("/.well-known/oauth-authorization-server").len(),
        1
    );
}

#[test]
fn many_refused_requests_cause_one_request_for_a_token() {
    let fake = Fake::start();
    let source = Arc::new(oauth(fake.client_credentials()));
    run(async {
        let used = first(&source).await.unwrap();
        source.accepted(&used);
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (source, used) = (Arc::clone(&source), used.clone());
            waiting.spawn(async move { refused(&source, Some(&used), 401, "Bearer").await });
        }
        let mut tokens = Vec::new();
        while let Some(credential) = waiting.join_next().await {
            tokens.push(token(&credential.unwrap().unwrap().unwrap()));
        }
        tokens.dedup();
        assert_eq!(tokens.len(), 1);
        assert_ne!(tokens[0], token(&used));
    });
    assert_eq!(fake.seen("/token").len(), 2);
}

#[test]
fn a_request_that_is_abandoned_does_not_interrupt_the_request_for_a_token() {
    let (received, arrived) = std::sync::mpsc::channel();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (received, held) = (Mutex::new(received), Mutex::new(held));
    let fake = Fake::with(move |seen, _| {
        if seen.path == "/token" {
            received.lock().unwrap().send(()).unwrap();
            held.lock().unwrap().recv().unwrap();
        }
        None
    });
    let source = oauth(fake.client_credentials());
    run(async {
        let abandoned = source.clone();
        let waiting = tokio::spawn(async move { first(&abandoned).await });
        tokio::task::spawn_blocking(move || arrived.recv().unwrap())
            .await
            .unwrap();
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        release.send(()).unwrap();
        // The token that was on its way is the current one.
        assert!(source.current().await.unwrap().is_some());
    });
    assert_eq!(fake.seen("/token").len(), 1);
}

#[test]
fn many_requests_share_a_failure_too() {
    let fake =
        Fake::with(|seen, _| (seen.path == "/token").then_some(Answer::Json(503, json!({}))));
    let source = Arc::new(oauth(fake.client_credentials()));
    run(async {
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let source = Arc::clone(&source);
            waiting.spawn(async move { refused(&source, None, 401, "Bearer").await });
        }
        while let Some(outcome) = waiting.join_next().await {
            let error = outcome.unwrap().unwrap_err();
            assert!(error.0.contains("HTTP 503"), "{error}");
        }
    });
    // One attempt with two repetitions.
    assert_eq!(fake.seen("/token").len(), 3);
}

#[test]
fn a_fresh_token_that_is_refused_is_not_replaced_again() {
    let fake = Fake::start();
    let source = oauth(fake.client_credentials());
    run(async {
        let used = first(&source).await.unwrap();
        let challenge = "Bearer error=\"invalid_token\", error_description=\"wrong audience\"";
        let error = refused(&source, Some(&used), 401, challenge)
            .await
            .unwrap_err();
        let parts = [
            format!(
                "the server refuses a token that {} has just issued",
                fake.url
            ),
            "(`invalid_token`: wrong audience)".to_owned(),
            format!("for the resource {}", fake.server()),
            "check `resource`".to_owned(),
        ];
        for part in parts {
            assert!(error.0.contains(&part), "{error}");
        }
        // It stays so.
        let again = refused(&source, Some(&used), 401, challenge)
            .await
            .unwrap_err();
        assert_eq!(again, error);
    });
    assert_eq!(fake.seen("/token").len(), 1);
}

#[test]
fn further_scopes_are_added_to_those_before() {
    let fake = Fake::start();
    let source = oauth(fake.client_credentials());
    run(async {
        let challenge = "Bearer scope=\"read\"";
        let used = refused(&source, None, 401, challenge)
            .await
            .unwrap()
            .unwrap();
        source.accepted(&used);
        // A refusal that is not about scopes is passed on.
        assert!(
            refused(&source, Some(&used), 403, "")
                .await
                .unwrap()
                .is_none()
        );
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
        let more = refused(&source, Some(&used), 403, challenge)
            .await
            .unwrap()
            .unwrap();
        assert_ne!(token(&more), token(&used));
        // Asked again for the same: that would never end.
        let error = refused(&source, Some(&more), 403, challenge)
            .await
            .unwrap_err();
        assert!(
            error.0.contains("with which the token was requested"),
            "{error}"
        );
        let error = refused(&source, Some(&more), 403, "Bearer error=insufficient_scope").await;
        assert!(error.unwrap_err().0.contains("set `scopes`"));
    });
    let scopes: Vec<_> = fake
        .seen("/token")
        .iter()
        .map(|request| request.form()["scope"].clone())
        .collect();
    assert_eq!(scopes, ["read", "read write"]);
}

#[test]
fn a_server_that_always_requests_another_scope_is_not_followed_forever() {
    let fake = Fake::start();
    let source = oauth(fake.client_credentials());
    run(async {
        let mut used = first(&source).await.unwrap();
        for number in 0.. {
            let challenge = format!("Bearer error=insufficient_scope, scope=s{number}");
            match refused(&source, Some(&used), 403, &challenge).await {
                Ok(more) => used = more.unwrap(),
                Err(error) => {
                    assert_eq!(number, 3);
                    assert!(error.0.contains("more than 3 times"), "{error}");
                    return;
                }
            }
        }
    });
}

#[test]
fn a_missing_variable_is_named() {
    let fake = Fake::start();
    let mut config = fake.client_credentials();
    config.client_secret = Some(SecretVariable {
        name: "CI_SECRET".to_owned(),
        value: None,
    });
    let error = run(async { first(&oauth(config)).await.unwrap_err() });
    assert!(
        error
            .0
            .contains("the environment variable CI_SECRET is not set")
    );
    let config = AuthConfig {
        grant: Grant::RefreshToken(SecretVariable {
            name: "CI_REFRESH".to_owned(),
            value: None,
        }),
        ..fake.client_credentials()
    };
    let error = run(async { first(&oauth(config)).await.unwrap_err() });
    assert!(error.0.contains("CI_REFRESH is not set"), "{error}");
}

fn refresh_config(fake: &Fake, value: &str) -> AuthConfig {
    AuthConfig {
        client_secret: None,
        grant: Grant::RefreshToken(SecretVariable {
            name: "CI_REFRESH".to_owned(),
            value: Some(value.to_owned()),
        }),
        ..fake.client_credentials()
    }
}

fn stored(folder: &std::path::Path) -> OAuthOptions {
    OAuthOptions {
        store: Some(Store::new(StoreOptions {
            folder: folder.to_owned(),
            ..StoreOptions::default()
        })),
        ..options()
    }
}

#[test]
fn a_refresh_token_that_is_replaced_is_kept_for_the_next_process() {
    // Each refresh token can be used once.
    let valid = Mutex::new("seed-token".to_owned());
    let fake = Fake::with(move |seen, _| {
        if seen.path != "/token" {
            return None;
        }
        let mut valid = valid.lock().unwrap();
        if seen.form()["refresh_token"] != *valid {
            return Some(Answer::Json(400, json!({"error": "invalid_grant"})));
        }
        *valid = format!("{valid}+");
        Answer::json(json!({
            "access_token": "a", "token_type": "bearer", "expires_in": 0, "refresh_token": *valid,
        }))
    });
    let dir = tempfile::tempdir().unwrap();
    let source = OAuth::new(refresh_config(&fake, "seed-token"), stored(dir.path()));
    run(async {
        first(&source).await.unwrap();
        source.current().await.unwrap().unwrap();
    });
    let next = OAuth::new(refresh_config(&fake, "seed-token"), stored(dir.path()));
    run(async { first(&next).await.unwrap() });
    assert_eq!(fake.seen("/token").len(), 3);
    // Without the store, the token of the environment no longer works.
    let other = oauth(refresh_config(&fake, "seed-token"));
    let error = run(async { first(&other).await.unwrap_err() });
    assert!(error.0.contains("`invalid_grant`"), "{error}");
    assert!(error.0.contains("the one in CI_REFRESH can be used once"));
    // Another token of the environment is not confused with it.
    let third = OAuth::new(refresh_config(&fake, "another-token"), stored(dir.path()));
    run(async { first(&third).await.unwrap_err() });
    let sent = fake.seen("/token").last().unwrap().form();
    assert_eq!(sent["refresh_token"], "another-token");
}

#[test]
fn an_authorization_server_that_is_busy_is_asked_again() {
    let count = AtomicUsize::new(0);
    let fake = Fake::with(move |seen, _| {
        let is_busy = seen.path == "/token" && count.fetch_add(1, Ordering::Relaxed) < 2;
        is_busy.then(|| Answer::Text(503, Vec::new(), "busy".to_owned()))
    });
    run(async { first(&oauth(fake.client_credentials())).await.unwrap() });
    assert_eq!(fake.seen("/token").len(), 3);
}

#[test]
fn a_token_that_cannot_be_replaced_is_used_to_its_end() {
    // Its margin is 30 s, and it lives 20 more.
    let count = AtomicUsize::new(0);
    let fake = Fake::with(move |seen, _| {
        if seen.path != "/token" {
            return None;
        }
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            return Answer::json(json!({
                "access_token": "first", "token_type": "Bearer", "expires_in": 300,
            }));
        }
        Some(Answer::Json(400, json!({"error": "invalid_client"})))
    });
    let source = oauth(fake.client_credentials());
    run(async {
        let used = first(&source).await.unwrap();
        source.accepted(&used);
        let error = refused(&source, Some(&used), 401, "Bearer")
            .await
            .unwrap_err();
        assert!(error.0.contains("check `client_id`"), "{error}");
        // Requests that the server accepts keep it.
        assert_eq!(source.current().await.unwrap(), Some(used));
    });
}

#[test]
fn every_secret_is_reported_before_it_is_used() {
    let fake = Fake::with(|seen, _| {
        (seen.path == "/token").then(|| {
            Answer::Json(
                400,
                json!({"error": "invalid_client", "error_description":
                       format!("who is {}?", seen.header("authorization").unwrap_or_default())}),
            )
        })
    });
    let known: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&known);
    let options = OAuthOptions {
        on_secret: Arc::new(move |secret| log.lock().unwrap().push(secret.to_owned())),
        ..options()
    };
    let source = OAuth::new(fake.client_credentials(), options);
    run(async { first(&source).await.unwrap_err() });
    assert!(
        known
            .lock()
            .unwrap()
            .contains(&"s3cret:of/the client".to_owned())
    );
    // A server that repeats the secret cannot put it into a message.
    let fake = Fake::with(|seen, _| {
        (seen.path == "/token").then(|| {
            Answer::Json(
                400,
                json!({"error": "x", "error_description": "secret s3cret:of/the client"}),
            )
        })
    });
    let source = oauth(fake.client_credentials());
    let error = run(async { first(&source).await.unwrap_err() });
    assert!(error.0.contains("secret ***"), "{error}");
    assert!(!format!("{:?}", source.steps()).contains("s3cret"));
    assert!(!format!("{source:?}").contains("s3cret"));
}
