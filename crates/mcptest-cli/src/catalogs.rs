//! Tool catalogs of files and servers.

mod file;
mod live;
pub mod manifest;

use std::path::Path;

use mcptest_catalog::doctor::ServerReport;
use mcptest_json::text::one_line;
use mcptest_json::type_name;
use mcptest_trace::catalog::Tool;
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};
use serde_json::Value;

use crate::cli::CatalogArgs;
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::sources::{self, ServerList, Source};

/// Inspects every catalog that the arguments name: its tools and, for a server, its start and its
/// responses. If they name none, the servers of the current folder.
///
/// # Errors
/// A file that cannot be read, or no catalog at all. A server that does not start is a result, not
/// an error.
pub fn gather(
    args: &CatalogArgs,
    gates: Gates,
    output: &Output,
) -> Result<Vec<ServerReport>, Failure> {
    let sources = named_sources(None, args, gates, output)?;
    let reports = inspect(&sources, args.patience.timeout, output)?;
    if !args.server.is_empty() {
        return Ok(reports);
    }
    Ok(without_imitations(&sources, reports, output))
}

/// The reports without those of mocks that have the tools of another of the servers, as in a suite
/// that `mcptest init` wrote: no agent has both, and every finding would be there twice.
fn without_imitations(
    sources: &[Source],
    reports: Vec<ServerReport>,
    output: &Output,
) -> Vec<ServerReport> {
    let is_mock = |source: &Source| matches!(source, Source::Server { server, .. } if manifest::is_mock(server));
    let tools = |report: &ServerReport| {
        let entry =
            |tool: &Value| ["name", "description", "inputSchema"].map(|key| tool.get(key).cloned());
        let mut tools: Vec<_> = report.listed.iter().map(entry).collect();
        tools.sort_by_key(|[name, ..]| name.as_ref().map(ToString::to_string));
        tools
    };
    let originals: Vec<_> = sources
        .iter()
        .zip(&reports)
        .filter(|(source, report)| !is_mock(source) && !report.listed.is_empty())
        .map(|(_, report)| (report.name.clone(), tools(report)))
        .collect();
    sources
        .iter()
        .zip(reports)
        .filter(|(source, report)| {
            let listed = is_mock(source).then(|| tools(report));
            let original = originals
                .iter()
                .find(|(_, original)| listed.as_ref() == Some(original));
            if let Some((original, _)) = original {
                output.status(&format!(
                    "note: {} is left out: a mock with the same tools as {}",
                    one_line(&report.name),
                    one_line(original)
                ));
            }
            original.is_none()
        })
        .map(|(_, report)| report)
        .collect()
}

/// The same, with a suite or the configuration of a client as a further source.
///
/// # Errors
/// As [`gather`].
pub fn gather_from(
    file: Option<&Path>,
    args: &CatalogArgs,
    gates: Gates,
    output: &Output,
) -> Result<Vec<ServerReport>, Failure> {
    let sources = named_sources(file, args, gates, output)?;
    inspect(&sources, args.patience.timeout, output)
}

/// The sources that the arguments name; if they name none, the servers of the current folder.
fn named_sources(
    file: Option<&Path>,
    args: &CatalogArgs,
    gates: Gates,
    output: &Output,
) -> Result<Vec<Source>, Failure> {
    let sources = match file {
        Some(file) => {
            let list = ServerList::of_file(file, gates, output)?;
            if args.server.is_empty() {
                list.all()?
            } else {
                let names = args.server.iter();
                names
                    .map(|name| list.find(name))
                    .collect::<Result<_, _>>()?
            }
        }
        None => {
            let sources = sources::named(args, gates, output)?;
            if sources.is_empty() && args.suite.is_none() && args.from.is_none() {
                let list = ServerList::here(gates, output).map_err(no_catalog)?;
                list.all()?
            } else {
                sources
            }
        }
    };
    if sources.is_empty() {
        let message =
            "there are no servers; give `--tools-from FILE`, `--url URL`, or `-- command args…`";
        return Err(Failure::Message(message.to_owned()));
    }
    Ok(sources)
}

/// Inspects sources. A server that does not start is a result, not an error.
///
/// # Errors
/// A file that cannot be read.
pub fn inspect(
    sources: &[Source],
    timeout: Option<std::time::Duration>,
    output: &Output,
) -> Result<Vec<ServerReport>, Failure> {
    // Every catalog is priced: the vocabulary unpacks while files are read and servers start.
    std::thread::spawn(mcptest_catalog::tokens::prepare);
    live::check_up(sources, timeout, output)
}

/// Also a file can be named where there is nothing to start.
fn no_catalog(failure: Failure) -> Failure {
    match failure {
        Failure::Message(message) => Failure::Message(message.replace(
            "give `--suite FILE`",
            "give `--tools-from FILE`, `--suite FILE`",
        )),
        other => other,
    }
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
