//! The stdio transport: one JSON message per line, in and out.
//!
//! Reading and writing happen in one thread; a second one is started when an answer has to come
//! late. All complete lines that one read brought are answered into one buffer, which is written at
//! once: a client that pipelines costs one write for many replies, and one that waits for each
//! reply never waits for more than its own.

use std::io::{self, BufRead, ErrorKind, Write};
use std::sync::{Mutex, PoisonError, mpsc};

use crate::jsonrpc::{Replies, Reply, RpcError};
use crate::later::Event;
use crate::server::MockServer;
use crate::session::Session;
use crate::timer;

/// The longest line that is read. A longer one is answered with an error and skipped.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Replies are written when this much has come together, however many lines still wait: large lists
/// asked for in one go do not pile up in memory.
const WRITE_AT_BYTES: usize = 256 << 10;

/// Serves one session until the input ends. A client that closes its end of the output ends it,
/// too; neither is an error. Late answers that are due within two seconds of the end are still
/// sent.
///
/// Give the reader a large buffer (64 KiB): it bounds how many requests are answered with one
/// write.
///
/// # Errors
/// Reading or writing failed for another reason than the other side being gone.
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
                (sender, scope.spawn(move || timer::run(&events, output)))
            });
            // The thread ends early only if it cannot write; the next write here says so.
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
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn serve(
    server: &MockServer,
    mut input: impl BufRead,
    output: &Mutex<impl Write>,
    late: &mut impl FnMut(Event),
) -> io::Result<()> {
    let mut lines = Lines::new(server);
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            // The last line may lack its end.
            lines.end(&[]);
            return lines.write(output, late);
        }
        let length = chunk.len();
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            lines.end(&rest[..end]);
            if lines.out.len() >= WRITE_AT_BYTES {
                lines.write(output, late)?;
            }
            rest = &rest[end + 1..];
        }
        lines.add(rest);
        input.consume(length);
        lines.write(output, late)?;
    }
}

/// Puts lines together and answers them.
struct Lines<'a> {
    server: &'a MockServer,
    session: Session,
    line: Vec<u8>,
    /// The rest of this line is not wanted.
    skipping: bool,
    out: Vec<u8>,
    /// Whether there ever was a late answer, and so something that could be cancelled.
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
        late: &mut impl FnMut(Event),
    ) -> io::Result<()> {
        if !self.out.is_empty() {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.write_all(&self.out)?;
            output.flush()?;
            self.out.clear();
            // One huge reply shall not stay in memory for the rest of the session.
            self.out.shrink_to(4 * WRITE_AT_BYTES);
        }
        // After what was answered at once, so that nothing overtakes it.
        for event in self.session.take_events() {
            let matters = match &event {
                Event::Later(later) => {
                    self.late |= !later.steps.is_empty();
                    !later.steps.is_empty()
                }
                Event::Cancelled(_) | Event::Answered(_) => self.late,
            };
            if matters {
                late(event);
            }
        }
        Ok(())
    }
}
