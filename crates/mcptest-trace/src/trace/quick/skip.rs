//! Skipping JSON values, which checks their form.

use mcptest_json::scan::{StringBytes, WINDOW, plain_end, special_bytes, string_bytes};

/// A value nests at most this deep; a deeper one is left to the thorough reader.
const MAX_DEPTH: u32 = 62;

/// A number with this number of digits may be out of range (309 digits are).
const LONG_NUMBER: usize = 64;

/// A skipped string.
pub(super) struct SkippedString {
    /// The place after the closing quote.
    pub end: usize,
    pub has_escapes: bool,
    /// True if it has an escape by number, which may be half of a pair.
    pub has_numeric_escapes: bool,
}

impl SkippedString {
    #[inline(always)]
    fn plain(end: usize) -> Self {
        Self {
            end,
            has_escapes: false,
            has_numeric_escapes: false,
        }
    }
}

/// Passes the string whose first character is at `start`.
#[inline(always)]
pub(super) fn string(bytes: &[u8], start: usize) -> Option<SkippedString> {
    // Most strings are short and have no escapes.
    if let Some(found) = special_bytes(bytes, start) {
        let end = start + found.trailing_zeros() as usize;
        if found != 0 && bytes.get(end) == Some(&b'"') {
            return Some(SkippedString::plain(end + 1));
        }
    }
    long_string(bytes, start)
}

/// Passes the rest of any string.
#[inline(never)]
fn long_string(bytes: &[u8], start: usize) -> Option<SkippedString> {
    let mut string = SkippedString::plain(start);
    let mut at = start;
    // 1 if the byte before the window is a backslash that begins an escape.
    let mut carry = 0;
    while let Some(window) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let StringBytes {
            quotes,
            backslashes,
            letters_n,
            controls,
        } = string_bytes(window);
        // The bytes after a backslash.
        let escaped = backslashes << 1 | carry;
        // An escaped backslash, or an escape other than that of a quote or a line feed.
        if escaped & (backslashes | !(quotes | letters_n)) & 0xffff != 0 {
            return any_string(bytes, at - carry as usize, string);
        }
        let ends = quotes & !escaped | controls;
        if ends != 0 {
            let end = ends.trailing_zeros();
            // An escape after the end is not part of the string.
            string.has_escapes |= backslashes & ((1 << end) - 1) != 0;
            string.end = at + end as usize + 1;
            return (controls >> end & 1 == 0).then_some(string);
        }
        string.has_escapes |= backslashes != 0;
        carry = escaped >> WINDOW & 1;
        at += WINDOW;
    }
    any_string(bytes, at - carry as usize, string)
}

/// Passes the rest of a string, escape by escape.
fn any_string(bytes: &[u8], start: usize, mut string: SkippedString) -> Option<SkippedString> {
    let mut at = start;
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at)? {
            b'"' => {
                string.end = at + 1;
                return Some(string);
            }
            b'\\' => {}
            _ => return None,
        }
        string.has_escapes = true;
        match bytes.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
            b'u' => {
                let digits = bytes.get(at + 2..at + 6)?;
                string.has_numeric_escapes = true;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                at += 6;
            }
            _ => return None,
        }
    }
}

/// The next byte that is not white space, and its place.
#[inline(always)]
fn next_token(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    match *bytes.get(at)? {
        byte if byte > b' ' => Some((byte, at)),
        _ => token_after_space(bytes, at),
    }
}

#[cold]
fn token_after_space(bytes: &[u8], mut at: usize) -> Option<(u8, usize)> {
    loop {
        match *bytes.get(at)? {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            byte => return Some((byte, at)),
        }
    }
}

/// Passes a key and its colon. Returns the end, and false as for [`value`].
#[inline(always)]
fn key(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let (quote, at) = next_token(bytes, at)?;
    if quote != b'"' {
        return None;
    }
    let key = string(bytes, at + 1)?;
    let (colon, at) = next_token(bytes, key.end)?;
    (colon == b':').then_some((at + 1, !key.has_numeric_escapes))
}

/// Passes the value that begins at a place. Returns its end, and false if its form is right and it
/// might still have no value: half of a surrogate pair, or a number out of range.
pub(in crate::trace) fn value(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let mut at = start;
    let mut is_plain = true;
    // One bit for each open list or object: set for an object. The highest bit that is set marks
    // the end.
    let mut open = 1_u64;
    loop {
        let (token, place) = next_token(bytes, at)?;
        at = place;
        // By frequency: a table of jumps is harder to foresee for the processor.
        if token == b'"' {
            let string = string(bytes, at + 1)?;
            is_plain &= !string.has_numeric_escapes;
            at = string.end;
        } else if token.is_ascii_digit() || token == b'-' {
            let (end, is_in_range) = number(bytes, at)?;
            at = end;
            is_plain &= is_in_range;
        } else if token == b'{' {
            let (token, place) = next_token(bytes, at + 1)?;
            if token == b'}' {
                at = place + 1;
            } else {
                let (end, is_plain_key) = key(bytes, place)?;
                at = end;
                is_plain &= is_plain_key;
                open = opened(open, 1)?;
                continue;
            }
        } else if token == b'[' {
            let (token, place) = next_token(bytes, at + 1)?;
            if token == b']' {
                at = place + 1;
            } else {
                at = place;
                open = opened(open, 0)?;
                continue;
            }
        } else {
            at = match token {
                b't' => literal(bytes, at, b"true")?,
                b'f' => literal(bytes, at, b"false")?,
                b'n' => literal(bytes, at, b"null")?,
                _ => return None,
            };
        }
        // A value has ended.
        loop {
            if open == 1 {
                return Some((at, is_plain));
            }
            let is_object = open & 1 == 1;
            let (token, place) = next_token(bytes, at)?;
            at = place + 1;
            if token == b',' {
                if is_object {
                    let (end, is_plain_key) = key(bytes, at)?;
                    at = end;
                    is_plain &= is_plain_key;
                }
                break;
            }
            if token != if is_object { b'}' } else { b']' } {
                return None;
            }
            open >>= 1;
        }
    }
}

/// Opens a list or an object. `None` if the value nests too deep.
#[inline(always)]
fn opened(open: u64, object: u64) -> Option<u64> {
    (open >> MAX_DEPTH == 0).then_some(open << 1 | object)
}

#[inline(always)]
fn literal<const SIZE: usize>(bytes: &[u8], at: usize, literal: &[u8; SIZE]) -> Option<usize> {
    let found: &[u8; SIZE] = bytes.get(at..)?.first_chunk()?;
    (found == literal).then_some(at + SIZE)
}

/// Passes the number that begins at a place. Returns its end, and false if it might be out of
/// range.
#[inline]
fn number(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let mut at = start;
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    match bytes.get(at)? {
        b'0' => at += 1,
        b'1'..=b'9' => at = digits(bytes, at)?,
        _ => return None,
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    let mut is_in_range = at - start < LONG_NUMBER;
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        is_in_range = false;
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Some((at, is_in_range))
}

/// Passes one or more digits.
#[inline(always)]
fn digits(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// The end of the string that a text begins with after its quote, found byte by byte.
    fn end_of_string(text: &[u8]) -> Option<(usize, bool, bool)> {
        let (mut at, mut escapes, mut numeric) = (0, false, false);
        loop {
            match text.get(at)? {
                b'"' => return Some((at + 1, escapes, numeric)),
                b'\\' => {
                    escapes = true;
                    at += match text.get(at + 1)? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                        b'u' if text.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => {
                            numeric = true;
                            6
                        }
                        _ => return None,
                    };
                }
                0..0x20 => return None,
                _ => at += 1,
            }
        }
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            10 => "[a-z ]{1,9}",
            4 => Just("\\\"".to_owned()),
            2 => Just("\\n".to_owned()),
            1 => Just("\\\\".to_owned()),
            1 => Just("\\t".to_owned()),
            1 => Just("\\u00e9".to_owned()),
            1 => Just("é".to_owned()),
            1 => Just("\"".to_owned()),
            1 => prop_oneof![Just("\\"), Just("\n"), Just("\\u12"), Just("\\x")].prop_map(str::to_owned),
        ];
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn the_end_of_a_string_is_found(text in pieces(), before in 0..20_usize) {
            let text = format!("{}{text}", "x".repeat(before));
            let found = string(text.as_bytes(), before);
            let found = found.map(|it| (it.end - before, it.has_escapes, it.has_numeric_escapes));
            prop_assert_eq!(found, end_of_string(&text.as_bytes()[before..]));
        }

        #[test]
        fn values_are_skipped_as_serde_skips_them(
            text in prop_oneof![pieces(), r#"[\[\]{}",:0-9eE.+ -]{0,12}"#],
            open in prop_oneof![Just(""), Just("\""), Just("[\""), Just("{\""), Just("[")],
            close in prop_oneof![Just(""), Just("\""), Just("\"]"), Just("\":1}"), Just("]")],
        ) {
            let text = format!("{open}{text}{close}");
            let mut values = serde_json::Deserializer::from_str(&text).into_iter::<&RawValue>();
            let expected = values.next().and_then(Result::ok).map(|raw| raw.get().len());
            let start = text.len() - text.trim_start_matches([' ', '\n']).len();
            let found = value(text.as_bytes(), start).map(|(end, _)| end - start);
            // Serde reads what follows a number, which may be more of it.
            if !text[start..].starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
                prop_assert_eq!(found, expected);
            }
        }
    }
}
