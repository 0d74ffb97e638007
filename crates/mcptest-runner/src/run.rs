//! Running a suite: many runs at once, each result with the index of its case.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcptest_events::{Event, Spend};
use mcptest_suite::Suite;
use mcptest_trace::verdict::{ErrorKind, Verdict};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::budget::{Budget, SuiteBudget};
use crate::case_context::{CaseContext, StopOnPanic};
use crate::cassette_plans::CassettePlans;
use crate::cassettes::{CassetteMode, CassetteSettings};
use crate::concurrency::ConcurrencyLimits;
use crate::fail_fast::FailFast;
use crate::models::Models;
use crate::plan::Case;
use crate::resume::Resume;
use crate::run_case::{CaseResult, run_case};
use crate::run_context::{EventSink, RunContext};
use crate::sessions::{SessionSettings, Sessions};
use crate::snapshots::{SnapshotMode, Snapshots};
use crate::tool_names::NameChecks;
use crate::verdicts::one_run_decides;

/// The settings of an invocation, in addition to the suite's.
pub struct RunSettings {
    /// Start no other test after the first one that fails or ends with an error.
    pub fail_fast: bool,
    /// Timeout for each server call; overrides the suite.
    pub timeout: Option<Duration>,
    /// The number of runs at once; overrides the suite.
    pub jobs: Option<u32>,
    /// The budget of all suites together.
    pub budget: Budget,
    /// Ask no judges, and skip judged assertions.
    pub no_judges: bool,
    /// The use of snapshots in direct tool tests.
    pub snapshots: SnapshotMode,
    /// The program that `mcptest` means as a server's command.
    pub this_program: PathBuf,
    /// Set when the user interrupts the invocation: finished runs are kept.
    pub cancel: CancellationToken,
    /// The use of cassettes.
    pub cassettes: CassetteSettings,
    /// The finished part of an invocation that is resumed.
    pub resume: Arc<Resume>,
    /// The receiver of all events.
    pub emit: EventSink,
}

/// The result of a suite, as far as it decides if the next one starts. Everything else is in the
/// events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuiteOutcome {
    /// The worst verdict on a case.
    pub verdict: Verdict,
    /// True if the suite was interrupted before it was complete.
    pub interrupted: bool,
}

/// Runs a suite. `first_case` is the index of its first case in the plan of the invocation.
pub async fn run(
    suite: Arc<Suite>,
    cases: &[Case],
    first_case: usize,
    settings: &RunSettings,
) -> SuiteOutcome {
    let earlier = if settings.cassettes.mode == CassetteMode::Record {
        Arc::new(settings.resume.only_complete())
    } else {
        Arc::clone(&settings.resume)
    };
    let mut cases = cases.to_vec();
    let is_complete = |index: usize| earlier.judgement(first_case + index).is_some();
    let cassettes = CassettePlans::open(&suite, &mut cases, &settings.cassettes, &is_complete);
    let emit = Arc::clone(&settings.emit);
    let note = Arc::new(move |text| emit(Event::Note { text }));
    let context = Arc::new(RunContext {
        servers: suite.known_servers(),
        sessions: Sessions::new(
            &suite.servers,
            SessionSettings {
                timeout: settings.timeout,
                suite_timeout: suite.options.timeout,
                this_program: settings.this_program.clone(),
            },
        ),
        models: Models::new(note),
        budget: SuiteBudget::open(&settings.budget, &suite, &cases),
        judges: !settings.no_judges,
        replay_only: settings.cassettes.mode == CassetteMode::ReplayOnly,
        snapshots: Snapshots::new(settings.snapshots, Arc::clone(&settings.cassettes.redactor)),
        cassettes,
        tool_names: NameChecks::default(),
        redactor: Arc::clone(&settings.cassettes.redactor),
        emit: Arc::clone(&settings.emit),
        first_case,
        earlier,
        suite,
    });
    // A child of the user's signal: a panic stops this suite, which is not an interruption by the
    // user.
    let cancel = settings.cancel.child_token();
    let results = run_cases(&context, &cases, settings, &cancel).await;
    context.sessions.shutdown().await;
    report_files(&context);
    if let Some(total) = Spend::total(results.iter().filter_map(|case| case.spend)) {
        context.emit(Event::Spend { total });
    }
    let complete = results.iter().all(|case| case.complete);
    SuiteOutcome {
        verdict: Verdict::worst(results.iter().filter_map(|case| case.verdict)),
        interrupted: cancel.is_cancelled() && !complete,
    }
}

/// Emits notes about snapshots and cassettes.
fn report_files(context: &RunContext) {
    for file in context.snapshots.unused(&context.suite) {
        context.note(format!(
            "unused snapshot, no test of the suite has it: {}",
            file.display()
        ));
    }
    for event in context.cassettes.finish() {
        context.emit(event);
    }
    let replayed = context.cassettes.replayed();
    if replayed > 0 {
        context.note(format!(
            "from cassettes: {replayed} of the tests (`--live` runs without them)"
        ));
    }
}

async fn run_cases(
    context: &Arc<RunContext>,
    cases: &[Case],
    settings: &RunSettings,
    cancel: &CancellationToken,
) -> Vec<CaseResult> {
    let jobs = settings.jobs.or(context.suite.options.jobs);
    let limits = ConcurrencyLimits::new(jobs, &context.suite);
    let fail_fast = Arc::new(FailFast::new(settings.fail_fast, cases.len()));
    restore(context, cases, &fail_fast);
    let single = cases.iter().all(|case| case.runs == 1);
    let mut tasks = JoinSet::new();
    for (index, case) in cases.iter().enumerate() {
        let case = Arc::new(CaseContext {
            run: Arc::clone(context),
            index,
            case: case.clone(),
            permits: limits.of(&context.suite, case),
            fail_fast: Arc::clone(&fail_fast),
            cancel: cancel.clone(),
            single,
        });
        tasks.spawn(async move {
            let _stop = StopOnPanic(case.cancel.clone());
            (index, run_case(&case).await)
        });
        if index == 0 {
            // Its server starts while the other cases are prepared.
            tokio::task::yield_now().await;
        }
    }
    // A case whose task panicked produces no result; the panic hook has reported it.
    let mut results = vec![CaseResult::default(); cases.len()];
    while let Some(joined) = tasks.join_next().await {
        if let Ok((index, result)) = joined {
            results[index] = result;
        }
    }
    results
}

/// Continues budgets and `--fail-fast` where the earlier part of the invocation left them.
fn restore(context: &RunContext, cases: &[Case], fail_fast: &FailFast) {
    let indexes = context.first_case..context.first_case + cases.len();
    for planned in context
        .earlier
        .started()
        .filter(|case| indexes.contains(case))
    {
        let index = planned - context.first_case;
        fail_fast.had_started(index);
        if let Some((verdict, _)) = context.earlier.judgement(planned) {
            fail_fast.judged(verdict);
        }
        let test = &context.suite.tests[cases[index].test];
        for run in context.earlier.runs(planned) {
            let exceeded = run.facts.error == Some(ErrorKind::Budget);
            context.budget.restore(index, run.spend, exceeded);
            if one_run_decides(test) {
                fail_fast.judged(run.facts.verdict);
            }
        }
    }
}

#[cfg(test)]
mod tests;
