//! `markdown`: for a comment on a pull request or a job's summary.

use std::fmt::Write as _;

use super::{DoctorReport, percent};
use crate::markdown::{cell, plain, sentence};

/// Rows of a table of prices; the rest is summed up.
const MOST_ROWS: usize = 20;

// Writing to a String cannot fail.
pub(super) fn render(report: &DoctorReport) -> String {
    let mut out = String::new();
    for server in &report.servers {
        let _ = writeln!(out, "## {}\n", plain(&server.name));
        if let Some(error) = &server.error {
            let _ = writeln!(out, "Does not start: {}\n", sentence(&error.message));
            continue;
        }
        if let Some(revision) = &server.revision {
            let _ = writeln!(out, "Speaks {}.\n", plain(revision));
        }
        let _ = writeln!(
            out,
            "{} tools, {} tokens, {} of a context window of {}.\n",
            server.tools.len(),
            server.tokens,
            percent(server.tokens, report.context_window),
            report.context_window
        );
        for problem in &server.problems {
            let _ = writeln!(
                out,
                "- **{}**: {}",
                problem.severity.as_str(),
                sentence(&problem.message)
            );
        }
        if !server.tools.is_empty() {
            if !server.problems.is_empty() {
                out.push('\n');
            }
            out.push_str(
                "| tool | name | description | schema | sum |\n|---|---:|---:|---:|---:|\n",
            );
        }
        for tool in server.tools.iter().take(MOST_ROWS) {
            let price = tool.tokens;
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                cell(&tool.name),
                price.name,
                price.description,
                price.schema,
                tool.sum
            );
        }
        if let Some(rest) = server
            .tools
            .get(MOST_ROWS..)
            .filter(|rest| !rest.is_empty())
        {
            let sum: u64 = rest.iter().map(|tool| tool.sum).sum();
            let _ = writeln!(out, "| and {} more | | | | {sum} |", rest.len());
        }
        out.push('\n');
    }
    if let Some(lint) = &report.lint {
        let _ = writeln!(
            out,
            "## Findings\n\n{} critical, {} warnings, {} waived, {} clean tools.\n",
            lint.critical, lint.warnings, lint.waived, lint.clean
        );
        let mut rows = lint
            .findings
            .iter()
            .filter(|finding| finding.counts())
            .peekable();
        if rows.peek().is_some() {
            out.push_str("| tool | rule | severity | finding |\n|---|---|---|---|\n");
        }
        for finding in rows {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                cell(&finding.tool),
                finding.rule.as_deref().unwrap_or_default(),
                finding.severity.as_str(),
                sentence(&finding.message)
            );
        }
    }
    out
}
