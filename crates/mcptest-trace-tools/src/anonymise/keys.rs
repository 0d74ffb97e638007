//! Keys that give away what their value is.

use serde_json::{Map, Value};

use super::Kind;

/// The keys of personal data: the built-in ones, and those that the user named.
#[derive(Debug, Default)]
pub(super) struct PersonalKeys {
    more: Vec<Vec<String>>,
}

/// People that a name, an id or an address can belong to.
const PEOPLE: &[&str] = &[
    "applicant",
    "assignee",
    "attendee",
    "author",
    "billing",
    "cardholder",
    "client",
    "contact",
    "customer",
    "driver",
    "employee",
    "guest",
    "holder",
    "member",
    "owner",
    "parent",
    "passenger",
    "patient",
    "payee",
    "payer",
    "person",
    "recipient",
    "reporter",
    "sender",
    "shipping",
    "student",
    "user",
    "visitor",
];

impl PersonalKeys {
    pub(super) fn new(more: &[String]) -> Self {
        Self {
            more: more.iter().map(|key| words(key)).collect(),
        }
    }

    /// Returns true if an object has a key that certainly is personal: then its `name` is one too.
    pub(super) fn has_personal(&self, entries: &Map<String, Value>) -> bool {
        entries.keys().any(|key| self.kind(key, false).is_some())
    }

    /// The kind of a key's value. `among_personal` is true if the object describes a person.
    pub(super) fn kind(&self, key: &str, among_personal: bool) -> Option<Kind> {
        let words = words(key);
        if self.more.contains(&words) {
            return Some(Kind::Other);
        }
        let has = |word: &str| words.iter().any(|known| known == word);
        let last = words.last()?.as_str();
        let of_person = words[..words.len() - 1]
            .iter()
            .any(|it| PEOPLE.contains(&it.as_str()));
        let alone = words.len() == 1;
        Some(match last {
            "email" | "mail" if has("email") || has("e") => Kind::Email,
            "address" if has("email") => Kind::Email,
            "address" if has("ip") || has("mac") || has("url") || has("memory") => return None,
            "phone" | "telephone" | "mobile" | "fax" | "msisdn" => Kind::Phone,
            "number" if has("phone") || has("mobile") || has("fax") => Kind::Phone,
            "number" if has("card") => Kind::Card,
            "number" if has("passport") || has("ssn") || has("security") => Kind::NationalId,
            "ssn" | "passport" => Kind::NationalId,
            "iban" => Kind::Account,
            "name" if has("first") || has("given") || has("middle") => Kind::FirstName,
            "firstname" | "forename" | "givenname" => Kind::FirstName,
            "name" if has("last") || has("family") => Kind::LastName,
            "lastname" | "surname" => Kind::LastName,
            "name" if has("full") || of_person => Kind::Name,
            "fullname" => Kind::Name,
            "name" if alone && among_personal => Kind::Name,
            "username" | "login" => Kind::User,
            "id" if of_person => Kind::User,
            "address1" | "address2" | "street" => Kind::Address,
            "1" | "2" if has("address") => Kind::Address,
            "address" if alone || of_person || has("street") || has("home") => Kind::Address,
            "zip" | "postcode" | "zipcode" => Kind::PostalCode,
            "code" if has("zip") || has("postal") => Kind::PostalCode,
            "dob" | "birthdate" | "birthday" => Kind::BirthDate,
            "birth" if has("date") => Kind::BirthDate,
            "date" if has("birth") => Kind::BirthDate,
            _ => return None,
        })
    }
}

/// The words of a key, lowercase: `firstName`, `first_name` and `First-Name` are the same.
fn words(key: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous = ' ';
    for c in key.chars() {
        let starts = c.is_uppercase() && !previous.is_uppercase();
        if !c.is_alphanumeric() {
            previous = ' ';
            continue;
        }
        if starts || !previous.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
        previous = c;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_in_every_spelling() {
        let keys = PersonalKeys::new(&["loyaltyTier".to_owned()]);
        for (key, kind) in [
            ("email", Some(Kind::Email)),
            ("e-mail", Some(Kind::Email)),
            ("contactEmail", Some(Kind::Email)),
            ("email_address", Some(Kind::Email)),
            ("phone_number", Some(Kind::Phone)),
            ("firstName", Some(Kind::FirstName)),
            ("LAST_NAME", Some(Kind::LastName)),
            ("customer_name", Some(Kind::Name)),
            ("userId", Some(Kind::User)),
            ("user_id", Some(Kind::User)),
            ("dateOfBirth", Some(Kind::BirthDate)),
            ("address1", Some(Kind::Address)),
            ("zip", Some(Kind::PostalCode)),
            ("loyalty_tier", Some(Kind::Other)),
            ("name", None),
            ("tool_name", None),
            ("file_name", None),
            ("order_id", None),
            ("ip_address", None),
            ("city", None),
            ("mail", None),
        ] {
            assert_eq!(keys.kind(key, false), kind, "{key}");
        }
        assert_eq!(keys.kind("name", true), Some(Kind::Name));
    }
}
