//! The command line of `catalog`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::OUTPUT;
use super::{FormatArgs, OneServerArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest catalog save weather --output catalog.json
  mcptest catalog show weather
  mcptest diff catalog.json server:weather --suite mcptest.yml    what has changed since")]
pub struct CatalogCommandArgs {
    #[command(subcommand)]
    pub command: CatalogCommand,
}

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Save everything that a server lists, for `--tools-from FILE` of all commands.
    Save(CatalogSaveArgs),
    /// Show what a server lists: tools with their arguments, resources, prompts.
    Show(CatalogShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
SERVER is a server of the suite or of the client's configuration in the current folder, or of the one
given by --suite or --from; it can be left out if there is one only. The file is JSON: the result of
`tools/list` with the server's name, instructions, resources and prompts. Secrets are masked, entries
stay as they were sent, and the same server gives the same bytes.

Examples:
  mcptest catalog save weather --output catalog.json
  mcptest catalog save weather --from .mcp.json --output catalog.json
  mcptest catalog save --url http://127.0.0.1:3000/mcp --output catalog.json
  mcptest catalog save --output catalog.json -- npx -y @modelcontextprotocol/server-everything
  mcptest mock --tools-from catalog.json                          serve it")]
pub struct CatalogSaveArgs {
    /// The server: its name, or its address.
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
    /// The file to write; default: standard output.
    #[arg(long, short, value_name = "FILE", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub source: OneServerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
SERVER is found as by `catalog save`; it can also be a file that `catalog save` wrote, or a mock
manifest.

Examples:
  mcptest catalog show weather
  mcptest catalog show catalog.json
  mcptest catalog show --format json -- npx -y @modelcontextprotocol/server-everything")]
pub struct CatalogShowArgs {
    /// The server: its name or its address; or a file.
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
    #[command(flatten)]
    pub source: OneServerArgs,
    #[command(flatten)]
    pub how: FormatArgs,
}
