//! Making one run of an agent: servers, offer, faults, the loop.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcptest_agent::{AgentEvent, Model, Offer, Task, Tools};
use mcptest_attack::AttackRun;
use mcptest_cassette::{ModelRole, RecordedCatalog};
use mcptest_catalog::distractors::{offer_order, plan_injection, refusal};
use mcptest_events::{AnswerTokens, Event};
use mcptest_suite::suite::AgentTest;
use mcptest_trace::catalog::Tool;
use mcptest_trace::fault::FaultState;
use mcptest_trace::server_messages;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::agent_attacks::{self, Relisting};
use crate::agent_shared::{AgentRun, check_name_free, planned_run};
use crate::ask_judges;
use crate::ask_reading;
use crate::cassette_plans::RunCassette;
use crate::external_run::external_run;
use crate::run_context::{CaseRef, RunContext};
use crate::run_state;
use crate::run_tools::RunTools;
use crate::sampling::SamplingModels;
use crate::sessions::{OpenSession, Sessions, StartupTime};
use crate::state_calls::StateRun;
use crate::stop_signal::StopSignal;
use crate::test_client::{Listening, TestClient};

/// Runs an agent once.
pub(crate) async fn agent_run(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &AgentTest,
    cassette: &RunCassette,
    stop: StopSignal<'_>,
) -> AgentRun {
    let failed = |error: RunError| Trace {
        error: Some(error),
        ..Trace::default()
    };
    if let Some(error) = cassette.error() {
        return AgentRun::of(failed(error));
    }
    if let Some(under_test) = test.agent(case.model) {
        let recordings = &context.agent_recordings;
        if let Some(recorded) = recordings.recorded(case.test, case.model, case.run) {
            return AgentRun::of(recorded.unwrap_or_else(failed));
        }
        let made = external_run(context, case, test, under_test, (cassette, stop));
        let (mut run, stream) = Box::pin(made).await;
        ask(context, case, test, cassette, &mut run.trace).await;
        run.trace = recordings.record(case.test, case.model, case.run, run.trace, &stream);
        return run;
    }
    let mut tools = RunTools::new(
        FaultState::new(test.faults.as_slice(), test.detection_budget_ms),
        test.detection_budget_ms,
        agent_attacks::of_run(test, case.run),
    );
    let system = agent_attacks::system(test, &mut tools.attacks());
    let mut state = StateRun::new(&test.state);
    let ready = prepare(context, case, test, cassette, &mut tools, &mut state).await;
    let mut trace = match ready {
        Err(error) => {
            if let Some(recorder) = cassette.recorder() {
                recorder.record_failure(&error);
            }
            failed(error)
        }
        Ok(Ready {
            model,
            offer,
            distractors,
            listed,
        }) => {
            let task = Task {
                system: system.as_deref(),
                prompt: &test.prompt,
                turns: &test.turns,
                max_turns: test.max_turns,
                max_tokens: test.max_tokens,
            };
            let model = model.as_ref();
            let relist = |calls| {
                let mut attacks = tools.attacks();
                if !attacks.changes_later_lists() {
                    return None;
                }
                attacks.set_calls(calls);
                // The same tools were checked when the run began.
                let offered = self::offer(context, test, case.run, listed.clone(), &mut attacks);
                offered.ok().map(|(offer, _)| offer)
            };
            let observer = |event| emit(context, case, event);
            let replayed = cassette.servers().map(|replay| replay.tools());
            let recorder = cassette.recorder();
            let recording = recorder.map(|recorder| recorder.tools(&tools));
            let inner: &dyn Tools = match (&replayed, &recording) {
                (Some(replayed), _) => replayed,
                (None, Some(recording)) => recording,
                (None, None) => &tools,
            };
            let relisting = Relisting {
                inner,
                relist: &relist,
            };
            let running = mcptest_agent::run(&task, model, &offer, &relisting, &observer);
            let mut trace = run_state::until_stopped(test, stop, running).await;
            record_messages(test, cassette, &tools, &mut trace);
            trace.distractors = distractors;
            agent_attacks::record(test, &tools.attacks(), &mut trace);
            run_state::look_after(test, cassette, &tools, &mut state, &mut trace).await;
            ask(context, case, test, cassette, &mut trace).await;
            if context.judges && trace.error.is_none() {
                case.meter.reading.store(true, Ordering::Relaxed);
                let asked = (test, &offer);
                ask_reading::ask(context, case, cassette, asked, &mut trace, stop).await;
            }
            trace
        }
    };
    let stderr = tools.stderr(&trace, &case.meter.startup).await;
    run_state::clean_up(context, test, stop, &tools, &mut state, &mut trace).await;
    tools.release().await;
    AgentRun {
        trace,
        stderr,
        folders: None,
    }
}

/// Asks the judges of a test about a run that has its evidence.
async fn ask(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &AgentTest,
    cassette: &RunCassette,
    trace: &mut Trace,
) {
    let is_judged = test.expect.iter().any(|one| one.judge().is_some());
    if context.judges && trace.error.is_none() && is_judged {
        let seen = trace.observable().to_value();
        trace.judgements = ask_judges::ask(context, case, cassette, &test.expect, &seen).await;
    }
}

/// Emits a step of the agent loop.
fn emit(context: &RunContext, case: CaseRef<'_>, event: AgentEvent) {
    let (planned, run) = (context.planned(case.case), case.run);
    match event {
        AgentEvent::ModelAnswered { usage, .. } => context.emit(Event::ModelAnswered {
            case: planned,
            run,
            model: case.model.to_owned(),
            judge: None,
            reader: false,
            usage: usage.map(|usage| AnswerTokens {
                input: usage.input,
                output: usage.output,
            }),
        }),
        AgentEvent::ToolCalled { tool, is_error, .. } => context.emit(Event::ToolCalled {
            case: planned,
            run,
            tool,
            is_error,
        }),
        // Later steps of the loop are not part of the log.
        _ => {}
    }
}

/// The parts of a run that is ready to start.
struct Ready {
    model: Box<dyn Model>,
    offer: Offer,
    /// The ids of the distractors in the offer.
    distractors: Option<Vec<String>>,
    /// The tools of each server, without attacks and distractors.
    listed: Vec<(String, Vec<Tool>)>,
}

/// Opens the model and prepares the tools that it is offered.
async fn prepare(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &AgentTest,
    cassette: &RunCassette,
    tools: &mut RunTools<'_>,
    state: &mut StateRun<'_>,
) -> Result<Ready, RunError> {
    // With several counts of distractors, each count has all the runs, and the script starts again.
    let script_run = (case.run - 1) % test.runs + 1;
    let script = agent_attacks::script(&test.script, &tools.attacks());
    let slot = case.model_slot(ModelRole::Agent, case.model, &script, script_run);
    let model = context.open_model(&slot, cassette)?;
    tools.client = client_of(context, case, test, cassette)?;
    let catalogs = match cassette.servers() {
        Some(replay) => replay.catalogs().to_vec(),
        None => {
            let startup = &case.meter.startup;
            let catalogs = list(test, &context.sessions, startup, tools).await?;
            cassette.listed(&catalogs, &context.redactor)?;
            catalogs
        }
    };
    let listed: Vec<(String, Vec<Tool>)> = catalogs
        .iter()
        .map(|one| (one.server.clone(), one.tools()))
        .collect();
    if cassette.servers().is_none() {
        let checks = &context.tool_names;
        let warn = |text| context.warn(text);
        checks.check((case.test, test), &context.servers, &warn, &listed)?;
    }
    let (offer, distractors) = offer(
        context,
        test,
        case.run,
        listed.clone(),
        &mut tools.attacks(),
    )?;
    if let (Some(recorder), Some(_)) = (cassette.recorder(), &distractors) {
        recorder.record_offer(&offer);
    }
    if cassette.servers().is_none() {
        let startup = &case.meter.startup;
        run_state::set_up(test, &context.sessions, startup, tools, state).await?;
    }
    Ok(Ready {
        model,
        offer,
        distractors,
        listed,
    })
}

/// The client of a run with live servers, if they may ask it something.
fn client_of(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &AgentTest,
    cassette: &RunCassette,
) -> Result<Option<Arc<TestClient>>, RunError> {
    let Some(script) = test
        .client
        .as_ref()
        .filter(|_| cassette.servers().is_none())
    else {
        return Ok(None);
    };
    let expects = |root: &str| test.expect.iter().any(|one| one.target.root() == root);
    let log_level = script.log_level.map(|level| level.as_str());
    let listening = Listening {
        progress: expects("progress") || expects("notifications"),
        log_level: log_level.or(expects("logs").then_some("debug")),
        tasks: script.tasks,
    };
    let models = SamplingModels::open(context, case, script, cassette)?;
    let client = TestClient::new(Arc::clone(script), listening, models);
    Ok(Some(Arc::new(client)))
}

/// Adds the messages of servers to a trace: those that arrived, or the recorded ones.
fn record_messages(
    test: &AgentTest,
    cassette: &RunCassette,
    tools: &RunTools<'_>,
    trace: &mut Trace,
) {
    if test.client.is_none() || run_state::is_interrupted(trace) {
        return;
    }
    if let Some(replay) = cassette.servers() {
        trace.extra.insert(server_messages::KEY, replay.messages());
        return;
    }
    let Some(client) = &tools.client else { return };
    let had_failed = trace.error.is_some();
    client.finish(trace, test.expect.iter().map(|one| one.target.root()));
    if let Some(recorder) = cassette.recorder() {
        let messages = trace.extra.get(server_messages::KEY);
        let messages = messages.and_then(|messages| messages.as_array());
        recorder.record_messages(messages.map_or(&[][..], Vec::as_slice));
        if let Some(error) = trace.error.as_ref().filter(|_| !had_failed) {
            recorder.record_failure(error);
        }
    }
}

/// The tools of each server of the test.
async fn list(
    test: &AgentTest,
    sessions: &Sessions,
    startup: &StartupTime,
    tools: &mut RunTools<'_>,
) -> Result<Vec<RecordedCatalog>, RunError> {
    let mut listed = Vec::new();
    for name in &test.servers {
        let client = tools.client.as_ref();
        let opened = sessions.open_for_test(name, test.isolation(), client, startup);
        let session = opened.await?;
        let found = session.listing().await;
        tools
            .sessions
            .insert(name.clone(), OpenSession::new(session));
        listed.push(RecordedCatalog {
            server: name.clone(),
            tools: found?,
        });
    }
    Ok(listed)
}

type Offered = (Offer, Option<Vec<String>>);

/// The tools that the model is offered, and the ids of the distractors among them.
fn offer(
    context: &RunContext,
    test: &AgentTest,
    run: u32,
    listed: Vec<(String, Vec<Tool>)>,
    attacks: &mut AttackRun,
) -> Result<Offered, RunError> {
    let real: Vec<Tool> = listed
        .iter()
        .flat_map(|(_, tools)| tools.iter().cloned())
        .collect();
    check_name_free(context, test, run, &real)?;
    let poisoned = listed.into_iter().map(|(server, tools)| {
        let tools = agent_attacks::poison_list(attacks, &server, tools);
        (server, tools)
    });
    let mut offer = Offer::new(poisoned.collect());
    let Some(block) = &test.distractors else {
        return Ok((offer, None));
    };
    let planned = planned_run(block, test, run);
    let fakes =
        plan_injection(block, &real, planned.count, planned.seed).map_err(|error| RunError {
            kind: ErrorKind::Protocol,
            message: error.to_string(),
        })?;
    let ids = fakes
        .iter()
        .map(|fake| mcptest_trace::tool_id::full_id(fake.server(), fake.name()))
        .collect();
    offer.inject(fakes, refusal, |count| offer_order(count, planned.seed));
    Ok((offer, Some(ids)))
}
