//! Bytes to lines. What is put in comes out, all of it and in order.

/// The longest line that is read along. A longer one passes unread.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// A piece of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A whole line with its newline.
    Line(Vec<u8>),
    /// A part of a line that is too long to be read along.
    Unread(Vec<u8>),
}

/// Gathers lines.
#[derive(Debug)]
pub(crate) struct Lines {
    held: Vec<u8>,
    max: usize,
    /// The rest of this line passes unread.
    passing: bool,
}

impl Lines {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            held: Vec::new(),
            max,
            passing: false,
        }
    }

    /// Takes in a chunk and adds what it completes.
    pub(crate) fn push(&mut self, mut chunk: &[u8], pieces: &mut Vec<Piece>) {
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.held.extend_from_slice(&chunk[..=end]);
            chunk = &chunk[end + 1..];
            let line = std::mem::take(&mut self.held);
            let unread = std::mem::take(&mut self.passing) || line.len() > self.max;
            pieces.push(if unread {
                Piece::Unread(line)
            } else {
                Piece::Line(line)
            });
        }
        self.held.extend_from_slice(chunk);
        if self.passing || self.held.len() > self.max {
            self.passing = true;
            if !self.held.is_empty() {
                pieces.push(Piece::Unread(std::mem::take(&mut self.held)));
            }
        }
    }

    /// What is left at the end of the stream: a line without its newline.
    pub(crate) fn end(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.held);
        (!rest.is_empty()).then_some(Piece::Line(rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(chunks: &[&[u8]], max: usize) -> Vec<Piece> {
        let mut lines = Lines::new(max);
        let mut pieces = Vec::new();
        for chunk in chunks {
            lines.push(chunk, &mut pieces);
        }
        pieces.extend(lines.end());
        pieces
    }

    #[test]
    fn lines_keep_their_ends_and_the_last_may_have_none() {
        let line = |text: &str| Piece::Line(text.as_bytes().to_vec());
        assert_eq!(
            run(&[b"a\r\n\nb", b"c\nd"], 100),
            [line("a\r\n"), line("\n"), line("bc\n"), line("d")]
        );
    }

    #[test]
    fn a_long_line_passes_unread_and_the_next_one_is_read_again() {
        let pieces = run(&[b"123456", b"78", b"9\nok\n"], 5);
        assert_eq!(pieces.last(), Some(&Piece::Line(b"ok\n".to_vec())));
        assert!(
            pieces[..pieces.len() - 1]
                .iter()
                .all(|piece| matches!(piece, Piece::Unread(_)))
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_added(chunks in prop::collection::vec(prop::collection::vec(prop::num::u8::ANY.prop_map(|b| if b < 60 { b'\n' } else { b }), 0..20), 0..20), max in 1usize..30) {
            let whole: Vec<u8> = chunks.concat();
            let parts: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let mut out = Vec::new();
            for piece in run(&parts, max) {
                match piece {
                    Piece::Line(bytes) | Piece::Unread(bytes) => out.extend(bytes),
                }
            }
            prop_assert_eq!(out, whole);
        }
    }
}
