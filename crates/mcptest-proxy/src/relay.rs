//! The streams between client and server, and the end of both.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mcptest_wire::{HttpServer, ServerCommand, ServerProcess, WireError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::distract::Distraction;
use crate::fault::ProxyFault;
use crate::http::Bridge;
use crate::lines::{Lines, MAX_LINE_BYTES, Piece};
use crate::observe::{Fate, Observer};
use crate::record::Recorder;

/// Chunks on their way, in each direction. A side that does not read stops the other, as a pipe
/// would.
const QUEUE: usize = 64;
const CHUNK: usize = 64 * 1024;

/// After the server's end: time for the rest of its output to be read, and for a client to take it.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// After its stdout ended: time for the exit status to follow.
const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// What a proxy is to do.
#[derive(Debug)]
pub struct ProxyOptions {
    /// The server.
    pub behind: Behind,
    /// What the trace calls it.
    pub server: Option<String>,
    /// The test that the trace is for.
    pub test: Option<String>,
    /// What happens to calls.
    pub fault: ProxyFault,
    /// The tools whose calls it happens to; none means all.
    pub fault_tools: Vec<String>,
    /// The tools that are put into lists.
    pub distraction: Option<Distraction>,
    /// The number of the run that the trace is of.
    pub run: Option<u64>,
    /// Where the trace goes.
    pub record: Option<PathBuf>,
    /// Values that the trace must not hold.
    pub secrets: Vec<String>,
}

/// What stands behind the proxy.
#[derive(Debug)]
pub enum Behind {
    /// A program that is started.
    Command(ServerCommand),
    /// An address.
    Http(HttpServer),
}

/// The server that a session has.
enum Far {
    Process(ServerProcess),
    Bridge(Bridge),
}

type Input = Box<dyn AsyncWrite + Send + Unpin>;
type Output = Box<dyn AsyncRead + Send + Unpin>;

impl Far {
    async fn open(behind: &Behind) -> Result<(Self, Input, Output), ProxyError> {
        match behind {
            Behind::Command(command) => {
                let (process, stdin, stdout) = ServerProcess::start("behind the proxy", command)
                    .map_err(ProxyError::Server)?;
                Ok((Self::Process(process), Box::new(stdin), Box::new(stdout)))
            }
            Behind::Http(server) => {
                let (bridge, input, output) =
                    Bridge::start(server).await.map_err(ProxyError::Address)?;
                Ok((Self::Bridge(bridge), Box::new(input), Box::new(output)))
            }
        }
    }

    /// How it ended, where there is a status.
    async fn wait(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Process(process) => process.wait().await.ok(),
            Self::Bridge(_) => None,
        }
    }

    /// Ends it, once its input is closed.
    async fn end(&mut self) {
        match self {
            Self::Process(process) => process.stop().await,
            Self::Bridge(bridge) => bridge.end().await,
        }
    }

    /// Ends it without waiting for it: somebody stopped us.
    async fn end_at_once(&mut self) {
        match self {
            Self::Process(process) => process.stop_now().await,
            Self::Bridge(bridge) => bridge.end().await,
        }
    }
}

/// How a session ended.
#[derive(Debug)]
pub enum End {
    /// The client closed its end.
    Client,
    /// The server left first.
    Server(Option<ExitStatus>),
    /// `stop` came.
    Stopped,
}

/// Why a session could not begin, or why its trace is not whole.
#[derive(Debug)]
pub enum ProxyError {
    /// The server could not be started.
    Server(WireError),
    /// The server's address cannot be used.
    Address(String),
    /// The trace could not be written.
    Record(PathBuf, std::io::Error),
    /// No distractors could be put into a list, which the trace cannot show.
    Distractors(String),
}

impl std::fmt::Display for ProxyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Address(why) => f.write_str(why),
            Self::Distractors(why) => write!(f, "no distractors were put in: {why}"),
            Self::Record(path, error) => {
                write!(f, "cannot write the trace to `{}`: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for ProxyError {}

/// Passes everything on between a client on `input` and `output` and the server, until one side
/// leaves or `stop` is done. The server and all that it started are gone when this returns.
///
/// # Errors
/// The server could not be started, or the trace could not be written.
pub async fn relay(
    options: ProxyOptions,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<End, ProxyError> {
    let mut observer = Observer::new(
        options.server,
        options.fault,
        options.fault_tools,
        options.distraction,
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
    // A file that cannot be written is better known before the work than after it.
    write(recorder.as_mut(), &shared)?;
    let mut stop = std::pin::pin!(stop);
    let opened = tokio::select! {
        biased;
        () = &mut stop => return Ok(End::Stopped),
        opened = Far::open(&options.behind) => opened,
    };
    let (mut far, stdin, stdout) = opened?;
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
        () = &mut stop => Ok(End::Stopped),
        error = recording => Err(error),
        _ = &mut client => Ok(End::Client),
        _ = &mut server => {
            let status = timeout(EXIT_STATUS_WAIT, far.wait()).await;
            Ok(End::Server(status.ok().flatten()))
        }
    };
    client.abort();
    // A client that closes its end and then loses patience sends a signal meanwhile.
    let stopped = matches!(end, Ok(End::Stopped))
        || tokio::select! {
            () = far.end() => false,
            () = &mut stop => true,
        };
    if stopped {
        far.end_at_once().await;
    }
    if matches!(end, Ok(End::Stopped)) {
        server.abort();
    } else if !server.is_finished() {
        // What the server said last still belongs to the client, and what is held back has its time
        // yet to come.
        let _ = server.await;
    }
    // A client that does not read any more is not waited for.
    let _ = timeout(LAST_WORDS, client_served).await;
    write(recorder.as_mut(), &shared)?;
    let problem = shared
        .observer()
        .distractor
        .as_mut()
        .and_then(|one| one.problem.take());
    match problem {
        Some(problem) => end.and(Err(ProxyError::Distractors(problem))),
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

    /// Reads a line along and wakes the recorder if it says something new.
    fn observe(&self, look: impl FnOnce(&mut Observer) -> Fate) -> Fate {
        let mut observer = self.observer();
        let fate = look(&mut observer);
        if observer.changed {
            self.changed.notify_one();
        }
        fate
    }
}

/// Until the client closes its end or the server stops reading.
async fn client_to_server(
    shared: Arc<Shared>,
    mut from_client: mpsc::Receiver<Vec<u8>>,
    mut stdin: Input,
    to_client: mpsc::Sender<Vec<u8>>,
) {
    let mut lines = Lines::new(MAX_LINE_BYTES);
    let mut pieces = Vec::new();
    loop {
        let chunk = from_client.recv().await;
        match &chunk {
            Some(chunk) => lines.push(chunk, &mut pieces),
            None => pieces.extend(lines.end()),
        }
        let mut passed = Vec::new();
        for piece in pieces.drain(..) {
            match piece {
                Piece::Unread(bytes) => passed.extend(bytes),
                Piece::Line(line) => {
                    let fate =
                        shared.observe(|observer| observer.client_line(&line, Instant::now()));
                    match fate {
                        Fate::Pass => passed.extend(line),
                        Fate::Replace(line) => passed.extend(line),
                        Fate::Answer(answer) => {
                            // A client that is gone needs no answer.
                            let _ = to_client.send(answer).await;
                        }
                        Fate::Drop | Fate::Hold(_) => {}
                    }
                }
            }
        }
        if stdin.write_all(&passed).await.is_err() {
            // Its end shows on its stdout, with its last words.
            return std::future::pending().await;
        }
        if chunk.is_none() {
            return;
        }
    }
}

/// Until the server's output ends and all that was held back is delivered.
async fn server_to_client(
    shared: Arc<Shared>,
    mut stdout: Output,
    to_client: mpsc::Sender<Vec<u8>>,
) {
    let mut lines = Lines::new(MAX_LINE_BYTES);
    let mut pieces = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let mut held = JoinSet::new();
    loop {
        let read = stdout.read(&mut chunk).await.unwrap_or(0);
        lines.push(&chunk[..read], &mut pieces);
        if read == 0 {
            pieces.extend(lines.end());
        }
        let mut passed = Vec::new();
        for piece in pieces.drain(..) {
            match piece {
                Piece::Unread(bytes) => passed.extend(bytes),
                Piece::Line(line) => match shared.observe(|observer| observer.server_line(&line)) {
                    Fate::Pass => passed.extend(line),
                    Fate::Replace(line) => passed.extend(line),
                    Fate::Drop | Fate::Answer(_) => {}
                    Fate::Hold(until) => {
                        let (shared, to_client) = (shared.clone(), to_client.clone());
                        held.spawn(async move {
                            sleep_until(until.into()).await;
                            if shared.observer().release(&line) {
                                // A client that is gone needs no reply.
                                let _ = to_client.send(line).await;
                            }
                        });
                    }
                },
            }
        }
        if !passed.is_empty() && to_client.send(passed).await.is_err() {
            return;
        }
        if read == 0 {
            break;
        }
        while held.try_join_next().is_some() {}
    }
    tokio::select! {
        () = async { while held.join_next().await.is_some() {} } => {}
        () = to_client.closed() => {}
    }
}

/// Writes the trace whenever it has changed. Comes back only with an error.
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
        .map_err(|error| ProxyError::Record(recorder.path().to_owned(), error))
}

/// Reading standard input cannot be given up, so a thread of its own does it.
fn read_thread(mut input: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    thread::spawn(move || {
        let mut chunk = vec![0; CHUNK];
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

/// The same for writing. The second part tells when all is written.
fn write_thread(
    mut output: impl Write + Send + 'static,
) -> (mpsc::Sender<Vec<u8>>, oneshot::Receiver<()>) {
    let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(QUEUE);
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
        // Nobody may be left to hear it.
        let _ = done.send(());
    });
    (sender, client_served)
}
