//! The state that all connections of one run of an agent share: the order of its calls, its turns
//! and its injected faults.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcptest_trace::fault::{AppliedFault, Fault, FaultState, timeout_text};
use serde_json::{Map, Value};

/// The time until a call that a fault applies to is answered. An agent sends the calls of one turn
/// within it, so that they are seen together; a real timeout would take longer.
const FAULT_DELAY: Duration = Duration::from_millis(50);

/// The shared state of a run.
#[derive(Debug)]
pub(crate) struct RunState {
    calls: Mutex<Calls>,
    max_detection_ms: Option<u64>,
}

#[derive(Debug)]
struct Calls {
    faults: FaultState<'static>,
    /// The number of calls so far.
    count: u64,
    /// The number of calls without an answer.
    open: u64,
    /// The number of turns so far. Calls that overlap in time belong to one turn: a client that has
    /// not received the answer to one cannot have used it for the other.
    turns: u64,
}

/// The place of a call among all calls of its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallPlace {
    /// The number of the call, from 1.
    pub order: u64,
    /// The number of its turn, from 1.
    pub turn: u64,
    /// The time of the call.
    pub at: Instant,
}

/// The effect of a fault on a call.
#[derive(Debug)]
pub(crate) enum FaultEffect {
    /// The call is not passed on.
    Timeout(DelayedAnswer),
    /// The call is passed on; its result has these further keys.
    Late(Map<String, Value>),
}

/// A call that is not passed on.
#[derive(Debug)]
pub(crate) struct DelayedAnswer {
    /// The text of the error result.
    pub text: String,
    /// Further keys of the recorded result.
    pub marks: Map<String, Value>,
    /// The time of the answer.
    pub at: Instant,
}

impl RunState {
    pub(crate) fn new(faults: Vec<Fault>, max_detection_ms: Option<u64>) -> Self {
        Self {
            calls: Mutex::new(Calls {
                faults: FaultState::new(faults, max_detection_ms),
                count: 0,
                open: 0,
                turns: 0,
            }),
            max_detection_ms,
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        // A panic elsewhere leaves the counts correct.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that is now open.
    pub(crate) fn called(&self) -> CallPlace {
        let mut calls = self.calls();
        if calls.open == 0 {
            calls.turns += 1;
        }
        calls.open += 1;
        calls.count += 1;
        CallPlace {
            order: calls.count,
            turn: calls.turns,
            at: Instant::now(),
        }
    }

    /// Notes that a call is no longer open.
    pub(crate) fn answered(&self) {
        let mut calls = self.calls();
        calls.open = calls.open.saturating_sub(1);
    }

    /// The effect of the injected faults on the next call.
    pub(crate) fn apply(&self, server: &str, tool: &str) -> Option<FaultEffect> {
        let applied = self.calls().faults.apply(server, tool)?;
        let marks = applied.marks();
        Some(match applied {
            AppliedFault::Timeout { .. } => FaultEffect::Timeout(DelayedAnswer {
                text: timeout_text(tool, self.max_detection_ms),
                marks,
                at: Instant::now() + FAULT_DELAY,
            }),
            AppliedFault::Late { .. } => FaultEffect::Late(marks),
        })
    }
}

#[cfg(test)]
mod tests {
    use mcptest_trace::fault::{FaultKind, FaultTarget};

    use super::*;

    #[test]
    fn calls_that_overlap_are_one_turn() {
        let run = RunState::new(Vec::new(), None);
        let place = |place: CallPlace| (place.order, place.turn);
        assert_eq!(place(run.called()), (1, 1));
        assert_eq!(place(run.called()), (2, 1));
        run.answered();
        assert_eq!(place(run.called()), (3, 1));
        run.answered();
        run.answered();
        assert_eq!(place(run.called()), (4, 2));
        run.answered();
        // An answer too many changes nothing.
        run.answered();
        assert_eq!(place(run.called()), (5, 3));
    }

    #[test]
    fn faults_are_counted_over_all_connections() {
        let fault = Fault {
            name: "flaky".to_owned(),
            target: FaultTarget {
                tool: Some("search".to_owned()),
                server: None,
            },
            kind: FaultKind::RecoverAfter { failures: 1 },
        };
        let run = RunState::new(vec![fault], Some(3000));
        assert!(run.apply("a", "fetch").is_none());
        let Some(FaultEffect::Timeout(call)) = run.apply("a", "search") else {
            panic!("a timeout");
        };
        assert_eq!(
            call.text,
            "Timeout: `search` did not answer within 3000 ms."
        );
        assert_eq!(call.marks["fault"], "flaky");
        assert!(run.apply("b", "search").is_none());
    }
}
