//! `mcptest score`.

use std::path::PathBuf;

use mcptest_report::{ExitCode, Redactor};
use mcptest_runner::{Filter, ScoreSettings};
use mcptest_suite::Purpose;
use mcptest_trace::trace::Trace;

use super::run::show_gate_lines;
use crate::cli::ScoreArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{secrets, suites};

pub fn score(args: &ScoreArgs, output: &Output) -> Result<ExitCode, Failure> {
    let reporters = output::reporters(&args.report)?;
    let loaded = suites::load_one(&args.traces.suite, Purpose::Score)?;
    output.problems(&loaded.warnings);
    let traces = read_all(&args.traces.trace)?;
    let settings = ScoreSettings {
        test: args.traces.test.clone(),
        filter: Filter::from(&args.filter),
        no_judges: args.no_judges,
    };
    let report = mcptest_runner::score(&loaded.suite, traces, &settings)
        .map_err(|error| error.to_string())?;
    let redactor = Redactor::new(
        loaded
            .suite
            .secrets
            .iter()
            .cloned()
            .chain(secrets::of_environment()),
    );
    show_gate_lines(&report, &redactor, output);
    output.report(&reporters, &report.redacted(&redactor))?;
    Ok(report.exit_code)
}

/// Reads the traces of all files, in their order.
///
/// # Errors
/// The first file that cannot be read or is no trace file, with the place.
pub fn read_all(files: &[PathBuf]) -> Result<Vec<Trace>, String> {
    let mut traces = Vec::new();
    for file in files {
        traces.extend(mcptest_runner::read_traces(file).map_err(|error| error.to_string())?);
    }
    Ok(traces)
}
