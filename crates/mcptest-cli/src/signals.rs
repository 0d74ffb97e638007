//! Signals that ask the process to end.

use tokio::signal::unix::{SignalKind, signal};

/// Starts to listen for signals. The returned future completes at the first SIGINT, SIGTERM or
/// SIGHUP.
///
/// Must be called before a server is started: a signal without a listener ends this process
/// immediately and leaves the server behind. Where signals cannot be listened for, the future
/// never completes. Needs a running tokio runtime.
pub fn shutdown_signal() -> impl Future<Output = ()> {
    let listeners = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ]
    .map(signal);
    async move {
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = listeners else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
