//! Assertions on a run in addition to its `expect:` list: the turns of the user that were not said.
//!
//! They are read from the trace, so `run`, `score`, `--resume` and a replay judge the same.

use mcptest_suite::suite::AgentTest;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::TraceView;
use mcptest_trace::user_turn::UnsaidTurn;

/// Returns true if a test asserts more on a run than its `expect:` list.
pub(crate) fn has_outcomes(test: &AgentTest) -> bool {
    !test.turns.is_empty()
}

/// The assertions on one run in addition to its `expect:` list.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// The assertions.
    pub assertions: Vec<Assertion>,
    /// True if the trace does not have all the evidence.
    pub missing: bool,
}

impl Outcomes {
    /// Judges a run that ended without an error.
    pub fn of(test: &AgentTest, trace: &TraceView<'_>) -> Self {
        let mut outcomes = Self::default();
        if !test.turns.is_empty()
            && let Some(unsaid) = UnsaidTurn::of(trace)
        {
            outcomes.assertions.push(unsaid.into_assertion());
        }
        outcomes
    }

    /// Returns true if there is all the evidence, and all assertions hold.
    pub fn hold(&self) -> bool {
        !self.missing && !self.assertions.iter().any(Assertion::failed)
    }
}
