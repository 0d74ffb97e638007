//! Values that names and descriptions suggest.

use std::sync::LazyLock;

use mcptest_catalog::lexical::words;
use regex::Regex;

/// An example in quotes: `(e.g., 'America/New_York')`, ``for example `main` ``.
static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)\b(?:e\.g\.?|eg|i\.e\.|for example|for instance|examples?|such as|like)[:,]?\s*(?:is|are)?\s*['"`“]([^'"`”\n]{1,80})['"`”]"#).ok()
});

/// An example without quotes, up to a space, a comma or the end of a bracket.
static BARE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:\be\.g\.?|\bfor example|\bexample)[:,]?\s+([^\s'"`“,;()\[\]{}<>]{1,60})"#)
        .ok()
});

/// Values by the last words of a name, in lowercase. The first that applies wins.
const BY_NAME: &[(&str, &str)] = &[
    ("email", "user@example.com"),
    ("mail", "user@example.com"),
    ("url", "https://example.com"),
    ("uri", "https://example.com"),
    ("link", "https://example.com"),
    ("website", "https://example.com"),
    ("domain", "example.com"),
    ("hostname", "example.com"),
    ("host", "example.com"),
    ("timezone", "UTC"),
    ("tz", "UTC"),
    ("zone", "UTC"),
    ("date", "2026-01-15"),
    ("day", "2026-01-15"),
    ("datetime", "2026-01-15T12:00:00Z"),
    ("timestamp", "2026-01-15T12:00:00Z"),
    ("time", "12:00"),
    ("city", "Paris"),
    ("location", "Paris"),
    ("place", "Paris"),
    ("address", "1 Main Street, Paris"),
    ("country", "France"),
    ("language", "en"),
    ("lang", "en"),
    ("locale", "en"),
    ("currency", "EUR"),
    ("symbol", "AAPL"),
    ("ticker", "AAPL"),
    ("query", "test"),
    ("q", "test"),
    ("search", "test"),
    ("term", "test"),
    ("keyword", "test"),
    ("topic", "weather"),
    ("expression", "2 + 3"),
    ("formula", "2 + 3"),
    ("message", "hello"),
    ("text", "hello"),
    ("content", "hello"),
    ("body", "hello"),
    ("prompt", "hello"),
    ("input", "hello"),
    ("comment", "hello"),
    ("thought", "hello"),
    ("filename", "README.md"),
    ("file", "README.md"),
    ("directory", "."),
    ("dir", "."),
    ("folder", "."),
    ("root", "."),
    ("path", "."),
    ("branch", "main"),
    ("ref", "main"),
    ("revision", "HEAD"),
    ("version", "1.0.0"),
    ("phone", "+33123456789"),
    ("color", "blue"),
    ("colour", "blue"),
    ("unit", "metric"),
    ("sql", "SELECT 1"),
    ("code", "1 + 1"),
    ("regex", "test"),
    ("pattern", "test"),
    ("uuid", "00000000-0000-4000-8000-000000000000"),
    ("id", "1"),
    ("ip", "127.0.0.1"),
    ("title", "example"),
    ("name", "example"),
    ("username", "example"),
    ("user", "example"),
    ("owner", "example"),
    ("repo", "example"),
    ("repository", "example"),
    ("key", "example"),
    ("tag", "example"),
];

/// The example that a description gives.
pub(super) fn in_description(description: &str) -> Option<String> {
    // Examples are near the beginning; a long text is not searched forever.
    let start: String = description.chars().take(2000).collect();
    let quoted = QUOTED.as_ref().and_then(|pattern| pattern.captures(&start));
    let found = quoted.or_else(|| BARE.as_ref()?.captures(&start))?;
    let text = found.get(1)?.as_str().trim().trim_end_matches(['.', ':']);
    // The part between two quotes may also separate two examples.
    let begins = text.starts_with(|c: char| c.is_alphanumeric() || "/@#~$._-*".contains(c));
    (begins && !text.starts_with(". ") && !text.starts_with("- ")).then(|| text.to_owned())
}

/// The value that a name suggests.
pub(super) fn by_name(name: &str) -> Option<&'static str> {
    let words = words(name);
    let last = words.last()?;
    let find = |word: &str| {
        let found = BY_NAME.iter().find(|(known, _)| *known == word);
        found.map(|(_, value)| *value)
    };
    // `file_path` and `time_zone` are one word each.
    let joined = words
        .len()
        .checked_sub(2)
        .map(|at| words[at..].concat())
        .and_then(|both| find(&both));
    joined.or_else(|| find(last)).or_else(|| {
        let single = last.strip_suffix('s')?;
        find(single)
    })
}

/// The type of a property whose schema has none.
pub(super) fn kind_of(name: &str) -> &'static str {
    if name.is_empty() { "object" } else { "string" }
}

/// Returns true for a flag that makes a call more careful.
pub(super) fn is_harmless_flag(name: &str) -> bool {
    let joined = words(name).concat();
    ["dryrun", "preview", "readonly", "simulate"].contains(&joined.as_str())
}

/// The number that a description or a name suggests.
pub(super) fn number(description: &str, name: &str) -> f64 {
    let example = in_description(description).and_then(|text| text.parse::<f64>().ok());
    if let Some(example) = example.filter(|number| number.is_finite()) {
        return example;
    }
    let last = words(name).pop().unwrap_or_default();
    match last.as_str() {
        "latitude" | "lat" => 48.85,
        "longitude" | "lon" | "lng" | "long" => 2.35,
        "a" | "x" | "first" => 2.0,
        "b" | "y" | "second" => 3.0,
        "year" => 2026.0,
        "offset" | "skip" | "start" | "cursor" => 0.0,
        "port" => 8080.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_give_examples() {
        for (description, expected) in [
            (
                "IANA timezone name (e.g., 'America/New_York', 'Europe/London').",
                "America/New_York",
            ),
            ("The branch, for example `main`", "main"),
            ("City name e.g. Paris, France", "Paris"),
            ("Such as \"two words\" and so on", "two words"),
            ("Format: example: 2026-01-15.", "2026-01-15"),
            ("The id (e.g. arxiv:2301.00001)", "arxiv:2301.00001"),
        ] {
            assert_eq!(in_description(description).as_deref(), Some(expected));
        }
        for description in [
            "A city",
            "",
            "e.g.",
            "example",
            "Good example\". Bad (too vague): \"auth\"",
            &"x".repeat(10_000),
        ] {
            assert_eq!(in_description(description), None, "{description}");
        }
    }

    #[test]
    fn names_give_values() {
        for (name, expected) in [
            ("city", Some("Paris")),
            ("sourceTimezone", Some("UTC")),
            ("time_zone", Some("UTC")),
            ("filePath", Some(".")),
            ("search_query", Some("test")),
            ("ids", Some("1")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(by_name(name), expected, "{name}");
        }
        assert!(is_harmless_flag("dryRun") && !is_harmless_flag("force"));
    }
}
