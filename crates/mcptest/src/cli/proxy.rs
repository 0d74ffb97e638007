//! The command line of `proxy`.

use std::path::PathBuf;

use clap::Args;

use super::HttpHeader;
use super::shared::{http_header, http_url};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # as the server command of any agent:
  mcptest proxy --server files --record run.json -- npx -y some-server
  # afterwards:
  mcptest score suite.yml --trace run.json
  # connecting and listing work, the first two searches are lost:
  mcptest proxy --fault recover-after:2 --fault-tool search -- some-server
  # an agent that only speaks stdio, in front of a server over HTTP:
  mcptest proxy --record run.json --url https://example.com/mcp --header 'Authorization: Bearer …'
  # eight more tools to choose from, which nobody has:
  mcptest proxy --distractors 8 --server files --record run.json -- some-server")]
pub struct ProxyArgs {
    /// Where the calls are recorded, as a trace. The file is whole at every moment, even if the
    /// proxy is killed.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// What happens to calls: `none`, `hang`, `wedged`, `slow:<ms>`, `recover-after:<n>` or
    /// `reply-after-cancel:<ms>`. Nothing else is touched.
    #[arg(
        long,
        value_name = "KIND",
        default_value = "none",
        hide_default_value = true
    )]
    pub fault: mcptest_proxy::ProxyFault,
    /// Only calls of this tool are struck by the fault. May be given several times.
    #[arg(long, value_name = "TOOL")]
    pub fault_tool: Vec<String>,
    /// Put tools into the lists that the server does not have, and refuse their calls: so many, or
    /// those of a file that says what a `distractors:` block says.
    #[arg(long, value_name = "N|FILE")]
    pub distractors: Option<DistractorsFrom>,
    /// Fixes which distractors come and in which order tools are listed, before what the file says.
    /// Default: a seed made of `--test`.
    #[arg(long, value_name = "N", requires = "distractors")]
    pub seed: Option<u64>,
    /// What the trace calls the server.
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// The test that the trace belongs to.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// The number of the run that the trace is of, from 1. Each has distractors of its own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub run: Option<u32>,
    /// The address of a server over streamable HTTP, in place of a command. The client still speaks
    /// over stdio.
    #[arg(long, value_name = "URL", value_parser = http_url, conflicts_with = "command", required_unless_present = "command")]
    pub url: Option<String>,
    /// A header for `--url`. Its value is in no trace and no message. May be given several times.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header, requires = "url")]
    pub header: Vec<HttpHeader>,
    /// The server's program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Where distractors come from: a number of bundled tools, or a file with the block.
#[derive(Debug, Clone)]
pub enum DistractorsFrom {
    Count(u32),
    File(PathBuf),
}

impl std::str::FromStr for DistractorsFrom {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text
            .parse()
            .map_or_else(|_| Self::File(text.into()), Self::Count))
    }
}
