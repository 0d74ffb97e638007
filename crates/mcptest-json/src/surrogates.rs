//! Escapes of JSON that are half of a character.
//!
//! Programs in JavaScript and Python write half of a surrogate pair as `\ud83d`, such as when they
//! cut a string in the middle of an emoji. The grammar of JSON allows it, and Unicode has no such
//! character. Every such escape becomes `\ufffd`, the replacement character, which has the same
//! length: positions in the text stay the same.

use std::borrow::Cow;

use memchr::memmem;

const REPLACEMENT: &[u8] = b"fffd";

/// The JSON text without halves of characters.
#[must_use]
pub fn mended(json: &[u8]) -> Cow<'_, [u8]> {
    let mut text = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(half) = next_half(json, &mut at) {
        text.to_mut()[half..half + 4].copy_from_slice(REPLACEMENT);
    }
    text
}

/// The same for a string.
#[must_use]
pub fn mended_text(json: &str) -> Cow<'_, str> {
    match mended(json.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(json),
        // Digits became digits.
        Cow::Owned(text) => Cow::Owned(String::from_utf8(text).unwrap_or_default()),
    }
}

/// Replaces the halves in place.
pub fn mend(json: &mut [u8]) {
    let mut at = 0;
    while let Some(half) = next_half(json, &mut at) {
        json[half..half + 4].copy_from_slice(REPLACEMENT);
    }
}

/// The place of the digits of the next escape without its other half, from `at` on.
fn next_half(json: &[u8], at: &mut usize) -> Option<usize> {
    loop {
        let found = memmem::find(json.get(*at..)?, b"\\u")?;
        let escape = *at + found;
        let digits = escape + 2;
        *at = digits;
        let Some(code) = unit(json, digits).filter(|_| !is_escaped(json, escape)) else {
            continue;
        };
        match code {
            0xd800..=0xdbff if low_follows(json, digits + 4) => *at = digits + 10,
            0xd800..=0xdfff => return Some(digits),
            _ => {}
        }
    }
}

fn low_follows(json: &[u8], at: usize) -> bool {
    json.get(at..).is_some_and(|rest| rest.starts_with(b"\\u"))
        && unit(json, at + 2).is_some_and(|code| (0xdc00..=0xdfff).contains(&code))
}

/// Four hexadecimal digits.
fn unit(json: &[u8], at: usize) -> Option<u32> {
    let digits = json.get(at..at + 4)?;
    digits.iter().try_fold(0, |code, digit| {
        Some(code * 16 + char::from(*digit).to_digit(16)?)
    })
}

/// Returns true if the backslash at this place belongs to the one before it.
fn is_escaped(json: &[u8], at: usize) -> bool {
    let before = json[..at].iter().rev();
    before.take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn read(json: &str) -> String {
        serde_json::from_str(&mended_text(json)).unwrap()
    }

    #[test]
    fn halves_are_replaced_and_pairs_are_kept() {
        for (json, text) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\uDE00b""#, "\u{fffd}b"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\\ud83d""#, r"\ud83d"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(read(json), text, "{json}");
        }
    }

    #[test]
    fn unknown_escapes_are_kept() {
        for json in [r#""\ud8"#, r"\u", r#""\ud8zz""#, "", r#"{"a":"é😀"}"#] {
            assert!(
                matches!(mended(json.as_bytes()), Cow::Borrowed(_)),
                "{json}"
            );
        }
    }

    proptest! {
        #[test]
        fn everything_that_python_writes_can_be_read(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("\\ud83d"), Just("\\ude00"), Just("\\\\"), Just("\\\""), Just("u"), Just("d83d"),
                    Just("\\u0041"), Just("é"),
                ],
                0..12,
            ),
        ) {
            let json = format!("[\"{}\"]", parts.concat());
            let mut in_place = json.clone().into_bytes();
            mend(&mut in_place);
            let mended = mended(json.as_bytes());
            prop_assert_eq!(&in_place, mended.as_ref());
            prop_assert_eq!(mended.len(), json.len());
            prop_assert!(serde_json::from_slice::<Value>(&mended).is_ok());
            // What serde_json reads, it reads as before.
            if let Ok(value) = serde_json::from_str::<Value>(&json) {
                prop_assert_eq!(serde_json::from_slice::<Value>(&mended).unwrap(), value);
            }
        }
    }
}
