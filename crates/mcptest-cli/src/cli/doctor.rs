//! The command line of `doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::CatalogArgs;
use super::shared::OUTPUT;

const LINT: &str = "Lint";

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
  mcptest doctor --url https://example.com/mcp                 explain what its authorization requires
  mcptest doctor --tools-from tools.json --lint-descriptions --all
  mcptest doctor --tools-from tools.json --rule SCH-004
  mcptest doctor --tools-from tools.json --lint-descriptions --deny warning
  mcptest doctor --tools-from tools.json --lint-descriptions --format sarif > mcptest.sarif
  mcptest doctor --suite mcptest.yml --pin mcptest-pin.json    report changes since the first use
  mcptest doctor --tools-from tools.json --fix fixed.json      write the safe fixes and print a diff")]
pub struct DoctorArgs {
    #[command(flatten)]
    pub catalog: CatalogArgs,
    /// Tokens of the context window.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub context_window: u64,
    /// Show what the tools cost with this model; repeatable.
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<String>,
    /// Apply the lint rules, which `mcptest explain` lists.
    #[arg(long, help_heading = LINT)]
    pub lint_descriptions: bool,
    /// Show every finding, in one line per tool and rule.
    #[arg(long, help_heading = LINT)]
    pub all: bool,
    /// Show only the findings of this rule; repeatable.
    #[arg(long, value_name = "ID", help_heading = LINT)]
    pub rule: Vec<String>,
    /// Fail for findings of this severity, too.
    #[arg(long, value_enum, value_name = "SEVERITY", help_heading = LINT)]
    pub deny: Option<Deny>,
    /// Accepted findings with reasons; default: mcptest-lint.yml.
    #[arg(long, value_name = "FILE", help_heading = LINT)]
    pub waivers: Option<PathBuf>,
    /// Pin the texts on first use, and report later changes.
    #[arg(long, value_name = "FILE", help_heading = LINT)]
    pub pin: Option<PathBuf>,
    /// Accept all changes: write the file of --pin again.
    #[arg(long, requires = "pin", help_heading = LINT)]
    pub update_pin: bool,
    /// Write the catalog with all safe fixes, and print a diff.
    #[arg(long, value_name = "FILE", help_heading = LINT)]
    pub fix: Option<PathBuf>,
    /// Output format: `pretty`, `json`, `sarif`, `github` or `markdown`.
    #[arg(long, help_heading = OUTPUT, value_enum, default_value_t = DoctorFormat::Pretty,
          value_name = "FORMAT", hide_default_value = true, hide_possible_values = true)]
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
