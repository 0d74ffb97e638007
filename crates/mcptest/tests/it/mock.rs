//! `mcptest mock` as a process: faults, records and HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{folder, mcptest, ran};

const CALLS: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_ticket","arguments":{"number":1042}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_ticket","arguments":{"number":7}}}
"#;

#[test]
fn calls_hang_as_configured_and_everything_is_recorded() {
    let dir = folder(&[("in.jsonl", CALLS)]);
    let input = std::fs::File::open(dir.path().join("in.jsonl")).unwrap();
    let args = [
        "mock",
        "--preset",
        "tidy",
        "--fault",
        "recover-after:1",
        "--record",
        "sent.jsonl",
    ];
    let ran = ran(&mcptest(dir.path())
        .args(args)
        .stdin(input)
        .output()
        .unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let ids: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, [0, 2]);
    let record = std::fs::read_to_string(dir.path().join("sent.jsonl")).unwrap();
    let methods: Vec<Value> = record
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["message"]["method"].clone())
        .collect();
    assert_eq!(methods, ["initialize", "tools/call", "tools/call"]);
}

/// Ends the process with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn http_is_served_on_loopback_and_the_address_is_printed() {
    let dir = folder(&[]);
    let mut child = mcptest(dir.path())
        .args(["mock", "--preset", "tidy", "--http", "0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let _child = Ended(child);
    let mut line = String::new();
    BufReader::new(stderr).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let body = CALLS.lines().next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\"name\":\"helpdesk\""), "{answer}");
}
