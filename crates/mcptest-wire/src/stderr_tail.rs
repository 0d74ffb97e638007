//! The last lines of a process's stderr, in bounded space.

use std::collections::VecDeque;

use mcptest_http::text::quote;

use crate::log::ConnectionLog;

/// Characters kept of one line.
const MAX_LINE_CHARS: usize = 500;

/// Bytes kept of the line being received; the rest of it is skipped.
const MAX_PARTIAL_BYTES: usize = 4 * 1024;

/// Collects bytes and keeps the last lines, sanitized.
#[derive(Debug)]
pub struct StderrTail {
    lines: VecDeque<String>,
    bytes: usize,
    /// The number of lines that were ever received.
    received: u64,
    partial: Vec<u8>,
    max_lines: usize,
    max_bytes: usize,
    log: ConnectionLog,
}

impl StderrTail {
    /// Creates a tail that keeps this number of lines and bytes, and logs nothing.
    #[must_use]
    pub fn bounded(max_lines: usize, max_bytes: usize) -> Self {
        Self::new(max_lines, max_bytes, ConnectionLog::default())
    }

    pub(crate) fn new(max_lines: usize, max_bytes: usize, log: ConnectionLog) -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            received: 0,
            partial: Vec::new(),
            max_lines,
            max_bytes,
            log,
        }
    }

    /// Adds bytes as they are received.
    pub fn push(&mut self, chunk: &[u8]) {
        let mut pieces = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = MAX_PARTIAL_BYTES.saturating_sub(self.partial.len());
            self.partial
                .extend_from_slice(&piece[..piece.len().min(room)]);
            if pieces.peek().is_some() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = sanitized(&self.partial);
        self.partial.clear();
        if line.is_empty() {
            return;
        }
        self.log.stderr(&line);
        self.received += 1;
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > self.max_lines || self.bytes > self.max_bytes {
            match self.lines.pop_front() {
                Some(old) => self.bytes -= old.len(),
                None => break,
            }
        }
    }

    /// The number of lines that were ever received.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The kept lines after the first `mark` ones, including an unfinished one.
    pub(crate) fn lines_after(&self, mark: u64) -> Vec<String> {
        let dropped = self.received - self.lines.len() as u64;
        let skipped = usize::try_from(mark.saturating_sub(dropped)).unwrap_or(usize::MAX);
        self.lines().into_iter().skip(skipped).collect()
    }

    /// The last lines, including an unfinished one.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let unfinished = sanitized(&self.partial);
        let unfinished = (!unfinished.is_empty()).then_some(unfinished);
        self.lines.iter().cloned().chain(unfinished).collect()
    }
}

fn sanitized(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    quote(text.trim_end(), MAX_LINE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_and_the_oldest_lines_dropped() {
        let mut tail = StderrTail::new(2, 1000, ConnectionLog::default());
        tail.push(b"one\ntw");
        tail.push(b"o\r\n\nthree\nun");
        tail.push(b"finished");
        assert_eq!(tail.lines(), ["two", "three", "unfinished"]);
    }

    #[test]
    fn lines_after_a_mark_are_separate_from_earlier_ones() {
        let mut tail = StderrTail::new(2, 1000, ConnectionLog::default());
        tail.push(b"one\ntwo\nthree\n");
        let mark = tail.received();
        assert!(tail.lines_after(mark).is_empty());
        tail.push(b"four\nfi");
        assert_eq!(tail.lines_after(mark), ["four", "fi"]);
        assert_eq!(tail.lines_after(0), ["three", "four", "fi"]);
    }

    #[test]
    fn the_tail_is_bounded_in_bytes() {
        let mut tail = StderrTail::new(40, 100, ConnectionLog::default());
        for _ in 0..1000 {
            tail.push(&[b'x'; 90]);
            tail.push(b"\n");
        }
        assert_eq!(tail.lines().len(), 1);
        tail.push(&vec![b'y'; 1 << 20]);
        assert!(tail.partial.len() <= MAX_PARTIAL_BYTES);
    }
}
