//! Making one run of an agent: servers, offer, faults, the loop.

use std::sync::atomic::Ordering;

use mcptest_agent::{AgentEvent, Model, Offer, OfferedTool, Task};
use mcptest_attack::AttackRun;
use mcptest_cassette::{ModelRole, RecordedCatalog};
use mcptest_catalog::distractors::{offer_order, plan_injection, refusal};
use mcptest_events::{AnswerTokens, Event};
use mcptest_suite::suite::AgentTest;
use mcptest_trace::catalog::Tool;
use mcptest_trace::fault::FaultState;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::agent_attacks::{self, ChangingOffer};
use crate::agent_shared::{AgentRun, check_name_free, planned_run};
use crate::ask_judges;
use crate::ask_reading;
use crate::cassette_plans::RunCassette;
use crate::external_run::external_run;
use crate::run_context::{CaseRef, RunContext};
use crate::run_state;
use crate::sessions::{OpenSession, RunTools, Sessions, StartupTime};
use crate::state_calls::StateRun;
use crate::stop_signal::StopSignal;

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
            clean,
        }) => {
            let task = Task {
                system: system.as_deref(),
                prompt: &test.prompt,
                turns: &test.turns,
                max_turns: test.max_turns,
                max_tokens: test.max_tokens,
            };
            let model = model.as_ref();
            let changing = clean.map(|clean| ChangingOffer {
                inner: model,
                tools: &tools,
                clean,
            });
            let model: &dyn Model = match &changing {
                Some(changing) => changing,
                None => model,
            };
            let observer = |event| emit(context, case, event);
            let running = async {
                let tools = &tools;
                match (cassette.servers(), cassette.recorder()) {
                    (Some(replay), _) => {
                        mcptest_agent::run(&task, model, &offer, &replay.tools(), &observer).await
                    }
                    (None, Some(recorder)) => {
                        let tools = recorder.tools(tools);
                        mcptest_agent::run(&task, model, &offer, &tools, &observer).await
                    }
                    (None, None) => {
                        mcptest_agent::run(&task, model, &offer, tools, &observer).await
                    }
                }
            };
            let mut trace = run_state::until_stopped(test, stop, running).await;
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
        room: None,
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
    /// The tools without attacks, if the offer changes during the run.
    clean: Option<Vec<OfferedTool>>,
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
    let clean = tools.attacks().changes_later_lists().then(|| {
        let clean = Offer::new(listed.clone());
        clean.tools().to_vec()
    });
    let (offer, distractors) = offer(context, test, case.run, listed, &mut tools.attacks())?;
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
        clean,
    })
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
        let session = sessions.open_for(name, test.isolation(), startup).await?;
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
