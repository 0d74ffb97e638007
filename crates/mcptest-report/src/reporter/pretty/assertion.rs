//! A failed assertion: the target, expected and actual, and the places where they differ.

use std::io::{self, Write};

use anstyle::Style as Paint;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::expect::Assertion;
use mcptest_trace::judged;
use mcptest_trace::matcher::Difference;
use serde_json::Value;

use super::{MAX_VALUE, Style, block, paint};
use crate::line_diff;

/// The longest expected and actual value that fit in one line, in characters.
const MAX_ONE_LINE: usize = 100;
/// The largest number of lines of two strings that are compared line by line.
const MAX_DIFF_LINES: usize = 400;

/// Writes a failed assertion.
pub(super) fn write_assertion(
    out: &mut dyn Write,
    assertion: &Assertion,
    style: Style,
) -> io::Result<()> {
    let default = if assertion.default {
        "  (the default)"
    } else {
        ""
    };
    let judged = if assertion.judged { "  (judged)" } else { "" };
    let target = paint(style, Paint::new().bold(), &one_line(&assertion.target));
    let (expected, actual) = (matcher(&assertion.matcher), value(&assertion.actual));
    if expected.chars().count() + actual.chars().count() <= MAX_ONE_LINE {
        let facts = format!("expected {expected}, actual {actual}");
        block(out, &format!("{target}  {facts}{default}{judged}"))?;
    } else {
        block(out, &format!("{target}{default}{judged}"))?;
        block(out, &format!("  expected  {expected}"))?;
        block(out, &format!("  actual    {actual}"))?;
    }
    if let Some(reason) = &assertion.reason
        && !is_obvious(assertion)
    {
        block(out, &format!("  because   {}", one_line(reason)))?;
    }
    for difference in &assertion.diff {
        if let Some(lines) = line_diff(difference) {
            block(out, &format!("  at {}", one_line(&difference.pointer)))?;
            for line in lines {
                block(out, &format!("    {line}"))?;
            }
            continue;
        }
        let side = |side: &Option<Value>| side.as_ref().map_or_else(|| "nothing".to_owned(), value);
        let text = format!(
            "  at {}  expected {}, actual {}",
            one_line(&difference.pointer),
            side(&difference.expected),
            side(&difference.actual)
        );
        block(out, &text)?;
    }
    Ok(())
}

/// Returns true if expected and actual already show why an assertion does not hold: values differ,
/// or a number is on the wrong side of a bound.
fn is_obvious(assertion: &Assertion) -> bool {
    let is_bound = |matcher: &Value| {
        matcher.as_object().is_some_and(|rules| {
            let bounds = ["==", "!=", ">=", ">", "<=", "<"];
            rules.len() == 1 && rules.keys().all(|rule| bounds.contains(&rule.as_str()))
        })
    };
    let differs = assertion.reason.as_deref() == Some("the values differ");
    differs || (assertion.actual.is_number() && is_bound(&assertion.matcher))
}

/// The line diff of two strings with several lines. Very long strings are shown by their beginnings
/// instead.
fn line_diff(difference: &Difference) -> Option<Vec<String>> {
    let (Some(Value::String(expected)), Some(Value::String(actual))) =
        (&difference.expected, &difference.actual)
    else {
        return None;
    };
    let count = |text: &str| text.lines().count();
    let several = count(expected) > 1 || count(actual) > 1;
    if !several || count(expected) + count(actual) > MAX_DIFF_LINES {
        return None;
    }
    let hunks = line_diff::hunks(expected, actual);
    let lines = hunks.lines();
    let lines: Vec<String> = lines
        .map(|line| shorten(&one_line(line), MAX_VALUE))
        .collect();
    (!lines.is_empty()).then_some(lines)
}

fn matcher(written: &Value) -> String {
    match written {
        Value::Object(map) => {
            let rules: Vec<String> = map
                .iter()
                .map(|(key, rule)| {
                    let shown = if judged::KEYS.contains(&key.as_str()) {
                        value(&without_scripts(rule))
                    } else {
                        value(rule)
                    };
                    format!("{} {shown}", one_line(key))
                })
                .collect();
            rules.join(" and ")
        }
        other => value(other),
    }
}

/// A judged matcher without the scripted answers of its built-in judges.
fn without_scripts(rule: &Value) -> Value {
    let mut rule = rule.clone();
    let short = |judge: &mut Value| {
        if let Some(script) = judge.get_mut("script") {
            *script = "…".into();
        }
    };
    short(&mut rule);
    if let Some(Value::Array(models)) = rule.get_mut("models") {
        models.iter_mut().for_each(short);
    }
    rule
}

fn value(value: &Value) -> String {
    shorten(&one_line(&value.to_string()), MAX_VALUE)
}
