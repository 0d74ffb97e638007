//! Maps of home-made trace formats, applied to a document. The input is a map and a document, with
//! a line `===` between.

use mcptest_formats::{Input, Map};

use super::trace_native::reads_back;
use crate::property::assert_located;

const NAME: &str = "map.yml";

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let separator = b"\n===\n";
    let end = input
        .windows(separator.len())
        .position(|part| part == separator);
    let (map, document) = match end {
        Some(end) => (&input[..=end], &input[end + separator.len()..]),
        None => (input, &[][..]),
    };
    let map = match Map::load(NAME, map) {
        Ok(map) => map,
        Err(problems) => return assert_located(&problems, NAME),
    };
    if let Ok(document) = Input::parse(document) {
        let traces = map.read(&document);
        traces.iter().flatten().for_each(reads_back);
    }
}
