//! The command line of `mcp`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Tools: validate, run, explain, doctor, score, report. Without --allow-run, nothing is written, and only
mocks are started, with built-in or recorded models. The address of --http is printed on standard
error; its path is /mcp.

Examples:
  mcptest mcp                                              serve the current folder, read-only
  mcptest mcp --allow-run                                  also start what suites name
  mcptest mcp --root tests/mcp
  mcptest mcp --http 0
  claude mcp add mcptest -- mcptest mcp --allow-run        for Claude Code
  mcptest doctor --lint-descriptions -- mcptest mcp        inspect it")]
pub struct McpArgs {
    /// Confine all paths to this folder; default: the current one.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Allow calls to start servers and agents, and to keep a history.
    #[arg(long)]
    pub allow_run: bool,
    /// Serve streamable HTTP on this port, or loopback address.
    #[arg(long, value_name = "[HOST:]PORT", value_parser = loopback)]
    pub http: Option<SocketAddr>,
}

/// A port of 127.0.0.1, or a loopback address with a port.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let named = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    let address: SocketAddr = named
        .as_deref()
        .unwrap_or(text)
        .parse()
        .map_err(|_| "expected a port, or an address such as 127.0.0.1:8080".to_owned())?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(
        "there is no authorization, so only loopback addresses are served; put an authorizing \
         proxy in front of one"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_served() {
        for (text, address) in [
            ("0", "127.0.0.1:0"),
            ("8080", "127.0.0.1:8080"),
            ("localhost:80", "127.0.0.1:80"),
            ("127.0.0.2:80", "127.0.0.2:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(
                loopback(text).map(|found| found.to_string()).as_deref(),
                Ok(address),
                "{text}"
            );
        }
        for text in [
            "",
            "x",
            "70000",
            "0.0.0.0:80",
            "[::]:80",
            "192.168.0.1:80",
            "example.com:80",
        ] {
            assert!(loopback(text).is_err(), "{text}");
        }
    }
}
