//! `mcptest report`.

use std::io::Read as _;
use std::path::Path;

use mcptest_events::log::redact_json;
use mcptest_live::LiveServer;
use mcptest_report::compare::{self, FailOn, compare_pooled};
use mcptest_report::merge::merge;
use mcptest_report::trend::{self, TrendFold};
use mcptest_report::{ExitCode, RenderError, Report, write_list, write_list_json};
use mcptest_runner::Partial;
use mcptest_score::Environment;

use crate::cli::{FailOnArg, MergeArgs, RenderArgs, ReportCommand, TrendArgs};
use crate::failure::Failure;
use crate::files;
use crate::gates::Gates;
use crate::history;
use crate::output::{self, Output, Reporter};
use crate::{secrets, signals};

pub fn report(args: &RenderArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    Ok(match &args.command {
        Some(ReportCommand::Merge(args)) => merged(args, gates, output)?,
        Some(ReportCommand::Trend(args)) => trend(args, output)?,
        None => shown(args, output)?,
    })
}

fn shown(args: &RenderArgs, output: &Output) -> Result<ExitCode, String> {
    if let Some(port) = args.serve {
        return serve(args, port, output);
    }
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
    let Some((first, more)) = args.compare.split_first() else {
        output.report(&reporters, &report)?;
        return Ok(ExitCode::Passed);
    };
    let first = find(first)?;
    let more = more.iter().map(|baseline| find(baseline));
    let more = more.collect::<Result<Vec<Report>, String>>()?;
    let mut comparison = compare_pooled(&first, &more, &report);
    comparison.exit_code = comparison.exit_code_for(match args.fail_on {
        FailOnArg::Regression => FailOn::Regression,
        FailOnArg::Flip => FailOn::Flip,
        FailOnArg::Significant => FailOn::Significant,
        FailOnArg::Any => FailOn::Any,
    });
    for reporter in &reporters {
        let style = output.style_for(reporter);
        output.deliver(reporter, |out| {
            compare::render(reporter.name, &comparison, &report, style, out)
        })?;
    }
    Ok(comparison.exit_code)
}

/// Serves the page of a report until the process is asked to end.
fn serve(args: &RenderArgs, port: u16, output: &Output) -> Result<ExitCode, String> {
    let style = output.file_style();
    // A log is followed, because its run may not be finished; a JSON report is complete.
    let entry = match &args.current {
        Some(name) => name.to_str().filter(|_| !name.exists()).map(Some),
        None => Some(None),
    };
    let server = match entry {
        Some(id) => LiveServer::of_log(&history::find(id)?.path, port, style),
        None => {
            let name = args.current.as_deref().unwrap_or(Path::new("-"));
            LiveServer::of_report(read(name)?, port, style)
        }
    };
    let server = server.map_err(|error| format!("cannot serve the report: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let end = signals::shutdown_signal();
        output.result(&format!("{}\n", server.url()));
        output.status("serving until Ctrl-C");
        end.await;
    });
    Ok(ExitCode::Passed)
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

/// Shows the figures of reports over time.
fn trend(args: &TrendArgs, output: &Output) -> Result<ExitCode, String> {
    let reporters = output::reporters(&args.report)?;
    let reports = match args.reports.is_empty() {
        true => history::oldest_first()?,
        false => args.reports.clone(),
    };
    let last = args.last.map_or(reports.len(), |last| last as usize);
    let mut fold = TrendFold::default();
    for path in reports.iter().skip(reports.len().saturating_sub(last)) {
        let name = path.display().to_string();
        match find(path) {
            Ok(report) => {
                fold.add(&name, &report, args.suite.as_deref());
            }
            // A damaged log of the history must not hide the others.
            Err(error) if args.reports.is_empty() => {
                output.warning(&format!("the run `{name}` is left out: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    let trend = fold.finish();
    if trend.points.is_empty() {
        return Err(match &args.suite {
            Some(suite) => format!("no report has a finished test of the suite `{suite}`"),
            None => "no report has a finished test".to_owned(),
        });
    }
    for reporter in &reporters {
        let style = output.style_for(reporter);
        output.deliver(reporter, |out| {
            trend::render(reporter.name, &trend, style, out)
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

fn merged(args: &MergeArgs, gates: Gates, output: &Output) -> Result<ExitCode, String> {
    let mut texts = Vec::new();
    for path in &args.reports {
        texts.push((path.as_path(), read_bytes(path)?));
    }
    let is_partial = |(_, text): &&(&Path, Vec<u8>)| Partial::is_partial(text);
    let merged = match texts.iter().find(is_partial) {
        Some((partial, _)) => {
            if let Some((report, _)) = texts.iter().find(|text| !is_partial(text)) {
                return Err(format!(
                    "`{}` is a partial result of `score --partial` and `{}` is not; \
                     merge them apart",
                    partial.display(),
                    report.display()
                ));
            }
            merge_partials(texts, gates)?
        }
        None => {
            let report = |(path, text): (&Path, Vec<u8>)| {
                let text = String::from_utf8(text)
                    .map_err(|_| format!("{}: not UTF-8", path.display()))?;
                Ok((path.display().to_string(), parse(path, text)?))
            };
            let parts = texts.into_iter().map(report);
            let parts = parts.collect::<Result<Vec<_>, String>>()?;
            merge(parts).map_err(|error| error.to_string())?
        }
    };
    for line in merged.tests.iter().flat_map(|test| &test.status_lines) {
        output.status(line);
    }
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
    let text = String::from_utf8(read_bytes(path)?);
    let text = text.map_err(|_| format!("{}: not UTF-8", path.display()))?;
    parse(path, text)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let text = if path == Path::new("-") {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(path)
    };
    text.map_err(|error| files::unreadable(path, &error))
}

/// Merges the partial results of `score`.
fn merge_partials(texts: Vec<(&Path, Vec<u8>)>, gates: Gates) -> Result<Report, String> {
    let named = |(path, text): (&Path, Vec<u8>)| (path.display().to_string(), text);
    let environment = Environment::new(gates).with_secrets(secrets::of_environment());
    let merged = mcptest_score::merge(texts.into_iter().map(named).collect(), &environment);
    merged.map_err(|error| error.to_string())
}

/// A report whose secrets are masked: whoever wrote it may not have known those of this process.
fn parse(path: &Path, text: String) -> Result<Report, String> {
    let name = path.display();
    secrets::keep_listed(&text);
    let clean = redact_json(&text, &secrets::redactor([]));
    mcptest_report::read(clean.unwrap_or(text)).map_err(|error| match error {
        mcptest_report::ReadError::OtherVersion { .. } | mcptest_report::ReadError::Storage(_) => {
            format!("{name}: {error}")
        }
        mcptest_report::ReadError::NotAReport { .. } => {
            format!("{name}:{error}\n  a report is what `--reporter json` writes, see `mcptest schema report`")
        }
    })
}
