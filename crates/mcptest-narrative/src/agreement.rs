//! The agreement of a stated value with a recorded one: whole, by type.

use serde_json::Value;

use crate::dates::{dates_in, same_day, times_in};
use crate::evidence::contains_whole;
use crate::tokens::{measured, number, numbers_in};
use crate::values::{Stated, ValueKind};

/// The values that a claim names, beside those of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    /// The call was given the figure that the claim says it was set to.
    Set,
    /// The call was given one of them, or its result has it.
    Given,
    /// The call was given another value of the same kind.
    Contradicted,
    /// Another result of the run has a name of the claim.
    Known,
    Nothing,
}

impl Touch {
    /// Returns true if the call was given a value that the claim names.
    pub(crate) fn is_given(self) -> bool {
        matches!(self, Self::Set | Self::Given)
    }
}

/// A value that names one thing.
#[derive(Debug)]
pub(crate) struct Name(pub Stated);

impl Name {
    /// Returns true if the arguments have the value.
    pub(crate) fn is_in(&self, args: &Value) -> bool {
        contains_value(args, &self.0)
    }

    /// Returns true if a recorded string is another value of the same kind.
    pub(crate) fn is_alike(&self, recorded: &str) -> bool {
        let value = &self.0;
        match value.kind {
            ValueKind::Email => recorded.contains('@') && !recorded.contains(' '),
            ValueKind::Path => {
                let ending = |path: &str| path.rsplit_once('.').map(|(_, end)| end.to_lowercase());
                crate::recorded::is_pathlike(recorded) && ending(recorded) == ending(&value.normal)
            }
            _ => {
                let start = |text: &str| -> String {
                    let text = text.trim_start_matches('#').to_lowercase();
                    text.chars().take_while(|c| !c.is_ascii_digit()).collect()
                };
                let letters = start(&value.normal);
                recorded.contains(|c: char| c.is_ascii_digit())
                    && !recorded.contains(' ')
                    && letters == start(recorded)
                    && (!letters.is_empty() || recorded.len() == value.normal.len())
            }
        }
    }

    /// Returns true if it is a quotation or a proper name.
    pub(crate) fn is_proper(&self) -> bool {
        self.0.kind == ValueKind::Quote
    }

    /// Returns true if a lowercase text has it as a whole.
    pub(crate) fn is_written_in(&self, text: &str) -> bool {
        contains_whole(text, &self.0.text.to_lowercase())
    }

    /// The value as it is compared.
    pub(crate) fn normal(&self) -> &str {
        &self.0.normal
    }
}

/// Returns true if a recorded string agrees with a stated value.
pub(crate) fn agrees(value: &Stated, recorded: &str) -> bool {
    match value.kind {
        ValueKind::Number | ValueKind::Count => {
            let recorded = number(recorded.trim()).or_else(|| measured(recorded.trim()));
            recorded.as_deref() == Some(&value.normal)
                || value.money
                    && recorded.is_some_and(|recorded| is_cents(&recorded, &value.normal))
        }
        ValueKind::Time => times_in(recorded).contains(&value.normal),
        ValueKind::Date => dates_in(recorded)
            .iter()
            .any(|date| same_day(date, &value.normal)),
        ValueKind::Identifier => {
            let recorded = recorded.to_lowercase();
            // "S17" of `S17_R1.fastq.gz`
            let begins = recorded
                .strip_prefix(&value.normal)
                .is_some_and(|rest| rest.starts_with(['_', '.']));
            begins
                || contains_whole(&recorded, &value.normal)
                || ends_with_number(&value.normal, &recorded)
        }
        ValueKind::Email => contains_whole(&recorded.to_lowercase(), &value.normal),
        ValueKind::Path => recorded
            .to_lowercase()
            .split(|c: char| c.is_whitespace() || "\"'`<>,;()".contains(c))
            .any(|recorded| same_path(recorded, &value.normal)),
        ValueKind::Quote | ValueKind::Word => {
            let recorded = letters(recorded);
            recorded.contains(&value.normal)
                || recorded.len() >= 3 && value.normal.contains(&recorded)
        }
    }
}

/// Returns true if an amount is recorded in hundredths: `1500` of `15`.
fn is_cents(recorded: &str, stated: &str) -> bool {
    let (whole, fraction) = stated.split_once('.').unwrap_or((stated, ""));
    fraction.len() <= 2 && recorded == format!("{whole}{fraction:0<2}").trim_start_matches('0')
}

/// Returns true if an identifier is a number with a prefix: `issue-42` and `42`.
fn ends_with_number(identifier: &str, recorded: &str) -> bool {
    let recorded = recorded.trim_start_matches('#');
    !recorded.is_empty()
        && recorded.chars().all(|c| c.is_ascii_digit())
        && identifier
            .strip_suffix(recorded)
            .is_some_and(|start| start.ends_with(['-', '_', '#', '/']))
}

/// Returns true if two paths agree: one is the other's end, or a folder that contains it, by whole
/// components.
fn same_path(left: &str, right: &str) -> bool {
    let left = components(left);
    let right = components(right);
    let (short, long) = if left.len() <= right.len() {
        (left, right)
    } else {
        (right, left)
    };
    // `docs.acme.dev` is of `acme.dev`.
    let is_host = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|start| start.ends_with('.'))
    };
    let host = match (short.as_slice(), long.as_slice()) {
        ([short], [long]) => is_host(long, short) || is_host(short, long),
        _ => false,
    };
    !short.is_empty() && (host || long.ends_with(&short) || long.starts_with(&short))
}

fn components(path: &str) -> Vec<&str> {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let path = path
        .strip_prefix("https://")
        .or_else(|| path.strip_prefix("http://"))
        .or_else(|| path.strip_prefix("file://"))
        .unwrap_or(path);
    path.split(['/', '\\'])
        .filter(|part| !part.is_empty() && *part != "." && *part != "~")
        .collect()
}

/// Returns true if a result has the value: the agent may state what the server answered.
pub(crate) fn contains_value(result: &Value, value: &Stated) -> bool {
    match result {
        Value::Object(map) => map.values().any(|inner| contains_value(inner, value)),
        Value::Array(list) => list.iter().any(|inner| contains_value(inner, value)),
        Value::Number(number) => agrees(value, &number.to_string()),
        Value::String(text) if value.kind == ValueKind::Number => {
            numbers_in(text).contains(&value.normal)
        }
        Value::String(text) => match value.kind {
            ValueKind::Date => dates_in(text)
                .iter()
                .any(|date| same_day(date, &value.normal)),
            ValueKind::Quote => letters(text).contains(&value.normal),
            _ => agrees(value, text),
        },
        Value::Bool(_) | Value::Null => false,
    }
}

/// The letters and digits of a string, in lowercase.
pub(crate) fn letters(text: &str) -> String {
    text.to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}
