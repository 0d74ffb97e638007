//! Recognises JSON text that a serializer would write in the same way.

/// Objects with more keys than this are not checked for repeated keys.
const MAX_KEYS: usize = 64;

/// Integers with this number of characters fit into 64 bits, with a sign or without.
const SHORT_INTEGER: usize = 18;

/// Returns true if parsing valid JSON and writing the value compactly certainly gives this text:
/// no spaces, no unusual escapes or numbers, no key twice in an object.
pub(super) fn is_canonical(text: &str) -> bool {
    let bytes = text.as_bytes();
    // The keys of all open objects, and the place where those of each begin.
    let (mut keys, mut objects): (Vec<&[u8]>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let Some(end) = string_end(bytes, at + 1) else {
                    return false;
                };
                let string = &bytes[at + 1..end];
                at = end + 1;
                if bytes.get(at) == Some(&b':') {
                    let known = &keys[objects.last().copied().unwrap_or(0)..];
                    if known.len() >= MAX_KEYS || known.contains(&string) {
                        return false;
                    }
                    keys.push(string);
                }
            }
            b'{' => {
                objects.push(keys.len());
                at += 1;
            }
            b'}' => {
                keys.truncate(objects.pop().unwrap_or(0));
                at += 1;
            }
            b'[' | b']' | b',' | b':' => at += 1,
            b't' | b'n' => at += 4,
            b'f' => at += 5,
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                if !is_canonical_number(&text[at..at + length]) {
                    return false;
                }
                at += length;
            }
            _ => return false,
        }
    }
    true
}

/// The place of the closing quote. Nothing if there is an escape that a serializer writes in another
/// way.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        match bytes.get(at + 1)? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
            _ => return None,
        }
    }
}

fn is_canonical_number(number: &str) -> bool {
    if number
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit())
    {
        return number.len() <= SHORT_INTEGER && number != "-0";
    }
    let float = number.parse().ok().and_then(serde_json::Number::from_f64);
    float.is_some_and(|float| float.to_string() == number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn text_with_another_spelling_is_not_canonical() {
        for text in [
            r#"{"a":1,"b":[{"a":"x\n"},{"a":"é\\\""}],"c":99.5,"d":-7,"e":null,"f":true}"#,
            "[]",
            "\"\"",
            "0",
            "[false,{}]",
        ] {
            assert!(is_canonical(text), "{text}");
        }
        for text in [
            r#"{"a": 1}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"b":{"a":1},"a":{"c":1},"a":2}"#,
            r#"["\u0041"]"#,
            r#"["\/"]"#,
            "1.0e3",
            "1.50",
            "-0",
            "12345678901234567890",
        ] {
            assert!(!is_canonical(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn canonical_text_is_what_a_serializer_writes(
            text in r#"(\{("[ab\\n]{0,2}":([0-9.e-]{1,4}|"x"|\[\]|\{"a":1\}|null)(,| ,)?){0,3}\}|\[([0-9.eE+-]{1,6},?){0,3}\])"#
        ) {
            if let Ok(value) = serde_json::from_str::<Value>(&text)
                && is_canonical(&text)
            {
                prop_assert_eq!(value.to_string(), text);
            }
        }
    }
}
