//! `json`: everything, for programs.

use super::DoctorReport;

pub(super) fn render(report: &DoctorReport) -> String {
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}
