//! Arguments that several commands share, and the parsers of their values.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use mcptest_report::REPORTERS;
use mcptest_runner::Filter;
use mcptest_suite::{DurationError, parse_duration};

/// The reporters. `run`, `score` and `report` share them.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[arg(long, value_name = "NAME[=FILE]", help = reporter_help())]
    pub reporter: Vec<String>,
    /// Omit times from the report, so that equal runs give equal bytes.
    #[arg(long)]
    pub no_timing: bool,
}

/// The help text with the names of all reporters.
fn reporter_help() -> String {
    let names: Vec<String> = REPORTERS
        .iter()
        .map(|(name, ..)| format!("`{name}`"))
        .collect();
    format!(
        "Output format: {}; with a file to write to a file (`json=report.json`). Repeatable. Default: `pretty`",
        names.join(", ")
    )
}

/// Selection of tests by name and tag. `run` and `score` share it.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Only tests whose name contains this string. Repeatable.
    #[arg(long, value_name = "TEXT")]
    pub filter: Vec<String>,
    /// Only tests with this tag. Repeatable.
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
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The suite whose gates apply.
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// Recorded traces: files, folders, quoted patterns such as `'runs/**/*.jsonl'`, or `-` for
    /// standard input; `.gz` and `.zst` too.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pub trace: Vec<PathBuf>,
    /// Treat all traces as runs of this test.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
}

/// The format of trace files.
#[derive(Debug, Args)]
pub struct TraceFormatArgs {
    /// Format of all trace files, instead of the one that each file shows: `native`, `openai-chat`,
    /// `otel`, … (see `docs/reference/trace-formats.md`).
    #[arg(
        long,
        alias = "trace-format",
        value_name = "NAME",
        conflicts_with = "map"
    )]
    pub format: Option<String>,
    /// A file that describes a home-made format of all trace files by JSON pointers.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
}

/// The output format. Commands with other formats have a list of their own.
#[derive(Debug, Args)]
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
pub struct CatalogArgs {
    /// A mock manifest, or a captured `tools/list` response as JSON. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub tools_from: Vec<PathBuf>,
    /// A suite whose servers are started.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// Only this server of the suite, which is mcptest.yaml or mcptest.yml if none is named.
    /// Repeatable. Default: all servers.
    #[arg(long, value_name = "NAME")]
    pub server: Vec<String>,
    /// The address of a server over streamable HTTP. Repeatable.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub url: Vec<String>,
    /// A header for every `--url`. Its value is never printed. Repeatable.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header, requires = "url")]
    pub header: Vec<HttpHeader>,
    /// A server to start, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub patience: ServerTimeoutArgs,
}

/// The timeout for a server.
#[derive(Debug, Args)]
pub struct ServerTimeoutArgs {
    /// Timeout for the start of a server and for each response: `5s`, `500ms`, `2m`.
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
