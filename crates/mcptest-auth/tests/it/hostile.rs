//! Authorization servers that are wrong, slow, endless or malicious. Each ends as a clear error in
//! bounded time.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mcptest_auth::{AuthConfig, AuthTimeouts, OAuth, OAuthOptions, StepOutcome};
use serde_json::{Value, json};

use crate::fake::{Answer, Fake, Seen, first, metadata, oauth, options, refused, run};

const PRM: &str = "/.well-known/oauth-protected-resource/mcp";
const PRM_ROOT: &str = "/.well-known/oauth-protected-resource";
const AS: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// The error of client credentials at a server that answers some requests in its own way.
fn error_of(
    handler: impl Fn(&Seen, &str) -> Option<Answer> + Send + Sync + 'static,
) -> (String, Fake) {
    let fake = Fake::with(handler);
    let source = oauth(fake.client_credentials());
    let error = run(async { first(&source).await.unwrap_err() });
    let failed = source.steps();
    assert!(
        failed
            .iter()
            .any(|step| step.outcome == StepOutcome::Failed),
        "{failed:?}"
    );
    (error.0, fake)
}

/// The error if one address answers with this.
fn error_at(path: &'static str, answer: fn(&str) -> Answer) -> (String, Fake) {
    error_of(move |seen, own| (seen.path == path).then(|| answer(own)))
}

#[test]
fn metadata_for_another_resource_is_not_used() {
    let (error, fake) = error_at(PRM, |own| {
        Answer::Json(
            200,
            json!({"resource": "https://evil.example/mcp", "authorization_servers": [own]}),
        )
    });
    assert!(
        error.contains("it is for another resource, https://evil.example/mcp"),
        "{error}"
    );
    assert!(fake.seen("/token").is_empty());
    assert!(fake.seen(AS).is_empty());
}

#[test]
fn metadata_of_another_issuer_is_not_used() {
    let (error, fake) = error_at(AS, |own| {
        let mut metadata = metadata(own);
        metadata["issuer"] = "https://evil.example".into();
        Answer::Json(200, metadata)
    });
    assert!(
        error.contains("it is the metadata of another issuer, https://evil.example"),
        "{error}"
    );
    assert!(fake.seen("/token").is_empty());
}

#[test]
fn an_issuer_of_the_settings_is_not_replaced_by_the_server() {
    let evil = Fake::start();
    let url = evil.url.clone();
    let fake = Fake::with(move |seen, own| {
        (seen.path == PRM).then(|| {
            Answer::Json(
                200,
                json!({"resource": format!("{own}/mcp"), "authorization_servers": [url]}),
            )
        })
    });
    let config = AuthConfig {
        issuer: Some(fake.url.clone()),
        ..fake.client_credentials()
    };
    let source = oauth(config);
    let error = run(async { refused(&source, None, 401, "Bearer").await.unwrap_err() });
    assert!(error.0.contains("which `issuer` names"), "{error}");
    assert!(evil.paths().is_empty());
}

#[test]
fn addresses_elsewhere_are_not_requested() {
    for (servers, part) in [
        (json!(["http://auth.example.com"]), "it must use https"),
        (json!(["ftp://auth.example.com"]), "its scheme is `ftp`"),
        (json!(["not a url"]), "not a valid URL"),
        (json!([""]), "not a valid URL"),
        (json!([]), "set `issuer`"),
        (json!("http://127.0.0.1:1"), "is not a list of strings"),
        (json!([7]), "is not a list of strings"),
        (json!(["https://a@127.0.0.1/"]), "a user name"),
    ] {
        let (error, _) = error_of(move |seen, own| {
            (seen.path == PRM).then(|| {
                let resource = format!("{own}/mcp");
                Answer::Json(
                    200,
                    json!({"resource": resource, "authorization_servers": servers}),
                )
            })
        });
        assert!(error.contains(part), "{part}: {error}");
    }
    for endpoint in ["http://auth.example.com/token", "file:///etc/passwd", ""] {
        let (error, fake) = error_of(move |seen, own| {
            let mut metadata = metadata(own);
            metadata["token_endpoint"] = endpoint.into();
            (seen.path == AS).then_some(Answer::Json(200, metadata))
        });
        assert!(error.contains("its `token_endpoint`"), "{error}");
        assert!(fake.seen("/token").is_empty());
    }
}

#[test]
fn the_address_of_metadata_in_a_challenge_is_checked() {
    let fake = Fake::start();
    for named in [
        "http://169.254.169.254/latest/meta-data",
        "http://metadata.internal/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:25/",
    ] {
        let source = oauth(fake.client_credentials());
        let challenge = format!("Bearer resource_metadata=\"{named}\"");
        let error = run(async { refused(&source, None, 401, &challenge).await.unwrap_err() });
        assert!(error.0.contains("which is not requested"), "{error}");
    }
    assert!(fake.paths().is_empty());
}

#[test]
fn redirects_end() {
    // To itself.
    let (error, fake) = error_at(AS, |own| {
        Answer::Text(302, vec![("location", format!("{own}{AS}"))], String::new())
    });
    assert!(error.contains("more than 3 redirects"), "{error}");
    assert_eq!(fake.seen(AS).len(), 4);
    // To an address that is not allowed.
    for (target, part) in [
        ("http://169.254.169.254/", "it must use https"),
        ("file:///etc/passwd", "its scheme is `file`"),
    ] {
        let (error, _) = error_of(move |seen, _| {
            let redirect = Answer::Text(301, vec![("location", target.to_owned())], String::new());
            (seen.path == PRM).then_some(redirect)
        });
        assert!(
            error.contains("it redirects to") && error.contains(part),
            "{error}"
        );
    }
    let (error, _) = error_at(PRM, |_| Answer::Text(307, Vec::new(), String::new()));
    assert!(error.contains("without a target"), "{error}");
}

#[test]
fn a_redirect_is_not_followed_with_a_secret() {
    let evil = Fake::start();
    let url = evil.url.clone();
    let (error, _) = error_of(move |seen, _| {
        let target = vec![("location", format!("{url}/token"))];
        (seen.path == "/token").then(|| Answer::Text(307, target, String::new()))
    });
    assert!(
        error.contains("a redirect is not followed with credentials"),
        "{error}"
    );
    assert!(evil.paths().is_empty());
}

#[test]
fn metadata_of_any_size_is_bounded() {
    // More than the limit, with and without a length.
    let (error, _) = error_at(AS, |own| {
        let mut metadata = metadata(own);
        metadata["filler"] = "x".repeat(1_000_000).into();
        Answer::Json(200, metadata)
    });
    assert!(error.contains("more than 256 KiB"), "{error}");
    let (error, _) = error_at(PRM, |_| {
        Answer::Raw(Box::new(|stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b' '; 65536]).is_ok() {}
        }))
    });
    assert!(error.contains("more than 256 KiB"), "{error}");
    // Deep nesting does not end the program.
    let (error, _) = error_at(AS, |_| {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        Answer::Text(200, Vec::new(), deep)
    });
    assert!(error.contains("it publishes no metadata"), "{error}");
    // Many and long entries.
    for value in [json!(vec!["s"; 1001]), json!(["s".repeat(9000)])] {
        let (error, _) = error_of(move |seen, own| {
            let mut metadata = metadata(own);
            metadata["scopes_supported"] = value.clone();
            (seen.path == AS).then_some(Answer::Json(200, metadata))
        });
        assert!(error.contains("its `scopes_supported`"), "{error}");
    }
}

/// Writes a byte now and then, and never ends.
fn drip(stream: &mut TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{");
    while stream.write_all(b" ").is_ok() {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_drips_ends_in_bounded_time() {
    for path in [PRM, AS, "/token"] {
        let fake =
            Fake::with(move |seen, _| (seen.path == path).then(|| Answer::Raw(Box::new(drip))));
        let options = OAuthOptions {
            timeouts: AuthTimeouts {
                exchange: Duration::from_millis(300),
                ..AuthTimeouts::default()
            },
            ..options()
        };
        let source = OAuth::new(fake.client_credentials(), options);
        let began = Instant::now();
        let error = run(async { first(&source).await.unwrap_err() });
        assert!(
            error.0.contains("no complete answer within 0.3 s"),
            "{path}: {error}"
        );
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn many_slow_answers_end_together() {
    // Each answer is in time, and there would be many.
    let fake = Fake::with(|seen, own| {
        thread::sleep(Duration::from_millis(150));
        let target = format!("{own}{}x", seen.path);
        Answer::redirect(target)
    });
    let options = OAuthOptions {
        timeouts: AuthTimeouts {
            obtain: Duration::from_millis(400),
            ..AuthTimeouts::default()
        },
        ..options()
    };
    let source = OAuth::new(fake.client_credentials(), options);
    let error = run(async { first(&source).await.unwrap_err() });
    assert_eq!(error.0, "no token within 0.4 s");
}

#[test]
fn token_responses_without_a_token_are_errors() {
    let cases: [(Value, &str); 8] = [
        (json!({}), "it has no `access_token`"),
        (json!({"access_token": null}), "it has no `access_token`"),
        (
            json!({"access_token": "leaked-token"}),
            "it has no `token_type`",
        ),
        (
            json!({"access_token": ["leaked-token"], "token_type": "Bearer"}),
            "wrong type",
        ),
        (json!("leaked-token"), "it is not a JSON object"),
        (
            json!({"access_token": "", "token_type": "Bearer"}),
            "cannot carry",
        ),
        (
            json!({"access_token": "leaked-token", "token_type": "mac"}),
            "`token_type` is `mac`",
        ),
        (
            json!({"error": "server_error", "error_description": "at 200"}),
            "`server_error`: at 200",
        ),
    ];
    for (response, part) in cases {
        let shown = response.to_string();
        let (error, _) = error_of(move |seen, _| {
            (seen.path == "/token").then(|| Answer::Json(200, response.clone()))
        });
        assert!(error.contains(part), "{shown}: {error}");
        assert!(!error.contains("leaked-token"), "{error}");
    }
    for (status, body, part) in [
        (200, "", "empty response body"),
        (200, "<html>", "it is not a JSON object"),
        (400, "", "empty error response"),
        (404, "<html>no", "not a token response"),
        (500, "boom", "HTTP 500 Internal Server Error: boom"),
    ] {
        let (error, _) = error_of(move |seen, _| {
            (seen.path == "/token").then(|| Answer::Text(status, Vec::new(), body.to_owned()))
        });
        assert!(error.contains(part), "{status} {body}: {error}");
    }
}

#[test]
fn terminal_escapes_of_a_server_do_not_reach_a_message() {
    let (error, _) = error_of(|seen, _| {
        (seen.path == "/token").then(|| {
            Answer::Json(
                400,
                json!({"error": "x\u{1b}[31m", "error_description": "a\nb\u{202e}"}),
            )
        })
    });
    assert!(
        error.contains("x\\u{1b}[31m") && error.contains("a\\nb\\u{202e}"),
        "{error:?}"
    );
    let (error, _) = error_of(|seen, own| {
        (seen.path == PRM).then(|| {
            let resource = format!("{own}/mcp");
            Answer::Json(
                200,
                json!({"resource": resource, "authorization_servers": ["\u{1b}]0;x\u{7}"]}),
            )
        })
    });
    assert!(!error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn a_connection_that_breaks_is_an_error() {
    let (error, _) = error_at("/token", |_| {
        Answer::Raw(Box::new(|stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"acc");
        }))
    });
    assert!(error.contains("the body was interrupted"), "{error}");
    let (error, _) = error_at("/token", |_| Answer::Raw(Box::new(|_| {})));
    assert!(error.contains("the connection was lost"), "{error}");
    let (error, _) = error_at("/token", |_| {
        Answer::Raw(Box::new(|stream| {
            let _ = stream.write_all(b"NOT HTTP AT ALL\r\n\r\n");
        }))
    });
    assert!(error.contains("no token"), "{error}");
}

#[test]
fn a_web_application_that_answers_everything_has_no_metadata() {
    // As before 2025-06-18, the server itself is asked then.
    let fake = Fake::with(|seen, _| {
        (seen.path.starts_with("/.well-known"))
            .then(|| Answer::Text(200, Vec::new(), "<!doctype html>".to_owned()))
    });
    let source = oauth(fake.client_credentials());
    run(async { first(&source).await.unwrap() });
    assert_eq!(fake.paths(), [PRM, PRM_ROOT, AS, OPENID, "/token"]);
    let skipped = source
        .steps()
        .iter()
        .filter(|step| step.outcome == StepOutcome::Skipped)
        .count();
    assert_eq!(skipped, 5);
}

#[test]
fn the_server_of_2025_03_26_has_metadata_at_its_root() {
    let fake = Fake::with(|seen, _| {
        (seen.path.starts_with(PRM_ROOT)).then(|| Answer::Text(404, Vec::new(), String::new()))
    });
    let source = oauth(fake.client_credentials());
    run(async { first(&source).await.unwrap() });
    assert_eq!(fake.paths(), [PRM, PRM_ROOT, AS, "/token"]);
    // The resource is the server's address.
    assert_eq!(fake.seen("/token")[0].form()["resource"], fake.server());
}

#[test]
fn an_issuer_with_a_path_is_asked_at_three_places() {
    let fake = Fake::with(|seen, own| match seen.path.as_str() {
        PRM => Answer::json(json!({
            "resource": format!("{own}/mcp"), "authorization_servers": [format!("{own}/tenant")],
        })),
        "/tenant/.well-known/openid-configuration" => {
            let mut metadata = metadata(own);
            metadata["issuer"] = format!("{own}/tenant").into();
            Answer::json(metadata)
        }
        AS | OPENID => panic!("the metadata of another issuer was requested"),
        _ => None,
    });
    run(async { first(&oauth(fake.client_credentials())).await.unwrap() });
    assert_eq!(
        fake.paths()[1..4],
        [
            format!("{AS}/tenant"),
            format!("{OPENID}/tenant"),
            "/tenant/.well-known/openid-configuration".to_owned(),
        ]
    );
}

#[test]
fn an_unreachable_authorization_server_is_named() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let issuer = url.clone();
    let (error, _) = error_of(move |seen, own| {
        (seen.path == PRM).then(|| {
            Answer::Json(
                200,
                json!({"resource": format!("{own}/mcp"), "authorization_servers": [issuer]}),
            )
        })
    });
    assert!(
        error.contains(&url) && error.contains("cannot connect"),
        "{error}"
    );
}

#[test]
fn requirements_are_explained_without_a_grant() {
    let fake = Fake::with(|seen, own| {
        let mut metadata = metadata(own);
        metadata["grant_types_supported"] = json!(["authorization_code", "client_credentials"]);
        (seen.path == AS).then_some(Answer::Json(200, metadata))
    });
    let config = AuthConfig::new(&fake.server(), mcptest_auth::Grant::Undeclared);
    let source = Arc::new(oauth(config));
    let error = run(async {
        let challenge = "Bearer scope=\"read\"";
        refused(&source, None, 401, challenge).await.unwrap_err()
    });
    assert_eq!(
        error.0,
        format!(
            "the server requires a token of {}, with the scopes read",
            fake.url
        )
    );
    let advice = source.advice().join("\n");
    assert!(advice.contains("type: client_credentials"), "{advice}");
    assert!(advice.contains("type: authorization_code"), "{advice}");
    assert!(advice.contains(&format!("mcptest auth login --url {}", fake.server())));
    assert!(fake.seen("/token").is_empty());
}
