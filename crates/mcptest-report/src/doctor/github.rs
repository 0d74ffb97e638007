//! `github`: findings as workflow commands, which GitHub Actions shows beside the lines of a pull
//! request.

use std::fmt::Write as _;

use mcptest_catalog::lint::Severity;
use mcptest_json::text::one_line;

use super::DoctorReport;

pub(super) fn render(report: &DoctorReport) -> String {
    let mut out = String::new();
    for finding in report
        .lint
        .iter()
        .flat_map(|lint| &lint.findings)
        .filter(|finding| finding.counts())
    {
        let level = match finding.severity {
            Severity::Critical => "error",
            Severity::Warning | Severity::Pass => "warning",
        };
        let server = report.server_of(finding);
        let file = server
            .and_then(|server| server.file.as_deref())
            .unwrap_or("mcptest.yml");
        let line = server.map_or(1, |server| server.line_of(&finding.tool));
        let rule = finding.rule.as_deref().unwrap_or_default();
        let title = property(&format!("{rule} {}", finding.tool));
        let hint = finding
            .suggestion
            .as_ref()
            .map_or_else(String::new, |hint| format!(" ({hint})"));
        let message = data(&format!("{}: {}{hint}", finding.tool, finding.message));
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "::{level} file={},line={line},title={title}::{message}",
            property(file)
        );
    }
    out
}

/// A message. Commands end at the line's end, and a second `::` would begin nothing but confuses
/// readers.
fn data(text: &str) -> String {
    one_line(text).replace('%', "%25").replace("::", ":%3A")
}

fn property(text: &str) -> String {
    one_line(text)
        .replace('%', "%25")
        .replace(':', "%3A")
        .replace(',', "%2C")
}
