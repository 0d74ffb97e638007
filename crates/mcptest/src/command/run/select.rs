//! Which of the planned cases this invocation runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcptest_report::Redactor;
use mcptest_report::model::{CaseId, Report, Shard};
use mcptest_runner::{Candidate, Case, ShardOf, Times, assign, weigh};
use mcptest_suite::Suite;

use super::last_run;
use crate::cli::RunArgs;
use crate::command::report::read;
use crate::output::Output;

/// A suite and its cases that are to be run.
pub struct Planned {
    pub suite: Arc<Suite>,
    pub cases: Vec<Case>,
}

/// What is to be run, and which part of the whole that is.
pub struct Selected {
    pub planned: Vec<Planned>,
    shard: Option<Part>,
}

struct Part {
    shard: ShardOf,
    total: u64,
    /// Where each case of the part stands in the whole.
    positions: Vec<u64>,
}

/// Leaves what `--rerun-failed` and `--shard` ask for, in that order. Nothing left is no error:
/// another shard has it, or all passed before.
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
        let failed = last_run::failed(wanted.as_deref())?;
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
        return Ok(Selected {
            planned,
            shard: None,
        });
    };
    let times = times(&planned, run)?;
    let part = take_shard(&mut planned, shard, &times);
    if part.positions.is_empty() {
        output.status(&format!(
            "shard {}/{} has nothing to run",
            shard.number, shard.of
        ));
    }
    Ok(Selected {
        planned,
        shard: Some(part),
    })
}

fn count(planned: &[Planned]) -> usize {
    planned.iter().map(|planned| planned.cases.len()).sum()
}

fn only_failed(planned: &mut [Planned], failed: &BTreeSet<CaseId>, redactor: &Redactor) {
    for Planned { suite, cases } in planned {
        // Reports are without secrets, so names are compared without them.
        cases.retain(|case| failed.contains(&last_run::redacted(&case.id(suite), redactor)));
    }
}

/// How long cases took: as the report of `--timings` says, else as their cassettes do. What is
/// being recorded is not looked at: the shards would see what the first of them wrote, and cut
/// differently.
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

fn take_shard(planned: &mut [Planned], shard: ShardOf, times: &Times) -> Part {
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
    Part {
        shard,
        total: position,
        positions,
    }
}

impl Selected {
    /// Where the tests of the report stand in the whole, if it is of a shard.
    pub fn shard_of(&self, report: &Report) -> Option<Shard> {
        let part = self.shard.as_ref()?;
        let ids = self
            .planned
            .iter()
            .flat_map(|planned| planned.cases.iter().map(|case| case.id(&planned.suite)));
        let mut left_out = report.not_run.iter().peekable();
        let (mut tests, mut not_run) = (Vec::new(), Vec::new());
        // Both lists keep the order of the cases.
        for (id, position) in ids.zip(&part.positions) {
            if left_out.next_if(|next| **next == id).is_some() {
                not_run.push(*position);
            } else {
                tests.push(*position);
            }
        }
        Some(Shard {
            number: part.shard.number,
            of: part.shard.of,
            total: part.total,
            tests,
            not_run,
        })
    }
}
