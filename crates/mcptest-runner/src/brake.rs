//! `--fail-fast`: after the first test that fails, no other is begun.
//!
//! What has begun is carried through, so that every test in the report has all of its runs and its gates are judged on what they asked for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mcptest_core::verdict::Verdict;

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

    /// Whether anything can pull it.
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a run of this case may begin.
    pub fn may_begin(&self, case: usize) -> bool {
        let Some(mut state) = self.state() else { return true };
        let pulled = state.pulled;
        state.begun[case] |= !pulled;
        state.begun[case]
    }

    /// Looks at what came of a run, or of a whole test.
    pub fn look_at(&self, verdict: Verdict) {
        if let Some(mut state) = self.state() {
            state.pulled |= matches!(verdict, Verdict::Fail | Verdict::Error);
        }
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.0.as_ref()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
