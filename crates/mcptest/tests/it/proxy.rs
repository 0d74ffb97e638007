//! `mcptest proxy`: a client that knows nothing of it, a server behind it, and the trace of what
//! went through.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{HttpMock, folder, mark, mcptest, ran, run};

const WEB: &str = "mock_server: {name: web, tools: [{name: search, description: look it up, input_schema: {type: object}, response: found}, {name: fetch, description: get a page, input_schema: {type: object}, response: page}]}\n";

struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Session {
    fn start(dir: &Path, args: &[&str]) -> Self {
        let mut child = mcptest(dir)
            .arg("proxy")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.receive()
    }

    fn open(&mut self) {
        let answer = self.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
        assert_eq!(answer["result"]["serverInfo"]["name"], "web");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let listed = self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 2);
    }

    fn end(mut self) -> (i32, String) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let output = ran(&self.child.wait_with_output().unwrap());
        assert_eq!(output.stderr, "");
        (output.code, rest)
    }
}

fn call(id: u32, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"q": "x"}}})
}

fn trace(dir: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join("t.json")).unwrap()).unwrap()
}

/// The file follows the calls during the session.
fn trace_with_results(dir: &Path, count: usize) -> Value {
    let began = Instant::now();
    loop {
        let trace = trace(dir);
        if trace["tool_results"].as_array().map_or(0, Vec::len) >= count {
            return trace;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{trace}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const MOCK: [&str; 5] = ["--", "mcptest", "mock", "--tools-from", "web.yml"];

fn with_mock<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &MOCK].concat()
}

#[test]
fn what_it_records_can_be_scored() {
    let suite = "agents: [{name: a, servers: [web], trajectory: {mode: strict, calls: [{name: search}, {name: nope}]}}]\n";
    let dir = folder(&[("web.yml", WEB), ("s.yml", suite)]);
    let mut session = Session::start(
        dir.path(),
        &with_mock(&["--record", "t.json", "--server", "web", "--test", "a"]),
    );
    session.open();
    assert_eq!(
        session.ask(&call(2, "search"))["result"]["content"][0]["text"],
        "found"
    );
    assert!(session.ask(&call(3, "nope")).to_string().contains("nope"));
    // Before the end, too: a proxy that is killed leaves what it has seen.
    trace_with_results(dir.path(), 2);
    assert_eq!(session.end(), (0, String::new()));
    let trace = trace(dir.path());
    assert_eq!(trace["test"], "a");
    assert_eq!(
        trace["tool_calls"],
        json!([
            {"id": 2, "name": "search", "server": "web", "args": {"q": "x"}},
            {"id": 3, "name": "nope", "server": "web", "args": {"q": "x"}},
        ])
    );
    assert_eq!(
        trace["tool_results"][0],
        json!({"call_id": 2, "is_error": false, "content": [{"type": "text", "text": "found"}]})
    );
    assert_eq!(trace["tool_results"][1]["is_error"], true);
    assert_eq!(trace["catalog"][1]["name"], "fetch");
    let scored = run(dir.path(), &["score", "s.yml", "--trace", "t.json"]);
    assert_eq!(scored.code, 0, "{}{}", scored.stdout, scored.stderr);
}

#[test]
fn bytes_pass_as_they_are() {
    let dir = folder(&[]);
    let mut bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    bytes.extend_from_slice(
        b"\r\n\n  {\"jsonrpc\" : \"2.0\",\t\"id\":1.0 , \"method\":\"tools/call\"}\nno newline",
    );
    let mut child = mcptest(dir.path())
        .args(["proxy", "--record", "t.json", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    assert!(
        output.stdout == bytes,
        "{} of {} bytes",
        output.stdout.len(),
        bytes.len()
    );
}

#[test]
fn a_lost_call_and_a_tool_that_comes_back() {
    let dir = folder(&[("web.yml", WEB)]);
    let args = with_mock(&[
        "--record",
        "t.json",
        "--fault",
        "recover-after:1",
        "--fault-tool",
        "search",
    ]);
    let mut session = Session::start(dir.path(), &args);
    session.open();
    session.send(&call(2, "search"));
    session.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    );
    // The reply to 3 comes, so none to 2 came before it.
    assert_eq!(session.ask(&call(3, "fetch"))["id"], 3);
    assert_eq!(session.ask(&call(4, "search"))["id"], 4);
    session.end();
    let results = trace(dir.path())["tool_results"].clone();
    assert_eq!(
        results[0],
        json!({"call_id": 2, "is_error": true, "error_kind": "timeout", "fault": "recover-after"})
    );
    assert_eq!(results.as_array().unwrap().len(), 3);
}

#[test]
fn a_slow_call_is_late_and_holds_up_nothing_else() {
    let dir = folder(&[("web.yml", WEB)]);
    let args = with_mock(&[
        "--record",
        "t.json",
        "--fault",
        "slow:400",
        "--fault-tool",
        "search",
    ]);
    let mut session = Session::start(dir.path(), &args);
    session.open();
    let began = Instant::now();
    session.send(&call(2, "search"));
    assert_eq!(session.ask(&call(3, "fetch"))["id"], 3);
    assert_eq!(session.receive()["id"], 2);
    assert!(
        began.elapsed() >= Duration::from_millis(400),
        "{:?}",
        began.elapsed()
    );
    // Still delivered to a client that has nothing more to say.
    session.send(&call(4, "search"));
    let (code, rest) = session.end();
    assert_eq!(code, 0);
    assert!(rest.contains("\"id\":4"), "{rest}");
    assert_eq!(trace(dir.path())["tool_results"][0]["delay_ms"], 400);
}

#[test]
fn secrets_of_the_environment_do_not_reach_the_file() {
    let dir = folder(&[]);
    let mut child = mcptest(dir.path())
        .args(["proxy", "--record", "t.json", "--", "cat"])
        .env("MY_API_KEY", "s3cret-value")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"arguments\":{\"k\":\"s3cret-value\"}}}\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), line);
    assert_eq!(
        trace(dir.path())["tool_calls"][0]["args"]["k"],
        "[redacted]"
    );
}

#[test]
fn the_end_of_either_side_and_signals() {
    let dir = folder(&[]);
    // A server that ignores the end of its input is ended, with its helpers.
    let stubborn = &mark("proxy-stubborn");
    let script =
        format!(": {stubborn}; trap '' TERM HUP; sleep 1000 & while :; do sleep 0.1; done");
    let began = Instant::now();
    let ended = run(
        dir.path(),
        &["proxy", "--record", "t.json", "--", "sh", "-c", &script],
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(began.elapsed() < Duration::from_secs(15));
    assert!(!processes().contains(stubborn));

    // One that fails takes the proxy with it.
    let mut session = Session::start(dir.path(), &["--", "sh", "-c", "echo last; exit 3"]);
    let mut last = String::new();
    session.output.read_line(&mut last).unwrap();
    assert_eq!(last, "last\n");
    let output = ran(&session.child.wait_with_output().unwrap());
    assert_eq!(output.code, 2);
    assert_eq!(
        output.stderr,
        "error: the server ended before its client (exit status: 3)\n"
    );

    // A signal ends both; the trace is there.
    let slow = &mark("proxy-slow");
    let session = Session::start(
        dir.path(),
        &[
            "--record",
            "u.json",
            "--",
            "sh",
            "-c",
            &format!(": {slow}; sleep 1000"),
        ],
    );
    let began = Instant::now();
    while !processes().contains(slow) || !dir.path().join("u.json").exists() {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = session.child.id().to_string();
    std::process::Command::new("kill")
        .arg(&pid)
        .status()
        .unwrap();
    let output = ran(&session.child.wait_with_output().unwrap());
    assert_eq!(output.code, 130);
    assert!(!processes().contains(slow));
    let trace = std::fs::read_to_string(dir.path().join("u.json")).unwrap();
    let written = "{\"tool_calls\":[],\"tools_listed\":false,\"recording\":{";
    assert!(trace.starts_with(written), "{trace}");
}

#[test]
fn all_sessions_of_a_client_are_one_trace() {
    let dir = folder(&[("web.yml", WEB)]);
    let args = with_mock(&["--record", "t.json", "--server", "web"]);
    // Two in parallel, then a third.
    let mut sessions = [
        Session::start(dir.path(), &args),
        Session::start(dir.path(), &args),
    ];
    for (index, session) in sessions.iter_mut().enumerate() {
        session.open();
        session.ask(&call(2, ["search", "fetch"][index]));
        trace_with_results(dir.path(), index + 1);
    }
    sessions[0].ask(&call(3, "fetch"));
    for session in sessions {
        assert_eq!(session.end().0, 0);
    }
    let mut third = Session::start(dir.path(), &args);
    third.open();
    third.ask(&call(2, "search"));
    assert_eq!(third.end().0, 0);
    let trace = trace(dir.path());
    let list = |key: &str| trace[key].as_array().unwrap().clone();
    let names: Vec<Value> = list("tool_calls")
        .iter()
        .map(|call| call["name"].clone())
        .collect();
    assert_eq!(names, ["search", "fetch", "fetch", "search"]);
    assert_eq!(list("tool_results").len(), 4);
    assert_eq!(list("catalog").len(), 2);
    let ids: std::collections::BTreeSet<String> = list("tool_calls")
        .iter()
        .map(|call| call["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 4, "{trace}");
    assert!(trace.get("tools_listed").is_none() && trace.get("error").is_none());
}

#[test]
fn a_server_that_never_came_up_is_an_error_of_the_trace() {
    let suite = "agents: [{name: a, servers: [web], trajectory: {mode: strict, calls: [{name: search}]}}]\n";
    for server in [&["no-such-program-anywhere"][..], &["false"]] {
        let dir = folder(&[("s.yml", suite)]);
        let args = [
            "proxy", "--record", "t.json", "--server", "web", "--test", "a", "--",
        ];
        let mut proxy = mcptest(dir.path())
            .args([&args, server].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The client waits for an answer.
        let input = proxy.stdin.take();
        assert_eq!(proxy.wait().unwrap().code(), Some(2), "{server:?}");
        drop(input);
        let error = &trace(dir.path())["error"];
        assert_eq!(error["kind"], "server_missing", "{server:?}: {error}");
        let scored = run(dir.path(), &["score", "s.yml", "--trace", "t.json"]);
        assert_eq!(scored.code, 2, "{}", scored.stdout);
    }
}

#[test]
fn what_cannot_run_is_reported_immediately() {
    let dir = folder(&[]);
    for (args, part) in [
        (
            &["proxy", "--", "no-such-program-anywhere"][..],
            "not found on PATH",
        ),
        (
            &["proxy", "--record", "no/such/folder/t.json", "--", "cat"],
            "cannot write the trace",
        ),
        (
            &["proxy", "--fault", "crash", "--", "cat"],
            "is not a kind of fault",
        ),
        (&["proxy", "--record", "t.json"], "required"),
    ] {
        let failed = run(dir.path(), args);
        assert_eq!(failed.code, 2, "{}", failed.stderr);
        assert!(failed.stderr.contains(part), "{}", failed.stderr);
    }
}

/// The command lines of all processes but zombies, which have none, and ours.
fn processes() -> String {
    let ours = std::process::id();
    let mut all = String::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid: u32 = entry.file_name().to_string_lossy().parse().unwrap_or(ours);
        if let Ok(line) = std::fs::read(entry.path().join("cmdline"))
            && pid != ours
            && !String::from_utf8_lossy(&line).contains("proxy\0")
        {
            all.push_str(&String::from_utf8_lossy(&line));
        }
    }
    all
}

#[test]
fn distractors_come_into_the_list_and_are_refused_and_scored() {
    let suite = "agents:
  - name: a
    servers: [web]
    distractors:
      count: 3
      source: { from: near_duplicate, of: [search] }
      correct: [web.search]
      expect: [{ distractors.accuracy: { \"==\": 50 } }, { distractors.chose_distractor: { \"==\": 1 } }]
";
    let block = "count: 3\nsource: { from: near_duplicate, of: [search] }\ncorrect: [web.search]\n";
    let dir = folder(&[("web.yml", WEB), ("s.yml", suite), ("d.yml", block)]);
    let arguments = [
        "--record",
        "t.json",
        "--server",
        "web",
        "--test",
        "a",
        "--run",
        "2",
        "--distractors",
        "d.yml",
        "--fault",
        "hang",
        "--fault-tool",
        "fetch",
    ];
    let mut session = Session::start(dir.path(), &with_mock(&arguments));
    session.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
    let listed = session.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let names: Vec<String> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let fake = names
        .iter()
        .find(|name| *name != "search" && *name != "fetch")
        .unwrap();
    let refused = session.ask(&call(2, fake));
    assert_eq!(refused["result"]["isError"], true);
    assert!(
        refused.to_string().contains("Choose a different tool"),
        "{refused}"
    );
    assert_eq!(
        session.ask(&call(3, "search"))["result"]["content"][0]["text"],
        "found"
    );
    assert_eq!(session.end(), (0, String::new()));
    let trace = trace(dir.path());
    assert_eq!(trace["run"], 2);
    assert_eq!(
        trace["distractors"].as_array().map(Vec::len),
        Some(3),
        "{trace}"
    );
    assert!(
        trace["distractors"]
            .to_string()
            .contains(&format!("web.{fake}"))
    );
    assert_eq!(trace["catalog"].as_array().map(Vec::len), Some(5));
    assert_eq!(trace["tool_results"][0]["is_error"], true);
    let scored = run(
        dir.path(),
        &["score", "s.yml", "--trace", "t.json", "--reporter", "json"],
    );
    assert_eq!(scored.code, 0, "{}", scored.stdout);
    let gate = &scored.json()["tests"][0]["gates"][0];
    assert_eq!(gate["values"]["distractors.chose_distractor"], 1, "{gate}");
}

#[test]
fn an_invalid_file_of_distractors_is_reported_with_its_place() {
    let dir = folder(&[
        ("web.yml", WEB),
        ("counts.yml", "counts: [1, 2]\nsource: { from: catalog }\n"),
        ("typo.yml", "cont: 1\nsource: { from: catalog }\n"),
        ("of.yml", "count: 1\nsource: { from: near_duplicate }\n"),
    ]);
    for (file, words) in [
        ("counts.yml", "counts.yml:1:9"),
        ("typo.yml", "did you mean `count`?"),
        ("of.yml", "`near_duplicate` needs `of`"),
        ("none.yml", "cannot read `none.yml`: no such file"),
        ("5000", "more than the 1000 that can be offered"),
    ] {
        let found = run(
            dir.path(),
            &[&["proxy", "--distractors", file], &MOCK[..]].concat(),
        );
        assert_eq!(found.code, 2, "{file}");
        assert!(found.stderr.contains(words), "{file}: {}", found.stderr);
    }
}

#[test]
fn a_client_on_stdio_reaches_a_server_over_http() {
    let dir = folder(&[("web.yml", WEB)]);
    let server = HttpMock::start(dir.path(), "web.yml");
    let arguments = [
        "--record",
        "t.json",
        "--server",
        "web",
        "--url",
        &server.url,
        "--fault",
        "hang",
        "--fault-tool",
        "fetch",
    ];
    let mut session = Session::start(dir.path(), &arguments);
    session.open();
    assert_eq!(
        session.ask(&call(2, "search"))["result"]["content"][0]["text"],
        "found"
    );
    session.send(&call(3, "fetch"));
    // The server refuses what is not a message, and the session continues.
    session.send(&json!("odd"));
    assert_eq!(session.ask(&call(4, "search"))["id"], 4);
    assert!(
        session
            .ask(&json!({"jsonrpc": "2.0", "id": "x", "method": "nope/nope"}))
            .to_string()
            .contains("-32601")
    );
    assert_eq!(session.end(), (0, String::new()));
    let trace = trace(dir.path());
    assert_eq!(
        trace["tool_calls"].as_array().map(Vec::len),
        Some(3),
        "{trace}"
    );
    assert_eq!(trace["catalog"].as_array().map(Vec::len), Some(2));
    assert_eq!(trace["tool_results"][1]["fault"], "hang");
}

#[test]
fn the_stateless_revision_over_http_has_the_headers_that_it_needs() {
    let dir = folder(&[("web.yml", WEB)]);
    let server = HttpMock::start(dir.path(), "web.yml");
    let arguments = [
        "--record",
        "t.json",
        "--url",
        &server.url,
        "--distractors",
        "2",
        "--seed",
        "3",
    ];
    let mut session = Session::start(dir.path(), &arguments);
    let ask = |id: u32, method: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    };
    let found = session.ask(&ask(1, "server/discover", json!({})));
    assert_eq!(found["result"]["resultType"], "complete", "{found}");
    let listed = session.ask(&ask(2, "tools/list", json!({})));
    assert_eq!(
        listed["result"]["tools"].as_array().map(Vec::len),
        Some(4),
        "{listed}"
    );
    assert!(listed["result"]["ttlMs"].is_number(), "{listed}");
    let called = session.ask(&ask(
        3,
        "tools/call",
        json!({"name": "search", "arguments": {}}),
    ));
    assert_eq!(called["result"]["content"][0]["text"], "found", "{called}");
    let fake = trace_with_results(dir.path(), 1)["distractors"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = session.ask(&ask(
        4,
        "tools/call",
        json!({"name": fake, "arguments": {}}),
    ));
    assert_eq!(refused["result"]["resultType"], "complete", "{refused}");
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(session.end(), (0, String::new()));
}

#[test]
fn a_server_over_http_that_goes_away_leaves_no_client_waiting() {
    let dir = folder(&[("web.yml", WEB)]);
    let server = HttpMock::start(dir.path(), "web.yml");
    let mut session = Session::start(dir.path(), &["--record", "t.json", "--url", &server.url]);
    session.open();
    drop(server);
    let answer = session.ask(&call(2, "search"));
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("mcptest proxy: "),
        "{answer}"
    );
    assert_eq!(session.end(), (0, String::new()));
    assert_eq!(trace(dir.path())["tool_results"][0]["is_error"], true);

    for (arguments, words) in [
        (vec!["--url", "ftp://x"], "begins with http:// or https://"),
        (vec!["--url", "http://x", "--", "y"], "cannot be used with"),
        (vec!["--record", "t.json"], "required"),
    ] {
        let found = run(dir.path(), &[&["proxy"], arguments.as_slice()].concat());
        assert_eq!(found.code, 2, "{arguments:?}");
        assert!(
            found.stderr.contains(words),
            "{arguments:?}: {}",
            found.stderr
        );
    }
}
