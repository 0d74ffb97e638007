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
use mcptest_suite::suite::Test;
use serde_json::Value;
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
use crate::snapshots::{SnapshotMode, Snapshots};
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
        snapshots: Snapshots::new(settings.snapshots, Arc::clone(&settings.cassettes.redactor)),
        decks,
        redactor: Arc::clone(&settings.cassettes.redactor),
        on_event: Arc::clone(&settings.on_event),
    });
    let finished = execute(&stage, &cases, settings).await;
    stage.sessions.shutdown().await;
    for file in stage.snapshots.unused(&suite) {
        let text = format!("unused snapshot, no test of the suite has it: {}", file.display());
        stage.tell(Event::Note { text });
    }
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

async fn execute(stage: &Arc<Stage>, cases: &[Case], settings: &RunSettings) -> Vec<Finished> {
    let lanes = Lanes::new(settings.jobs.or(stage.suite.options.jobs), &stage.suite);
    let brake = Arc::new(Brake::new(settings.fail_fast, cases));
    let mut tasks = JoinSet::new();
    for (case_index, case) in cases.iter().enumerate() {
        for run in 1..=case.runs {
            let (stage, permits, brake) = (Arc::clone(stage), lanes.of(&stage.suite, case), Arc::clone(&brake));
            let (case, cancel) = (case.clone(), settings.cancel.clone());
            tasks.spawn(async move {
                let test = &stage.suite.tests[case.test];
                let work = async {
                    // Before the permit: whoever has to wait for a server keeps nobody else from working.
                    let _turn = stage.sessions.turns.take(test).await;
                    // The semaphore is never closed.
                    let _permit = permits.acquire_owned().await.ok()?;
                    if !brake.may_begin(case_index) {
                        return None;
                    }
                    let name = case.row(run);
                    stage.tell(Event::Started { name: name.clone() });
                    let began = Instant::now();
                    let (trace, besides) = carry_out(&stage, &case, run, &cancel).await?;
                    let finished = Finished {
                        case: case_index,
                        run,
                        trace,
                        besides,
                        duration: began.elapsed(),
                    };
                    let verdict = preview(test, &finished);
                    stage.tell(Event::Finished { name, verdict });
                    brake.finished(&stage.suite, &case, &finished, verdict);
                    Some(finished)
                };
                // One that cleans up after itself is not dropped in the middle; it looks at the signal itself.
                let cleans_up = matches!(test, Test::Tool(test) if !test.teardown.is_empty());
                tokio::select! {
                    biased;
                    () = cancel.cancelled(), if !cleans_up => None,
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

/// One run. Nothing is left of a direct call that was broken off.
async fn carry_out(stage: &Stage, case: &Case, run: u32, cancel: &CancellationToken) -> Option<(Trace, Besides)> {
    let test = &stage.suite.tests[case.test];
    let (mut trace, besides) = match test {
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
            (trace, Besides::Nothing)
        }
        Test::Tool(test) => {
            let called = tool_call(stage, test, cancel).await?;
            (called.trace, Besides::Assertions(called.assertions))
        }
        Test::ToolQuality(test) => {
            let (trace, listed) = tool_list(test, &stage.sessions).await;
            (trace, Besides::Listed(listed))
        }
    };
    trace.test = Some(test.name().to_owned());
    trace.model.clone_from(&case.model);
    trace.run = Some(u64::from(run));
    Some((trace, besides))
}

/// What a run's own assertions say, for the progress display; the report judges again with everything at hand.
fn preview(test: &Test, finished: &Finished) -> Verdict {
    let error = finished.trace.error.as_ref();
    match (test, &finished.besides) {
        (Test::ToolQuality(test), Besides::Listed(listed)) => error.map_or_else(
            || judge::quality_gate(test, listed.as_ref()).verdict,
            |_| Verdict::Error,
        ),
        (Test::Agent(test), _) if !test.expect.is_empty() => {
            let seen = finished.trace.observable();
            let applied = test.expect.iter().map(|expectation| expectation.apply(&seen, None));
            judge::verdict_of(error, &applied.collect::<Vec<_>>())
        }
        (_, Besides::Assertions(assertions)) => judge::verdict_of(error, assertions),
        _ => judge::verdict_of(error, &[]),
    }
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
            let assertions = match one.besides {
                Besides::Assertions(assertions) => assertions,
                Besides::Nothing | Besides::Listed(_) => Vec::new(),
            };
            Some(judge::tool(&bench, test, one.trace, assertions))
        }
        Test::ToolQuality(test) => {
            let one = finished.pop()?;
            let listed = match one.besides {
                Besides::Listed(listed) => listed,
                Besides::Nothing | Besides::Assertions(_) => None,
            };
            Some(judge::tool_quality(&bench, test, one.trace, listed.as_ref()))
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
