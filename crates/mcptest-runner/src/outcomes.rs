//! Assertions on a run in addition to its `expect:` list: the turns of the user that were not said,
//! and the outcome, which are the answers to the calls of `after:`.
//!
//! They are read from the trace, so `run`, `score`, `--resume` and a replay judge the same.

use mcptest_suite::state::StateCall;
use mcptest_suite::suite::AgentTest;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::TraceView;
use mcptest_trace::user_turn::UnsaidTurn;
use serde_json::Value;

use crate::state_calls::{AFTER_KEY, is_answer_to};

/// Returns true if a test asserts more on a run than its `expect:` list.
pub(crate) fn has_outcomes(test: &AgentTest) -> bool {
    !test.turns.is_empty() || !test.state.after.is_empty()
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
        let answers = trace.extra.get(AFTER_KEY).and_then(Value::as_array);
        for (index, call) in test.state.after.iter().enumerate() {
            let answer = answers.and_then(|answers| answers.get(index));
            outcomes.judge_call(index, call, answer);
        }
        outcomes
    }

    /// Applies the assertions of a call of `after:`.
    fn judge_call(&mut self, index: usize, call: &StateCall, answer: Option<&Value>) {
        let answer = answer.filter(|answer| is_answer_to(answer, call));
        for expectation in &call.expect {
            let target = format!("after[{index}].{}", expectation.target);
            let assertion = match answer {
                Some(answer) => {
                    let mut assertion = expectation.apply(answer, None);
                    if let Some(reason) = assertion.reason.take() {
                        assertion.reason = Some(format!("{reason}; {call}"));
                    }
                    Assertion {
                        target,
                        ..assertion
                    }
                }
                None => {
                    self.missing = true;
                    Assertion {
                        passed: false,
                        skipped: Some(format!("the trace has no answer to {call}")),
                        ..Assertion::new(
                            target,
                            expectation.matcher.written().clone(),
                            Value::Null,
                            None,
                        )
                    }
                }
            };
            self.assertions.push(assertion);
        }
    }

    /// Returns true if there is all the evidence, and all assertions hold.
    pub fn hold(&self) -> bool {
        !self.missing && !self.assertions.iter().any(Assertion::failed)
    }
}
