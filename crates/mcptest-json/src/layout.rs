//! The layout of JSON text: indented as [`serde_json::to_string_pretty`] does it, or compact.

use std::io::{self, Write};

use crate::scan::plain_end;

/// Text is written in pieces of at least this size, in bytes.
const PIECE: usize = 32 << 10;

/// Writes JSON with line breaks and indentation, regardless of the white space in its input.
///
/// The text may come in pieces. Strings and numbers are not changed, and the text is not checked.
///
/// ```
/// use std::io::Write as _;
/// use mcptest_json::layout::PrettyWriter;
/// let mut pretty = PrettyWriter::new(Vec::new());
/// pretty.write_all(br#"{"a":[1,{}]}"#).unwrap();
/// let text = pretty.finish().unwrap();
/// assert_eq!(text, b"{\n  \"a\": [\n    1,\n    {}\n  ]\n}");
/// ```
#[derive(Debug)]
pub struct PrettyWriter<W> {
    out: W,
    buffer: Vec<u8>,
    state: State,
    /// The number of open lists and objects.
    depth: usize,
    /// True directly after the beginning of a list or an object.
    opened: bool,
}

/// The place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    InString,
    /// After a backslash in a string.
    Escaped,
}

impl<W: Write> PrettyWriter<W> {
    /// Starts a document.
    pub fn new(out: W) -> Self {
        Self {
            out,
            buffer: Vec::with_capacity(PIECE + PIECE / 4),
            state: State::Outside,
            depth: 0,
            opened: false,
        }
    }

    /// Writes the buffered text and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_out()?;
        Ok(self.out)
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn new_line(&mut self) {
        const BREAK: &[u8] = b"\n                                                                ";
        let end = 1 + 2 * self.depth;
        match BREAK.get(..end) {
            Some(text) => self.buffer.extend_from_slice(text),
            None => {
                self.buffer.push(b'\n');
                self.buffer.resize(self.buffer.len() + end - 1, b' ');
            }
        }
    }

    /// The first value of a list or an object begins a line.
    fn before_value(&mut self) {
        if self.opened {
            self.opened = false;
            self.new_line();
        }
    }

    /// Writes the byte at `at`, outside of strings. Returns the next position.
    fn outside(&mut self, text: &[u8], at: usize) -> usize {
        let byte = text[at];
        match byte {
            b'"' => {
                self.before_value();
                self.buffer.push(byte);
                self.state = State::InString;
            }
            b'{' | b'[' => {
                self.before_value();
                self.buffer.push(byte);
                self.depth += 1;
                self.opened = true;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if !std::mem::take(&mut self.opened) {
                    self.new_line();
                }
                self.buffer.push(byte);
            }
            b',' => {
                self.buffer.push(byte);
                self.new_line();
            }
            b':' => self.buffer.extend_from_slice(b": "),
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                self.before_value();
                self.buffer.push(byte);
            }
        }
        at + 1
    }
}

impl<W: Write> Write for PrettyWriter<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < text.len() {
            if self.buffer.len() >= PIECE {
                self.write_out()?;
            }
            match self.state {
                State::Outside => at = self.outside(text, at),
                State::InString => {
                    let end = plain_end(text, at);
                    self.buffer.extend_from_slice(&text[at..end]);
                    at = end;
                    if let Some(byte) = text.get(end) {
                        self.buffer.push(*byte);
                        at += 1;
                        match byte {
                            b'"' => self.state = State::Outside,
                            b'\\' => self.state = State::Escaped,
                            _ => {}
                        }
                    }
                }
                State::Escaped => {
                    self.buffer.push(text[at]);
                    at += 1;
                    self.state = State::InString;
                }
            }
        }
        Ok(text.len())
    }

    /// Writes the buffered text, without ending the document.
    fn flush(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.out.flush()
    }
}

/// Objects with more keys than this are not checked for repeated keys one by one.
const MAX_KEYS: usize = 64;

/// Integers with this number of characters fit into 64 bits, with a sign or without.
const SHORT_INTEGER: usize = 18;

/// Appends valid JSON text in the form in which [`serde_json`] writes its value: no spaces, and one
/// spelling for every string and number. Returns false, with nothing appended, if the text has to
/// be parsed for that: a key that is in an object twice, or many keys.
///
/// ```
/// use mcptest_json::layout::compact;
/// let mut out = Vec::new();
/// assert!(compact(r#"{ "a": [1.50, "\u0041"] }"#, &mut out));
/// assert_eq!(out, br#"{"a":[1.5,"A"]}"#);
/// ```
#[must_use]
pub fn compact(text: &str, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let done = try_compact(text, out).is_some();
    if !done {
        out.truncate(start);
    }
    done
}

fn try_compact(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let bytes = text.as_bytes();
    // The places of the keys of all open objects in `out`, and the first key of each object.
    let (mut keys, mut objects): (Vec<(usize, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let begin = out.len();
                at = compact_string(text, at, out)?;
                let next = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') {
                    let key = (begin, out.len());
                    let known = keys.get(objects.last().copied()?..)?;
                    let is_same =
                        |other: &&(usize, usize)| out[other.0..other.1] == out[key.0..key.1];
                    if known.len() >= MAX_KEYS || known.iter().find(is_same).is_some() {
                        return None;
                    }
                    keys.push(key);
                }
            }
            b'{' => {
                objects.push(keys.len());
                out.push(*byte);
                at += 1;
            }
            b'}' => {
                keys.truncate(objects.pop()?);
                out.push(*byte);
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                compact_number(&text[at..at + length], out)?;
                at += length;
            }
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    Some(())
}

/// Appends the string that begins at a quote. Returns its end.
fn compact_string(text: &str, quote: usize, out: &mut Vec<u8>) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = quote + 1;
    let mut usual = true;
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at)? {
            b'"' => break,
            b'\\' => {
                // Others are written in another way.
                usual &= matches!(
                    bytes.get(at + 1)?,
                    b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't'
                );
                at += 2;
            }
            _ => return None,
        }
    }
    let end = at + 1;
    let quoted = text.get(quote..end)?;
    if usual {
        out.extend_from_slice(quoted.as_bytes());
    } else {
        let string: String = serde_json::from_str(quoted).ok()?;
        serde_json::to_writer(out, &string).ok()?;
    }
    Some(end)
}

fn compact_number(number: &str, out: &mut Vec<u8>) -> Option<()> {
    let is_integer = number
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit());
    if is_integer && number.len() <= SHORT_INTEGER && number != "-0" {
        out.extend_from_slice(number.as_bytes());
        return Some(());
    }
    let number: serde_json::Number = serde_json::from_str(number).ok()?;
    serde_json::to_writer(out, &number).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const TEXTS: [&str; 9] = [
        r#"{"a":1,"b":[{"a":"x\n"},{"a":"é\\\""}],"c":99.5,"d":-7,"e":null,"f":true}"#,
        "[]",
        "\"\"",
        "0",
        "[false,{}]",
        r#"[ "\u0041\/", 1.0e3, 1.50, -0, 12345678901234567890 ]"#,
        r#"{"b":{"a":1} , "a" : {"c":1},"x":"]}{[,:\""}"#,
        "[[[[]]],[{}],[{\"a\":[]}]]",
        "{\"k\":\"\\ud83d\\ude00 caf\\u00e9\"}",
    ];

    fn pretty(text: &str, piece: usize) -> String {
        let mut writer = PrettyWriter::new(Vec::new());
        for part in text.as_bytes().chunks(piece) {
            writer.write_all(part).unwrap();
        }
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn compact_text_is_that_of_a_serializer() {
        for text in TEXTS {
            let value: Value = serde_json::from_str(text).unwrap();
            let mut out = b"before".to_vec();
            assert!(compact(text, &mut out), "{text}");
            assert_eq!(String::from_utf8(out).unwrap(), format!("before{value}"));
        }
        for text in [r#"{"a":1,"a":2}"#, r#"{"b":{"a":1},"a":{"c":1},"a" :2}"#] {
            let mut out = b"before".to_vec();
            assert!(!compact(text, &mut out), "{text}");
            assert_eq!(out, b"before");
        }
    }

    #[test]
    fn pretty_text_is_that_of_a_serializer_in_pieces_of_any_size() {
        for text in TEXTS {
            let value: Value = serde_json::from_str(text).unwrap();
            let expected = serde_json::to_string_pretty(&value).unwrap();
            for piece in [1, 2, 3, 1000] {
                assert_eq!(pretty(&value.to_string(), piece), expected);
                assert_eq!(pretty(&expected, piece), expected);
            }
        }
        let deep = format!("{}1{}", "[".repeat(50), "]".repeat(50));
        let value: Value = serde_json::from_str(&deep).unwrap();
        assert_eq!(
            pretty(&deep, 7),
            serde_json::to_string_pretty(&value).unwrap()
        );
    }

    proptest! {
        #[test]
        fn any_json_is_compacted_like_its_value(
            text in r#"(\{("[ab\\nu0-9]{0,2}" ?:([0-9.e-]{1,4}|"x"|\[\]|\{"a":1\}|null)(,| ,)?){0,3}\}|\[([0-9.eE+-]{1,6},?){0,3}\])"#
        ) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let mut out = Vec::new();
                if compact(&text, &mut out) {
                    prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
                }
                prop_assert_eq!(
                    pretty(&value.to_string(), 5),
                    serde_json::to_string_pretty(&value).unwrap()
                );
            }
        }
    }
}
