//! A file in blocks of whole lines.

use std::io::{ErrorKind, Read};

use mcptest_json::surrogates;
use mcptest_trace::trace;

use super::{MAX_TRACE, MAX_WHOLE, TraceFileError};

/// A cassette is marked as one in its first lines.
pub(super) const HEAD: usize = 3;
pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The first bytes of a zip archive, such as a log of inspect_ai.
const ZIP: &[u8] = b"PK";

/// Replaces halves of characters in text. An archive has checksums of its bytes.
fn mend(block: &mut [u8]) {
    if !block.starts_with(ZIP) {
        surrogates::mend(block);
    }
}

/// Cuts the input into blocks of whole lines.
pub(super) struct Blocks<'n, R> {
    /// The file, for errors.
    name: &'n str,
    input: R,
    size: usize,
    /// The bytes that were read after the last block.
    over: Vec<u8>,
    /// True if the input is read to its end.
    pub ended: bool,
    /// Used blocks, to be filled again.
    spare: Vec<Vec<u8>>,
}

impl<'n, R: Read> Blocks<'n, R> {
    /// Blocks of at least `size` bytes, except for the last.
    pub fn new(input: R, size: usize, name: &'n str) -> Self {
        Self {
            name,
            input,
            size,
            over: Vec::new(),
            ended: false,
            spare: Vec::new(),
        }
    }

    /// The first block. It has the lines that show whether the file is a cassette, and the first
    /// byte that is not blank, which shows whether the file is an array.
    pub fn first(&mut self) -> Result<Vec<u8>, TraceFileError> {
        let mut first = self.next(HEAD)?;
        while !self.ended && trace::is_blank(without_mark(&first)) {
            let more = self.next(1)?;
            first.extend(more);
        }
        Ok(first)
    }

    /// The next block: at least this number of lines, unless the input ends. Empty at the end.
    pub fn next(&mut self, lines: usize) -> Result<Vec<u8>, TraceFileError> {
        let mut block = self.cut(lines)?;
        mend(&mut block);
        Ok(block)
    }

    /// The next block as it was read.
    fn cut(&mut self, lines: usize) -> Result<Vec<u8>, TraceFileError> {
        let mut block = self.spare.pop().unwrap_or_default();
        // A used block keeps its bytes, so that they are not set to zero once more.
        let mut filled = self.over.len();
        block.resize(block.len().max(filled), 0);
        block[..filled].copy_from_slice(&self.over);
        self.over.clear();
        if self.ended {
            block.truncate(filled);
        }
        while !self.ended {
            let before = filled;
            self.fill(&mut block, filled)?;
            filled = block.len();
            self.ended = filled - before < self.size;
            if block.len() > MAX_TRACE + self.size {
                let advice = "a file of traces has one of them on each line";
                return Err(self.too_large(MAX_TRACE as u64, advice));
            }
            if self.ended || !has_lines(&block, lines) {
                continue;
            }
            // A line that begins with an object most likely begins a trace, also in a file with
            // many lines for each.
            let new = before.saturating_sub(1);
            let cut = memchr::memmem::rfind(&block[new..], b"\n{")
                .or_else(|| memchr::memrchr(b'\n', &block[new..]));
            if let Some(cut) = cut
                .map(|cut| new + cut + 1)
                .filter(|cut| has_lines(&block[..*cut], lines))
            {
                self.over.extend_from_slice(&block[cut..]);
                block.truncate(cut);
                return Ok(block);
            }
        }
        Ok(block)
    }

    /// Reads as many bytes as a block has after the first `filled` ones, and removes what was
    /// there.
    fn fill(&mut self, block: &mut Vec<u8>, filled: usize) -> Result<(), TraceFileError> {
        let end = filled + self.size;
        block.resize(block.len().max(end), 0);
        let mut at = filled;
        while at < end {
            match self.input.read(&mut block[at..end]) {
                Ok(0) => break,
                Ok(read) => at += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(error)),
            }
        }
        block.truncate(at);
        Ok(())
    }

    /// Takes back a block that is no longer used.
    pub fn recycle(&mut self, block: Vec<u8>) {
        self.spare.push(block);
    }

    /// Adds everything that no block has had yet, up to a bound.
    pub fn rest(&mut self, text: &mut Vec<u8>) -> Result<(), TraceFileError> {
        text.append(&mut self.over);
        if !self.ended {
            self.ended = true;
            let more = self.input.by_ref().take(MAX_WHOLE).read_to_end(text);
            more.map_err(|error| self.unreadable(error))?;
        }
        if text.len() as u64 > MAX_WHOLE {
            let advice = "only JSON Lines may be larger: one trace on each line";
            return Err(self.too_large(MAX_WHOLE, advice));
        }
        mend(text);
        Ok(())
    }

    fn unreadable(&self, error: std::io::Error) -> TraceFileError {
        let name = self.name.to_owned();
        TraceFileError::Unreadable { name, error }
    }

    fn too_large(&self, limit: u64, advice: &'static str) -> TraceFileError {
        TraceFileError::TooLarge {
            place: self.name.to_owned(),
            limit,
            advice,
        }
    }
}

pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

pub(super) fn line_ends(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Returns true if there are at least this number of line ends.
fn has_lines(bytes: &[u8], lines: usize) -> bool {
    memchr::memchr_iter(b'\n', bytes).take(lines).count() == lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_with_a_line_and_lose_nothing() {
        let text = b"{1}\n{22}\n\n{333333}\n  {4\n}\n{5}";
        for size in 1..40 {
            let mut blocks = Blocks::new(text.as_slice(), size, "f");
            let mut all = Vec::new();
            loop {
                let block = blocks.next(1).unwrap();
                if block.is_empty() {
                    break;
                }
                assert!(
                    all.is_empty() || all.ends_with(b"\n"),
                    "size {size}: {all:?}"
                );
                all.extend(block);
            }
            assert_eq!(all, text, "size {size}");
        }
    }

    #[test]
    fn halves_of_characters_are_replaced_in_text_and_not_in_archives() {
        for (input, wanted) in [
            (&br#"{"a":"\ud83d"}"#[..], &br#"{"a":"\ufffd"}"#[..]),
            (br#"PK "\ud83d""#, br#"PK "\ud83d""#),
        ] {
            let block = Blocks::new(input, 64, "f").first().unwrap();
            assert_eq!(block, wanted);
            let mut whole = Vec::new();
            Blocks::new(input, 64, "f").rest(&mut whole).unwrap();
            assert_eq!(whole, wanted);
        }
    }
}
