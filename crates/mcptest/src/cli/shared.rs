//! What several commands take, and how values are read.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use mcptest_report::REPORTERS;
use mcptest_runner::Filter;
use mcptest_suite::{DurationError, parse_duration};

/// How results are shown. `run`, `score` and `report` share it.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[arg(long, value_name = "NAME[=FILE]", default_value = "pretty", help = reporter_help())]
    pub reporter: Vec<String>,
    /// Leave times out of the report, so that equal runs give equal bytes.
    #[arg(long)]
    pub no_timing: bool,
}

/// The reporters that there are, from their list.
fn reporter_help() -> String {
    let names: Vec<String> = REPORTERS
        .iter()
        .map(|(name, ..)| format!("`{name}`"))
        .collect();
    format!(
        "How to report: {}, and where to (`json=report.json`). May be given several times",
        names.join(", ")
    )
}

/// Which tests to take. `run` and `score` share it.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Take only tests whose name contains this text. May be given several times.
    #[arg(long, value_name = "TEXT")]
    pub filter: Vec<String>,
    /// Take only tests with this tag. May be given several times.
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

/// Recorded traces and the suite that they are held to. `score` and `mutate` share it.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The suite whose gates apply.
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// Files with recorded traces.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pub trace: Vec<PathBuf>,
    /// All traces belong to this test.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
}

/// How results are told. Commands with other formats have a list of their own.
#[derive(Debug, Args)]
pub struct FormatArgs {
    /// How to tell.
    #[arg(long, value_enum, default_value_t = Format::Pretty, value_name = "FORMAT")]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Pretty,
    Json,
}

/// Where tool catalogs come from, the same for every command that looks at them.
#[derive(Debug, Args)]
pub struct CatalogArgs {
    /// A file: a mock manifest, or a captured `tools/list` answer as JSON. May be given several
    /// times.
    #[arg(long, value_name = "FILE")]
    pub tools_from: Vec<PathBuf>,
    /// A suite whose servers are started.
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// Only this server of the suite. May be given several times. Default: all of them.
    #[arg(long, value_name = "NAME", requires = "suite")]
    pub server: Vec<String>,
    /// The address of a server over streamable HTTP. May be given several times.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub url: Vec<String>,
    /// A header for every `--url`. Its value is shown nowhere. May be given several times.
    #[arg(long, value_name = "NAME: VALUE", value_parser = http_header, requires = "url")]
    pub header: Vec<HttpHeader>,
    /// A server to start, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    #[command(flatten)]
    pub patience: ServerTimeoutArgs,
}

/// How long a server is waited for.
#[derive(Debug, Args)]
pub struct ServerTimeoutArgs {
    /// The time allowed for the start of a server and for each of its answers: `5s`, `500ms`, `2m`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
}

/// A header as it is typed.
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
    // What was typed is not repeated: it may be a secret.
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
