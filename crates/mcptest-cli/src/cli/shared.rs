//! Arguments that several commands share, and the parsers of their values.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use mcptest_runner::Filter;
use mcptest_suite::{DurationError, parse_duration};

// Headings of flags, by purpose: the same for every command.
pub(super) const SELECTION: &str = "Selection of tests";
pub(super) const EXECUTION: &str = "Execution";
pub(super) const RECORDING: &str = "Recordings and snapshots";
pub(super) const HISTORY: &str = "History";
pub(super) const OUTPUT: &str = "Output";
pub(super) const SERVERS: &str = "Servers and catalogs";
pub(super) const TRACES: &str = "Traces";
pub(super) const AUTHORIZATION: &str = "Authorization of addresses";

/// The reporters. `run`, `score` and `report` share them.
#[derive(Debug, Args)]
#[command(next_help_heading = OUTPUT)]
pub struct ReportArgs {
    /// Report format; repeatable; see `mcptest help reporters`.
    #[arg(long, value_name = "NAME[=FILE]")]
    pub reporter: Vec<String>,
    /// Omit times from the report, so that equal runs give equal bytes.
    #[arg(long)]
    pub no_timing: bool,
}

/// Selection of tests by name and tag. `run` and `score` share it.
#[derive(Debug, Args)]
#[command(next_help_heading = SELECTION)]
pub struct FilterArgs {
    /// Only tests whose name contains this string; repeatable.
    #[arg(long, value_name = "TEXT")]
    pub filter: Vec<String>,
    /// Only tests with this tag; repeatable.
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
}

impl From<&FilterArgs> for Filter {
    fn from(args: &FilterArgs) -> Self {
        Self {
            names: args.filter.clone(),
            tags: args.tag.clone(),
        }
    }
}

/// Recorded traces and the suite that judges them. `score` and `mutate` share them.
///
/// Traces are named behind the suite or behind `--trace`, as the documents do.
#[derive(Debug, Args)]
#[command(next_help_heading = TRACES)]
pub struct TraceArgs {
    /// The suite whose gates apply.
    #[arg(value_name = "SUITE", help_heading = None)]
    pub suite: PathBuf,
    /// Traces: files, folders, patterns, or `-`: standard input.
    #[arg(value_name = "TRACES", help_heading = None, required_unless_present = "trace")]
    traces: Vec<PathBuf>,
    /// Files, folders, patterns (`'runs/**/*.jsonl'`), or `-`: standard input.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "traces")]
    trace: Vec<PathBuf>,
    /// Treat all traces as runs of this test.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
}

impl TraceArgs {
    /// The files, folders and patterns.
    pub fn sources(&self) -> &[PathBuf] {
        if self.traces.is_empty() {
            &self.trace
        } else {
            &self.traces
        }
    }
}

/// The format of trace files, the same for every command that reads them.
#[derive(Debug, Args)]
#[command(next_help_heading = TRACES)]
pub struct TraceFormatArgs {
    // Several values, because `mutate` takes its output format here too.
    /// Format of all files; default: detected; see `mcptest help traces`.
    #[arg(long, alias = "trace-format", value_name = "NAME")]
    pub format: Vec<String>,
    /// A file that describes a home-made format by JSON pointers.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
}

/// The output format. Commands with other formats have their own list.
#[derive(Debug, Args)]
#[command(next_help_heading = OUTPUT)]
pub struct FormatArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Pretty, value_name = "FORMAT")]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Pretty,
    Json,
}

/// The sources of tool catalogs, the same for every command that reads them.
#[derive(Debug, Args)]
#[command(next_help_heading = SERVERS)]
pub struct CatalogArgs {
    /// A mock manifest, or a `tools/list` response as JSON; repeatable.
    #[arg(long, value_name = "FILE")]
    pub tools_from: Vec<PathBuf>,
    /// A suite whose servers are started.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// The configuration of an MCP client whose servers are started.
    #[arg(long, value_name = "CONFIG", conflicts_with = "suite")]
    pub from: Option<PathBuf>,
    /// Only this server of the suite or configuration; repeatable.
    #[arg(long, value_name = "NAME")]
    pub server: Vec<String>,
    /// The address of a server over HTTP; repeatable.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub url: Vec<String>,
    /// A header for every `--url`, never printed; repeatable.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header, requires = "url")]
    pub header: Vec<HttpHeader>,
    /// A server to start, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub patience: ServerTimeoutArgs,
    #[command(flatten)]
    pub auth: UrlAuthArgs,
}

/// OAuth for servers that are given by their address. Without these flags, the login of an address
/// is used, if there is one.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = AUTHORIZATION)]
pub struct UrlAuthArgs {
    /// `client_credentials`, `authorization_code` or `refresh_token`.
    #[arg(long, value_enum, value_name = "TYPE", hide_possible_values = true)]
    pub auth: Option<AuthType>,
    /// The client's id, or the address of its metadata document.
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// The environment variable with the client's secret.
    #[arg(long, value_name = "VARIABLE")]
    pub client_secret_env: Option<String>,
    /// A PEM file with the client's private key.
    #[arg(long, value_name = "FILE")]
    pub private_key_file: Option<PathBuf>,
    /// The environment variable with the refresh token.
    #[arg(long, value_name = "VARIABLE")]
    pub refresh_token_env: Option<String>,
    /// A scope to request; default: as asked for; repeatable.
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// The authorization server; default: as the server states.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub issuer: Option<String>,
    /// The resource of the tokens; default: as the server states.
    #[arg(long, value_name = "URI")]
    pub resource: Option<String>,
    /// The port of the redirect address of a login; default: any.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub redirect_port: Option<u16>,
}

impl UrlAuthArgs {
    /// These flags, and others where they have none.
    pub fn or(mut self, others: Self) -> Self {
        self.scope.extend(others.scope);
        Self {
            auth: self.auth.or(others.auth),
            client_id: self.client_id.or(others.client_id),
            client_secret_env: self.client_secret_env.or(others.client_secret_env),
            private_key_file: self.private_key_file.or(others.private_key_file),
            refresh_token_env: self.refresh_token_env.or(others.refresh_token_env),
            scope: self.scope,
            issuer: self.issuer.or(others.issuer),
            resource: self.resource.or(others.resource),
            redirect_port: self.redirect_port.or(others.redirect_port),
        }
    }
}

/// The way to a token, as suites name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum AuthType {
    ClientCredentials,
    AuthorizationCode,
    RefreshToken,
}

/// One server that is not named by a suite alone. `call` and `catalog` share it.
#[derive(Debug, Args)]
#[command(next_help_heading = SERVERS)]
pub struct OneServerArgs {
    /// The suite that has SERVER; default: mcptest.yaml, then mcptest.yml.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// The configuration of an MCP client that has SERVER.
    #[arg(long, value_name = "CONFIG", conflicts_with = "suite")]
    pub from: Option<PathBuf>,
    /// The address of a server over HTTP, in place of SERVER.
    #[arg(long, value_name = "URL", value_parser = http_url, conflicts_with_all = ["suite", "from"])]
    pub url: Option<String>,
    /// A header for an address, never printed; repeatable.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header)]
    pub header: Vec<HttpHeader>,
    /// A server to start in place of SERVER, with its arguments.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["suite", "from", "url"])]
    pub command: Vec<String>,
    #[command(flatten)]
    pub patience: ServerTimeoutArgs,
    #[command(flatten)]
    pub auth: UrlAuthArgs,
}

/// The timeout for a server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = SERVERS)]
pub struct ServerTimeoutArgs {
    /// Timeout for a server's start and each response: `5s`, `2m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
}

/// A header as given on the command line.
#[derive(Clone)]
pub struct HttpHeader {
    pub name: String,
    pub value: String,
}

impl std::fmt::Debug for HttpHeader {
    /// The value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpHeader")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, DurationError> {
    parse_duration(text)
}

pub(super) fn http_header(text: &str) -> Result<HttpHeader, String> {
    // The error does not repeat the argument: it may be a secret.
    let (name, value) = text.split_once(':').ok_or_else(|| {
        "expected a name, a colon and a value, as in `Authorization: Bearer …`".to_owned()
    })?;
    Ok(HttpHeader {
        name: name.trim().to_owned(),
        value: value.trim().to_owned(),
    })
}

pub(super) fn http_url(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(text.to_owned()),
        _ => Err("an address begins with http:// or https:// and names a host".to_owned()),
    }
}

/// The attacks of a session.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct AttackArgs {
    /// Inject the attacks of a file with an `attacks:` list.
    #[arg(long, value_name = "FILE")]
    pub attacks: Option<std::path::PathBuf>,
    /// Only this attack; repeatable.
    #[arg(long, value_name = "NAME")]
    pub attack: Vec<String>,
}
