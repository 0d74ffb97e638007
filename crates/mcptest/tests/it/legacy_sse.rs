//! Servers over HTTP+SSE, the transport of revision 2024-11-05: in suites, `doctor`, and behind the
//! proxy.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::{folder, mcptest, ran, run};

/// The event streams of the sessions, by their number.
type Streams = Arc<Mutex<BTreeMap<String, TcpStream>>>;

/// A server whose tool `end` closes the event stream instead of an answer. Ends with the test's
/// process.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    let streams = Streams::default();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let streams = Arc::clone(&streams);
            thread::spawn(move || while answer(&stream, &streams).is_some() {});
        }
    });
    url
}

fn answer(mut stream: &TcpStream, streams: &Streams) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if (method.as_str(), path.as_str()) == ("GET", "/sse") {
        let mut streams = streams.lock().unwrap();
        let session = streams.len().to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let first = format!("{head}event: endpoint\ndata: message?s={session}\n\n");
        stream.write_all(first.as_bytes()).ok()?;
        streams.insert(session, stream.try_clone().ok()?);
        return None;
    }
    let Some(session) = path.strip_prefix("/message?s=") else {
        let head = "HTTP/1.1 404 Not Found\r\ncontent-length: 15\r\n\r\nCannot POST /sse";
        return stream.write_all(&head.as_bytes()[..head.len() - 1]).ok();
    };
    stream
        .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 8\r\n\r\nAccepted")
        .ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut streams = streams.lock().unwrap();
    let events = streams.get_mut(session)?;
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}})
        }
        Some("tools/list") => json!({"tools": [
            {"name": "echo", "inputSchema": {"type": "object"}},
            {"name": "end", "inputSchema": {"type": "object"}},
        ]}),
        Some("tools/call") if message["params"]["name"] == "end" => {
            let _ = events.shutdown(std::net::Shutdown::Both);
            return Some(());
        }
        Some("tools/call") => json!({"content": [{"type": "text", "text": "hi"}]}),
        _ => return Some(()),
    };
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    write!(events, "event: message\ndata: {reply}\n\n").ok()
}

fn suite(url: &str) -> String {
    let test = |name: &str, server: &str, tool: &str| {
        json!({"name": name, "server": server, "tool": tool,
               "expect": [{"result.content[0].text": "hi"}]})
    };
    json!({
        "servers": {
            "found": {"url": url},
            "asked": {"url": url, "transport": "sse"},
            "modern": {"url": url, "transport": "streamable_http"},
            "ending": {"url": url},
        },
        "tools": [
            test("found", "found", "echo"),
            test("asked", "asked", "echo"),
            test("modern", "modern", "echo"),
            test("ending", "ending", "end"),
        ],
    })
    .to_string()
}

#[test]
fn suites_use_the_older_transport() {
    let url = serve();
    let dir = folder(&[("s.yml", &suite(&url))]);
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    let report = ran.json();
    let verdicts: Vec<_> = (0..4)
        .map(|test| {
            report["tests"][test]["verdict"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(verdicts, ["pass", "pass", "error", "error"], "{report}");
    let error = |test: usize| report["tests"][test]["runs"][0]["error"].clone();
    assert_eq!(error(2)["kind"], "protocol");
    assert_eq!(error(3)["kind"], "transport");
    let message = error(3)["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("the server closed its event stream"),
        "{message}"
    );
    let doctor = run(dir.path(), &["doctor", "--url", &url]);
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    assert!(
        doctor.stdout.contains("speaks        2024-11-05"),
        "{}",
        doctor.stdout
    );
    assert!(doctor.stdout.contains("the server speaks HTTP+SSE only"));
}

/// Sends messages to the proxy, the first three together, and reads until it has all answers or
/// ends.
fn proxied(url: &str, tool: &str) -> (Vec<Value>, i32, Value) {
    let dir = folder(&[]);
    let mut child = mcptest(dir.path())
        .args(["proxy", "--url", url, "--record", "t.json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut answers = Vec::new();
    while answers.len() < 3 {
        if answers.len() == 2 {
            let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
                              "params": {"name": tool, "arguments": {}}});
            writeln!(stdin, "{call}").unwrap();
        }
        let mut line = String::new();
        if stdout.read_line(&mut line).unwrap() == 0 {
            break;
        }
        answers.push(serde_json::from_str::<Value>(&line).unwrap());
    }
    drop(stdin);
    let ran = ran(&child.wait_with_output().unwrap());
    let trace = std::fs::read(dir.path().join("t.json")).unwrap();
    (answers, ran.code, serde_json::from_slice(&trace).unwrap())
}

#[test]
fn a_client_on_stdio_uses_the_older_transport_through_the_proxy() {
    let url = serve();
    let (answers, code, trace) = proxied(&url, "echo");
    assert_eq!(code, 0);
    // Messages that were sent before the transport was known wait for it.
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert!(
        ids.contains(&json!(1)) && ids.contains(&json!(2)),
        "{answers:?}"
    );
    let call = answers.iter().find(|answer| answer["id"] == 3).unwrap();
    assert_eq!(call["result"]["content"][0]["text"], "hi");
    assert_eq!(trace["tool_calls"][0]["name"], "echo");
    // The end of the stream is the end of the server.
    let (answers, code, trace) = proxied(&url, "end");
    assert_eq!(answers.len(), 2);
    assert_eq!(code, 2);
    assert_eq!(trace["error"]["kind"], "server_crash", "{trace}");
}
