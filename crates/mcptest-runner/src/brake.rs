//! `--fail-fast`: after the first test that fails, no other is begun.
//!
//! What has begun is carried through, so that every test in the report has all of its runs and its
//! gates are judged on what they asked for.

use std::sync::{Mutex, PoisonError};

use mcptest_trace::verdict::Verdict;

/// Shared by all runs of a suite. Without `--fail-fast` it does nothing.
pub(crate) struct Brake(Option<Mutex<State>>);

struct State {
    pulled: bool,
    /// Which cases have begun.
    begun: Vec<bool>,
}

impl Brake {
    pub fn new(fail_fast: bool, cases: usize) -> Self {
        Self(fail_fast.then(|| {
            Mutex::new(State {
                pulled: false,
                begun: vec![false; cases],
            })
        }))
    }

    /// Whether `--fail-fast` was asked for.
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a run of this case may begin.
    pub fn may_begin(&self, case: usize) -> bool {
        let Some(state) = &self.0 else { return true };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let pulled = state.pulled;
        state.begun[case] |= !pulled;
        state.begun[case]
    }

    /// Takes note of what came out of a test, or of a run that decides about its test.
    pub fn judged(&self, verdict: Verdict) {
        if let Some(state) = &self.0 {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.pulled |= matches!(verdict, Verdict::Fail | Verdict::Error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_goes_on_and_nothing_else_begins() {
        let brake = Brake::new(true, 2);
        assert!(brake.may_begin(0));
        brake.judged(Verdict::NoEvidence);
        brake.judged(Verdict::Error);
        assert!(brake.may_begin(0));
        assert!(!brake.may_begin(1));
    }

    #[test]
    fn without_it_everything_goes_on() {
        let brake = Brake::new(false, 1);
        brake.judged(Verdict::Fail);
        assert!(brake.may_begin(0));
    }
}
