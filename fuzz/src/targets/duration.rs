//! Durations: the parser accepts what the JSON Schema accepts, and in the same sense.

use std::time::Duration;

use mcptest_yaml::duration::parse;

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let parsed = parse(text);
    match schema_parts(text) {
        Some((whole, fraction, unit)) => {
            // Numbers of this length fit into any duration.
            if whole.len() + fraction.len() <= 12 {
                let parsed = parsed.unwrap_or_else(|error| panic!("in the schema: {error}"));
                let ms = expected_ms(whole, fraction, unit);
                let difference = parsed.as_secs_f64() * 1000.0 - ms;
                assert!(difference.abs() <= ms * 1e-9 + 1e-6, "{text}: {parsed:?}");
            }
        }
        None => {
            if let Ok(parsed) = parsed {
                // Spaces around it come from the command line.
                let inner = schema_parts(text.trim());
                assert!(inner.is_some(), "not in the schema: {text:?} is {parsed:?}");
            }
        }
    }
    assert!(parse("1s").is_ok_and(|second| second == Duration::from_secs(1)));
}

/// The parts of `^[0-9]+(\.[0-9]+)?(ms|s|m|h)$`.
fn schema_parts(text: &str) -> Option<(&str, &str, &str)> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = !whole.is_empty() && is_digits(whole) && is_digits(fraction);
    (is_number && ["ms", "s", "m", "h"].contains(&unit)).then_some((whole, fraction, unit))
}

fn expected_ms(whole: &str, fraction: &str, unit: &str) -> f64 {
    let number: f64 = format!("{whole}.{fraction}0").parse().unwrap_or(f64::NAN);
    let factor = match unit {
        "ms" => 1.0,
        "s" => 1000.0,
        "m" => 60_000.0,
        _ => 3_600_000.0,
    };
    number * factor
}
