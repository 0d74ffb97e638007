//! The page of a report, served on loopback: of a finished run, or of one that is still running.
//!
//! The page is that of the `html` reporter. It gets the state of the report from this server, which
//! follows the log of the run; nothing of the run itself is needed, so another process may be
//! writing the log. When the run has ended, the page fetches the whole report once, and no longer
//! needs the server.
//!
//! Only programs of this machine that know the address can read the report: the server listens on
//! 127.0.0.1, the address has a random token, requests for another host or from another origin are
//! refused, and no answer may be read by other pages.

mod follow;
mod server;

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mcptest_report::{Report, Style};
use tokio_util::sync::CancellationToken;

use crate::follow::Source;
use crate::server::State;

/// The time that an open page gets to fetch the whole report at the end of a run.
const GRACE: Duration = Duration::from_secs(5);
/// A page that has asked within this time is open. It asks every 0.7 s.
const OPEN: Duration = Duration::from_secs(3);

/// A server of one report. It ends when it is dropped.
#[derive(Debug)]
pub struct LiveServer {
    url: String,
    state: Arc<State>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl LiveServer {
    /// Serves the report of a log, which may still grow, on this port (0 chooses a free one).
    ///
    /// # Errors
    /// The log cannot be opened, the port cannot be used.
    pub fn of_log(log: &Path, port: u16, style: Style) -> io::Result<Self> {
        Self::start(Source::of_log(log)?, port, style)
    }

    /// Serves a finished report on this port (0 chooses a free one).
    ///
    /// # Errors
    /// The port cannot be used.
    pub fn of_report(report: Report, port: u16, style: Style) -> io::Result<Self> {
        Self::start(Source::of_report(report), port, style)
    }

    fn start(source: Source, port: u16, style: Style) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let token = token()?;
        let url = format!("http://127.0.0.1:{port}/?token={token}");
        let state = Arc::new(State::new(source, style, port, token));
        let stop = CancellationToken::new();
        let (shared, stopped) = (Arc::clone(&state), stop.clone());
        // A separate thread: the work of a run never waits for a page.
        let thread = std::thread::Builder::new()
            .name("live page".to_owned())
            .spawn(move || server::run(listener, &shared, &stopped))?;
        Ok(Self {
            url,
            state,
            stop,
            thread: Some(thread),
        })
    }

    /// The address of the page, with its token.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the server. If a page is open, it gets some seconds to fetch the end of the report.
    pub fn finish(self) {
        let began = Instant::now();
        while self.state.is_open(OPEN) && !self.state.gave_whole() && began.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has printed its message.
            let _ = thread.join();
        }
    }
}

/// 128 random bits, in hexadecimal.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
