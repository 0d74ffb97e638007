//! The proxies of one run of an agent: all its servers and all its connections in one process, one
//! trace.
//!
//! An agent starts its servers itself. Instead of a server it is given a command that only connects
//! to a socket of the run (`mcptest proxy --connect`). The other end of the socket is here: each
//! connection starts the real server, relays the lines, and observes them. So the environment of a
//! server never passes through the agent, a server that an agent starts once per call leaves one
//! trace, faults are counted over all connections, and nothing has to be merged from files.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcptest_attack::AttackRun;
use mcptest_trace::fault::Fault;
use mcptest_trace::trace::Trace;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::attack;
use crate::merge;
use crate::pump::CHUNK_BYTES;
use crate::run_connection::{RunServer, RunServers, ServerRecord, serve, server_record};
use crate::run_http::{self, HttpAddresses};
use crate::run_state::RunState;

/// Bytes of the first line of a connection.
const MAX_HELLO_BYTES: u64 = 4096;

/// Time for the first line of a connection.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// Time for stopping the servers; each is killed after less.
const STOP_WAIT: Duration = Duration::from_secs(6);

/// The settings of the proxies of a run.
#[derive(Debug)]
pub struct RunProxyOptions {
    /// The path of the socket. Its folder must be accessible to the agent only.
    pub socket: PathBuf,
    /// True if the servers have addresses, too.
    pub http: bool,
    /// The servers.
    pub servers: Vec<RunServer>,
    /// The injected faults.
    pub faults: Vec<Fault>,
    /// The attacks of the run.
    pub attacks: Option<AttackRun>,
    /// The time within which the agent shall detect a fault, in milliseconds.
    pub max_detection_ms: Option<u64>,
}

/// The evidence of a run's proxies.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunRecord {
    /// Calls, results, catalog and distractors.
    pub trace: Trace,
    /// The time of each call of the trace.
    pub call_times: Vec<Instant>,
    /// The servers, in the order of the options.
    pub servers: Vec<ServerRecord>,
}

/// The first line of a connection.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    server: String,
}

/// The running proxies of a run. Dropping them ends all servers.
pub struct RunProxy {
    state: Arc<RunServers>,
    accepting: JoinHandle<()>,
    stop: watch::Sender<bool>,
    addresses: Option<HttpAddresses>,
}

impl RunProxy {
    /// Starts to accept connections. Must be called within a tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// The socket cannot be created, or no port is free.
    pub fn start(options: RunProxyOptions) -> io::Result<Self> {
        let listener = UnixListener::bind(&options.socket)?;
        let state = Arc::new(RunServers {
            servers: options.servers,
            run: Arc::new(RunState::new(options.faults, options.max_detection_ms)),
            attacks: attack::share(options.attacks),
            connections: Mutex::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let http = options.http.then(run_http::listen).transpose()?;
        let (http, addresses) = http.unzip();
        let from_socket = accept(listener, Arc::clone(&state), stopped.clone());
        let from_http = http.zip(addresses.as_ref()).map(|(listener, addresses)| {
            run_http::accept(listener, addresses, Arc::clone(&state), stopped)
        });
        let accepting = tokio::spawn(async move {
            match from_http {
                Some(from_http) => {
                    tokio::join!(from_socket, from_http);
                }
                None => from_socket.await,
            }
        });
        Ok(Self {
            state,
            accepting,
            stop,
            addresses,
        })
    }

    /// The address of a server; none without `http`.
    #[must_use]
    pub fn address(&self, server: &str) -> Option<String> {
        let mut servers = self.state.servers.iter();
        let index = servers.position(|one| one.name == server)?;
        Some(self.addresses.as_ref()?.of(index))
    }

    /// The evidence so far.
    #[must_use]
    pub fn trace(&self) -> Trace {
        let connections = self.state.connections();
        merge::observed(connections.iter().map(|one| one.shared.as_ref())).trace
    }

    /// Ends all connections and servers, and returns the evidence.
    pub async fn finish(mut self) -> RunRecord {
        // A receiver that is gone has ended by itself.
        let _ = self.stop.send(true);
        if timeout(STOP_WAIT, &mut self.accepting).await.is_err() {
            self.accepting.abort();
        }
        let connections = std::mem::take(&mut *self.state.connections());
        let mut merged = merge::observed(connections.iter().map(|one| one.shared.as_ref()));
        if let Some(attacks) = &self.state.attacks {
            attack::record(&attack::lock(attacks), &mut merged.trace);
        }
        let servers = self
            .state
            .servers
            .iter()
            .enumerate()
            .map(|(index, server)| {
                let own = connections.iter().filter(|one| one.server == index);
                server_record(&server.name, own.map(AsRef::as_ref))
            })
            .collect();
        RunRecord {
            trace: merged.trace,
            call_times: merged.times,
            servers,
        }
    }
}

impl Drop for RunProxy {
    fn drop(&mut self) {
        // Dropping the tasks of the connections kills their servers.
        self.accepting.abort();
    }
}

/// Accepts connections until the run ends, then waits until all their servers have ended.
async fn accept(listener: UnixListener, state: Arc<RunServers>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (state, stop) = (Arc::clone(&state), stop.clone());
                connections.spawn(greet(state, stream, stop));
            }
            // Too many open files: others may close soon.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        while connections.try_join_next().is_some() {}
    }
    while connections.join_next().await.is_some() {}
}

/// Reads the first line of a connection, and serves it if it names a server of the run.
async fn greet(state: Arc<RunServers>, stream: UnixStream, stop: watch::Receiver<bool>) {
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let Ok(Some(Hello { server })) = timeout(HELLO_WAIT, hello(&mut reader)).await else {
        return;
    };
    let index = state.servers.iter().position(|one| one.name == server);
    if let Some(connection) = index.and_then(|index| state.open(index)) {
        serve(state, connection, reader, writer, stop).await;
    }
}

async fn hello(reader: &mut (impl AsyncRead + Unpin)) -> Option<Hello> {
    let mut line = Vec::new();
    // A buffer of one byte, because the next lines belong to the server.
    let mut limited = BufReader::with_capacity(1, reader.take(MAX_HELLO_BYTES));
    limited.read_until(b'\n', &mut line).await.ok()?;
    serde_json::from_slice(&line).ok()
}

/// Connects an agent with a server of its run: passes all bytes between `input`, `output` and the
/// socket until the run closes the connection. It returns although `input` may still be open.
///
/// # Errors
/// The socket no longer exists, `output` cannot be written, or the run closed the connection
/// before the server sent anything.
pub fn connect(
    socket: &Path,
    server: &str,
    mut input: impl io::Read + Send + 'static,
    mut output: impl io::Write,
) -> io::Result<()> {
    let mut from_run = std::os::unix::net::UnixStream::connect(socket)?;
    let hello = Hello {
        server: server.to_owned(),
    };
    let mut line = serde_json::to_vec(&hello)?;
    line.push(b'\n');
    from_run.write_all(&line)?;
    let mut to_run = from_run.try_clone()?;
    std::thread::spawn(move || {
        // The run may be over; then the other direction ends, too.
        let _ = io::copy(&mut input, &mut to_run);
        let _ = to_run.shutdown(std::net::Shutdown::Write);
    });
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut has_answered = false;
    loop {
        let read = from_run.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        has_answered = true;
        output.write_all(&chunk[..read])?;
        output.flush()?;
    }
    if has_answered {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "`{server}` could not be started, or ended without an answer; the report of the run has \
         the reason"
    )))
}
