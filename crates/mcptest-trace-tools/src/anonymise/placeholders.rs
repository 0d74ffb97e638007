//! Placeholders: one for each value, with the form of its kind.

use std::collections::HashMap;

/// A kind of personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An e-mail address.
    Email,
    /// A phone number.
    Phone,
    /// A full name.
    Name,
    /// A first name.
    FirstName,
    /// A last name.
    LastName,
    /// A street address.
    Address,
    /// A postal code.
    PostalCode,
    /// A date of birth.
    BirthDate,
    /// The id or login of a person.
    User,
    /// A number of a payment card.
    Card,
    /// A bank account (IBAN).
    Account,
    /// A social security or passport number.
    NationalId,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A MAC address.
    Mac,
    /// The value of a key that the user named.
    Other,
}

impl Kind {
    /// A number of values of this kind, for people.
    #[must_use]
    pub fn counted(self, count: usize) -> String {
        let (one, many) = match self {
            Self::Email => ("e-mail address", "e-mail addresses"),
            Self::Phone => ("phone number", "phone numbers"),
            Self::Name => ("name", "names"),
            Self::FirstName => ("first name", "first names"),
            Self::LastName => ("last name", "last names"),
            Self::Address => ("street address", "street addresses"),
            Self::PostalCode => ("postal code", "postal codes"),
            Self::BirthDate => ("date of birth", "dates of birth"),
            Self::User => ("user id", "user ids"),
            Self::Card => ("card number", "card numbers"),
            Self::Account => ("account number", "account numbers"),
            Self::NationalId => ("national id", "national ids"),
            Self::Ipv4 => ("IPv4 address", "IPv4 addresses"),
            Self::Ipv6 => ("IPv6 address", "IPv6 addresses"),
            Self::Mac => ("MAC address", "MAC addresses"),
            Self::Other => ("value of a named key", "values of named keys"),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }

    /// Returns true if a value that a key gave away is replaced in other texts too. Short values
    /// and small numbers would match what is not meant.
    pub(super) fn is_searched_for(self, value: &str) -> bool {
        let length = value.chars().count();
        match self {
            Self::PostalCode => length >= 5,
            Self::BirthDate => length >= 8,
            _ => length >= 3 && !value.chars().all(|c| c.is_ascii_digit() && length < 5),
        }
    }

    fn placeholder(self, number: u64, original: &str) -> String {
        match self {
            Self::Email => format!("user{number}@example.com"),
            // 555-01xx is reserved for fiction; the number makes it unique.
            Self::Phone => format!("+1-555-01{number:05}"),
            Self::Name => format!("Person {number}"),
            Self::FirstName => format!("First{number}"),
            Self::LastName => format!("Last{number}"),
            Self::Address => format!("{number} Example Street"),
            Self::PostalCode => format!("{number:05}"),
            Self::BirthDate => birth_date(number),
            Self::User => format!("user_{number}"),
            Self::Card => digits_like(original, number),
            Self::Account => format!("XX00EXAMPLE{number:06}"),
            Self::NationalId => digits_like(original, number),
            // The range for benchmarks (RFC 2544), larger than those for documentation.
            Self::Ipv4 => {
                let [.., a, b] = (number % 65_536).to_be_bytes();
                format!("198.18.{a}.{b}")
            }
            Self::Ipv6 => format!("2001:db8::{number:x}"),
            Self::Mac => {
                let [.., a, b, c] = number.to_be_bytes();
                format!("02:00:00:{a:02x}:{b:02x}:{c:02x}")
            }
            Self::Other => format!("value_{number}"),
        }
    }
}

/// A valid date long ago.
fn birth_date(number: u64) -> String {
    let (year, month, day) = (number / 336, number / 28 % 12, number % 28);
    format!("{:04}-{:02}-{:02}", 1800 + year % 100, month + 1, day + 1)
}

/// The original with its digits replaced by those of the number, so that length and separators
/// stay.
fn digits_like(original: &str, number: u64) -> String {
    let mut rest = number;
    let mut reversed: Vec<char> = original
        .chars()
        .rev()
        .map(|c| {
            if !c.is_ascii_digit() {
                return if c.is_ascii_alphabetic() { 'X' } else { c };
            }
            let digit = (rest % 10) as u8;
            rest /= 10;
            char::from(b'0' + digit)
        })
        .collect();
    reversed.reverse();
    reversed.into_iter().collect()
}

/// The placeholders that were given out.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    given: HashMap<(Kind, String), u64>,
    counts: Vec<(Kind, usize)>,
    /// The placeholders themselves, so that anonymising twice changes nothing.
    own: HashMap<String, Kind>,
}

impl Placeholders {
    /// The placeholder of a value. A placeholder is its own.
    pub(super) fn of(&mut self, kind: Kind, value: &str) -> String {
        if self.own.contains_key(value) {
            return value.to_owned();
        }
        let number = self.number(kind, value);
        let placeholder = kind.placeholder(number, value);
        self.own.insert(placeholder.clone(), kind);
        placeholder
    }

    /// The placeholder of a value that is a number.
    pub(super) fn number_of(&mut self, kind: Kind, value: &str) -> u64 {
        self.number(kind, value)
    }

    fn number(&mut self, kind: Kind, value: &str) -> u64 {
        let key = (kind, normal_form(kind, value));
        if let Some(number) = self.given.get(&key) {
            return *number;
        }
        let at = self.counts.iter().position(|(known, _)| *known == kind);
        let at = at.unwrap_or_else(|| {
            self.counts.push((kind, 0));
            self.counts.len() - 1
        });
        self.counts[at].1 += 1;
        let number = self.counts[at].1 as u64;
        self.given.insert(key, number);
        number
    }

    pub(super) fn counts(&self) -> Vec<(Kind, usize)> {
        self.counts.clone()
    }
}

/// Two spellings of one value have one placeholder: letter case, and separators of digits.
fn normal_form(kind: Kind, value: &str) -> String {
    match kind {
        Kind::Phone | Kind::Card | Kind::Account | Kind::NationalId => value
            .chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect(),
        _ => value.trim().to_lowercase(),
    }
}
