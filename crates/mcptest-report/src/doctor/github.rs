//! `github`: findings as workflow commands, which GitHub Actions shows beside the lines of a pull
//! request.

use std::io::{self, Write};

use mcptest_catalog::doctor::DoctorReport;
use mcptest_catalog::lint::Severity;
use mcptest_catalog::lint::lines::{Selection, lines};
use mcptest_json::text::one_line;

/// One command per tool and rule, the most important first: GitHub shows only the first ten of
/// each level.
pub(super) fn render(report: &DoctorReport, out: &mut dyn Write) -> io::Result<()> {
    let Some(lint) = &report.lint else {
        return Ok(());
    };
    let selection = Selection {
        all: true,
        rules: lint.selection.rules.clone(),
    };
    for line in lines(&lint.findings, &selection) {
        let level = match line.severity {
            _ if line.waived.is_some() => continue,
            Severity::Critical => "error",
            Severity::Warning | Severity::Pass => "warning",
        };
        let tool = line.tools.first().map_or("", String::as_str);
        let server = report.server_named(line.server.as_deref());
        let file = server
            .and_then(|server| server.file.as_deref())
            .unwrap_or("mcptest.yml");
        let number = server.map_or(1, |server| server.line_of(tool));
        let title = property(&format!("{} {tool}", line.rule));
        let fix = line
            .fix
            .as_ref()
            .map_or_else(String::new, |fix| format!("; fix: {fix}"));
        let message = data(&format!(
            "{tool}: {}{}{fix}",
            line.message,
            super::places(&line)
        ));
        writeln!(
            out,
            "::{level} file={},line={number},title={title}::{message}",
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
