//! A known secret in another dress: JSON escapes, percent signs, base64.

use super::MASK;

/// A core of base64 shorter than this could be anything.
const SHORTEST_CORE: usize = 8;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// One secret with what its base64 forms have in common.
#[derive(Debug, Clone)]
pub(super) struct Secret {
    pub(super) plain: String,
    /// The characters of base64 that do not depend on what stands before and after, for each of the
    /// three ways to be aligned.
    cores: Vec<String>,
}

impl Secret {
    pub(super) fn new(plain: String) -> Self {
        let mut cores = Vec::new();
        for shift in 0..3 {
            let mut bytes = vec![0; shift];
            bytes.extend(plain.as_bytes());
            let bits = bytes.len() * 8;
            let text = encode_base64(&bytes);
            // Six bits a character: those that hold a bit of the padding in front, or of whatever
            // follows, are not ours.
            let first = (shift * 8).div_ceil(6);
            let core = &text[first..bits / 6];
            if core.len() >= SHORTEST_CORE {
                cores.push(core.to_owned());
                let for_urls = core.replace('+', "-").replace('/', "_");
                if for_urls != core {
                    cores.push(for_urls);
                }
            }
        }
        Self { plain, cores }
    }

    /// Whether it is in the text in any form.
    pub(super) fn is_in(&self, text: &str) -> bool {
        text.contains(self.plain.as_str())
            || self.cores.iter().any(|core| text.contains(core.as_str()))
            || (may_be_escaped(text)
                && (0..text.len()).any(|at| self.escaped_at(text.as_bytes(), at).is_some()))
    }

    /// The text without it.
    pub(super) fn mask(&self, text: &str) -> String {
        let mut text = text.replace(self.plain.as_str(), MASK);
        for core in &self.cores {
            while let Some(found) = text.find(core.as_str()) {
                // The neighbours belong to the same word: `Basic` credentials are one with the
                // user's name in front.
                let is_base64 = |byte: &u8| ALPHABET.contains(byte) || b"-_=".contains(byte);
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

    /// The end of the secret if it stands here with some of its characters escaped.
    fn escaped_at(&self, text: &[u8], start: usize) -> Option<usize> {
        let mut at = start;
        let mut buffer = [0; 4];
        let mut characters = self.plain.chars().peekable();
        let mut after_backslashes = false;
        while let Some(wanted) = characters.next() {
            if wanted == '\\' {
                // Backslashes are escaped by more of them, so a run of them stands for a run.
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

/// At least so many backslashes, or as many `%5C`.
fn backslashes(text: &[u8], at: usize, least: usize) -> Option<usize> {
    let plain = text[at..].iter().take_while(|byte| **byte == b'\\').count();
    if plain >= least {
        return Some(at + plain);
    }
    (0..least).try_fold(at, |at, _| percent(text, at, b"\\"))
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

/// `\"`, `\/`, `\u0061`, with as many backslashes as there were layers of JSON.
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

/// Without padding.
fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            out.push(char::from(
                ALPHABET[(bits >> (18 - 6 * place) & 63) as usize],
            ));
        }
    }
    out
}

/// Standard or URL alphabet, with or without padding.
pub(super) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let unpadded = text.len() - text.iter().rev().take_while(|byte| **byte == b'=').count();
    if unpadded == 0 || unpadded % 4 == 1 {
        return None;
    }
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::new());
    for byte in &text[..unpadded] {
        let byte = match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        };
        let value = ALPHABET.iter().position(|known| *known == byte)?;
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_standard_one() {
        assert_eq!(encode_base64(b"user:pass"), "dXNlcjpwYXNz");
        assert_eq!(encode_base64(b"user:pas"), "dXNlcjpwYXM");
        assert_eq!(decode_base64(b"dXNlcjpwYXM=").unwrap(), b"user:pas");
        assert_eq!(decode_base64(b"dXNlcjpwYXM").unwrap(), b"user:pas");
        assert_eq!(decode_base64(b"_-8").unwrap(), [0xff, 0xef]);
        assert_eq!(decode_base64(b"not base64!"), None);
        assert_eq!(decode_base64(b""), None);
    }
}
