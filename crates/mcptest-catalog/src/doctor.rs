//! The findings of `mcptest doctor`: servers, their tools, token counts, similar names and lint.
//!
//! Pure: [`ServerReport`]s go in, [`DoctorReport::new`] adds the figures, and `mcptest-report`
//! renders the result.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use mcptest_trace::verdict::RunError;
use serde::Serialize;
use serde_json::Value;

use crate::lint::lines::{self, Line, Selection};
use crate::lint::security::{self, Listing};
use crate::lint::{self, Entry, Finding, Severity};
use crate::prices::{Prices, Usd};
use crate::similar_names::{self, SimilarNames, Similarity};
use crate::tokens::{self, Price};

/// The version of the JSON form of a [`DoctorReport`].
const SCHEMA_VERSION: u32 = 1;

/// The findings about all inspected catalogs.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DoctorReport {
    /// The version of this format.
    pub schema_version: u32,
    /// Each server or file.
    pub servers: Vec<ServerReport>,
    /// The tokens of all tools together, sent each time they are offered.
    pub tokens: u64,
    /// The size of the context window that shares refer to.
    pub context_window: u64,
    /// The share of the context window that all tools take, in percent, rounded down to a tenth.
    pub context_percent: f64,
    /// The dollars that offering all tools once costs.
    pub dollars: Dollars,
    /// Tools with the same or nearly the same name.
    #[serde(rename = "look_alikes")]
    pub similar_names: Vec<SimilarNames>,
    /// The lint findings, if the lint ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lint: Option<LintReport>,
}

/// The dollars that a request pays for all tools together, by the price of input tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Dollars {
    /// The day of the built-in prices, `YYYY-MM-DD`.
    pub prices_of: &'static str,
    /// The dollars per request, for each model of the price table.
    pub per_request: BTreeMap<&'static str, f64>,
    /// The models that are shown to people.
    #[serde(skip)]
    pub shown: Vec<String>,
}

/// The models that are shown if none are named: one for each common level of prices.
pub const SHOWN_MODELS: [&str; 4] = [
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "gpt-6.1-terra",
    "gemini-3.5-flash-lite",
];

/// The number of requests that amounts for people refer to.
pub const REQUESTS: u64 = 1000;

impl Dollars {
    fn new(tokens: u64) -> Self {
        let amount = |model| Some((model, dollars(model, tokens)?.to_f64()));
        Self {
            prices_of: Prices::builtin().date(),
            per_request: Prices::models().filter_map(amount).collect(),
            shown: SHOWN_MODELS.map(str::to_owned).to_vec(),
        }
    }

    /// The dollars that this number of tokens costs in 1000 requests with a model, with two
    /// significant digits, such as `$0.30`; `None` if the model has no price.
    #[must_use]
    pub fn per_thousand(&self, model: &str, tokens: u64) -> Option<String> {
        let amount = dollars(model, tokens.saturating_mul(REQUESTS))?.to_f64();
        Some(format!("${}", significant(amount)))
    }
}

fn dollars(model: &str, tokens: u64) -> Option<Usd> {
    let price = Prices::builtin().find(model)?;
    Some(price.most(tokens, 0))
}

/// A number with two decimals, and as many more as two significant digits take.
fn significant(value: f64) -> String {
    let (mut decimals, mut bound) = (2, 0.1);
    while value > 0.0 && value < bound && decimals < 9 {
        decimals += 1;
        bound /= 10.0;
    }
    format!("{value:.decimals$}")
}

/// The authorization of a server, step by step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Authorization {
    /// The token in use, without the token itself: grant, issuer, client, scopes, end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Value>,
    /// The steps, in order.
    pub steps: Vec<AuthorizationStep>,
    /// Lines to write into a suite.
    pub advice: Vec<String>,
}

/// One step of an authorization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuthorizationStep {
    /// The action, such as a request.
    pub action: String,
    /// `ok`, `skipped` (another way was tried) or `failed`.
    pub outcome: &'static str,
    /// The answer.
    pub detail: String,
}

/// The findings about one server or one catalog file.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ServerReport {
    /// The name in the report.
    pub name: String,
    /// The catalog file, unless the catalog is from a live server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// True if the server starts; `None` for a file.
    pub startable: Option<bool>,
    /// The reason why it does not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Its authorization, if it asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Authorization>,
    /// The negotiated protocol revision.
    pub revision: Option<String>,
    /// The server's own name and version.
    pub server_info: Option<Value>,
    /// The advertised capabilities.
    pub capabilities: Vec<Capability>,
    /// Defects of the server.
    pub problems: Vec<ServerProblem>,
    /// The tokens of all its tools.
    pub tokens: u64,
    /// Its tools, the most expensive first.
    pub tools: Vec<ToolPrice>,
    /// Response times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<ServerTiming>,
    /// The tools as listed.
    #[serde(skip)]
    pub listed: Vec<Value>,
    /// The instructions for clients.
    #[serde(skip)]
    pub instructions: Option<Value>,
    /// The prompts as listed.
    #[serde(skip)]
    pub prompts: Vec<Value>,
    /// The resources and their templates as listed.
    #[serde(skip)]
    pub resources: Vec<Value>,
    /// The content of the file, to find lines in.
    #[serde(skip)]
    pub text: Option<String>,
    /// The first line of each tool name in the file.
    #[serde(skip)]
    lines: OnceLock<BTreeMap<String, usize>>,
}

/// A capability that a server advertises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// True if its list request was answered; `None` if there is no such request.
    pub answered: Option<bool>,
    /// The number of entries in the list.
    pub entries: Option<usize>,
}

/// A defect of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerProblem {
    /// Its severity.
    pub severity: Severity,
    /// Its kind.
    pub kind: String,
    /// Its description.
    pub message: String,
}

impl ServerProblem {
    /// A list that the server advertises and does not give.
    #[must_use]
    pub fn missing_list(message: String) -> Self {
        Self {
            severity: Severity::Critical,
            kind: MISSING_LIST.to_owned(),
            message,
        }
    }

    /// Returns true for a list that the server advertises and does not give.
    #[must_use]
    pub fn is_missing_list(&self) -> bool {
        self.kind == MISSING_LIST
    }
}

/// The kind of a list that is missing.
const MISSING_LIST: &str = "capability_not_answered";

/// The response times of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ServerTiming {
    /// From the start to the first answer.
    pub handshake_ms: u64,
    /// For all pages of the tool list.
    pub list_ms: u64,
}

/// A tool and its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolPrice {
    /// The tool.
    pub name: String,
    /// The tokens of its parts.
    pub tokens: Price,
    /// Their sum.
    pub sum: u64,
}

/// The lint findings.
#[derive(Debug, Clone, Serialize)]
pub struct LintReport {
    /// The number of critical findings that count.
    pub critical: usize,
    /// The number of warnings that count.
    pub warnings: usize,
    /// The number of findings that a waiver covers.
    pub waived: usize,
    /// The number of tools without a finding.
    pub clean: usize,
    /// Every finding, and a pass for each clean tool.
    pub findings: Vec<Finding>,
    /// The findings as they are shown to people, the most important first.
    pub lines: Vec<Line>,
    /// The choice of lines.
    #[serde(skip)]
    pub selection: Selection,
}

impl ServerReport {
    /// A report without any findings.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            file: None,
            startable: None,
            error: None,
            authorization: None,
            revision: None,
            server_info: None,
            capabilities: Vec::new(),
            problems: Vec::new(),
            tokens: 0,
            tools: Vec::new(),
            timing: None,
            listed: Vec::new(),
            instructions: None,
            prompts: Vec::new(),
            resources: Vec::new(),
            text: None,
            lines: OnceLock::new(),
        }
    }

    /// Everything that it lists, for the rules on texts.
    #[must_use]
    pub fn listing<'a>(&'a self, server: Option<&'a str>) -> Listing<'a> {
        Listing {
            server,
            tools: &self.listed,
            instructions: self.instructions.as_ref(),
            prompts: &self.prompts,
            resources: &self.resources,
        }
    }

    /// Sets the tool list and counts its tokens.
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
        // Stable: equal tools keep the order of the list.
        self.tools.sort_by_key(|tool| std::cmp::Reverse(tool.sum));
        self.listed = listed;
    }

    /// The line of the file with the first occurrence of a tool's name, from 1.
    #[must_use]
    pub fn line_of(&self, tool: &str) -> usize {
        // Called for every finding, so the file is searched once.
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
    /// Computes the figures over all servers; with `lint`, applies the lint rules.
    #[must_use]
    pub fn new(servers: Vec<ServerReport>, context_window: u64, lint: bool) -> Self {
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
        Self {
            schema_version: SCHEMA_VERSION,
            tokens,
            context_window,
            context_percent: tenths_of_percent(tokens, context_window) as f64 / 10.0,
            dollars: Dollars::new(tokens),
            similar_names: similar_names::find(&names),
            lint: lint.then(|| LintReport::new(findings(&servers))),
            servers,
        }
    }

    /// Returns true if a server does not start.
    #[must_use]
    pub fn has_unreachable_server(&self) -> bool {
        self.servers
            .iter()
            .any(|server| server.startable == Some(false))
    }

    /// Returns true if a problem or finding has at least this severity, or if two tools of one
    /// server have the same name.
    #[must_use]
    pub fn has_defects(&self, at_least: Severity) -> bool {
        let problem = self
            .servers
            .iter()
            .flat_map(|server| &server.problems)
            .any(|problem| problem.severity >= at_least);
        let finding = self
            .lint
            .iter()
            .flat_map(|lint| &lint.findings)
            .any(|finding| finding.counts() && finding.severity >= at_least);
        let duplicate = self
            .similar_names
            .iter()
            .any(|group| group.kind == Similarity::DuplicateOnOneServer);
        problem || finding || duplicate
    }

    /// The server that a finding refers to.
    #[must_use]
    pub fn server_of(&self, finding: &Finding) -> Option<&ServerReport> {
        self.server_named(finding.server.as_deref())
    }

    /// The server with this name; the only one if none is given.
    #[must_use]
    pub fn server_named(&self, name: Option<&str>) -> Option<&ServerReport> {
        match name {
            Some(name) => self.servers.iter().find(|server| server.name == name),
            None => self.servers.first(),
        }
    }

    /// The share of the context window that this number of tokens takes, such as `1.2 %`; below
    /// one percent with two significant digits, such as `0.046 %`.
    #[must_use]
    pub fn share(&self, tokens: u64) -> String {
        let tenths = tenths_of_percent(tokens, self.context_window);
        if tenths >= 10 {
            return format!("{}.{} %", tenths / 10, tenths % 10);
        }
        // Rounded down, like the tenths.
        let window = u128::from(self.context_window.max(1));
        let (mut decimals, mut scale) = (2, 100_u128);
        let digits = |scale: u128| u128::from(tokens) * 100 * scale / window;
        while tokens > 0 && digits(scale) < 10 && decimals < 9 {
            decimals += 1;
            scale *= 10;
        }
        format!("0.{:0decimals$} %", digits(scale))
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
            lines: Vec::new(),
            selection: Selection::default(),
        };
        report.recount();
        report
    }

    /// Adds findings of another source. [`LintReport::recount`] counts them.
    pub fn add(&mut self, findings: Vec<Finding>) {
        self.findings.extend(findings);
        lint::drop_passes(&mut self.findings);
    }

    /// Counts again and makes the lines again, after waivers were applied to the findings or the
    /// selection was changed.
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
        self.lines = lines::lines(&self.findings, &self.selection);
    }

    /// The number of tools that were linted.
    #[must_use]
    pub fn tools(&self) -> usize {
        let mut tools: Vec<_> = self
            .findings
            .iter()
            .filter(|finding| finding.entry == Entry::Tool)
            .map(|finding| (&finding.server, finding.index))
            .collect();
        tools.sort();
        tools.dedup();
        tools.len()
    }
}

/// The listings of servers. They have names if there are several.
#[must_use]
pub fn listings(servers: &[ServerReport]) -> Vec<Listing<'_>> {
    let several = servers.len() > 1;
    servers
        .iter()
        .map(|server| server.listing(several.then_some(server.name.as_str())))
        .collect()
}

/// All findings, server by server: those of tools, then those of texts.
fn findings(servers: &[ServerReport]) -> Vec<Finding> {
    let listings = listings(servers);
    let mut texts = security::lint(&listings);
    let mut findings = Vec::new();
    for listing in &listings {
        let (own, others) = texts
            .into_iter()
            .partition(|finding: &Finding| finding.server.as_deref() == listing.server);
        texts = others;
        findings.extend(lint::lint(listing.server, listing.tools));
        findings.extend::<Vec<Finding>>(own);
    }
    lint::drop_passes(&mut findings);
    findings
}

/// Tenths of a percent, rounded down.
fn tenths_of_percent(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 1000 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(listed: Value, lint: bool) -> DoctorReport {
        let mut server = ServerReport::new("weather");
        server.set_tools(listed.as_array().cloned().unwrap_or_default());
        DoctorReport::new(vec![server], 1000, lint)
    }

    #[test]
    fn tools_are_sorted_by_tokens_and_summed() {
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
        assert!(!report.has_defects(Severity::Warning));
        assert!(!report.has_unreachable_server());
        assert_eq!(report.share(12), "1.2 %");
    }

    #[test]
    fn small_shares_and_amounts_keep_two_significant_digits() {
        let window = |window: u64| DoctorReport::new(Vec::new(), window, false);
        for (window_size, tokens, wanted) in [
            (200_000, 59, "0.029 %"),
            (200_000, 92, "0.046 %"),
            (1_000_000, 4, "0.00040 %"),
            (200_000, 1_999, "0.99 %"),
            (200_000, 2_000, "1.0 %"),
            (200_000, 0, "0.00 %"),
            (1, u64::MAX, "1844674407370955161.5 %"),
        ] {
            assert_eq!(window(window_size).share(tokens), wanted, "{tokens}");
        }
        let dollars = window(1).dollars;
        let per_thousand = |tokens| dollars.per_thousand("claude-opus-4", tokens);
        assert_eq!(per_thousand(150).as_deref(), Some("$2.25"));
        assert_eq!(per_thousand(2).as_deref(), Some("$0.030"));
        assert_eq!(per_thousand(0).as_deref(), Some("$0.00"));
        assert_eq!(dollars.per_thousand("no-such-model", 1), None);
    }

    #[test]
    fn every_model_of_the_price_table_has_an_amount() {
        let dollars = report(json!([{"name": "a"}]), false).dollars;
        assert_eq!(dollars.per_request.len(), Prices::models().count());
        assert!(dollars.per_request.values().all(|amount| *amount > 0.0));
        for model in SHOWN_MODELS {
            assert!(dollars.per_request.contains_key(model), "{model}");
        }
    }

    #[test]
    fn defects_depend_on_the_severity() {
        let clean = json!([{
            "name": "now",
            "description": "Get the current time. Returns an RFC 3339 text.",
            "inputSchema": {"type": "object"},
            "annotations": {}
        }]);
        assert!(!report(clean.clone(), true).has_defects(Severity::Warning));
        let mut warned = clean;
        warned[0]["annotations"] = Value::Null;
        assert!(!report(warned.clone(), true).has_defects(Severity::Critical));
        assert!(report(warned.clone(), true).has_defects(Severity::Warning));
        warned[0]["description"] = "Time".into();
        assert!(report(warned, true).has_defects(Severity::Critical));
    }

    #[test]
    fn finds_lines_of_tools_in_json_and_yaml() {
        let lines = |text: &str, tools: &[&str]| -> Vec<usize> {
            let mut server = ServerReport::new("x");
            server.text = Some(text.to_owned());
            tools.iter().map(|tool| server.line_of(tool)).collect()
        };
        let json = "{\"tools\": [\n  {\n    \"name\": \"a\"\n  },\n  {\"name\": \"b\"}\n]}";
        assert_eq!(lines(json, &["a", "b", "c"]), [3, 5, 1]);
        let yaml = "mock_server:\n  tools:\n    - name: a\n    - name: \"b\"\n";
        assert_eq!(lines(yaml, &["a", "b"]), [3, 4]);
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
