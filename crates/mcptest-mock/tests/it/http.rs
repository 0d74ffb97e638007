//! The streamable HTTP transport, tested with plain HTTP/1.1.

use std::sync::Arc;
use std::time::Duration;

use mcptest_mock::{MockFault, MockServer, serve_http};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{INITIALIZE, load_data};

/// A mock on its own port.
struct Served {
    port: u16,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The messages of an event stream.
    fn events(&self) -> Vec<Value> {
        assert!(self.head.contains("text/event-stream"), "{self:?}");
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).expect("JSON"))
            .collect()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find(|line| line.starts_with(&format!("{name}:")))?;
        Some(line[name.len() + 1..].trim())
    }

    fn code(&self) -> Value {
        self.json()["error"]["code"].clone()
    }
}

async fn serve(manifest: &str, fault: MockFault) -> Served {
    serve_mock(MockServer::new(load_data(manifest).with_fault(fault))).await
}

async fn serve_mock(server: MockServer) -> Served {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let task = tokio::spawn(async move {
        serve_http(Arc::new(server), listener)
            .await
            .expect("served");
    });
    Served { port, task }
}

impl Served {
    async fn open(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))
            .await
            .expect("connected");
        let mut text = format!("{method} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| {
            headers
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            text.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        if !has("accept") {
            text.push_str("Accept: application/json, text/event-stream\r\n");
        }
        if !has("content-type") {
            text.push_str("Content-Type: application/json\r\n");
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(text.as_bytes()).await.expect("sent");
        stream
    }

    async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.open(method, headers, body).await;
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        tokio::time::timeout(Duration::from_secs(30), read)
            .await
            .expect("an answer in time")
            .expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let body = if head.to_lowercase().contains("transfer-encoding: chunked") {
            dechunk(body)
        } else {
            body.to_owned()
        };
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Answer {
            status: status.expect("a status"),
            head: head.to_lowercase(),
            body,
        }
    }

    async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send("POST /mcp", headers, &message.to_string()).await
    }

    async fn session(&self) -> String {
        let answer = self.send("POST /mcp", &[], INITIALIZE).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25");
        answer
            .header("mcp-session-id")
            .expect("a session")
            .to_owned()
    }
}

fn dechunk(mut text: &str) -> String {
    let mut out = String::new();
    while let Some((length, rest)) = text.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        out.push_str(&rest[..length]);
        text = rest[length..].trim_start_matches("\r\n");
        if length == 0 {
            break;
        }
    }
    out
}

fn call(id: u64, name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
           "params": {"name": name, "arguments": {"x": "k"}, "_meta": {"progressToken": "p"}}})
}

#[tokio::test]
async fn a_session_from_initialize_to_delete() {
    let mock = serve("full.yml", MockFault::None).await;
    let session = mock.session().await;
    let in_session = [
        ("Mcp-Session-Id", session.as_str()),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});

    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = mock.post(&in_session, &note).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    let answer = mock.post(&in_session, &list).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.json()["result"]["tools"].as_array().map(Vec::len),
        Some(5)
    );
    // A client that accepts only events gets events.
    let events = [in_session[0], ("Accept", "text/event-stream")];
    let answer = mock.post(&events, &list).await;
    assert_eq!(answer.events()[0]["id"], 1);

    assert_eq!(mock.post(&[], &list).await.status, 400);
    assert_eq!(
        mock.post(&[("Mcp-Session-Id", "nope")], &list).await.status,
        404
    );
    let odd = [in_session[0], ("MCP-Protocol-Version", "1999-01-01")];
    assert_eq!(mock.post(&odd, &list).await.status, 400);

    assert_eq!(mock.send("DELETE /mcp", &in_session, "").await.status, 200);
    assert_eq!(mock.post(&in_session, &list).await.status, 404);
    assert_eq!(mock.send("DELETE /mcp", &in_session, "").await.status, 404);
    assert_eq!(mock.send("GET /mcp", &in_session, "").await.status, 404);
}

#[tokio::test]
async fn the_event_stream_ends_with_its_session() {
    let mock = serve("full.yml", MockFault::None).await;
    let session = mock.session().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let (stream, ()) = tokio::join!(mock.send("GET /mcp", &headers, ""), async {
        // The session must not be deleted before the stream is open.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(mock.send("DELETE /mcp", &headers, "").await.status, 200);
    });
    assert_eq!(stream.status, 200);
    assert!(stream.events().is_empty());
}

#[tokio::test]
async fn foreign_hosts_and_invalid_requests_are_refused() {
    let mock = serve("full.yml", MockFault::None).await;
    for (headers, status) in [
        (vec![("Host", "evil.example")], 403),
        (vec![("Host", "127.0.0.1.evil.example:80")], 403),
        (vec![("Origin", "http://evil.example")], 403),
        (vec![("Origin", "null")], 403),
        (vec![("Origin", "http://localhost:3000")], 200),
        (vec![("Content-Type", "text/plain")], 415),
        (
            vec![("Content-Type", "application/json; charset=utf-8")],
            200,
        ),
        (vec![("Accept", "text/html")], 406),
        (vec![("Accept", "*/*")], 200),
    ] {
        let answer = mock.send("POST /mcp", &headers, INITIALIZE).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
    }
    assert_eq!(mock.send("POST /", &[], INITIALIZE).await.status, 404);
    assert_eq!(mock.send("PUT /mcp", &[], "").await.status, 405);
    let answer = mock.send("POST /mcp", &[], "{").await;
    assert_eq!((answer.status, answer.code()), (400, json!(-32700)));
    // Refused by its length: the body never comes.
    let mut stream = TcpStream::connect(("127.0.0.1", mock.port)).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        (16 << 20) + 1
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
}

#[tokio::test]
async fn notifications_are_sent_as_events_before_the_answer() {
    let mock = serve("behaviour.yml", MockFault::None).await;
    let session = mock.session().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let events = mock.post(&headers, &call(3, "talkative")).await.events();
    let methods: Vec<_> = events
        .iter()
        .map(|event| event["method"].as_str().unwrap_or("reply"))
        .collect();
    let (progress, message) = ("notifications/progress", "notifications/message");
    assert_eq!(methods, [progress, message, progress, message, "reply"]);
    assert_eq!(events[4]["id"], 3);
    // A client without streams gets only the answer.
    let json_only = [headers[0], ("Accept", "application/json")];
    assert_eq!(
        mock.post(&json_only, &call(4, "talkative")).await.json()["id"],
        4
    );
}

#[tokio::test]
async fn slow_calls_honour_cancellation_and_others_do_not() {
    for (fault, answered) in [
        (MockFault::Slow { ms: 600_000 }, false),
        (MockFault::ReplyAfterCancel { ms: 50 }, true),
    ] {
        let mock = serve("full.yml", fault).await;
        let session = mock.session().await;
        let headers = [("Mcp-Session-Id", session.as_str())];
        let mut stream = mock
            .open("POST /mcp", &headers, &call(7, "echo").to_string())
            .await;
        let cancel = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7},
        });
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        let cancels = async {
            // The cancellation may overtake the call, so it is repeated.
            loop {
                assert_eq!(mock.post(&headers, &cancel).await.status, 202);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            read = read => { read.expect("UTF-8"); }
            () = cancels => {}
            () = tokio::time::sleep(Duration::from_secs(30)) => {
                panic!("{fault}: neither answered nor cancelled")
            }
        }
        assert_eq!(text.contains("\"id\":7"), answered, "{fault}: {text}");
    }
}

#[tokio::test]
async fn hanging_calls_block_only_their_connection() {
    let mock = serve("full.yml", MockFault::Hang).await;
    let session = mock.session().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let mut hanging = mock
        .open("POST /mcp", &headers, &call(7, "echo").to_string())
        .await;
    let ping = json!({"jsonrpc": "2.0", "id": 8, "method": "ping"});
    assert_eq!(mock.post(&headers, &ping).await.status, 200);
    let mut byte = [0];
    let nothing = tokio::time::timeout(Duration::from_millis(50), hanging.read(&mut byte)).await;
    assert!(nothing.is_err(), "{nothing:?}");
}

#[tokio::test]
async fn a_tool_asks_the_client_and_waits_for_the_answer() {
    let text = "mock_server: { name: x, tools: [\
                { name: asks, ask: [{ a: { method: roots/list } }], response: thanks }] }";
    let manifest =
        mcptest_mock::load("x.yml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let task = tokio::spawn(async move {
        let server = Arc::new(MockServer::new(manifest));
        serve_http(server, listener).await.expect("served");
    });
    let mock = Served { port, task };
    let with_roots = INITIALIZE.replace("\"capabilities\":{}", "\"capabilities\":{\"roots\":{}}");
    let answer = mock.send("POST /mcp", &[], &with_roots).await;
    let session = answer
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    let headers = [("Mcp-Session-Id", session.as_str())];
    let mut stream = mock
        .open("POST /mcp", &headers, &call(5, "asks").to_string())
        .await;
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains("roots/list") {
        let length = stream.read(&mut buffer).await.expect("read");
        assert!(length > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    assert!(!seen.contains("thanks"), "{seen}");
    let reply = json!({"jsonrpc": "2.0", "id": "ask-1", "result": {"roots": []}});
    assert_eq!(mock.post(&headers, &reply).await.status, 202);
    stream.read_to_string(&mut seen).await.expect("UTF-8");
    assert!(seen.contains("thanks"), "{seen}");
}

#[tokio::test]
async fn the_stateless_revision_checks_its_headers() {
    let mock = serve("full.yml", MockFault::None).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = |method: &str, name: Option<&str>| {
        let mut params = json!({"_meta": meta});
        if let Some(name) = name {
            params["name"] = name.into();
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    };
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let echo = request("tools/call", Some("echo"));
    let good = [version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let answer = mock.post(&good, &echo).await;
    assert_eq!(
        (answer.status, &answer.json()["result"]["resultType"]),
        (200, &json!("complete")),
        "{answer:?}"
    );
    assert_eq!(answer.header("mcp-session-id"), None);
    let encoded = [version, good[1], ("Mcp-Name", "=?base64?ZWNobw==?=")];
    assert_eq!(mock.post(&encoded, &echo).await.status, 200);

    for bad in [
        vec![good[1], good[2]],
        vec![version, good[2]],
        vec![version, good[1]],
        vec![version, good[1], ("Mcp-Name", "order")],
        vec![version, ("Mcp-Method", "tools/list"), good[2]],
        vec![("MCP-Protocol-Version", "2025-11-25"), good[1], good[2]],
    ] {
        let answer = mock.post(&bad, &echo).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, json!(-32020)),
            "{bad:?}"
        );
        assert_eq!(answer.json()["id"], 1);
    }
    let answer = mock
        .post(&[version, ("Mcp-Method", "ping")], &request("ping", None))
        .await;
    assert_eq!((answer.status, answer.code()), (404, json!(-32601)));
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = mock
        .post(&[version, ("Mcp-Method", "tools/list")], &bare)
        .await;
    assert_eq!((answer.status, answer.code()), (400, json!(-32602)));
    // An invalid request is an ordinary answer.
    let nope = [version, good[1], ("Mcp-Name", "nope")];
    let answer = mock.post(&nope, &request("tools/call", Some("nope"))).await;
    assert_eq!((answer.status, answer.code()), (200, json!(-32602)));
    assert_eq!(mock.send("GET /mcp", &[version], "").await.status, 405);
}

#[cfg(feature = "database")]
#[tokio::test]
async fn each_session_has_its_own_database() {
    let served = serve_mock(crate::database::shop()).await;
    let (one, two) = (served.session().await, served.session().await);
    let call = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    };
    let cancel = call("cancel_order", json!({"id": "A1"}));
    let open = call("orders", json!({"status": "open"}));
    let done = served.post(&[("mcp-session-id", &one)], &cancel).await;
    assert_eq!(done.json()["result"]["isError"], Value::Null, "{done:?}");
    for (session, rows) in [(&one, 0), (&two, 1)] {
        let answer = served.post(&[("mcp-session-id", session)], &open).await;
        let found = answer.json()["result"]["structuredContent"]["rows"].clone();
        assert_eq!(found.as_array().map(Vec::len), Some(rows), "{answer:?}");
    }
    // Requests without a session share one.
    for (mut message, name, errors) in [
        (cancel.clone(), "cancel_order", false),
        (cancel, "cancel_order", true),
    ] {
        message["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", name),
        ];
        let answer = served.post(&headers, &message).await;
        assert_eq!(
            answer.json()["result"]["isError"] == true,
            errors,
            "{answer:?}"
        );
    }
}
