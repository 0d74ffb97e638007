//! `markdown`: for a comment on a pull request or a job's summary.

use std::io::{self, Write};

use mcptest_catalog::doctor::{Authorization, DoctorReport};
use mcptest_catalog::lint::lines::Line;

use crate::markdown::{cell, plain, sentence};

/// The number of tools in a table; the others are summed in one row.
const MAX_ROWS: usize = 20;

/// The steps of an authorization that failed, and what to write into a suite.
fn write_steps(out: &mut dyn Write, authorization: &Authorization) -> io::Result<()> {
    for (number, step) in authorization.steps.iter().enumerate() {
        let (action, detail) = (sentence(&step.action), sentence(&step.detail));
        let number = number + 1;
        writeln!(out, "{number}. **{}** {action}: {detail}", step.outcome)?;
    }
    for line in &authorization.advice {
        writeln!(out, "- {}", sentence(line))?;
    }
    writeln!(out)
}

pub(super) fn render(report: &DoctorReport, out: &mut dyn Write) -> io::Result<()> {
    for server in &report.servers {
        writeln!(out, "## {}\n", plain(&server.name))?;
        if let Some(error) = &server.error {
            writeln!(out, "Does not start: {}\n", sentence(&error.message))?;
            if let Some(authorization) = &server.authorization {
                write_steps(out, authorization)?;
            }
            continue;
        }
        if let Some(revision) = &server.revision {
            writeln!(out, "Speaks {}.\n", plain(revision))?;
        }
        writeln!(
            out,
            "{} tools, {} tokens, {} of a context window of {}.{}\n",
            server.tools.len(),
            server.tokens,
            report.share(server.tokens),
            report.context_window,
            plain(&super::dollars(report, server.tokens, " "))
        )?;
        for problem in &server.problems {
            writeln!(
                out,
                "- **{}**: {}",
                problem.severity.as_str(),
                sentence(&problem.message)
            )?;
        }
        if !server.tools.is_empty() {
            if !server.problems.is_empty() {
                writeln!(out)?;
            }
            out.write_all(
                b"| tool | name | description | schema | sum |\n|---|---:|---:|---:|---:|\n",
            )?;
        }
        for tool in server.tools.iter().take(MAX_ROWS) {
            let price = tool.tokens;
            writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                cell(&tool.name),
                price.name,
                price.description,
                price.schema,
                tool.sum
            )?;
        }
        if let Some(rest) = server.tools.get(MAX_ROWS..).filter(|rest| !rest.is_empty()) {
            let sum: u64 = rest.iter().map(|tool| tool.sum).sum();
            writeln!(out, "| and {} more | | | | {sum} |", rest.len())?;
        }
        writeln!(out)?;
    }
    if let Some(lint) = &report.lint {
        writeln!(
            out,
            "## Findings\n\n{} critical, {} warnings, {} waived, {} clean tools.\n",
            lint.critical, lint.warnings, lint.waived, lint.clean
        )?;
        let rows: Vec<&Line> = lint
            .lines
            .iter()
            .filter(|line| line.waived.is_none())
            .collect();
        if !rows.is_empty() {
            out.write_all(b"| tool | rule | severity | finding | fix |\n|---|---|---|---|---|\n")?;
        }
        for line in rows {
            let fix = line.fix.as_deref().map_or_else(String::new, cell);
            let tools = match line.tools.as_slice() {
                [_] => cell(&super::tools(line)),
                several => format!(
                    "{}: {}",
                    plain(&super::tools(line)),
                    cell(several.first().map_or("", String::as_str))
                ),
            };
            writeln!(
                out,
                "| {tools} | {} | {} | {}{} | {fix} |",
                line.rule,
                line.severity.as_str(),
                sentence(&line.message),
                super::places(line)
            )?;
        }
        for text in super::strictness(report, lint)
            .into_iter()
            .chain(super::left_out(lint))
        {
            writeln!(out, "\n{}", sentence(&text))?;
        }
    }
    Ok(())
}
