//! JSON-RPC with an ACP agent: one message per line.

use std::time::Duration;

use mcptest_wire::{IsolatedStreams, StderrTail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until, timeout};

use super::session::SessionState;
use crate::command::{STDERR_BYTES, STDERR_LINES};
use crate::failure::Limit;
use crate::reader::MAX_STREAM_BYTES;

/// The longest message; longer ones are skipped.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// The code of JSON-RPC for a method that is not offered.
const METHOD_NOT_FOUND: i64 = -32601;

/// A request that got no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The agent answered with an error.
    Refused(Reply),
    /// The agent refused a mode; it has these.
    Mode {
        mode: String,
        known: Vec<String>,
        reply: Reply,
    },
    /// The agent closed its output.
    Closed,
    /// A limit of time was reached.
    Limit(Limit),
    /// The agent violated the protocol, or speaks another version.
    Protocol(String),
    /// The turn has no end; its stop reason.
    NotEnded(String),
    /// The agent's answer is an error message.
    Reported(String),
}

/// An error of JSON-RPC.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Value,
}

/// The connection to an agent.
pub(super) struct Connection {
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: ChildStderr,
    stderr_open: bool,
    tail: StderrTail,
    idle_timeout: Option<Duration>,
    next_id: u64,
    line: Vec<u8>,
    /// Complete lines that were received and not handled yet.
    received: std::collections::VecDeque<Vec<u8>>,
    stream: Vec<u8>,
    truncated: bool,
}

impl Connection {
    pub(super) fn new(streams: IsolatedStreams, idle_timeout: Option<Duration>) -> Self {
        Self {
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
            stderr_open: true,
            tail: StderrTail::bounded(STDERR_LINES, STDERR_BYTES),
            idle_timeout,
            next_id: 0,
            line: Vec::new(),
            received: std::collections::VecDeque::new(),
            stream: Vec::new(),
            truncated: false,
        }
    }

    /// Sends a request and waits for its result. Everything else that arrives is handled.
    pub(super) async fn call(
        &mut self,
        method: &str,
        params: &Value,
        state: &mut SessionState<'_>,
        limit: (Instant, Limit),
    ) -> Result<Value, Failure> {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        match timeout_at(limit, self.send(&request)).await? {
            Ok(()) => self.answer(id, state, limit).await,
            Err(_) => Err(Failure::Closed),
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(&mut self, method: &str, params: &Value) -> Result<(), Failure> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let sent = timeout(Duration::from_secs(1), self.send(&message)).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            _ => Err(Failure::Closed),
        }
    }

    /// Waits for the answer to the last request.
    pub(super) async fn last_answer(
        &mut self,
        state: &mut SessionState<'_>,
        limit: (Instant, Limit),
    ) -> Result<Value, Failure> {
        self.answer(self.next_id, state, limit).await
    }

    async fn answer(
        &mut self,
        id: u64,
        state: &mut SessionState<'_>,
        limit: (Instant, Limit),
    ) -> Result<Value, Failure> {
        loop {
            let message = self.receive(limit).await?;
            let is_request = message.get("method").is_some();
            if is_request {
                if let Some(reply) = handle(&message, state) {
                    match timeout_at(limit, self.send(&reply)).await? {
                        Ok(()) => {}
                        Err(_) => return Err(Failure::Closed),
                    }
                }
            } else if message["id"].as_u64() == Some(id) {
                return match message.get("error") {
                    Some(error) if !error.is_null() => Err(Failure::Refused(Reply {
                        code: error["code"].as_i64().unwrap_or(0),
                        message: error["message"].as_str().unwrap_or_default().to_owned(),
                        data: error["data"].clone(),
                    })),
                    _ => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// The next message. Lines that are none are skipped.
    async fn receive(&mut self, limit: (Instant, Limit)) -> Result<Value, Failure> {
        let mut chunk = vec![0; 64 * 1024];
        let mut errors = vec![0; 8 * 1024];
        let mut last_output = Instant::now();
        loop {
            while let Some(line) = self.received.pop_front() {
                if let Ok(message @ Value::Object(_)) = serde_json::from_slice(&line) {
                    return Ok(message);
                }
            }
            let idle = self
                .idle_timeout
                .map(|idle| (last_output + idle, Limit::Idle(idle)));
            let (at, reason) = match idle {
                Some(idle) if idle.0 < limit.0 => idle,
                _ => limit,
            };
            tokio::select! {
                read = self.stdout.read(&mut chunk) => match read {
                    Ok(0) | Err(_) => return Err(Failure::Closed),
                    Ok(count) => {
                        last_output = Instant::now();
                        self.push(&chunk[..count]);
                    }
                },
                read = self.stderr.read(&mut errors), if self.stderr_open => match read {
                    Ok(0) | Err(_) => self.stderr_open = false,
                    Ok(count) => self.tail.push(&errors[..count]),
                },
                () = sleep_until(at) => return Err(Failure::Limit(reason)),
            }
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        let remaining = MAX_STREAM_BYTES.saturating_sub(self.stream.len());
        let kept = &chunk[..chunk.len().min(remaining)];
        self.stream.extend_from_slice(kept);
        self.truncated |= kept.len() < chunk.len();
        let mut lines = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = lines.next() {
            // One byte beyond the limit makes the line invalid JSON.
            let remaining = MAX_MESSAGE_BYTES.saturating_sub(self.line.len());
            self.line
                .extend_from_slice(&piece[..piece.len().min(remaining)]);
            if lines.peek().is_some() {
                self.received.push_back(std::mem::take(&mut self.line));
            }
        }
    }

    async fn send(&mut self, message: &Value) -> std::io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let mut line = message.to_string();
        line.push('\n');
        stdin.write_all(line.as_bytes()).await?;
        stdin.flush().await
    }

    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Reads what an agent that has exited wrote to its standard error.
    pub(super) async fn rest_of_stderr(&mut self) {
        let mut errors = vec![0; 8 * 1024];
        let _ = timeout(Duration::from_millis(300), async {
            while let Ok(count @ 1..) = self.stderr.read(&mut errors).await {
                self.tail.push(&errors[..count]);
            }
        })
        .await;
    }

    pub(super) fn stderr_lines(&self) -> Vec<String> {
        self.tail.lines()
    }

    /// The received bytes, and true if they are not all.
    pub(super) fn into_stream(self) -> (Vec<u8>, bool) {
        (self.stream, self.truncated)
    }
}

/// Handles a request or a notification; gives the reply to a request.
fn handle(message: &Value, state: &mut SessionState<'_>) -> Option<Value> {
    let method = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    let result = match method {
        "session/update" => {
            state.update(&params["update"]);
            None
        }
        "session/request_permission" => Some(state.permission(params)),
        _ => None,
    };
    let id = message.get("id").filter(|id| !id.is_null())?;
    Some(match result {
        Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        None => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": {"code": METHOD_NOT_FOUND, "message": format!("{method} is not offered")},
        }),
    })
}

async fn timeout_at<T>(
    limit: (Instant, Limit),
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::time::timeout_at(limit.0, work)
        .await
        .map_err(|_| Failure::Limit(limit.1))
}
