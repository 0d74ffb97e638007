//! The interactive login, its checks, and the store.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcptest_auth::{
    AuthConfig, Grant, Interaction, InteractionFuture, OAuth, OAuthOptions, Store, StoreOptions,
};
use mcptest_http::credentials::Credentials;
use serde_json::{Value, json};

use crate::fake::{Answer, Fake, Seen, first, metadata, options, refused, run, token};

/// A browser that follows the redirect of the authorization server, or a user who does something
/// else.
#[derive(Debug, Default)]
struct Browser {
    shown: Mutex<Vec<String>>,
    /// Requests that it sends to the redirect address before the right one.
    detours: Vec<&'static str>,
    /// It copies the address instead of going there.
    pastes: bool,
    copied: tokio::sync::Notify,
}

impl Interaction for Browser {
    fn show<'a>(&'a self, url: &'a str) -> InteractionFuture<'a, ()> {
        self.shown.lock().unwrap().push(url.to_owned());
        Box::pin(async move {
            if self.pastes {
                self.copied.notify_one();
                return;
            }
            let target = location(url).await;
            let base = target.split('?').next().unwrap().to_owned();
            for detour in &self.detours {
                let status = get(&format!("{base}{detour}"), None).await.0;
                assert_ne!(status, 200, "{detour}");
            }
            let foreign = get(&target, Some("evil.example")).await.0;
            assert_eq!(foreign, 400);
            let (status, page) = get(&target, None).await;
            assert_eq!(status, 200, "{page}");
            assert!(!page.contains("<script"));
        })
    }

    fn pasted(&self) -> InteractionFuture<'_, String> {
        Box::pin(async {
            if !self.pastes {
                return std::future::pending().await;
            }
            self.copied.notified().await;
            let url = self.shown.lock().unwrap().last().unwrap().clone();
            location(&url).await
        })
    }
}

/// The address that an authorization server redirects to.
async fn location(url: &str) -> String {
    let head = exchange(url, None).await;
    let line = head.lines().find(|line| line.starts_with("location: "));
    line.unwrap_or_else(|| panic!("{head}"))["location: ".len()..].to_owned()
}

async fn get(url: &str, host: Option<&str>) -> (u16, String) {
    let text = exchange(url, host).await;
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text)
}

async fn exchange(url: &str, host: Option<&str>) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let url = url::Url::parse(url).unwrap();
    let address = format!("127.0.0.1:{}", url.port().unwrap());
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = host.unwrap_or(&address);
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

fn config(fake: &Fake) -> AuthConfig {
    AuthConfig {
        login_command: "mcptest auth login calendar".to_owned(),
        ..AuthConfig::new(&fake.server(), Grant::AuthorizationCode)
    }
}

fn store(folder: &Path) -> Store {
    Store::new(StoreOptions {
        folder: folder.to_owned(),
        ..StoreOptions::default()
    })
}

fn with_browser(folder: &Path, browser: &Arc<Browser>) -> OAuthOptions {
    OAuthOptions {
        store: Some(store(folder)),
        interaction: Some(Arc::clone(browser) as Arc<dyn Interaction>),
        ignores_logins: true,
        ..options()
    }
}

fn without_browser(folder: &Path) -> OAuthOptions {
    OAuthOptions {
        store: Some(store(folder)),
        ..options()
    }
}

/// Logs in at a server.
fn log_in(fake: &Fake, config: AuthConfig, folder: &Path) -> Result<String, String> {
    let browser = Arc::new(Browser::default());
    let source = OAuth::new(config, with_browser(folder, &browser));
    let outcome = run(first(&source));
    assert!(!fake.paths().is_empty());
    outcome
        .map(|credential| token(&credential))
        .map_err(|error| error.0)
}

#[test]
fn a_login_registers_a_client_and_is_kept() {
    let fake = Fake::start();
    let dir = tempfile::tempdir().unwrap();
    let browser = Arc::new(Browser {
        detours: vec![
            "",
            "?code=stolen&state=guessed",
            "/other?code=x",
            "?error=access_denied",
        ],
        ..Browser::default()
    });
    let source = OAuth::new(config(&fake), with_browser(dir.path(), &browser));
    let access = run(async { token(&first(&source).await.unwrap()) });
    let registration: Value = serde_json::from_str(&fake.seen("/register")[0].body).unwrap();
    assert_eq!(registration["application_type"], "native");
    assert_eq!(registration["token_endpoint_auth_method"], "none");
    assert_eq!(
        registration["grant_types"],
        json!(["authorization_code", "refresh_token"])
    );
    let asked = fake.seen("/authorize")[0].form();
    assert_eq!(asked["response_type"], "code");
    assert_eq!(asked["client_id"], "registered");
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], fake.server());
    assert!(asked["state"].len() >= 20);
    assert!(!asked.contains_key("scope"));
    assert_eq!(
        registration["redirect_uris"],
        json!([asked["redirect_uri"]])
    );
    let exchanged = fake.seen("/token")[0].form();
    assert_eq!(exchanged["code"], "the-code");
    assert_eq!(exchanged["redirect_uri"], asked["redirect_uri"]);
    assert_eq!(exchanged["resource"], fake.server());
    assert_eq!(
        challenge_of(&exchanged["code_verifier"]),
        asked["code_challenge"]
    );

    // Another process uses the login, also under another spelling of the address.
    let mut other = config(&fake);
    other.server = format!("{}#x", fake.server());
    let next = OAuth::new(other, without_browser(dir.path()));
    let used = run(async { next.current().await.unwrap().unwrap() });
    assert_eq!(token(&used), access);
    // When its token is refused, it is refreshed.
    let fresh = run(async { refused(&next, Some(&used), 401, "Bearer").await.unwrap() });
    assert_ne!(token(&fresh.unwrap()), access);
    let refreshed = fake.seen("/token")[1].form();
    assert_eq!(refreshed["grant_type"], "refresh_token");
    assert_eq!(refreshed["client_id"], "registered");
    assert_eq!(refreshed["resource"], fake.server());
    let listed = store(dir.path()).list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].server.as_str(), listed[0].can_refresh),
        (fake.server().as_str(), true)
    );
}

fn challenge_of(verifier: &str) -> String {
    use base64::Engine as _;
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
}

#[test]
fn the_answer_can_be_pasted() {
    let fake = Fake::start();
    let dir = tempfile::tempdir().unwrap();
    let browser = Arc::new(Browser {
        pastes: true,
        ..Browser::default()
    });
    let source = OAuth::new(config(&fake), with_browser(dir.path(), &browser));
    run(async { first(&source).await.unwrap() });
    assert_eq!(store(dir.path()).list().unwrap().len(), 1);
}

#[test]
fn nobody_who_logs_in_is_an_error_in_time() {
    #[derive(Debug)]
    struct Nobody;
    impl Interaction for Nobody {
        fn show<'a>(&'a self, _: &'a str) -> InteractionFuture<'a, ()> {
            Box::pin(std::future::ready(()))
        }
    }
    let fake = Fake::start();
    let mut options = options();
    options.interaction = Some(Arc::new(Nobody));
    options.timeouts.login = std::time::Duration::from_millis(200);
    let source = OAuth::new(config(&fake), options);
    let error = run(async { first(&source).await.unwrap_err() });
    assert!(error.0.contains("nobody logged in within 0.2 s"), "{error}");
}

#[test]
fn without_a_login_the_command_is_named() {
    let fake = Fake::start();
    let dir = tempfile::tempdir().unwrap();
    let source = OAuth::new(config(&fake), without_browser(dir.path()));
    let error = run(async { first(&source).await.unwrap_err() });
    assert_eq!(
        error.0,
        "the server answers 401, and nobody is logged in: run `mcptest auth login calendar`"
    );
    // Nothing was asked, and nothing is written.
    assert!(fake.paths().is_empty());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_client_of_the_settings_is_not_registered() {
    let fake = Fake::start();
    let dir = tempfile::tempdir().unwrap();
    let mut own = config(&fake);
    own.client_id = Some("known".to_owned());
    own.scopes = vec!["calendar".to_owned()];
    log_in(&fake, own.clone(), dir.path()).unwrap();
    assert!(fake.seen("/register").is_empty());
    let asked = fake.seen("/authorize")[0].form();
    assert_eq!(
        (asked["client_id"].as_str(), asked["scope"].as_str()),
        ("known", "calendar")
    );
    // The login of another client is not used.
    own.client_id = Some("other".to_owned());
    let source = OAuth::new(own, without_browser(dir.path()));
    let error = run(async { first(&source).await.unwrap_err() });
    assert!(error.0.contains("nobody is logged in"));
}

/// A server whose metadata is changed.
fn with_metadata(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Fake {
    Fake::with(move |seen, own| {
        let mut metadata = metadata(own);
        change(&mut metadata);
        (seen.path == "/.well-known/oauth-authorization-server")
            .then_some(Answer::Json(200, metadata))
    })
}

#[test]
fn a_metadata_document_is_the_client_where_the_server_accepts_it() {
    let document = "https://client.example/mcptest.json";
    let dir = tempfile::tempdir().unwrap();
    let fake = with_metadata(|metadata| {
        metadata["client_id_metadata_document_supported"] = true.into();
    });
    let mut own = config(&fake);
    own.client_id = Some(document.to_owned());
    log_in(&fake, own, dir.path()).unwrap();
    assert_eq!(fake.seen("/authorize")[0].form()["client_id"], document);
    assert!(fake.seen("/register").is_empty());
    // Elsewhere the client is registered.
    let fake = Fake::start();
    let mut own = config(&fake);
    own.client_id = Some(document.to_owned());
    log_in(&fake, own, dir.path()).unwrap();
    assert_eq!(fake.seen("/authorize")[0].form()["client_id"], "registered");
}

#[test]
fn refresh_tokens_are_asked_for_where_the_server_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let fake = with_metadata(|metadata| {
        metadata["scopes_supported"] = json!(["openid", "offline_access"]);
    });
    log_in(&fake, config(&fake), dir.path()).unwrap();
    let asked = fake.seen("/authorize")[0].form();
    assert_eq!(asked["scope"], "offline_access");
    assert_eq!(asked["prompt"], "consent");
}

#[test]
fn a_login_without_pkce_is_refused() {
    for methods in [json!(null), json!([]), json!(["plain"])] {
        let dir = tempfile::tempdir().unwrap();
        let fake = with_metadata(move |metadata| {
            metadata["code_challenge_methods_supported"] = methods.clone();
        });
        let error = log_in(&fake, config(&fake), dir.path()).unwrap_err();
        assert!(error.contains("does not list S256"), "{error}");
        assert!(fake.seen("/authorize").is_empty());
        assert!(fake.seen("/register").is_empty());
    }
}

#[test]
fn a_server_without_registration_needs_a_client() {
    let dir = tempfile::tempdir().unwrap();
    let fake = with_metadata(|metadata| {
        metadata
            .as_object_mut()
            .unwrap()
            .remove("registration_endpoint");
    });
    let error = log_in(&fake, config(&fake), dir.path()).unwrap_err();
    assert!(error.contains("set `client_id`"), "{error}");
}

/// A server that changes the redirect of the login.
fn with_redirect(change: impl Fn(&mut Vec<(String, String)>) + Send + Sync + 'static) -> Fake {
    Fake::with(move |seen, own| {
        if seen.path != "/authorize" {
            return None;
        }
        let form = seen.form();
        let mut fields = vec![
            ("code".to_owned(), "the-code".to_owned()),
            ("state".to_owned(), form["state"].clone()),
            ("iss".to_owned(), own.to_owned()),
        ];
        change(&mut fields);
        let mut redirect = url::Url::parse(&form["redirect_uri"]).unwrap();
        redirect.query_pairs_mut().extend_pairs(fields);
        Answer::redirect(redirect)
    })
}

#[test]
fn an_answer_of_another_issuer_is_not_used() {
    type Change = fn(&mut Vec<(String, String)>);
    let cases: [(Change, &str); 4] = [
        (
            |fields| fields[2].1 = "https://evil.example".to_owned(),
            "another issuer",
        ),
        (|fields| fields[2].1.push('/'), "another issuer"),
        (|fields| drop(fields.pop()), "does not name its issuer"),
        (
            |fields| fields[0] = ("error".to_owned(), "access_denied".to_owned()),
            "refused the login: `access_denied`",
        ),
    ];
    for (change, part) in cases {
        let dir = tempfile::tempdir().unwrap();
        let fake = with_redirect(change);
        let error = log_in(&fake, config(&fake), dir.path()).unwrap_err();
        assert!(error.contains(part), "{part}: {error}");
        assert!(fake.seen("/token").is_empty());
        assert!(store(dir.path()).list().unwrap().is_empty());
    }
}

#[test]
fn a_further_scope_needs_a_further_login() {
    let fake = Fake::start();
    let dir = tempfile::tempdir().unwrap();
    let browser = Arc::new(Browser::default());
    let source = OAuth::new(config(&fake), with_browser(dir.path(), &browser));
    run(async {
        let challenge = "Bearer scope=\"read\"";
        let used = refused(&source, None, 401, challenge)
            .await
            .unwrap()
            .unwrap();
        source.accepted(&used);
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
        refused(&source, Some(&used), 403, challenge)
            .await
            .unwrap()
            .unwrap();
    });
    let scopes: Vec<_> = fake
        .seen("/authorize")
        .iter()
        .map(|seen| seen.form()["scope"].clone())
        .collect();
    assert_eq!(scopes, ["read", "read write"]);
    // The registration of the client limits its scopes, so it is registered again.
    let registered: Vec<Value> = fake
        .seen("/register")
        .iter()
        .map(|seen| serde_json::from_str(&seen.body).unwrap())
        .map(|body: Value| body["scope"].clone())
        .collect();
    assert_eq!(registered, [json!("read"), json!("read write")]);
    // Without a browser, the command is named.
    let next = OAuth::new(config(&fake), without_browser(dir.path()));
    let error = run(async {
        let used = next.current().await.unwrap().unwrap();
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"admin\"";
        refused(&next, Some(&used), 403, challenge)
            .await
            .unwrap_err()
    });
    assert!(
        error
            .0
            .contains("run `mcptest auth login calendar --scope admin`"),
        "{error}"
    );
}

#[test]
fn a_client_is_registered_once_for_all_scopes_that_the_server_lists() {
    let fake = Fake::with(|seen, own| {
        (seen.path == "/.well-known/oauth-protected-resource/mcp").then(|| {
            Answer::Json(
                200,
                json!({"resource": format!("{own}/mcp"), "authorization_servers": [own],
                       "scopes_supported": ["read", "write"]}),
            )
        })
    });
    let dir = tempfile::tempdir().unwrap();
    let browser = Arc::new(Browser::default());
    let source = OAuth::new(config(&fake), with_browser(dir.path(), &browser));
    run(async {
        let challenge = "Bearer scope=\"read\"";
        let used = refused(&source, None, 401, challenge)
            .await
            .unwrap()
            .unwrap();
        source.accepted(&used);
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
        refused(&source, Some(&used), 403, challenge)
            .await
            .unwrap()
            .unwrap();
    });
    assert_eq!(fake.seen("/register").len(), 1);
    // It keeps its redirect address.
    let pages = fake.seen("/authorize");
    assert_eq!(pages.len(), 2);
    assert_eq!(
        pages[0].form()["redirect_uri"],
        pages[1].form()["redirect_uri"]
    );
    assert_eq!(pages[1].form()["scope"], "read write");
}

#[test]
fn a_server_that_rejects_scopes_at_registration_is_asked_without_them() {
    let fake = Fake::with(|seen, _| {
        let rejects = seen.path == "/register" && seen.body.contains("\"scope\"");
        rejects.then(|| Answer::Json(400, json!({"error": "invalid_client_metadata"})))
    });
    let dir = tempfile::tempdir().unwrap();
    let mut own = config(&fake);
    own.scopes = vec!["calendar".to_owned()];
    log_in(&fake, own, dir.path()).unwrap();
    assert_eq!(fake.seen("/register").len(), 2);
}

#[test]
fn another_authorization_server_gets_no_credentials_of_the_first() {
    let second = Fake::start();
    let moved = Arc::new(AtomicUsize::new(0));
    let (flag, url) = (Arc::clone(&moved), second.url.clone());
    let fake = Fake::with(move |seen, own| {
        let is_moved = flag.load(Ordering::Relaxed) > 0;
        (is_moved && seen.path == "/.well-known/oauth-protected-resource/mcp").then(|| {
            Answer::Json(
                200,
                json!({"resource": format!("{own}/mcp"), "authorization_servers": [url]}),
            )
        })
    });
    let dir = tempfile::tempdir().unwrap();
    let browser = Arc::new(Browser::default());
    let source = OAuth::new(config(&fake), with_browser(dir.path(), &browser));
    run(async {
        let used = first(&source).await.unwrap();
        source.accepted(&used);
        moved.store(1, Ordering::Relaxed);
        refused(&source, Some(&used), 401, "Bearer")
            .await
            .unwrap()
            .unwrap();
    });
    assert_eq!(second.seen("/register").len(), 1);
    let sent: Vec<Seen> = second.seen("/token");
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].form()["grant_type"], "authorization_code");
}

#[test]
fn two_processes_share_a_refresh_token_that_can_be_used_once() {
    let valid = Mutex::new(None::<String>);
    let count = AtomicUsize::new(0);
    let fake = Fake::with(move |seen, _| {
        if seen.path != "/token" {
            return None;
        }
        let mut valid = valid.lock().unwrap();
        let form = seen.form();
        if form["grant_type"] == "refresh_token" && valid.as_ref() != form.get("refresh_token") {
            return Some(Answer::Json(400, json!({"error": "invalid_grant"})));
        }
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        *valid = Some(format!("refresh-{number}"));
        Answer::json(json!({
            "access_token": format!("access-{number}"), "token_type": "Bearer",
            "expires_in": 3600, "refresh_token": *valid,
        }))
    });
    let dir = tempfile::tempdir().unwrap();
    log_in(&fake, config(&fake), dir.path()).unwrap();
    let one = OAuth::new(config(&fake), without_browser(dir.path()));
    let two = OAuth::new(config(&fake), without_browser(dir.path()));
    run(async {
        let (first, second) = tokio::join!(one.current(), two.current());
        let (first, second) = (first.unwrap().unwrap(), second.unwrap().unwrap());
        let (one, two) = tokio::join!(
            refused(&one, Some(&first), 401, "Bearer"),
            refused(&two, Some(&second), 401, "Bearer"),
        );
        assert_eq!(token(&one.unwrap().unwrap()), "access-2");
        assert_eq!(token(&two.unwrap().unwrap()), "access-2");
    });
    assert_eq!(fake.seen("/token").len(), 2);
}

#[test]
fn a_login_that_ended_names_the_command() {
    let fake = Fake::with(|seen, _| {
        let is_refresh = seen.path == "/token" && seen.form()["grant_type"] == "refresh_token";
        is_refresh.then(|| Answer::Json(400, json!({"error": "invalid_grant"})))
    });
    let dir = tempfile::tempdir().unwrap();
    log_in(&fake, config(&fake), dir.path()).unwrap();
    let source = OAuth::new(config(&fake), without_browser(dir.path()));
    let error = run(async {
        let used = source.current().await.unwrap().unwrap();
        refused(&source, Some(&used), 401, "Bearer")
            .await
            .unwrap_err()
    });
    assert!(
        error
            .0
            .contains("log in again: `mcptest auth login calendar`"),
        "{error}"
    );
}

#[test]
fn a_logout_revokes_and_forgets() {
    let fake = Fake::start();
    let dir = tempfile::tempdir().unwrap();
    log_in(&fake, config(&fake), dir.path()).unwrap();
    let hidden = |_: &str| {};
    let store = store(dir.path());
    let none = run(store.log_out(Some(&["https://other.example".to_owned()]), &hidden)).unwrap();
    assert!(none.is_empty());
    let ended = run(store.log_out(None, &hidden)).unwrap();
    assert_eq!((ended.len(), ended[0].revoked), (1, true));
    let hints: Vec<_> = fake
        .seen("/revoke")
        .iter()
        .map(|seen| seen.form()["token_type_hint"].clone())
        .collect();
    assert_eq!(hints, ["refresh_token", "access_token"]);
    assert!(store.list().unwrap().is_empty());
    assert!(!store.path().exists());
}

#[test]
fn nothing_is_read_before_a_server_asks_if_that_is_wanted() {
    let fake = Fake::start();
    let dir = tempfile::tempdir().unwrap();
    let access = log_in(&fake, config(&fake), dir.path()).unwrap();
    let options = OAuthOptions {
        waits_for_refusal: true,
        ..without_browser(dir.path())
    };
    let source = OAuth::new(config(&fake), options);
    run(async {
        assert!(source.current().await.unwrap().is_none());
        let used = refused(&source, None, 401, "Bearer")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(token(&used), access);
    });
}
