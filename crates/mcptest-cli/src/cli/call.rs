//! The command line of `call`.

use clap::Args;

use super::shared::OUTPUT;
use super::{FormatArgs, OneServerArgs};

#[derive(Debug, Args)]
#[command(
    override_usage = "mcptest call [OPTIONS] [SERVER] <TOOL> [NAME=VALUE]... [-- <COMMAND>...]",
    after_help = "\
SERVER is a server of the suite or of the client's configuration in the current folder, or of the one
given by --suite or --from; with --url or a command after `--` there is none. Values have the type that
the tool's schema gives them: limit=5 is a number where the schema asks for one. filter.tag=new leads into an
object, tags=a tags=b makes a list, name:=JSON is JSON.

The exit code is 1 if the server answers with an error, and 2 if it does not answer or an argument
cannot be used.

Examples:
  mcptest call weather get_weather city=Paris
  mcptest call weather search query=rain limit=5 --json
  mcptest call weather search --args '{\"query\": \"rain\", \"limit\": 5}'
  mcptest call get_weather city=Paris --url http://127.0.0.1:3000/mcp
  mcptest call echo message=hello -- npx -y @modelcontextprotocol/server-everything"
)]
pub struct CallArgs {
    /// The server, the tool, and arguments as NAME=VALUE or NAME:=JSON.
    #[arg(value_name = "SERVER TOOL NAME=VALUE", required = true)]
    pub words: Vec<String>,
    /// Arguments as a JSON object; NAME=VALUE overrides them.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    #[command(flatten)]
    pub source: OneServerArgs,
    /// The same as `--format json`: the result as the server sent it.
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    #[command(flatten)]
    pub how: FormatArgs,
}
