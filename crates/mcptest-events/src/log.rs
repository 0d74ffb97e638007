//! The log of an invocation: one event per line, as JSON, without secrets.
//!
//! A line counts once it ends with a line feed. A process that was killed while it wrote leaves a
//! torn last line, which readers ignore. Any other line that cannot be read is an error, because
//! leaving it out could turn a failure into a pass. Events of later versions are skipped.

mod write;

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::ops::Range;
use std::sync::LazyLock;

use mcptest_json::scan::plain_end;
use mcptest_json::visible::visible;
use mcptest_redact::redact::Redactor;
use memchr::memmem::Finder;
use serde::de::IgnoredAny;
use serde_json::Value;

use self::write::{RECORD_KEY, write_event};
use crate::event::Event;
use crate::record::{RawRecord, parse_deep};
use crate::{RunRecord, VERSION};

/// The events that this version knows, by their name in the log.
const NAMES: [&str; 13] = [
    "begun",
    "planned",
    "resumed",
    "run_started",
    "model_answered",
    "tool_called",
    "run_finished",
    "runs_saved",
    "case_judged",
    "spend",
    "warning",
    "note",
    "ended",
];

/// The reason why a line is not an event.
#[derive(Debug, thiserror::Error)]
#[error("not an event of mcptest: {}", in_one_line(.0))]
pub struct DecodeError(#[from] serde_json::Error);

/// The message of an error in a string of one line: it has a column and no number of a line.
fn in_one_line(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&position) {
        Some(problem) => format!("{problem} (column {})", error.column()),
        None => message,
    }
}

/// The reason why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A line in the middle is damaged.
    #[error("line {number}: {problem}")]
    Line {
        /// The number of the line, from 1.
        number: usize,
        /// The problem with it.
        problem: String,
    },
    /// The log was written by a version with another format.
    #[error("the log has version {found}, and this mcptest reads version {VERSION}")]
    OtherVersion {
        /// The version of the log.
        found: u32,
    },
    /// The first line is not the start of an invocation.
    #[error("the log has no beginning")]
    NoBeginning,
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Encodes an event as one line, with its line feed, and masks secrets in it.
#[must_use]
pub fn encode(event: &Event, redactor: &Redactor) -> String {
    let mut line = String::new();
    encode_into(event, redactor, &mut line);
    line
}

/// Like [`encode`], into a buffer that is used again for each event. Returns true if the line has
/// all that the event has in the same characters, that is, if nothing was masked or escaped.
///
/// Hidden characters become escapes: a log is shown on terminals, too (`--events /dev/stderr`).
pub fn encode_into(event: &Event, redactor: &Redactor, line: &mut String) -> bool {
    let mut bytes = std::mem::take(line).into_bytes();
    bytes.clear();
    // An event consists of strings, numbers, lists and maps with string keys: it always serialises.
    let written = write_event(event, &mut bytes).is_ok();
    // Recorded JSON is kept as it was sent, which may include line breaks between its parts.
    let mut from = 0;
    while let Some(distance) = memchr::memchr2(b'\n', b'\r', &bytes[from..]) {
        from += distance;
        bytes[from] = b' ';
    }
    // JSON is always UTF-8.
    *line = String::from_utf8(bytes).unwrap_or_default();
    let mut is_whole = is_clean_json(line, redactor);
    if !is_whole {
        *line = redacted(line, redactor);
    }
    if let Cow::Owned(escaped) = visible(line) {
        *line = escaped;
        is_whole = false;
    }
    line.push('\n');
    is_whole && written
}

static RECORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(RECORD_KEY));

/// The place of the record in the line of a `run_finished` event that has one.
#[must_use]
pub fn record_range(line: &str) -> Option<Range<usize>> {
    // The record is the last key, and the keys before it have numbers and fixed words only.
    let start = RECORD.find(line.as_bytes())? + RECORD_KEY.len();
    let end = line.trim_end_matches('\n').len().checked_sub("}}".len())?;
    (start < end).then_some(start..end)
}

/// Checks a JSON document that is written piece by piece, in little memory.
pub struct CleanCheck<'r> {
    redactor: &'r Redactor,
    /// The text since the last cut, which is never inside a string.
    text: Vec<u8>,
    is_clean: bool,
}

/// The size of text that is checked at a time.
const CHECKED: usize = 256 << 10;

impl<'r> CleanCheck<'r> {
    /// Checks for the secrets that a redactor knows.
    #[must_use]
    pub fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            text: Vec::new(),
            is_clean: true,
        }
    }

    /// Returns true if no string of the document contains a secret.
    #[must_use]
    pub fn finish(mut self) -> bool {
        let end = self.text.len();
        self.check(end);
        self.is_clean
    }

    fn check(&mut self, end: usize) {
        let text = std::str::from_utf8(&self.text[..end]);
        self.is_clean &= text.is_ok_and(|text| is_clean_json(text, self.redactor));
        self.text.drain(..end);
    }

    /// The end of the last string that is complete, and of the text after it.
    fn cut(&self) -> usize {
        let (mut at, mut cut) = (0, 0);
        while let Some(quote) = memchr::memchr(b'"', &self.text[at..]) {
            cut = at + quote;
            let Some(end) = end_of_string(&self.text, cut + 1) else {
                return cut;
            };
            at = end + 1;
        }
        self.text.len().max(cut)
    }
}

impl std::io::Write for CleanCheck<'_> {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        if self.is_clean {
            self.text.extend_from_slice(text);
            if self.text.len() >= CHECKED {
                let cut = self.cut();
                self.check(cut);
            }
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The closing quote of a string whose text begins at a place, if it is there.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut end = start;
    loop {
        end = plain_end(bytes, end);
        match bytes.get(end)? {
            b'\\' => end += 2,
            b'"' => return Some(end),
            _ => end += 1,
        }
    }
}

/// Returns true if no string of a JSON document contains a secret.
#[must_use]
pub fn is_clean_json(json: &str, redactor: &Redactor) -> bool {
    // A string without escapes is in the document as it is, between quotes that are part of no
    // secret. One search in the whole document takes a sixth of the time of one for each string.
    if !redactor.is_clean(json) {
        return false;
    }
    if !json.contains('\\') {
        return true;
    }
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(quote) = bytes[at..].iter().position(|byte| *byte == b'"') {
        let start = at + quote + 1;
        let mut end = start;
        let mut escaped = false;
        // A document always closes its strings; the bound keeps a broken one from panicking.
        loop {
            end = plain_end(bytes, end);
            match bytes.get(end) {
                Some(b'\\') => {
                    escaped = true;
                    end += 2;
                }
                Some(b'"') | None => break,
                Some(_) => end += 1,
            }
        }
        at = (end + 1).min(bytes.len());
        let quoted = &json[start - 1..at];
        if escaped
            && !serde_json::from_str::<String>(quoted).is_ok_and(|text| redactor.is_clean(&text))
        {
            return false;
        }
    }
    true
}

/// The JSON document without secrets. `None` if it has none.
#[must_use]
pub fn redact_json(json: &str, redactor: &Redactor) -> Option<String> {
    if is_clean_json(json, redactor) {
        return None;
    }
    // Text that is not JSON is masked as a whole.
    let mut value = parse_deep::<Value>(json).unwrap_or_else(|_| json.into());
    redactor.value(&mut value);
    Some(value.to_string())
}

/// Masks the secrets of a line. An event that is no longer one, because a secret is a word of
/// the format, is replaced by a warning: a gap in the report is better than a leak.
fn redacted(line: &str, redactor: &Redactor) -> String {
    let clean = parse_deep::<Value>(line).map(|mut value| {
        redactor.value(&mut value);
        value.to_string()
    });
    match clean {
        Ok(line) if is_readable(&line) => line,
        _ => {
            let text = "an event was left out of the log: a secret is also a word of its format";
            let warning = Event::<RunRecord>::Warning {
                text: redactor.text(text),
            };
            serde_json::to_string(&warning).unwrap_or_default()
        }
    }
}

fn is_readable(line: &str) -> bool {
    match decode(line) {
        Ok(Some(Event::RunFinished(finished))) => {
            finished.record.is_none_or(|record| record.parse().is_ok())
        }
        Ok(Some(_)) => true,
        Ok(None) | Err(_) => false,
    }
}

/// Decodes a line, with or without its line feed. `None` for an event of a later version.
///
/// # Errors
/// A line that is not an event.
pub fn decode(line: &str) -> Result<Option<Event<RawRecord<'_>>>, DecodeError> {
    match parse_deep(line) {
        Ok(event) => Ok(Some(event)),
        Err(error) if is_of_later_version(line) => {
            drop(error);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns true for an object with one key that is not the name of a known event.
fn is_of_later_version(line: &str) -> bool {
    let object = parse_deep::<std::collections::BTreeMap<String, IgnoredAny>>(line);
    object.is_ok_and(|object| {
        object.len() == 1 && object.keys().all(|name| !NAMES.contains(&name.as_str()))
    })
}

/// Reads a whole log.
///
/// # Errors
/// A damaged line that is not the last one, a log of another version, one without a beginning.
pub fn read(text: &str) -> Result<Vec<Event<RawRecord<'_>>>, LogError> {
    let mut events = Vec::new();
    let mut state = State::default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in complete.lines().filter(|_| !complete.is_empty()) {
        events.extend(state.take(line)?);
    }
    state.finish()?;
    Ok(events)
}

/// The place in a log.
#[derive(Default)]
struct State {
    /// The number of lines so far.
    lines: usize,
}

impl State {
    fn take<'a>(&mut self, line: &'a str) -> Result<Option<Event<RawRecord<'a>>>, LogError> {
        self.lines += 1;
        let event = decode(line).map_err(|error| self.problem(error.to_string()))?;
        if self.lines == 1 {
            match &event {
                Some(Event::Begun(begun)) if begun.version == VERSION => {}
                Some(Event::Begun(begun)) => {
                    return Err(LogError::OtherVersion {
                        found: begun.version,
                    });
                }
                _ => return Err(LogError::NoBeginning),
            }
        }
        Ok(event)
    }

    fn problem(&self, problem: String) -> LogError {
        LogError::Line {
            number: self.lines,
            problem,
        }
    }

    fn finish(&self) -> Result<(), LogError> {
        if self.lines == 0 {
            return Err(LogError::NoBeginning);
        }
        Ok(())
    }
}

/// One event of a log with its place.
#[derive(Debug)]
pub struct Line<'a> {
    /// The number of the line, from 1.
    pub number: usize,
    /// The offset of the line in the file, in bytes.
    pub offset: u64,
    /// The line without its line feed.
    pub text: &'a str,
    /// The event.
    pub event: Event<RawRecord<'a>>,
}

/// Reads a log of any size line by line.
#[derive(Debug)]
pub struct LogReader<R> {
    reader: R,
    buffer: Vec<u8>,
    lines: usize,
    offset: u64,
}

impl<R: BufRead> LogReader<R> {
    /// Starts at the beginning of a log.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            lines: 0,
            offset: 0,
        }
    }

    /// The next event that this version knows; `None` at the end of the log.
    ///
    /// # Errors
    /// The same as [`read`], and a file that cannot be read.
    pub fn next_event(&mut self) -> Result<Option<Line<'_>>, LogError> {
        loop {
            self.offset += self.buffer.len() as u64;
            self.buffer.clear();
            self.reader.read_until(b'\n', &mut self.buffer)?;
            let mut state = State { lines: self.lines };
            if self.buffer.last() != Some(&b'\n') {
                self.buffer.clear();
                state.finish()?;
                return Ok(None);
            }
            self.lines += 1;
            // The borrow of a line that is returned would last for the whole loop, so a line of a
            // later version is recognised first.
            if is_skipped(&self.buffer, self.lines) {
                continue;
            }
            let text = match std::str::from_utf8(&self.buffer) {
                Ok(text) => text.trim_end_matches('\n'),
                Err(error) => {
                    state.lines += 1;
                    return Err(state.problem(error.to_string()));
                }
            };
            return match state.take(text)? {
                Some(event) => Ok(Some(Line {
                    number: self.lines,
                    offset: self.offset,
                    text,
                    event,
                })),
                // Only the first line gets here, and it is never skipped.
                None => Err(LogError::NoBeginning),
            };
        }
    }
}

/// Returns true for an event of a later version. Known names are at the beginning of the line, so
/// hardly any line is parsed here.
fn is_skipped(line: &[u8], number: usize) -> bool {
    let name = line
        .strip_prefix(b"{\"")
        .and_then(|rest| rest.split(|byte| *byte == b'"').next());
    let known = name.is_some_and(|name| NAMES.iter().any(|known| known.as_bytes() == name));
    number > 1 && !known && std::str::from_utf8(line).is_ok_and(is_of_later_version)
}

#[cfg(test)]
mod tests;
