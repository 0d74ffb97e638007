//! The command line of `list`.

use std::path::PathBuf;

use clap::Args;

use super::{CatalogArgs, FormatArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
FILE is a suite, or the configuration of an MCP client: mcp.json, .mcp.json,
claude_desktop_config.json, .vscode/mcp.json, .cursor/mcp.json, .gemini/settings.json,
mcp_config.json (Windsurf), .codex/config.toml. Without any source: mcptest.yaml, mcptest.yml, or the
configuration in the current folder. The exit code is 2 if a server does not start.

Examples:
  mcptest list
  mcptest list .mcp.json
  mcptest list mcptest.yml --server weather --format json
  mcptest list --url http://127.0.0.1:3000/mcp
  mcptest list -- npx -y @modelcontextprotocol/server-everything")]
pub struct ListArgs {
    /// A suite, or the configuration of an MCP client.
    #[arg(value_name = "FILE", conflicts_with_all = ["suite", "from"])]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub catalog: CatalogArgs,
    #[command(flatten)]
    pub how: FormatArgs,
}
