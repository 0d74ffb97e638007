//! Suites with servers over streamable HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

use crate::support::{folder, mcptest, ran};

/// A server that answers every call with the credential that it was sent. Ends with the test's
/// process.
pub fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || while answer_one(&stream).is_some() {});
        }
    });
    address
}

fn answer_one(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length, mut credential) = (String::new(), 0, String::new());
    reader.read_line(&mut head).ok().filter(|n| *n > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => credential = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})
        }
        Some("tools/call") => {
            json!({"content": [{"type": "text", "text": format!("you are {credential}")}]})
        }
        _ => {
            stream
                .write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")
                .ok()?;
            return Some(());
        }
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).ok()
}

#[test]
fn credentials_reach_the_server_and_no_report() {
    let suite = format!(
        "servers:
  who: {{ url: \"http://{}/mcp\", headers: {{ Authorization: \"Bearer ${{WHO_CREDENTIAL}}\" }} }}
  gone: {{ url: \"http://127.0.0.1:1/mcp\", startup_timeout: 100ms }}
tools:
  - {{ name: who, server: who, tool: whoami, expect: [{{ result.text: {{ contains: tok-31415926 }} }}] }}
  - {{ name: gone, server: gone, tool: whoami }}
",
        serve()
    );
    let dir = folder(&[("s.yml", &suite)]);
    let output = mcptest(dir.path())
        .args(["run", "s.yml", "--reporter", "json"])
        .env("WHO_CREDENTIAL", "tok-31415926")
        .output()
        .unwrap();
    let ran = ran(&output);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!ran.stdout.contains("tok-31415926"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("tok-31415926"), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(report["tests"][0]["verdict"], "pass", "{report}");
    assert_eq!(report["tests"][1]["verdict"], "error", "{report}");
    assert!(
        ran.stdout
            .contains("nothing accepted a connection at http://127.0.0.1:1/mcp within 100ms"),
        "{report}"
    );
}
