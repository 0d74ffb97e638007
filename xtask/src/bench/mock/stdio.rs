//! A client over stdio that costs as little as possible: what is measured is the server.

use std::io::{Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::super::figures::Rate;
use super::peers::{Peer, Process};

/// The request and the expected response.
pub const MESSAGE: &str = "The quick brown fox jumps over the lazy dog.";

/// One call.
pub fn call(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{MESSAGE}"}}}}}}"#
    )
}

/// The start of a session.
pub fn initialize() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    })
}

/// Returns true if the reply to a call is the expected one.
pub fn check(reply: &[u8]) -> Result<()> {
    let heard = reply
        .windows(MESSAGE.len())
        .any(|window| window == MESSAGE.as_bytes());
    ensure!(
        heard,
        "unexpected reply: {}",
        String::from_utf8_lossy(reply)
    );
    Ok(())
}

/// A server and the client's end of its pipes.
pub struct StdioServer {
    process: Process,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// The beginning of a reply whose end has not come yet.
    rest: Vec<u8>,
    chunk: Vec<u8>,
    next_id: u64,
}

impl StdioServer {
    /// Starts a server, opens a session and tries one call.
    pub fn start(peer: &Peer) -> Result<Self> {
        let mut process = peer.start(Stdio::piped(), Stdio::piped(), Stdio::null())?;
        let mut server = Self {
            stdin: process.child.stdin.take().context("no standard input")?,
            stdout: process.child.stdout.take().context("no standard output")?,
            process,
            rest: Vec::new(),
            chunk: vec![0; 64 << 10],
            next_id: 1,
        };
        server.send(format!("{}\n", initialize()).as_bytes())?;
        server.replies(|_| Ok(()))?;
        server.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        server.send_calls(1)?;
        let mut reply = Value::Null;
        server.replies(|line| {
            reply = serde_json::from_slice(line)?;
            Ok(())
        })?;
        let text = &reply["result"]["content"][0]["text"];
        ensure!(*text == MESSAGE, "{} answers {reply}", server.process.name);
        Ok(server)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let name = self.process.name;
        self.stdin
            .write_all(bytes)
            .with_context(|| format!("{name} does not listen"))
    }

    fn send_calls(&mut self, count: usize) -> Result<()> {
        let mut text = String::new();
        for _ in 0..count {
            text.push_str(&call(self.next_id));
            text.push('\n');
            self.next_id += 1;
        }
        self.send(text.as_bytes())
    }

    /// Waits for at least one reply, hands over all that have come, and returns their number.
    fn replies(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<usize> {
        let mut count = 0;
        while count == 0 {
            let length = self.stdout.read(&mut self.chunk)?;
            if length == 0 {
                bail!("{} has closed its output", self.process.name);
            }
            let mut chunk = &self.chunk[..length];
            while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
                if self.rest.is_empty() {
                    each(&chunk[..end])?;
                } else {
                    self.rest.extend_from_slice(&chunk[..end]);
                    each(&self.rest)?;
                    self.rest.clear();
                }
                count += 1;
                chunk = &chunk[end + 1..];
            }
            self.rest.extend_from_slice(chunk);
        }
        Ok(count)
    }

    /// The time of each call, in microseconds: the next is made when the last has been answered.
    pub fn one_by_one(&mut self, window: Duration) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        let began = Instant::now();
        while began.elapsed() < window {
            let line = format!("{}\n", call(self.next_id));
            self.next_id += 1;
            let sent = Instant::now();
            self.send(line.as_bytes())?;
            let count = self.replies(check)?;
            times.push(sent.elapsed().as_secs_f64() * 1e6);
            ensure!(count == 1, "{} answers twice", self.process.name);
        }
        Ok(times)
    }

    /// Calls per second with this number always in flight.
    pub fn in_flight(&mut self, width: usize, window: Duration) -> Result<f64> {
        let began = Instant::now();
        self.flow(width, |_| began.elapsed() < window)
    }

    /// Makes at least this number of calls.
    pub fn calls(&mut self, width: usize, wanted: usize) -> Result<()> {
        self.flow(width, |done| done < wanted).map(|_| ())
    }

    fn flow(&mut self, width: usize, goes_on: impl Fn(usize) -> bool) -> Result<f64> {
        let mut done = 0;
        let mut waiting = width;
        let mut rate = Rate::new();
        self.send_calls(width)?;
        while waiting > 0 {
            let count = self.replies(check)?;
            done += count;
            waiting -= count;
            rate.add(count);
            if goes_on(done) {
                self.send_calls(count)?;
                waiting += count;
            }
        }
        Ok(rate.median())
    }

    pub fn resident_mib(&self) -> Result<f64> {
        self.process.resident_mib()
    }
}
