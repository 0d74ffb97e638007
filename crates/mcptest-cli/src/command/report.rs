//! `mcptest report`.

use std::io::Read as _;
use std::path::Path;

use mcptest_report::compare::{self, compare};
use mcptest_report::merge::merge;
use mcptest_report::{ExitCode, RenderError, Report, write_list, write_list_json};

use crate::cli::{MergeArgs, RenderArgs, ReportCommand};
use crate::failure::Failure;
use crate::files;
use crate::history;
use crate::output::{self, Output, Reporter};

pub fn report(args: &RenderArgs, output: &Output) -> Result<ExitCode, Failure> {
    Ok(match &args.command {
        Some(ReportCommand::Merge(args)) => merged(args, output)?,
        None => shown(args, output)?,
    })
}

fn shown(args: &RenderArgs, output: &Output) -> Result<ExitCode, String> {
    let reporters = output::reporters(&args.report)?;
    if args.list {
        return list(&reporters, output);
    }
    let mut report = match &args.current {
        Some(name) => find(name)?,
        None => history::report(&history::find(None)?)?,
    };
    if args.report.no_timing {
        report.timing = None;
    }
    let Some(baseline) = &args.compare else {
        // Secrets were removed when it was written.
        output.report(&reporters, &report)?;
        return Ok(ExitCode::Passed);
    };
    let comparison = compare(&find(baseline)?, &report);
    for reporter in &reporters {
        let style = output.style_for(reporter);
        output.deliver(reporter, |out| {
            compare::render(reporter.name, &comparison, style, out)
        })?;
    }
    Ok(comparison.exit_code)
}

/// Prints the runs of the history.
fn list(reporters: &[Reporter], output: &Output) -> Result<ExitCode, String> {
    let runs = history::summaries(output)?;
    for reporter in reporters {
        let style = output.style_for(reporter);
        output.deliver(reporter, |out| match reporter.name {
            "json" => Ok(write_list_json(&runs, out)?),
            "pretty" => Ok(write_list(&runs, style, out)?),
            other => Err(RenderError::UnknownReporter(other.to_owned())),
        })?;
    }
    Ok(ExitCode::Passed)
}

/// Reads a JSON report or, if there is no such file, the run of the history with this id.
fn find(name: &Path) -> Result<Report, String> {
    let id = name.to_str().filter(|_| !name.exists());
    match id.map(|id| history::find(Some(id))) {
        Some(Ok(entry)) => history::report(&entry),
        _ => read(name),
    }
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
/// The problem with the file, with its position.
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
