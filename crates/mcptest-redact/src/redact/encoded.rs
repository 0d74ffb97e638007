//! Known secrets in encoded form: JSON escapes, percent-encoding, base64.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::MASK;

/// The minimum length of a base64 core: a shorter one would match unrelated text.
const MIN_CORE: usize = 8;

/// The minimum length of the beginning of a truncated secret: a shorter one says nothing.
const MIN_BEGINNING: usize = 5;

/// Unpadded base64 that ignores trailing bits, as lenient servers write it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// One secret, with the parts that all its base64 forms share.
#[derive(Debug, Clone)]
pub(super) struct Secret {
    pub(super) plain: String,
    /// The base64 characters that do not depend on the neighbouring bytes, for each of the three
    /// alignments. (No library searches for a substring of encoded data, so this part is ours.)
    cores: Vec<String>,
}

impl Secret {
    pub(super) fn new(plain: String) -> Self {
        let mut cores = Vec::new();
        for shift in 0..3 {
            let mut bytes = vec![0; shift];
            bytes.extend(plain.as_bytes());
            let bits = bytes.len() * 8;
            let text = BASE64.encode(&bytes);
            // Each character holds six bits. Characters that also hold bits of the bytes before or
            // after are not part of the core.
            let first = (shift * 8).div_ceil(6);
            let core = &text[first..bits / 6];
            if core.len() >= MIN_CORE {
                cores.push(core.to_owned());
                let url_safe = core.replace('+', "-").replace('/', "_");
                if url_safe != core {
                    cores.push(url_safe);
                }
            }
        }
        Self { plain, cores }
    }

    /// Returns true if the text contains the secret in any form.
    pub(super) fn is_in(&self, text: &str) -> bool {
        text.contains(self.plain.as_str())
            || self.truncated_in(text).is_some()
            || self.cores.iter().any(|core| text.contains(core.as_str()))
            || (may_be_escaped(text)
                && (0..text.len()).any(|at| self.escaped_at(text.as_bytes(), at).is_some()))
    }

    /// The beginning of the secret where a text was truncated in the middle of it, before `…`.
    fn truncated_in(&self, text: &str) -> Option<(usize, usize)> {
        text.match_indices('…').find_map(|(end, _)| {
            let before = &text[..end];
            // An escape has at most twelve bytes for a byte of the secret (`\\u0061`, twice).
            let window = end.saturating_sub(12 * self.plain.len());
            let start = (window..end)
                .find(|at| {
                    let forms = [br"\".as_slice(), br"\\"];
                    let begins = |own| self.begins_at(before.as_bytes(), *at, own);
                    before.is_char_boundary(*at) && forms.into_iter().any(begins)
                })
                .or_else(|| self.truncated_core(before));
            Some((start?, end))
        })
    }

    /// Returns true if the text from a place to its end is the beginning of the secret, with or
    /// without escapes. The last escape may be incomplete. A backslash of the secret is written as
    /// `own`, or escaped in another way.
    fn begins_at(&self, text: &[u8], start: usize, own: &[u8]) -> bool {
        let mut at = start;
        let mut buffer = [0; 4];
        for (index, wanted) in self.plain.chars().enumerate() {
            let wanted = wanted.encode_utf8(&mut buffer).as_bytes();
            let written = if wanted == br"\" { own } else { wanted };
            let next = backslash(text, at, wanted)
                .or_else(|| literal(text, at, written))
                .or_else(|| percent(text, at, wanted));
            match next {
                Some(next) if at < text.len() => at = next,
                _ => {
                    let rest = &text[at..];
                    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || b"%\\u".contains(byte);
                    return index >= MIN_BEGINNING
                        && rest.len() < 12
                        && rest.first().is_none_or(|byte| b"%\\".contains(byte))
                        && rest.iter().all(is_part);
                }
            }
        }
        // All of it is there, which is not a truncated secret.
        false
    }

    /// The start of base64 at the end of a string that is the beginning of the secret.
    fn truncated_core(&self, text: &str) -> Option<usize> {
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        let length = text
            .bytes()
            .rev()
            .take_while(|byte| is_base64(byte))
            .count();
        let run = &text[text.len() - length..];
        let last = run.len().checked_sub(MIN_CORE)?;
        // The core begins anywhere in the run: the user name of `Basic` credentials is before it.
        let longest = self.cores.iter().map(String::len).max()?;
        let found = (last.saturating_sub(longest)..=last)
            .any(|at| self.cores.iter().any(|core| core.starts_with(&run[at..])));
        found.then_some(text.len() - length)
    }

    /// Masks the secret in a string.
    pub(super) fn mask(&self, text: &str) -> String {
        let mut text = text.replace(self.plain.as_str(), MASK);
        while let Some((start, end)) = self.truncated_in(&text) {
            text.replace_range(start..end, MASK);
        }
        for core in &self.cores {
            while let Some(found) = text.find(core.as_str()) {
                // The neighbours belong to the same word: `Basic` credentials include the user
                // name.
                let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
                let bytes = text.as_bytes();
                let start = found
                    - bytes[..found]
                        .iter()
                        .rev()
                        .take_while(|byte| is_base64(byte))
                        .count();
                let end = found
                    + bytes[found..]
                        .iter()
                        .take_while(|byte| is_base64(byte))
                        .count();
                text.replace_range(start..end, MASK);
            }
        }
        if !may_be_escaped(&text) {
            return text;
        }
        let (mut out, mut done, mut at) = (String::new(), 0, 0);
        while at < text.len() {
            match self.escaped_at(text.as_bytes(), at) {
                Some(end) => {
                    out.push_str(&text[done..at]);
                    out.push_str(MASK);
                    (done, at) = (end, end);
                }
                None => at += 1,
            }
        }
        out.push_str(&text[done..]);
        out
    }

    /// The end of the secret, if it is here with some of its characters escaped.
    fn escaped_at(&self, text: &[u8], start: usize) -> Option<usize> {
        // `\u005c` is an escaped backslash, or a backslash of the secret before its `u005c`.
        let mut forms = [backslash_run, escaped_backslashes].into_iter();
        forms.find_map(|backslashes| self.escaped_with(backslashes, text, start))
    }

    /// Like [`Self::escaped_at`], with backslashes in one form.
    fn escaped_with(
        &self,
        backslashes: fn(&[u8], usize, usize) -> Option<usize>,
        text: &[u8],
        start: usize,
    ) -> Option<usize> {
        let mut at = start;
        let mut buffer = [0; 4];
        let mut characters = self.plain.chars().peekable();
        let mut after_backslashes = false;
        while let Some(wanted) = characters.next() {
            if wanted == '\\' {
                // Backslashes are escaped by more backslashes, so a run of them matches a run.
                let mut own = 1;
                while characters.next_if_eq(&'\\').is_some() {
                    own += 1;
                }
                at = backslashes(text, at, own)?;
                after_backslashes = true;
                continue;
            }
            let wanted = wanted.encode_utf8(&mut buffer).as_bytes();
            at = literal(text, at, wanted)
                .or_else(|| percent(text, at, wanted))
                .or_else(|| backslash(text, at, wanted))
                // The last of a run of backslashes may begin the escape of the next character.
                .or_else(|| {
                    after_backslashes.then(|| backslash(text, at.checked_sub(1)?, wanted))?
                })?;
            after_backslashes = false;
        }
        Some(at)
    }
}

fn may_be_escaped(text: &str) -> bool {
    text.contains('%') || text.contains('\\')
}

fn literal(text: &[u8], at: usize, wanted: &[u8]) -> Option<usize> {
    text[at..].starts_with(wanted).then_some(at + wanted.len())
}

/// At least this number of backslashes, or the same number of `%5C`.
fn backslash_run(text: &[u8], at: usize, min: usize) -> Option<usize> {
    let plain = text[at..].iter().take_while(|byte| **byte == b'\\').count();
    if plain >= min {
        return Some(at + plain);
    }
    (0..min).try_fold(at, |at, _| percent(text, at, b"\\"))
}

/// `\u005c` for each of this number of backslashes.
fn escaped_backslashes(text: &[u8], at: usize, number: usize) -> Option<usize> {
    (0..number).try_fold(at, |at, _| backslash(text, at, b"\\"))
}

/// `%XX` for each byte.
fn percent(text: &[u8], mut at: usize, wanted: &[u8]) -> Option<usize> {
    for byte in wanted {
        let hex = text[at..].strip_prefix(b"%")?.get(..2)?;
        let value = u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
        (value == *byte).then_some(())?;
        at += 3;
    }
    Some(at)
}

/// `\"`, `\/`, `\u0061`, with one backslash or more for each layer of JSON.
fn backslash(text: &[u8], at: usize, wanted: &[u8]) -> Option<usize> {
    let slashes = text[at..].iter().take_while(|byte| **byte == b'\\').count();
    if slashes == 0 {
        return None;
    }
    let rest = &text[at + slashes..];
    let end = at + slashes;
    if rest.starts_with(wanted) && !wanted[0].is_ascii_alphanumeric() {
        return Some(end + wanted.len());
    }
    let short = match wanted {
        b"\n" => b'n',
        b"\r" => b'r',
        b"\t" => b't',
        _ => 0,
    };
    if short != 0 && rest.first() == Some(&short) {
        return Some(end + 1);
    }
    let character = std::str::from_utf8(wanted).ok()?.chars().next()?;
    let mut units = [0; 2];
    let mut here = end;
    for (index, unit) in character.encode_utf16(&mut units).iter().enumerate() {
        if index > 0 {
            here += text[here..]
                .iter()
                .take_while(|byte| **byte == b'\\')
                .count();
        }
        let hex = text[here..].strip_prefix(b"u")?.get(..4)?;
        let value = u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
        (value == *unit).then_some(())?;
        here += 5;
    }
    Some(here)
}

/// Decodes base64 in the standard or URL alphabet, with or without padding.
pub(super) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let standard: Vec<u8> = text[..text.len() - padding]
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .collect();
    let decoded = BASE64.decode(standard).ok();
    decoded.filter(|decoded| !decoded.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_alphabets_are_decoded_with_and_without_padding() {
        assert_eq!(BASE64.encode(b"user:pass"), "dXNlcjpwYXNz");
        assert_eq!(BASE64.encode(b"user:pas"), "dXNlcjpwYXM");
        assert_eq!(decode_base64(b"dXNlcjpwYXM=").unwrap(), b"user:pas");
        assert_eq!(decode_base64(b"dXNlcjpwYXM").unwrap(), b"user:pas");
        assert_eq!(decode_base64(b"_-8").unwrap(), [0xff, 0xef]);
        assert_eq!(decode_base64(b"not base64!"), None);
        assert_eq!(decode_base64(b""), None);
    }
}
