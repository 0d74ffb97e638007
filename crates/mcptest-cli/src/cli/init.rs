//! The command line of `init`.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};

use super::shared::{OUTPUT, SERVERS, http_header, http_url};
use super::{HttpHeader, ServerTimeoutArgs, UrlAuthArgs};

#[derive(Debug, Clone, Args)]
#[command(
    override_usage = "mcptest init [OPTIONS] [DIR] [--command <CMD>... | --url <URL> | --from <FILE>]",
    after_help = "\
It starts the server, captures its tools, calls those that only read, and writes a suite with a direct
test per call and a selection test per tool, a mock of the server, an editor schema, .gitignore and a
CI workflow. On a terminal it asks for what is not given. What it writes passes `mcptest run` immediately,
without a key of a model. Values of variables in a configuration become ${NAME}.

FILE is the configuration of an MCP client (mcp.json, .mcp.json, claude_desktop_config.json,
.vscode/mcp.json, .cursor/mcp.json, .gemini/settings.json, mcp_config.json, .codex/config.toml) or an
entry point: server.py, src/index.ts, dist/index.js, package.json, pyproject.toml. The words after
--command end at the next option of init; after `--` everything is the command.

The exit code is 2 if a server does not start; nothing is written then.

Examples:
  mcptest init                                               on a terminal: it asks
  mcptest init --command python server.py
  mcptest init --from .mcp.json --server github --ci gitlab
  mcptest init --url http://127.0.0.1:3000/mcp --attacks --yes
  mcptest init tests/mcp --yes -- npx -y @modelcontextprotocol/server-everything"
)]
pub struct InitArgs {
    /// The folder to write to; default: the current one.
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The command that starts the server, or an entry point.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, help_heading = SERVERS)]
    pub command: Vec<String>,
    /// The address of a server over HTTP.
    #[arg(long, value_name = "URL", value_parser = http_url, help_heading = SERVERS)]
    pub url: Option<String>,
    /// A header for `--url`, never written; repeatable.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header, help_heading = SERVERS)]
    pub header: Vec<HttpHeader>,
    /// The configuration of an MCP client, or an entry point.
    #[arg(long, value_name = "FILE", help_heading = SERVERS)]
    pub from: Option<PathBuf>,
    /// Only this server of the configuration; repeatable.
    #[arg(long, value_name = "NAME", help_heading = SERVERS)]
    pub server: Vec<String>,
    /// The command that starts the server.
    #[arg(last = true, value_name = "COMMAND", help_heading = SERVERS)]
    pub last: Vec<String>,
    #[command(flatten)]
    pub patience: ServerTimeoutArgs,
    #[command(flatten)]
    pub auth: UrlAuthArgs,
    /// The name of the suite, and of its server if there is one.
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    pub name: Option<String>,
    /// `github`, `gitlab` or `none`; default: by the repository.
    #[arg(long, value_name = "CI", value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    pub ci: Option<CiArg>,
    /// Tools to call: `read-only` (default), `all` or `none`.
    #[arg(long, value_name = "TOOLS", value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    pub call: Option<CallArg>,
    /// Compare the answers of direct tests with snapshots.
    #[arg(long, help_heading = OUTPUT)]
    pub snapshots: bool,
    /// Add the starter pack of attacks.
    #[arg(long, help_heading = OUTPUT)]
    pub attacks: bool,
    /// Replace files that exist.
    #[arg(long, help_heading = OUTPUT)]
    pub force: bool,
    /// Ask nothing: take the defaults.
    #[arg(long, help_heading = OUTPUT)]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CiArg {
    Github,
    Gitlab,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CallArg {
    ReadOnly,
    All,
    None,
}

/// The options again, for those that follow a command.
#[derive(Debug, Parser)]
#[command(name = "mcptest init")]
struct Options {
    #[command(flatten)]
    args: InitArgs,
}

impl InitArgs {
    /// The arguments, with the options that follow the words of `--command`. Clap takes all words
    /// after an option that may begin with a hyphen as its values.
    ///
    /// # Errors
    /// An error in those options.
    pub fn settled(&self) -> Result<Self, clap::Error> {
        let mut settled = self.clone();
        let parser = Options::command();
        let known: Vec<&str> = parser
            .get_arguments()
            .filter_map(clap::Arg::get_long)
            .filter(|name| !["command", "help", "version"].contains(name))
            .collect();
        let is_option = |word: &String| {
            let name = word.strip_prefix("--").map(|rest| {
                let (name, _) = rest.split_once('=').unwrap_or((rest, ""));
                name
            });
            name.is_some_and(|name| known.contains(&name))
        };
        let Some(at) = settled.command.iter().position(is_option) else {
            return Ok(settled);
        };
        let tail = settled.command.split_off(at);
        let words = std::iter::once("mcptest init".to_owned()).chain(tail);
        let matches = parser.try_get_matches_from(words)?;
        let more = Options::from_arg_matches(&matches)?.args;
        settled.dir = settled.dir.or(more.dir);
        settled.url = settled.url.or(more.url);
        settled.from = settled.from.or(more.from);
        settled.name = settled.name.or(more.name);
        settled.ci = settled.ci.or(more.ci);
        settled.call = settled.call.or(more.call);
        settled.patience.timeout = settled.patience.timeout.or(more.patience.timeout);
        settled.auth = settled.auth.or(more.auth);
        settled.header.extend(more.header);
        settled.server.extend(more.server);
        settled.last.extend(more.last);
        settled.snapshots |= more.snapshots;
        settled.attacks |= more.attacks;
        settled.force |= more.force;
        settled.yes |= more.yes;
        Ok(settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> InitArgs {
        let words = std::iter::once("mcptest init").chain(words.iter().copied());
        let options = Options::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
        options
            .args
            .settled()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_command_ends_at_the_next_option_of_init() {
        let args = parsed(&[
            "sub",
            "--command",
            "npx",
            "-y",
            "pkg",
            "--flag",
            "x",
            "--name",
            "notes",
            "--yes",
            "--ci=gitlab",
        ]);
        assert_eq!(args.command, ["npx", "-y", "pkg", "--flag", "x"]);
        assert_eq!(args.name.as_deref(), Some("notes"));
        assert_eq!(args.ci, Some(CiArg::Gitlab));
        assert!(args.yes && !args.force);
        assert_eq!(args.dir, Some(PathBuf::from("sub")));
        let after = parsed(&["--command", "python", "server.py", "--yes", "sub"]);
        assert_eq!(after.dir, Some(PathBuf::from("sub")));
        assert_eq!(after.command, ["python", "server.py"]);
        let last = parsed(&["--yes", "--", "x", "--yes", "--name", "y"]);
        assert_eq!(last.last, ["x", "--yes", "--name", "y"]);
        assert_eq!(last.name, None);
    }

    #[test]
    fn errors_behind_a_command_are_reported() {
        let words = ["mcptest init", "--command", "x", "--ci", "jenkins"];
        let options = Options::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
        assert!(options.args.settled().is_err());
    }
}
