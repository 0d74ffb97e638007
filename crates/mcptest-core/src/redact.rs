//! Secrets leave no trace in output.

use serde_json::Value;

/// What stands in a secret's place.
const MASK: &str = "[redacted]";

/// Whether a value is a secret by what it is called: the variable, header or key that holds it.
///
/// Short values are no secrets: hiding every `1` of a report would hide the report.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    let upper = name.to_uppercase();
    let words = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "COOKIE"];
    value.len() >= 6 && words.iter().any(|word| upper.contains(word))
}

/// Replaces known secret values wherever they appear.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another is replaced whole.
    secrets: Vec<String>,
}

impl Redactor {
    /// For these values.
    #[must_use]
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|secret| !secret.is_empty()).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// A text without secrets.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        self.secrets
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
    }

    /// Whether there is anything to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Cleans all texts of a value, keys included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.secrets.iter().any(|secret| text.contains(secret.as_str())) => {
                *text = self.text(text);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                if map
                    .keys()
                    .any(|key| self.secrets.iter().any(|secret| key.contains(secret.as_str())))
                {
                    *map = std::mem::take(map)
                        .into_iter()
                        .map(|(key, value)| (self.text(&key), value))
                        .collect();
                }
                map.values_mut().for_each(|value| self.value(value));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_known_by_its_name_and_has_some_length() {
        for name in [
            "API_KEY",
            "github_token",
            "Authorization",
            "Set-Cookie",
            "DB_PASSWORD",
            "my-secret",
            "CREDENTIALS",
        ] {
            assert!(is_secret(name, "abcdef"), "{name}");
            assert!(!is_secret(name, "abcde"), "{name}");
        }
        assert!(!is_secret("HOME", "abcdef"));
    }

    #[test]
    fn secrets_are_replaced_everywhere_the_longest_first() {
        let redactor = Redactor::new(["s3cret".to_owned(), "s3cret-long".to_owned(), String::new()]);
        let mut value = json!({"a": ["x s3cret-long y"], "s3cret": {"b": "s3crets3cret"}, "n": 1});
        redactor.value(&mut value);
        assert_eq!(
            value,
            json!({"a": ["x [redacted] y"], "[redacted]": {"b": "[redacted][redacted]"}, "n": 1})
        );
    }
}
