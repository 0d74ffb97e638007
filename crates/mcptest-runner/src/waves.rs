//! How many runs of a test are started next, and when no further one is needed.
//!
//! A test that stops when it is decided makes its runs in waves. After each wave the runs so far,
//! in the order of their numbers, are asked whether the test is decided; if not, how many further
//! runs are needed at least. The next wave is as large as that, so no run is made in vain and the
//! report does not depend on how many go on at once. Each run is looked at once, however many
//! follow.

use mcptest_gates::{Context, GateAccumulator, Run};
use mcptest_suite::suite::AgentTest;
use mcptest_trace::trace::Trace;

use crate::judge::{Bench, RunOutcome};

/// The runs of one test, as they are made.
pub(crate) struct Waves<'a> {
    bench: Bench<'a>,
    context: Context<'a>,
    test: &'a AgentTest,
    /// What each gate makes of the runs so far; nothing if the test makes all its runs anyway.
    watches: Option<Vec<GateAccumulator<'a>>>,
    made: u32,
    max: u32,
    /// Whether a run fails the test.
    failed: bool,
}

impl<'a> Waves<'a> {
    pub fn new(
        bench: Bench<'a>,
        test: &'a AgentTest,
        model: Option<&'a str>,
        label: &'a str,
        max: u32,
    ) -> Self {
        let stops = test.stops_when_decided && test.gates.iter().all(|gate| gate.decides_early());
        Self {
            bench,
            context: bench.context(label, model),
            test,
            watches: stops.then(|| test.gates.iter().map(|gate| gate.accumulator()).collect()),
            made: 0,
            max,
            failed: false,
        }
    }

    /// Takes note of the next run, in the order of their numbers.
    pub fn made(&mut self, trace: &Trace) {
        self.made += 1;
        let Some(watches) = &mut self.watches else {
            return;
        };
        let outcome = RunOutcome::of(&self.bench, self.test, trace);
        self.failed |= outcome.fails(self.test);
        if trace.error.is_some() {
            return;
        }
        let run = Run {
            index: self.made.into(),
            trace,
            expectations_held: outcome.expectations_held,
        };
        watches
            .iter_mut()
            .for_each(|watch| watch.observe(&self.context, &run));
    }

    /// The number of runs to start next; 0 when the test is decided.
    pub fn next(&mut self) -> u32 {
        let remaining = self.max.saturating_sub(self.made);
        let Some(watches) = &mut self.watches else {
            return remaining;
        };
        let remaining = u64::from(remaining);
        // Runs that fail decide; runs that pass, or break, leave it open whether a later one fails.
        let mut needed =
            u64::from(self.made == 0 || (!self.failed && can_fail(&self.bench, self.test)));
        for watch in watches {
            if remaining > 0 && watch.decided(remaining).is_none() {
                needed = needed.max(watch.least_further_runs(remaining));
            }
        }
        u32::try_from(needed.min(remaining)).unwrap_or(u32::MAX)
    }
}

/// Whether a single run can fail the test.
fn can_fail(bench: &Bench<'_>, test: &AgentTest) -> bool {
    test.expect
        .iter()
        .any(|expectation| match expectation.judge() {
            Some(_) => bench.judges,
            None => !test.tolerates_failed_runs,
        })
}
