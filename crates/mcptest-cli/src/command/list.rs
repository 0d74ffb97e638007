//! `mcptest list`.

use mcptest_catalog::doctor::ServerProblem;
use mcptest_report::ExitCode;

use crate::catalog_text;
use crate::catalogs;
use crate::cli::{Format, ListArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;

pub fn list(args: &ListArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let servers = catalogs::gather_from(args.file.as_deref(), &args.catalog, gates, output)?;
    let text = match args.how.format {
        Format::Json => format!("{:#}\n", catalog_text::machine(&servers)),
        Format::Pretty => {
            let parts: Vec<String> = servers.iter().map(catalog_text::listed).collect();
            parts.join("\n")
        }
    };
    output.result(&text);
    let failed = servers.iter().any(|server| {
        server.error.is_some() || server.problems.iter().any(ServerProblem::is_missing_list)
    });
    Ok(if failed {
        ExitCode::CouldNotRun
    } else {
        ExitCode::Passed
    })
}
