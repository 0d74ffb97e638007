//! Readers of trace formats: each makes native traces that read back, or gives an error.

use mcptest_formats::{Input, READERS, detect};

use super::trace_native::reads_back;

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let _ = Input::head(input);
    let (lines, _) = Input::parse_lines(input, 1);
    // Of an input that is not JSON as a whole, the lines that are JSON are read.
    let input = Input::parse(input).unwrap_or(lines);
    let detected = detect(&input).map(|reader| reader.format().name);
    for reader in READERS {
        let name = reader.format().name;
        let _ = reader.grouping(&input);
        match reader.read(&input) {
            Ok(traces) => traces.iter().for_each(|trace| {
                let _ = (trace.pair_results(), trace.final_text());
                reads_back(trace);
            }),
            Err(error) => assert!(!error.to_string().is_empty(), "{name}: {detected:?}"),
        }
    }
}
