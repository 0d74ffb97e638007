//! Running a suite: many runs in parallel, each result with the index of its case.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcptest_events::{Event, Spend};
use mcptest_suite::Suite;
use mcptest_suite::suite::Test;
use mcptest_trace::verdict::{ErrorKind, Verdict};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent_recordings::AgentRecordings;
use crate::agent_versions::AgentVersions;
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
use crate::server_credentials::ServerCredentials;
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
    /// The number of parallel runs; overrides the suite.
    pub jobs: Option<u32>,
    /// The budget of all suites together.
    pub budget: Budget,
    /// Ask no judges, and skip judged assertions.
    pub no_judges: bool,
    /// The use of snapshots in direct tool tests.
    pub snapshots: SnapshotMode,
    /// The program that `mcptest` means as a server's command.
    pub this_program: PathBuf,
    /// The credentials of servers that require authorization.
    pub credentials: ServerCredentials,
    /// Set when the user interrupts the invocation: finished runs are kept.
    pub cancel: CancellationToken,
    /// The use of cassettes.
    pub cassettes: CassetteSettings,
    /// The finished part of an invocation that is resumed.
    pub resume: Arc<Resume>,
    /// The receiver of all events.
    pub emit: EventSink,
}

/// The result of a suite, as far as it decides whether the next one starts. Everything else is in
/// the events.
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
    let agent_recordings = AgentRecordings::open(&suite, &mut cases, &settings.cassettes);
    let emit = Arc::clone(&settings.emit);
    let note = Arc::new(move |text| emit(Event::Note { text }));
    let context = Arc::new(RunContext {
        servers: suite.known_servers(),
        sessions: Sessions::new(
            &suite.servers,
            &suite.tests,
            SessionSettings {
                timeout: settings.timeout,
                suite_timeout: suite.options.timeout,
                this_program: settings.this_program.clone(),
                credentials: settings.credentials.clone(),
            },
        ),
        models: Models::new(note),
        budget: SuiteBudget::open(&settings.budget, &suite, &cases),
        judges: !settings.no_judges,
        replay_only: settings.cassettes.mode == CassetteMode::ReplayOnly,
        snapshots: Snapshots::new(settings.snapshots, Arc::clone(&settings.cassettes.redactor)),
        cassettes,
        agent_recordings,
        agent_versions: AgentVersions::default(),
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
    let results = run_cases(&context, cases, settings, &cancel).await;
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
    let agents = context.agent_recordings.finish();
    for event in context.cassettes.finish().into_iter().chain(agents) {
        context.emit(event);
    }
    let replayed = context.cassettes.replayed() + context.agent_recordings.replayed();
    if replayed > 0 {
        context.note(format!(
            "from cassettes: {replayed} of the tests (`--live` runs without them)"
        ));
    }
}

async fn run_cases(
    context: &Arc<RunContext>,
    cases: Vec<Case>,
    settings: &RunSettings,
    cancel: &CancellationToken,
) -> Vec<CaseResult> {
    let jobs = settings.jobs.or(context.suite.options.jobs);
    let limits = ConcurrencyLimits::new(jobs, &context.suite);
    let fail_fast = Arc::new(FailFast::new(settings.fail_fast, cases.len()));
    restore(context, &cases, &fail_fast);
    let queue = Arc::new(CaseQueue {
        run: Arc::clone(context),
        single: cases.iter().all(|case| case.runs == 1),
        results: Mutex::new(vec![CaseResult::default(); cases.len()]),
        cases: cases.into(),
        limits,
        fail_fast,
        cancel: cancel.clone(),
        next: AtomicUsize::new(0),
    });
    let mut workers = JoinSet::new();
    for worker in 0..queue.max_workers() {
        workers.spawn(Arc::clone(&queue).work());
        if worker == 0 {
            // The server of the first case starts while the other workers are prepared.
            tokio::task::yield_now().await;
        }
    }
    while workers.join_next().await.is_some() {}
    let mut results = queue.results();
    std::mem::take(&mut *results)
}

/// The cases of a suite, in their order. Workers take the next one until none is left.
struct CaseQueue {
    run: Arc<RunContext>,
    cases: Arc<[Case]>,
    /// True if no case has several runs.
    single: bool,
    limits: ConcurrencyLimits,
    fail_fast: Arc<FailFast>,
    cancel: CancellationToken,
    /// The index of the next case.
    next: AtomicUsize,
    /// The results so far. A case whose worker panicked has none; the panic hook has reported it.
    results: Mutex<Vec<CaseResult>>,
}

impl CaseQueue {
    /// Runs cases until none is left.
    async fn work(self: Arc<Self>) {
        let _stop = StopOnPanic(self.cancel.clone());
        while let Some(context) = self.next() {
            let result = run_case(&context).await;
            self.results()[context.index] = result;
        }
    }

    fn next(&self) -> Option<Arc<CaseContext>> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let case = self.cases.get(index)?;
        Some(Arc::new(CaseContext {
            run: Arc::clone(&self.run),
            index,
            cases: Arc::clone(&self.cases),
            permits: Arc::clone(self.limits.of(&self.run.suite, case)),
            fail_fast: Arc::clone(&self.fail_fast),
            cancel: self.cancel.clone(),
            single: self.single,
        }))
    }

    fn results(&self) -> MutexGuard<'_, Vec<CaseResult>> {
        // A panic elsewhere leaves every result as it was.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of cases that are worked on in parallel. Where all cases wait for the same
    /// permits, there is a worker for each permit: 20,000 waiting tasks would take 40 MB. Where
    /// they wait for different permits, or for a server that a `serial` test uses alone, every case
    /// has a worker, so that none keeps another one from starting.
    fn max_workers(&self) -> usize {
        let suite = &self.run.suite;
        let is_serial =
            |case: &Case| matches!(&suite.tests[case.test], Test::Direct(test) if test.serial);
        let Some(first) = self.cases.first().filter(|_| self.single) else {
            return self.cases.len();
        };
        let permits = self.limits.of(suite, first);
        let same = |case: &Case| Arc::ptr_eq(permits, self.limits.of(suite, case));
        if self.cases.iter().all(|case| same(case) && !is_serial(case)) {
            permits.available_permits().clamp(1, self.cases.len())
        } else {
            self.cases.len()
        }
    }
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
