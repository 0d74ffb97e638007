//! The command line of `doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::CatalogArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Tokens are counted with cl100k_base, over each tool's name, description, and input schema as compact
JSON.

The exit code is 1 for critical problems: a capability that is advertised but not served, a duplicate
tool name on one server, a critical lint finding; with --deny warning also for warnings. It is 2 if a
server does not start.

Without a source, the servers of mcptest.yaml or mcptest.yml are inspected.

Examples:
  mcptest doctor --lint-descriptions
  mcptest doctor -- npx -y @modelcontextprotocol/server-everything
  mcptest doctor --suite mcptest.yml --server weather --lint-descriptions
  mcptest doctor --url https://example.com/mcp --header 'Authorization: Bearer …'
  mcptest doctor --tools-from tools.json --lint-descriptions --all
  mcptest doctor --tools-from tools.json --rule SCH-004
  mcptest doctor --tools-from tools.json --lint-descriptions --deny warning
  mcptest doctor --tools-from tools.json --lint-descriptions --format sarif > mcptest.sarif
  mcptest doctor --tools-from tools.json --fix fixed.json      write the safe fixes and print a diff")]
pub struct DoctorArgs {
    #[command(flatten)]
    pub catalog: CatalogArgs,
    /// Size of the context window for percentages, in tokens.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub context_window: u64,
    /// Show the dollars that the tools cost with this model, such as gpt-4o. Repeatable. Default:
    /// four models of the price table; `--format json` has all of them.
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<String>,
    /// Apply the rules DESC-001 to DESC-013, SCH-001 to SCH-004, TOOL-001 and TOOL-002 (see
    /// `mcptest explain`).
    #[arg(long)]
    pub lint_descriptions: bool,
    /// Show every finding, in one line per tool and rule. By default, findings that few authors act
    /// on are only counted, and SCH-001, SCH-002 and SCH-004 take one line per catalog.
    #[arg(long)]
    pub all: bool,
    /// Show only the findings of this rule, all of them. Repeatable.
    #[arg(long, value_name = "ID")]
    pub rule: Vec<String>,
    /// Fail for findings of this severity, too.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub deny: Option<Deny>,
    /// A YAML file of accepted findings, each with a reason. Default: mcptest-lint.yml, if it
    /// exists.
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
    /// Write the catalog with all safe fixes to a file, and print a diff. Needs one catalog.
    #[arg(long, value_name = "FILE")]
    pub fix: Option<PathBuf>,
    /// Output format. `sarif` and `github` contain only the lint findings.
    #[arg(long, value_enum, default_value_t = DoctorFormat::Pretty, value_name = "FORMAT")]
    pub format: DoctorFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    Warning,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    Pretty,
    Json,
    Sarif,
    Github,
    Markdown,
}
