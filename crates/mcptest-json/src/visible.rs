//! JSON text in which every character can be seen.
//!
//! JSON strings may hold characters that steer a terminal (C1 controls, DEL) or reverse the reading
//! direction of what follows (U+202E). Written as `\u…` they are the same value, and whoever prints
//! the text sees what is there. All of them can only be inside of strings, so the text is changed
//! without parsing it.

use std::borrow::Cow;
use std::io::{self, Write};

/// JSON text with `\u…` in place of characters that control a terminal or the reading direction.
#[must_use]
pub fn visible(json: &str) -> Cow<'_, str> {
    let Some(first) = first_hidden(json) else {
        return Cow::Borrowed(json);
    };
    let mut out = json[..first].to_owned();
    for character in json[first..].chars() {
        if is_hidden(character) {
            out.push_str(&escaped(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// The place of the first hidden character. Characters are decoded only from the first byte on that
/// can begin one, so plain text costs little.
fn first_hidden(json: &str) -> Option<usize> {
    let may_begin = |byte: u8| matches!(byte, 0x7f | 0xc2 | 0xd8 | 0xe2);
    let from = json.bytes().position(may_begin)?;
    Some(from + json[from..].find(is_hidden)?)
}

/// DEL, C1 controls, line separators, and marks, embeddings, overrides and isolates of the reading
/// direction.
fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// All of them are in the basic plane, so there is one escape for each.
fn escaped(character: char) -> String {
    format!("\\u{:04x}", character as u32)
}

/// A writer of JSON text that passes it on as [`visible`] does.
#[derive(Debug)]
pub struct VisibleJson<W> {
    out: W,
    /// The beginning of a character whose end has not been written yet.
    part: Vec<u8>,
}

impl<W: Write> VisibleJson<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            part: Vec::new(),
        }
    }
}

impl<W: Write> Write for VisibleJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined;
        let text = if self.part.is_empty() {
            bytes
        } else {
            joined = [self.part.as_slice(), bytes].concat();
            &joined
        };
        let whole = whole_characters(text);
        match std::str::from_utf8(&text[..whole]) {
            Ok(json) => self.out.write_all(visible(json).as_bytes())?,
            // Not UTF-8 at all, which our serializers never write.
            Err(_) => self.out.write_all(&text[..whole])?,
        }
        self.part = text[whole..].to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The length of the text without a character at its end that is not whole.
fn whole_characters(text: &[u8]) -> usize {
    let start = text.len().saturating_sub(3);
    // A character has at most four bytes, so its first one is among the last three.
    match text[start..].iter().rposition(|byte| *byte >= 0xc0) {
        Some(lead) => {
            let lead = start + lead;
            let length = match text[lead] {
                0xf0.. => 4,
                0xe0.. => 3,
                _ => 2,
            };
            if lead + length > text.len() {
                lead
            } else {
                text.len()
            }
        }
        None => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDDEN: &str = "{\"a\u{202e}\":\"x\u{9b}31m\u{7f}é😀\u{2066}\"}";

    #[test]
    fn issue_14_hidden_characters_become_escapes_of_the_same_value() {
        let shown = visible(HIDDEN);
        assert_eq!(shown, "{\"a\\u202e\":\"x\\u009b31m\\u007fé😀\\u2066\"}");
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(value(&shown), value(HIDDEN));
        assert!(matches!(visible("{\"é\":1}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn every_hidden_character_is_found_alone() {
        for character in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let json = format!("\"é—{character}\"");
            let is_borrowed = matches!(visible(&json), Cow::Borrowed(_));
            assert_eq!(is_borrowed, !is_hidden(character), "{character:?}");
        }
    }

    #[test]
    fn a_writer_gives_the_same_text_wherever_it_is_cut() {
        for first in 0..HIDDEN.len() {
            for second in first..HIDDEN.len() {
                let mut writer = VisibleJson::new(Vec::new());
                for part in [0..first, first..second, second..HIDDEN.len()] {
                    writer.write_all(&HIDDEN.as_bytes()[part]).unwrap();
                }
                assert_eq!(writer.out, visible(HIDDEN).as_bytes());
            }
        }
    }
}
