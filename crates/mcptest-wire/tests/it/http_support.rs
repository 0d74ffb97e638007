//! A raw HTTP server on a socket with answers chosen by the test, valid or not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use mcptest_wire::HttpServer;
use serde_json::{Value, json};

/// A received request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC method.
    pub fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or("")
    }

    pub fn id(&self) -> Value {
        self.body["id"].clone()
    }
}

/// Handles a request on its connection.
pub type Handler = dyn Fn(&Seen, &mut TcpStream) + Send + Sync;

pub struct RawServer {
    pub address: String,
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

impl RawServer {
    /// Serves until the test ends. The handler writes whole responses; the good handshake is built
    /// in.
    pub fn start(handler: impl Fn(&Seen, &mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), handler)
    }

    /// Serves until the test ends, without the built-in handshake.
    pub fn bare(handler: impl Fn(&Seen, &mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").unwrap(), false, handler)
    }

    pub fn on(
        listener: TcpListener,
        handler: impl Fn(&Seen, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        Self::serve(listener, true, handler)
    }

    fn serve(
        listener: TcpListener,
        shakes_hands: bool,
        handler: impl Fn(&Seen, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let handler: Arc<Handler> = Arc::new(handler);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, handler) = (log.clone(), handler.clone());
                thread::spawn(move || serve(stream, &log, shakes_hands, &*handler));
            }
        });
        Self { address, seen }
    }

    pub fn server(&self) -> HttpServer {
        HttpServer {
            url: format!("http://{}/mcp", self.address),
            ..HttpServer::default()
        }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests with this JSON-RPC method.
    pub fn calls(&self, rpc: &str) -> Vec<Seen> {
        self.seen()
            .into_iter()
            .filter(|seen| seen.rpc() == rpc)
            .collect()
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Seen>>, shakes_hands: bool, handler: &Handler) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(seen) = read(&mut reader) {
        log.lock().unwrap().push(seen.clone());
        match (seen.method.as_str(), seen.rpc()) {
            _ if !shakes_hands => handler(&seen, &mut stream),
            ("POST", "initialize") => json_answer(
                &mut stream,
                "200 OK",
                &[("mcp-session-id", "s-1")],
                &initialized(&seen),
            ),
            ("POST", "notifications/initialized") => answer(&mut stream, "202 Accepted", &[], b""),
            ("DELETE", _) => answer(&mut stream, "200 OK", &[], b""),
            _ => handler(&seen, &mut stream),
        }
    }
}

/// The reply to `initialize`.
pub fn initialized(seen: &Seen) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.id(), "result": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "raw", "version": "1"},
    }})
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen {
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    })
}

/// A whole response. The client may be gone.
pub fn answer(stream: &mut TcpStream, status: &str, headers: &[(&str, &str)], body: &[u8]) {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

pub fn json_answer(stream: &mut TcpStream, status: &str, headers: &[(&str, &str)], body: &Value) {
    let mut all = vec![("content-type", "application/json; charset=utf-8")];
    all.extend_from_slice(headers);
    answer(stream, status, &all, body.to_string().as_bytes());
}

/// The head of an event stream that ends with the connection.
pub fn stream_head(stream: &mut TcpStream) {
    raw(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    );
}

pub fn raw(stream: &mut TcpStream, text: &str) {
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
}

/// Ends the connection, so that a stream without a length ends.
pub fn close(stream: &TcpStream) {
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Longer than any test waits.
pub fn hang() {
    thread::sleep(Duration::from_secs(60));
}
