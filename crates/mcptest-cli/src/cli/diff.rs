//! The command line of `diff`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shared::{OUTPUT, http_header};
use super::{HttpHeader, ServerTimeoutArgs, UrlAuthArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Each side is a file (a captured `tools/list` response as JSON, or a mock manifest), an http:// or
https:// address, or `server:NAME` of the suite given by --suite or of the client's configuration given
by --from; instead of NEW, a command after `--` is started. Callers write arguments and read results: an input schema that accepts less breaks them,
and so does an output schema that allows more. The exit code is 1 if a change breaks callers, and 2
if a catalog cannot be read.

Examples:
  mcptest diff released.json current.json
  mcptest diff released.json -- npx -y my-server
  mcptest diff https://example.com/mcp http://127.0.0.1:3000/mcp --header 'Authorization: Bearer …'
  mcptest diff released.json server:weather --suite mcptest.yml
  mcptest diff released.json current.json --format markdown    for a pull request
  mcptest diff released.json current.json --format json")]
pub struct DiffArgs {
    /// The catalog before: a file, an address, or `server:NAME`.
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The catalog after: a file, an address, or `server:NAME`.
    #[arg(
        value_name = "NEW",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub new: Option<String>,
    /// The suite that defines `server:NAME`.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// The configuration of an MCP client that defines `server:NAME`.
    #[arg(long, value_name = "CONFIG", conflicts_with = "suite")]
    pub from: Option<PathBuf>,
    /// A header for every address, never printed; repeatable.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header)]
    pub header: Vec<HttpHeader>,
    #[command(flatten)]
    pub patience: ServerTimeoutArgs,
    #[command(flatten)]
    pub auth: UrlAuthArgs,
    /// The server whose catalog is NEW, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Output format.
    #[arg(long, help_heading = OUTPUT, value_enum, default_value_t = DiffFormat::Pretty, value_name = "FORMAT")]
    pub format: DiffFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    Pretty,
    Json,
    Markdown,
}
