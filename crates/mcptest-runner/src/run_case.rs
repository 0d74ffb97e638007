//! Running one case: all runs in parallel, or batch by batch until the verdict is decided.

use std::sync::Arc;
use std::time::Instant;

use mcptest_events::{Event, RunFinished, RunSpend, Spend};
use mcptest_gate_api::GateOutcome;
use mcptest_suite::suite::{AgentTest, Test};
use mcptest_trace::verdict::Verdict;
use tokio::task::JoinSet;

use crate::case_context::{CaseContext, StopOnPanic};
use crate::one_run::{JudgedRun, RunEnd, one_run};
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
        Test::Direct(_) | Test::ToolQuality(_) => run_direct_case(context).await,
    }
}

/// A direct tool test, or a test of a catalog: one run.
async fn run_direct_case(context: &Arc<CaseContext>) -> CaseResult {
    let earlier = context.run.earlier.run(context.planned(), 1);
    let (verdict, spend) = match (context.test(), earlier) {
        (Test::Direct(_), Some((run, _))) => (CaseVerdict::of_tool(&run.facts), run.spend),
        // A catalog leaves a trace only if it could not be listed.
        (Test::ToolQuality(_), Some((run, _))) => {
            (CaseVerdict::of_catalog(&run.facts, None), run.spend)
        }
        (test, _) => {
            let mut made = None;
            let mut timer = CaseTimer::default();
            let ends = make_runs(context, &[1], |run| {
                timer.add(&run);
                made = Some(run);
            });
            let interrupted = ends.await;
            let Some(run) = made else {
                return finish_interrupted(context, &interrupted, RunSpend::default());
            };
            let (facts, spend) = (run.outcome.facts, run.spend);
            let gate = finish_run(context, *run);
            let verdict = match test {
                Test::ToolQuality(_) => CaseVerdict::of_catalog(&facts, gate),
                Test::Direct(_) | Test::Agent(_) => CaseVerdict::of_tool(&facts),
            };
            let end = CaseEnd {
                spend: spend.unwrap_or_default(),
                duration_ms: timer.duration_ms(),
                ..CaseEnd::default()
            };
            return finish_case(context, verdict, end);
        }
    };
    let end = CaseEnd {
        spend: spend.unwrap_or_default(),
        ..CaseEnd::default()
    };
    finish_case(context, verdict, end)
}

/// The facts about the end of a case, in addition to its verdict.
struct CaseEnd {
    /// True if the case has all the runs that it needs.
    complete: bool,
    saved_runs: Option<u64>,
    spend: RunSpend,
    duration_ms: Option<u64>,
}

impl Default for CaseEnd {
    fn default() -> Self {
        Self {
            complete: true,
            saved_runs: None,
            spend: RunSpend::default(),
            duration_ms: None,
        }
    }
}

/// The wall-clock time of a case: from the start of its first run to the end of its last one.
#[derive(Default)]
struct CaseTimer(Option<(Instant, Instant)>);

impl CaseTimer {
    fn add(&mut self, run: &JudgedRun) {
        let Some(ended) = run.ended else { return };
        let began = ended.checked_sub(run.duration).unwrap_or(ended);
        let (first, last) = self.0.unwrap_or((began, ended));
        self.0 = Some((first.min(began), last.max(ended)));
    }

    fn duration_ms(&self) -> Option<u64> {
        let (first, last) = self.0?;
        u64::try_from(last.saturating_duration_since(first).as_millis()).ok()
    }
}

/// Emits the judgement on a case of which no run finished. A case that did not start has none.
fn finish_interrupted(
    context: &CaseContext,
    interrupted: &Interrupted,
    spend: RunSpend,
) -> CaseResult {
    if interrupted.runs == 0 {
        return CaseResult::default();
    }
    let end = CaseEnd {
        complete: false,
        spend: spend.plus(interrupted.spend),
        ..CaseEnd::default()
    };
    let verdict = CaseVerdict::interrupted(0, context.case().runs);
    finish_case(context, verdict, end)
}

/// The runs of a case that were interrupted after they had started.
#[derive(Default)]
struct Interrupted {
    runs: u32,
    spend: RunSpend,
}

/// An agent test with one model: its runs, batch by batch.
async fn run_agent_case(context: &Arc<CaseContext>, test: &AgentTest) -> CaseResult {
    let (run, case) = (&context.run, context.case());
    let batches = RunBatches::of(test, case.runs);
    let model = case.model.as_deref();
    let mut judge = CaseJudge::new(run.judge_context(), test, model, &case.label);
    let mut spend = RunSpend::default();
    let mut timer = CaseTimer::default();
    let mut interrupted = Interrupted::default();
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
        interrupted = make_runs(context, &to_make, |run| {
            missing -= 1;
            timer.add(&run);
            judge.observe(u64::from(run.run), &run.trace, &run.outcome.facts);
            spend = spend.plus(run.spend.unwrap_or_default());
            finish_run(context, *run);
        })
        .await;
        complete = missing == 0;
        made += batch;
    }
    run.cassettes.release(case);
    if judge.runs() == 0 {
        return finish_interrupted(context, &interrupted, spend);
    }
    let saved = complete.then(|| case.runs - made);
    if let Some(runs) = saved.filter(|runs| *runs > 0) {
        run.cassettes.decided(case, made);
        run.agent_recordings.decided(case, made);
        let case = context.planned();
        run.emit(Event::RunsSaved { case, runs });
    }
    if complete {
        // Before the case counts as finished: a resumed invocation does not record it again.
        run.cassettes.write(case).await;
    }
    let saved = saved.filter(|_| test.stops_when_decided).map(u64::from);
    let verdict = if complete {
        judge.finish()
    } else {
        judge.finish_interrupted(case.runs)
    };
    let end = CaseEnd {
        complete,
        saved_runs: saved,
        spend: spend.plus(interrupted.spend),
        duration_ms: timer.duration_ms(),
    };
    finish_case(context, verdict, end)
}

/// Makes runs in parallel, and passes on each that finishes. A run whose task panicked leaves
/// nothing.
async fn make_runs(
    context: &Arc<CaseContext>,
    numbers: &[u32],
    mut finished: impl FnMut(Box<JudgedRun>),
) -> Interrupted {
    let mut interrupted = Interrupted::default();
    let mut ended = |end: RunEnd| match end {
        RunEnd::Judged(run) => finished(run),
        RunEnd::Interrupted(spend) => {
            interrupted.runs += 1;
            interrupted.spend = interrupted.spend.plus(spend.unwrap_or_default());
        }
        RunEnd::NotStarted => {}
    };
    // Runs wait for their servers in the order of the suite. Where some cases have several runs,
    // which are tasks, a run that is not a task would overtake them.
    if context.single {
        for number in numbers {
            ended(one_run(context, *number).await);
        }
        return interrupted;
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
        if let Ok(end) = joined {
            ended(end);
        }
    }
    interrupted
}

/// Emits the end of a run, with its trace. Returns the gate of a catalog.
fn finish_run(context: &CaseContext, run: JudgedRun) -> Option<GateOutcome> {
    let duration_ms = run.duration_ms();
    let JudgedRun {
        run: number,
        trace,
        outcome,
        gate,
        spend,
        ..
    } = run;
    let mut finished = RunFinished {
        case: context.planned(),
        run: number,
        calls: trace.tool_calls.len() as u64,
        errors: trace.failed_results() as u64,
        tokens: trace.total_tokens(),
        duration_ms,
        facts: outcome.facts,
        spend,
        record: None,
    };
    // A catalog that was judged has no row of its own.
    if gate.is_none() {
        let name = context.case().row(number);
        finished.record = Some(outcome.into_record(u64::from(number), name, trace));
    }
    context.run.emit(Event::RunFinished(finished));
    gate
}

/// Emits the judgement on a case.
fn finish_case(context: &CaseContext, verdict: CaseVerdict, end: CaseEnd) -> CaseResult {
    let result = CaseResult {
        verdict: Some(verdict.verdict),
        complete: end.complete,
        spend: end.spend.reported(),
    };
    let mut judged = verdict.into_event(context.planned(), end.complete);
    judged.saved_runs = end.saved_runs;
    judged.spend = result.spend;
    judged.replayed = end.spend.replayed_part();
    judged.duration_ms = end.duration_ms;
    if end.complete {
        context.fail_fast.judged(judged.verdict);
    }
    context.run.emit(Event::CaseJudged(judged));
    result
}
