//! The command line of `auth`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared::{SERVERS, http_url};
use super::{FormatArgs, ServerTimeoutArgs, UrlAuthArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Logins are for servers with `auth: { type: authorization_code }` in a suite, and for addresses. Their
tokens are in one encrypted file; `mcptest auth status` shows where, and where its key is. Variables:
MCPTEST_AUTH_DIR (the folder), MCPTEST_AUTH_PASSPHRASE (derive the key from it), MCPTEST_AUTH_KEYCHAIN=0
(do not ask the system's keychain).

Examples:
  mcptest auth login calendar               a server of mcptest.yml
  mcptest auth login --url https://example.com/mcp
  mcptest auth status
  mcptest auth logout calendar")]
pub struct AuthArgs {
    #[command(subcommand)]
    pub command: AuthCommand,
}

#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Log in to a server in a browser, and keep its tokens.
    Login(LoginArgs),
    /// List the logins, without their tokens.
    Status(StatusArgs),
    /// Revoke and delete the tokens of a login.
    Logout(LogoutArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The address of the login page is printed and opened in a browser. Its answer arrives at an address of
this machine. If the browser is on another machine, its last page cannot be shown there: copy the
address of that page and paste it here.

Examples:
  mcptest auth login calendar
  mcptest auth login calendar --suite suites/calendar.yml --scope calendar.write
  mcptest auth login --url https://example.com/mcp --no-browser")]
pub struct LoginArgs {
    /// A server of the suite.
    #[arg(
        value_name = "SERVER",
        required_unless_present = "url",
        conflicts_with = "url"
    )]
    pub server: Option<String>,
    /// The suite; default: mcptest.yml.
    #[arg(long, value_name = "FILE", conflicts_with = "url", help_heading = SERVERS)]
    pub suite: Option<PathBuf>,
    /// The address of a server over HTTP.
    #[arg(long, value_name = "URL", value_parser = http_url, help_heading = SERVERS)]
    pub url: Option<String>,
    #[command(flatten)]
    pub patience: ServerTimeoutArgs,
    /// Print the address of the login page, and open no browser.
    #[arg(long)]
    pub no_browser: bool,
    #[command(flatten)]
    pub auth: UrlAuthArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest auth status
  mcptest auth status --format json")]
pub struct StatusArgs {
    #[command(flatten)]
    pub how: FormatArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest auth logout calendar
  mcptest auth logout --url https://example.com/mcp
  mcptest auth logout --all")]
pub struct LogoutArgs {
    /// A server of the suite.
    #[arg(value_name = "SERVER", required_unless_present_any = ["url", "all"], conflicts_with_all = ["url", "all"])]
    pub server: Option<String>,
    /// The suite; default: mcptest.yml.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "all"], help_heading = SERVERS)]
    pub suite: Option<PathBuf>,
    /// The address of a server over HTTP.
    #[arg(long, value_name = "URL", value_parser = http_url, conflicts_with = "all", help_heading = SERVERS)]
    pub url: Option<String>,
    /// End all logins.
    #[arg(long)]
    pub all: bool,
}
