//! A secret in arguments or in an answer, plain or encoded.

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
            || self.base64.iter().any(|form| text.contains(form))
            || (text.len() >= self.hex.len() && text.to_ascii_lowercase().contains(&self.hex))
            || (text.contains('%')
                && percent_decode_str(text)
                    .decode_utf8_lossy()
                    .contains(&self.value))
            || (self.compact.len() >= MIN_ENCODED && compact(text).contains(&self.compact))
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
