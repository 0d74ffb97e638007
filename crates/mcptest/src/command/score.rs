//! `mcptest score`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use mcptest_core::trace::{self, Trace};
use mcptest_report::{ExitCode, Redactor};
use mcptest_runner::{Filter, ScoreSettings};
use mcptest_suite::Purpose;

use super::run::{talk_of, warn};
use crate::cli::ScoreArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{secrets, suites};

pub fn score(args: &ScoreArgs, output: &Output) -> Result<ExitCode, Failure> {
    let reporters = output::reporters(&args.report)?;
    let loaded = suites::load_one(&args.suite, Purpose::Score)?;
    warn(&loaded.warnings, output);
    let traces = read_all(&args.trace)?;
    let settings = ScoreSettings {
        test: args.test.clone(),
        filter: Filter {
            names: args.filter.filter.clone(),
            tags: args.filter.tag.clone(),
        },
        no_judges: args.no_judges,
    };
    let report = mcptest_runner::score(&loaded.suite, traces, &settings).map_err(|error| error.to_string())?;
    let redactor = Redactor::new(loaded.suite.secrets.iter().cloned().chain(secrets::of_environment()));
    talk_of(&report, &redactor, output);
    output.report(&reporters, &report, &redactor)?;
    Ok(report.exit_code)
}

/// Reads the traces of all files, in their order.
///
/// # Errors
/// The first file that cannot be read or is no trace file, with the place.
pub fn read_all(files: &[PathBuf]) -> Result<Vec<Trace>, String> {
    let mut traces = Vec::new();
    for file in files {
        traces.extend(read(file)?);
    }
    Ok(traces)
}

fn read(path: &Path) -> Result<Vec<Trace>, String> {
    let name = path.display();
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("cannot read `{name}`: no such file"),
        _ => format!("cannot read `{name}`: {error}"),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{name}:{line}: not UTF-8")
    })?;
    // A cassette says so in its first line.
    if text.lines().take(3).any(|line| line.contains(mcptest_cassette::FORMAT)) {
        let cassette =
            mcptest_cassette::parse(&name.to_string(), text.as_bytes()).map_err(|error| error.to_string())?;
        return mcptest_cassette::traces(cassette).map_err(|words| format!("{name}: {words}"));
    }
    trace::read(&text).map_err(|error| {
        format!(
            "{name}:{}:{}: not a trace: {}\n  a trace is a JSON object with at least `tool_calls`, see `mcptest schema trace`",
            error.line, error.column, error.message
        )
    })
}
