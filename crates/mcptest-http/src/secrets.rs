//! Headers that carry credentials, and masking of their values.

/// Returns true if a header of this name carries a credential.
#[must_use]
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "auth",
        "cookie",
        "key",
        "token",
        "secret",
        "password",
        "credential",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// The values that no message may show: each credential, with and without its scheme (`Bearer …`).
pub fn of_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut secrets = Vec::new();
    for (_, value) in headers
        .into_iter()
        .filter(|(name, _)| is_secret_header(name))
    {
        let value = value.trim();
        if let Some((_, credential)) = value.split_once(' ') {
            secrets.push(credential.trim().to_owned());
        }
        secrets.push(value.to_owned());
    }
    secrets.retain(|secret| secret.len() >= 4);
    // The longest first, so that no part of a longer one remains.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

/// Replaces every secret in a string by `***`.
#[must_use]
pub fn mask(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), "***");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_with_and_without_their_scheme() {
        let secrets = of_headers([
            ("Authorization", "Bearer s3cret-value"),
            ("X-Api-Key", "abcd1234"),
            ("Accept-Language", "de"),
        ]);
        let text = mask(
            "got Bearer s3cret-value, s3cret-value, abcd1234, de",
            &secrets,
        );
        assert_eq!(text, "got ***, ***, ***, de");
    }
}
