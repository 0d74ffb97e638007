//! `mcptest catalog`.

use std::path::{Path, PathBuf};

use mcptest_catalog::doctor::ServerReport;
use mcptest_catalog::saved;
use mcptest_json::visible::visible;
use mcptest_report::ExitCode;

use crate::catalog_text;
use crate::catalogs;
use crate::cli::{CatalogCommand, CatalogCommandArgs, CatalogSaveArgs, CatalogShowArgs, Format};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::{self, Output};
use crate::sources::{self, Source};

pub fn catalog(
    args: &CatalogCommandArgs,
    gates: Gates,
    output: &Output,
) -> Result<ExitCode, Failure> {
    match &args.command {
        CatalogCommand::Save(args) => save(args, gates, output),
        CatalogCommand::Show(args) => show(args, gates, output),
    }
}

fn save(args: &CatalogSaveArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let source = sources::one(args.server.as_deref(), &args.source, gates, output)?;
    let report = inspected(&source, &args.source.patience.timeout, output)?;
    let text = format!("{:#}\n", saved::saved(&report));
    match &args.output {
        None => output.result(&text),
        Some(file) => {
            let name = file.display().to_string();
            output::write_file(&name, &visible(&text))?;
            output.status(&format!(
                "saved {} of {} in {}",
                counted(report.listed.len()),
                mcptest_json::text::one_line(&report.name),
                mcptest_json::text::one_line(&name)
            ));
        }
    }
    Ok(ExitCode::Passed)
}

fn counted(tools: usize) -> String {
    match tools {
        1 => "1 tool".to_owned(),
        several => format!("{several} tools"),
    }
}

fn show(args: &CatalogShowArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let source = match args.server.as_deref().filter(|name| is_file(name)) {
        Some(file) => Source::File(PathBuf::from(file)),
        None => sources::one(args.server.as_deref(), &args.source, gates, output)?,
    };
    let report = inspected(&source, &args.source.patience.timeout, output)?;
    let text = match args.how.format {
        Format::Json => format!("{:#}\n", saved::saved(&report)),
        Format::Pretty => catalog_text::detailed(&report),
    };
    output.result(&text);
    Ok(ExitCode::Passed)
}

/// Returns true for the path of a file, in place of a server's name.
fn is_file(name: &str) -> bool {
    let ending = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str());
    matches!(ending, Some("json" | "yml" | "yaml")) && !sources::is_address(name)
}

/// The catalog of a source.
fn inspected(
    source: &Source,
    timeout: &Option<std::time::Duration>,
    output: &Output,
) -> Result<ServerReport, Failure> {
    let reports = catalogs::inspect(std::slice::from_ref(source), *timeout, output)?;
    let Some(report) = reports.into_iter().next() else {
        return Err(Failure::Message("no catalog was read".to_owned()));
    };
    if let Some(error) = &report.error {
        return Err(Failure::Message(error.message.clone()));
    }
    // A list that failed must not be saved as an empty one.
    let failed = report
        .problems
        .iter()
        .find(|problem| problem.is_missing_list());
    match failed {
        Some(problem) => Err(Failure::Message(problem.message.clone())),
        None => Ok(report),
    }
}
