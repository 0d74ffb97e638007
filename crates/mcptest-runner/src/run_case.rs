//! Running one case: all runs at once, or batch by batch until the verdict is decided.

use std::sync::Arc;

use mcptest_events::{Event, RunFinished, RunSpend, Spend};
use mcptest_gate_api::GateOutcome;
use mcptest_suite::suite::{AgentTest, Test};
use mcptest_trace::verdict::Verdict;
use tokio::task::JoinSet;

use crate::case_context::{CaseContext, StopOnPanic};
use crate::one_run::{JudgedRun, one_run};
use crate::run_batches::RunBatches;
use crate::verdicts::{CaseJudge, CaseVerdict};

/// The result of a case.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CaseResult {
    /// The verdict, if at least one run finished.
    pub verdict: Option<Verdict>,
    /// True if the case has all the runs that it needs.
    pub complete: bool,
    /// The cost of its finished runs.
    pub spend: Option<Spend>,
}

/// Makes the runs of a case and judges it.
pub(crate) async fn run_case(context: &Arc<CaseContext>) -> CaseResult {
    if let Some((verdict, spend)) = context.run.earlier.judgement(context.planned()) {
        return CaseResult {
            verdict: Some(verdict),
            complete: true,
            spend,
        };
    }
    match context.test() {
        Test::Agent(test) => run_agent_case(context, test).await,
        Test::Tool(_) | Test::ToolQuality(_) => run_direct_case(context).await,
    }
}

/// A direct tool test, or a test of a catalog: one run.
async fn run_direct_case(context: &Arc<CaseContext>) -> CaseResult {
    let earlier = context.run.earlier.run(context.planned(), 1);
    let (verdict, spend) = match (context.test(), earlier) {
        (Test::Tool(_), Some((run, _))) => (CaseVerdict::of_tool(&run.facts), run.spend),
        // A catalog leaves a trace only if it could not be listed.
        (Test::ToolQuality(_), Some((run, _))) => {
            (CaseVerdict::of_catalog(&run.facts, None), run.spend)
        }
        (test, _) => {
            let mut made = None;
            make_runs(context, &[1], |run| made = Some(run)).await;
            let Some(run) = made else {
                return CaseResult::default();
            };
            let (facts, spend) = (run.outcome.facts, run.spend);
            let gate = finish_run(context, run);
            let verdict = match test {
                Test::ToolQuality(_) => CaseVerdict::of_catalog(&facts, gate),
                Test::Tool(_) | Test::Agent(_) => CaseVerdict::of_tool(&facts),
            };
            (verdict, spend)
        }
    };
    let complete = true;
    finish_case(context, verdict, complete, None, spend.unwrap_or_default())
}

/// An agent test with one model: its runs, batch by batch.
async fn run_agent_case(context: &Arc<CaseContext>, test: &AgentTest) -> CaseResult {
    let CaseContext { run, case, .. } = context.as_ref();
    let batches = RunBatches::of(test, case.runs);
    let model = case.model.as_deref();
    let mut judge = CaseJudge::new(run.judge_context(), test, model, &case.label);
    let mut spend = RunSpend::default();
    let (mut made, mut complete) = (0, true);
    while complete {
        let batch = batches.next(made, &mut judge);
        if batch == 0 {
            break;
        }
        let mut to_make = Vec::new();
        for number in made + 1..=made + batch {
            match run.earlier.run(context.planned(), number) {
                Some((earlier, trace)) => {
                    judge.observe(u64::from(number), trace, &earlier.facts);
                    spend = spend.plus(earlier.spend.unwrap_or_default());
                }
                None => to_make.push(number),
            }
        }
        let mut missing = to_make.len();
        make_runs(context, &to_make, |run| {
            missing -= 1;
            judge.observe(u64::from(run.run), &run.trace, &run.outcome.facts);
            spend = spend.plus(run.spend.unwrap_or_default());
            finish_run(context, run);
        })
        .await;
        complete = missing == 0;
        made += batch;
    }
    if judge.runs() == 0 {
        return CaseResult::default();
    }
    let saved = complete.then(|| case.runs - made);
    if let Some(runs) = saved.filter(|runs| *runs > 0) {
        run.cassettes.decided(case, made);
        let case = context.planned();
        run.emit(Event::RunsSaved { case, runs });
    }
    if complete {
        // Before the case counts as finished: a resumed invocation does not record it again.
        run.cassettes.write(case).await;
    }
    let saved = saved.filter(|_| test.stops_when_decided).map(u64::from);
    finish_case(context, judge.finish(), complete, saved, spend)
}

/// Makes runs at once, and passes on each that finishes. A run that was interrupted, or whose task
/// panicked, leaves nothing.
async fn make_runs(
    context: &Arc<CaseContext>,
    numbers: &[u32],
    mut finished: impl FnMut(JudgedRun),
) {
    // Runs wait for their servers in the order of the suite. Where some cases have several runs,
    // which are tasks, a run that is not a task would overtake them.
    if context.single {
        for number in numbers {
            one_run(context, *number).await.map(&mut finished);
        }
        return;
    }
    let mut tasks = JoinSet::new();
    for number in numbers.iter().copied() {
        let context = Arc::clone(context);
        tasks.spawn(async move {
            let _stop = StopOnPanic(context.cancel.clone());
            one_run(&context, number).await
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined.ok().flatten().map(&mut finished);
    }
}

/// Emits the end of a run, with its trace. Returns the gate of a catalog.
fn finish_run(context: &CaseContext, run: JudgedRun) -> Option<GateOutcome> {
    let JudgedRun {
        run: number,
        trace,
        outcome,
        gate,
        spend,
        duration_ms,
    } = run;
    let errors = trace
        .tool_results
        .iter()
        .filter(|result| result.is_error == Some(true));
    let mut finished = RunFinished {
        case: context.planned(),
        run: number,
        calls: trace.tool_calls.len() as u64,
        errors: errors.count() as u64,
        tokens: trace.total_tokens(),
        duration_ms,
        facts: outcome.facts,
        spend,
        record: None,
    };
    // A catalog that was judged has no row of its own.
    if gate.is_none() {
        let name = context.case.row(number);
        finished.record = Some(outcome.into_record(u64::from(number), name, trace));
    }
    context.run.emit(Event::RunFinished(finished));
    gate
}

/// Emits the judgement on a case.
fn finish_case(
    context: &CaseContext,
    verdict: CaseVerdict,
    complete: bool,
    saved_runs: Option<u64>,
    spend: RunSpend,
) -> CaseResult {
    let result = CaseResult {
        verdict: Some(verdict.verdict),
        complete,
        spend: spend.reported(),
    };
    let judged = verdict.into_event(context.planned(), complete, saved_runs, spend);
    if complete {
        context.fail_fast.judged(judged.verdict);
    }
    context.run.emit(Event::CaseJudged(judged));
    result
}
