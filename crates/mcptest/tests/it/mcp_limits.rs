//! `mcptest mcp`: what it does not reach, start, write, show and serve.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::mcp::{Client, MAX_WAIT};
use crate::support::{folder, mcptest};

#[test]
fn nothing_outside_of_the_root_is_reached() {
    let outer = folder(&[("secret.yml", "name: outside\n")]);
    let project = outer.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::os::unix::fs::symlink("../secret.yml", project.join("link.yml")).unwrap();
    let mut client = Client::start(outer.path(), &["--root", "project"]);
    let absolute = outer.path().join("secret.yml");
    for (path, words) in [
        ("../secret.yml", "outside of the root"),
        (absolute.to_str().unwrap(), "outside of the root"),
        ("/etc/passwd", "outside of the root"),
        ("link.yml", "symbolic link"),
    ] {
        for (tool, arguments) in [
            ("validate", json!({"suite": path})),
            ("run", json!({"suite": path})),
            ("doctor", json!({"catalog": path})),
            ("score", json!({"suite": path, "traces": ["x"]})),
            ("report", json!({"run": path})),
            ("report", json!({"compare_with": path})),
        ] {
            let message = client.bad(tool, arguments);
            assert!(message.contains(words), "{tool} {path}: {message}");
        }
    }
}

/// A suite that starts another program, which leaves a file behind.
const FOREIGN: &str = "servers: {s: {command: [sh, -c, 'touch started']}}
tools: [{name: t, server: s, tool: x}]
";

#[test]
fn a_read_only_server_starts_only_mocks_and_writes_nothing() {
    let mock = "servers: {s: {command: [mcptest, mock, --preset, tidy]}}
tools: [{name: t, server: s, tool: get_ticket, args: {number: 1042}}]
";
    let recording = mock.replace("tidy]", "tidy, --record, started]");
    let preloaded = mock.replace("tidy]", "tidy], env: {LD_PRELOAD: x.so}");
    let agent = "servers: {s: {command: [mcptest, mock, --preset, tidy]}}
agents: [{name: t, prompt: x, servers: [s], agent: {command: [touch, started]}, expect: [{tool_names: {length: 0}}]}]
";
    let dir = folder(&[
        ("mock.yml", mock),
        ("foreign.yml", FOREIGN),
        ("recording.yml", &recording),
        ("preloaded.yml", &preloaded),
        ("agent.yml", agent),
        (
            "address.yml",
            "servers: {s: {url: 'http://127.0.0.1:1/mcp'}}\ntools: [{name: t, server: s, tool: x}]\n",
        ),
    ]);
    let before = std::fs::read_dir(dir.path()).unwrap().count();
    let mut client = Client::start(dir.path(), &[]);
    assert_eq!(
        client.good("run", json!({"suite": "mock.yml"}))["verdict"],
        "pass"
    );
    for suite in [
        "foreign.yml",
        "recording.yml",
        "preloaded.yml",
        "agent.yml",
        "address.yml",
    ] {
        let message = client.bad("run", json!({"suite": suite}));
        assert!(message.contains("--allow-run"), "{suite}: {message}");
    }
    for arguments in [
        json!({"suite": "foreign.yml"}),
        json!({"command": ["touch", "started"]}),
        json!({"url": "http://127.0.0.1:1/mcp"}),
    ] {
        let message = client.bad("doctor", arguments);
        assert!(message.contains("--allow-run"), "{message}");
    }
    assert_eq!(client.leave(), 0);
    let after = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(before, after);
}

#[test]
fn with_permission_anything_is_run_and_kept_in_the_history() {
    let dir = folder(&[("foreign.yml", FOREIGN)]);
    let mut client = Client::start(dir.path(), &["--allow-run"]);
    let judged = client.good("run", json!({"suite": "foreign.yml", "detail": "failures"}));
    assert_eq!(judged["verdict"], "error", "{judged}");
    assert!(dir.path().join("started").exists());
    let again = client.good("report", json!({"run": judged["run_id"]}));
    assert_eq!(again["verdict"], "error", "{again}");
    let report = client.good(
        "doctor",
        json!({"command": ["mcptest", "mock", "--preset", "tidy"]}),
    );
    assert_eq!(report["servers"][0]["startable"], true, "{report}");
}

#[test]
fn results_are_bounded_and_marked_as_truncated() {
    let mut suite = "servers: {s: {command: [mcptest, mock, --preset, tidy]}}\ntools:\n".to_owned();
    for number in 0..400 {
        let name = format!("{number} {}", "long ".repeat(60));
        suite.push_str(&format!(
            "  - {{name: '{name}', server: s, tool: get_ticket, args: {{number: {number}}}, expect: [result.text: nothing]}}\n"
        ));
    }
    let broken: String = (0..400)
        .map(|number| format!("wrong_{number}: 1\n"))
        .collect();
    let dir = folder(&[("suite.yml", &suite), ("broken.yml", &broken)]);
    let mut client = Client::start(dir.path(), &[]);
    for (tool, arguments) in [
        ("validate", json!({"suite": "suite.yml"})),
        ("validate", json!({"suite": "broken.yml"})),
        ("run", json!({"suite": "suite.yml", "detail": "all"})),
        ("run", json!({"suite": "suite.yml", "detail": "failures"})),
    ] {
        let result = client.good(tool, arguments.clone());
        let size = result.to_string().len();
        assert!(size <= 24 * 1024, "{tool} {arguments}: {size}");
        assert!(
            result["omitted"].as_u64().unwrap() > 0,
            "{tool} {arguments}"
        );
        assert!(result["notice"].is_string(), "{tool} {arguments}");
    }
    let short = client.good("run", json!({"suite": "suite.yml"}));
    assert!(short.to_string().len() < 6000, "{short}");
}

/// All strings in a value.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn secrets_and_escapes_do_not_leave() {
    let secret = "sk-live-0123456789abcdef";
    let suite = "servers: {s: {command: [mcptest, mock, --preset, hostile]}}
tools:
  - {name: 'with ${SERVICE_API_KEY}', server: s, tool: nothing, args: {key: '${SERVICE_API_KEY}'}}
  - {name: \"bell \\a and \\u202e\", server: s, tool: nothing}
";
    let dir = folder(&[("mcptest.yml", suite)]);
    let mut command = mcptest(dir.path());
    let mut client = Client::with(command.arg("mcp").env("SERVICE_API_KEY", secret));
    for (tool, arguments) in [
        ("validate", json!({})),
        ("run", json!({"detail": "all"})),
        ("run", json!({"filter": secret})),
    ] {
        let result = client.call(tool, arguments);
        let text = result.to_string();
        assert!(!text.contains(secret), "{tool}: {text}");
        for text in strings(&result) {
            let hidden = |c: char| c == '\u{7}' || c == '\u{1b}' || c == '\u{202e}';
            assert!(!text.contains(hidden), "{tool}: {text:?}");
        }
    }
    for note in &client.notes {
        assert!(!note.to_string().contains(secret), "{note}");
    }
    // Names that are unknown are quoted.
    let unknown = [
        client.request("tools/call", json!({"name": secret, "arguments": {}})),
        client.request(secret, json!({})),
    ];
    for answer in unknown {
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("[redacted]"), "{answer}");
        assert!(!answer.to_string().contains(secret), "{answer}");
    }
}

/// Sends a request over HTTP and returns the head of the answer.
fn status(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

#[test]
fn over_http_only_local_names_and_pages_are_served() {
    let dir = folder(&[]);
    let mut child = mcptest(dir.path())
        .args(["mcp", "--http", "0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stderr = child.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on http://").unwrap();
    let address = url.strip_suffix("/mcp").unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let post = |path: &str, headers: &str| {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        status(address, &request)
    };
    for (path, headers, wanted) in [
        ("/mcp", "Host: localhost\r\n", "HTTP/1.1 200"),
        (
            "/mcp",
            "Host: localhost\r\nOrigin: http://localhost:3000\r\n",
            "HTTP/1.1 200",
        ),
        ("/mcp", "Host: evil.example\r\n", "HTTP/1.1 403"),
        (
            "/mcp",
            "Host: localhost\r\nOrigin: http://evil.example\r\n",
            "HTTP/1.1 403",
        ),
        (
            "/mcp",
            "Host: localhost\r\nOrigin: null\r\n",
            "HTTP/1.1 403",
        ),
        ("/other", "Host: localhost\r\n", "HTTP/1.1 404"),
    ] {
        assert_eq!(post(path, headers), wanted, "{path} {headers}");
    }
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
