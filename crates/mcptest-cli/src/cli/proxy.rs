//! The command line of `proxy`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{http_header, http_url};
use super::{AttackArgs, HttpHeader, UrlAuthArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Faults: `none`, `hang`, `wedged`, `slow:<ms>`, `recover-after:<n>`, `reply-after-cancel:<ms>`. Messages
other than calls are relayed unchanged. The file of --distractors has the contents of a
`distractors:` block. With --url, the client still uses stdio.

Examples:
  # as the server command of any agent:
  mcptest proxy --server files --record run.json -- npx -y some-server
  # afterwards:
  mcptest score suite.yml --trace run.json
  # connecting and listing work, the first two searches fail:
  mcptest proxy --fault recover-after:2 --fault-tool search -- some-server
  # for an agent that supports only stdio, with a server over HTTP:
  mcptest proxy --record run.json --url https://example.com/mcp --header 'Authorization: Bearer …'
  # for one that requires a login (before: `mcptest auth login --url https://example.com/mcp`):
  mcptest proxy --record run.json --url https://example.com/mcp
  # eight additional tools that the server does not have:
  mcptest proxy --distractors 8 --server files --record run.json -- some-server")]
pub struct ProxyArgs {
    /// File for the recorded calls, as a trace; complete at any moment.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Fault of calls: `none`, `hang`, `slow:<ms>`, …; see below.
    #[arg(
        long,
        value_name = "KIND",
        default_value = "none",
        hide_default_value = true
    )]
    pub fault: mcptest_proxy::ProxyFault,
    /// Apply the fault only to calls of this tool; repeatable.
    #[arg(long, value_name = "TOOL")]
    pub fault_tool: Vec<String>,
    /// Add this number of bundled tools, or those of a file.
    #[arg(long, value_name = "N|FILE")]
    pub distractors: Option<DistractorsFrom>,
    /// Seed for distractors and their order; default: from `--test`.
    #[arg(long, value_name = "N", requires = "distractors")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub attacks: AttackArgs,
    /// The name of the server in the trace.
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// The test that the trace belongs to.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// The number of the run in the trace, from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub run: Option<u32>,
    /// Connect to a server of a running test, whose run listens on this socket. `mcptest run` gives
    /// agents this command; it is of no other use.
    #[arg(long, value_name = "SOCKET", hide = true, requires = "server", conflicts_with_all = ["command", "url", "record", "distractors"])]
    pub connect: Option<PathBuf>,
    /// The address of a server over HTTP, instead of a command.
    #[arg(long, value_name = "URL", value_parser = http_url, conflicts_with = "command", required_unless_present_any = ["command", "connect"])]
    pub url: Option<String>,
    /// A header for `--url`, never recorded or printed; repeatable.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header, requires = "url")]
    pub header: Vec<HttpHeader>,
    #[command(flatten)]
    pub auth: UrlAuthArgs,
    /// The server's program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The source of distractors: a number of bundled tools, or a file with the block.
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
