//! `--fail-fast`: after the first test that fails, no other test starts.
//!
//! Tests that have started are completed, so that every test in the report has all of its runs and
//! its gates judge as many runs as they ask for.

use std::sync::{Mutex, PoisonError};

use mcptest_trace::verdict::Verdict;

/// The state of `--fail-fast`, shared by all runs of a suite. Without the option it does nothing.
pub(crate) struct FailFast(Option<Mutex<State>>);

struct State {
    stopped: bool,
    /// For each case, true if it has started.
    started: Vec<bool>,
}

impl FailFast {
    pub fn new(enabled: bool, cases: usize) -> Self {
        Self(enabled.then(|| {
            Mutex::new(State {
                stopped: false,
                started: vec![false; cases],
            })
        }))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        let state = self.0.as_ref()?;
        // A panic elsewhere leaves the flags as they are.
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        Some(change(&mut state))
    }

    /// Returns true if a run of this case may start, and notes that the case has started.
    pub fn may_start(&self, case: usize) -> bool {
        self.with(|state| {
            state.started[case] |= !state.stopped;
            state.started[case]
        })
        .unwrap_or(true)
    }

    /// Notes that a case had started before the invocation was resumed.
    pub fn had_started(&self, case: usize) {
        self.with(|state| state.started[case] = true);
    }

    /// Notes the verdict on a test, or on a run that decides about its test.
    pub fn judged(&self, verdict: Verdict) {
        let stops = matches!(verdict, Verdict::Fail | Verdict::Error);
        self.with(|state| state.stopped |= stops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn started_tests_continue_and_no_other_starts() {
        let fail_fast = FailFast::new(true, 3);
        assert!(fail_fast.may_start(0));
        fail_fast.had_started(2);
        fail_fast.judged(Verdict::NoEvidence);
        fail_fast.judged(Verdict::Error);
        assert!(fail_fast.may_start(0));
        assert!(!fail_fast.may_start(1));
        assert!(fail_fast.may_start(2));
    }

    #[test]
    fn without_the_option_every_test_starts() {
        let fail_fast = FailFast::new(false, 1);
        fail_fast.judged(Verdict::Fail);
        assert!(fail_fast.may_start(0));
    }
}
