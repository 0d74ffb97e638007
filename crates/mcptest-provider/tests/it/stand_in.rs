//! A local provider that answers as the test decides, correctly or not. The tests of the command
//! line use it too.

#![allow(dead_code, reason = "two test programs use different parts of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// An answer.
pub enum Answer {
    /// A status, headers, a JSON body.
    Json(u16, Vec<(&'static str, String)>, Value),
    /// A success status with an event stream, written part by part; a cut one ends without its last
    /// chunk.
    Stream { parts: Vec<String>, cut: bool },
    /// These bytes, then the end of the connection.
    Raw(Vec<u8>),
    /// Nothing, for longer than any timeout.
    Silence,
}

impl Answer {
    pub fn ok(body: Value) -> Self {
        Self::Json(200, Vec::new(), body)
    }
}

/// The local provider. It runs until the test process ends.
pub struct StandIn {
    address: String,
    state: Arc<State>,
}

struct State {
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    /// Requests in flight, and their maximum.
    in_flight: Mutex<(usize, usize)>,
    more: Condvar,
    /// Answers are held back until this number of requests is in flight, or for some seconds.
    together: usize,
}

type Handler = dyn Fn(&Seen, usize) -> Answer + Send + Sync;

impl StandIn {
    /// Starts a provider. The handler gets the request and the number of requests before it.
    pub fn start(handler: impl Fn(&Seen, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_together(1, handler)
    }

    /// Starts a provider that answers once this number of requests is in flight, or after some
    /// seconds.
    pub fn start_together(
        together: usize,
        handler: impl Fn(&Seen, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State {
            seen: Mutex::default(),
            connections: AtomicUsize::new(0),
            in_flight: Mutex::default(),
            more: Condvar::new(),
            together,
        });
        let (shared, handler): (_, Arc<Handler>) = (state.clone(), Arc::new(handler));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let (state, handler) = (shared.clone(), handler.clone());
                thread::spawn(move || serve(&stream, &state, &*handler));
            }
        });
        Self { address, state }
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Returns the maximum of requests in flight.
    pub fn max_in_flight(&self) -> usize {
        self.state.in_flight.lock().unwrap().1
    }
}

fn serve(stream: &TcpStream, state: &State, handler: &Handler) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(seen) = read_request(&mut reader) {
        let number = {
            let mut all = state.seen.lock().unwrap();
            all.push(seen.clone());
            all.len() - 1
        };
        {
            let mut in_flight = state.in_flight.lock().unwrap();
            in_flight.0 += 1;
            in_flight.1 = in_flight.1.max(in_flight.0);
            state.more.notify_all();
            // Once the number was reached, no answer is held back.
            let wait = |counts: &mut (usize, usize)| counts.1 < state.together;
            let patience = Duration::from_secs(20);
            drop(
                state
                    .more
                    .wait_timeout_while(in_flight, patience, wait)
                    .unwrap(),
            );
        }
        let answer = handler(&seen, number);
        let keep_open = write_answer(stream, answer);
        state.in_flight.lock().unwrap().0 -= 1;
        if keep_open.is_none() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut head = String::new();
    reader
        .read_line(&mut head)
        .ok()
        .filter(|count| *count > 0)?;
    let path = head.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|count| *count > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Seen {
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// Writes an answer. `None` means that the connection ends.
fn write_answer(mut stream: &TcpStream, answer: Answer) -> Option<()> {
    match answer {
        Answer::Json(status, headers, body) => {
            let body = body.to_string();
            let mut head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream
                .write_all(format!("{head}\r\n{body}").as_bytes())
                .ok()
        }
        Answer::Stream { parts, cut } => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                        transfer-encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).ok()?;
            for part in parts {
                let chunk = format!("{:x}\r\n{part}\r\n", part.len());
                stream.write_all(chunk.as_bytes()).ok()?;
            }
            if cut {
                return None;
            }
            stream.write_all(b"0\r\n\r\n").ok()
        }
        Answer::Raw(bytes) => {
            let _ = stream.write_all(&bytes);
            None
        }
        Answer::Silence => {
            // Until the client closes the connection.
            let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
            let _ = stream.read(&mut [0]);
            None
        }
    }
}
