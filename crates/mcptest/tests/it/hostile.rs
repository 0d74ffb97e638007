//! Hostile clients and servers: a mock that clients try to exhaust, processes that outlive a kill,
//! malformed answers, characters that steer a terminal.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{HttpMock, folder, mcptest, run};

const MANIFEST: &str = "mock_server: {name: m, tools: [{name: t, response: ok}]}\n";

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

fn address(url: &str) -> String {
    url.trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .to_owned()
}

/// Sends raw bytes and returns the status line, within five seconds.
fn status(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn initialize(address: &str) -> String {
    let length = INITIALIZE.len();
    status(
        address,
        &format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{INITIALIZE}"
        ),
    )
}

#[test]
fn issue_14_a_second_host_and_an_oversized_body_are_rejected_immediately() {
    let dir = folder(&[("m.yml", MANIFEST)]);
    let mock = HttpMock::start(dir.path(), "m.yml");
    let address = address(&mock.url);
    let two_hosts =
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(status(&address, two_hosts), "HTTP/1.1 400 Bad Request");
    let absolute =
        "POST http://evil.example/mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(status(&address, absolute), "HTTP/1.1 403 Forbidden");
    // The body never comes.
    let large = "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n\
                 content-type: application/json\r\ncontent-length: 17000000\r\n\r\n";
    assert_eq!(status(&address, large), "HTTP/1.1 413 Payload Too Large");
    assert_eq!(initialize(&address), "HTTP/1.1 200 OK");
}

/// A mock that can open few files.
struct Limited {
    child: Child,
    address: String,
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn issue_14_a_mock_without_free_descriptors_keeps_serving() {
    let dir = folder(&[("m.yml", MANIFEST)]);
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -n 32; exec \"$0\" \"$@\""])
        .args([
            env!("CARGO_BIN_EXE_mcptest"),
            "mock",
            "--tools-from",
            "m.yml",
        ])
        .args(["--http", "0"])
        .current_dir(dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stderr = child.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut line).unwrap();
    let mock = Limited {
        child,
        address: address(line.trim().trim_start_matches("listening on ")),
    };
    let held: Vec<TcpStream> = (0..60)
        .map(|_| TcpStream::connect(&mock.address).unwrap())
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    drop(held);
    assert_eq!(initialize(&mock.address), "HTTP/1.1 200 OK");
}

#[test]
#[ignore = "it waits for 30 seconds"]
fn issue_14_a_connection_without_a_request_is_closed() {
    let dir = folder(&[("m.yml", MANIFEST)]);
    let mock = HttpMock::start(dir.path(), "m.yml");
    let mut stream = TcpStream::connect(address(&mock.url)).unwrap();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: ").unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(40)))
        .unwrap();
    let began = Instant::now();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(began.elapsed() > Duration::from_secs(25));
}

/// The processes that run a shell script.
fn running(script: &Path) -> Vec<u32> {
    let expected = format!("sh\0{}\0", script.display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let pid = entry.file_name().to_string_lossy().parse().ok()?;
        (line == expected.as_bytes()).then_some(pid)
    });
    pids.collect()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn issue_14_a_killed_mcptest_leaves_nothing_for_long() {
    let dir = folder(&[("m.yml", MANIFEST)]);
    let (child, grandchild) = (
        dir.path().join("child.sh"),
        dir.path().join("grandchild.sh"),
    );
    std::fs::write(&grandchild, "sleep 300\n:\n").unwrap();
    let script = format!("setsid sh {} &\nsleep 300\n:\n", grandchild.display());
    std::fs::write(&child, script).unwrap();
    let mut killed = mcptest(dir.path())
        .args(["doctor", "--", "sh"])
        .arg(&child)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("both run", || {
        running(&child).len() == 1 && running(&grandchild).len() == 1
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_until("the direct child is gone", || running(&child).is_empty());
    // The grandchild may be gone already: every mcptest that starts a server ends leftovers, also
    // that of another test. A server that ends immediately gives no time to look for them while it
    // runs.
    let next = run(dir.path(), &["list", "--", "false"]);
    assert_eq!(next.code, 2, "{}", next.stderr);
    wait_until("the rest is gone", || running(&grandchild).is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_a_server_detached_without_marks_ends_with_mcptest() {
    let manifest = "mock_server: {name: s, tools: []}";
    let dir = folder(&[("m.yml", manifest)]);
    let (server, orphan) = (dir.path().join("server.sh"), dir.path().join("orphan.sh"));
    std::fs::write(&orphan, "touch started\nsleep 300\n:\n").unwrap();
    let script = format!(
        "(cd {} && exec setsid env -i PATH=$PATH sh {} &)\n\
         while [ ! -e started ]; do sleep 0.05; done\n\
         exec {} mock --tools-from m.yml\n",
        dir.path().display(),
        orphan.display(),
        env!("CARGO_BIN_EXE_mcptest"),
    );
    std::fs::write(&server, script).unwrap();
    let listed = run(dir.path(), &["list", "--", "sh", "server.sh"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(dir.path().join("started").exists());
    wait_until("the detached process is gone", || {
        running(&orphan).is_empty()
    });
}

/// A server whose tool result is malformed.
const BAD_SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "t", "description": "Returns t.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = json.loads(sys.argv[1])
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;

#[test]
fn issue_14_a_malformed_tool_result_is_an_error_verdict() {
    let suite = r#"
servers:
  s: {command: [python3, bad.py, 'RESULT']}
agents:
  - name: agent
    model: builtin/scripted
    servers: [s]
    prompt: go
    script: [[{calls: [{tool: s.t, args: {}}]}, {say: done}]]
tools:
  - {name: direct, server: s, tool: t, args: {}}
"#;
    for result in [
        r#""x""#,
        "5",
        r#"{"content":"boom"}"#,
        r#"{"content":[],"isError":"yes"}"#,
    ] {
        let suite = suite.replace("RESULT", result);
        let dir = folder(&[("bad.py", BAD_SERVER), ("s.yml", &suite)]);
        let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
        assert_eq!(ran.code, 2, "{result}: {}{}", ran.stdout, ran.stderr);
        let report = ran.json();
        for test in report["tests"].as_array().unwrap() {
            assert_eq!(test["verdict"], "error", "{result}: {test:#}");
        }
        assert!(
            ran.stdout.contains("the tool result is malformed"),
            "{result}"
        );
    }
}

#[test]
fn issue_14_messages_and_json_cannot_steer_a_terminal() {
    let suite = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\n\
                 agents: [{servers: [s], name: \"a\\u009b31m\\u202e\", model: builtin/scripted, prompt: x, \
                 script: [[{say: y}]], expect: [{final_response: {exact: y}}]}]\n";
    let dir = folder(&[
        ("s.yml", suite),
        ("m.yml", MANIFEST),
        ("bad.json", "{\"\u{1b}[31m\u{9b}\": \u{1b}}"),
    ]);
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    let hostile = |text: &str| text.contains(['\u{1b}', '\u{9b}', '\u{202e}']);
    assert!(!hostile(&ran.stdout), "{}", ran.stdout);
    assert!(ran.stdout.contains("a\\u009b31m\\u202e"), "{}", ran.stdout);
    let invalid = "agents: [{name: \"a\\u009b31m\\u202e\", model: builtin/lexical, prompt: x}]\n";
    std::fs::write(dir.path().join("invalid.yml"), invalid).unwrap();
    // A report with status lines that somebody else wrote.
    let mut report = ran.json();
    report["tests"][0]["status_lines"] = serde_json::json!(["\u{1b}[2J\u{9b}2J\u{202e}"]);
    std::fs::write(dir.path().join("r.json"), report.to_string()).unwrap();
    for args in [
        &["report", "bad.json"][..],
        &["validate", "invalid.yml"],
        &["report", "\u{1b}[31m.json"],
        &["report", "merge", "bad.json"],
        &["report", "merge", "\u{1b}[31m.json", "r.json"],
        &["report", "merge", "r.json"],
        &["report", "r.json"],
    ] {
        let ran = run(dir.path(), args);
        assert!(!hostile(&ran.stderr), "{args:?}: {}", ran.stderr);
        assert!(!hostile(&ran.stdout), "{args:?}: {}", ran.stdout);
    }
}

#[test]
fn usage_errors_and_pins_show_hidden_characters() {
    let hidden = "x\u{202e}\u{9b}y";
    let tools = serde_json::json!({"tools": [{"name": "t", "description": hidden}]});
    let dir = folder(&[("tools.json", &tools.to_string())]);
    let usage = run(dir.path(), &["schema", hidden]);
    assert_eq!(usage.code, 2);
    assert!(
        usage.stderr.contains("x\\u202e\\u009by"),
        "{}",
        usage.stderr
    );
    let pinned = run(
        dir.path(),
        &["doctor", "--tools-from", "tools.json", "--pin", "pin.json"],
    );
    let pins = std::fs::read_to_string(dir.path().join("pin.json")).unwrap();
    assert!(
        pins.contains("x\\u202e\\u009by"),
        "{pins}\n{}",
        pinned.stderr
    );
    // The pins are those of the same texts.
    let again = run(
        dir.path(),
        &["doctor", "--tools-from", "tools.json", "--pin", "pin.json"],
    );
    assert!(!again.stdout.contains("SEC-014"), "{}", again.stdout);
}
