//! The output of agents under test, with the rules of every preset: the chunks do not matter.

use std::sync::LazyLock;

use mcptest_agents::fuzzing::OutputReader;
use mcptest_agents::presets;

use crate::property::chunks;

static READERS: LazyLock<Vec<OutputReader>> =
    LazyLock::new(|| presets().iter().filter_map(OutputReader::new).collect());

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    for reader in READERS.iter() {
        let whole = reader.read([input]);
        // A cost that is not a number equals nothing.
        if whole.cost_usd.is_none_or(|cost| !cost.is_nan()) {
            assert_eq!(reader.read(chunks(input)), whole, "in chunks");
        }
    }
}
