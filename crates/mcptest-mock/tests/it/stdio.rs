//! The stdio transport.

use std::io::{self, BufReader, Read, Write};

use mcptest_mock::{MAX_LINE_BYTES, serve_stdio};
use serde_json::Value;

use crate::server;

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

fn serve(input: &[u8], buffer: usize) -> String {
    let mut out = Vec::new();
    let input = BufReader::with_capacity(buffer, input);
    serve_stdio(&server("full.yml"), input, &mut out).expect("served");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn replies_do_not_depend_on_chunk_boundaries() {
    let input = include_str!("../golden/calls.frames")
        .lines()
        .filter_map(|line| line.strip_prefix("> "))
        .fold(String::new(), |all, line| all + line + "\r\n\n");
    let whole = serve(input.as_bytes(), 1 << 16);
    assert_eq!(whole.lines().count(), 21);
    for buffer in [1, 7, 64] {
        assert_eq!(serve(input.as_bytes(), buffer), whole, "{buffer}");
    }
    // The last line may have no newline.
    assert_eq!(serve(input.trim_end().as_bytes(), 1 << 16), whole);
}

/// Counts the writes.
#[derive(Default)]
struct Counting {
    text: Vec<u8>,
    writes: usize,
}

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn requests_of_one_read_are_answered_with_one_write() {
    let input = PING.repeat(1000);
    let mut out = Counting::default();
    let reader = BufReader::with_capacity(1 << 16, input.as_bytes());
    serve_stdio(&server("full.yml"), reader, &mut out).expect("served");
    assert_eq!(out.text.iter().filter(|byte| **byte == b'\n').count(), 1000);
    assert_eq!(out.writes, 1);
}

#[test]
fn an_endless_line_is_rejected_and_not_stored() {
    // The reader returns 3 * 16 MiB that are never in memory at the same time.
    let long = io::repeat(b'x').take(3 * MAX_LINE_BYTES as u64);
    let input = PING
        .as_bytes()
        .chain(long)
        .chain(b"\n".as_slice())
        .chain(PING.as_bytes());
    let mut out = Vec::new();
    let reader = BufReader::with_capacity(1 << 16, input);
    serve_stdio(&server("full.yml"), reader, &mut out).expect("served");
    let replies: Vec<Value> = String::from_utf8(out)
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(replies.len(), 3);
    assert_eq!(replies[1]["error"]["code"], -32600);
    assert_eq!(replies[1]["id"], Value::Null);
    assert_eq!(replies[2]["id"], 1);
}

#[test]
fn deep_nesting_is_a_parse_error() {
    let line = "[".repeat(1 << 20) + "\n";
    assert!(serve(line.as_bytes(), 1 << 16).contains("-32700"));
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}1{}}}\n",
        "{\"a\":".repeat(500),
        "}".repeat(500)
    );
    assert!(serve(deep.as_bytes(), 1 << 16).contains("-32700"));
}

/// Fails with a given error.
struct Failing(io::ErrorKind);

impl Write for Failing {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disconnected_client_is_not_an_error() {
    let server = server("full.yml");
    let result = serve_stdio(&server, PING.as_bytes(), Failing(io::ErrorKind::BrokenPipe));
    assert!(result.is_ok());
    let result = serve_stdio(
        &server,
        PING.as_bytes(),
        Failing(io::ErrorKind::StorageFull),
    );
    assert!(result.is_err());
    assert!(serve_stdio(&server, io::empty(), io::sink()).is_ok());
}
