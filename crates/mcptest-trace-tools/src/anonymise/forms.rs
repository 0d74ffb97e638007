//! Personal data that is known by its form.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::Kind;
use super::placeholders::Placeholders;

/// A pattern, what it finds, and a check that the pattern cannot express.
struct Form {
    kind: Kind,
    pattern: Regex,
    is_one: Check,
}

fn form(kind: Kind, pattern: &str, is_one: Check) -> Option<Form> {
    // A test compiles every pattern.
    let pattern = Regex::new(pattern).ok()?;
    Some(Form {
        kind,
        pattern,
        is_one,
    })
}

/// A check of a match.
type Check = fn(&str) -> bool;

/// The form of each kind; the value is the whole match, or the group `v`.
const FORMS: &[(Kind, &str, Check)] = &[
    (
        Kind::Email,
        r"(?i)\b[a-z0-9][a-z0-9._%+-]*@[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\.[a-z]{2,24}\b",
        |_| true,
    ),
    (
        Kind::Account,
        r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b",
        is_iban,
    ),
    (Kind::Card, r"\b[0-9](?:[ -]?[0-9]){12,18}\b", is_card),
    (Kind::NationalId, r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", |_| {
        true
    }),
    (Kind::Mac, r"(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b", |_| {
        true
    }),
    (Kind::Ipv4, r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b", is_ipv4),
    (
        Kind::Ipv6,
        r"(?i)(?:\b|::)[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}",
        is_ipv6,
    ),
    (
        Kind::Phone,
        r"\+[0-9](?:[ .()-]{0,2}[0-9]){6,14}\b|\(?\b[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}\b",
        |_| true,
    ),
    (
        Kind::User,
        r"(?:/home/|/Users/|(?i:[a-z]:\\+users\\+))(?P<v>[A-Za-z0-9._-]+)",
        is_person_folder,
    ),
];

static COMPILED: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let forms = FORMS.iter();
    forms
        .filter_map(|(kind, pattern, is_one)| form(*kind, pattern, *is_one))
        .collect()
});

/// Replaces everything in a string that has one of the forms.
pub(super) fn replace(text: &str, placeholders: &mut Placeholders) -> String {
    let mut text = Cow::Borrowed(text);
    for form in &*COMPILED {
        let replaced = form.pattern.replace_all(&text, |found: &Captures<'_>| {
            let (Some(all), Some(value)) = (found.get(0), found.name("v").or(found.get(0))) else {
                return String::new();
            };
            if !(form.is_one)(value.as_str()) {
                return all.as_str().to_owned();
            }
            let before = &all.as_str()[..value.start() - all.start()];
            let after = &all.as_str()[value.end() - all.start()..];
            let placeholder = placeholders.of(form.kind, value.as_str());
            format!("{before}{placeholder}{after}")
        });
        if let Cow::Owned(changed) = replaced {
            text = Cow::Owned(changed);
        }
    }
    text.into_owned()
}

/// The check digit of card numbers (Luhn).
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    // The first digit of cards in use; a number of zeros has a valid check digit too.
    matches!(digits.first(), Some(2..=6)) && sum.is_multiple_of(10)
}

/// The check digits of account numbers (ISO 13616: the rearranged number modulo 97 is 1).
fn is_iban(text: &str) -> bool {
    let compact: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    if !(15..=34).contains(&compact.len()) {
        return false;
    }
    let rearranged = compact[4..].iter().chain(&compact[..4]);
    let remainder = rearranged.fold(0u32, |rest, c| {
        let value = c.to_digit(36).unwrap_or(0);
        let shift = if value > 9 { 100 } else { 10 };
        (rest * shift + value) % 97
    });
    remainder == 1
}

fn is_ipv4(text: &str) -> bool {
    // Loopback and unspecified addresses say nothing about a person.
    text.parse::<Ipv4Addr>()
        .is_ok_and(|it| !it.is_loopback() && !it.is_unspecified())
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>()
        .is_ok_and(|it| !it.is_loopback() && !it.is_unspecified())
}

/// Folders of accounts that are nobody's.
fn is_person_folder(name: &str) -> bool {
    let name = name.to_lowercase();
    !matches!(
        name.as_str(),
        "root" | "runner" | "ubuntu" | "shared" | "public" | "default"
    ) && !name.starts_with("user_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), FORMS.len());
    }

    #[test]
    fn forms_are_found_with_their_checks() {
        for (text, expected) in [
            (
                "write to Mia.Li+x@mail.example.org.",
                "write to user1@example.com.",
            ),
            ("call +1 (415) 555-2671 now", "call +1-555-0100001 now"),
            ("call 415-555-2671 now", "call +1-555-0100001 now"),
            ("card 4111 1111 1111 1111", "card 0000 0000 0000 0001"),
            ("card 4111 1111 1111 1112", "card 4111 1111 1111 1112"),
            (
                "IBAN DE89 3704 0044 0532 0130 00.",
                "IBAN XX00EXAMPLE000001.",
            ),
            ("ssn 078-05-1120", "ssn 000-00-0001"),
            ("from 10.1.2.3 port 80", "from 198.18.0.1 port 80"),
            ("at 127.0.0.1, version 1.2.3", "at 127.0.0.1, version 1.2.3"),
            ("at 2001:db8:0:1::5 ok", "at 2001:db8::1 ok"),
            ("time 10:20:30", "time 10:20:30"),
            (
                "in /home/alice/x and C:\\Users\\bob\\y",
                "in /home/user_1/x and C:\\Users\\user_2\\y",
            ),
            (
                "order #W5744371 of 2024-05-16",
                "order #W5744371 of 2024-05-16",
            ),
        ] {
            assert_eq!(replace(text, &mut Placeholders::default()), expected);
        }
    }
}
