//! `mcptest report`.

use std::io::Read as _;
use std::path::Path;

use mcptest_report::compare::{self, compare};
use mcptest_report::merge::merge;
use mcptest_report::{ExitCode, Report};

use crate::cli::{MergeArgs, RenderArgs, ReportCommand};
use crate::failure::Failure;
use crate::files;
use crate::output::{self, Output, Reporter};

pub fn report(args: &RenderArgs, output: &Output) -> Result<ExitCode, Failure> {
    Ok(match &args.command {
        Some(ReportCommand::Merge(args)) => merged(args, output)?,
        None => shown(args, output)?,
    })
}

fn shown(args: &RenderArgs, output: &Output) -> Result<ExitCode, String> {
    let reporters = output::reporters(&args.report)?;
    // The command line asks for it.
    let current = args.current.as_deref().unwrap_or(Path::new("-"));
    let mut report = read(current)?;
    if args.report.no_timing {
        report.timing = None;
    }
    let Some(baseline) = &args.compare else {
        // Secrets were taken out when it was written.
        output.report(&reporters, &report)?;
        return Ok(ExitCode::Passed);
    };
    let comparison = compare(&read(baseline)?, &report);
    for reporter in &reporters {
        let style = output.style_for(reporter);
        output.deliver(reporter, |out| {
            compare::render(reporter.name, &comparison, style, out)
        })?;
    }
    Ok(comparison.exit_code)
}

fn merged(args: &MergeArgs, output: &Output) -> Result<ExitCode, String> {
    let parts = args
        .reports
        .iter()
        .map(|path| Ok((path.display().to_string(), read(path)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let merged = merge(parts).map_err(|error| error.to_string())?;
    let reporter = Reporter {
        name: "json",
        file: args.output.as_ref().map(|file| file.display().to_string()),
    };
    output.report(&[reporter], &merged)?;
    Ok(merged.exit_code)
}

/// Reads a JSON report; `-` is standard input.
///
/// # Errors
/// What is wrong with the file, with the place.
pub fn read(path: &Path) -> Result<Report, String> {
    let name = path.display();
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| files::unreadable(path, &error))?;
    mcptest_report::read(&text).map_err(|error| match error {
        mcptest_report::ReadError::OtherVersion { .. } => format!("{name}: {error}"),
        mcptest_report::ReadError::NotAReport { .. } => {
            format!("{name}:{error}\n  a report is what `--reporter json` writes, see `mcptest schema report`")
        }
    })
}
