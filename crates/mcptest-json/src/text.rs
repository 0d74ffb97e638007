//! Escaping of untrusted text.
//!
//! Text of a server or a model may contain terminal escapes, invisible control characters or
//! text-direction overrides. It is escaped here before it is shown.

use std::fmt::Write as _;

/// Escapes characters that could control a terminal or deceive a reader; line breaks and tabs are
/// escaped too, so the result is one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    escape(text, false)
}

/// Escapes as [`one_line`] does, but keeps line breaks.
#[must_use]
pub fn lines(text: &str) -> String {
    escape(text, true)
}

fn escape(text: &str, keep_lines: bool) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' if keep_lines => out.push('\n'),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str(if keep_lines { "    " } else { "\\t" }),
            c if is_hostile(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns true for control characters (C0, DEL, C1), direction marks and overrides, and invisible
/// separators and joiners.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Truncates a string to at most `max` characters, the last of which is then `…`.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_are_visible_and_harmless() {
        assert_eq!(
            one_line("a\u{1b}[31mred\nb\u{202e}c"),
            "a\\u{1b}[31mred\\nb\\u{202e}c"
        );
        assert_eq!(lines("a\nb\u{7}"), "a\nb\\u{7}");
        assert_eq!(one_line("Größe ✓ 日本"), "Größe ✓ 日本");
    }

    #[test]
    fn shortening_counts_characters() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äö…");
    }

    proptest! {
        #[test]
        fn nothing_hostile_survives(text in "\\PC*|[\\x00-\\x1f\\x7f-\\u{9f}\\u{200b}-\\u{206f}a-z]*") {
            prop_assert!(!one_line(&text).chars().any(is_hostile));
        }
    }
}
