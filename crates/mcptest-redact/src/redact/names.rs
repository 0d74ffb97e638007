//! Names of secrets, and values that are words.

/// The words that make a name that of a secret; each also with an `s`.
const SECRET_WORDS: [&str; 19] = [
    "key",
    "apikey",
    "token",
    "secret",
    "pass",
    "password",
    "pgpassword",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "credential",
    "cred",
    "auth",
    "oauth",
    "authorization",
    "bearer",
    "cookie",
    "jwt",
];

/// The longest value of letters only that counts as a word.
const MAX_WORD: usize = 14;

pub(super) fn is_secret_word(word: &str) -> bool {
    let is_listed = |word: &str| SECRET_WORDS.contains(&word);
    is_listed(word) || word.strip_suffix('s').is_some_and(is_listed)
}

/// The words of a name in lowercase, without digits at their ends: `dbPassword2` is `db` and
/// `password`, `APIKey` is `api` and `key`.
pub(super) fn words(name: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, character) in characters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| characters[at]);
        let next = characters.get(at + 1);
        let begins = character.is_uppercase()
            && before.is_some_and(|before| {
                let is_last_capital = next.is_some_and(|next| next.is_lowercase());
                before.is_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_uppercase() && is_last_capital)
            });
        if begins || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
    }
    words
        .into_iter()
        .map(|word| word.trim_matches(|c: char| c.is_ascii_digit()).to_owned())
        .filter(|word| !word.is_empty())
}

/// Returns true if a value has the form of a word of a language: letters in one case, or with one
/// capital at the start, and not too long. A credential of letters mixes the cases.
pub(super) fn is_word(value: &str) -> bool {
    let is_ascii = value.len() <= MAX_WORD && value.bytes().all(|byte| byte.is_ascii_alphabetic());
    let rest = value.get(1..).unwrap_or_default();
    is_ascii
        && (rest.bytes().all(|byte| byte.is_ascii_lowercase())
            || value.bytes().all(|byte| byte.is_ascii_uppercase()))
}
