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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcptest_attack::AttackRun;
use mcptest_trace::fault::Fault;
use mcptest_trace::trace::Trace;
use mcptest_wire::StderrLines;
use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::attack::{self, SharedAttacks};
use crate::backend::{Backend, ProxiedServer};
use crate::distract::DistractorPlan;
use crate::error::ProxyError;
use crate::log;
use crate::merge;
use crate::observe::Observer;
use crate::pump::{
    CHUNK_BYTES, CallLimit, EXIT_STATUS_WAIT, LAST_OUTPUT_WAIT, QUEUE_LEN, Shared,
    client_to_server, server_to_client,
};
use crate::run_http::{self, HttpAddresses};
use crate::run_state::RunState;

/// The largest number of connections of one run. A client that reconnects forever is stopped here.
const MAX_CONNECTIONS: usize = 1000;

/// Bytes of the first line of a connection.
const MAX_HELLO_BYTES: u64 = 4096;

/// Time for the first line of a connection.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// After the end of the agent: time for its connections to close by themselves.
const CLOSE_WAIT: Duration = Duration::from_millis(200);

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

/// A server of a run.
#[derive(Debug)]
pub struct RunServer {
    /// Its name in the trace.
    pub name: String,
    /// The server itself.
    pub target: ProxiedServer,
    /// The timeout for each call.
    pub call_timeout: Duration,
    /// The distractors to add to its lists.
    pub distractors: Option<DistractorPlan>,
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

/// The facts about one server of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerRecord {
    /// Its name.
    pub name: String,
    /// The number of connections that the agent opened.
    pub connections: usize,
    /// True if it answered a request for its tools.
    pub listed: bool,
    /// The reason why it could not be started, or why it ended during the run.
    pub failure: Option<String>,
    /// The reason why it refused a message without authorization.
    pub auth_failure: Option<String>,
    /// True if it answered nothing any more after a call had timed out.
    pub unresponsive: bool,
    /// The reason why its distractors could not be added.
    pub distractor_failure: Option<String>,
    /// The last lines of its stderr.
    pub stderr: Vec<String>,
}

/// The first line of a connection.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    server: String,
}

/// One connection of the agent.
pub(crate) struct Connection {
    /// The index of the server.
    server: usize,
    shared: Arc<Shared>,
    facts: Mutex<ConnectionFacts>,
}

#[derive(Default)]
struct ConnectionFacts {
    failure: Option<String>,
    auth_failure: Option<String>,
    stderr: Option<StderrLines>,
}

impl Connection {
    fn facts(&self) -> MutexGuard<'_, ConnectionFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running proxies of a run. Dropping them ends all servers.
pub struct RunProxy {
    state: Arc<ProxyState>,
    accepting: JoinHandle<()>,
    stop: watch::Sender<bool>,
    addresses: Option<HttpAddresses>,
}

pub(crate) struct ProxyState {
    servers: Vec<RunServer>,
    run: Arc<RunState>,
    attacks: Option<SharedAttacks>,
    connections: Mutex<Vec<Arc<Connection>>>,
}

impl ProxyState {
    fn connections(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// Registers a connection with a server.
    pub(crate) fn open(&self, server: usize) -> Option<Arc<Connection>> {
        let mut connections = self.connections();
        if connections.len() >= MAX_CONNECTIONS {
            return None;
        }
        let RunServer {
            name, distractors, ..
        } = self.servers.get(server)?;
        let observer = Observer::of_run(name, Arc::clone(&self.run), distractors.clone())
            .with_attacks(self.attacks.clone());
        let connection = Arc::new(Connection {
            server,
            shared: Shared::new(observer),
            facts: Mutex::default(),
        });
        connections.push(Arc::clone(&connection));
        Some(connection)
    }
}

impl RunProxy {
    /// Starts to accept connections. Must be called within a tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// The socket cannot be created, or no port is free.
    pub fn start(options: RunProxyOptions) -> io::Result<Self> {
        let listener = UnixListener::bind(&options.socket)?;
        let state = Arc::new(ProxyState {
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

fn server_record<'a>(
    name: &str,
    connections: impl Iterator<Item = &'a Connection>,
) -> ServerRecord {
    let mut record = ServerRecord {
        name: name.to_owned(),
        ..ServerRecord::default()
    };
    for connection in connections {
        let observer = connection.shared.observer();
        let facts = connection.facts();
        record.connections += 1;
        record.listed |= observer.trace.catalog.is_some();
        record.unresponsive |= observer.unresponsive;
        if record.failure.is_none() {
            record.failure.clone_from(&facts.failure);
        }
        if record.auth_failure.is_none() {
            record.auth_failure.clone_from(&facts.auth_failure);
        }
        if record.distractor_failure.is_none() {
            let distractors = observer.distractors.as_ref();
            record.distractor_failure = distractors.and_then(|one| one.failure.clone());
        }
        record
            .stderr
            .extend(facts.stderr.iter().flat_map(StderrLines::lines));
    }
    record
}

/// Accepts connections until the run ends, then waits until all their servers have ended.
async fn accept(listener: UnixListener, state: Arc<ProxyState>, mut stop: watch::Receiver<bool>) {
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
async fn greet(state: Arc<ProxyState>, stream: UnixStream, stop: watch::Receiver<bool>) {
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

/// Serves one connection of the agent.
pub(crate) async fn serve(
    state: Arc<ProxyState>,
    connection: Arc<Connection>,
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    mut stop: watch::Receiver<bool>,
) {
    let Some(server) = state.servers.get(connection.server) else {
        return;
    };
    let began = Instant::now();
    let opened = tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => return,
        opened = Backend::open_quiet(&server.name, &server.target) => opened,
    };
    let (mut backend, stdin, stdout, stderr) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            if let ProxyError::Auth(reason) = &error {
                connection.facts().auth_failure = Some(reason.clone());
            }
            connection.facts().failure = Some(error.to_string());
            return;
        }
    };
    connection.facts().stderr = stderr;
    log::started(&server.name);
    let (to_client, client_served) = write_task(writer);
    let mut client = tokio::spawn(client_to_server(
        Arc::clone(&connection.shared),
        read_task(reader),
        stdin,
        to_client.clone(),
        Some(CallLimit {
            timeout: server.call_timeout,
            clock: backend.clock(),
        }),
    ));
    let pump = server_to_client(Arc::clone(&connection.shared), stdout, to_client);
    let mut from_server = tokio::spawn(pump);
    let stopped = async {
        let _ = stop.wait_for(|stop| *stop).await;
        // The agent has ended; what it sent before may still be on its way.
        tokio::time::sleep(CLOSE_WAIT).await;
    };
    let reason = tokio::select! {
        biased;
        _ = &mut client => "the client closed its side",
        _ = &mut from_server => {
            let status = timeout(EXIT_STATUS_WAIT, backend.wait()).await.ok().flatten();
            connection.facts().failure = Some(match status {
                Some(status) => format!("the server ended during the run ({status})"),
                None => "the server closed its output during the run".to_owned(),
            });
            "the server ended"
        }
        () = stopped => "the run ended",
    };
    if !client.is_finished() {
        client.abort();
        // An aborted task drops its end of the server's stdin only when it is next polled.
        let _ = client.await;
    }
    connection.facts().auth_failure = backend.auth_failure();
    backend.stop().await;
    if !from_server.is_finished() {
        // The last output of the server still goes to the client.
        let _ = timeout(LAST_OUTPUT_WAIT, &mut from_server).await;
        from_server.abort();
    }
    let _ = timeout(LAST_OUTPUT_WAIT, client_served).await;
    log::ended(reason, began.elapsed().as_millis());
}

/// Reads chunks until the client closes its side.
fn read_task(mut reader: impl AsyncRead + Unpin + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(QUEUE_LEN);
    tokio::spawn(async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(read @ 1..) = reader.read(&mut chunk).await {
            if sender.send(chunk[..read].to_vec()).await.is_err() {
                return;
            }
        }
    });
    receiver
}

/// Writes chunks. The handle completes when everything is written.
fn write_task(
    mut writer: impl AsyncWrite + Unpin + Send + 'static,
) -> (mpsc::Sender<Vec<u8>>, JoinHandle<()>) {
    let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(QUEUE_LEN);
    let task = tokio::spawn(async move {
        while let Some(bytes) = receiver.recv().await {
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let _ = writer.shutdown().await;
    });
    (sender, task)
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
