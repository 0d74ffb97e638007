//! The streams between client and server, and the end of a session.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mcptest_wire::{HttpServer, ServerCommand, ServerProcess};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::distract::DistractorPlan;
use crate::error::ProxyError;
use crate::fault::ProxyFault;
use crate::http::Bridge;
use crate::lines::{LinePart, LineSplitter, MAX_LINE_BYTES};
use crate::log::{self, Direction};
use crate::observe::{LineAction, Observer};
use crate::record::Recorder;

/// The number of queued chunks in each direction. A side that does not read blocks the other, like
/// a pipe.
const QUEUE_LEN: usize = 64;
const CHUNK_BYTES: usize = 64 * 1024;

/// After the end of the server: time for the client to read the rest of its output.
const LAST_OUTPUT_WAIT: Duration = Duration::from_secs(5);

/// After the end of stdout: time for the exit status to arrive.
const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// The settings of a proxy.
#[derive(Debug)]
pub struct ProxyOptions {
    /// The server.
    pub target: ProxiedServer,
    /// The name of the server in the trace.
    pub server: Option<String>,
    /// The test that the trace is for.
    pub test: Option<String>,
    /// The fault that affects calls.
    pub fault: ProxyFault,
    /// The tools whose calls it affects; empty for all tools.
    pub fault_tools: Vec<String>,
    /// The distractors to add to lists.
    pub distractors: Option<DistractorPlan>,
    /// The number of the run in the trace.
    pub run: Option<u64>,
    /// The trace file.
    pub record: Option<PathBuf>,
    /// Values that the trace must not contain.
    pub secrets: Vec<String>,
}

/// The server behind the proxy.
#[derive(Debug)]
pub enum ProxiedServer {
    /// A program to start.
    Command(ServerCommand),
    /// A server over streamable HTTP.
    Http(HttpServer),
}

/// The running server of a session.
enum Backend {
    Process(Box<ServerProcess>),
    Bridge(Bridge),
}

type Input = Box<dyn AsyncWrite + Send + Unpin>;
type Output = Box<dyn AsyncRead + Send + Unpin>;

impl Backend {
    async fn open(target: &ProxiedServer) -> Result<(Self, Input, Output), ProxyError> {
        match target {
            ProxiedServer::Command(command) => {
                let (process, stdin, stdout) =
                    ServerProcess::start("behind the proxy", command).map_err(ProxyError::Start)?;
                let process = Self::Process(Box::new(process));
                Ok((process, Box::new(stdin), Box::new(stdout)))
            }
            ProxiedServer::Http(server) => {
                let (bridge, input, output) = Bridge::start(server).await?;
                Ok((Self::Bridge(bridge), Box::new(input), Box::new(output)))
            }
        }
    }

    /// Waits for the exit status, if there is one.
    async fn wait(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Process(process) => process.wait().await.ok(),
            Self::Bridge(_) => None,
        }
    }

    /// Stops the server after its input was closed.
    async fn stop(&mut self) {
        match self {
            Self::Process(process) => process.stop().await,
            Self::Bridge(bridge) => bridge.stop().await,
        }
    }

    /// Stops the server without giving it time, after the proxy was stopped.
    async fn stop_now(&mut self) {
        match self {
            Self::Process(process) => process.stop_now().await,
            Self::Bridge(bridge) => bridge.stop().await,
        }
    }
}

/// The end of a session.
#[derive(Debug)]
pub enum SessionEnd {
    /// The client closed its side.
    Client,
    /// The server ended first.
    Server(Option<ExitStatus>),
    /// The proxy was stopped.
    Stopped,
}

/// Passes all bytes between a client on `input` and `output` and the server, until one side ends or
/// `stop` completes. When it returns, all processes of the server have exited.
///
/// # Errors
/// The server could not be started, or the trace could not be written.
pub async fn relay(
    options: ProxyOptions,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<SessionEnd, ProxyError> {
    let server_name = options.server.clone();
    let mut observer = Observer::new(
        options.server,
        options.fault,
        options.fault_tools,
        options.distractors,
    );
    observer.trace.test = options.test.map(Into::into);
    observer.trace.run = options.run;
    let shared = Arc::new(Shared {
        observer: Mutex::new(observer),
        changed: Notify::new(),
    });
    let mut recorder = options
        .record
        .as_deref()
        .map(|path| Recorder::new(path, &options.secrets));
    // Reports a file that cannot be written before the session starts.
    write(recorder.as_mut(), &shared)?;
    let mut stop = std::pin::pin!(stop);
    let opened = tokio::select! {
        biased;
        () = &mut stop => return Ok(SessionEnd::Stopped),
        opened = Backend::open(&options.target) => opened,
    };
    let (mut backend, stdin, stdout) = opened?;
    let start = Instant::now();
    log::started(server_name.as_deref().unwrap_or_default());
    let (to_client, client_served) = write_thread(output);
    let mut client = tokio::spawn(client_to_server(
        shared.clone(),
        read_thread(input),
        stdin,
        to_client.clone(),
    ));
    let mut server = tokio::spawn(server_to_client(shared.clone(), stdout, to_client));
    let recording = keep_recording(recorder.as_mut(), &shared);
    let end = tokio::select! {
        biased;
        () = &mut stop => Ok(SessionEnd::Stopped),
        error = recording => Err(error),
        _ = &mut client => Ok(SessionEnd::Client),
        _ = &mut server => {
            let status = timeout(EXIT_STATUS_WAIT, backend.wait()).await;
            Ok(SessionEnd::Server(status.ok().flatten()))
        }
    };
    client.abort();
    // A client that has closed its side may send a signal if it waits too long.
    let stopped = matches!(end, Ok(SessionEnd::Stopped))
        || tokio::select! {
            () = backend.stop() => false,
            () = &mut stop => true,
        };
    if stopped {
        backend.stop_now().await;
    }
    if matches!(end, Ok(SessionEnd::Stopped)) {
        server.abort();
    } else if !server.is_finished() {
        // The last output of the server and delayed replies still go to the client.
        let _ = server.await;
    }
    // A client that does not read is not waited for.
    let _ = timeout(LAST_OUTPUT_WAIT, client_served).await;
    write(recorder.as_mut(), &shared)?;
    let reason = match &end {
        Ok(SessionEnd::Client) => "the client closed its side",
        Ok(SessionEnd::Server(_)) => "the server ended",
        Ok(SessionEnd::Stopped) => "stopped",
        Err(_) => "the trace cannot be written",
    };
    log::ended(reason, start.elapsed().as_millis());
    let failure = shared
        .observer()
        .distractors
        .as_mut()
        .and_then(|distractors| distractors.failure.take());
    match failure {
        Some(failure) => end.and(Err(ProxyError::Distractors(failure))),
        None => end,
    }
}

struct Shared {
    observer: Mutex<Observer>,
    changed: Notify,
}

impl Shared {
    fn observer(&self) -> MutexGuard<'_, Observer> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Observes a line and wakes the recorder if the trace has changed.
    fn observe(&self, handle: impl FnOnce(&mut Observer) -> LineAction) -> LineAction {
        let mut observer = self.observer();
        let action = handle(&mut observer);
        if observer.changed {
            self.changed.notify_one();
        }
        action
    }
}

/// Passes lines to the server until the client closes its side or the server stops reading.
async fn client_to_server(
    shared: Arc<Shared>,
    mut from_client: mpsc::Receiver<Vec<u8>>,
    mut stdin: Input,
    to_client: mpsc::Sender<Vec<u8>>,
) {
    let mut lines = LineSplitter::new(MAX_LINE_BYTES);
    let mut parts = Vec::new();
    loop {
        let chunk = from_client.recv().await;
        match &chunk {
            Some(chunk) => lines.push(chunk, &mut parts),
            None => parts.extend(lines.end()),
        }
        let mut passed = Vec::new();
        for part in parts.drain(..) {
            match part {
                LinePart::Oversized(bytes) => passed.extend(bytes),
                LinePart::Line(line) => {
                    let action =
                        shared.observe(|observer| observer.client_line(&line, Instant::now()));
                    log::line(Direction::FromClient, &line, action.as_str());
                    match action {
                        LineAction::Pass => passed.extend(line),
                        LineAction::Replace(line) => passed.extend(line),
                        LineAction::Answer(answer) => {
                            // The client may be gone.
                            let _ = to_client.send(answer).await;
                        }
                        LineAction::Drop | LineAction::Hold(_) => {}
                    }
                }
            }
        }
        if stdin.write_all(&passed).await.is_err() {
            // The end of its stdout, with its last output, ends the session.
            return std::future::pending().await;
        }
        if chunk.is_none() {
            return;
        }
    }
}

/// Passes lines to the client until the server's output ends and all delayed replies are sent.
async fn server_to_client(
    shared: Arc<Shared>,
    mut stdout: Output,
    to_client: mpsc::Sender<Vec<u8>>,
) {
    let mut lines = LineSplitter::new(MAX_LINE_BYTES);
    let mut parts = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut delayed = JoinSet::new();
    loop {
        let read = stdout.read(&mut chunk).await.unwrap_or(0);
        lines.push(&chunk[..read], &mut parts);
        if read == 0 {
            parts.extend(lines.end());
        }
        let mut passed = Vec::new();
        for part in parts.drain(..) {
            match part {
                LinePart::Oversized(bytes) => passed.extend(bytes),
                LinePart::Line(line) => {
                    let action = shared.observe(|observer| observer.server_line(&line));
                    log::line(Direction::FromServer, &line, action.as_str());
                    match action {
                        LineAction::Pass => passed.extend(line),
                        LineAction::Replace(line) => passed.extend(line),
                        LineAction::Drop | LineAction::Answer(_) => {}
                        LineAction::Hold(until) => {
                            let (shared, to_client) = (shared.clone(), to_client.clone());
                            delayed.spawn(async move {
                                sleep_until(until.into()).await;
                                if shared.observer().release(&line) {
                                    // The client may be gone.
                                    let _ = to_client.send(line).await;
                                }
                            });
                        }
                    }
                }
            }
        }
        if !passed.is_empty() && to_client.send(passed).await.is_err() {
            return;
        }
        if read == 0 {
            break;
        }
        while delayed.try_join_next().is_some() {}
    }
    tokio::select! {
        () = async { while delayed.join_next().await.is_some() {} } => {}
        () = to_client.closed() => {}
    }
}

/// Writes the trace whenever it has changed. Returns only with an error.
async fn keep_recording(recorder: Option<&mut Recorder>, shared: &Shared) -> ProxyError {
    let Some(recorder) = recorder else {
        return std::future::pending().await;
    };
    loop {
        shared.changed.notified().await;
        sleep_until(recorder.due(Instant::now()).into()).await;
        if let Err(error) = write(Some(recorder), shared) {
            return error;
        }
    }
}

fn write(recorder: Option<&mut Recorder>, shared: &Shared) -> Result<(), ProxyError> {
    let Some(recorder) = recorder else {
        return Ok(());
    };
    let mut observer = shared.observer();
    observer.changed = false;
    recorder
        .write(&observer.trace)
        .map_err(|error| ProxyError::Record {
            path: recorder.path().to_owned(),
            error,
        })
}

/// Reads standard input in a thread, because reading it cannot be cancelled.
fn read_thread(mut input: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(QUEUE_LEN);
    thread::spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match input.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) if sender.blocking_send(chunk[..read].to_vec()).is_err() => return,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    receiver
}

/// Writes in a thread. The receiver completes when everything is written.
fn write_thread(
    mut output: impl Write + Send + 'static,
) -> (mpsc::Sender<Vec<u8>>, oneshot::Receiver<()>) {
    let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(QUEUE_LEN);
    let (done, client_served) = oneshot::channel();
    thread::spawn(move || {
        while let Some(bytes) = receiver.blocking_recv() {
            if output
                .write_all(&bytes)
                .and_then(|()| output.flush())
                .is_err()
            {
                break;
            }
        }
        // The receiver may be gone.
        let _ = done.send(());
    });
    (sender, client_served)
}
