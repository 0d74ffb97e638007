//! `mcptest score`.

mod progress;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcptest_formats::Map;
use mcptest_json::visible::visible;
use mcptest_report::{ExitCode, Redactor, Spool};
use mcptest_runner::{Filter, FormatSetting, Partial, ScoreSettings, ScoreSinks, TraceInput};
use mcptest_suite::Purpose;
use mcptest_trace::trace::Trace;
use mcptest_yaml::Diagnostics;

use self::progress::Progress;
use crate::cli::ScoreArgs;
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::{self, Output};
use crate::suites;
use crate::{files, secrets};

pub fn score(args: &ScoreArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let reporters = output::reporters(&args.report)?;
    let loaded = suites::load_one(&args.traces.suite, Purpose::Score, gates)?;
    suites::warn(&loaded.warnings, args.deny_warnings, output)?;
    let settings = ScoreSettings {
        test: args.traces.test.clone(),
        filter: Filter::from(&args.filter),
        no_judges: args.no_judges,
        // Other reporters show only what is wrong with a run.
        all_records: !args.summary
            && reporters
                .iter()
                .any(|reporter| matches!(reporter.name, "json" | "html")),
        summary: args.summary,
        strict: args.strict,
        threads: args.threads,
        format: trace_format(&args.format.format, args.format.map.as_deref())?,
    };
    let files = trace_files(args.traces.sources())?;
    let rows = match &args.out {
        Some(path) => Some(create_rows(path, &files)?),
        None => None,
    };
    let progress = Progress::new(&files, output);
    let inputs: Vec<TraceInput<'_>> = files.into_iter().map(TraceInput::File).collect();
    let redactor = secrets::redactor(loaded.suite.secrets.iter().cloned());
    if let Some(file) = &args.partial {
        let resolved = suites::resolve(&args.traces.suite, gates)?;
        let partial =
            mcptest_runner::score_partial(&loaded.suite, resolved, inputs, &settings, args.part)
                .map_err(|error| redactor.text(&error.to_string()))?;
        return write_partial(&partial, file, &redactor, output);
    }
    let mut spool = Spool::new();
    let mut store = |text: &[u8]| spool.append(text);
    let mut write_rows = rows.map(|mut file| {
        let path = args.out.clone().unwrap_or_default();
        move |rows: &[u8]| file.write_all(rows).map_err(|error| named(&path, &error))
    });
    let mut show = |now| progress.show(now);
    let mut sinks = ScoreSinks::new(&mut store);
    sinks.rows = write_rows.as_mut().map(|write| write as _);
    sinks.progress = Some(&mut show);
    let scored = mcptest_runner::score_to(&loaded.suite, inputs, &settings, &redactor, sinks);
    progress.clear();
    let scored = scored.map_err(|error| redactor.text(&error.to_string()))?;
    let store = spool
        .into_store()
        .map_err(|error| format!("cannot store the records of runs: {error}"))?;
    let (report, warnings) = mcptest_score::report_of(scored, store, settings.summary, &redactor);
    suites::warn(&Diagnostics(warnings), args.deny_warnings, output)?;
    for line in report.tests.iter().flat_map(|test| &test.status_lines) {
        output.status(line);
    }
    output.report(&reporters, &report)?;
    Ok(report.exit_code)
}

/// Creates the file of rows. Rows are written as they come, so a reader can follow them.
fn create_rows(path: &Path, inputs: &[PathBuf]) -> Result<File, Failure> {
    let same = |input: &PathBuf| match (path.canonicalize(), input.canonicalize()) {
        (Ok(path), Ok(input)) => path == input,
        _ => false,
    };
    if inputs.iter().any(same) {
        let message = format!("`--out {}` would overwrite a trace file", path.display());
        return Err(message.into());
    }
    let file = File::create(path).map_err(|error| named(path, &error).to_string())?;
    Ok(file)
}

/// An error with the name of the file.
fn named(path: &Path, error: &io::Error) -> io::Error {
    let message = format!("cannot write `{}`: {error}", path.display());
    io::Error::new(error.kind(), message)
}

/// The format of trace files, by its name or by a map.
///
/// # Errors
/// An unknown name, several of them, a name and a map, or a map that cannot be read.
pub fn trace_format(names: &[String], map: Option<&Path>) -> Result<FormatSetting, Failure> {
    let path = match (names, map) {
        ([], None) => return Ok(FormatSetting::Detect),
        ([name], None) => return Ok(FormatSetting::named(name).map_err(|error| error.to_string())?),
        ([], Some(path)) => path,
        ([_], Some(_)) => {
            let message = "`--format NAME` and `--map FILE` both set the trace format; give one";
            return Err(message.to_owned().into());
        }
        ([first, second, ..], _) => {
            let message = format!("`--format` names two trace formats: `{first}`, `{second}`");
            return Err(message.into());
        }
    };
    let bytes = std::fs::read(path).map_err(|error| files::unreadable(path, &error))?;
    let map = Map::load(&path.display().to_string(), &bytes)?;
    Ok(FormatSetting::Map(Arc::new(map)))
}

/// Writes a partial result.
fn write_partial(
    partial: &Partial,
    file: &Path,
    redactor: &Redactor,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let text = partial.to_json(redactor);
    if file == Path::new("-") {
        output.result(&String::from_utf8_lossy(&text));
    } else {
        let text = String::from_utf8_lossy(&text);
        mcptest_files::write(file, visible(&text).as_bytes())
            .map_err(|error| format!("cannot write `{}`: {error}", file.display()))?;
    }
    let broken = partial.broken_lines();
    if broken.count == 0 {
        return Ok(ExitCode::Passed);
    }
    let first = broken.first.iter().map(ToString::to_string);
    let first: Vec<String> = first.map(|line| redactor.text(&line)).collect();
    output.status(&format!(
        "warning: {} broken lines were skipped:\n  {}",
        broken.count,
        first.join("\n  ")
    ));
    Ok(ExitCode::NoEvidence)
}

/// The files that arguments name.
///
/// # Errors
/// A name without files.
pub fn trace_files(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    mcptest_runner::trace_files(arguments).map_err(|error| error.to_string())
}

/// Reads the traces of all files, in their order.
///
/// # Errors
/// The first file that cannot be read or is not a trace file, with the place.
pub fn read_all(files: &[PathBuf], format: &FormatSetting) -> Result<Vec<Trace>, String> {
    let mut traces = Vec::new();
    for file in &trace_files(files)? {
        let read = mcptest_runner::read_traces_as(file, format);
        traces.extend(read.map_err(|error| error.to_string())?);
    }
    Ok(traces)
}
