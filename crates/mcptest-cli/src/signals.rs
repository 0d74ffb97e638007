//! Signals that ask the process to end.

use tokio::signal::unix::{SignalKind, signal};

/// Listens from now on; what it gives is done at the first signal that asks us to end.
///
/// Call it before a server is started: a signal that comes while nobody listens ends us at once and
/// leaves the server behind. Where signals cannot be listened for, it is never done. Needs a
/// running tokio runtime.
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
