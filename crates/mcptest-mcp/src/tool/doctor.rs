//! `doctor`: inspects servers and their tool catalogs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effects, Tool};
use crate::call::{Call, ToolError};
use crate::result_size::{self, RemainingSize};

pub(super) struct Doctor;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// File below the root folder: a `tools/list` response as JSON, or a mock manifest.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 1024), example = &"tools.json")]
    catalog: Option<String>,
    /// Suite whose servers are started. Needs `--allow-run`.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 1024), example = &"mcptest.yml")]
    suite: Option<String>,
    /// Only this server of the suite.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 200), example = &"weather")]
    server: Option<String>,
    /// Program of a server to start, with its arguments. Needs `--allow-run`.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(max = 4096)), example = ["python", "server.py"])]
    command: Vec<String>,
    /// Address of a server over HTTP. Needs `--allow-run`.
    #[serde(default)]
    #[schemars(
        with = "String",
        length(min = 1, max = 2048),
        regex(pattern = "^https?://"),
        example = &"http://127.0.0.1:8000/mcp"
    )]
    url: Option<String>,
    /// Show only the findings of these lint rules.
    #[serde(default)]
    #[schemars(length(max = 50), inner(length(max = 20)), example = ["DESC-009"])]
    rules: Vec<String>,
}

/// The state of servers and their catalogs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// True if there is no critical problem.
    healthy: bool,
    /// The servers, or catalogs.
    servers: Vec<Server>,
    /// The number of critical findings.
    critical: u64,
    /// The number of warnings.
    warnings: u64,
    /// The tokens that all tools take in a model's context.
    tokens: u64,
    /// The findings, critical ones first.
    findings: Vec<Finding>,
    /// The number of entries that did not fit.
    omitted: u64,
    /// The part that was left out, and the way to get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    notice: Option<String>,
}

/// A server, or a catalog.
#[derive(Debug, Serialize, JsonSchema)]
struct Server {
    /// Its name.
    name: String,
    /// True if it started. Absent for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    startable: Option<bool>,
    /// The revision of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    revision: Option<String>,
    /// The number of tools.
    tools: u64,
    /// The tokens of its tools.
    tokens: u64,
    /// The problems of the server.
    problems: Vec<String>,
}

/// A finding of a lint rule.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Finding {
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    tool: Option<String>,
    /// The rule, which the tool `explain` explains.
    rule: String,
    /// critical or warning.
    severity: String,
    /// The problem.
    message: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    suggestion: Option<String>,
    /// A line to paste.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    fix: Option<String>,
    /// The place in the tool, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    path: Option<String>,
}

/// The output of `mcptest doctor --format json`.
#[derive(Debug, Deserialize)]
struct Printed {
    servers: Vec<PrintedServer>,
    tokens: u64,
    lint: Option<PrintedLint>,
}

#[derive(Debug, Deserialize)]
struct PrintedServer {
    name: String,
    startable: Option<bool>,
    revision: Option<String>,
    #[serde(default)]
    problems: Vec<serde_json::Value>,
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    tools: Vec<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct PrintedLint {
    critical: u64,
    warnings: u64,
    findings: Vec<PrintedFinding>,
}

/// A finding, or the note that no rule fired for a tool.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PrintedFinding {
    Finding(Finding),
    Clean(serde::de::IgnoredAny),
}

impl Tool for Doctor {
    const NAME: &'static str = "doctor";
    const TITLE: &'static str = "Inspect servers and catalogs";
    const DESCRIPTION: &'static str = "Inspect an MCP server or a saved tool catalog: does it start \
        and keep to the protocol, what do its tools cost in tokens, which lint rules do names, \
        descriptions and schemas violate. Give one of `catalog`, `suite`, `command` and `url`; a \
        read-only server inspects catalogs only. Returns findings with the rule, the tool, a \
        suggestion and a fix. No tool of the inspected server is called.";
    type Args = Args;
    type Output = Output;

    fn effects(allow_run: bool) -> Effects {
        match allow_run {
            true => Effects::Connects,
            false => Effects::Reads,
        }
    }

    async fn call(args: Args, call: &Call<'_>) -> Result<Output, ToolError> {
        let mut argv = vec![
            "doctor".to_owned(),
            "--lint-descriptions".to_owned(),
            "--format=json".to_owned(),
        ];
        argv.extend(args.rules.iter().map(|rule| format!("--rule={rule}")));
        argv.extend(source(&args, call)?);
        let finished = call.mcptest(argv).await?;
        match serde_json::from_str::<Printed>(&finished.stdout) {
            Ok(printed) => Ok(output(printed, finished.code == Some(0))),
            Err(_) => Err(call.failure(&finished)),
        }
    }
}

/// The arguments that name the one source.
fn source(args: &Args, call: &Call<'_>) -> Result<Vec<String>, ToolError> {
    let given = [
        args.catalog.is_some(),
        args.suite.is_some() || args.server.is_some(),
        !args.command.is_empty(),
        args.url.is_some(),
    ];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(ToolError(
            "give one of `catalog` (a file), `suite`, `command` and `url`".to_owned(),
        ));
    }
    if let Some(catalog) = &args.catalog {
        return Ok(vec![format!("--tools-from={}", call.root.find(catalog)?)]);
    }
    if !call.options.allow_run {
        return Err(Call::not_allowed("to start a server or to connect to one"));
    }
    if let Some(url) = &args.url {
        return Ok(vec![format!("--url={url}")]);
    }
    if !args.command.is_empty() {
        let separator = std::iter::once("--".to_owned());
        return Ok(separator.chain(args.command.iter().cloned()).collect());
    }
    let mut argv = Vec::new();
    if let Some(suite) = &args.suite {
        argv.push(format!("--suite={}", call.root.find(suite)?));
    }
    if let Some(server) = &args.server {
        argv.push(format!("--server={server}"));
    }
    Ok(argv)
}

fn output(printed: Printed, healthy: bool) -> Output {
    let lint = printed.lint.unwrap_or(PrintedLint {
        critical: 0,
        warnings: 0,
        findings: Vec::new(),
    });
    let mut findings: Vec<Finding> = lint
        .findings
        .into_iter()
        .filter_map(|printed| match printed {
            PrintedFinding::Finding(finding) => Some(finding),
            PrintedFinding::Clean(_) => None,
        })
        .collect();
    findings.sort_by_key(|finding| finding.severity != "critical");
    let mut remaining = RemainingSize::beside(&"");
    let servers = remaining.fit(printed.servers.into_iter().map(|server| Server {
        name: result_size::short(&server.name),
        startable: server.startable,
        revision: server.revision,
        tools: server.tools.len() as u64,
        tokens: server.tokens,
        problems: server.problems.iter().take(20).map(words).collect(),
    }));
    let findings = remaining.fit(findings.into_iter().map(|finding| Finding {
        tool: finding.tool.as_deref().map(result_size::short),
        message: result_size::short(&finding.message),
        suggestion: finding.suggestion.as_deref().map(result_size::short),
        fix: finding.fix.as_deref().map(result_size::short),
        path: finding.path.as_deref().map(result_size::short),
        ..finding
    }));
    Output {
        healthy,
        servers,
        critical: lint.critical,
        warnings: lint.warnings,
        tokens: printed.tokens,
        findings,
        omitted: remaining.omitted,
        notice: (remaining.omitted > 0).then(|| {
            "some entries did not fit; repair the first ones and inspect again, or select `rules`"
                .to_owned()
        }),
    }
}

/// A problem in words.
fn words(problem: &serde_json::Value) -> String {
    let text = problem["message"].as_str().or_else(|| problem.as_str());
    result_size::short(&text.map_or_else(|| problem.to_string(), str::to_owned))
}
