//! Redaction of secrets in output.

mod encoded;
mod formats;
mod kept;
mod learned;
mod names;
mod scan;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use self::encoded::Secret;
pub use self::formats::CREDENTIAL_FORMATS;
pub use self::kept::canaries;
use self::learned::Learned;

/// The replacement for a secret.
const MASK: &str = "[redacted]";

/// Returns true if a name (of a variable, a header or a key) is that of a secret: one of its words
/// is.
///
/// Words end at separators and where the case changes: `MY_API_KEY`, `dbPassword` and `x-api-key`
/// are secrets; `AUTHOR`, `PASSENGER` and `TOKENIZER_PATH` are not.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    names::words(name).any(|word| names::is_secret_word(&word))
}

/// Returns true if a value is a secret by its name, and can be searched for in other texts.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) && is_searchable(value)
}

/// Returns true if a secret of this value can be searched for in other texts.
///
/// Short values, words and short numbers are not: they are also in texts that have nothing to do
/// with the secret, and masking every `production` makes a report unreadable.
#[must_use]
pub fn is_searchable(value: &str) -> bool {
    let is_number = value.len() < 10 && value.bytes().all(|byte| byte.is_ascii_digit());
    value.len() >= 6 && !is_number && !names::is_word(value)
}

/// Returns true if a variable of the process's environment holds a credential.
///
/// Nobody declared it, so its value must look like one too: a path (`SSH_AUTH_SOCK`), a plain word
/// or a number would be masked in unrelated text.
#[must_use]
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let is_path = value.starts_with(['/', '.', '~']);
    is_secret(name, value) && value.len() >= 8 && !is_path && !is_number
}

/// Returns true if a secret was masked in a value.
#[must_use]
pub fn is_masked(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MASK),
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key.contains(MASK) || is_masked(value)),
        _ => false,
    }
}

/// Masks known secret values, and everything that looks like a credential (see
/// [`CREDENTIAL_FORMATS`]).
///
/// A known value is also found with JSON escapes, percent-encoded, and in base64. Redaction is
/// idempotent. Clones share the values that are [learned](Self::learn) later.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another is replaced whole.
    secrets: Vec<Secret>,
    learned: Arc<Learned>,
    /// Strings that are not credentials, regardless of their format.
    kept: Vec<String>,
}

impl Redactor {
    /// A redactor for these values.
    #[must_use]
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        Self {
            secrets: sorted(secrets),
            kept: Vec::new(),
            learned: Arc::default(),
        }
    }

    /// A redactor for these values instead of its own, which shares what is learned.
    #[must_use]
    pub fn replaced(&self, secrets: impl IntoIterator<Item = String>) -> Self {
        Self {
            secrets: sorted(secrets),
            kept: self.kept.clone(),
            learned: Arc::clone(&self.learned),
        }
    }

    /// Masks these values, too, from now on, in all clones: tokens are obtained during a run, when
    /// its outputs have their redactors already.
    pub fn learn(&self, secrets: impl IntoIterator<Item = String>) {
        self.learned.add(secrets);
    }

    /// The same redactor, which leaves these strings as they are even if they have the format of a
    /// credential.
    #[must_use]
    pub fn keeping(mut self, strings: impl IntoIterator<Item = String>) -> Self {
        let strings = strings.into_iter().filter(|one| !one.is_empty());
        self.kept.extend(strings);
        self.kept.sort_unstable();
        self.kept.dedup();
        self
    }

    /// Masks the secrets in a string.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        self.masked(text).unwrap_or_else(|| text.to_owned())
    }

    /// Returns true if a text contains no secret.
    #[must_use]
    pub fn is_clean(&self, text: &str) -> bool {
        self.masked(text).is_none()
    }

    /// Returns true if no string of a value, keys included, contains a secret.
    #[must_use]
    pub fn is_clean_in(&self, value: &impl Serialize) -> bool {
        scan::is_clean(self, value)
    }

    /// The masked text, if it contains a secret.
    fn masked(&self, text: &str) -> Option<String> {
        match self.learned.get() {
            None => mask(text, &self.secrets, &self.kept),
            Some(learned) => {
                let masked = mask(text, &learned, &self.kept);
                let text = masked.as_deref().unwrap_or(text);
                let rest = mask(text, &self.secrets, &self.kept);
                rest.or(masked)
            }
        }
    }

    /// Masks the secrets in all strings of a value, keys included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(clean) = self.masked(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                let listed: Vec<String> = kept::of_object(map)
                    .filter(|canary| !self.kept.contains(canary))
                    .collect();
                if !listed.is_empty() {
                    return self.clone().keeping(listed).value(value);
                }
                if map.keys().any(|key| !self.is_clean(key)) {
                    *map = self.with_masked_keys(std::mem::take(map));
                }
                map.values_mut().for_each(|value| self.value(value));
            }
            _ => {}
        }
    }

    /// The entries with masked keys. Two keys that look the same when they are masked stay two:
    /// the later one has a number, as in `[redacted] (2)`.
    fn with_masked_keys(&self, map: Map<String, Value>) -> Map<String, Value> {
        let mut masked = Map::with_capacity(map.len());
        // Keys without a secret keep their names, wherever they are.
        let clean: Vec<String> = map
            .keys()
            .filter(|key| self.is_clean(key))
            .cloned()
            .collect();
        for (key, value) in map {
            let mut name = self.text(&key);
            let mut number = 2;
            while name != key && (masked.contains_key(&name) || clean.contains(&name)) {
                name = format!("{} ({number})", self.text(&key));
                number += 1;
            }
            masked.insert(name, value);
        }
        masked
    }
}

/// The secrets, longest first.
fn sorted(secrets: impl IntoIterator<Item = String>) -> Vec<Secret> {
    let mut secrets: Vec<String> = secrets
        .into_iter()
        .filter(|secret| !secret.is_empty())
        .collect();
    secrets.sort_by(|a, b| (b.len(), a).cmp(&(a.len(), b)));
    secrets.dedup();
    secrets.into_iter().map(Secret::new).collect()
}

/// The masked text, if it contains one of the secrets.
fn mask(text: &str, secrets: &[Secret], kept: &[String]) -> Option<String> {
    let formatted = kept::mask_formats(text, kept);
    let text = formatted.as_deref().unwrap_or(text);
    if !secrets
        .iter()
        .any(|secret| text.split(MASK).any(|part| secret.is_in(part)))
    {
        return formatted;
    }
    // Masked parts are skipped: a secret may be a part of the mask itself.
    let parts = text.split(MASK).map(|part| {
        let mut parts = vec![part.to_owned()];
        for secret in secrets {
            parts = parts
                .iter()
                .flat_map(|part| {
                    secret
                        .mask(part)
                        .split(MASK)
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                })
                .collect();
        }
        parts.join(MASK)
    });
    let text = parts.collect::<Vec<_>>().join(MASK);
    // An address whose password was a known secret has the format only now.
    Some(kept::mask_formats(&text, kept).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_that_was_truncated_is_masked() {
        let redactor = Redactor::new(["opaque-token-0123456789".to_owned()]);
        for (text, masked) in [
            (
                "it is opaque-token-01… (90 bytes)",
                "it is [redacted]… (90 bytes)",
            ),
            ("opaque…", "[redacted]…"),
            ("opaq…", "opaq…"),
            ("opaque-token-01", "opaque-token-01"),
            (
                "opaque-opaque-t… and opaque-token…",
                "opaque-[redacted]… and [redacted]…",
            ),
            ("äöü opaque-token-x…", "äöü opaque-token-x…"),
        ] {
            assert_eq!(redactor.text(text), masked);
            assert_eq!(redactor.is_clean(text), text == masked);
        }
    }

    #[test]
    fn a_secret_that_is_learned_later_is_masked_by_every_clone() {
        let redactor = Redactor::new(["first-secret".to_owned()]);
        let clone = redactor.clone();
        let text = "first-secret, token-of-a-login, dG9rZW4tb2YtYS1sb2dpbg==";
        assert_eq!(
            clone.text(text),
            "[redacted], token-of-a-login, dG9rZW4tb2YtYS1sb2dpbg=="
        );
        redactor.learn(["token-of-a-login".to_owned(), String::new()]);
        assert_eq!(clone.text(text), "[redacted], [redacted], [redacted]");
        let masked = clone.text(text);
        assert_eq!(clone.text(&masked), masked);
        assert!(!clone.is_clean("a token-of-a-login"));
        assert!(clone.is_clean("a token"));
        let other = redactor.replaced(["second-secret".to_owned()]);
        assert_eq!(
            other.text("first-secret, second-secret, token-of-a-login"),
            "first-secret, [redacted], [redacted]"
        );
    }

    #[test]
    fn issue_10_a_secret_has_a_whole_word_in_its_name() {
        for name in [
            "API_KEY",
            "MY_API_KEY",
            "apiKey",
            "APIKEY",
            "openaiAPIKey",
            "x-api-key",
            "github_token",
            "GITHUB_TOKEN",
            "TOKEN2",
            "Authorization",
            "OAUTH_TOKEN",
            "Set-Cookie",
            "DB_PASSWORD",
            "dbPassword",
            "PGPASSWORD",
            "my-secret",
            "CLIENT_SECRETS",
            "CREDENTIALS",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
            assert!(is_secret(name, "abc123"), "{name}");
        }
        for name in [
            "HOME",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "PASSENGER",
            "COMPASS",
            "BYPASSED",
            "TOKENIZER_PATH",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD",
            "MONKEY",
            "AUTHORITY",
            "SECRETARY",
            "cookiecutter",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
            assert!(!is_secret(name, "k3y-of-somebody"), "{name}");
        }
    }

    #[test]
    fn issue_10_short_values_and_words_are_not_searched_for() {
        for value in [
            "abc12",
            "production",
            "Development",
            "LOCALHOST",
            "password",
            "100000",
            "123456789",
            "",
        ] {
            assert!(!is_secret("API_KEY", value), "{value}");
        }
        for value in [
            "abc123",
            "hunter2hunter2",
            "correct-horse-battery",
            "AbCdEfGh",
            "abcdefghijklmnopqrstuvwx",
            "12345678901234",
            "pässwört",
        ] {
            assert!(is_secret("API_KEY", value), "{value}");
        }
    }

    #[test]
    fn issue_10_masked_keys_stay_different_entries() {
        let redactor = Redactor::new(["s3cret-1".to_owned(), "s3cret-2".to_owned()]);
        let mut value = json!({"s3cret-1": 1, "s3cret-2": 2, "a s3cret-1": 3, "plain": 4});
        redactor.value(&mut value);
        let clean = json!({"[redacted]": 1, "[redacted] (2)": 2, "a [redacted]": 3, "plain": 4});
        assert_eq!(value, clean);
        redactor.value(&mut value);
        assert_eq!(value, clean, "idempotent");
        // A key that already has the name of a masked one keeps it.
        let mut value = json!({"s3cret-1": 1, "[redacted]": 2, "s3cret-2": 3});
        redactor.value(&mut value);
        let names = ["[redacted] (2)", "[redacted]", "[redacted] (3)"];
        assert!(value.as_object().unwrap().keys().eq(names), "{value}");
    }

    #[test]
    fn an_undeclared_variable_must_look_like_a_credential() {
        for (name, value, secret) in [
            ("OPENAI_API_KEY", "k3y-of-somebody", true),
            ("DB_PASSWORD", "Hunter2Hunter2", true),
            ("SSH_AUTH_SOCK", "/tmp/ssh-1/agent.1", false),
            ("MY_SECRET", "all-lower-case", true),
            ("KEY_REPEAT", "Sometimes", false),
            ("TOKENIZERS_PARALLELISM", "enabled", false),
            ("AUTH_TIMEOUT", "120000000", false),
            ("HOME", "k3y-of-somebody", false),
        ] {
            assert_eq!(is_secret_variable(name, value), secret, "{name}={value}");
        }
    }

    #[test]
    fn secrets_are_masked_everywhere_the_longest_first() {
        let redactor =
            Redactor::new(["s3cret".to_owned(), "s3cret-long".to_owned(), String::new()]);
        let mut value = json!({"a": ["x s3cret-long y"], "s3cret": {"b": "s3crets3cret"}, "n": 1});
        redactor.value(&mut value);
        assert_eq!(
            value,
            json!({"a": ["x [redacted] y"], "[redacted]": {"b": "[redacted][redacted]"}, "n": 1})
        );
    }

    #[test]
    fn a_known_secret_is_found_in_every_encoding() {
        let redactor = Redactor::new(["p@ss/w\"ord ü1".to_owned()]);
        for (text, clean) in [
            (r#"say \"p@ss/w\"ord ü1\" now"#, r#"say \"[redacted]\" now"#),
            (
                r#"say \"p@ss\/w\\\"ord \u00fc1\" now"#,
                r#"say \"[redacted]\" now"#,
            ),
            (r"\u0070@ss/w\u0022ord\u0020\u00FC1", "[redacted]"),
            ("a=p%40ss%2Fw%22ord%20%c3%bc1&b=2", "a=[redacted]&b=2"),
        ] {
            assert_eq!(redactor.text(text), clean, "{text}");
        }
        let redactor = Redactor::new([r"back\sl\\ash".to_owned()]);
        for text in [
            r"back\sl\\ash",
            r"back\\sl\\\\ash",
            "back%5Csl%5c%5Cash",
            r"back\\sl\\\\\u0061sh",
            r"back\u005csl\u005C\u005cash",
            r"\u0062ack\\u005csl\\u005c\\u005c\u0061sh",
        ] {
            assert_eq!(redactor.text(text), "[redacted]", "{text}");
        }
        for text in [
            r"back\s…",
            r"back\sl\…",
            "back%5Csl%5c%5…",
            "back%5Csl…",
            r"back\\sl\\\\\u00…",
            "YmFja1xzbFx…",
            "eDpiYWNrXHNsXF…",
        ] {
            assert_eq!(redactor.text(text), "[redacted]…", "{text}");
        }
        for text in ["back…", "back%5…", "YmFja1x…", "%5…", "\\…", "some back…"] {
            assert_eq!(redactor.text(text), text);
        }
        let literal = Redactor::new([r"is\u005cx".to_owned()]);
        assert_eq!(literal.text(r"is\\u005cx"), "[redacted]");
        assert!(redactor.is_clean(r"backsl\\ash") && redactor.is_clean(r"back\sl\ash"));
        let redactor = Redactor::new(["hunter2hunter2".to_owned()]);
        // After `user:`, `ab:` and `x:`: the three alignments of base64.
        for encoded in [
            "dXNlcjpodW50ZXIyaHVudGVyMg==",
            "YWI6aHVudGVyMmh1bnRlcjI=",
            "eDpodW50ZXIyaHVudGVyMg==",
        ] {
            assert_eq!(
                redactor.text(&format!("{{\"h\": \"{encoded}\"}}")),
                "{\"h\": \"[redacted]\"}"
            );
        }
    }

    #[test]
    fn well_known_formats_are_masked() {
        let redactor = Redactor::default();
        for (text, clean) in [
            ("key sk-proj-abcDEF0123456789xyz.", "key [redacted]."),
            ("sk-ant-api03-AbCdEf0123456789_-xyz", "[redacted]"),
            (
                "x=ghp_abcdefghijklmnopqrstuvwxyz0123456789&",
                "x=[redacted]&",
            ),
            ("github_pat_11ABCDEFG0123456789_abcdef", "[redacted]"),
            ("xoxb-123456789012-abcdef", "[redacted]"),
            ("id AKIAIOSFODNN7EXAMPLE,", "id [redacted],"),
            ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[redacted]"),
            (
                "t eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl t",
                "t [redacted] t",
            ),
            (
                "Authorization: Bearer abc123def456",
                "Authorization: Bearer [redacted]",
            ),
            (
                "authorization: basic dXNlcjpwYXNz",
                "authorization: basic [redacted]",
            ),
            ("postgres://bob:hunter2@db/x", "postgres://[redacted]@db/x"),
            (
                "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b",
                "a [redacted] b",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMIIE", "[redacted]"),
            (r"line\nsk-abcDEF0123456789xyz", r"line\n[redacted]"),
            ("q=%20sk-abcDEF0123456789xyz", "q=%20[redacted]"),
        ] {
            assert_eq!(redactor.text(text), clean, "{text}");
            assert!(!redactor.is_clean(text));
            assert!(redactor.is_clean(clean), "{clean}");
        }
    }

    #[test]
    fn text_that_only_resembles_a_secret_stays() {
        let redactor = Redactor::default();
        for text in [
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
            "2026-07-28T10:00:00Z",
            "toolu_01A09q90qw90lq917835lq9",
            "call_abc123def456ghi789",
            "risk-0123456789-assessment-0123456789",
            "task-0123456789abcdef0123456789",
            "the bearer of this certificate",
            "Bearer authentication",
            "Basic authentication, basic TypeScript",
            "Bearer ${TOKEN}",
            "ssh://git@example.com/x.git",
            "http://127.0.0.1:3000/mcp?at=a@b",
            "sk-fading-circle-with-dots",
            "AKIAIOSFODNN7EXAMPLEANDMORE",
            "eyJhbGciOiJIUzI1NiJ9",
            "-----BEGIN PUBLIC KEY-----",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        ] {
            assert_eq!(redactor.text(text), text);
        }
    }

    proptest! {
        #[test]
        fn redaction_is_idempotent(text in "(\\PC|redacted|s3cret-1|Bearer |a1b2c3d4e5|://|u:|@|\\\\n|%20|sk-){0,12}") {
            let redactor = Redactor::new(["s3cret-1".to_owned(), "redact".to_owned(), "cret-1B".to_owned()]);
            let once = redactor.text(&text);
            prop_assert_eq!(redactor.text(&once), once.clone());
            prop_assert!(redactor.is_clean(&once));
        }

        #[test]
        fn no_text_leaks_the_secret_or_panics(text in ".{0,40}", secret in ".{1,8}") {
            let redactor = Redactor::new([secret.clone()]);
            let once = redactor.text(&text);
            prop_assert!(!once.split("[redacted]").any(|part| part.contains(&secret)));
        }
    }
}
