//! `--fail-fast`: after the first test that fails, no other is begun.
//!
//! What has begun is carried through, so that every test in the report has all of its runs and its gates are judged on what they asked for.

use std::sync::{Mutex, PoisonError};

use mcptest_core::verdict::Verdict;
use mcptest_suite::Suite;
use mcptest_suite::suite::Test;

use crate::execute::{Finished, judge_case};
use crate::plan::Case;

/// Shared by all runs of a suite. Without `--fail-fast` it does nothing.
pub(crate) struct Brake(Option<Mutex<State>>);

struct State {
    pulled: bool,
    cases: Vec<Progress>,
}

/// How far a case is.
#[derive(Default)]
struct Progress {
    begun: bool,
    left: u32,
    finished: Vec<Finished>,
}

impl Brake {
    pub fn new(fail_fast: bool, cases: &[Case]) -> Self {
        let progress = |case: &Case| Progress {
            left: case.runs,
            ..Progress::default()
        };
        Self(fail_fast.then(|| {
            Mutex::new(State {
                pulled: false,
                cases: cases.iter().map(progress).collect(),
            })
        }))
    }

    /// Whether a run of this case may begin.
    pub fn may_begin(&self, case: usize) -> bool {
        let Some(state) = &self.0 else { return true };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let pulled = state.pulled;
        let progress = &mut state.cases[case];
        progress.begun |= !pulled;
        progress.begun
    }

    /// Looks at a run that is over. `verdict` is what its own assertions say.
    pub fn finished(&self, suite: &Suite, case: &Case, one: &Finished, verdict: Verdict) {
        let Some(state) = &self.0 else { return };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.pulled {
            return;
        }
        let progress = &mut state.cases[one.case];
        progress.left = progress.left.saturating_sub(1);
        progress.finished.push(one.clone());
        let failed = if progress.left > 0 {
            // One failed run is a failed test, unless a gate is to decide about the runs together.
            is_bad(verdict) && !matches!(&suite.tests[case.test], Test::Agent(test) if test.tolerates_failed_runs)
        } else {
            let mut finished = std::mem::take(&mut progress.finished);
            finished.sort_by_key(|one| one.run);
            judge_case(suite, &suite.known_servers(), case, finished).is_some_and(|test| is_bad(test.verdict))
        };
        state.pulled = failed;
    }
}

fn is_bad(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Fail | Verdict::Error)
}
