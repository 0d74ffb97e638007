//! Lines that are longer than the display, broken at spaces.
//!
//! A terminal breaks within words, and continues at the left edge, where the next row begins.

use std::io::{self, Write};

use unicode_width::UnicodeWidthChar as _;

/// The indentation of continued lines: that of the details of a row.
const INDENT: usize = 9;
/// Narrower displays break lines themselves.
const MIN_WIDTH: usize = 40;

/// A writer that breaks long lines.
pub(super) struct Wrap<'a> {
    out: &'a mut dyn Write,
    width: usize,
    line: Vec<u8>,
}

impl<'a> Wrap<'a> {
    pub(super) fn new(out: &'a mut dyn Write, width: u16) -> Self {
        Self {
            out,
            width: usize::from(width),
            line: Vec::new(),
        }
    }

    /// Writes a last line that has no end.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match str::from_utf8(&line) {
            Ok(text) if self.width >= MIN_WIDTH && text.len() > self.width => {
                self.out.write_all(broken(text, self.width).as_bytes())
            }
            _ => self.out.write_all(&line),
        }
    }
}

impl Write for Wrap<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.write_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A line, broken at spaces. Words that are longer than a line stay whole.
fn broken(line: &str, width: usize) -> String {
    let own = line.len() - line.trim_start_matches(' ').len();
    let indent = " ".repeat(own.max(INDENT));
    let mut text = String::with_capacity(line.len() + 2 * indent.len());
    let mut column = 0;
    // Spaces before the next word, and the words of this line.
    let (mut gap, mut words) = (0, 0);
    for piece in line.split_inclusive(' ') {
        let word = piece.strip_suffix(' ').unwrap_or(piece);
        let wide = visible_width(word.trim_end_matches('\n'));
        if words > 0 && wide > 0 && column + gap + wide > width {
            text.push('\n');
            text.push_str(&indent);
            (column, gap, words) = (indent.len(), 0, 0);
        }
        text.push_str(&" ".repeat(gap));
        text.push_str(word);
        column += gap + wide;
        gap = usize::from(word.len() < piece.len());
        words += usize::from(wide > 0);
    }
    text
}

/// The columns that a string takes; codes for colours take none.
fn visible_width(text: &str) -> usize {
    let mut width = 0;
    let mut in_code = false;
    for letter in text.chars() {
        match letter {
            '\u{1b}' => in_code = true,
            _ if in_code => in_code = !letter.is_ascii_alphabetic(),
            _ => width += letter.width().unwrap_or(0),
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: u16) -> String {
        let mut out = Vec::new();
        let mut wrap = Wrap::new(&mut out, width);
        // In pieces, as the reporter writes.
        for piece in text.as_bytes().chunks(7) {
            wrap.write_all(piece).unwrap();
        }
        wrap.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn long_lines_are_broken_at_spaces_and_indented() {
        let line =
            "  FAIL   reads: reliability  1 of 4 runs passed · pass@k 100 · pass^k 0\nshort\n";
        assert_eq!(
            wrapped(line, 40),
            "  FAIL   reads: reliability  1 of 4 runs\n         passed · pass@k 100 · pass^k 0\nshort\n"
        );
        assert_eq!(wrapped(line, 80), line);
    }

    #[test]
    fn colours_take_no_room_and_words_stay_whole() {
        let line = format!("  \u{1b}[1m\u{1b}[31mFAIL\u{1b}[0m   {}\n", "x".repeat(31));
        assert_eq!(wrapped(&line, 40), line);
        let long = format!("         {}\n", "y".repeat(90));
        assert_eq!(wrapped(&long, 40), long);
        assert_eq!(wrapped("no end", 40), "no end");
    }
}
