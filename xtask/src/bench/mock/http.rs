//! A client over HTTP/1.1 with connections that stay open. One thread keeps all of them busy: it
//! takes the answers in turn, and each answer taken is followed by the next request on its
//! connection, so that the server always finds work.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::super::figures::Rate;
use super::peers::{Peer, Process};
use super::stdio::{call, check, initialize};

/// A server that listens on loopback.
pub struct HttpServer {
    process: Process,
    /// `127.0.0.1:1234`
    authority: String,
}

impl HttpServer {
    /// Starts a server and waits until it prints its address.
    pub fn start(peer: &Peer) -> Result<Self> {
        let mut process = peer.start(Stdio::null(), Stdio::null(), Stdio::piped())?;
        let stderr = process.child.stderr.take().context("no standard error")?;
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line)?;
        let authority = line.trim().strip_prefix("listening on http://");
        let authority = authority.and_then(|rest| rest.strip_suffix("/mcp"));
        let authority = authority.with_context(|| format!("{} says: {line}", peer.name))?;
        Ok(Self {
            authority: authority.to_owned(),
            process,
        })
    }

    /// Opens connections, and one session for them all if the server has sessions.
    pub fn clients(&mut self, count: usize) -> Result<Clients> {
        let mut connection = Connection::open(&self.authority)?;
        connection.send(&self.request("", &initialize().to_string()))?;
        let reply = connection.receive()?;
        let session = reply
            .session
            .map_or_else(String::new, |id| format!("Mcp-Session-Id: {id}\r\n"));
        let mut connections = Vec::new();
        for _ in 0..count {
            connections.push(Connection::open(&self.authority)?);
        }
        Ok(Clients {
            // Ids of one width: the request is made once.
            request: self.request(&session, &call(100_000)),
            connections,
        })
    }

    fn request(&self, session: &str, body: &str) -> Vec<u8> {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2025-11-25\r\n{session}Content-Length: {}\r\n\r\n{body}",
            self.authority,
            body.len()
        )
        .into_bytes()
    }

    pub fn processor_us(&self) -> Result<f64> {
        self.process.processor_us()
    }

    pub fn resident_mib(&self) -> Result<f64> {
        self.process.resident_mib()
    }
}

/// The client's side.
pub struct Clients {
    connections: Vec<Connection>,
    request: Vec<u8>,
}

impl Clients {
    /// The time of each call in microseconds, and calls per second.
    pub fn keep_busy(&mut self, window: Duration) -> Result<(Vec<f64>, f64)> {
        let began = Instant::now();
        self.flow(|_| began.elapsed() < window)
    }

    /// Makes at least this number of calls.
    pub fn calls(&mut self, wanted: usize) -> Result<()> {
        self.flow(|done| done < wanted).map(|_| ())
    }

    fn flow(&mut self, continues: impl Fn(usize) -> bool) -> Result<(Vec<f64>, f64)> {
        let mut times = Vec::new();
        let mut rate = Rate::new();
        for connection in &mut self.connections {
            connection.send(&self.request)?;
        }
        let mut waiting = self.connections.len();
        while waiting > 0 {
            let more = continues(times.len());
            for connection in &mut self.connections {
                let reply = connection.receive()?;
                check(reply.body)?;
                times.push(connection.sent.elapsed().as_secs_f64() * 1e6);
                if more {
                    connection.send(&self.request)?;
                } else {
                    waiting -= 1;
                }
            }
            rate.add(self.connections.len());
        }
        Ok((times, rate.median()))
    }
}

/// One connection.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    sent: Instant,
}

/// The response.
struct Answer<'a> {
    body: &'a [u8],
    session: Option<String>,
}

impl Connection {
    fn open(authority: &str) -> Result<Self> {
        let stream = TcpStream::connect(authority)
            .with_context(|| format!("cannot connect to {authority}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; 16 << 10],
            sent: Instant::now(),
        })
    }

    fn send(&mut self, request: &[u8]) -> Result<()> {
        self.sent = Instant::now();
        Ok(self.stream.write_all(request)?)
    }

    /// Reads one answer: with its length in the head, smaller than the buffer, and nothing after
    /// it.
    fn receive(&mut self) -> Result<Answer<'_>> {
        let mut filled = 0;
        loop {
            let length = self.stream.read(&mut self.buffer[filled..])?;
            if length == 0 {
                bail!("the connection was closed");
            }
            filled += length;
            let Some(end) = self.buffer[..filled]
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
            else {
                continue;
            };
            let head = std::str::from_utf8(&self.buffer[..end])?;
            ensure!(
                head.starts_with("HTTP/1.1 200 "),
                "unexpected answer: {head}"
            );
            let field = |wanted: &str| {
                head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case(wanted).then(|| value.trim())
                })
            };
            let length: usize = field("content-length")
                .context("no Content-Length")?
                .parse()?;
            let body = end + 4..end + 4 + length;
            if filled < body.end {
                continue;
            }
            ensure!(filled == body.end, "there is something behind the answer");
            return Ok(Answer {
                session: field("mcp-session-id").map(str::to_owned),
                body: &self.buffer[body],
            });
        }
    }
}
