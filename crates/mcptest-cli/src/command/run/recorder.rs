//! Receives the events of a run: each is encoded once, appended to the log of the history, and
//! folded into the report. So the report of a run and the one that `mcptest report` makes of its
//! log cannot differ.
//!
//! Events that happen in the same turn of the event loop are appended with one write, before the
//! loop waits for something again: 200 direct calls have 600 events and about 20 such turns. So
//! nothing that another process could know of is missing in the log, and a process that is killed
//! loses at most [`MAX_DELAY`] of its own work.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use mcptest_events::history::{History, LogWriter};
use mcptest_events::{Event, log};
use mcptest_redact::redact::Redactor;
use mcptest_report::{Report, ReportFold, RunStore, Spool};

use crate::output::Output;

/// The longest time that an event waits for others.
const MAX_DELAY: Duration = Duration::from_millis(5);

/// The size of waiting events, in bytes, at which they are written.
const MAX_WAITING: usize = 64 * 1024;

/// The receiver of a run's events.
pub struct Recorder(Mutex<State>);

/// The recorder whose waiting events are written when the event loop has nothing else to do.
#[derive(Clone, Default)]
pub struct OpenRecorder(Arc<Mutex<Option<Arc<Recorder>>>>);

impl OpenRecorder {
    /// Sets the recorder.
    pub fn set(&self, recorder: &Arc<Recorder>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *open = Some(Arc::clone(recorder));
    }

    /// Writes its waiting events.
    pub fn flush(&self) {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorder) = &*open {
            recorder.flush();
        }
    }
}

struct State {
    redactor: Redactor,
    output: Output,
    fold: ReportFold,
    lines: Lines,
    /// The file or pipe of another program that follows the run.
    follower: Option<Follower>,
    /// The first output of events that could not be written to its end.
    failure: Option<String>,
    /// The line of the last event. It is used again for the next one.
    line: String,
}

/// The place of the encoded events.
enum Lines {
    /// The log in the history.
    Log(WaitingLog),
    /// A temporary place, for a run without a history.
    Spool(Spool),
}

/// The log in the history, and the lines that are not written yet.
struct WaitingLog {
    log: LogWriter,
    /// The number of bytes that are written: whole lines.
    written: u64,
    /// Whole lines, which are written together.
    waiting: String,
    /// The time of the first of them.
    since: Instant,
}

impl WaitingLog {
    fn new(log: LogWriter, written: u64) -> Self {
        Self {
            log,
            written,
            waiting: String::new(),
            since: Instant::now(),
        }
    }

    /// Adds a line and returns its offset.
    fn add(&mut self, line: &str) -> u64 {
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        let offset = self.written + self.waiting.len() as u64;
        self.waiting.push_str(line);
        offset
    }

    /// Returns true if the waiting lines must be written now.
    fn is_due(&self) -> bool {
        self.waiting.len() >= MAX_WAITING || self.since.elapsed() >= MAX_DELAY
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if !self.waiting.is_empty() {
            self.log.append(&self.waiting)?;
            self.written += self.waiting.len() as u64;
            self.waiting.clear();
        }
        Ok(())
    }

    /// A temporary copy of all lines.
    fn to_spool(&self) -> std::io::Result<Spool> {
        let mut spool = copy_of(&self.log, self.written)?;
        spool.append(&self.waiting)?;
        Ok(spool)
    }
}

impl Recorder {
    /// A recorder for a new run; without a log of the history, its log is temporary.
    pub fn new(history: Option<LogWriter>, redactor: Redactor, output: Output) -> Self {
        let lines = match history {
            Some(log) => Lines::Log(WaitingLog::new(log, 0)),
            None => Lines::Spool(Spool::new()),
        };
        Self::of(ReportFold::new(), lines, redactor, output)
    }

    /// A recorder that continues a log of this length, whose events are folded already.
    pub fn resumed(
        log: LogWriter,
        length: u64,
        fold: ReportFold,
        redactor: Redactor,
        output: Output,
    ) -> Self {
        let lines = Lines::Log(WaitingLog::new(log, length));
        Self::of(fold, lines, redactor, output)
    }

    fn of(fold: ReportFold, lines: Lines, redactor: Redactor, output: Output) -> Self {
        Self(Mutex::new(State {
            redactor,
            output,
            fold,
            lines,
            follower: None,
            failure: None,
            line: String::new(),
        }))
    }

    /// Hands the lines of all events from now on to another program, too.
    pub fn follow(&self, follower: Follower) {
        self.state().follower = Some(follower);
    }

    /// A task that panicked while it recorded an event leaves the state usable: an event is
    /// appended and folded as a whole, or not at all.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event.
    pub fn record(&self, event: &Event) {
        let state = &mut *self.state();
        let mut line = std::mem::take(&mut state.line);
        let is_whole = log::encode_into(event, &state.redactor, &mut line);
        state.forward(&line);
        let recorded = state
            .append(&line)
            .map_err(|error| error.to_string())
            .and_then(|offset| {
                if is_whole {
                    state.fold.encoded(event, &line, offset);
                    return Ok(());
                }
                let folded = state.fold.line(&line, offset);
                folded.map_err(|error| error.to_string())
            });
        state.line = line;
        if let Err(error) = recorded {
            let message = format!("an event of the run is lost: {error}");
            state.failure.get_or_insert(message);
        }
    }

    /// Writes all events that are waiting.
    pub fn flush(&self) {
        let state = &mut *self.state();
        if let Err(error) = state.flush() {
            let message = format!("events of the run are lost: {error}");
            state.failure.get_or_insert(message);
        }
    }

    /// The first output of events that could not be written to its end.
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// The report of all events. Nothing can be recorded after it.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn finish(&self) -> Result<Report, String> {
        self.flush();
        let state = &mut *self.state();
        let store = match &mut state.lines {
            Lines::Log(waiting) => File::open(waiting.log.path()).map(RunStore::File),
            Lines::Spool(spool) => std::mem::take(spool).into_store(),
        };
        let store = store.map_err(|error| format!("cannot read the log of the run: {error}"))?;
        Ok(std::mem::take(&mut state.fold).finish(store))
    }
}

/// A file or pipe of another program that follows the run.
pub struct Follower {
    path: PathBuf,
    file: File,
}

impl Follower {
    /// Opens a file, which becomes empty, or a pipe.
    ///
    /// # Errors
    /// A message with its name.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = File::create(path)
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
        let path = path.to_owned();
        Ok(Self { path, file })
    }
}

impl State {
    /// Forwards a line. A run continues without a follower that has left, and without a file that
    /// cannot be written; but an output is missing then.
    fn forward(&mut self, line: &str) {
        let Some(follower) = &mut self.follower else {
            return;
        };
        if let Err(error) = follower.file.write_all(line.as_bytes()) {
            let path = follower.path.display();
            let message = format!("no more events are written to `{path}`: {error}");
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                self.output.warning(&message);
            } else {
                self.failure.get_or_insert(message);
            }
            self.follower = None;
        }
    }

    /// Appends a line and returns its offset.
    fn append(&mut self, line: &str) -> std::io::Result<u64> {
        let waiting = match &mut self.lines {
            Lines::Spool(spool) => return spool.append(line),
            Lines::Log(waiting) => waiting,
        };
        let offset = waiting.add(line);
        if waiting.is_due() {
            self.flush()?;
        }
        Ok(offset)
    }

    /// Writes the waiting lines. If the log can no longer be written, the run continues with a
    /// temporary copy of it.
    fn flush(&mut self) -> std::io::Result<()> {
        if let Lines::Log(waiting) = &mut self.lines
            && let Err(error) = waiting.flush()
        {
            warn(self.output, &error);
            self.lines = Lines::Spool(waiting.to_spool()?);
        }
        Ok(())
    }
}

/// The first `length` bytes of a log, all of them whole lines.
fn copy_of(log: &LogWriter, length: u64) -> std::io::Result<Spool> {
    let mut spool = Spool::new();
    let mut reader = BufReader::new(File::open(log.path())?);
    let mut line = String::new();
    let mut copied = 0;
    while copied < length {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            break;
        }
        spool.append(&line)?;
        copied += line.len() as u64;
    }
    Ok(spool)
}

/// Starts a log in the history; `None`, with a warning, if the folder cannot be written.
pub fn start_log(history: &History, output: Output) -> Option<LogWriter> {
    let now = SystemTime::now();
    match history.create(now, fraction(now)) {
        Ok(log) => Some(log),
        Err(error) => {
            warn(output, &error);
            None
        }
    }
}

fn warn(output: Output, error: &std::io::Error) {
    output.status(&format!(
        "warning: this run is not kept in the history (`.mcptest/history`): {error}"
    ));
}

/// The fraction of the current second, so that the ids of a second sort by time.
fn fraction(now: SystemTime) -> u16 {
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| u64::from(since.subsec_nanos()));
    // Below 65,536, because there are fewer than a billion nanoseconds in it.
    u16::try_from(nanoseconds * 65_536 / 1_000_000_000).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(log: &std::path::Path) -> usize {
        std::fs::read_to_string(log).unwrap().lines().count()
    }

    fn note(number: usize) -> Event {
        Event::Note {
            text: format!("note {number}"),
        }
    }

    #[test]
    fn events_are_written_together_and_before_the_report() {
        let folder = tempfile::tempdir().unwrap();
        let log = History::of(folder.path())
            .create(SystemTime::now(), 1)
            .unwrap();
        let path = log.path().to_owned();
        let mut waiting = WaitingLog::new(log, 0);
        assert_eq!((waiting.add("one\n"), waiting.add("two\n")), (0, 4));
        assert_eq!(lines(&path), 0);
        waiting.flush().unwrap();
        assert_eq!((lines(&path), waiting.add("three\n")), (2, 8));
        // A copy has the lines that are written and those that wait.
        let copy = waiting.to_spool().unwrap().append("").unwrap();
        assert_eq!(copy, "one\ntwo\nthree\n".len() as u64);
        waiting.add(&"x".repeat(MAX_WAITING));
        assert!(waiting.is_due());
    }

    #[test]
    fn an_open_recorder_is_flushed() {
        let folder = tempfile::tempdir().unwrap();
        let log = History::of(folder.path())
            .create(SystemTime::now(), 1)
            .unwrap();
        let path = log.path().to_owned();
        let recorder = Arc::new(Recorder::new(
            Some(log),
            Redactor::default(),
            Output::new(crate::cli::Colour::Never, true, false),
        ));
        let open = OpenRecorder::default();
        open.flush();
        open.set(&recorder);
        for number in 0..3 {
            recorder.record(&note(number));
        }
        open.flush();
        assert_eq!(lines(&path), 3);
        recorder.record(&note(3));
        recorder.finish().unwrap();
        assert_eq!(lines(&path), 4);
    }
}
