//! A secret in arguments or in an answer, plain or encoded.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Encoded forms that are shorter than this are not searched for: they could be there by chance.
const MIN_ENCODED: usize = 8;

/// A value that must not leave, with its encoded forms.
#[derive(Debug, Clone)]
pub struct Leak {
    value: String,
    /// Base64 at the three positions that a value can have within a longer text.
    base64: Vec<String>,
    /// Lowercase hexadecimal.
    hex: String,
    /// The value without separators.
    compact: String,
}

impl Leak {
    /// The forms of a value.
    #[must_use]
    pub fn new(value: &str) -> Self {
        let mut base64 = Vec::new();
        for offset in 0..3 {
            let mut bytes = vec![0; offset];
            bytes.extend_from_slice(value.as_bytes());
            for encoded in [
                STANDARD_NO_PAD.encode(&bytes),
                URL_SAFE_NO_PAD.encode(&bytes),
            ] {
                // Characters at the ends also have bits of the neighbours.
                let skip = [0, 2, 3][offset];
                let end = encoded.len() - usize::from(bytes.len() % 3 != 0);
                let core = encoded.get(skip..end).unwrap_or_default().to_owned();
                if core.len() >= MIN_ENCODED && !base64.contains(&core) {
                    base64.push(core);
                }
            }
        }
        Self {
            base64,
            hex: value.bytes().map(|byte| format!("{byte:02x}")).collect(),
            compact: compact(value),
            value: value.to_owned(),
        }
    }

    /// Returns true if a text contains the value or one of its forms.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        if self.value.is_empty() || text.len() < self.compact.len().min(self.value.len()) {
            return false;
        }
        text.contains(&self.value)
            || self.is_encoded_in(text)
            || (text.contains('%')
                && percent_decode_str(text)
                    .decode_utf8_lossy()
                    .contains(&self.value))
            || (self.compact.len() >= MIN_ENCODED && compact(text).contains(&self.compact))
    }

    /// Returns true if a text contains the value in base64 or hexadecimal, as a whole, in lines or
    /// in groups.
    fn is_encoded_in(&self, text: &str) -> bool {
        if text.len() < self.hex.len().min(MIN_ENCODED) {
            return false;
        }
        let has = |text: &str| {
            self.base64.iter().any(|form| text.contains(form))
                || (text.len() >= self.hex.len() && text.to_ascii_lowercase().contains(&self.hex))
        };
        if has(text) {
            return true;
        }
        // Encoders wrap base64 in lines, also as the two characters of an escape.
        let unwrapped: String = without_escaped_breaks(text)
            .chars()
            .filter(|char| !char.is_whitespace())
            .collect();
        if has(&unwrapped) {
            return true;
        }
        // Bytes in groups: `6d:63`, `6d 63`, `0x6d, 0x63`, `\x6d\x63`.
        self.hex.len() >= MIN_ENCODED && hex_digits(text).contains(&self.hex)
    }

    /// Returns true if a string, a key or a number of a JSON value contains it.
    #[must_use]
    pub fn is_in_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_in(text),
            Value::Array(items) => items.iter().any(|item| self.is_in_value(item)),
            Value::Object(map) => map
                .iter()
                .any(|(key, value)| self.is_in(key) || self.is_in_value(value)),
            Value::Number(number) => self.is_in(&number.to_string()),
            Value::Null | Value::Bool(_) => false,
        }
    }
}

/// Removes the escapes of line breaks from a string.
fn without_escaped_breaks(text: &str) -> Cow<'_, str> {
    if text.contains('\\') {
        Cow::Owned(text.replace("\\r", "").replace("\\n", ""))
    } else {
        Cow::Borrowed(text)
    }
}

/// The hexadecimal digits of a string in lowercase, without the marks and separators of bytes. Any
/// other character stays between them.
fn hex_digits(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char.to_ascii_lowercase() {
            '0' | '\\' if chars.next_if(|next| matches!(next, 'x' | 'X')).is_some() => {}
            ':' | '-' | '_' | ',' | '.' | ';' | '%' | '\'' | '"' => {}
            space if space.is_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

/// Removes separators from a string.
fn compact(text: &str) -> String {
    text.chars().filter(|char| char.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn encoded_forms_are_found_and_others_are_not() {
        let leak = Leak::new("mct-0a1b2c3d4e5f");
        for text in [
            "key mct-0a1b2c3d4e5f.".to_owned(),
            STANDARD.encode("mct-0a1b2c3d4e5f"),
            "6d63742d306131623263336434653566".to_owned(),
            "6D63742D306131623263336434653566".to_owned(),
            "mct%2D0a1b2c3d4e5f".to_owned(),
            "m.c.t 0a1b 2c3d 4e5f".to_owned(),
        ] {
            assert!(leak.is_in(&text), "{text}");
        }
        let hex = "6d63742d306131623263336434653566";
        let bytes: Vec<&str> = (0..hex.len() / 2)
            .map(|at| &hex[2 * at..2 * at + 2])
            .collect();
        for text in [
            bytes.join(":"),
            bytes.join(" ").to_uppercase(),
            format!("bytes = [0x{}]", bytes.join(", 0x")),
            format!("\\x{}", bytes.join("\\x")),
            format!("a dump\n{}\n{}", bytes[..8].join(" "), bytes[8..].join(" ")),
        ] {
            assert!(leak.is_in(&text), "{text}");
        }
        let encoded = STANDARD.encode("a longer text: mct-0a1b2c3d4e5f, and its end");
        for gap in ["\n", "\r\n", " ", "\\n"] {
            let lines: Vec<&str> = (0..encoded.len() / 4)
                .map(|at| &encoded[4 * at..4 * at + 4])
                .collect();
            assert!(leak.is_in(&lines.join(gap)), "{gap:?}");
        }
        assert!(!leak.is_in(&bytes[1..].join(":")));
        assert!(!leak.is_in("mct-0a1b2c3d4e50"));
        assert!(!leak.is_in(""));
        assert!(!Leak::new("").is_in("x"));
        assert!(leak.is_in_value(&json!({"a": [{"b": "mct-0a1b2c3d4e5f"}]})));
        assert!(leak.is_in_value(&json!({"mct-0a1b2c3d4e5f": 1})));
        assert!(Leak::new("1234567890").is_in_value(&json!(1_234_567_890)));
    }

    proptest! {
        #[test]
        fn base64_is_found_at_every_position(before in ".{0,9}", after in ".{0,9}") {
            let leak = Leak::new("mct-0a1b2c3d4e5f");
            let text = STANDARD.encode(format!("{before}mct-0a1b2c3d4e5f{after}"));
            prop_assert!(leak.is_in(&text));
        }
    }
}
