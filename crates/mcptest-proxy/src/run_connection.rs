//! The connections of an agent with the servers of its run, each with a server process or a bridge
//! behind it, and all with the same record.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcptest_wire::StderrLines;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::attack::SharedAttacks;
use crate::backend::{Backend, ProxiedServer};
use crate::distract::DistractorPlan;
use crate::error::ProxyError;
use crate::log;
use crate::observe::Observer;
use crate::pump::{
    CHUNK_BYTES, CallLimit, EXIT_STATUS_WAIT, LAST_OUTPUT_WAIT, QUEUE_LEN, Shared,
    client_to_server, server_to_client,
};
use crate::run_state::RunState;

/// The largest number of connections of one run. A client that reconnects forever is stopped here.
const MAX_CONNECTIONS: usize = 1000;

/// After the end of the agent: time for its connections to close by themselves.
const CLOSE_WAIT: Duration = Duration::from_millis(200);

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

/// One connection of the agent.
pub(crate) struct Connection {
    /// The index of the server.
    pub(crate) server: usize,
    pub(crate) shared: Arc<Shared>,
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

/// The servers of a run, and the connections with them.
pub(crate) struct RunServers {
    pub(crate) servers: Vec<RunServer>,
    pub(crate) run: Arc<RunState>,
    pub(crate) attacks: Option<SharedAttacks>,
    pub(crate) connections: Mutex<Vec<Arc<Connection>>>,
}

impl RunServers {
    pub(crate) fn connections(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
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

pub(crate) fn server_record<'a>(
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

/// Serves one connection of the agent.
pub(crate) async fn serve(
    state: Arc<RunServers>,
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
