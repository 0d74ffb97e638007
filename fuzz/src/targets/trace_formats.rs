//! Readers of trace formats: each makes native traces that read back, or gives an error; the start
//! of an input has the documents with which the whole begins.
//!
//! An input is read by the reader that detection chooses, and by one more, which its length
//! chooses: the change of a few bytes by libFuzzer keeps it. All readers together would make an
//! input about ten times as slow.

use mcptest_formats::{Input, READERS, Reader, detect};

use super::trace_native::reads_back;

/// Runs one input.
pub(super) fn run(bytes: &[u8]) {
    let input = match Input::parse(bytes) {
        Ok(input) => {
            starts_alike(bytes, &input);
            input
        }
        // Of an input that is not JSON as a whole, the lines that are JSON are read.
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let _ = Input::head(bytes);
            Input::parse_lines(bytes, 1).0
        }
    };
    let detected = detect(&input).ok();
    let other = READERS.get(bytes.len() % READERS.len()).copied();
    let name = |reader: Option<&dyn Reader>| reader.map(|reader| reader.format().name);
    if let Some(reader) = detected {
        reads(reader, &input);
    }
    if let Some(reader) = other.filter(|_| name(other) != name(detected)) {
        reads(reader, &input);
    }
}

/// Panics unless the head of an input has the documents with which the input begins.
fn starts_alike(bytes: &[u8], input: &Input) {
    if let Ok(Some(head)) = Input::head(bytes) {
        let both = head.documents().iter().zip(input.documents());
        let mut both = both.map(|(head, all)| (head.line, &head.value) == (all.line, &all.value));
        assert!(both.all(|same| same), "the head differs from the whole");
        assert!(head.documents().len() <= input.documents().len());
    }
}

fn reads(reader: &dyn Reader, input: &Input) {
    let _ = reader.grouping(input);
    match reader.read(input) {
        Ok(traces) => traces.iter().for_each(|trace| {
            let _ = (trace.pair_results(), trace.final_text());
            reads_back(trace);
        }),
        Err(error) => assert!(!error.to_string().is_empty(), "{}", reader.format().name),
    }
}
