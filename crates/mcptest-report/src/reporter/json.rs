//! `json`: the whole report, byte-stable for the same input.

use super::Style;
use crate::model::Report;

pub(crate) fn render(report: &Report, _: Style) -> String {
    pretty_json(report)
}

/// Indented: a report is diffed by people too.
pub(crate) fn pretty_json(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
