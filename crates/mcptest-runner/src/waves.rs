//! How many runs of a test are started next, and when no further one is needed.
//!
//! A test that stops when it is decided makes its runs in waves. After each wave the runs so far, in the order of their numbers, are asked
//! whether the test is decided; if not, how many further runs are needed at least. The next wave is as large as that, so no run is made in
//! vain and the report does not depend on how many go on at once.

use mcptest_core::eval::Run;
use mcptest_core::trace::Trace;
use mcptest_suite::suite::AgentTest;

use crate::judge::{Bench, RunOutcome};

/// The number of runs to start next; 0 when the test is decided. `made` are the traces of the first runs, in order.
pub(crate) fn next_wave(
    bench: &Bench<'_>,
    test: &AgentTest,
    model: Option<&str>,
    label: &str,
    made: &[&Trace],
    max: u32,
) -> u32 {
    let remaining = u64::from(max).saturating_sub(made.len() as u64);
    if remaining == 0 || !test.stops_when_decided || !test.gates.iter().all(|gate| gate.info().decides_early) {
        return count(remaining);
    }
    let outcomes: Vec<RunOutcome> = made.iter().map(|trace| RunOutcome::of(bench, test, trace)).collect();
    let runs: Vec<Run<'_>> = made
        .iter()
        .zip(&outcomes)
        .zip(1..)
        .filter(|((trace, _), _)| trace.error.is_none())
        .map(|((trace, outcome), index)| Run {
            index,
            trace,
            expectations_held: outcome.expectations_held,
        })
        .collect();
    let context = bench.context(label, model);
    // Runs that fail decide; runs that pass, or break, leave it open whether a later one fails.
    let failed = outcomes.iter().any(|outcome| outcome.fails(test));
    let mut needed = u64::from(made.is_empty() || (!failed && can_fail(bench, test)));
    for gate in &test.gates {
        if gate.decided(&context, &runs, remaining).is_none() {
            needed = needed.max(gate.least_further_runs(&context, &runs, remaining));
        }
    }
    count(needed.min(remaining))
}

/// Whether a single run can fail the test.
fn can_fail(bench: &Bench<'_>, test: &AgentTest) -> bool {
    test.expect.iter().any(|expectation| match expectation.judge() {
        Some(_) => bench.judges,
        None => !test.tolerates_failed_runs,
    })
}

fn count(runs: u64) -> u32 {
    u32::try_from(runs).unwrap_or(u32::MAX)
}
