//! The gates of this program.

use std::sync::OnceLock;

use mcptest_gate_api::GateInfo;
use mcptest_report::GateMeaning;

static GATES: OnceLock<&'static [GateInfo]> = OnceLock::new();

/// Sets the gates that suites may use, once, at the start of the program.
pub fn use_gates(gates: &'static [GateInfo]) {
    // A second call changes nothing.
    let _ = GATES.set(gates);
}

/// The gates that suites may use. Without any, a suite with a gate's block is an error.
pub fn all() -> &'static [GateInfo] {
    GATES.get().copied().unwrap_or_default()
}

/// The meaning of each gate, in the words of its documentation.
pub fn meanings() -> &'static [GateMeaning] {
    static MEANINGS: OnceLock<Vec<GateMeaning>> = OnceLock::new();
    MEANINGS.get_or_init(|| {
        let meaning = |gate: &GateInfo| GateMeaning {
            block: gate.block,
            summary: gate.summary,
            targets: gate.targets,
        };
        all().iter().map(meaning).collect()
    })
}
