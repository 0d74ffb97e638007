//! Traces one by one, for work that is not scoring.

use std::path::PathBuf;

use mcptest_trace::trace::Trace;

use super::broken::BrokenLines;
use super::{Collect, FormatSetting, ReadSettings, Step, TraceFileError, fold_traces};

/// Calls a function for each trace of some files, in order, until it returns false. Memory holds a
/// few blocks of a file. Returns the broken lines, which are skipped.
///
/// # Errors
/// A file that cannot be read, or in which no line is a trace; with `strict`, the first broken
/// line.
pub fn each_trace(
    files: &[PathBuf],
    strict: bool,
    format: &FormatSetting,
    take: &mut dyn FnMut(Trace) -> bool,
) -> Result<BrokenLines, TraceFileError> {
    let settings = ReadSettings {
        strict,
        format: format.as_format(),
        ..ReadSettings::default()
    };
    let mut broken = BrokenLines::default();
    let mut wanted = true;
    let mut number = 0;
    for file in files {
        fold_traces(file, settings, &Collect, &mut number, |step| match step {
            Step::Part(traces, _) => {
                for trace in traces {
                    wanted = wanted && take(trace);
                }
            }
            Step::Broken(line) => broken.add(line),
        })?;
        if !wanted {
            break;
        }
    }
    Ok(broken)
}
