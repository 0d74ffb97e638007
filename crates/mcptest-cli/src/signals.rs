//! Signals that ask the process to end.
//!
//! They are received on a separate thread: the others may be busy with a long computation, or
//! wait for a pipe that nobody reads.

use mcptest_report::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Calls a function for each SIGINT, SIGTERM and SIGHUP from now on.
///
/// Must be called before a server is started: a signal without a listener ends this process
/// immediately and leaves the server behind.
///
/// # Errors
/// Signals cannot be listened for.
pub fn listen(mut received: impl FnMut() + Send + 'static) -> Result<(), String> {
    let fail = |error| format!("cannot listen for signals: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(fail)?;
    let inside = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(fail)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(fail)?;
    drop(inside);
    let receive = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                received();
            }
        });
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(receive).map_err(fail)?;
    Ok(())
}

/// Starts to listen for signals. The returned future completes at the first one. A further one ends
/// the process immediately, and so does the first if the future was dropped, because the work that
/// it would have stopped has ended.
///
/// Must be called before a server is started. Where signals cannot be listened for, the future
/// never completes.
pub fn shutdown_signal() -> impl Future<Output = ()> {
    let (sender, receiver) = oneshot::channel();
    let mut sender = Some(sender);
    let listens = listen(move || {
        let is_expected = sender.take().is_some_and(|sender| sender.send(()).is_ok());
        if !is_expected {
            exit();
        }
    });
    async move {
        if listens.is_err() || receiver.await.is_err() {
            std::future::pending().await
        }
    }
}

/// Ends every server and this process.
pub fn exit() {
    mcptest_runner::kill_all();
    #[expect(
        clippy::exit,
        reason = "asked twice, or while nothing listens: nothing is worth waiting for"
    )]
    std::process::exit(u8::from(ExitCode::Interrupted).into());
}
