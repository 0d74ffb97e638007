//! Strings for a schema.

use serde_json::Value;

use super::effective::Effective;
use super::{examples, pattern};

/// The longest string that is made.
const MAX_CHARACTERS: u64 = 10_000;

/// A string that the schema accepts, as far as can be known before it is checked. `name` is that of
/// the property, if it may suggest a value.
pub(super) fn string(schema: &Effective, name: Option<&str>) -> Option<String> {
    let written = schema.get("pattern").and_then(Value::as_str);
    let least = schema.count("minLength").unwrap_or(0);
    let most = schema.count("maxLength").unwrap_or(u64::MAX);
    if least > MAX_CHARACTERS || most < least {
        return None;
    }
    let format = schema.get("format").and_then(Value::as_str);
    let suggested = name.and_then(|name| {
        let example = examples::in_description(schema.description());
        let by_format = || by_format(format?, name).map(str::to_owned);
        example
            .or_else(by_format)
            .or_else(|| examples::by_name(name).map(str::to_owned))
    });
    let suggested = suggested.or_else(|| by_format(format?, "").map(str::to_owned));
    let length = |text: &str| text.chars().count() as u64;
    let Some(written) = written else {
        let text = suggested.unwrap_or_else(|| "example".to_owned());
        return Some(fitted(&text, least, most));
    };
    let is_match = |text: &String| {
        // Bounded: a pattern of a server may be large.
        let built = regex::RegexBuilder::new(written)
            .size_limit(1 << 20)
            .build();
        built.is_ok_and(|regex| regex.is_match(text)) && (least..=most).contains(&length(text))
    };
    if let Some(text) = suggested.filter(is_match) {
        return Some(text);
    }
    let longest = usize::try_from(least.min(256)).unwrap_or(0);
    let made = [1, 0, 2, 3, 8, longest]
        .into_iter()
        .filter_map(|repeats| pattern::matching(written, repeats));
    let mut made = made.filter(|text| (least..=most).contains(&length(text)));
    made.next()
}

/// A string for a name that has no schema.
pub(super) fn by_name(name: &str) -> String {
    examples::by_name(name).unwrap_or("example").to_owned()
}

/// The text, cut or padded to the bounds.
fn fitted(text: &str, least: u64, most: u64) -> String {
    let mut out: String = text
        .chars()
        .take(usize::try_from(most).unwrap_or(usize::MAX))
        .collect();
    let mut length = out.chars().count() as u64;
    while length < least {
        out.push('a');
        length += 1;
    }
    out
}

/// A string of a format. Addresses of pages and of files have different names.
fn by_format(format: &str, name: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "2026-01-15",
        "date-time" => "2026-01-15T12:00:00Z",
        "time" => "12:00:00Z",
        "duration" => "P1D",
        "email" | "idn-email" => "user@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "127.0.0.1",
        "ipv6" => "::1",
        "uri" | "url" | "iri" => "https://example.com",
        "uri-reference" | "iri-reference" => "/example",
        "uri-template" => "/example/{id}",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "json-pointer" => "/example",
        "relative-json-pointer" => "0",
        "regex" => "test",
        "byte" | "base64" => "aGVsbG8=",
        "path" | "file-path" | "directory-path" => examples::by_name(name).unwrap_or("."),
        _ => return None,
    })
}
