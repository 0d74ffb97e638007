//! What `mcptest doctor` found, and how it is shown: one file per format.

mod diff;
mod github;
mod json;
mod markdown;
mod pretty;
mod sarif;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use mcptest_catalog::lint::{self, Finding, Severity};
use mcptest_catalog::similar_names::{self, SimilarNames, Similarity};
use mcptest_catalog::tokens::{self, Price};
use mcptest_trace::verdict::RunError;
use serde::Serialize;
use serde_json::Value;

pub use diff::unified_diff;
use mcptest_json::text::one_line;

use crate::ExitCode;
use crate::reporter::Style;

/// Everything about the catalogs that were looked at.
#[derive(Debug, Clone, Serialize)]
pub struct DoctorReport {
    /// The version of this format.
    pub schema_version: u32,
    /// Each server or file.
    pub servers: Vec<Checkup>,
    /// What all tools together cost, each time they are offered.
    pub tokens: u64,
    /// The context window that shares are of.
    pub context_window: u64,
    /// The share that all tools take, in percent, down to a tenth.
    pub context_percent: f64,
    /// Tools with the same name, or nearly.
    pub look_alikes: Vec<SimilarNames>,
    /// What the lint found, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lint: Option<LintReport>,
}

/// One server, or a file with a catalog.
#[derive(Debug, Clone, Serialize)]
pub struct Checkup {
    /// How the report calls it.
    pub name: String,
    /// The file that the catalog is from, if it is not from a live server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the server starts; nothing for a file.
    pub startable: Option<bool>,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// The protocol revision that it speaks.
    pub revision: Option<String>,
    /// Its name and version as it says.
    pub server_info: Option<Value>,
    /// What it advertises.
    pub capabilities: Vec<Capability>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// What all its tools cost.
    pub tokens: u64,
    /// Its tools, the dearest first.
    pub tools: Vec<ToolPrice>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<CheckupTiming>,
    /// The tools as listed.
    #[serde(skip)]
    pub listed: Vec<Value>,
    /// The text of the file, to find lines in.
    #[serde(skip)]
    pub text: Option<String>,
    /// Where the names of tools stand in it.
    #[serde(skip)]
    lines: OnceLock<BTreeMap<String, usize>>,
}

/// Something that a server advertises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// Whether its list was answered; nothing where there is no list to ask for.
    pub answered: Option<bool>,
    /// How many entries the list has.
    pub entries: Option<usize>,
}

/// Something that is wrong with a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How grave it is.
    pub severity: Severity,
    /// What kind of thing.
    pub kind: String,
    /// What exactly.
    pub message: String,
}

/// How long a server took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CheckupTiming {
    /// From the start to the first answer.
    pub handshake_ms: u64,
    /// For all pages of the list of tools.
    pub list_ms: u64,
}

/// A tool and what it costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolPrice {
    /// The tool.
    pub name: String,
    /// Tokens of its parts.
    pub tokens: Price,
    /// Their sum.
    pub sum: u64,
}

/// What the lint found.
#[derive(Debug, Clone, Serialize)]
pub struct LintReport {
    /// Critical findings that count.
    pub critical: usize,
    /// Warnings that count.
    pub warnings: usize,
    /// Findings that a waiver covers.
    pub waived: usize,
    /// Tools on which no rule fired.
    pub clean: usize,
    /// Every finding, and a pass for each clean tool.
    pub findings: Vec<Finding>,
}

impl Checkup {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            file: None,
            startable: None,
            error: None,
            revision: None,
            server_info: None,
            capabilities: Vec::new(),
            problems: Vec::new(),
            tokens: 0,
            tools: Vec::new(),
            timing: None,
            listed: Vec::new(),
            text: None,
            lines: OnceLock::new(),
        }
    }

    /// Takes over a list of tools and prices it.
    pub fn set_tools(&mut self, listed: Vec<Value>) {
        let prices = tokens::price_list(&listed);
        self.tools = listed
            .iter()
            .zip(prices)
            .enumerate()
            .map(|(index, (entry, tokens))| ToolPrice {
                name: lint::label(index, entry),
                tokens,
                sum: tokens.sum(),
            })
            .collect();
        self.tokens = self.tools.iter().map(|tool| tool.sum).sum();
        // The order of the list decides among equals.
        self.tools.sort_by_key(|tool| std::cmp::Reverse(tool.sum));
        self.listed = listed;
    }

    /// The line of the file where a tool's name stands first, from 1.
    fn line_of(&self, tool: &str) -> usize {
        // Looked up for every finding: the file is gone through once.
        let lines = self.lines.get_or_init(|| {
            let mut lines = BTreeMap::new();
            for (line, number) in self.text.iter().flat_map(|text| text.lines()).zip(1..) {
                if let Some(name) = name_in(line) {
                    lines.entry(name).or_insert(number);
                }
            }
            lines
        });
        lines.get(tool).copied().unwrap_or(1)
    }
}

/// The name in a line that begins with the key `name`, in JSON or YAML.
fn name_in(line: &str) -> Option<String> {
    let (before, after) = line.split_once("name")?;
    let is_key = before.chars().all(|one| "- {\"'[\t".contains(one));
    let value = after.trim_start_matches(['"', '\'']).trim_start();
    let value = value.strip_prefix(':').filter(|_| is_key)?.trim();
    if value.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
        return values.next()?.ok();
    }
    Some(value.trim_matches(['\'', ',', ' ']).to_owned())
}

impl DoctorReport {
    /// Draws the conclusions from what was found of each server. Without `lint`, the rules are not
    /// applied.
    #[must_use]
    pub fn conclude(servers: Vec<Checkup>, context_window: u64, lint: bool) -> Self {
        let tokens = servers.iter().map(|server| server.tokens).sum();
        let names: Vec<(String, String)> = servers
            .iter()
            .flat_map(|server| {
                let names = server
                    .listed
                    .iter()
                    .filter_map(|entry| entry.get("name")?.as_str());
                names.map(|name| (server.name.clone(), name.to_owned()))
            })
            .collect();
        let findings: Vec<Finding> = if lint {
            let several = servers.len() > 1;
            let named = |server: &Checkup| several.then(|| server.name.clone());
            servers
                .iter()
                .flat_map(|server| lint::lint(named(server).as_deref(), &server.listed))
                .collect()
        } else {
            Vec::new()
        };
        Self {
            schema_version: 1,
            tokens,
            context_window,
            context_percent: tenths(tokens, context_window) as f64 / 10.0,
            look_alikes: similar_names::find(&names),
            lint: lint.then(|| LintReport::new(findings)),
            servers,
        }
    }

    /// 2 for a server that does not start, 1 for what is critical (or denied), 0 otherwise.
    #[must_use]
    pub fn exit_code(&self, deny_warnings: bool) -> ExitCode {
        if self
            .servers
            .iter()
            .any(|server| server.startable == Some(false))
        {
            return ExitCode::CouldNotRun;
        }
        let least = if deny_warnings {
            Severity::Warning
        } else {
            Severity::Critical
        };
        let problem = self
            .servers
            .iter()
            .flat_map(|server| &server.problems)
            .any(|problem| problem.severity >= least);
        let finding = self
            .lint
            .iter()
            .flat_map(|lint| &lint.findings)
            .any(|finding| finding.counts() && finding.severity >= least);
        let duplicate = self
            .look_alikes
            .iter()
            .any(|group| group.kind == Similarity::DuplicateOnOneServer);
        if problem || finding || duplicate {
            ExitCode::Failed
        } else {
            ExitCode::Passed
        }
    }

    /// The server that a finding is about.
    fn server_of(&self, finding: &Finding) -> Option<&Checkup> {
        match &finding.server {
            Some(name) => self.servers.iter().find(|server| server.name == *name),
            None => self.servers.first(),
        }
    }
}

impl LintReport {
    /// Counts findings.
    #[must_use]
    pub fn new(findings: Vec<Finding>) -> Self {
        let mut report = Self {
            critical: 0,
            warnings: 0,
            waived: 0,
            clean: 0,
            findings,
        };
        report.recount();
        report
    }

    /// Counts again, after findings were waived.
    pub fn recount(&mut self) {
        let count = |takes: &dyn Fn(&Finding) -> bool| {
            self.findings
                .iter()
                .filter(|finding| takes(finding))
                .count()
        };
        let counted =
            |severity: Severity| count(&|finding| finding.counts() && finding.severity == severity);
        (self.critical, self.warnings) = (counted(Severity::Critical), counted(Severity::Warning));
        self.waived = count(&|finding| finding.waived.is_some());
        self.clean = count(&|finding| finding.severity == Severity::Pass);
    }
}

/// A catalog as indented JSON. Characters that could steer a terminal are written as escapes, which
/// mean the same to a parser.
#[must_use]
pub fn catalog_json(listed: &[Value]) -> String {
    let text = format!("{:#}\n", serde_json::json!({ "tools": listed }));
    let mut out = String::with_capacity(text.len());
    let mut buffer = [0; 4];
    for character in text.chars() {
        if character == '\n'
            || one_line(character.encode_utf8(&mut buffer)) == *character.encode_utf8(&mut [0; 4])
        {
            out.push(character);
        } else {
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
        }
    }
    out
}

/// Tenths of a percent, rounded down.
fn tenths(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 1000 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// `1.2 %`
fn percent(part: u64, whole: u64) -> String {
    let tenths = tenths(part, whole);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

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
    /// Whether it shows nothing but findings.
    #[must_use]
    pub fn is_lint_only(self) -> bool {
        matches!(self, Self::Sarif | Self::Github)
    }
}

/// Renders a report.
#[must_use]
pub fn render(format: Format, report: &DoctorReport, style: Style) -> String {
    match format {
        Format::Pretty => pretty::render(report, style),
        Format::Json => json::render(report),
        Format::Sarif => sarif::render(report),
        Format::Github => github::render(report),
        Format::Markdown => markdown::render(report),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(listed: Value, lint: bool) -> DoctorReport {
        let mut checkup = Checkup::new("weather");
        checkup.file = Some("weather.json".to_owned());
        checkup.text = Some(format!("{listed:#}"));
        checkup.set_tools(listed.as_array().cloned().unwrap_or_default());
        DoctorReport::conclude(vec![checkup], 1000, lint)
    }

    fn hostile() -> Value {
        json!([
            {"name": "a|b\u{1b}[31m::error::,x", "description": "<img src=x> | \u{202e}"},
            7,
            {"name": "now", "description": "Get the current time. Returns an RFC 3339 text.", "inputSchema": {"type": "object"}, "annotations": {}}
        ])
    }

    #[test]
    fn the_dearest_tool_comes_first_and_sums_hold() {
        let report = report(
            json!([{"name": "a"}, {"name": "b", "description": "Get the weather of a city."}]),
            false,
        );
        let server = &report.servers[0];
        assert_eq!(server.tools[0].name, "b");
        assert_eq!(
            report.tokens,
            server.tools.iter().map(|tool| tool.sum).sum::<u64>()
        );
        assert!(report.lint.is_none());
        assert_eq!(report.exit_code(true), ExitCode::Passed);
    }

    #[test]
    fn what_is_critical_fails_and_warnings_do_if_denied() {
        let clean = json!([{"name": "now", "description": "Get the current time. Returns an RFC 3339 text.", "inputSchema": {"type": "object"}, "annotations": {}}]);
        assert_eq!(
            report(clean.clone(), true).exit_code(true),
            ExitCode::Passed
        );
        let mut warned = clean;
        warned[0]["annotations"] = Value::Null;
        assert_eq!(
            report(warned.clone(), true).exit_code(false),
            ExitCode::Passed
        );
        assert_eq!(
            report(warned.clone(), true).exit_code(true),
            ExitCode::Failed
        );
        warned[0]["description"] = "Time".into();
        assert_eq!(report(warned, true).exit_code(false), ExitCode::Failed);
    }

    #[test]
    fn no_format_lets_hostile_text_through() {
        let report = report(hostile(), true);
        for format in [
            Format::Pretty,
            Format::Json,
            Format::Sarif,
            Format::Github,
            Format::Markdown,
        ] {
            let text = render(format, &report, Style::default());
            assert!(!text.contains('\u{1b}'), "{format:?}\n{text}");
            if !matches!(format, Format::Json | Format::Sarif) {
                assert!(!text.contains('\u{202e}'), "{format:?}\n{text}");
            }
        }
        let github = render(Format::Github, &report, Style::default());
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
        let sarif: Value = serde_json::from_str(&render(
            Format::Sarif,
            &report(hostile(), true),
            Style::default(),
        ))
        .unwrap();
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
    fn a_written_catalog_is_harmless_and_the_same() {
        let listed = hostile().as_array().cloned().unwrap();
        let text = catalog_json(&listed);
        assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'));
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({ "tools": listed })
        );
    }

    #[test]
    fn lines_of_tools_are_found_in_both_kinds_of_file() {
        let mut checkup = Checkup::new("x");
        checkup.text = Some(
            "{\"tools\": [\n  {\n    \"name\": \"a\"\n  },\n  {\"name\": \"b\"}\n]}".to_owned(),
        );
        assert_eq!(
            (
                checkup.line_of("a"),
                checkup.line_of("b"),
                checkup.line_of("c")
            ),
            (3, 5, 1)
        );
        let mut checkup = Checkup::new("x");
        checkup.text =
            Some("mock_server:\n  tools:\n    - name: a\n    - name: \"b\"\n".to_owned());
        assert_eq!((checkup.line_of("a"), checkup.line_of("b")), (3, 4));
        assert_eq!(name_in("  - name: 'it is'").as_deref(), Some("it is"));
        assert_eq!(
            name_in("{\"name\": \"a\\\"b\", \"title\": \"c\"},").as_deref(),
            Some("a\"b")
        );
        for no_name in [
            "",
            "title: name",
            "names: a",
            "\"name\": \"broken",
            "rename: a",
        ] {
            assert_eq!(name_in(no_name), None, "{no_name}");
        }
    }
}
