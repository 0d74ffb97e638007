//! The streams between client and server, and the end of a session.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread;
use std::time::Instant;

use mcptest_attack::AttackRun;
use mcptest_redact::redact::Redactor;
use mcptest_trace::verdict::{ErrorKind, RunError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep_until, timeout};

use crate::attack;
use crate::backend::{Backend, ProxiedServer};
use crate::client_sessions::{ClientSession, subject};
use crate::distract::DistractorPlan;
use crate::error::ProxyError;
use crate::fault::ProxyFault;
use crate::log;
use crate::observe::Observer;
use crate::pump::{
    CHUNK_BYTES, EXIT_STATUS_WAIT, LAST_OUTPUT_WAIT, QUEUE_LEN, Shared, client_to_server,
    server_to_client,
};
use crate::record::Recorder;

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
    /// The attacks of the run.
    pub attacks: Option<AttackRun>,
    /// The number of the run in the trace.
    pub run: Option<u64>,
    /// The trace file.
    pub record: Option<PathBuf>,
    /// The redactor of the trace.
    pub redactor: Redactor,
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
    if let Some(attacks) = &options.attacks {
        attack::record(attacks, &mut observer.trace);
        // Turns and the closing answer are not known here.
        observer.trace.extra.insert("recorded_by", "proxy");
    }
    observer = observer.with_attacks(attack::share(options.attacks));
    observer.trace.test = options.test.map(Into::into);
    observer.trace.run = options.run;
    let shared = Shared::new(observer);
    let mut recorder = options.record.as_deref().map(|path| {
        let session = ClientSession::of_parent(server_name.clone());
        Recorder::new(path, &options.redactor, session)
    });
    // Reports a file that cannot be written before the session starts.
    write(recorder.as_mut(), &shared)?;
    let mut stop = std::pin::pin!(stop);
    let opened = tokio::select! {
        biased;
        () = &mut stop => return Ok(SessionEnd::Stopped),
        opened = Backend::open(&options.target) => opened,
    };
    let (mut backend, stdin, stdout) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let kind = match error {
                ProxyError::Auth(_) => ErrorKind::Auth,
                _ => ErrorKind::ServerMissing,
            };
            let message = format!("{}did not start: {error}", subject(server_name.as_deref()));
            set_error(&shared, kind, message);
            write(recorder.as_mut(), &shared)?;
            return Err(error);
        }
    };
    let start = Instant::now();
    log::started(server_name.as_deref().unwrap_or_default());
    let (to_client, client_served) = write_thread(output);
    let mut client = tokio::spawn(client_to_server(
        shared.clone(),
        read_thread(input),
        stdin,
        to_client.clone(),
        None,
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
    if let Some(reason) = backend.auth_failure() {
        let subject = subject(server_name.as_deref());
        let message = format!("{subject}is not authorized: {reason}");
        set_error(&shared, ErrorKind::Auth, message);
    } else if let Ok(SessionEnd::Server(status)) = &end {
        record_end(&shared, server_name.as_deref(), *status);
    }
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

/// Records the end of a server before its client, unless it exited normally after it had listed its
/// tools: then the agent is not to blame for calls that it could not make.
fn record_end(shared: &Shared, server: Option<&str>, status: Option<ExitStatus>) {
    let how = status.map_or_else(String::new, |status| format!(" ({status})"));
    let listed = shared.observer().trace.catalog.is_some();
    let subject = subject(server);
    if !listed {
        let message = format!("{subject}ended before it listed its tools{how}");
        set_error(shared, ErrorKind::ServerMissing, message);
    } else if !status.is_some_and(|status| status.success()) {
        let message = format!("{subject}ended before its client{how}");
        set_error(shared, ErrorKind::ServerCrash, message);
    }
}

fn set_error(shared: &Shared, kind: ErrorKind, message: String) {
    shared.observer().trace.error = Some(RunError { kind, message });
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
    observer.add_messages();
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
