//! HTTP proxies that the environment names. The stand-in plays the proxy.

use serde_json::{Value, json};

use crate::stand_in::{Answer, StandIn};
use crate::support::{Ran, folder, mcptest, ran};

fn suite(base_url: &str) -> tempfile::TempDir {
    let manifest = "mock_server: {name: s, tools: [{name: search, response: found}]}";
    let text = format!(
        "servers: {{s: {{command: [mcptest, mock, --tools-from, m.yml]}}}}
providers: {{mine: {{base_url: '{base_url}', stream: false}}}}
agents:
  - {{name: a, model: mine/m, servers: [s], prompt: hi, expect: [{{final_response: Hello.}}]}}
"
    );
    folder(&[("s.yml", &text), ("m.yml", manifest)])
}

fn run(dir: &tempfile::TempDir, variables: &[(&str, &str)], more: &[&str]) -> Ran {
    let mut command = mcptest(dir.path());
    command
        .args(["run", "s.yml", "--reporter", "json"])
        .args(more);
    ran(&command.envs(variables.iter().copied()).output().unwrap())
}

fn hello() -> Value {
    json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}

#[test]
fn a_plain_address_is_asked_for_at_the_proxy() {
    let proxy = StandIn::start(|_, _| Answer::ok(hello()));
    let dir = suite("http://models.test:8080/v1");
    let named = proxy.url("").replace("http://", "http://me:pr0xy%2Dword@");
    let ran = run(&dir, &[("HTTP_PROXY", &named)], &["--record"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let seen = &proxy.seen()[0];
    assert_eq!(seen.path, "http://models.test:8080/v1/chat/completions");
    assert_eq!(seen.header("host"), Some("models.test:8080"));
    assert_eq!(
        seen.header("proxy-authorization"),
        Some("Basic bWU6cHIweHktd29yZA==")
    );
    let cassette = std::fs::read_to_string(dir.path().join("cassettes/s.yml/a.json")).unwrap();
    for text in [&ran.stdout, &ran.stderr, &cassette] {
        assert!(!text.contains("pr0xy") && !text.contains("bWU6"), "{text}");
    }
}

#[test]
fn what_goes_without_a_proxy() {
    let provider = StandIn::start(|_, _| Answer::ok(hello()));
    // No server listens at port 1.
    let dead = ("HTTP_PROXY", "http://127.0.0.1:1");
    let direct = run(&suite(&provider.url("/v1")), &[dead], &[]);
    assert_eq!(direct.code, 0, "{}", direct.stdout);
    assert_eq!(provider.seen()[0].path, "/v1/chat/completions");
    let dir = suite("http://models.test/v1");
    let refused = run(
        &dir,
        &[dead, ("http_proxy", "socks5://me:s3cret-word@x")],
        &[],
    );
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stdout
            .contains("`http_proxy` names a proxy of an unsupported kind"),
        "{}",
        refused.stdout
    );
    assert!(!refused.stdout.contains("s3cret-word"));
}

#[test]
fn a_proxy_that_refuses_is_named_and_not_asked_again() {
    let proxy = StandIn::start(|_, _| {
        Answer::Json(
            407,
            vec![("proxy-authenticate", "Basic".to_owned())],
            json!({}),
        )
    });
    let host = proxy.url("").replace("http://", "");
    for (variable, base_url, asked_for) in [
        (
            "HTTP_PROXY",
            "http://models.test/v1",
            "http://models.test/v1/chat/completions",
        ),
        ("HTTPS_PROXY", "https://models.test/v1", "models.test:443"),
    ] {
        let before = proxy.seen().len();
        let ran = run(&suite(base_url), &[(variable, &host)], &[]);
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        let words = format!(
            "the proxy {host} ({variable}) refused with 407 Proxy Authentication Required; it requires a name and a password"
        );
        assert!(ran.stdout.contains(&words), "{}", ran.stdout);
        let seen = proxy.seen();
        assert_eq!(
            (seen.len(), seen[before].path.as_str()),
            (before + 1, asked_for)
        );
    }
}

#[test]
fn a_server_at_an_address_is_reached_through_the_proxy_too() {
    let proxy = StandIn::start(|_, _| Answer::Json(403, Vec::new(), json!({})));
    let dir = folder(&[(
        "s.yml",
        "servers: {s: {url: 'https://tools.test/mcp'}}\ntools: [{name: t, server: s, tool: x}]\n",
    )]);
    let ran = run(&dir, &[("HTTPS_PROXY", &proxy.url(""))], &[]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stdout.contains(
            "refused with 403 Forbidden; NO_PROXY lists hosts that are reached without it"
        ),
        "{}",
        ran.stdout
    );
    assert_eq!(proxy.seen()[0].path, "tools.test:443");
}
