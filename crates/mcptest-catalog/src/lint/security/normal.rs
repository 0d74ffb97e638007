//! Text as a model reads it: in one normal form, sentence by sentence.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use unicode_normalization::UnicodeNormalization as _;

use super::invisible::is_hidden;
use super::scripts;

/// A sentence in normal form.
#[derive(Debug, Clone)]
pub(crate) struct Sentence {
    /// As written, for quotes.
    pub written: String,
    /// In lowercase, with the same positions.
    pub lower: String,
    /// True for the first sentence of a description, which states what a tool does.
    pub is_first: bool,
}

/// A string in NFKC, without characters that nobody sees; tag characters and character references
/// are decoded, quotes and spaces are plain ones.
pub(crate) fn normal(text: &str) -> String {
    let text = decoded(text);
    let visible = text.chars().filter_map(|one| match u32::from(one) {
        tag @ 0xE0020..=0xE007E => char::from_u32(tag - 0xE0000),
        _ if is_hidden(one) => None,
        0x200E | 0x200F | 0x202A..=0x202E | 0x2066..=0x2069 | 0x61C => None,
        _ => Some(one),
    });
    visible
        .nfkc()
        .map(|one| match one {
            '‘' | '’' | '‛' | 'ʼ' | '′' => '\'',
            '“' | '”' | '„' | '″' => '"',
            '‐' | '‑' | '‒' => '-',
            '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
            '\t' => ' ',
            one if one.is_whitespace() && one != '\n' => ' ',
            one => one,
        })
        .collect()
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants of this file"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

static REFERENCES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));|&(lt|gt|amp|quot|apos|nbsp);|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})",
    )
});
static PERCENTS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:[^\s%]{0,12}%[2-7][0-9a-fA-F]){4,}[^\s%]*"));

/// Decodes references to characters: `&#105;`, `&lt;`, `\u0069`, `%69`.
fn decoded(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if text.contains(['&', '\\']) {
        let done = REFERENCES.replace_all(&text, |found: &Captures<'_>| {
            let group = |index: usize| found.get(index).map(|group| group.as_str());
            let code = group(1)
                .or_else(|| group(4))
                .or_else(|| group(5))
                .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                .or_else(|| group(2)?.parse().ok());
            let one = match group(3) {
                Some("lt") => Some('<'),
                Some("gt") => Some('>'),
                Some("amp") => Some('&'),
                Some("quot") => Some('"'),
                Some("apos") => Some('\''),
                Some(_) => Some(' '),
                None => code.and_then(char::from_u32),
            };
            one.map_or_else(|| found[0].to_owned(), |one| one.to_string())
        });
        text = Cow::Owned(done.into_owned());
    }
    if text.contains('%') {
        let done = PERCENTS.replace_all(&text, |found: &Captures<'_>| {
            let written = &found[0];
            let mut bytes = Vec::with_capacity(written.len());
            let mut rest = written.as_bytes();
            while let [first, tail @ ..] = rest {
                let escaped = tail
                    .get(..2)
                    .filter(|_| *first == b'%')
                    .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
                match escaped {
                    Some(byte) => {
                        bytes.push(byte);
                        rest = &tail[2..];
                    }
                    None => {
                        bytes.push(*first);
                        rest = tail;
                    }
                }
            }
            String::from_utf8(bytes).unwrap_or_else(|_| written.to_owned())
        });
        text = Cow::Owned(done.into_owned());
    }
    text
}

/// Lowercase with the same positions: a letter whose lowercase form has another length is kept.
fn lowercase(text: &str) -> String {
    text.chars()
        .map(|one| {
            let mut lower = one.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(small), None) if small.len_utf8() == one.len_utf8() => small,
                _ => one,
            }
        })
        .collect()
}

/// The sentences of a string in normal form. A sentence ends at a full stop, at an empty line, and
/// before the next entry of a list.
pub(crate) fn sentences(text: &str) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = Vec::new();
    let mut current = String::new();
    let mut end = |current: &mut String| {
        let written = current.trim();
        if !written.is_empty() {
            sentences.push(Sentence {
                written: written.to_owned(),
                lower: lowercase(written),
                is_first: sentences.is_empty(),
            });
        }
        current.clear();
    };
    for line in text.split('\n') {
        let line = line.trim();
        let begins = line.is_empty()
            || line.starts_with(['-', '*', '#', '<', '[', '•'])
            || line.split_once(['.', ')']).is_some_and(|(number, _)| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            });
        if begins {
            end(&mut current);
        } else if !current.is_empty() {
            current.push(' ');
        }
        let mut characters = line.chars().peekable();
        while let Some(one) = characters.next() {
            current.push(one);
            let stops = match one {
                '.' | '!' | '?' => {
                    characters.peek().is_some_and(|next| *next == ' ') && !is_abbreviation(&current)
                }
                '。' | '！' | '？' => true,
                _ => false,
            };
            if stops {
                end(&mut current);
            }
        }
    }
    end(&mut current);
    sentences
}

fn is_abbreviation(text: &str) -> bool {
    let word = text.rsplit(' ').next().unwrap_or_default();
    let word = word
        .trim_start_matches(['(', '"', '\''])
        .to_ascii_lowercase();
    matches!(
        word.as_str(),
        "e.g." | "i.e." | "eg." | "ie." | "etc." | "vs." | "cf." | "incl." | "approx." | "no."
    )
}

static SPACED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?-u:\b)[A-Za-z](?:[ ._*-][A-Za-z](?-u:\b)){2,}"));
static DOTTED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?-u:\b)[A-Za-z']+(?:[._*/|~-][A-Za-z']+){3,}(?-u:\b)"));
static LEET: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"[A-Za-z0134578@$]*(?:[A-Za-z][0134578@$]|[0134578@$][A-Za-z])[A-Za-z0134578@$]*")
});

/// The text with disguises undone: letters of other scripts that look like Latin ones, digits for
/// letters, letters with a space between each, dots between words. `None` if there are none.
pub(crate) fn undisguised(text: &str) -> Option<String> {
    let mut done = Cow::Borrowed(text);
    if text
        .chars()
        .any(|one| !one.is_ascii() && scripts::looks_like(one).is_some())
    {
        done = text
            .chars()
            .filter(|one| !matches!(u32::from(*one), 0x300..=0x36F))
            .map(|one| scripts::looks_like(one).unwrap_or(one))
            .collect::<String>()
            .into();
    } else if text
        .chars()
        .any(|one| matches!(u32::from(one), 0x300..=0x36F))
    {
        done = text
            .chars()
            .filter(|one| !matches!(u32::from(*one), 0x300..=0x36F))
            .collect::<String>()
            .into();
    }
    let joined = SPACED.replace_all(&done, |found: &Captures<'_>| {
        found[0].replace([' ', '.', '_', '*', '-'], "")
    });
    let parted = DOTTED.replace_all(&joined, |found: &Captures<'_>| {
        found[0].replace(['.', '_', '*', '/', '|', '~', '-'], " ")
    });
    let spelled = LEET.replace_all(&parted, |found: &Captures<'_>| {
        let word = &found[0];
        let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
        if letters < 2 || word.len() > 20 {
            return word.to_owned();
        }
        word.replace("11", "ll")
            .chars()
            .map(|one| match one {
                '0' => 'o',
                '1' => 'i',
                '3' => 'e',
                '4' | '@' => 'a',
                '5' | '$' => 's',
                '7' => 't',
                '8' => 'b',
                other => other,
            })
            .collect()
    });
    (spelled != text).then(|| spelled.into_owned())
}

/// The words of an identifier, in lowercase: `getUser-name` is `get user name`.
pub(crate) fn words_of_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut was_small = false;
    for one in name.chars() {
        if one.is_alphanumeric() {
            if one.is_uppercase() && was_small {
                out.push(' ');
            }
            was_small = one.is_lowercase() || one.is_numeric();
            out.extend(one.to_lowercase());
        } else {
            if !out.ends_with(' ') {
                out.push(' ');
            }
            was_small = false;
        }
    }
    out.trim().to_owned()
}

/// Applies ROT13.
pub(crate) fn rot13(text: &str) -> String {
    text.chars()
        .map(|one| match one {
            'a'..='m' | 'A'..='M' => char::from(one as u8 + 13),
            'n'..='z' | 'N'..='Z' => char::from(one as u8 - 13),
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        sentences(text).into_iter().map(|one| one.written).collect()
    }

    #[test]
    fn sentences_cross_lines_but_not_paragraphs() {
        assert_eq!(
            written("Read the\nfile at v1.2, e.g. this. Then stop!\n\nArgs:\n- a: x\n- b"),
            [
                "Read the file at v1.2, e.g. this.",
                "Then stop!",
                "Args:",
                "- a: x",
                "- b"
            ]
        );
        assert_eq!(written("读取。发送。"), ["读取。", "发送。"]);
    }

    #[test]
    fn positions_of_lowercase_are_those_of_the_text() {
        for text in ["İSTANBUL ẞ A", "ÄÖÜ ΣΑΣ", "Ⱥ"] {
            for sentence in sentences(text) {
                assert_eq!(sentence.written.len(), sentence.lower.len());
            }
        }
    }

    #[test]
    fn references_and_forms_are_decoded() {
        assert_eq!(normal("&#100;o &lt;b&gt; \\u0041 ＡＢ 𝐀"), "do <b> A AB A");
        assert_eq!(normal("%64%6f%20%6e%6f%74"), "do not");
        assert_eq!(normal("50% off, 100%25"), "50% off, 100%25");
        assert_eq!(normal("te\u{200b}ll"), "tell");
    }

    #[test]
    fn disguises_are_undone() {
        for (text, wanted) in [
            ("1gn0r3 pr3v10us", "ignore previous"),
            ("i g n o r e  a l l", "ignore  all"),
            ("do.not.tell.the.user", "do not tell the user"),
            ("s\u{435}nd", "send"),
        ] {
            assert_eq!(undisguised(text).as_deref(), Some(wanted));
        }
        assert_eq!(undisguised("plain words"), None);
        assert_eq!(words_of_name("getUser-name_2"), "get user name 2");
        assert_eq!(rot13("Uryyb"), "Hello");
    }
}
