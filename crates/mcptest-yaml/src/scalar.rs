//! The values of plain scalars in the YAML 1.2 core schema.

use serde_json::Number;

use crate::document::NodeValue;

/// Resolves an unquoted scalar. Only the core schema's words are special: `yes`, `on` and `1_000`
/// are strings.
pub(crate) fn resolve_plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        _ => number(text).map_or_else(|| NodeValue::String(text.into()), NodeValue::Number),
    }
}

/// A number of the core schema. Infinity and not-a-number have no JSON form, so they stay strings.
pub(crate) fn number(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok().map(Number::from);
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(Number::from);
    }
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let whole = if negative {
            text.parse::<i64>().ok().map(Number::from)
        } else {
            digits.parse::<u64>().ok().map(Number::from)
        };
        // Beyond 64 bits an integer becomes the nearest double, as in JSON.
        return whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64));
    }
    if is_float(digits) {
        return text.parse::<f64>().ok().and_then(Number::from_f64);
    }
    None
}

/// `[0-9]*(\.[0-9]*)?([eE][-+]?[0-9]+)?` with at least one digit before the exponent.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_ok = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_ok
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        match resolve_plain(text) {
            NodeValue::Null => "null".into(),
            NodeValue::Bool(value) => value.to_string(),
            NodeValue::Number(value) => value.to_string(),
            NodeValue::String(value) => format!("{value:?}"),
            _ => unreachable!("a scalar is never a collection"),
        }
    }

    #[test]
    fn core_schema_words() {
        for (text, expected) in [
            ("", "null"),
            ("~", "null"),
            ("null", "null"),
            ("True", "true"),
            ("12", "12"),
            ("-12", "-12"),
            ("+12", "12"),
            ("007", "7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("18446744073709551615", "18446744073709551615"),
            ("9007199254740993", "9007199254740993"),
            ("0.8", "0.8"),
            (".5", "0.5"),
            ("1e3", "1000.0"),
            ("-1.5E-2", "-0.015"),
        ] {
            assert_eq!(json(text), expected, "{text}");
        }
        for text in [
            "yes", "on", "1_000", ".", "-", "+", "1e", "e3", ".inf", ".nan", "1.2.3", "12:30",
            "0x", "0xZZ",
        ] {
            assert_eq!(json(text), format!("{text:?}"), "{text}");
        }
    }
}
