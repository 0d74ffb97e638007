//! Source text and positions in it.

/// A range of bytes in a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// The number of characters between two stored offsets. A lookup walks at most this far, so a file
/// that is one very long line costs no more than any other.
const CHECKPOINT_EVERY: usize = 1024;

/// A character, by its number and by its byte.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    character: usize,
    byte: usize,
}

/// A named text with an index from the parser's character positions to bytes, and from bytes to
/// lines.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    /// Byte offset of every 1024th character; empty for ASCII text, where characters are bytes.
    checkpoints: Vec<usize>,
    line_starts: Vec<usize>,
}

impl Source {
    /// Indexes a file. `name` is the file's name in messages.
    #[must_use]
    pub fn new(name: &str, text: String) -> Self {
        let checkpoints = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices()
                .step_by(CHECKPOINT_EVERY)
                .map(|(byte, _)| byte)
                .collect()
        };
        let bytes = text.as_bytes();
        let mut line_starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            // YAML ends a line at LF, CR or CRLF.
            let ends = *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
            if ends {
                line_starts.push(at + 1);
            }
        }
        Self {
            name: name.to_owned(),
            text,
            checkpoints,
            line_starts,
        }
    }

    /// The file's name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The byte offset of the `index`th character (or the end of the text).
    #[must_use]
    pub fn byte_of_char(&self, index: usize) -> usize {
        if self.checkpoints.is_empty() {
            return index.min(self.text.len());
        }
        let checkpoint = index / CHECKPOINT_EVERY;
        let Some(base) = self.checkpoints.get(checkpoint) else {
            return self.text.len();
        };
        self.text[*base..]
            .char_indices()
            .nth(index % CHECKPOINT_EVERY)
            .map_or(self.text.len(), |(byte, _)| base + byte)
    }

    /// The same, from a place nearby: a parser asks for positions that are close to each other.
    pub(crate) fn byte_near(&self, near: &mut Place, index: usize) -> usize {
        if self.checkpoints.is_empty() {
            return index.min(self.text.len());
        }
        let byte = match index.checked_sub(near.character) {
            Some(ahead) if ahead <= CHECKPOINT_EVERY / 2 => self.text[near.byte..]
                .char_indices()
                .nth(ahead)
                .map_or(self.text.len(), |(byte, _)| near.byte + byte),
            _ => self.byte_of_char(index),
        };
        // The end of the text may be nearer than the character.
        if byte < self.text.len() {
            *near = Place {
                character: index,
                byte,
            };
        }
        byte
    }

    /// Line and column of a byte, both from 1; the column counts characters.
    #[must_use]
    pub fn line_column(&self, byte: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let start = self.line_starts[line - 1];
        let byte = byte.min(self.text.len());
        // The end of a line is the column after its last character.
        let column = match (self.char_of_byte(start), self.char_of_byte(byte)) {
            (Some(first), Some(this)) if this >= first => this - first + 1,
            _ => 1,
        };
        (line, column)
    }

    /// The number of the character that begins at a byte; `None` inside of one. The time does not
    /// depend on the length of the line, because every error of a file asks for its column.
    fn char_of_byte(&self, byte: usize) -> Option<usize> {
        if self.checkpoints.is_empty() {
            return Some(byte);
        }
        let checkpoint = self.checkpoints.partition_point(|at| *at <= byte) - 1;
        let near = self.text.get(self.checkpoints[checkpoint]..byte)?;
        Some(checkpoint * CHECKPOINT_EVERY + near.chars().count())
    }

    /// The lines of `span` with `around` more on each side: the number of the first line, and the
    /// byte range.
    #[must_use]
    pub(crate) fn window(&self, span: Span, around: usize) -> (usize, std::ops::Range<usize>) {
        let (first, _) = self.line_column(span.start);
        let (last, _) = self.line_column(span.end.max(span.start));
        // Of a block with many lines, the first ones are shown.
        let last = last.min(first + 8);
        let from = first.saturating_sub(around).max(1);
        let to = (last + around).min(self.line_starts.len());
        let end = self.line_starts.get(to).copied().unwrap_or(self.text.len());
        (from, self.line_starts[from - 1]..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_not_bytes() {
        let source = Source::new("f", "é: ü\nb: 1".into());
        assert_eq!(source.byte_of_char(3), 4);
        assert_eq!(source.line_column(4), (1, 4));
        assert_eq!(source.line_column(7), (2, 1));
    }

    #[test]
    fn long_non_ascii_lines_are_indexed() {
        let source = Source::new("f", "ä".repeat(5000));
        assert_eq!(source.byte_of_char(4321), 8642);
        assert_eq!(source.byte_of_char(9999), 10_000);
    }

    #[test]
    fn positions_from_a_place_nearby_are_the_same() {
        for text in ["ä".repeat(3000), "aé\n".repeat(1500), "plain ".repeat(100)] {
            let source = Source::new("f", text);
            let mut near = Place::default();
            // Forward by small and large steps, backward, and beyond the end.
            for index in [
                0, 1, 3, 3, 700, 650, 2999, 5, 3000, 4499, 4500, 9000, 12, 13,
            ] {
                assert_eq!(
                    source.byte_near(&mut near, index),
                    source.byte_of_char(index),
                    "{index}"
                );
            }
        }
    }

    #[test]
    fn every_kind_of_line_end_counts_once() {
        let source = Source::new("f", "a\r\nb\rc\nd".into());
        assert_eq!(source.line_column(3), (2, 1));
        assert_eq!(source.line_column(5), (3, 1));
        assert_eq!(source.line_column(7), (4, 1));
    }
}
