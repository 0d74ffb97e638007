//! JSON within a `<script>` element.

use std::io::{self, Write};

/// Escapes the characters of JSON text that could end a script element or begin another one, and
/// those that could control a terminal or deceive a reader of the file: controls, line separators,
/// marks of writing direction and invisible joiners.
///
/// All of them occur only within strings of JSON, where `\u003c` means the same as `<`.
pub(super) struct ScriptSafe<W> {
    out: W,
}

impl<W: Write> ScriptSafe<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }
}

/// The length in bytes and the number of an unsafe character at the start of `text`.
fn unsafe_character(text: &[u8]) -> Option<(usize, u32)> {
    Some(match *text {
        [byte @ (b'<' | b'>' | b'&' | 0x7f), ..] => (1, byte.into()),
        [0xc2, byte @ 0x80..=0x9f, ..] => (2, byte.into()),
        [0xe2, 0x80, byte @ (0x8b..=0x8f | 0xa8..=0xae), ..] => {
            (3, 0x2000 + u32::from(byte) - 0x80)
        }
        [0xe2, 0x81, byte @ 0xa0..=0xaf, ..] => (3, 0x2040 + u32::from(byte) - 0x80),
        [0xef, 0xbb, 0xbf, ..] => (3, 0xfeff),
        _ => return None,
    })
}

impl<W: Write> Write for ScriptSafe<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut done = 0;
        let mut at = 0;
        while at < text.len() {
            // Most bytes begin none of these characters.
            let found = text[at..]
                .iter()
                .position(|byte| matches!(byte, b'<' | b'>' | b'&' | 0x7f | 0xc2 | 0xe2 | 0xef));
            let Some(next) = found else { break };
            at += next;
            match unsafe_character(&text[at..]) {
                Some((length, number)) => {
                    self.out.write_all(&text[done..at])?;
                    write!(self.out, "\\u{number:04x}")?;
                    at += length;
                    done = at;
                }
                None => at += 1,
            }
        }
        self.out.write_all(&text[done..])?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcptest_json::text::one_line;
    use proptest::prelude::*;

    fn safe(text: &str) -> String {
        let mut out = Vec::new();
        ScriptSafe::new(&mut out)
            .write_all(text.as_bytes())
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn elements_cannot_end_or_begin() {
        assert_eq!(
            safe("\"</script><!-- ]]>&\u{2028}\u{2029}\u{2030}é\""),
            "\"\\u003c/script\\u003e\\u003c!-- ]]\\u003e\\u0026\\u2028\\u2029\u{2030}é\""
        );
    }

    proptest! {
        #[test]
        fn the_value_is_the_same(text in "(.|[<>&\u{7f}-\u{a0}\u{2000}-\u{2070}\u{feff}])*") {
            let json = serde_json::to_string(&text).unwrap();
            let written = safe(&json);
            // What `one_line` leaves as it is may stay.
            prop_assert!(!written.contains(['<', '>', '&']) && one_line(&written) == written);
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }
}
