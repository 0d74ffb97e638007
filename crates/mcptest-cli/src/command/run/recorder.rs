//! Receives the events of a run: each is encoded once, appended to the log of the history, and
//! folded into the report. So the report of a run and the one that `mcptest report` makes of its
//! log cannot differ.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use mcptest_events::history::{History, LogWriter};
use mcptest_events::{Event, log};
use mcptest_redact::redact::Redactor;
use mcptest_report::{Report, ReportFold, RunStore, Spool};

use crate::output::Output;

/// The receiver of a run's events.
pub struct Recorder(Mutex<State>);

struct State {
    redactor: Redactor,
    output: Output,
    fold: ReportFold,
    lines: Lines,
    /// The line of the last event. It is used again for the next one.
    line: String,
}

/// The place of the encoded events.
enum Lines {
    /// The log in the history, and its length.
    Log(LogWriter, u64),
    /// A temporary place, for a run without a history.
    Spool(Spool),
}

impl Recorder {
    /// A recorder for a new run; without a log of the history, its log is temporary.
    pub fn new(history: Option<LogWriter>, redactor: Redactor, output: Output) -> Self {
        let lines = match history {
            Some(log) => Lines::Log(log, 0),
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
        Self::of(fold, Lines::Log(log, length), redactor, output)
    }

    fn of(fold: ReportFold, lines: Lines, redactor: Redactor, output: Output) -> Self {
        Self(Mutex::new(State {
            redactor,
            output,
            fold,
            lines,
            line: String::new(),
        }))
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
            let output = state.output;
            output.error(&format!("an event of the run is lost: {error}"));
        }
    }

    /// The report of all events. Nothing can be recorded after it.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn finish(&self) -> Result<Report, String> {
        let state = &mut *self.state();
        let store = match &mut state.lines {
            Lines::Log(log, _) => File::open(log.path()).map(RunStore::File),
            Lines::Spool(spool) => std::mem::take(spool).into_store(),
        };
        let store = store.map_err(|error| format!("cannot read the log of the run: {error}"))?;
        Ok(std::mem::take(&mut state.fold).finish(store))
    }
}

impl State {
    /// Appends a line and returns its offset. If the log cannot be written any more, the run
    /// continues with a temporary copy of it.
    fn append(&mut self, line: &str) -> std::io::Result<u64> {
        match &mut self.lines {
            Lines::Spool(spool) => spool.append(line),
            Lines::Log(log, length) => match log.append(line) {
                Ok(()) => {
                    let offset = *length;
                    *length += line.len() as u64;
                    Ok(offset)
                }
                Err(error) => {
                    warn(self.output, &error);
                    let mut spool = copy_of(log, *length)?;
                    let offset = spool.append(line)?;
                    self.lines = Lines::Spool(spool);
                    Ok(offset)
                }
            },
        }
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
