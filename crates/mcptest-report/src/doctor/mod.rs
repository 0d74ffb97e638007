//! Renderers of `mcptest doctor`: one file per format.
//!
//! The findings are computed in `mcptest_catalog::doctor`.

mod github;
mod json;
mod markdown;
mod pretty;
mod sarif;

use std::io::{self, Write};

use mcptest_catalog::doctor::{DoctorReport, LintReport};
use mcptest_catalog::lint::Severity;
use mcptest_catalog::lint::lines::{self, Line};
use mcptest_json::text::one_line;
use serde_json::Value;

use crate::ExitCode;
use crate::reporter::Style;

/// The formats of `mcptest doctor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Pretty,
    /// Everything, for programs.
    Json,
    /// The findings, for code scanning.
    Sarif,
    /// The findings as workflow commands of GitHub Actions.
    Github,
    /// For a comment on a pull request.
    Markdown,
}

impl Format {
    /// Returns true if it shows lint findings only.
    #[must_use]
    pub fn is_lint_only(self) -> bool {
        matches!(self, Self::Sarif | Self::Github)
    }
}

/// Writes a report in a format.
///
/// # Errors
/// `out` cannot be written.
pub fn render(
    format: Format,
    report: &DoctorReport,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Pretty => pretty::render(report, style, out),
        Format::Json => json::render(report, out),
        Format::Sarif => sarif::render(report, out),
        Format::Github => github::render(report, out),
        Format::Markdown => markdown::render(report, out),
    }
}

/// The dollars of 1000 requests that offer this number of tokens, for the models that are shown:
/// `$0.60 per 1000 requests with claude-opus-5-5, $0.30 with …`. Empty without models.
fn dollars(report: &DoctorReport, tokens: u64, before: &str) -> String {
    let dollars = &report.dollars;
    let amounts: Vec<String> = dollars
        .shown
        .iter()
        .filter_map(|model| {
            let amount = dollars.per_thousand(model, tokens)?;
            Some(format!("{amount} with {}", one_line(model)))
        })
        .collect();
    if amounts.is_empty() {
        return String::new();
    }
    format!(
        "{before}1000 requests with these tools: {}",
        amounts.join(", ")
    )
}

/// The tools of a line: the name of one, or the number of several.
fn tools(line: &Line) -> String {
    let server = line
        .server
        .as_ref()
        .map_or_else(String::new, |server| format!("{server}."));
    match line.tools.as_slice() {
        [one] => one_line(&format!("{server}{one}")),
        several => {
            let of = format!("{} of {} tools", several.len(), line.of_tools);
            let server = server.trim_end_matches('.');
            one_line(&match server {
                "" => of,
                server => format!("{server}, {of}"),
            })
        }
    }
}

/// The number of places of a line, if there are several on one tool: ` (3 places)`.
fn places(line: &Line) -> String {
    if line.count > line.tools.len() {
        format!(" ({} places)", line.count)
    } else {
        String::new()
    }
}

/// The findings on the strictness of schemas: one line per catalog, unless all are listed.
fn strictness(report: &DoctorReport, lint: &LintReport) -> Vec<String> {
    if lint.selection.all || !lint.selection.rules.is_empty() {
        return Vec::new();
    }
    let several = report.servers.len() > 1;
    let mut lines = Vec::new();
    for server in &report.servers {
        let name = several.then_some(server.name.as_str());
        let sums = lines::strictness(&lint.findings, name);
        if sums.is_empty() {
            continue;
        }
        let sums: Vec<String> = sums
            .iter()
            .map(|sum| {
                let tools = if sum.tools == 1 { "tool" } else { "tools" };
                let what = match sum.rule.as_str() {
                    "SCH-001" => "no `required` list",
                    "SCH-002" => "undeclared properties are accepted",
                    _ => "no upper bound",
                };
                format!(
                    "{} {} × in {} {tools} ({what})",
                    sum.rule, sum.count, sum.tools
                )
            })
            .collect();
        let name = name.map_or_else(String::new, |name| format!("{}: ", one_line(name)));
        lines.push(format!(
            "{name}strictness of schemas: {}; `--rule ID` lists them, `--fix FILE` writes safe fixes",
            sums.join(", ")
        ));
    }
    lines
}

/// The number of findings that no line shows.
fn left_out(lint: &LintReport) -> Option<String> {
    if !lint.selection.rules.is_empty() {
        return None;
    }
    let (findings, rules) = lines::left_out(&lint.findings, &lint.lines);
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    (findings > 0).then(|| {
        format!(
            "{findings} less important finding{} of {rules} rule{}: `--all` lists them",
            plural(findings),
            plural(rules)
        )
    })
}

/// The exit code of `mcptest doctor`: 2 if a server does not start, 1 for critical findings (with
/// `deny_warnings` also for warnings), 0 otherwise.
#[must_use]
pub fn exit_code(report: &DoctorReport, deny_warnings: bool) -> ExitCode {
    let at_least = if deny_warnings {
        Severity::Warning
    } else {
        Severity::Critical
    };
    if report.has_unreachable_server() {
        ExitCode::CouldNotRun
    } else if report.has_defects(at_least) {
        ExitCode::Failed
    } else {
        ExitCode::Passed
    }
}

/// A catalog as indented JSON. Characters that could control a terminal are written as JSON
/// escapes.
#[must_use]
pub fn catalog_json(listed: &[Value]) -> String {
    let text = format!("{:#}\n", serde_json::json!({ "tools": listed }));
    let mut out = String::with_capacity(text.len());
    let mut buffer = [0; 4];
    for character in text.chars() {
        let encoded: &str = character.encode_utf8(&mut buffer);
        if character == '\n' || one_line(encoded) == encoded {
            out.push(character);
        } else {
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use mcptest_catalog::doctor::ServerReport;
    use serde_json::json;

    use super::*;

    fn report(listed: Value, lint: bool) -> DoctorReport {
        let mut server = ServerReport::new("weather");
        server.file = Some("weather.json".to_owned());
        server.text = Some(format!("{listed:#}"));
        server.set_tools(listed.as_array().cloned().unwrap_or_default());
        DoctorReport::new(vec![server], 1000, lint)
    }

    fn rendered(format: Format, report: &DoctorReport) -> String {
        let mut out = Vec::new();
        render(format, report, Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn hostile() -> Value {
        json!([
            {"name": "a|b\u{1b}[31m::error::,x", "description": "<img src=x> | \u{202e}"},
            7,
            {
                "name": "now",
                "description": "Get the current time. Returns an RFC 3339 text.",
                "inputSchema": {"type": "object"},
                "annotations": {}
            }
        ])
    }

    #[test]
    fn exit_codes_follow_severity_and_reachability() {
        let mut tools = json!([{
            "name": "now",
            "description": "Get the current time. Returns an RFC 3339 text.",
            "inputSchema": {"type": "object"}
        }]);
        let warned = report(tools.clone(), true);
        assert_eq!(exit_code(&warned, false), ExitCode::Passed);
        assert_eq!(exit_code(&warned, true), ExitCode::Failed);
        tools[0]["description"] = "Time".into();
        let mut critical = report(tools, true);
        assert_eq!(exit_code(&critical, false), ExitCode::Failed);
        critical.servers[0].startable = Some(false);
        assert_eq!(exit_code(&critical, false), ExitCode::CouldNotRun);
    }

    #[test]
    fn hostile_text_is_escaped_in_every_format() {
        let report = report(hostile(), true);
        for format in [
            Format::Pretty,
            Format::Json,
            Format::Sarif,
            Format::Github,
            Format::Markdown,
        ] {
            let text = rendered(format, &report);
            assert!(!text.contains('\u{1b}'), "{format:?}\n{text}");
            if !matches!(format, Format::Json | Format::Sarif) {
                assert!(!text.contains('\u{202e}'), "{format:?}\n{text}");
            }
        }
        let github = rendered(Format::Github, &report);
        assert!(
            github.lines().all(
                |line| line.starts_with("::error file=") || line.starts_with("::warning file=")
            ),
            "{github}"
        );
        assert!(
            !github.lines().any(|line| line
                .split_once(" file=")
                .is_some_and(|(_, rest)| rest.matches("::").count() != 1)),
            "{github}"
        );
    }

    #[test]
    fn sarif_has_a_rule_and_a_place_for_every_result() {
        let sarif: Value =
            serde_json::from_str(&rendered(Format::Sarif, &report(hostile(), true))).unwrap();
        assert_eq!(sarif["version"], "2.1.0");
        let rules = sarif["runs"][0]["tool"]["driver"]["rules"]
            .as_array()
            .unwrap();
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        assert!(!results.is_empty());
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
            let place = &result["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], "weather.json");
            assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
        }
    }

    #[test]
    fn a_written_catalog_is_escaped_and_equal() {
        let listed = hostile().as_array().cloned().unwrap();
        let text = catalog_json(&listed);
        assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'));
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({ "tools": listed })
        );
    }
}
