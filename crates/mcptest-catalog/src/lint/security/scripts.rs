//! Scripts and look-alike letters.

/// A script that has letters which look like Latin ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    Latin,
    Cyrillic,
    Greek,
    /// Armenian, Cherokee, Coptic, Lisu, Deseret.
    Rare,
    /// All other letters.
    Other,
}

/// The script of a letter; `None` for anything else.
pub(crate) fn script(letter: char) -> Option<Script> {
    if !letter.is_alphabetic() {
        return None;
    }
    Some(match u32::from(letter) {
        0x41..=0x5A | 0x61..=0x7A | 0xAA..=0x24F | 0x250..=0x2AF | 0x1E00..=0x1EFF => Script::Latin,
        0x400..=0x52F | 0x1C80..=0x1C8F | 0xA640..=0xA69F => Script::Cyrillic,
        0x370..=0x3FF | 0x1F00..=0x1FFF => Script::Greek,
        0x530..=0x58F
        | 0x13A0..=0x13FF
        | 0xAB70..=0xABBF
        | 0x2C80..=0x2CFF
        | 0xA4D0..=0xA4FF
        | 0x10400..=0x1044F => Script::Rare,
        _ => Script::Other,
    })
}

/// The Latin letter that a letter of another script looks like.
pub(crate) fn looks_like(letter: char) -> Option<char> {
    Some(match letter {
        'а' | 'α' | 'ɑ' => 'a',
        'в' => 'b',
        'с' | 'ϲ' | 'ⲥ' => 'c',
        'ԁ' | 'ɗ' => 'd',
        'е' | 'ё' | 'є' | 'ҽ' => 'e',
        'ɡ' | 'ց' => 'g',
        'һ' | 'հ' => 'h',
        'і' | 'ı' | 'ι' | 'ӏ' | 'ɩ' => 'i',
        'ј' | 'ϳ' => 'j',
        'к' | 'κ' => 'k',
        'ⅼ' => 'l',
        'м' => 'm',
        'п' | 'η' | 'ո' => 'n',
        'о' | 'ο' | 'օ' | 'ⲟ' => 'o',
        'р' | 'ρ' | 'ⲣ' => 'p',
        'ԛ' | 'զ' => 'q',
        'г' => 'r',
        'ѕ' | 'ꜱ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ѵ' | 'ν' => 'v',
        'ԝ' | 'ω' | 'ѡ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'ү' | 'γ' => 'y',
        'А' | 'Α' | 'Ꭺ' => 'A',
        'В' | 'Β' | 'Ᏼ' => 'B',
        'С' | 'Ϲ' | 'Ꮯ' => 'C',
        'Ꭰ' => 'D',
        'Е' | 'Ε' | 'Ꭼ' => 'E',
        'Н' | 'Η' | 'Ꮋ' => 'H',
        'І' | 'Ι' | 'Ӏ' => 'I',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' | 'Ꮇ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' | 'Օ' => 'O',
        'Р' | 'Ρ' | 'Ꮲ' => 'P',
        'Ѕ' | 'Տ' | 'Ꮪ' => 'S',
        'Т' | 'Τ' | 'Ꭲ' => 'T',
        'Ս' => 'U',
        'Ԝ' => 'W',
        'Х' | 'Χ' => 'X',
        'У' | 'Υ' | 'Ү' => 'Y',
        'Ζ' | 'Ꮓ' => 'Z',
        _ => return None,
    })
}

/// A name in the form in which look-alike names are equal. Names that differ in case or
/// separators only keep different forms.
pub(crate) fn skeleton(name: &str) -> String {
    name.chars()
        .map(|one| match looks_like(one).unwrap_or(one) {
            'I' | '1' | '|' => 'l',
            '0' => 'o',
            'O' => 'o',
            other => other,
        })
        .collect()
}

/// Returns true if a word mixes Latin letters with look-alikes of another script.
///
/// Units and symbols (`μs`, `Δt`, `λx`) and words of another script with a Latin abbreviation do
/// not count: the foreign letters must all look like Latin ones, beside two Latin letters or more.
pub(crate) fn is_mixed(word: &str) -> bool {
    let (mut latin, mut imitations, mut foreign) = (0, 0, 0);
    for letter in word.chars() {
        match script(letter) {
            Some(Script::Latin) => latin += 1,
            Some(Script::Greek) if !is_capital_or_plain_greek(letter) => foreign += 1,
            Some(Script::Cyrillic | Script::Greek | Script::Rare) => {
                if looks_like(letter).is_some() {
                    imitations += 1;
                } else {
                    foreign += 1;
                }
            }
            _ => {}
        }
    }
    imitations > 0 && foreign == 0 && latin >= 2
}

/// Greek letters that imitate Latin ones and are not common symbols.
fn is_capital_or_plain_greek(letter: char) -> bool {
    matches!(
        letter,
        'ο' | 'ι'
            | 'ν'
            | 'κ'
            | 'υ'
            | 'Α'
            | 'Β'
            | 'Ε'
            | 'Ζ'
            | 'Η'
            | 'Ι'
            | 'Κ'
            | 'Μ'
            | 'Ν'
            | 'Ο'
            | 'Ρ'
            | 'Τ'
            | 'Υ'
            | 'Χ'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_foreign_words_are_not_mixed() {
        for word in [
            "μs",
            "Δt",
            "λx",
            "привет",
            "αβγ",
            "USBшка",
            "naïve",
            "größe",
        ] {
            assert!(!is_mixed(word), "{word}");
        }
        for word in ["s\u{435}nd", "p\u{430}ypal", "c\u{3bf}py", "\u{405}end"] {
            assert!(is_mixed(word), "{word}");
        }
    }

    #[test]
    fn skeletons_keep_case_and_separators() {
        assert_eq!(skeleton("send_emai1"), skeleton("send_email"));
        assert_eq!(skeleton("s\u{435}nd"), skeleton("send"));
        assert_ne!(skeleton("getUser"), skeleton("getuser"));
        assert_ne!(skeleton("get_user"), skeleton("get-user"));
    }
}
