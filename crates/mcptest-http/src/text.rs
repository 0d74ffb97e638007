//! Safe display of text that a server sent.
//!
//! Server text may end up on a terminal or in a CI log. Control characters could move the cursor,
//! hide text or imitate our own output, so they are shown as escapes.

use std::fmt::Write as _;

/// Shows untrusted text on one line.
///
/// Control characters (C0 except tab, DEL, and C1, which includes every terminal escape), line
/// separators and characters that change the direction of text become visible escapes.
///
/// ```
/// assert_eq!(mcptest_http::text::sanitize("a\u{1b}[31mb\n"), r"a\u{1b}[31mb\n");
/// ```
#[must_use]
pub fn sanitize(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        return text.to_owned();
    }
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

/// Truncates text to a number of characters and states its full size.
#[must_use]
pub fn clip(text: &str, max_chars: usize) -> String {
    if text.len() <= max_chars {
        return text.to_owned();
    }
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}… ({} bytes in total)", &text[..cut], text.len()),
    }
}

/// [`clip`] into a buffer that is used again.
pub fn clip_into(text: &str, max_chars: usize, out: &mut String) {
    out.clear();
    if text.len() <= max_chars {
        out.push_str(text);
    } else {
        out.push_str(&clip(text, max_chars));
    }
}

/// Truncates and sanitizes: the form in which server text enters a message.
#[must_use]
pub fn quote(text: &str, max_chars: usize) -> String {
    sanitize(&clip(text, max_chars))
}

/// [`quote`] for bytes; only the part that is shown is decoded.
#[must_use]
pub fn quote_bytes(bytes: &[u8], max_chars: usize) -> String {
    // A character has at most four bytes.
    let end = bytes.len().min(max_chars.saturating_mul(4));
    let start = String::from_utf8_lossy(&bytes[..end]);
    match start.char_indices().nth(max_chars) {
        Some((cut, _)) => {
            let start = sanitize(&start[..cut]);
            format!("{start}… ({} bytes in total)", bytes.len())
        }
        None if end < bytes.len() => {
            format!("{}… ({} bytes in total)", sanitize(&start), bytes.len())
        }
        None => sanitize(&start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_controls_become_escapes() {
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
    fn text_is_truncated_between_characters() {
        assert_eq!(clip("äöü", 3), "äöü");
        assert_eq!(clip("äöü", 2), "äö… (6 bytes in total)");
    }

    #[test]
    fn a_buffer_is_used_again() {
        let mut buffer = "longer than what follows".to_owned();
        for text in ["äöü", "", "abc", "abcdef"] {
            clip_into(text, 3, &mut buffer);
            assert_eq!(buffer, clip(text, 3));
        }
    }

    #[test]
    fn bytes_are_truncated_like_text() {
        assert_eq!(quote_bytes("äöü\n".as_bytes(), 4), "äöü\\n");
        assert_eq!(quote_bytes("äöü".as_bytes(), 2), "äö… (6 bytes in total)");
        assert_eq!(quote_bytes(&[b'x'; 100], 2), "xx… (100 bytes in total)");
        assert_eq!(quote_bytes(&[0xff, b'x'], 5), "\u{fffd}x");
    }
}
