//! Durations as written in YAML files and on the command line.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

/// `30s`, `500ms`, `2m`, or a number of seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct WrittenDuration(Value);

impl JsonSchema for WrittenDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration: `30s`, `500ms`, `2m`, or a number of seconds.",
            "x-mcptest-expected": "a duration such as `30s`, `500ms` or `2m`",
            "anyOf": [
                {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(ms|s|m|h)$"},
                {"type": "number", "minimum": 0}
            ]
        })
    }
}

impl WrittenDuration {
    /// Parses the duration.
    ///
    /// # Errors
    /// It is not a duration.
    pub fn parse(&self) -> Result<Duration, DurationError> {
        match &self.0 {
            Value::Number(seconds) => seconds
                .as_f64()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| DurationError::new(&seconds.to_string())),
            Value::String(text) => parse(text),
            other => Err(DurationError::new(&other.to_string())),
        }
    }
}

/// A string that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration: write `500ms`, `30s`, `2m` or `1h`")]
pub struct DurationError {
    text: String,
}

impl DurationError {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }
}

/// Parses a duration with its unit.
///
/// # Errors
/// The string is not a duration, or has no unit.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(DurationError::new(text)),
    };
    Some(digits)
        .filter(|digits| is_number(digits))
        .and_then(|digits| digits.parse::<f64>().ok())
        .and_then(|number| Duration::try_from_secs_f64(number * factor).ok())
        .ok_or_else(|| DurationError::new(text))
}

/// Returns true for a number as the JSON Schema has it: `30`, `2.5`; not `1e3`, `.5` or `+1`.
fn is_number(text: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    is_digits(whole) && is_digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("1.5s", 1500),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                parse(text).unwrap(),
                Duration::from_millis(millis),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "30",
            "30 parsecs",
            "-1s",
            "1e999s",
            "NaNs",
            "ms",
            "1e3s",
            "+1s",
            ".5s",
            "1.s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
