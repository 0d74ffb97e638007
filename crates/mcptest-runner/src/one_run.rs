//! Making one run, and judging it where it ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcptest_agents::{KeepFile, RunFolders};
use mcptest_events::{Event, RunSpend};
use mcptest_gate_api::GateOutcome;
use mcptest_suite::suite::Test;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError, Verdict};
use serde_json::Value;

use crate::agent_run::agent_run;
use crate::agent_shared::AgentRun;
use crate::budget::RunMeter;
use crate::case_context::CaseContext;
use crate::direct_test::direct_test;
use crate::plan::Case;
use crate::run_context::{CaseRef, RunContext};
use crate::run_state;
use crate::stop_signal::{StopReason, StopSignal};
use crate::tool_list::tool_list;
use crate::verdicts::{RunOutcome, one_run_decides};

/// The end of a run.
pub(crate) enum RunEnd {
    /// It ended and was judged.
    Judged(Box<JudgedRun>),
    /// The user interrupted it. It leaves no evidence, but may have cost something.
    Interrupted(Option<RunSpend>),
    /// It was interrupted, or held back by `--fail-fast`, before it started.
    NotStarted,
}

/// A run that ended and was judged.
pub(crate) struct JudgedRun {
    pub run: u32,
    pub trace: Trace,
    pub outcome: RunOutcome,
    /// The gate of a catalog that was listed.
    pub gate: Option<GateOutcome>,
    pub spend: Option<RunSpend>,
    pub duration: Duration,
    /// The time of its end; `None` if it did not start.
    pub ended: Option<Instant>,
}

impl JudgedRun {
    /// The duration in whole milliseconds.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The result of a run in addition to its trace.
enum RunOutput {
    /// Nothing: an agent's run, or one that did not start.
    Nothing,
    /// The folders of an agent under test, which may be kept.
    RunFolders(Box<RunFolders>),
    /// The assertions of a direct call.
    Assertions(Vec<Assertion>),
    /// The tools that a server lists.
    Listed(Option<Vec<Value>>),
}

/// Makes and judges one run, unless the user, `--fail-fast` or a budget prevents it.
pub(crate) async fn one_run(context: &CaseContext, run: u32) -> RunEnd {
    let test = context.test();
    let meter = RunMeter::default();
    let stop = StopSignal {
        budget: &context.run.budget,
        cancel: &context.cancel,
    };
    let started = AtomicBool::new(false);
    let work = work(context, run, &meter, stop, &started);
    // A test with a teardown is not dropped once it has started, nor a run that has its evidence;
    // they receive the signal themselves.
    let cleans_up = match test {
        Test::Agent(test) => !test.state.teardown.is_empty(),
        Test::Direct(test) => !test.teardown.is_empty(),
        Test::ToolQuality(_) => false,
    };
    let stopped = async {
        let reason = stop.received().await;
        let ends_itself = cleans_up && started.load(Ordering::Relaxed);
        if ends_itself || meter.reading.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        reason
    };
    let finished = tokio::select! {
        biased;
        reason = stopped => Err(reason),
        finished = work => finished,
    };
    let Finished {
        mut trace,
        output,
        duration,
        ended,
    } = match finished {
        Ok(finished) => finished,
        Err(StopReason::Interrupted) if started.load(Ordering::Relaxed) => {
            return RunEnd::Interrupted(context.run.budget.spend_of(&meter));
        }
        Err(StopReason::Interrupted) => return RunEnd::NotStarted,
        Err(StopReason::Deadline(deadline)) => {
            let how = if started.load(Ordering::Relaxed) {
                "stopped"
            } else {
                "never started"
            };
            let message = format!("{how}: {}", deadline.message);
            let kind = ErrorKind::Budget;
            failed(
                &context.run,
                context.case(),
                run,
                RunError { kind, message },
            )
        }
    };
    let (output, folders) = match output {
        RunOutput::RunFolders(folders) => (RunOutput::Nothing, Some(folders)),
        other => (other, None),
    };
    let (outcome, gate) = judge(&context.run, test, &trace, output);
    if let Some(folders) = folders {
        keep_folders(context, run, *folders, outcome.facts.verdict, &mut trace);
    }
    // Before anything else can start: one failed run is a failed test, unless a gate decides about
    // the runs together.
    if one_run_decides(test) {
        context.fail_fast.judged(outcome.facts.verdict);
    }
    RunEnd::Judged(Box::new(JudgedRun {
        run,
        trace,
        outcome,
        gate,
        spend: context.run.budget.spend_of(&meter),
        duration,
        ended,
    }))
}

/// A run that ended.
struct Finished {
    trace: Trace,
    output: RunOutput,
    /// The time from its start, without the start-up of its servers.
    duration: Duration,
    /// The time of its end; `None` if it did not start.
    ended: Option<Instant>,
}

/// Waits for its servers and a permit, and makes the run.
async fn work<'a>(
    context: &CaseContext,
    run: u32,
    meter: &RunMeter,
    stop: StopSignal<'a>,
    started: &AtomicBool,
) -> Result<Finished, StopReason<'a>> {
    let CaseContext {
        run: shared, index, ..
    } = context;
    let case = context.case();
    // Before the permit: a run that waits for a server does not keep others from working.
    let _servers = shared.sessions.locks.acquire(context.test()).await;
    // The semaphore is never closed.
    let _permit = context
        .permits
        .acquire()
        .await
        .map_err(|_| StopReason::Interrupted)?;
    if !context.fail_fast.may_start(*index) {
        return Err(StopReason::Interrupted);
    }
    if case.model.is_some()
        && let Some(error) = shared.budget.stopped(*index)
    {
        return Ok(failed(shared, case, run, error));
    }
    started.store(true, Ordering::Relaxed);
    shared.emit(Event::RunStarted {
        case: context.planned(),
        run,
    });
    let began = Instant::now();
    // In a box, because all cases of a suite with a `serial` test wait together: a waiting case
    // takes 1.8 kB instead of 9.3 kB, which is 75 MB for 10,000 direct tests.
    let (mut trace, output) = Box::pin(make(context, run, meter, stop)).await?;
    name_trace(&mut trace, shared, case, run);
    let ended = Instant::now();
    let took = ended.saturating_duration_since(began);
    Ok(Finished {
        trace,
        output,
        duration: took.saturating_sub(meter.startup.total()),
        ended: Some(ended),
    })
}

/// Makes the run. A direct call that was interrupted leaves nothing.
async fn make<'a>(
    context: &CaseContext,
    run: u32,
    meter: &RunMeter,
    stop: StopSignal<'a>,
) -> Result<(Trace, RunOutput), StopReason<'a>> {
    let CaseContext {
        run: shared, index, ..
    } = context;
    let case = context.case();
    let place = CaseRef {
        case: *index,
        test: case.test,
        model: case.model.as_deref().unwrap_or_default(),
        run,
        meter,
    };
    Ok(match context.test() {
        Test::Agent(test) => {
            let mut output = RunOutput::Nothing;
            let trace = match shared.cassettes.run(case, run) {
                Ok(cassette) => {
                    let ran = Box::pin(agent_run(shared, place, test, &cassette, stop));
                    let AgentRun {
                        trace,
                        stderr,
                        folders,
                    } = ran.await;
                    if run_state::is_interrupted(&trace) {
                        return Err(stop.received().await);
                    }
                    if let Some(folders) = folders {
                        output = RunOutput::RunFolders(Box::new(folders));
                    }
                    let mut trace = Box::pin(cassette.finish(trace)).await;
                    if !stderr.is_empty() {
                        trace.extra.insert("stderr", stderr);
                    }
                    trace
                }
                Err(error) => Trace {
                    error: Some(error),
                    ..Trace::default()
                },
            };
            (trace, output)
        }
        Test::Direct(test) => {
            let called = direct_test(shared, place, test, stop).await?;
            (called.trace, RunOutput::Assertions(called.assertions))
        }
        Test::ToolQuality(test) => {
            let listed = Box::pin(tool_list(test, &shared.sessions, &meter.startup));
            let (trace, listed) = listed.await;
            (trace, RunOutput::Listed(listed))
        }
    })
}

/// Keeps the folders of an agent under test, as its `keep:` says.
fn keep_folders(
    context: &CaseContext,
    run: u32,
    folders: RunFolders,
    verdict: Verdict,
    trace: &mut Trace,
) {
    let Test::Agent(test) = context.test() else {
        return;
    };
    let label = context.case().model.as_deref().unwrap_or_default();
    let keep = match test.agent(label).map(|one| one.agent.keep()) {
        Some(KeepFile::Always) => true,
        Some(KeepFile::Failed) => verdict != Verdict::Pass,
        Some(KeepFile::Never) | None => false,
    };
    if keep {
        let place = folders.keep().display().to_string();
        context.run.note(format!(
            "{}: the agent's folders are kept in {place}",
            context.case().row(run)
        ));
        trace.extra.insert("room", place);
    }
}

/// Judges a run.
fn judge(
    shared: &RunContext,
    test: &Test,
    trace: &Trace,
    output: RunOutput,
) -> (RunOutcome, Option<GateOutcome>) {
    let context = shared.judge_context();
    match (test, output) {
        (Test::Agent(test), _) => (RunOutcome::of_agent(&context, test, trace), None),
        (Test::ToolQuality(test), RunOutput::Listed(listed)) => {
            RunOutcome::of_catalog(&context, test, trace, listed.as_deref())
        }
        (_, RunOutput::Assertions(assertions)) => {
            (RunOutcome::of_tool(&context, trace, assertions), None)
        }
        (_, RunOutput::Nothing | RunOutput::RunFolders(_) | RunOutput::Listed(_)) => {
            (RunOutcome::of_tool(&context, trace, Vec::new()), None)
        }
    }
}

/// A run that a budget prevented or stopped.
fn failed(shared: &RunContext, case: &Case, run: u32, error: RunError) -> Finished {
    let mut trace = Trace {
        error: Some(error),
        ..Trace::default()
    };
    name_trace(&mut trace, shared, case, run);
    Finished {
        trace,
        output: RunOutput::Nothing,
        duration: Duration::ZERO,
        ended: None,
    }
}

fn name_trace(trace: &mut Trace, shared: &RunContext, case: &Case, run: u32) {
    trace.test = Some(shared.suite.tests[case.test].name().to_owned().into());
    trace.model = case.model.clone().map(Into::into);
    trace.run = Some(u64::from(run));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the future that a function returns.
    fn size<A, B, C, D, F: Future>(_: impl FnOnce(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// A future is moved several times before it is polled. Rare parts of a run (connecting,
    /// fixtures, judges, an agent's loop) are in boxes, so that 200 direct calls do not copy them.
    #[test]
    fn the_future_of_a_direct_call_is_small() {
        let size = size(make);
        assert!(size <= 6000, "{size} bytes");
    }
}
