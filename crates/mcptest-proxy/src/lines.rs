//! Bounded splitting of bytes into lines. All bytes come out, in order.

/// The longest line that is parsed. Longer ones are passed on unparsed.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// A part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinePart {
    /// A whole line with its newline.
    Line(Vec<u8>),
    /// A part of a line that is too long to be parsed.
    Oversized(Vec<u8>),
}

/// Splits chunks into lines.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    partial: Vec<u8>,
    max: usize,
    /// The current line is too long.
    oversized: bool,
}

impl LineSplitter {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            partial: Vec::new(),
            max,
            oversized: false,
        }
    }

    /// Splits a chunk and appends the completed parts.
    pub(crate) fn push(&mut self, mut chunk: &[u8], parts: &mut Vec<LinePart>) {
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(&chunk[..=end]);
            chunk = &chunk[end + 1..];
            let line = std::mem::take(&mut self.partial);
            let oversized = std::mem::take(&mut self.oversized) || line.len() > self.max;
            parts.push(if oversized {
                LinePart::Oversized(line)
            } else {
                LinePart::Line(line)
            });
        }
        self.partial.extend_from_slice(chunk);
        if self.oversized || self.partial.len() > self.max {
            self.oversized = true;
            if !self.partial.is_empty() {
                parts.push(LinePart::Oversized(std::mem::take(&mut self.partial)));
            }
        }
    }

    /// The rest at the end of the stream: a line without its newline.
    pub(crate) fn end(&mut self) -> Option<LinePart> {
        let rest = std::mem::take(&mut self.partial);
        (!rest.is_empty()).then_some(LinePart::Line(rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(chunks: &[&[u8]], max: usize) -> Vec<LinePart> {
        let mut lines = LineSplitter::new(max);
        let mut parts = Vec::new();
        for chunk in chunks {
            lines.push(chunk, &mut parts);
        }
        parts.extend(lines.end());
        parts
    }

    #[test]
    fn lines_keep_their_newlines_and_the_last_may_have_none() {
        let line = |text: &str| LinePart::Line(text.as_bytes().to_vec());
        assert_eq!(
            run(&[b"a\r\n\nb", b"c\nd"], 100),
            [line("a\r\n"), line("\n"), line("bc\n"), line("d")]
        );
    }

    #[test]
    fn a_long_line_is_passed_on_and_the_next_one_is_parsed() {
        let parts = run(&[b"123456", b"78", b"9\nok\n"], 5);
        assert_eq!(parts.last(), Some(&LinePart::Line(b"ok\n".to_vec())));
        assert!(
            parts[..parts.len() - 1]
                .iter()
                .all(|part| matches!(part, LinePart::Oversized(_)))
        );
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_added(
            chunks in prop::collection::vec(
                prop::collection::vec(
                    prop::num::u8::ANY.prop_map(|b| if b < 60 { b'\n' } else { b }),
                    0..20,
                ),
                0..20,
            ),
            max in 1usize..30,
        ) {
            let whole: Vec<u8> = chunks.concat();
            let slices: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let mut out = Vec::new();
            for part in run(&slices, max) {
                match part {
                    LinePart::Line(bytes) | LinePart::Oversized(bytes) => out.extend(bytes),
                }
            }
            prop_assert_eq!(out, whole);
        }
    }
}
