//! The gates of the program.

use std::sync::OnceLock;

use mcptest_gate_api::GateInfo;
use mcptest_report::GateMeaning;

/// The gates that suites may use. Without any, a suite with a gate's block is an error.
pub type Gates = &'static [GateInfo];

/// The meaning of each gate, in the words of its documentation.
pub fn meanings(gates: Gates) -> &'static [GateMeaning] {
    // A program has one list of gates.
    static MEANINGS: OnceLock<Vec<GateMeaning>> = OnceLock::new();
    MEANINGS.get_or_init(|| {
        let meaning = |gate: &GateInfo| GateMeaning {
            block: gate.block,
            summary: gate.summary,
            targets: gate.targets,
        };
        gates.iter().map(meaning).collect()
    })
}
