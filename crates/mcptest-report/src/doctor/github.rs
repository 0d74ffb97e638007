//! `github`: findings as workflow commands, which GitHub Actions shows beside the lines of a pull
//! request.

use std::io::{self, Write};

use mcptest_catalog::doctor::DoctorReport;
use mcptest_catalog::lint::Severity;
use mcptest_json::text::one_line;

pub(super) fn render(report: &DoctorReport, out: &mut dyn Write) -> io::Result<()> {
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
        writeln!(
            out,
            "::{level} file={},line={line},title={title}::{message}",
            property(file)
        )?;
    }
    Ok(())
}

/// Escapes a message: a command ends with its line, and a second `::` confuses readers.
fn data(text: &str) -> String {
    one_line(text).replace('%', "%25").replace("::", ":%3A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    one_line(text)
        .replace('%', "%25")
        .replace(':', "%3A")
        .replace(',', "%2C")
}
