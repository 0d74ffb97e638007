//! `pretty`: for people.

use std::fmt::Write as _;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Paint};
use mcptest_catalog::doctor::{Authorization, DoctorReport, LintReport, ServerReport};
use mcptest_catalog::lint::Severity;
use mcptest_catalog::lint::lines::Line;
use mcptest_catalog::similar_names::Similarity;
use mcptest_json::text::{lines, one_line, shorten};
use serde_json::Value;

use crate::reporter::Style;
use crate::reporter::terminal::paint;

/// The longest tool name that is shown in full.
const MAX_NAME: usize = 48;

/// The number of models with a column of dollars; the line above the table has all.
const MAX_MODELS: usize = 1;

pub(super) fn render(report: &DoctorReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(page(report, style).as_bytes())
}

// Writing to a String cannot fail.
fn page(report: &DoctorReport, style: Style) -> String {
    let mut out = String::new();
    for server in &report.servers {
        write_server(&mut out, server, report, style);
        out.push('\n');
    }
    if report.servers.len() > 1 {
        let _ = writeln!(
            out,
            "all together: {} tokens, {} of a context window of {}{}",
            report.tokens,
            report.share(report.tokens),
            report.context_window,
            super::dollars(report, report.tokens, ", ")
        );
    }
    for group in &report.similar_names {
        let what = match group.kind {
            Similarity::DuplicateOnOneServer => "the same name twice on one server",
            Similarity::DuplicateAcrossServers => "the same name on several servers",
            Similarity::NearDuplicate => "nearly the same name",
        };
        let tools: Vec<String> = group
            .tools
            .iter()
            .map(|(server, name)| one_line(&format!("{server}.{name}")))
            .collect();
        let _ = writeln!(out, "{what}: {}", tools.join(", "));
    }
    // Nothing was linted where no server started.
    let started = report.servers.iter().any(|server| server.error.is_none());
    if let Some(lint) = report.lint.as_ref().filter(|_| started) {
        if !report.similar_names.is_empty() || report.servers.len() > 1 {
            out.push('\n');
        }
        write_lint(&mut out, report, lint, style);
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}

/// The steps of an authorization that failed, and what to write into a suite.
fn write_steps(out: &mut String, authorization: &Authorization) {
    out.push_str("  authorization, step by step:\n");
    for (number, step) in authorization.steps.iter().enumerate() {
        let _ = writeln!(
            out,
            "  {:>3}. {:<8}{}",
            number + 1,
            step.outcome,
            one_line(&step.action)
        );
        let _ = writeln!(out, "               {}", one_line(&step.detail));
    }
    if !authorization.advice.is_empty() {
        out.push_str("  in the suite:\n");
    }
    for line in &authorization.advice {
        let _ = writeln!(out, "    {}", one_line(line));
    }
}

/// A token in one line.
fn token_line(token: &Value) -> String {
    let text = |key: &str| one_line(token.get(key).and_then(Value::as_str).unwrap_or_default());
    let scopes = token.get("scopes").and_then(Value::as_array);
    let scopes: Vec<&str> = scopes
        .map(|scopes| scopes.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let scopes = match scopes.as_slice() {
        [] => String::new(),
        scopes => format!(", scopes {}", one_line(&scopes.join(" "))),
    };
    let end = match token.get("expires_in").and_then(Value::as_u64) {
        Some(seconds) => format!(", for {seconds} s"),
        None => String::new(),
    };
    format!("{} at {}{scopes}{end}", text("grant"), text("issuer"))
}

/// The capabilities of a server, with the number of their entries where it is known.
fn capabilities(server: &ServerReport) -> String {
    let shown = server.capabilities.iter().map(|capability| {
        let mark = match (capability.answered, capability.entries) {
            (Some(false), _) => " (not answered)".to_owned(),
            (Some(true), Some(entries)) => format!(" ({entries})"),
            _ => String::new(),
        };
        format!("{}{mark}", one_line(&capability.name))
    });
    shown.collect::<Vec<String>>().join(", ")
}

fn write_server(out: &mut String, server: &ServerReport, report: &DoctorReport, style: Style) {
    let name = paint(style, Paint::new().bold(), &one_line(&server.name));
    let info = |key: &str| {
        let info = server.server_info.as_ref();
        info.and_then(|info| info.get(key)?.as_str()).unwrap_or("")
    };
    let program = one_line(format!("{} {}", info("name"), info("version")).trim());
    let _ = match (&server.file, program.is_empty()) {
        (Some(file), _) => writeln!(out, "{name}  (from {})", one_line(file)),
        (None, false) => writeln!(out, "{name}  ({program})"),
        (None, true) => writeln!(out, "{name}"),
    };
    if let Some(error) = &server.error {
        let _ = writeln!(
            out,
            "  does not start: {}: {}",
            error.kind.as_str(),
            indent(&lines(&error.message))
        );
        if let Some(authorization) = &server.authorization {
            write_steps(out, authorization);
        }
        return;
    }
    if let Some(revision) = &server.revision {
        let _ = writeln!(out, "  speaks        {}", one_line(revision));
    }
    if let Some(timing) = server.timing {
        let _ = writeln!(
            out,
            "  times         {} ms to the first answer, {} ms for the list of tools",
            timing.handshake_ms, timing.list_ms
        );
    }
    if let Some(token) = server
        .authorization
        .as_ref()
        .and_then(|authorization| authorization.token.as_ref())
    {
        let _ = writeln!(out, "  authorized    {}", token_line(token));
    }
    if !server.capabilities.is_empty() {
        let _ = writeln!(out, "  advertises    {}", capabilities(server));
    }
    for problem in &server.problems {
        let badge = severity(problem.severity, style);
        let _ = writeln!(out, "  {badge}  {}", indent(&lines(&problem.message)));
    }
    let plural = if server.tools.len() == 1 {
        "tool"
    } else {
        "tools"
    };
    let _ = writeln!(
        out,
        "  {} {plural}, {} tokens, {} of a context window of {}{}",
        server.tools.len(),
        server.tokens,
        report.share(server.tokens),
        report.context_window,
        super::dollars(report, server.tokens, "\n  ")
    );
    if !server.tools.is_empty() {
        write_tools(out, server, report);
    }
}

/// The table of a server's tools with their tokens.
fn write_tools(out: &mut String, server: &ServerReport, report: &DoctorReport) {
    let shown: Vec<String> = server
        .tools
        .iter()
        .map(|tool| shorten(&one_line(&tool.name), MAX_NAME))
        .collect();
    let width = shown
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(4);
    // Dollars are per 1000 requests, as in the line above the table.
    let models: Vec<&String> = report.dollars.shown.iter().take(MAX_MODELS).collect();
    let _ = write!(
        out,
        "    {:<width$}  {:>6}  {:>11}  {:>6}  {:>6}  {:>9}",
        "tool", "name", "description", "schema", "sum", "share"
    );
    for model in &models {
        let _ = write!(out, "  {:>8}", one_line(model));
    }
    out.push('\n');
    for (name, tool) in shown.iter().zip(&server.tools) {
        let price = tool.tokens;
        let _ = write!(
            out,
            "    {name:<width$}  {:>6}  {:>11}  {:>6}  {:>6}  {:>9}",
            price.name,
            price.description,
            price.schema,
            tool.sum,
            report.share(tool.sum)
        );
        for model in &models {
            let amount = report.dollars.per_thousand(model, tool.sum);
            let width = model.chars().count().max(8);
            let _ = write!(out, "  {:>width$}", amount.unwrap_or_default());
        }
        out.push('\n');
    }
}

fn write_lint(out: &mut String, report: &DoctorReport, lint: &LintReport, style: Style) {
    for line in &lint.lines {
        write_line(out, line, style);
    }
    if !lint.lines.is_empty() {
        out.push('\n');
    }
    for text in super::strictness(report, lint) {
        let _ = writeln!(out, "{text}");
    }
    if let Some(text) = super::left_out(lint) {
        let _ = writeln!(out, "{text}");
    }
    let _ = writeln!(
        out,
        "{} critical, {} {}, {} waived; {} of {} tools clean",
        lint.critical,
        lint.warnings,
        if lint.warnings == 1 {
            "warning"
        } else {
            "warnings"
        },
        lint.waived,
        lint.clean,
        lint.tools()
    );
}

/// Indents what belongs to the line above.
const INDENT: &str = "                    ";

/// The number of tools that a line of several tools names.
const MAX_TOOLS: usize = 5;

/// Writes one rule on one tool, or on several: the problem, and a fix for the worst place.
fn write_line(out: &mut String, line: &Line, style: Style) {
    let badge = match &line.waived {
        Some(_) => "waived  ".to_owned(),
        None => severity(line.severity, style),
    };
    let message = shorten(&one_line(&line.message), 200);
    let (tools, places) = (super::tools(line), super::places(line));
    let _ = writeln!(
        out,
        "{badge}  {:<8}  {}: {message}{places}",
        line.rule,
        paint(style, Paint::new().bold(), &tools)
    );
    if line.tools.len() > 1 {
        let shown: Vec<String> = line
            .tools
            .iter()
            .take(MAX_TOOLS)
            .map(|tool| shorten(&one_line(tool), MAX_NAME))
            .collect();
        let more = match line.tools.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(out, "{INDENT}{}{more}", shown.join(", "));
    }
    if let Some(reason) = &line.waived {
        let _ = writeln!(out, "{INDENT}because {}", shorten(&one_line(reason), 200));
    } else if let Some(fix) = &line.fix {
        let of = match line.tools.as_slice() {
            [first, _, ..] => format!(" for {}", shorten(&one_line(first), MAX_NAME)),
            _ => String::new(),
        };
        let _ = writeln!(out, "{INDENT}fix{of}: {}", one_line(fix));
    }
}

fn severity(severity: Severity, style: Style) -> String {
    let (word, colour) = match severity {
        Severity::Critical => ("CRITICAL", AnsiColor::Red),
        Severity::Warning => ("warning ", AnsiColor::Yellow),
        Severity::Pass => ("pass    ", AnsiColor::Green),
    };
    paint(
        style,
        Paint::new().fg_color(Some(colour.into())).bold(),
        word,
    )
}

/// Indents all lines but the first.
fn indent(text: &str) -> String {
    text.trim_end().replace('\n', "\n            ")
}
