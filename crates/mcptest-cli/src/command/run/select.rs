//! Selection of the planned cases that this invocation runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use mcptest_events::{CaseId, Event, ShardPlan};
use mcptest_report::Redactor;
use mcptest_runner::{Candidate, Case, ShardOf, Times, assign, weigh};
use mcptest_suite::Suite;
use mcptest_trace::verdict::Verdict;

use crate::cli::RunArgs;
use crate::command::report::read;
use crate::history;
use crate::output::Output;

/// A suite and its cases that are to be run.
pub struct Planned {
    pub suite: Arc<Suite>,
    pub cases: Vec<Case>,
}

/// The cases to run, and their place in the whole.
pub struct Selected {
    pub planned: Vec<Planned>,
    /// The position of each case among those of all shards.
    positions: Vec<u64>,
    shard: Option<ShardPlan>,
}

/// Applies `--rerun-failed` and `--shard`, in that order. An empty selection is not an error:
/// another shard has the tests, or all passed before.
///
/// # Errors
/// A report that cannot be read.
pub fn select(
    mut planned: Vec<Planned>,
    run: &RunArgs,
    redactor: &Redactor,
    output: &Output,
) -> Result<Selected, String> {
    let args = &run.many;
    if let Some(wanted) = &args.rerun_failed {
        let failed = failed(wanted.as_deref())?;
        only_failed(&mut planned, &failed, redactor);
        let left = count(&planned);
        if left == 0 {
            output.status("nothing to run again: none of these tests failed the last time");
        } else {
            let plural = if left == 1 { "" } else { "s" };
            output.status(&format!(
                "running again {left} test{plural} that did not pass the last time"
            ));
        }
    }
    let Some(shard) = args.shard else {
        let positions = (0..count(&planned) as u64).collect();
        return Ok(Selected::of(planned, positions, None));
    };
    let times = times(&planned, run)?;
    let (positions, total) = take_shard(&mut planned, shard, &times);
    if positions.is_empty() {
        output.status(&format!(
            "shard {}/{} has nothing to run",
            shard.number, shard.of
        ));
    }
    let shard = ShardPlan {
        number: shard.number,
        of: shard.of,
        total,
    };
    Ok(Selected::of(planned, positions, Some(shard)))
}

/// The tests that did not pass: in a report, or the last time in the history.
fn failed(report: Option<&Path>) -> Result<BTreeSet<CaseId>, String> {
    let Some(path) = report else {
        return history::failed().map_err(|error| {
            format!(
                "no failed run is remembered here: {error}; run the suites first, or name a \
                 report: --rerun-failed=report.json"
            )
        });
    };
    let report = read(path)?;
    let failed = report
        .tests
        .iter()
        .filter(|test| test.verdict != Verdict::Pass)
        .map(|test| test.id.clone());
    Ok(failed.chain(report.not_run.iter().cloned()).collect())
}

fn count(planned: &[Planned]) -> usize {
    planned.iter().map(|planned| planned.cases.len()).sum()
}

fn only_failed(planned: &mut [Planned], failed: &BTreeSet<CaseId>, redactor: &Redactor) {
    for Planned { suite, cases } in planned {
        // Reports are without secrets, so names are compared without them.
        cases.retain(|case| failed.contains(&redacted(&case.id(suite), redactor)));
    }
}

/// A case's identity as reports have it.
fn redacted(id: &CaseId, redactor: &Redactor) -> CaseId {
    CaseId {
        suite: redactor.text(&id.suite),
        name: redactor.text(&id.name),
        model: id.model.as_deref().map(|model| redactor.text(model)),
    }
}

/// The durations of cases: from the report of `--timings`, else from their cassettes. While
/// cassettes are recorded they are not read: the shards would see what the first of them wrote, and
/// compute different partitions.
fn times(planned: &[Planned], run: &RunArgs) -> Result<Times, String> {
    let mut times = Times::default();
    if let Some(path) = run.many.timings.as_deref() {
        let report = read(path)?;
        let Some(known) = report.case_times() else {
            return Err(format!(
                "`{}` has no times; write it without --no-timing",
                path.display()
            ));
        };
        times = Times::of_cases(known);
    }
    if !run.recording.record {
        for Planned { suite, cases } in planned {
            for case in cases {
                times.add_cassette(suite, case, run.recording.cassettes.as_deref());
            }
        }
    }
    Ok(times)
}

/// Keeps the cases of a shard. Returns their positions in the whole, and its size.
fn take_shard(planned: &mut [Planned], shard: ShardOf, times: &Times) -> (Vec<u64>, u64) {
    let all: Vec<Candidate> = planned
        .iter()
        .flat_map(|planned| {
            planned
                .cases
                .iter()
                .map(|case| Candidate::of(&planned.suite, case))
        })
        .collect();
    let mut numbers = assign(&weigh(&all, times), shard.of).into_iter();
    let mut positions = Vec::new();
    let mut position = 0;
    for Planned { cases, .. } in planned {
        cases.retain(|_| {
            let mine = numbers.next() == Some(shard.number);
            if mine {
                positions.push(position);
            }
            position += 1;
            mine
        });
    }
    (positions, position)
}

impl Selected {
    /// A selection with the position of each case.
    pub fn of(planned: Vec<Planned>, positions: Vec<u64>, shard: Option<ShardPlan>) -> Self {
        Self {
            planned,
            positions,
            shard,
        }
    }

    /// The event with the plan.
    pub fn plan(&self) -> Event {
        let cases = self
            .planned
            .iter()
            .flat_map(|Planned { suite, cases }| cases.iter().map(move |case| (suite, case)));
        Event::Planned {
            cases: cases
                .zip(&self.positions)
                .map(|((suite, case), position)| case.planned(suite, *position))
                .collect(),
            shard: self.shard,
        }
    }
}
