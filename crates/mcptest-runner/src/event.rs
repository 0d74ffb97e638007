//! What happens while a suite runs, for whoever wants to show it.

use mcptest_trace::verdict::Verdict;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The work is known.
    Planned {
        /// How many runs and direct calls there will be.
        total: usize,
    },
    /// A run or direct call begins.
    Started {
        /// Its row's name.
        name: String,
    },
    /// A test is decided, and some of its runs are not needed.
    Spared {
        /// How many.
        runs: usize,
    },
    /// Something is odd about a test, seen only now that its servers have answered.
    Warning {
        /// In one line.
        text: String,
    },
    /// Something was done beside running, such as writing a cassette or a snapshot.
    Note {
        /// In one line.
        text: String,
    },
    /// A run or direct call is over.
    Finished {
        /// Its row's name.
        name: String,
        /// What its own assertions say; the test's gates come at the end.
        verdict: Verdict,
    },
}
