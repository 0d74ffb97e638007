//! Carrying out a suite: many runs at once, results in the order of the suite.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcptest_core::expect::Assertion;
use mcptest_core::tool_id::KnownServers;
use mcptest_core::trace::Trace;
use mcptest_core::verdict::Verdict;
use mcptest_report::Report;
use mcptest_report::model::{RunTiming, TestReport, Timing};
use mcptest_suite::Suite;
use mcptest_suite::suite::{Test, ToolTest};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent_run::agent_run;
use crate::brake::Brake;
use crate::cassettes::{CassetteSettings, Decks};
use crate::event::Event;
use crate::judge::{self, Bench};
use crate::lanes::Lanes;
use crate::models::Models;
use crate::plan::Case;
use crate::sessions::{SessionSettings, Sessions};
use crate::stage::Stage;
use crate::tool_call::tool_call;
use crate::tool_list::tool_list;

/// What an invocation adds to the suite.
pub struct RunSettings {
    /// After the first test that fails, no other is begun.
    pub fail_fast: bool,
    /// The time allowed for every call, before whatever the suite says.
    pub timeout: Option<Duration>,
    /// How many runs at once, before whatever the suite says.
    pub jobs: Option<u32>,
    /// What `mcptest` as a server's program means.
    pub this_program: PathBuf,
    /// Set when the user wants an end: what is finished is kept.
    pub cancel: CancellationToken,
    /// What is recorded and replayed.
    pub cassettes: CassetteSettings,
    /// Told what happens.
    pub on_event: Arc<dyn Fn(Event) + Send + Sync>,
}

/// Runs these cases of a suite, as [`plan`](crate::plan) gave them. The report holds what was finished, which is everything unless the work was
/// broken off; what was not begun is named in it.
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
        sessions,
        models: Models::default(),
        decks,
        redactor: Arc::clone(&settings.cassettes.redactor),
        on_event: Arc::clone(&settings.on_event),
    });
    let finished = execute(&stage, &cases, settings).await;
    stage.sessions.shutdown().await;
    stage.decks.finish().into_iter().for_each(|event| stage.tell(event));
    let replayed = stage.decks.replayed();
    if replayed > 0 {
        stage.tell(Event::Note {
            text: format!("from cassettes: {replayed} of the tests (`--live` runs without them)"),
        });
    }
    let interrupted = settings.cancel.is_cancelled() && finished.len() < total;
    let mut report = conclude(&suite, &cases, finished, interrupted);
    if let Some(timing) = &mut report.timing {
        timing.duration_ms = millis(began.elapsed());
    }
    report
}

/// What one run left.
#[derive(Clone)]
pub(crate) struct Finished {
    pub case: usize,
    pub run: u32,
    trace: Trace,
    /// For a direct call: what its assertions look into.
    seen: Option<Value>,
    duration: Duration,
}

async fn execute(stage: &Arc<Stage>, cases: &[Case], settings: &RunSettings) -> Vec<Finished> {
    let lanes = Lanes::new(settings.jobs.or(stage.suite.options.jobs), &stage.suite);
    let brake = Arc::new(Brake::new(settings.fail_fast, cases));
    let mut tasks = JoinSet::new();
    for (case_index, case) in cases.iter().enumerate() {
        for run in 1..=case.runs {
            let (stage, permits, brake) = (Arc::clone(stage), lanes.of(&stage.suite, case), Arc::clone(&brake));
            let (case, cancel) = (case.clone(), settings.cancel.clone());
            tasks.spawn(async move {
                let work = async {
                    // The semaphore is never closed.
                    let _permit = permits.acquire_owned().await.ok()?;
                    if !brake.may_begin(case_index) {
                        return None;
                    }
                    let name = case.row(run);
                    stage.tell(Event::Started { name: name.clone() });
                    let began = Instant::now();
                    let (trace, seen) = carry_out(&stage, &case, run).await;
                    let finished = Finished {
                        case: case_index,
                        run,
                        trace,
                        seen,
                        duration: began.elapsed(),
                    };
                    let verdict = preview(&stage.suite.tests[case.test], &finished);
                    stage.tell(Event::Finished { name, verdict });
                    brake.finished(&stage.suite, &case, &finished, verdict);
                    Some(finished)
                };
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    finished = work => finished,
                }
            });
        }
    }
    let mut finished = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok(one) => finished.extend(one),
            // A panic of ours must be seen as such, after the servers are gone (the caller's hook ends them).
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
    finished.sort_by_key(|one| (one.case, one.run));
    finished
}

async fn carry_out(stage: &Stage, case: &Case, run: u32) -> (Trace, Option<Value>) {
    let test = &stage.suite.tests[case.test];
    let (mut trace, seen) = match test {
        Test::Agent(test) => {
            let model = case.model.as_deref().unwrap_or_default();
            let trace = match stage.decks.tape(case, run) {
                Ok(tape) => {
                    let trace = agent_run(stage, test, model, run, &tape).await;
                    tape.finish(trace).await
                }
                Err(error) => Trace {
                    error: Some(error),
                    ..Trace::default()
                },
            };
            (trace, None)
        }
        Test::Tool(test) => tool_call(test, &stage.sessions).await,
        Test::ToolQuality(test) => tool_list(test, &stage.sessions).await,
    };
    trace.test = Some(test.name().to_owned());
    trace.model.clone_from(&case.model);
    trace.run = Some(u64::from(run));
    (trace, seen)
}

/// What a run's own assertions say, for the progress display; the report judges again with everything at hand.
fn preview(test: &Test, finished: &Finished) -> Verdict {
    let (expect, seen) = match test {
        Test::Agent(test) if !test.expect.is_empty() => (&test.expect, Some(finished.trace.observable())),
        Test::Agent(test) => (&test.expect, None),
        Test::Tool(test) => (&test.expect, finished.seen.clone()),
        Test::ToolQuality(test) => {
            let bench = judge::quality_gate(test, finished.seen.as_ref());
            return finished.trace.error.as_ref().map_or(bench.verdict, |_| Verdict::Error);
        }
    };
    let assertions: Vec<Assertion> = match seen {
        Some(seen) => expect
            .iter()
            .map(|expectation| expectation.apply(&seen, None))
            .collect(),
        None => Vec::new(),
    };
    judge::verdict_of(finished.trace.error.as_ref(), &assertions)
}

fn conclude(suite: &Suite, cases: &[Case], finished: Vec<Finished>, interrupted: bool) -> Report {
    let mut by_case: Vec<Vec<Finished>> = cases.iter().map(|_| Vec::new()).collect();
    for one in finished {
        by_case[one.case].push(one);
    }
    let servers = suite.known_servers();
    let mut tests: Vec<TestReport> = Vec::new();
    let mut not_run = Vec::new();
    let mut timing = Timing::default();
    for (case, finished) in cases.iter().zip(by_case) {
        // Of a test that was broken off before its first run there is nothing to tell but its name.
        if finished.is_empty() {
            not_run.push(case.id(suite));
            continue;
        }
        timing.runs.extend(finished.iter().map(|one| RunTiming {
            name: case.row(one.run),
            duration_ms: millis(one.duration),
        }));
        tests.extend(judge_case(suite, &servers, case, finished));
    }
    let mut report = Report::conclude(tests, interrupted);
    report.not_run = not_run;
    report.timing = Some(timing);
    report
}

/// Judges the runs of one case; nothing if there are none.
pub(crate) fn judge_case(
    suite: &Suite,
    servers: &KnownServers,
    case: &Case,
    mut finished: Vec<Finished>,
) -> Option<TestReport> {
    let bench = Bench {
        suite: &suite.name,
        servers,
        prices: &suite.prices,
        no_evidence: suite.options.no_evidence,
    };
    match &suite.tests[case.test] {
        Test::Agent(test) => {
            let traces = finished
                .into_iter()
                .map(|one| (u64::from(one.run), one.trace))
                .collect();
            Some(judge::agent(
                &bench,
                test,
                case.model.as_deref(),
                &case.label,
                traces,
                case.runs > 1,
            ))
        }
        Test::Tool(test) => {
            let one = finished.pop()?;
            let slow = duration_assertion(test, one.duration).filter(|_| one.seen.is_some());
            Some(judge::tool(&bench, test, one.trace, one.seen.as_ref(), slow))
        }
        Test::ToolQuality(test) => {
            let one = finished.pop()?;
            Some(judge::tool_quality(&bench, test, one.trace, one.seen.as_ref()))
        }
    }
}

/// The time is told only where it is too long: a passing report does not change with the weather.
fn duration_assertion(test: &ToolTest, took: Duration) -> Option<Assertion> {
    let most = test.max_duration?;
    let passed = took <= most;
    Some(Assertion {
        target: "duration_ms".to_owned(),
        matcher: json!({"<=": millis(most)}),
        actual: if passed { Value::Null } else { millis(took).into() },
        passed,
        default: false,
        reason: (!passed).then(|| format!("the call took {} ms", millis(took))),
        diff: Vec::new(),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
