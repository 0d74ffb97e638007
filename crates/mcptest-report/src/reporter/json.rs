//! `json`: the whole report, byte-stable for the same input.

use super::Style;
use crate::model::Report;

pub(crate) fn render(report: &Report, _: Style) -> String {
    // Indented: a report is diffed by people too.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}
