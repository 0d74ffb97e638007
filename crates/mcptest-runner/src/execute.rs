//! Carrying out a suite: many runs at once, results in the order of the suite.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcptest_report::model::{Report, RunTiming, TestReport, Timing};
use mcptest_suite::Suite;
use mcptest_suite::suite::Test;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError, Verdict};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent_run::agent_run;
use crate::brake::Brake;
use crate::cassettes::{CassetteMode, CassetteSettings, Decks};
use crate::ending::{End, Ending};
use crate::event::Event;
use crate::judge::{self, Bench};
use crate::lanes::Lanes;
use crate::limits::{Limits, SuiteLimits};
use crate::models::Models;
use crate::plan::Case;
use crate::sessions::{SessionSettings, Sessions};
use crate::snapshots::{SnapshotMode, Snapshots};
use crate::stage::{Place, Stage};
use crate::tool_call::tool_call;
use crate::tool_list::tool_list;
use crate::waves::Waves;

/// What an invocation adds to the suite.
pub struct RunSettings {
    /// After the first test that fails or breaks, no other is begun.
    pub fail_fast: bool,
    /// The time allowed for every call, before whatever the suite says.
    pub timeout: Option<Duration>,
    /// How many runs at once, before whatever the suite says.
    pub jobs: Option<u32>,
    /// What all suites may cost together.
    pub limits: Limits,
    /// Judges are not asked, and judged assertions are skipped.
    pub no_judges: bool,
    /// What is done with the snapshots of direct tool tests.
    pub snapshots: SnapshotMode,
    /// What `mcptest` as a server's program means.
    pub this_program: PathBuf,
    /// Set when the user wants an end: what is finished is kept.
    pub cancel: CancellationToken,
    /// What is recorded and replayed.
    pub cassettes: CassetteSettings,
    /// Told what happens.
    pub on_event: Arc<dyn Fn(Event) + Send + Sync>,
}

/// Runs a suite. The report holds what was finished, which is everything unless the work was broken
/// off.
pub async fn run(suite: Arc<Suite>, cases: &[Case], settings: &RunSettings) -> Report {
    let began = Instant::now();
    let mut cases = cases.to_vec();
    let decks = Decks::open(&suite, &mut cases, &settings.cassettes);
    let total = cases.iter().map(|case| case.runs as usize).sum();
    (settings.on_event)(Event::Planned { total });
    let sessions = Sessions::new(
        &suite.servers,
        SessionSettings {
            timeout: settings.timeout,
            suite_timeout: suite.options.timeout,
            this_program: settings.this_program.clone(),
        },
    );
    let stage = Arc::new(Stage {
        suite: Arc::clone(&suite),
        servers: suite.known_servers(),
        sessions,
        models: Models::new(Arc::clone(&settings.on_event)),
        limits: SuiteLimits::open(&settings.limits, &suite, &cases),
        judges: !settings.no_judges,
        replay_only: settings.cassettes.mode == CassetteMode::ReplayOnly,
        snapshots: Snapshots::new(settings.snapshots, Arc::clone(&settings.cassettes.redactor)),
        decks,
        redactor: Arc::clone(&settings.cassettes.redactor),
        on_event: Arc::clone(&settings.on_event),
    });
    // A part of the user's signal: what falls over stops this suite, and is no wish of the user.
    let cancel = settings.cancel.child_token();
    let done = execute(&stage, &cases, settings, &cancel).await;
    stage.sessions.shutdown().await;
    for file in stage.snapshots.unused(&suite) {
        let text = format!(
            "unused snapshot, no test of the suite has it: {}",
            file.display()
        );
        stage.tell(Event::Note { text });
    }
    stage
        .decks
        .finish()
        .into_iter()
        .for_each(|event| stage.tell(event));
    let replayed = stage.decks.replayed();
    if replayed > 0 {
        stage.tell(Event::Note {
            text: format!("from cassettes: {replayed} of the tests (`--live` runs without them)"),
        });
    }
    let interrupted = cancel.is_cancelled() && done.iter().any(|case| !case.complete);
    let mut report = conclude(&stage, &cases, done, interrupted);
    if let Some(timing) = &mut report.timing {
        timing.duration_ms = millis(began.elapsed());
    }
    report
}

/// What one run left.
#[derive(Clone)]
struct Finished {
    run: u32,
    trace: Trace,
    besides: Besides,
    duration: Duration,
}

/// What a run leaves besides its trace.
#[derive(Clone)]
enum Besides {
    /// An agent's run: nothing.
    Nothing,
    /// A direct call: what came of its expectations.
    Assertions(Vec<Assertion>),
    /// A look at a catalog: what the server lists.
    Listed(Option<Value>),
}

/// What the runs of a case left, in their order.
#[derive(Clone, Default)]
struct Done {
    finished: Vec<Finished>,
    /// Runs that were not needed, for a test that stops when it is decided.
    saved: Option<u32>,
    /// Whether nothing was broken off.
    complete: bool,
}

async fn execute(
    stage: &Arc<Stage>,
    cases: &[Case],
    settings: &RunSettings,
    cancel: &CancellationToken,
) -> Vec<Done> {
    let lanes = Lanes::new(settings.jobs.or(stage.suite.options.jobs), &stage.suite);
    let brake = Arc::new(Brake::new(settings.fail_fast, cases.len()));
    let single = cases.iter().all(|case| case.runs == 1);
    let mut tasks = JoinSet::new();
    for (index, case) in cases.iter().enumerate() {
        let crew = Crew {
            stage: Arc::clone(stage),
            index,
            case: case.clone(),
            permits: lanes.of(&stage.suite, case),
            brake: Arc::clone(&brake),
            cancel: cancel.clone(),
            single,
        };
        tasks.spawn(async move {
            let _stop = StopOnPanic(crew.cancel.clone());
            (index, run_case(&Arc::new(crew)).await)
        });
        if index == 0 {
            // Its server can start while the others are made ready.
            tokio::task::yield_now().await;
        }
    }
    // A case that fell over has left nothing.
    let mut all = vec![Done::default(); cases.len()];
    for (index, done) in joined(tasks).await {
        all[index] = done;
    }
    all
}

/// Stops the suite when the task that holds it falls over. At once, before any other task looks at
/// a server again: the caller's panic hook has ended them all, and that is nobody else's failure.
struct StopOnPanic(CancellationToken);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

/// The results of all tasks, but of those that fell over: the panic hook has told of it, and what
/// is finished is kept.
async fn joined<T: 'static>(mut tasks: JoinSet<T>) -> Vec<T> {
    let mut results = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        results.extend(joined.ok());
    }
    results
}

/// What the runs of one case share.
struct Crew {
    stage: Arc<Stage>,
    /// Index of the case.
    index: usize,
    case: Case,
    permits: Arc<Semaphore>,
    brake: Arc<Brake>,
    cancel: CancellationToken,
    /// Whether no case of the suite has several runs.
    single: bool,
}

/// The runs of a case: all at once, or wave by wave until no further one can change a verdict.
async fn run_case(crew: &Arc<Crew>) -> Done {
    let Crew { stage, case, .. } = crew.as_ref();
    let mut finished: Vec<Finished> = Vec::new();
    let mut waves = match &stage.suite.tests[case.test] {
        Test::Agent(test) => Some(Waves::new(
            bench(stage),
            test,
            case.model.as_deref(),
            &case.label,
            case.runs,
        )),
        Test::Tool(_) | Test::ToolQuality(_) => None,
    };
    loop {
        let made = u32::try_from(finished.len()).unwrap_or(u32::MAX);
        let wave = waves
            .as_mut()
            .map_or(case.runs.saturating_sub(made), Waves::next);
        if wave == 0 {
            break;
        }
        let first = made + 1;
        // Runs wait for their turns in the order of the suite: where some cases have several, which
        // are tasks of their own, a run without a task would overtake them.
        let results = if crew.single {
            vec![one_run(crew, first).await]
        } else {
            let mut tasks = JoinSet::new();
            for run in first..first + wave {
                let crew = Arc::clone(crew);
                tasks.spawn(async move {
                    let _stop = StopOnPanic(crew.cancel.clone());
                    one_run(&crew, run).await
                });
            }
            joined(tasks).await
        };
        // To the point: a vector that grows by itself has room for four, and there may be thousands
        // of cases.
        finished.reserve_exact(results.len());
        finished.extend(results.into_iter().flatten());
        let new = &mut finished[made as usize..];
        let whole = new.len() == wave as usize;
        new.sort_by_key(|one| one.run);
        if let Some(waves) = &mut waves {
            new.iter().for_each(|one| waves.made(&one.trace));
        }
        if !whole {
            return Done {
                finished,
                saved: None,
                complete: false,
            };
        }
    }
    let saved = case.runs - u32::try_from(finished.len()).unwrap_or(case.runs);
    if saved > 0 {
        stage.decks.decided(case, case.runs - saved);
        stage.tell(Event::Spared {
            runs: saved as usize,
        });
    }
    let stops =
        matches!(&stage.suite.tests[case.test], Test::Agent(test) if test.stops_when_decided);
    let done = Done {
        finished,
        saved: stops.then_some(saved),
        complete: true,
    };
    if crew.brake.is_set() {
        let judged = judge_case(&bench(stage), stage, crew.index, case, done.clone());
        crew.brake
            .judged(judged.map_or(Verdict::Pass, |test| test.verdict));
    }
    done
}

/// One run, unless the user or a cap is before it. Nothing is left of a run that the user broke
/// off.
async fn one_run(crew: &Crew, run: u32) -> Option<Finished> {
    let Crew {
        stage,
        index,
        case,
        brake,
        ..
    } = crew;
    let index = *index;
    let test = &stage.suite.tests[case.test];
    let name = case.row(run);
    let ending = Ending {
        limits: &stage.limits,
        cancel: &crew.cancel,
    };
    let started = AtomicBool::new(false);
    let work = async {
        // Before the permit: whoever has to wait for a server keeps nobody else from working.
        let _turn = stage.sessions.turns.take(test).await;
        // The semaphore is never closed.
        let _permit = crew.permits.acquire().await.map_err(|_| End::Asked)?;
        if !brake.may_begin(index) {
            return Err(End::Asked);
        }
        if case.model.is_some()
            && let Some(error) = stage.limits.stopped(index)
        {
            return Ok(capped(stage, case, run, error));
        }
        started.store(true, Ordering::Relaxed);
        stage.tell(Event::Started { name: name.clone() });
        let began = Instant::now();
        // In a box of its own: thousands may wait, and only those that have begun need the room.
        let (trace, besides) = Box::pin(carry_out(crew, run, ending)).await?;
        Ok(Finished {
            run,
            trace,
            besides,
            duration: began.elapsed(),
        })
    };
    // One that cleans up after itself is not dropped once it has begun; it looks out for the end
    // itself.
    let cleans_up = matches!(test, Test::Tool(test) if !test.teardown.is_empty());
    let dropped = async {
        let end = ending.come().await;
        if cleans_up && started.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        end
    };
    let outcome = tokio::select! {
        biased;
        end = dropped => Err(end),
        outcome = work => outcome,
    };
    let finished = match outcome {
        Ok(finished) => finished,
        Err(End::Asked) => return None,
        Err(End::TimeIsOver(deadline)) => {
            let how = if started.load(Ordering::Relaxed) {
                "stopped"
            } else {
                "never started"
            };
            let message = format!("{how}: {}", deadline.words);
            let kind = ErrorKind::Budget;
            capped(stage, case, run, RunError { kind, message })
        }
    };
    let verdict = preview(stage, test, &finished);
    stage.tell(Event::Finished { name, verdict });
    // One failed run is a failed test, unless a gate is to decide about the runs together.
    if !matches!(test, Test::Agent(test) if test.tolerates_failed_runs) {
        brake.judged(verdict);
    }
    Some(finished)
}

/// A run that a cap kept from being made or ended.
fn capped(stage: &Stage, case: &Case, run: u32, error: RunError) -> Finished {
    let mut trace = Trace {
        error: Some(error),
        ..Trace::default()
    };
    name_trace(&mut trace, stage, case, run);
    Finished {
        run,
        trace,
        besides: Besides::Nothing,
        duration: Duration::ZERO,
    }
}

fn name_trace(trace: &mut Trace, stage: &Stage, case: &Case, run: u32) {
    trace.test = Some(stage.suite.tests[case.test].name().to_owned().into());
    trace.model = case.model.clone().map(Into::into);
    trace.run = Some(u64::from(run));
}

/// Carries a run out. Nothing is left of a direct call that was broken off.
async fn carry_out<'a>(
    crew: &Crew,
    run: u32,
    ending: Ending<'a>,
) -> Result<(Trace, Besides), End<'a>> {
    let Crew {
        stage, index, case, ..
    } = crew;
    let test = &stage.suite.tests[case.test];
    let place = Place {
        case: *index,
        test: case.test,
        model: case.model.as_deref().unwrap_or_default(),
    };
    let (mut trace, besides) = match test {
        Test::Agent(test) => {
            let trace = match stage.decks.tape(case, run) {
                Ok(tape) => {
                    // Large, as are the rare ways below: in boxes, so that a direct call, of which
                    // there are most, stays small.
                    let trace = Box::pin(agent_run(stage, place, test, run, &tape)).await;
                    Box::pin(tape.finish(trace)).await
                }
                Err(error) => Trace {
                    error: Some(error),
                    ..Trace::default()
                },
            };
            (trace, Besides::Nothing)
        }
        Test::Tool(test) => {
            let called = tool_call(stage, place, test, ending).await?;
            (called.trace, Besides::Assertions(called.assertions))
        }
        Test::ToolQuality(test) => {
            let (trace, listed) = Box::pin(tool_list(test, &stage.sessions)).await;
            (trace, Besides::Listed(listed))
        }
    };
    name_trace(&mut trace, stage, case, run);
    Ok((trace, besides))
}

/// What a run's own assertions say, for the progress display; the report judges again with
/// everything at hand.
fn preview(stage: &Stage, test: &Test, finished: &Finished) -> Verdict {
    let error = finished.trace.error.as_ref();
    match (test, &finished.besides) {
        (Test::ToolQuality(test), Besides::Listed(listed)) => error.map_or_else(
            || judge::quality_gate(test, listed.as_ref()).verdict,
            |_| Verdict::Error,
        ),
        (Test::Agent(test), _) => {
            judge::RunOutcome::of(&bench(stage), test, &finished.trace).verdict()
        }
        (_, Besides::Assertions(assertions)) => judge::tool_verdict(error, assertions),
        _ => judge::verdict_of(error, &[]),
    }
}

/// What the judging step needs to know.
fn bench(stage: &Stage) -> Bench<'_> {
    Bench {
        suite: &stage.suite.name,
        servers: &stage.servers,
        prices: &stage.suite.prices,
        no_evidence: stage.suite.options.no_evidence,
        judges: stage.judges,
        threads: 1,
    }
}

fn conclude(stage: &Stage, cases: &[Case], done: Vec<Done>, interrupted: bool) -> Report {
    let suite = &stage.suite;
    let bench = bench(stage);
    let mut tests: Vec<TestReport> = Vec::new();
    let mut not_run = Vec::new();
    let mut timing = Timing::default();
    for ((index, case), done) in cases.iter().enumerate().zip(done) {
        // Of a test that was broken off before its first run there is nothing to tell but its name.
        if done.finished.is_empty() {
            not_run.push(case.id(suite));
            continue;
        }
        timing
            .runs
            .extend(done.finished.iter().map(|one| RunTiming {
                name: case.row(one.run),
                duration_ms: millis(one.duration),
            }));
        tests.extend(judge_case(&bench, stage, index, case, done));
    }
    let mut report = Report::conclude(tests, interrupted);
    report.not_run = not_run;
    report.timing = Some(timing);
    report
}

/// Judges the runs of one case; nothing if there are none.
fn judge_case(
    bench: &Bench<'_>,
    stage: &Stage,
    index: usize,
    case: &Case,
    done: Done,
) -> Option<TestReport> {
    let mut finished = done.finished;
    match &stage.suite.tests[case.test] {
        Test::Agent(test) => {
            let traces = finished
                .into_iter()
                .map(|one| (u64::from(one.run), one.trace))
                .collect();
            let model = case.model.as_deref();
            let mut report = judge::agent(bench, test, model, &case.label, traces, case.runs > 1);
            report.saved_runs = done.saved.map(u64::from);
            report.spend = stage.limits.spend(index);
            Some(report)
        }
        Test::Tool(test) => {
            let one = finished.pop()?;
            let assertions = match one.besides {
                Besides::Assertions(assertions) => assertions,
                Besides::Nothing | Besides::Listed(_) => Vec::new(),
            };
            let mut report = judge::tool(bench, test, one.trace, assertions);
            report.spend = stage.limits.spend(index);
            Some(report)
        }
        Test::ToolQuality(test) => {
            let one = finished.pop()?;
            let listed = match one.besides {
                Besides::Listed(listed) => listed,
                Besides::Nothing | Besides::Assertions(_) => None,
            };
            Some(judge::tool_quality(bench, test, one.trace, listed.as_ref()))
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
