//! Making server text fit to be shown.
//!
//! Whatever a server prints may end up on somebody's terminal or in a CI log.
//! Control characters could move the cursor, hide text or fake our own output,
//! so they are shown as escapes instead.

use std::fmt::Write as _;

/// Shows untrusted text on one line: control characters (C0 but tab, DEL, C1,
/// which includes every terminal escape), line separators and characters that
/// change the direction of text become visible escapes.
///
/// ```
/// assert_eq!(mcptest_http::text::sanitize("a\u{1b}[31mb\n"), r"a\u{1b}[31mb\n");
/// ```
#[must_use]
pub fn sanitize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || is_deceptive(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Characters that are not controls by category but reorder, hide or break text.
fn is_deceptive(c: char) -> bool {
    // Zero-width joiners stay: emoji and several scripts need them.
    matches!(
        c,
        '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    )
}

/// Cuts text to a number of characters, saying how much went away.
#[must_use]
pub fn clip(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}… ({} bytes in all)", &text[..cut], text.len()),
    }
}

/// Cuts and cleans: the form in which server text enters an error message.
#[must_use]
pub fn quote(text: &str, max_chars: usize) -> String {
    sanitize(&clip(text, max_chars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_could_act_on_a_terminal() {
        assert_eq!(sanitize("plain\ttext é 漢"), "plain\ttext é 漢");
        assert_eq!(sanitize("\u{1b}]0;x\u{7}"), "\\u{1b}]0;x\\u{7}");
        assert_eq!(sanitize("a\r\nb"), "a\\r\\nb");
        assert_eq!(sanitize("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(
            sanitize("user\u{202e}txt\u{2066}"),
            "user\\u{202e}txt\\u{2066}"
        );
    }

    #[test]
    fn clips_on_character_boundaries() {
        assert_eq!(clip("äöü", 3), "äöü");
        assert_eq!(clip("äöü", 2), "äö… (6 bytes in all)");
    }
}
