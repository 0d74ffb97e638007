//! Characters that nobody sees, and what they spell.

use super::scripts::{self, Script};

/// A character that is not shown, at its position in bytes.
pub(crate) fn invisible(text: &str) -> Vec<(usize, char)> {
    if text.is_ascii() {
        return Vec::new();
    }
    let all: Vec<(usize, char)> = text.char_indices().collect();
    let mut found = Vec::new();
    let mut in_flag = false;
    for (index, &(at, one)) in all.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| all[index].1);
        let after = all.get(index + 1).map(|pair| pair.1);
        if is_tag(one) {
            // A flag of a region: a black flag, tags, and the cancel tag.
            in_flag |= before == Some('\u{1F3F4}');
            if !in_flag {
                found.push((at, one));
            }
            continue;
        }
        in_flag = false;
        if is_hidden(one) && !is_needed(one, before, after) {
            found.push((at, one));
        }
    }
    found
}

/// Returns true for characters that have no shape of their own.
pub(crate) fn is_hidden(one: char) -> bool {
    is_tag(one)
        || is_selector(one)
        || matches!(u32::from(one),
            0xAD | 0x34F | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200D
            | 0x2060..=0x2065 | 0x206A..=0x206F | 0x2800 | 0x3164 | 0xFEFF | 0xFFA0
            | 0xFFF9..=0xFFFB | 0x1D173..=0x1D17A)
}

fn is_tag(one: char) -> bool {
    matches!(u32::from(one), 0xE0000..=0xE007F)
}

fn is_selector(one: char) -> bool {
    matches!(u32::from(one), 0xFE00..=0xFE0F | 0xE0100..=0xE01EF)
}

/// Returns true where a script or an emoji needs the character.
fn is_needed(one: char, before: Option<char>, after: Option<char>) -> bool {
    let joins = |one: Option<char>| one.is_some_and(|one| is_pictorial(one) || needs_joiners(one));
    match one {
        // A byte order mark.
        '\u{FEFF}' => before.is_none(),
        '\u{200B}' => before.is_some_and(needs_joiners) && after.is_some_and(needs_joiners),
        '\u{200C}' | '\u{200D}' => joins(before) && joins(after),
        '\u{FE0E}' | '\u{FE0F}' => before.is_some_and(|before| {
            is_pictorial(before) || matches!(before, '0'..='9' | '#' | '*')
        }),
        _ if is_selector(one) => {
            before.is_some_and(|before| matches!(u32::from(before), 0x2E80..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF | 0x1800..=0x18AF))
        }
        '\u{180B}'..='\u{180F}' | '\u{2800}' => {
            before.is_some_and(|before| matches!(u32::from(before), 0x1800..=0x18AF | 0x2800..=0x28FF))
                || after.is_some_and(|after| matches!(u32::from(after), 0x1800..=0x18AF | 0x2801..=0x28FF))
        }
        '\u{115F}' | '\u{1160}' => {
            before.is_some_and(|before| matches!(u32::from(before), 0x1100..=0x11FF))
                || after.is_some_and(|after| matches!(u32::from(after), 0x1161..=0x11FF))
        }
        _ => false,
    }
}

/// Returns true for symbols and parts of emoji.
fn is_pictorial(one: char) -> bool {
    matches!(u32::from(one),
        0xA9 | 0xAE | 0x203C | 0x2049 | 0x20E3 | 0x2122 | 0x2139 | 0x2190..=0x2BFF | 0x3030
        | 0x303D | 0x3297 | 0x3299 | 0xFE0E | 0xFE0F | 0x1F000..=0x1FAFF | 0xE007F)
}

/// Returns true for letters of scripts in which joiners and breaks are spelling.
fn needs_joiners(one: char) -> bool {
    matches!(u32::from(one),
        0x600..=0x8FF | 0x900..=0x109F | 0x1780..=0x18AF | 0x1900..=0x1AAF | 0xA840..=0xAAFF
        | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC | 0x11000..=0x11FFF)
}

/// The string that hidden characters spell: tag characters as ASCII, selectors as bytes.
pub(crate) fn spelled(text: &str) -> Option<String> {
    let tags: String = text
        .chars()
        .filter(|one| is_tag(*one))
        .filter_map(|one| char::from_u32(u32::from(one) - 0xE0000))
        .filter(|one| !one.is_control())
        .collect();
    if tags.trim().len() > 1 {
        return Some(tags);
    }
    let bytes: Vec<u8> = text
        .chars()
        .filter_map(|one| {
            let byte = match u32::from(one) {
                code @ 0xFE00..=0xFE0F => code - 0xFE00,
                code @ 0xE0100..=0xE01EF => code - 0xE0100 + 16,
                _ => return None,
            };
            u8::try_from(byte).ok()
        })
        .collect();
    let spelled = String::from_utf8(bytes).ok()?;
    let is_readable = spelled.len() > 3 && !spelled.contains(char::is_control);
    is_readable.then_some(spelled)
}

/// Returns true for a zero-width character that splits no word.
pub(crate) fn is_between_words(text: &str, at: usize, one: char) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + one.len_utf8()..].chars().next();
    let is_letter = |one: Option<char>| one.is_some_and(char::is_alphanumeric);
    matches!(
        one,
        '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}' | '\u{AD}'
    ) && !(is_letter(before) && is_letter(after))
}

/// Returns true for a control that changes what is shown: direction, escape sequences, and
/// characters that move back.
pub(crate) fn changes_display(one: char) -> bool {
    is_direction(one)
        || matches!(
            one,
            '\u{1b}' | '\u{9b}' | '\u{8}' | '\u{7f}' | '\u{90}' | '\u{9d}'
        )
}

/// Controls of direction and of terminals.
pub(crate) fn controls(text: &str) -> Vec<char> {
    let mut found: Vec<char> = text
        .chars()
        .filter(|one| {
            (one.is_control() && !matches!(one, '\n' | '\r' | '\t' | '\u{b}' | '\u{c}'))
                || is_direction(*one)
        })
        .collect();
    if found.iter().copied().any(is_direction) && text.chars().any(is_right_to_left) {
        // Text that runs from right to left needs marks and isolates; overrides it does not.
        found.retain(|one| !is_direction(*one) || matches!(one, '\u{202D}' | '\u{202E}'));
    }
    found
}

fn is_direction(one: char) -> bool {
    matches!(one, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' | '\u{61C}')
}

fn is_right_to_left(one: char) -> bool {
    scripts::script(one) == Some(Script::Other)
        && matches!(u32::from(one), 0x590..=0x8FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFC)
}

/// Code points for a message: `U+200B, U+2060`.
pub(crate) fn code_points(found: impl IntoIterator<Item = char>) -> String {
    let mut seen: Vec<char> = Vec::new();
    let mut more = false;
    for one in found {
        if seen.contains(&one) {
            continue;
        }
        if seen.len() == 4 {
            more = true;
            break;
        }
        seen.push(one);
    }
    let mut names: Vec<String> = seen
        .into_iter()
        .map(|one| format!("U+{:04X}", u32::from(one)))
        .collect();
    if more {
        names.push("…".to_owned());
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_flags_and_scripts_keep_their_joiners() {
        for text in [
            "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} 1\u{fe0f}\u{20e3} ☎\u{fe0e}",
            "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
            "می\u{200c}شود",
            "क्\u{200d}ष",
            "\u{feff}A file with a byte order mark",
            "ไทย\u{200b}ภาษา",
            "辻\u{E0100}",
        ] {
            assert_eq!(invisible(text), [], "{text:?}");
        }
    }

    #[test]
    fn hidden_characters_are_found_and_read() {
        let tags: String = "leak it"
            .chars()
            .filter_map(|one| char::from_u32(0xE0000 + u32::from(one)))
            .collect();
        assert_eq!(invisible(&tags).len(), 7);
        assert_eq!(spelled(&tags).as_deref(), Some("leak it"));
        for text in [
            "a\u{200b}b",
            "a\u{ad}b",
            "a\u{feff}",
            "x\u{fe0f}",
            "a\u{3164}",
            "a\u{200d}b",
        ] {
            assert_eq!(invisible(text).len(), 1, "{text:?}");
        }
        let bytes: String = "obey"
            .bytes()
            .filter_map(|byte| char::from_u32(0xE0100 + u32::from(byte) - 16))
            .collect();
        assert_eq!(spelled(&format!("x{bytes}")).as_deref(), Some("obey"));
    }

    #[test]
    fn directions_are_honest_in_text_that_runs_from_right_to_left() {
        assert_eq!(controls("\u{200f}שלום\u{2066}abc\u{2069}"), []);
        assert_eq!(controls("שלום\u{202e}").len(), 1);
        assert_eq!(controls("abc\u{202e}").len(), 1);
        assert_eq!(controls("a\tb\r\n").len(), 0);
        assert_eq!(controls("\u{1b}[31m\u{9b}").len(), 2);
    }
}
