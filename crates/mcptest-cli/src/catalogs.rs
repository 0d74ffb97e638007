//! Tool catalogs from files, the servers of a suite, addresses and command lines. Every command
//! takes them the same way.

mod file;
mod live;
pub mod manifest;

use std::path::{Path, PathBuf};

use mcptest_catalog::doctor::ServerReport;
use mcptest_json::type_name;
use mcptest_suite::Purpose;
use mcptest_suite::suite::{HttpAddress, Server};
use mcptest_trace::catalog::Tool;
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};
use serde_json::Value;

use crate::cli::{CatalogArgs, HttpHeader};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::secrets;
use crate::suites;

/// The source of one catalog.
#[derive(Debug)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// A server, which is started or connected to.
    Server {
        /// Its name in reports.
        name: String,
        server: Box<Server>,
    },
}

impl Source {
    fn server(name: impl Into<String>, server: Server) -> Self {
        Self::Server {
            name: name.into(),
            server: Box::new(server),
        }
    }

    fn command(argv: &[String]) -> Self {
        let first = argv.first().map_or("server", String::as_str);
        let name = Path::new(first).file_stem().map_or_else(
            || first.to_owned(),
            |stem| stem.to_string_lossy().into_owned(),
        );
        Self::server(name, Server::command(argv.to_vec(), PathBuf::from(".")))
    }

    fn url(url: &str, headers: &[HttpHeader]) -> Self {
        let headers = headers
            .iter()
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect();
        let address = HttpAddress {
            url: url.to_owned(),
            headers,
        };
        let mut server = Server::command(Vec::new(), PathBuf::from("."));
        server.http = Some(address);
        Self::server(host_of(url), server)
    }
}

/// Everything that the arguments name, in this order: files, servers of the suite, addresses, the
/// command.
///
/// # Errors
/// A suite that cannot be used, or a server that it has not.
pub fn named(args: &CatalogArgs, gates: Gates, output: &Output) -> Result<Vec<Source>, Failure> {
    secrets::hide(secrets_of(&args.header));
    let mut sources: Vec<Source> = args.tools_from.iter().cloned().map(Source::File).collect();
    let suite = match &args.suite {
        Some(path) => Some(path.clone()),
        None if !args.server.is_empty() => suites::find(&[])?.into_iter().next(),
        None => None,
    };
    if let Some(path) = &suite {
        let suite = SuiteServers::load(path, gates, output)?;
        if args.server.is_empty() {
            let all = suite.servers.into_iter();
            sources.extend(all.map(|(name, server)| Source::server(name, server)));
        } else {
            for name in &args.server {
                sources.push(suite.find(name)?);
            }
        }
    }
    sources.extend(args.url.iter().map(|url| Source::url(url, &args.header)));
    if !args.command.is_empty() {
        sources.push(Source::command(&args.command));
    }
    Ok(sources)
}

const NO_CATALOG: &str = "no catalog is named, and there is neither mcptest.yaml nor mcptest.yml \
     here; give `--tools-from FILE`, `--suite FILE`, `--url URL`, or `-- command args…`";

/// Inspects every catalog that the arguments name: its tools and, for a server, its start and its
/// responses. If they name none, the servers of the suite that `run` would find.
///
/// # Errors
/// A file that cannot be read, or no catalog at all. A server that does not start is a result, not
/// an error.
pub fn gather(
    args: &CatalogArgs,
    gates: Gates,
    output: &Output,
) -> Result<Vec<ServerReport>, Failure> {
    // Every catalog is priced: the vocabulary unpacks while files are read and servers start.
    std::thread::spawn(mcptest_catalog::tokens::prepare);
    let mut sources = named(args, gates, output)?;
    if sources.is_empty() && args.suite.is_none() {
        // The suite that `run` would find.
        let path = suites::find(&[]).map_err(|_| Failure::Message(NO_CATALOG.to_owned()))?;
        for path in &path {
            let suite = SuiteServers::load(path, gates, output)?;
            let servers = suite.servers.into_iter();
            sources.extend(servers.map(|(name, server)| Source::server(name, server)));
        }
    }
    if sources.is_empty() {
        let message = "the suite has no servers; give `--tools-from FILE`, `--url URL`, or `-- command args…`";
        return Err(Failure::Message(message.to_owned()));
    }
    live::check_up(&sources, args.patience.timeout, output)
}

/// The tools of one catalog, and warnings about entries of its list that are not tools.
pub struct Catalog {
    pub tools: Vec<Tool>,
    pub warnings: Diagnostics,
}

/// The tools of each source, for commands that need only the tools.
///
/// # Errors
/// A file that cannot be read or holds no catalog, a server that does not list its tools.
pub fn read(
    sources: &[Source],
    timeout: Option<std::time::Duration>,
    output: &Output,
) -> Result<Vec<Catalog>, Failure> {
    Ok(live::listed(sources, timeout, output)?
        .into_iter()
        .map(|(name, listed)| tools_of(&name, &listed))
        .collect())
}

/// The tools of a file.
///
/// # Errors
/// That it cannot be read, or holds no catalog.
pub fn of_file(path: &Path) -> Result<Catalog, Diagnostics> {
    Ok(tools_of(
        &path.display().to_string(),
        &file::read(path)?.listed,
    ))
}

/// Warns of entries that are not tools.
fn tools_of(name: &str, listed: &[Value]) -> Catalog {
    let mut catalog = Catalog {
        tools: Vec::new(),
        warnings: Diagnostics::default(),
    };
    for (index, listed) in listed.iter().enumerate() {
        match Tool::from_listing(None, listed) {
            Some(tool) => catalog.tools.push(tool),
            None => catalog.warnings.0.push(
                Diagnostic::new(
                    Severity::Warning,
                    format!(
                        "entry {index} of the tools is left out: it is not a tool, but JSON of type {}",
                        type_name(listed)
                    ),
                )
                .in_file(name, None),
            ),
        }
    }
    catalog
}

/// One side of a comparison as it is typed: a file, an address, or `server:NAME` of the suite.
///
/// # Errors
/// A server without a suite, or one that the suite has not.
pub fn side(
    written: &str,
    suite: Option<&SuiteServers>,
    headers: &[HttpHeader],
) -> Result<Source, Failure> {
    if written.starts_with("http://") || written.starts_with("https://") {
        return Ok(Source::url(written, headers));
    }
    match (written.strip_prefix("server:"), suite) {
        (Some(name), Some(suite)) => suite.find(name),
        (Some(name), None) => Err(Failure::Message(format!(
            "`server:{name}` is a server of a suite, and no suite is named: give `--suite FILE`"
        ))),
        (None, _) => Ok(Source::File(PathBuf::from(written))),
    }
}

/// A command line as a source.
pub fn command(argv: &[String]) -> Source {
    Source::command(argv)
}

/// The servers of a suite.
pub struct SuiteServers {
    servers: std::collections::BTreeMap<String, Server>,
}

impl SuiteServers {
    /// Loads the suite and tells its warnings.
    ///
    /// # Errors
    /// All its problems.
    pub fn load(path: &Path, gates: Gates, output: &Output) -> Result<Self, Failure> {
        let loaded = suites::load_one(path, Purpose::Run, gates)?;
        output.problems(&loaded.warnings);
        Ok(Self {
            servers: loaded.suite.servers,
        })
    }

    fn find(&self, name: &str) -> Result<Source, Failure> {
        match self.servers.get(name) {
            Some(server) => Ok(Source::server(name, server.clone())),
            None => {
                let known: Vec<&str> = self.servers.keys().map(String::as_str).collect();
                Err(Failure::Message(format!(
                    "the suite has no server `{name}`; its servers are {}",
                    known.join(", ")
                )))
            }
        }
    }
}

/// The values of headers, whole and without their scheme (`Bearer …`).
pub fn secrets_of(headers: &[HttpHeader]) -> Vec<String> {
    let mut secrets = Vec::new();
    for header in headers {
        let credential = header
            .value
            .split_once(' ')
            .map(|(_, credential)| credential.trim());
        secrets.extend(credential.map(str::to_owned));
        secrets.push(header.value.clone());
    }
    secrets.retain(|secret| secret.len() >= 4);
    secrets
}

/// Host and port of an address, which is how reports call the server.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// An address as it is shown: queries carry keys now and then.
pub fn shown(written: &str) -> String {
    match written.split_once('?') {
        Some((before, _)) if written.starts_with("http") => format!("{before}?…"),
        _ => written.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_a_file_an_address_or_a_server() {
        let kind = |written: &str| match side(written, None, &[]) {
            Ok(Source::File(path)) => path.display().to_string(),
            Ok(Source::Server { name, server }) => {
                format!(
                    "{name} at {}",
                    server.http.map_or_else(String::new, |http| http.url)
                )
            }
            Err(_) => "refused".to_owned(),
        };
        assert_eq!(kind("tools.json"), "tools.json");
        assert_eq!(kind("./server:x"), "./server:x");
        assert_eq!(
            kind("http://127.0.0.1:3000/mcp?key=1"),
            "127.0.0.1:3000 at http://127.0.0.1:3000/mcp?key=1"
        );
        assert_eq!(kind("server:weather"), "refused");
        assert_eq!(shown("https://host/mcp?key=1"), "https://host/mcp?…");
        assert_eq!(shown("what?.json"), "what?.json");
    }

    #[test]
    fn the_values_of_headers_are_secrets_with_and_without_their_scheme() {
        let header = |value: &str| HttpHeader {
            name: "Authorization".to_owned(),
            value: value.to_owned(),
        };
        assert_eq!(
            secrets_of(&[header("Bearer s3cret"), header("abc")]),
            ["s3cret", "Bearer s3cret"]
        );
    }
}
