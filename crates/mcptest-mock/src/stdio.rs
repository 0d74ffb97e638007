//! The stdio transport: one JSON message per line, in and out.
//!
//! One thread reads and writes; a second one is started for the first late answer. All complete
//! lines of one read are answered into one buffer, which is written as a whole: pipelined requests
//! cost one write, and a client that waits for each reply never waits for others.

use std::io::{self, BufRead, ErrorKind, Write};
use std::sync::{Mutex, PoisonError, mpsc};

use crate::deferred::TransportEvent;
use crate::jsonrpc::{Replies, Reply, RpcError};
use crate::log;
use crate::server::MockServer;
use crate::session::Session;
use crate::timer;

/// The longest line that is read. A longer one is answered with an error and skipped.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Replies are written when the buffer has this size, even if further lines wait, so that the
/// replies to many requests do not fill the memory.
const MAX_BUFFERED_BYTES: usize = 256 << 10;

/// Serves one session until the client closes the input or the output; neither is an error. Late
/// answers that are due within two seconds after the end are still sent.
///
/// The reader's buffer should be large (64 KiB): it limits the number of requests that are answered
/// with one write.
///
/// # Errors
/// Reading or writing failed, other than by a closed pipe.
pub fn serve_stdio(
    server: &MockServer,
    input: impl BufRead,
    output: impl Write + Send,
) -> io::Result<()> {
    let output = Mutex::new(output);
    let result = std::thread::scope(|scope| {
        let mut timer = None;
        let mut late = |event| {
            let (sender, _) = timer.get_or_insert_with(|| {
                let (sender, events) = mpsc::channel();
                let output = &output;
                (
                    sender,
                    scope.spawn(move || timer::run(server, &events, output)),
                )
            });
            // The thread ends early only if it cannot write; then the next write here fails, too.
            let _ = sender.send(event);
        };
        let result = serve(server, input, &output, &mut late);
        match timer {
            Some((sender, thread)) => {
                drop(sender);
                let late = thread.join().unwrap_or(Ok(()));
                result.and(late)
            }
            None => result,
        }
    });
    log::session_ended();
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn serve(
    server: &MockServer,
    mut input: impl BufRead,
    output: &Mutex<impl Write>,
    late: &mut impl FnMut(TransportEvent),
) -> io::Result<()> {
    let mut lines = Lines::new(server);
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            // The last line may have no newline.
            lines.end(&[]);
            return lines.write(output, late);
        }
        let length = chunk.len();
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            lines.end(&rest[..end]);
            if lines.out.len() >= MAX_BUFFERED_BYTES {
                lines.write(output, late)?;
            }
            rest = &rest[end + 1..];
        }
        lines.add(rest);
        input.consume(length);
        lines.write(output, late)?;
    }
}

/// Assembles lines and answers them.
struct Lines<'a> {
    server: &'a MockServer,
    session: Session,
    line: Vec<u8>,
    /// The rest of this line is skipped.
    skipping: bool,
    out: Vec<u8>,
    /// True once there was a late answer, which could be cancelled.
    late: bool,
}

impl<'a> Lines<'a> {
    fn new(server: &'a MockServer) -> Self {
        Self {
            server,
            session: server.session(),
            line: Vec::new(),
            skipping: false,
            out: Vec::new(),
            late: false,
        }
    }

    fn add(&mut self, part: &[u8]) {
        if self.skipping {
            return;
        }
        if self.line.len() + part.len() <= MAX_LINE_BYTES {
            self.line.extend_from_slice(part);
            return;
        }
        self.skipping = true;
        self.line = Vec::new();
        let limit = MAX_LINE_BYTES >> 20;
        let error = RpcError::invalid_request(format!(
            "Invalid request: the line is longer than {limit} MiB"
        ));
        Replies::One(Reply::error(None, error)).write_to(&mut self.out);
        self.out.push(b'\n');
    }

    /// Adds the last part of a line and answers it.
    fn end(&mut self, part: &[u8]) {
        let whole = self.line.is_empty() && !self.skipping && part.len() <= MAX_LINE_BYTES;
        if whole {
            self.server
                .handle_line(&mut self.session, part, &mut self.out);
            return;
        }
        self.add(part);
        if !self.skipping {
            self.server
                .handle_line(&mut self.session, &self.line, &mut self.out);
        }
        self.skipping = false;
        self.line.clear();
    }

    fn write(
        &mut self,
        output: &Mutex<impl Write>,
        late: &mut impl FnMut(TransportEvent),
    ) -> io::Result<()> {
        if !self.out.is_empty() {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            log::sent(&self.out);
            output.write_all(&self.out)?;
            output.flush()?;
            self.out.clear();
            // One large reply must not stay in memory for the rest of the session.
            self.out.shrink_to(4 * MAX_BUFFERED_BYTES);
        }
        // After the immediate answers, so that late ones do not overtake them.
        for event in self.session.take_events() {
            let is_relevant = match &event {
                TransportEvent::Deferred(deferred) => {
                    self.late |= !deferred.is_done();
                    !deferred.is_done()
                }
                TransportEvent::Cancelled(_) | TransportEvent::Answered(..) => self.late,
            };
            if is_relevant {
                late(event);
            }
        }
        Ok(())
    }
}
